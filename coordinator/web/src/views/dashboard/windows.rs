//! Screens of maintenance: one window, and the form that plans one.

use parallax_template::template_file;

use super::form::FormView;
use super::frame::Frame;
use super::incidents::{self, AffectedMonitorChoice, IncidentChoices, IncidentState, UpdateLine};
use super::window_times::WindowTime;
use crate::views::assets;

/// One maintenance window.
#[template_file("dashboard/window.html")]
#[derive(Debug, Clone)]
pub(crate) struct WindowScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Title.
    pub title: String,
    /// State.
    pub state: IncidentState,
    /// When it is, in its zone.
    pub time: WindowTime,
    /// How long it is.
    pub length: String,
    /// Repetition, as a sentence; empty for a single one.
    pub repeats: String,
    /// Next windows of its series.
    pub next: Vec<WindowTime>,
    /// True while its series goes on.
    pub is_repeating: bool,
    /// Address of the window on the public page.
    pub public: String,
    /// True while it runs.
    pub is_running: bool,
    /// True before it begins.
    pub is_planned: bool,
    /// Affected monitors with the addresses of their screens; empty for the whole page.
    pub monitors: Vec<(String, AffectedMonitorChoice)>,
    /// Reminders of subscribers, as texts.
    pub reminders: String,
    /// Updates, newest first.
    pub updates: Vec<UpdateLine>,
    /// Form of an update, with the key for the buttons, and why one of them was refused.
    pub form: FormView,
    /// True while the person may change it.
    pub is_editable: bool,
    /// Choices of the form.
    pub choices: IncidentChoices,
    /// Post-mortem, if there is one.
    pub postmortem: Option<parallax_markdown::Markup>,
}

/// Form that plans a window, or changes one.
#[template_file("dashboard/window_form.html")]
#[derive(Debug, Clone)]
pub(crate) struct WindowFormScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Address for those who change their mind.
    pub back: String,
    /// Title of the window that is changed; `None` for a new one.
    pub changes: Option<String>,
    /// Form.
    pub form: FormView,
    /// Choices of the form.
    pub choices: IncidentChoices,
    /// Choices of repetition, as sentences.
    pub repetitions: Vec<(&'static str, String)>,
    /// Zones to choose from.
    pub zones: Vec<(&'static str, String)>,
    /// Length of the window as typed; empty if its times are not readable.
    pub length: String,
    /// Repetition as a sentence; empty for a single window.
    pub sentence: String,
    /// Next windows of what is typed.
    pub next: Vec<WindowTime>,
    /// Windows that overlap the first one: title and time.
    pub overlaps: Vec<(String, String)>,
    /// Monitors to start maintenance for at once; empty if the form was opened for a plan.
    pub quick: Vec<AffectedMonitorChoice>,
}

impl WindowFormScreen {
    /// Lengths of maintenance that starts at once: minutes and text.
    const fn quick_lengths() -> [(u32, &'static str); 4] {
        [(30, "30 min"), (60, "1 h"), (120, "2 h"), (240, "4 h")]
    }

    /// Usual reminders: value and text.
    const fn reminders() -> [(&'static str, &'static str); 3] {
        [("1d", "1 day"), ("1h", "1 hour"), ("15m", "15 min")]
    }

    /// Monitors of the page: id and name.
    fn monitors_to_tick(&self) -> Vec<(&str, &str)> {
        self.choices.monitors.iter().map(|monitor| (monitor.id.as_str(), monitor.name.as_str())).collect()
    }

    /// Reminders of the form other than the usual ones, separated by commas.
    fn other_reminders(&self) -> String {
        let usual = Self::reminders();
        let others = self.form.values("remind").filter(|value| !value.is_empty());
        others.filter(|value| !usual.iter().any(|(known, _)| known == value)).collect::<Vec<_>>().join(", ")
    }
}
