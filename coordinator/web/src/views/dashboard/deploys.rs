//! Screen of a page's deploys: the list, and the form that adds one.

use parallax_template::template_file;

use super::form::FormView;
use super::frame::Frame;
use crate::views::assets;
use crate::views::format::{FormattedTime, checked_link};

/// A line of the list.
#[derive(Debug, Clone)]
pub(crate) struct DeployRow {
    /// Address of the form that deletes it.
    pub delete: String,
    /// Version.
    pub version: String,
    /// Address of the release, as it is stored.
    pub url: Option<String>,
    /// Note.
    pub note: String,
    /// Time of the deploy.
    pub at: FormattedTime,
    /// Monitors that it touches.
    pub monitors: String,
}

impl DeployRow {
    /// Address of the release, if a browser may follow it.
    fn link(&self) -> Option<String> {
        self.url.as_deref().and_then(checked_link)
    }
}

/// Deploys of a page.
#[template_file("dashboard/deploys.html")]
#[derive(Debug, Clone)]
pub(crate) struct DeploysScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Lines, newest first.
    pub rows: Vec<DeployRow>,
    /// Form that adds one.
    pub form: FormView,
    /// Monitors of the page: id and name.
    pub monitors: Vec<(String, String)>,
    /// Zone of the typed time, as a hint.
    pub zone_hint: String,
    /// Command that adds one from a pipeline.
    pub curl: String,
    /// True if visitors see deploys.
    pub is_public: bool,
}

impl DeploysScreen {
    /// Labels of the fields, for the summary of faults.
    const fn labels(&self) -> &'static [(&'static str, &'static str)] {
        &[("version", "Version"), ("url", "Link"), ("note", "Note"), ("at", "Time"), ("monitorIds", "Monitors")]
    }
}
