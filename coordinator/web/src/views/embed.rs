//! Embeds: a compact status page for an iframe, and the script that shows a notice on other sites during a
//! problem.

use parallax_core::incident::Impact;
use parallax_core::page::branding::{Language, Theme};
use parallax_core::page_view::{PageView, worst_first};
use parallax_i18n::page_messages::{self, PageLocale, PageMessages};
use parallax_template::template_file;
use serde_json::json;

use super::assets;
use super::feeds::is_in_progress;
use super::format::{self, FormattedTime};
use super::headline::Headline;
use super::incident_card::IncidentCard;
use super::monitor_state::MonitorStateLabel;

/// Maximum number of monitors listed.
const MAX_MONITORS: usize = 30;

/// Returns the script in a page's language. It finds the page by the URL it was loaded from; the data that it reads is
/// in English only.
pub(crate) fn widget_script(language: Language) -> String {
    let messages = page_messages::messages(language);
    let impact = |impact| messages.locale().impact(impact);
    let texts = json!({
        "lang": language.tag(),
        "label": messages.widget_label,
        "see": messages.widget_see,
        "dismiss": messages.widget_dismiss,
        "stop": messages.sentence_end,
        "minor": impact(Impact::Degraded),
        "major": impact(Impact::Partial),
        "critical": impact(Impact::Major),
        "maintenance": messages.kind_running,
        "unknown": messages.state_no_data,
    });
    assets::WIDGET.replacen("WORDS", &texts.to_string(), 1)
}

/// Compact page for an iframe.
#[template_file("feeds/embed.html")]
#[derive(Debug, Clone)]
pub(crate) struct EmbedPage {
    t: &'static PageMessages,
    theme: Option<&'static str>,
    name: String,
    headline: Headline,
    /// Open incidents and running maintenance.
    open: Vec<IncidentCard>,
    rows: Vec<(String, MonitorStateLabel)>,
    more: usize,
    address: String,
    base: String,
    noindex: bool,
    rendered_at: FormattedTime,
}

impl EmbedPage {
    /// Builds the compact page; its paths begin with `root`, and links out of the frame are absolute URLs.
    pub(crate) fn new(page_view: &PageView, root: &str, address: &str, theme: Theme) -> Self {
        let is_stale = page_view.is_stale();
        let base = root.strip_suffix(&format!("/p/{}", page_view.page.slug)).unwrap_or_default();
        let locale = PageLocale::of(&page_view.page);
        let messages = locale.messages;
        let running = page_view.maintenance.iter().filter(|it| is_in_progress(&it.incident, page_view.now));
        let open = worst_first(page_view.incidents.iter().chain(running)).into_iter();
        Self {
            t: messages,
            theme: Some(theme).filter(|theme| *theme != Theme::Auto).map(Theme::name),
            name: page_view.page.name.clone(),
            headline: Headline::of(page_view),
            open: open
                .map(|incident_view| IncidentCard::of(incident_view, address, locale, page_view.now, true))
                .collect(),
            rows: page_view
                .monitors
                .iter()
                .take(MAX_MONITORS)
                .map(|view| (view.monitor.name.clone(), MonitorStateLabel::of(view, is_stale, messages)))
                .collect(),
            more: page_view.monitors.len().saturating_sub(MAX_MONITORS),
            address: address.to_owned(),
            base: base.to_owned(),
            noindex: page_view.page.private || page_view.page.password_hash.is_some(),
            rendered_at: format::format_time(page_view.now, locale),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::feeds::tests::{HOSTILE_TEXTS, page_with_text};
    use crate::views::render;

    #[test]
    fn the_embedded_page_shows_all_texts_escaped() {
        for text in HOSTILE_TEXTS {
            let page_view = page_with_text(text);
            let html = render(&EmbedPage::new(&page_view, "/p/northwind", "https://x.example", Theme::Dark)).unwrap();
            let html = String::from_utf8(html).unwrap();
            assert!(html.contains("data-theme=\"dark\"") && html.contains(">Down from Asia<"), "{html}");
            for expected in ["<h2>", "Checked from ", "<use href=\"#i-part\"/>", "data-f=\"ago\""] {
                assert!(html.contains(expected), "{expected}: {html}");
            }
            // The browser refreshes the frame only without JavaScript.
            let (before, after) = html.split_once("<noscript>").unwrap();
            let noscript = after.split_once("</noscript>").unwrap().0;
            assert!(noscript.contains("http-equiv=\"refresh\"") && !before.contains("http-equiv"), "{html}");
            assert_eq!((html.matches("http-equiv").count(), html.matches("<script").count()), (1, 1));
            for markup in ["<b>", "<script>", " style=", "<!ENTITY"] {
                assert!(!html.contains(markup), "{markup}: {html}");
            }
        }
    }

    #[test]
    fn the_widget_script_is_small_and_stores_nothing() {
        for language in Language::ALL {
            let script = widget_script(language);
            assert!(script.len() < 5 * 1024 + 512, "{}", script.len());
            for word in ["cookie", "localStorage", "sessionStorage", "innerHTML", "eval(", "WORDS", "STYLE"] {
                assert!(!script.contains(word), "{word}");
            }
            assert!(script.contains("`:host{all:initial"), "the style sheet is filled in: {script}");
            let label = format!("\"label\":\"{}\"", page_messages::messages(language).widget_label);
            assert!(script.contains(&label), "{script}");
        }
    }
}
