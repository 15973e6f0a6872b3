//! User-written Markdown as HTML with only basic structure and plain links.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ammonia::Builder;
use pulldown_cmark::{Event, LinkType, Parser, Tag, TagEnd};

use crate::plain_text::parser_options;

/// Allowed tags.
const ALLOWED_TAGS: [&str; 18] = [
    "p",
    "br",
    "strong",
    "em",
    "del",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "blockquote",
    "a",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
];
/// Inline styles by tag, since not all mail programs support style sheets. In a table cell only words wider
/// than the mail are broken, so that a column never gets narrower than its words; a wide table scrolls.
const INLINE_STYLES: [(&str, &str); 6] = [
    ("<table>", "<div style=\"overflow-x:auto\"><table style=\"border-collapse:collapse;margin:0 0 12px\">"),
    ("</table>", "</table></div>"),
    (
        "<th>",
        "<th style=\"text-align:left;font-weight:600;border-bottom:1px solid #8888;padding:3px 16px 3px 0;\
         overflow-wrap:break-word\">",
    ),
    ("<td>", "<td style=\"vertical-align:top;padding:3px 16px 3px 0;overflow-wrap:break-word\">"),
    ("<pre>", "<pre style=\"white-space:pre-wrap;margin:0 0 12px\">"),
    ("<blockquote>", "<blockquote style=\"margin:0 0 12px;padding-left:12px;border-left:3px solid #8888\">"),
];

/// Sanitizer that allows structure, emphasis, and links that open without a referrer.
static SANITISER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::empty();
    builder
        .tags(HashSet::from(ALLOWED_TAGS))
        .tag_attributes(HashMap::from([("a", HashSet::from(["href"]))]))
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("nofollow noopener noreferrer"));
    builder
});

/// Renders Markdown as HTML. Raw HTML is shown as text, headings become paragraphs, images become links.
pub(super) fn render_html(text: &str) -> String {
    let events = Parser::new_ext(text, parser_options(text)).map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        Event::Start(Tag::Heading { .. }) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Image { dest_url, title, id, .. }) => {
            Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, title, id })
        }
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        // Same as on the page.
        Event::SoftBreak => Event::HardBreak,
        other => other,
    });
    let mut html = String::with_capacity(text.len() * 2);
    pulldown_cmark::html::push_html(&mut html, events);
    let clean = SANITISER.clean(&html).to_string();
    // After sanitizing, any tag comes from Markdown: tags in the source are escaped.
    INLINE_STYLES.iter().fold(clean, |html, (tag, styled)| html.replace(tag, styled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_keeps_its_structure() {
        assert_eq!(render_html("A **b** *c* `d`\n\n- e\n- [f](https://f.example)"), {
            "<p>A <strong>b</strong> <em>c</em> <code>d</code></p>\n<ul>\n<li>e</li>\n<li><a href=\"https://f.example\" \
             rel=\"nofollow noopener noreferrer\">f</a></li>\n</ul>\n"
        });
        assert_eq!(render_html("# Head"), "<p>Head</p>\n");
        assert_eq!(
            render_html("![x](https://x.example/x.png)"),
            "<p><a href=\"https://x.example/x.png\" rel=\"nofollow noopener noreferrer\">x</a></p>\n"
        );
    }

    #[test]
    fn nothing_that_acts_or_fetches_comes_through() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "[x](/relative) [y](//evil.example)",
            "[x](https://x.example \"\\\" onmouseover=alert(1)\")",
            "<a href=\"https://x.example\" style=\"position:fixed\">x</a>",
            "![x](javascript:alert(1))",
            "<!--footer-->",
            "<style>*{display:none}</style>\n\ntext",
        ] {
            let html = render_html(text);
            let tags: Vec<&str> = html.split('<').skip(1).filter_map(|tag| tag.split(['>', ' ']).next()).collect();
            let known = ["p", "/p", "a", "/a"];
            assert!(tags.iter().all(|tag| known.contains(tag)), "{text:?}: {html}");
            for attribute in html.split("<a").skip(1).filter_map(|rest| rest.split('>').next()) {
                assert!(!attribute.contains("on") || attribute.contains("noopener"), "{html}");
                assert!(!attribute.to_lowercase().contains("script") && !attribute.contains("style"), "{html}");
            }
        }
    }
}
