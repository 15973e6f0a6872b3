//! Forms of incidents: a new one, details, the post-mortem, and deletion.

use parallax_core::incident::IncidentStatus;
use parallax_markdown::Markup;
use parallax_template::template_file;

use super::form::FormView;
use super::frame::Frame;
use super::incidents::{self, IncidentChoices, IncidentPreview};
use crate::views::assets;

/// Form of a new incident.
#[template_file("dashboard/incident_new.html")]
#[derive(Debug, Clone)]
pub(crate) struct NewIncidentScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Form.
    pub form: FormView,
    /// Choices of the form.
    pub choices: IncidentChoices,
    /// The incident as readers would see it.
    pub preview: IncidentPreview,
    /// Zones to choose from.
    pub zones: Vec<(&'static str, String)>,
}

impl NewIncidentScreen {
    fn statuses(&self) -> Vec<(&'static str, &'static str)> {
        IncidentChoices::statuses(&IncidentStatus::OF_NEW)
    }

    fn is_past(&self) -> bool {
        !self.form.value("resolvedAt").is_empty()
    }
}

/// Form of the details of an incident.
#[template_file("dashboard/incident_edit.html")]
#[derive(Debug, Clone)]
pub(crate) struct EditIncidentScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of the incident's screen.
    pub href: String,
    /// Title of the incident as stored.
    pub title: String,
    /// Form.
    pub form: FormView,
    /// Choices of the form.
    pub choices: IncidentChoices,
}

/// Form of the post-mortem.
#[template_file("dashboard/postmortem.html")]
#[derive(Debug, Clone)]
pub(crate) struct PostmortemScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of the incident's screen.
    pub href: String,
    /// Title of the incident.
    pub title: String,
    /// Form.
    pub form: FormView,
    /// Text as readers would see it.
    pub preview: Markup,
    /// True if one is published.
    pub is_published: bool,
}

/// Question before something is deleted for good: the title has to be typed.
#[template_file("dashboard/delete.html")]
#[derive(Debug, Clone)]
pub(crate) struct DeleteScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Address of the thing, for those who change their mind.
    pub back: String,
    /// Kind of thing: "incident".
    pub kind: &'static str,
    /// Title to type.
    pub title: String,
    /// Records that are lost, in numbers.
    pub loss: String,
    /// Form.
    pub form: FormView,
}
