//! Screen that says why a change was not undone.

use parallax_template::template_file;

use super::frame::Frame;
use crate::views::assets;

/// Reasons for which nothing was undone.
#[template_file("dashboard/undo_refused.html")]
#[derive(Debug, Clone)]
pub(crate) struct UndoRefusedScreen {
    /// The frame.
    pub frame: Frame,
    /// Address of the screen that the undo was offered on.
    pub next: String,
    /// Reason in a sentence.
    pub text: String,
    /// Changes of each record since, in sentences.
    pub items: Vec<String>,
}
