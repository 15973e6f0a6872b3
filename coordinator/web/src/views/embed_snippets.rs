//! Embedding page: badges, iframe and notice for other sites, each with a preview and the snippet to copy.

use parallax_core::id::MonitorId;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::{fill, messages};
use parallax_template::template_file;

use super::assets;
use super::frame::PageFrame;
use super::markdown_page::escape_line;

/// Maximum number of services whose badges are listed.
const MAX_SERVICES: usize = 50;
/// Examples of badge parameters.
const BADGE_PARAMETERS: [&str; 6] = [
    "?metric=uptime&days=30",
    "?metric=uptime&days=90",
    "?metric=response",
    "?style=flat-square",
    "?style=for-the-badge",
    "?label=API",
];

/// Snippets to copy.
#[derive(Debug, Clone)]
pub(crate) struct Snippets {
    /// Badge as Markdown.
    pub badge_markdown: String,
    /// Badge as HTML.
    pub badge_html: String,
    /// Frame with the current state.
    pub iframe: String,
    /// Script that shows a notice while something is wrong.
    pub widget: String,
}

impl Snippets {
    /// Writes the snippets of a page at its canonical URL.
    pub(crate) fn of(page: &Page, address: &str) -> Self {
        let label = fill(messages(page.language).feed_title, &[&page.name]);
        let attribute_text = escape_attribute(&label);
        Self {
            badge_markdown: format!("[![{}]({address}/badge.svg)]({address})", escape_line(&label)),
            badge_html: format!("<a href=\"{address}\"><img src=\"{address}/badge.svg\" alt=\"{attribute_text}\"></a>"),
            iframe: format!(
                "<iframe src=\"{address}/embed\" title=\"{attribute_text}\" width=\"100%\" height=\"420\" \
                 loading=\"lazy\"></iframe>"
            ),
            widget: format!("<script src=\"{address}/widget.js\" async></script>"),
        }
    }
}

/// The embedding page.
#[template_file("public/snippets.html")]
#[derive(Debug, Clone)]
pub(crate) struct EmbedSnippetsPage {
    frame: PageFrame,
    /// Canonical URL of the page.
    address: String,
    /// Alternative text of a badge.
    label: String,
    snippets: Snippets,
    /// Paths and names of services.
    services: Vec<(String, String)>,
    more: usize,
}

impl EmbedSnippetsPage {
    /// Builds the embedding page; its paths begin with `root`, and `address` is its canonical URL.
    pub(crate) fn new(
        (page, root): (&Page, &str),
        address: &str,
        monitors: &[(MonitorId, String)],
        now: Timestamp,
    ) -> Self {
        let messages = messages(page.language);
        let label = fill(messages.feed_title, &[&page.name]);
        Self {
            frame: PageFrame::new(page, root, messages.embed, now),
            snippets: Snippets::of(page, address),
            address: address.to_owned(),
            label,
            services: monitors
                .iter()
                .take(MAX_SERVICES)
                .map(|(id, name)| (format!("/monitors/{id}/badge.svg"), name.clone()))
                .collect(),
            more: monitors.len().saturating_sub(MAX_SERVICES),
        }
    }
}

/// Escapes a text for a double-quoted HTML attribute.
fn escape_attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::feeds::tests::HOSTILE_TEXTS;
    use crate::views::render;
    use crate::views::tests::{ADDRESS, NOW, page};

    fn rendered(page: &Page, monitors: &[(MonitorId, String)]) -> String {
        String::from_utf8(render(&EmbedSnippetsPage::new((page, "/p/x"), ADDRESS, monitors, NOW)).unwrap()).unwrap()
    }

    #[test]
    fn every_snippet_has_absolute_urls_and_a_preview() {
        let text = rendered(&page(), &[(MonitorId::from_u128(3), "Payments API".to_owned())]);
        for expected in [
            "<img src=\"/p/x/badge.svg\"",
            "<img src=\"/p/x/badge.svg?style=for-the-badge\"",
            "<iframe src=\"/p/x/embed\"",
            "<img src=\"/p/x/monitors/mon_00000000000000000000000003/badge.svg\" alt=\"Payments API\"",
            "<code>[![Northwind status](https://status.northwind.example/badge.svg)](https://status.northwind.example)</code>",
            "src=&#34;https://status.northwind.example/widget.js&#34; async",
            "src=&#34;https://status.northwind.example/embed&#34;",
            "https://status.northwind.example/badge.json",
            "https://status.northwind.example/api/v2/summary.json",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!rendered(&page(), &[]).contains("/monitors/"), "no service section without services");
    }

    #[test]
    fn names_are_escaped_on_the_page_and_in_snippets() {
        for name in HOSTILE_TEXTS {
            let named_page = Page { name: (*name).to_owned(), ..page() };
            let text = rendered(&named_page, &[(MonitorId::from_u128(1), (*name).to_owned())]);
            for markup in ["<b>", "<script>", " style=", "<!ENTITY"] {
                assert!(!text.contains(markup), "{markup}: {text}");
            }
            let snippets = EmbedSnippetsPage::new((&named_page, "/p/x"), ADDRESS, &[], NOW);
            let (_, rest) = snippets.snippets.badge_html.split_once(" alt=\"").unwrap();
            let (value, end) = rest.split_once('"').unwrap();
            assert_eq!(end, "></a>", "{value}");
            assert!(!value.contains(['<', '>']), "{value}");
        }
    }

    #[test]
    fn a_private_page_offers_no_embeds() {
        let text = rendered(&Page { private: true, ..page() }, &[(MonitorId::from_u128(1), "Till".to_owned())]);
        assert!(text.contains("This page is not public") && text.contains("/p/x/subscribe#programs"), "{text}");
        assert!(!text.contains("<iframe") && !text.contains("badge.svg"), "{text}");
    }
}
