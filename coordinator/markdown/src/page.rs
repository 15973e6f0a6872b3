//! The policy for pages: headings are bold lines, or continue the outline of the page; tables scroll in a box.

use std::sync::LazyLock;

use ammonia::Builder;
use pulldown_cmark::{Event, HeadingLevel, Tag, TagEnd};

use super::{parse, sanitized_html, sanitizer};

/// Tags of headings: those below the page's own, which are of level 2.
const HEADING_TAGS: [&str; 3] = ["h3", "h4", "h5"];

static SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| sanitizer(&HEADING_TAGS));

/// Wraps each table in a box that can be scrolled, also by keyboard.
const TABLE_BOX: [(&str, &str); 2] =
    [("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>"), ("</table>", "</table></div>")];

/// HTML that may be printed unescaped. Only [`render_short`] and [`render_article`] create it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markup(String);

impl Markup {
    /// The HTML.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Renders a few lines of Markdown, with headings as bold paragraphs outside the document's outline. Raw HTML
/// is shown as text, and images become links.
pub fn render_short(text: &str) -> Markup {
    let events = parse(text).flat_map(|event| {
        match event {
            Event::Start(Tag::Heading { .. }) => [Some(Event::Start(Tag::Paragraph)), Some(Event::Start(Tag::Strong))],
            Event::End(TagEnd::Heading(_)) => [Some(Event::End(TagEnd::Strong)), Some(Event::End(TagEnd::Paragraph))],
            other => [Some(other), None],
        }
        .into_iter()
        .flatten()
    });
    Markup(sanitized_html(events, &SANITIZER, &TABLE_BOX))
}

/// Renders a text below a level-2 heading: its headings continue the outline without gaps. The first heading
/// is removed if it only repeats one of `titles`.
pub fn render_article(text: &str, titles: &[&str]) -> Markup {
    let mut events: Vec<Event<'_>> = parse(text).collect();
    if let Some(end) = leading_title(&events, titles) {
        events.drain(..=end);
    }
    let mut open = Vec::new();
    let mut level = HeadingLevel::H3;
    let events = events.into_iter().map(move |event| match event {
        Event::Start(Tag::Heading { level: source_level, .. }) => {
            open.retain(|above| *above < source_level);
            open.push(source_level);
            level = match open.len() {
                1 => HeadingLevel::H3,
                2 => HeadingLevel::H4,
                _ => HeadingLevel::H5,
            };
            Event::Start(Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() })
        }
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(level)),
        other => other,
    });
    Markup(sanitized_html(events, &SANITIZER, &TABLE_BOX))
}

/// Returns the end of the heading that a text begins with, if it is one of `titles`.
fn leading_title(events: &[Event<'_>], titles: &[&str]) -> Option<usize> {
    let Some(Event::Start(Tag::Heading { .. })) = events.first() else { return None };
    let end = events.iter().position(|event| matches!(event, Event::End(TagEnd::Heading(_))))?;
    let heading: String = events[..end]
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect();
    let heading = heading.trim().to_lowercase();
    titles.iter().any(|title| title.trim().to_lowercase() == heading).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SHARED_TAGS, plain_line};

    #[test]
    fn a_table_padded_from_short_rows_is_no_table() {
        let table = |columns: usize, rows: usize| {
            let row = |cell: &str| cell.repeat(columns) + "\n";
            row("a|") + &row("-|") + &"a\n".repeat(rows)
        };
        assert_eq!(render_short(&table(6, 200)).0.matches("<td>").count(), 1200);
        let wide = table(400, 700);
        for wide in [wide.replace('\n', "\r"), wide.replace('\n', "\r\n"), wide] {
            assert!(render_short(&wide).0.len() < 6 * wide.len() && plain_line(&wide).len() < 2 * wide.len());
        }
    }

    /// Payloads that must never come out as markup.
    const PAYLOADS: &[&str] = &[
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
        "# <script>alert(1)</script>",
        "# x {#id onclick=alert(1) .class}",
        "## [x](javascript:alert(1))\n\n###### <h1 onclick=alert(1)>y</h1>",
        "| <b onclick=alert(1)> | [x](javascript:alert(1)) |\n|:--|--:|\n| </table><script>alert(1)</script> | `<td>` |",
        "| a |\n|:-:|\n| <td style=position:fixed align=right colspan=9> |",
        "<table onclick=alert(1)><tr><td background=https://evil.example>x</table>",
        "<div class=scroll tabindex=0><table>x</table></div>",
        "<h3 id=x style=position:fixed>x</h3>",
    ];

    #[test]
    fn only_allowed_tags_and_attributes_come_out() {
        let render = |payload: &&str| {
            [render_short(payload).0, render_article(payload, &["x"]).0].map(|it| ((*payload).to_owned(), it))
        };
        for (payload, markup) in PAYLOADS.iter().flat_map(render) {
            // Table boxes come from the renderer, one per table.
            let (open, close) = ("<div class=\"scroll\" tabindex=\"0\"><table>", "</table></div>");
            assert_eq!(markup.matches(open).count(), markup.matches("<table").count(), "{payload}: {markup}");
            assert_eq!(markup.matches(close).count(), markup.matches("</table").count(), "{payload}: {markup}");
            let markup = markup.replace(open, "<table>").replace(close, "</table>");
            let mut rest = markup.as_str();
            while let Some((_, after)) = rest.split_once('<') {
                let (tag, after_tag) = after.split_once('>').unwrap();
                let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
                assert!(SHARED_TAGS.contains(&name) || HEADING_TAGS.contains(&name), "{payload}: {markup}");
                let attributes = tag.split_once(' ').map_or("", |(_, rest)| rest);
                let is_link = attributes.starts_with("href=\"http")
                    || attributes.starts_with("href=\"mailto:")
                    || attributes.starts_with("rel=\"");
                assert!(attributes.is_empty() || (name == "a" && is_link), "{payload}: {markup}");
                rest = after_tag;
            }
        }
    }

    #[test]
    fn headings_of_an_article_follow_the_one_above_it_without_a_gap() {
        for (text, markup) in [
            ("# A\n## B\n### C\n#### D\n# E", "<h3>A</h3>\n<h4>B</h4>\n<h5>C</h5>\n<h5>D</h5>\n<h3>E</h3>\n"),
            ("### A\n##### B\n#### C\n# D", "<h3>A</h3>\n<h4>B</h4>\n<h4>C</h4>\n<h3>D</h3>\n"),
            ("# *Post*-mortem\n\n## A\n\ntext", "<h3>A</h3>\n<p>text</p>\n"),
            ("POST-MORTEM\n===\n# Post-mortem", "<h3>Post-mortem</h3>\n"),
            ("# Post-mortem of it", "<h3>Post-mortem of it</h3>\n"),
            ("text\n# Post-mortem", "<p>text</p>\n<h3>Post-mortem</h3>\n"),
            ("# Post-mortem", ""),
        ] {
            assert_eq!(render_article(text, &["Till is jammed", "Post-mortem"]).as_str(), markup, "{text}");
        }
    }

    #[test]
    fn structure_and_emphasis_are_kept() {
        for (text, markup) in [
            ("plain", "<p>plain</p>\n"),
            (
                "**bold** *it* `code` ~~no~~",
                "<p><strong>bold</strong> <em>it</em> <code>code</code> <del>no</del></p>\n",
            ),
            ("# Title", "<p><strong>Title</strong></p>\n"),
            (
                "| a | b |\n|---|--:|\n| 1 | *2* |",
                "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n\
                 <tr><td>1</td><td><em>2</em></td></tr>\n</tbody></table></div>\n",
            ),
            ("<!--x-->", "<p>&lt;!--x--&gt;</p>\n"),
            ("a\nb", "<p>a<br>\nb</p>\n"),
            ("1 < 2 & 3", "<p>1 &lt; 2 &amp; 3</p>\n"),
            (
                "[x](https://a.example/?a=1&b=2)",
                "<p><a href=\"https://a.example/?a=1&amp;b=2\" rel=\"nofollow noopener noreferrer\">x</a></p>\n",
            ),
            ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
        ] {
            assert_eq!(render_short(text).as_str(), markup);
        }
        let picture = render_short("![shot](https://a.example/s.png)");
        assert!(picture.as_str().contains("<a href=\"https://a.example/s.png\""), "{picture:?}");
    }
}
