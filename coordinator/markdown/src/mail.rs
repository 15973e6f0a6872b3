//! The policy for mails: no headings, and styles inline.

use std::sync::LazyLock;

use ammonia::Builder;
use pulldown_cmark::{Event, Tag, TagEnd};

use super::{parse, sanitized_html, sanitizer};

static SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| sanitizer(&[]));

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

/// Renders Markdown as HTML. Headings become paragraphs.
pub fn render_mail(text: &str) -> String {
    let events = parse(text).map(|event| match event {
        Event::Start(Tag::Heading { .. }) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Paragraph),
        other => other,
    });
    sanitized_html(events, &SANITIZER, &INLINE_STYLES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_is_kept_and_headings_are_paragraphs() {
        assert_eq!(render_mail("A **b** *c* `d`\n\n- e\n- [f](https://f.example)"), {
            "<p>A <strong>b</strong> <em>c</em> <code>d</code></p>\n<ul>\n<li>e</li>\n<li><a href=\"https://f.example\" \
             rel=\"nofollow noopener noreferrer\">f</a></li>\n</ul>\n"
        });
        assert_eq!(render_mail("# Head"), "<p>Head</p>\n");
        assert_eq!(
            render_mail("![x](https://x.example/x.png)"),
            "<p><a href=\"https://x.example/x.png\" rel=\"nofollow noopener noreferrer\">x</a></p>\n"
        );
    }

    #[test]
    fn raw_html_is_text_in_a_paragraph_and_a_heading_tag_never_comes_out() {
        for (text, html) in [
            ("<!--x-->", "<p>&lt;!--x--&gt;</p>\n"),
            ("<div>x</div>", "<p>&lt;div&gt;x&lt;/div&gt;</p>\n"),
            ("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"),
            ("<h3>x</h3>", "<p>&lt;h3&gt;x&lt;/h3&gt;</p>\n"),
            ("### x", "<p>x</p>\n"),
        ] {
            assert_eq!(render_mail(text), html, "{text}");
        }
        let headings = "<h3>a</h3><h4>b</h4><h5>c</h5><p>d</p>";
        assert_eq!(SANITIZER.clean(headings).to_string(), "abc<p>d</p>", "only pages have headings");
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
            let html = render_mail(text);
            let tags: Vec<&str> = html.split('<').skip(1).filter_map(|tag| tag.split(['>', ' ']).next()).collect();
            let allowed = ["p", "/p", "a", "/a"];
            assert!(tags.iter().all(|tag| allowed.contains(tag)), "{text:?}: {html}");
            for attribute in html.split("<a").skip(1).filter_map(|rest| rest.split('>').next()) {
                assert!(!attribute.contains("on") || attribute.contains("noopener"), "{html}");
                assert!(!attribute.to_lowercase().contains("script") && !attribute.contains("style"), "{html}");
            }
        }
    }
}
