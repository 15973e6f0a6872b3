//! People's Markdown as markup that can do no harm: an allow-list of tags, links of three schemes, nothing loaded.

use std::collections::{HashMap, HashSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

/// Tags that are left.
const TAGS: [&str; 12] =
    ["p", "br", "strong", "em", "code", "pre", "ul", "ol", "li", "blockquote", "a", "del"];

/// Markup that may be printed as it is. Only [`render`] makes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markup(String);

impl Markup {
    /// The markup.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Renders Markdown. HTML in it is shown as the text that it is, headings become paragraphs, and pictures links.
pub fn render(text: &str) -> Markup {
    let events = Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH).map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Start(Tag::HtmlBlock | Tag::Heading { .. }) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock | TagEnd::Heading(_)) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        Event::SoftBreak => Event::HardBreak,
        other => other,
    });
    let mut markup = String::with_capacity(text.len() * 2);
    html::push_html(&mut markup, events);
    Markup(cleaned(&markup))
}

/// Markdown as one line of plain text.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                plain += &text;
            }
            Event::End(
                TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image,
            ) => {}
            Event::SoftBreak | Event::HardBreak | Event::Rule | Event::End(_) if !plain.ends_with(' ') => {
                plain.push(' ');
            }
            _ => {}
        }
    }
    plain.trim_end().to_owned()
}

fn cleaned(markup: &str) -> String {
    let attributes = HashMap::from([("a", HashSet::from(["href"]))]);
    ammonia::Builder::new()
        .tags(HashSet::from(TAGS))
        .clean_content_tags(HashSet::from(["script", "style"]))
        .tag_attributes(attributes)
        .generic_attributes(HashSet::new())
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("nofollow noopener noreferrer"))
        .clean(markup)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_one_line_without_marks() {
        for (text, line) in [
            (
                "**We move** to [another](https://example.com/).\n\n- `one`\n- two",
                "We move to another. one two",
            ),
            ("# Title\nline\nline", "Title line line"),
            ("", ""),
        ] {
            assert_eq!(plain(text), line);
        }
    }

    /// What must not come out as markup, whatever comes in.
    pub(crate) const PAYLOADS: &[&str] = &[
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg/onload=alert(1)>",
        "<a href=\"javascript:alert(1)\">x</a>",
        "[x](javascript:alert(1))",
        "[x]( java\tscript:alert(1))",
        "[x](JaVaScRiPt&#58;alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "[x](//evil.example)",
        "![x](javascript:alert(1))",
        "![x](https://tracker.example/p.gif)",
        "<iframe src=https://evil.example></iframe>",
        "<style>*{display:none}</style>",
        "<form action=https://evil.example><input name=a></form>",
        "<math><mtext></mtext><mglyph><style></math><img src onerror=alert(1)>",
        "<b onmouseover=alert(1) style=position:fixed>x</b>",
        "`<script>`",
        "```\n</code></pre><script>alert(1)</script>\n```",
        "[x](https://a.example \"\" onclick=\"alert(1))",
        "[x](https://a.example/\"onmouseover=\"alert(1))",
        "\u{0}<script>",
        "<<script>script>alert(1)<</script>/script>",
    ];

    #[test]
    fn nothing_that_is_written_becomes_more_than_is_allowed() {
        for payload in PAYLOADS {
            let markup = render(payload).0;
            let mut rest = markup.as_str();
            while let Some((_, after)) = rest.split_once('<') {
                let (tag, then) = after.split_once('>').unwrap();
                let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
                assert!(TAGS.contains(&name), "{payload}: {markup}");
                let attributes = tag.split_once(' ').map_or("", |(_, rest)| rest);
                let is_link = attributes.starts_with("href=\"http")
                    || attributes.starts_with("href=\"mailto:")
                    || attributes.starts_with("rel=\"");
                assert!(attributes.is_empty() || (name == "a" && is_link), "{payload}: {markup}");
                rest = then;
            }
        }
    }

    #[test]
    fn what_people_write_is_kept() {
        for (text, markup) in [
            ("plain", "<p>plain</p>\n"),
            (
                "**bold** *it* `code` ~~no~~",
                "<p><strong>bold</strong> <em>it</em> <code>code</code> <del>no</del></p>\n",
            ),
            ("# Title", "<p>Title</p>\n"),
            ("a\nb", "<p>a<br>\nb</p>\n"),
            ("1 < 2 & 3", "<p>1 &lt; 2 &amp; 3</p>\n"),
            (
                "[x](https://a.example/?a=1&b=2)",
                "<p><a href=\"https://a.example/?a=1&amp;b=2\" rel=\"nofollow noopener noreferrer\">x</a></p>\n",
            ),
            ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
        ] {
            assert_eq!(render(text).as_str(), markup);
        }
        let picture = render("![shot](https://a.example/s.png)");
        assert!(picture.as_str().contains("<a href=\"https://a.example/s.png\""), "{picture:?}");
    }
}
