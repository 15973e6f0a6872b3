//! Embeds: a compact status page for an iframe, and the script that shows a notice on other sites during a
//! problem.

use askama::Template;
use parallax_core::incident::Impact;
use parallax_core::page::branding::{Language, Theme};
use parallax_core::page_view::{PageView, worst_first};
use serde_json::json;

use super::assets;
use super::feeds::is_in_progress;
use super::format::{self, FormattedTime};
use super::headline::Headline;
use super::incident::IncidentCard;
use super::messages::{self, PageLocale, PageMessages};
use super::monitor::MonitorStateLabel;

/// Maximum number of monitors listed.
const MAX_MONITORS: usize = 30;

/// Script without its texts. It finds the page by the URL it was loaded from.
const WIDGET: &str = include_str!("../../assets/widget.js");

/// Returns the script in a page's language. The data that it reads is in English only.
pub fn widget_script(language: Language) -> String {
    let said = messages::messages(language);
    let impact = |impact| said.locale().impact(impact);
    let words = json!({
        "lang": language.tag(),
        "label": said.widget_label,
        "see": said.widget_see,
        "dismiss": said.widget_dismiss,
        "stop": said.sentence_end,
        "minor": impact(Impact::Degraded),
        "major": impact(Impact::Partial),
        "critical": impact(Impact::Major),
        "maintenance": said.kind_running,
        "unknown": said.state_no_data,
    });
    WIDGET.replacen("WORDS", &words.to_string(), 1)
}

/// Compact page for an iframe.
#[derive(Debug, Clone, Template)]
#[template(path = "feeds/embed.html")]
pub struct EmbedPage {
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
    written: FormattedTime,
}

impl EmbedPage {
    /// Builds the compact page; its paths begin with `root`, and links out of the frame are absolute URLs.
    pub fn new(board: &PageView, root: &str, address: &str, theme: Theme) -> Self {
        let is_stale = board.is_stale();
        let base = root.strip_suffix(&format!("/p/{}", board.page.slug)).unwrap_or_default();
        let voice = PageLocale::of(&board.page);
        let said = voice.messages;
        let running = board.maintenance.iter().filter(|it| is_in_progress(&it.incident, board.now));
        let open = worst_first(board.incidents.iter().chain(running)).into_iter();
        Self {
            t: said,
            theme: Some(theme).filter(|theme| *theme != Theme::Auto).map(Theme::name),
            name: board.page.name.clone(),
            headline: Headline::of(board),
            open: open.map(|notice| IncidentCard::of(notice, address, voice, board.now, true)).collect(),
            rows: board
                .monitors
                .iter()
                .take(MAX_MONITORS)
                .map(|shown| (shown.monitor.name.clone(), MonitorStateLabel::of(shown, is_stale, said)))
                .collect(),
            more: board.monitors.len().saturating_sub(MAX_MONITORS),
            address: address.to_owned(),
            base: base.to_owned(),
            noindex: board.page.private || board.page.password_hash.is_some(),
            written: format::format_time(board.now, voice),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::feeds::tests::{NASTY, saying};
    use crate::views::render;

    #[test]
    fn a_frame_says_all_in_words_and_nothing_that_is_said_becomes_markup() {
        for text in NASTY {
            let board = saying(text);
            let drawn = render(&EmbedPage::new(&board, "/p/northwind", "https://x.example", Theme::Dark)).unwrap();
            let drawn = String::from_utf8(drawn).unwrap();
            assert!(drawn.contains("data-theme=\"dark\"") && drawn.contains(">Down from Asia<"), "{drawn}");
            for said in ["<h2>", "Checked from ", "<use href=\"#i-part\"/>", "data-f=\"ago\""] {
                assert!(drawn.contains(said), "{said}: {drawn}");
            }
            // The browser refreshes the frame only without JavaScript.
            let (before, after) = drawn.split_once("<noscript>").unwrap();
            let without = after.split_once("</noscript>").unwrap().0;
            assert!(without.contains("http-equiv=\"refresh\"") && !before.contains("http-equiv"), "{drawn}");
            assert_eq!((drawn.matches("http-equiv").count(), drawn.matches("<script").count()), (1, 1));
            for markup in ["<b>", "<script>", " style=", "<!ENTITY"] {
                assert!(!drawn.contains(markup), "{markup}: {drawn}");
            }
        }
    }

    #[test]
    fn the_script_is_small_and_keeps_nothing() {
        for language in Language::ALL {
            let script = widget_script(language);
            assert!(script.len() < 5 * 1024 + 512, "{}", script.len());
            for word in ["cookie", "localStorage", "sessionStorage", "innerHTML", "eval(", "WORDS"] {
                assert!(!script.contains(word), "{word}");
            }
            let label = format!("\"label\":\"{}\"", messages::messages(language).widget_label);
            assert!(script.contains(&label), "{script}");
        }
    }
}
