//! Screens of a form for many monitors: the question before it deletes, and what it refused.

use parallax_core::id::MonitorId;
use parallax_template::template_file;

use super::frame::Frame;
use super::words;
use crate::views::assets;

/// A question or a result about several monitors.
#[template_file("dashboard/bulk.html")]
#[derive(Debug, Clone)]
pub(crate) struct BulkScreen {
    frame: Frame,
    path: String,
    title: String,
    text: String,
    /// Name of each monitor, with the reason for which it was refused.
    items: Vec<(String, String)>,
    /// Monitors to delete, if this is the question.
    delete: Option<Vec<MonitorId>>,
    /// Monitors to pause, if this is the question.
    pause: Option<Vec<MonitorId>>,
    /// Word to type.
    word: String,
    /// True if another word was typed.
    is_wrong: bool,
    idempotency_key: String,
}

impl BulkScreen {
    /// Word that confirms the deletion of that many monitors.
    pub(crate) fn word(count: usize) -> String {
        format!("delete {count}")
    }

    /// Asks before monitors are deleted.
    pub(crate) fn ask(
        frame: Frame,
        monitors: Vec<(MonitorId, String)>,
        is_wrong: bool,
        idempotency_key: String,
    ) -> Self {
        let (ids, names): (Vec<_>, Vec<_>) = monitors.into_iter().unzip();
        Self {
            path: frame.path("monitors"),
            frame,
            title: format!("Delete {}?", words::count(ids.len(), "monitor", "monitors")),
            text: "Their history goes with them. This can't be undone.".to_owned(),
            word: Self::word(ids.len()),
            items: names.into_iter().map(|name| (name, String::new())).collect(),
            delete: Some(ids),
            pause: None,
            is_wrong,
            idempotency_key,
        }
    }

    /// Asks before monitors are paused, which ends the automatic incidents with those titles.
    pub(crate) fn ask_to_pause(
        frame: Frame,
        ids: Vec<MonitorId>,
        incidents: Vec<String>,
        idempotency_key: String,
    ) -> Self {
        let ended = words::count(incidents.len(), "automatic incident", "automatic incidents");
        Self {
            path: frame.path("monitors"),
            frame,
            title: format!("Pause {}?", words::count(ids.len(), "monitor", "monitors")),
            text: format!(
                "A pause ends the outage and resolves {ended}. Subscribers are not notified, and it can’t be undone."
            ),
            items: incidents.into_iter().map(|title| (title, String::new())).collect(),
            delete: None,
            pause: Some(ids),
            word: String::new(),
            is_wrong: false,
            idempotency_key,
        }
    }

    /// Says why a form changed nothing.
    pub(crate) fn unchanged(frame: Frame, problem: String) -> Self {
        Self { title: "Nothing was changed".to_owned(), text: problem, ..Self::refused(frame, 0, Vec::new()) }
    }

    /// Says which monitors were refused, and why.
    pub(crate) fn refused(frame: Frame, changed: usize, refused: Vec<(String, String)>) -> Self {
        let all = changed + refused.len();
        Self {
            path: frame.path("monitors"),
            frame,
            title: format!("{changed} of {all} changed"),
            text: format!("{} refused:", if refused.len() == 1 { "1 was" } else { "These were" }),
            items: refused,
            delete: None,
            pause: None,
            word: String::new(),
            is_wrong: false,
            idempotency_key: String::new(),
        }
    }
}
