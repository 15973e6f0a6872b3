//! Heading of a monitor's screens: name, one line of settings, actions, and tabs.

use parallax_core::check::CheckKind;
use parallax_core::monitor::Monitor;

use super::settings_words::{self, CheckPlan};

/// Tab of a monitor's screens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MonitorTab {
    /// Summary.
    Summary,
    /// Finished rounds.
    Rounds,
    /// Changes of state.
    Outages,
    /// Alerts sent.
    Alerts,
    /// Settings.
    Settings,
}

/// Heading of a monitor's screens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MonitorHeading {
    /// Path of the list of monitors.
    pub list: String,
    /// Path of the monitor.
    pub path: String,
    /// Name.
    pub name: String,
    /// Group.
    pub group: Option<String>,
    /// Settings in one line.
    pub lead: String,
    /// Tabs: address, text, true for the present one.
    pub tabs: Vec<(String, &'static str, bool)>,
    /// Address of a new maintenance window for it.
    pub maintenance: String,
    /// Address of the form for a copy.
    pub clone: String,
    /// True if it can be checked on request.
    pub can_check: bool,
    /// True while it is paused by its owner.
    pub is_paused: bool,
    /// Token of the session, for forms.
    pub form_token: String,
    /// Idempotency key of the forms.
    pub once: String,
    /// The same for the acknowledgement, which may precede another form of the same screen.
    pub acknowledge_once: String,
}

impl MonitorHeading {
    /// Tabs that a person may open: the settings, which come last, are for those who may edit.
    pub(crate) fn tabs_of(&self, may_edit: bool) -> &[(String, &'static str, bool)] {
        match self.tabs.split_last() {
            Some((_, others)) if !may_edit => others,
            _ => &self.tabs,
        }
    }

    /// Builds the heading; `keys` are the idempotency keys of its forms and of the
    /// acknowledgement.
    pub(crate) fn new(
        monitor: &Monitor,
        plan: CheckPlan,
        tab: MonitorTab,
        (form_token, [once, acknowledge_once]): (&str, [String; 2]),
    ) -> Self {
        let page = format!("/app/pages/{}", monitor.page);
        let list = format!("{page}/monitors");
        let path = format!("{list}/{}", monitor.id);
        let has_rounds = monitor.check.kind() != CheckKind::Heartbeat;
        let all = [
            (MonitorTab::Summary, "", "Summary"),
            (MonitorTab::Rounds, "/checks", "Rounds"),
            (MonitorTab::Outages, "/events", "Outages"),
            (MonitorTab::Alerts, "/alerts", "Alerts sent"),
            (MonitorTab::Settings, "/edit", "Settings"),
        ];
        let tabs = all.into_iter().filter(|(it, ..)| has_rounds || *it != MonitorTab::Rounds);
        Self {
            tabs: tabs.map(|(it, rest, text)| (format!("{path}{rest}"), text, it == tab)).collect(),
            maintenance: format!("{page}/incidents/new?kind=maintenance&monitor={}", monitor.id),
            clone: format!("{list}/new?from={}", monitor.id),
            list,
            name: monitor.name.clone(),
            group: monitor.group.clone(),
            lead: settings_words::lead(monitor, plan),
            can_check: has_rounds && !monitor.paused,
            is_paused: monitor.paused,
            form_token: form_token.to_owned(),
            once,
            acknowledge_once,
            path,
        }
    }
}
