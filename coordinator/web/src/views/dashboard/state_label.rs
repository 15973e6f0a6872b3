//! State of a monitor in the words of the dashboard: icon, word, and since when or why.

use parallax_core::check::{Check, CheckKind};
use parallax_core::condition::Condition;
use parallax_core::machine::MachineView;
use parallax_core::monitor::Monitor;
use parallax_core::observation::Failure;
use parallax_core::time::Timestamp;
use parallax_core::vantage::RegionSet;
use parallax_i18n::page_messages::in_english;

use super::words;
use crate::views::format;

/// A monitor with what the dashboard knows of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MonitorStatusInput<'a> {
    /// The monitor.
    pub monitor: &'a Monitor,
    /// Its state.
    pub view: &'a MachineView,
    /// Its condition.
    pub condition: Condition,
    /// Planned end of the running window that covers it.
    pub maintenance_until: Option<Timestamp>,
    /// True if the plan excludes its type.
    pub paused_by_plan: bool,
    /// Now.
    pub now: Timestamp,
}

/// State of a monitor, ready to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateText {
    /// CSS class.
    pub class: &'static str,
    /// Icon.
    pub icon: &'static str,
    /// Word.
    pub text: String,
    /// Since when, or why; may be empty.
    pub why: String,
}

impl StateText {
    /// Describes the state of a monitor.
    pub(crate) fn of(input: MonitorStatusInput<'_>) -> Self {
        let MonitorStatusInput { monitor, view, now, .. } = input;
        let class = class_of(input.condition);
        let icon = if input.condition == Condition::Paused { "pause" } else { class };
        let length = |since: Option<Timestamp>| since.map(|at| words::duration(now.since(at))).unwrap_or_default();
        let (text, why) = match input.condition {
            Condition::Down => (down_text(monitor, view), length(view.outage_since.or(view.since))),
            Condition::Unconfirmed => match view.disputed_since {
                Some(since) if view.unconfirmed_from.is_empty() => ("Disputed".to_owned(), length(Some(since))),
                _ => ("Failing, not confirmed".to_owned(), from(view.unconfirmed_from)),
            },
            Condition::Slow => {
                (format!("Slow{}", view.slow_from.map(prefixed).unwrap_or_default()), length(view.since))
            }
            Condition::Outdated => outdated(view, now),
            Condition::NoData => no_data(monitor, view, now),
            Condition::Maintenance => {
                let until = input.maintenance_until.map(|at| format!("until {}", words::time(at, now).text));
                ("In maintenance".to_owned(), until.unwrap_or_default())
            }
            Condition::Paused if input.paused_by_plan => ("Paused".to_owned(), "not part of the plan".to_owned()),
            Condition::Paused => {
                let since = view.pauses.last().map(|pause| format!("since {}", words::time(pause.from, now).text));
                ("Paused".to_owned(), since.unwrap_or_default())
            }
            Condition::Up => ("Up".to_owned(), length(view.since)),
        };
        Self { class, icon, text, why }
    }

    /// Text and time in one: "Down from Asia for 14 min".
    pub(crate) fn sentence(&self) -> String {
        let lasts = matches!(self.class, "down" | "slow" | "up") && !self.why.is_empty();
        if lasts { format!("{} for {}", self.text, self.why) } else { self.text.clone() }
    }
}

/// CSS class of a condition.
pub(crate) const fn class_of(condition: Condition) -> &'static str {
    match condition {
        Condition::Down => "down",
        Condition::Unconfirmed => "part",
        Condition::Slow => "slow",
        Condition::Maintenance => "maint",
        Condition::Outdated | Condition::NoData | Condition::Paused => "none",
        Condition::Up => "up",
    }
}

fn down_text(monitor: &Monitor, view: &MachineView) -> String {
    match (&view.down_reason, view.down_from) {
        (Some(Failure::PingMissed), _) => "Ping missing".to_owned(),
        (Some(Failure::JobFailed(_)), _) => "Job failed".to_owned(),
        (_, Some(regions)) => format!("Down{}", prefixed(regions)),
        (_, None) if monitor.check.kind().is_regional() && view.seen_down.len() > 1 => "Down everywhere".to_owned(),
        (_, None) => "Down".to_owned(),
    }
}

fn outdated(view: &MachineView, now: Timestamp) -> (String, String) {
    let Some(last) = &view.last_check else { return ("No fresh result".to_owned(), String::new()) };
    let age = words::duration(now.since(last.at));
    match &last.error {
        Some(reason) if view.unjudged => (format::capitalize(&reason.to_string()), format!("for {age}")),
        _ => ("No fresh result".to_owned(), format!("for {age}")),
    }
}

fn no_data(monitor: &Monitor, view: &MachineView, now: Timestamp) -> (String, String) {
    if let Some(at) = view.last_ping_at {
        return ("Waiting for the next ping".to_owned(), format!("last {} ago", words::duration(now.since(at))));
    }
    let created = format!("created {} ago", words::duration(now.since(monitor.created_at)));
    let is_heartbeat = monitor.check.kind() == CheckKind::Heartbeat;
    (if is_heartbeat { "No ping yet" } else { "No data yet" }.to_owned(), created)
}

/// Names regions, after a space and "from".
fn prefixed(regions: RegionSet) -> String {
    format!(" {}", from(regions))
}

/// Names regions: "from Asia and Africa".
pub(super) fn from(regions: RegionSet) -> String {
    if regions.is_empty() {
        return String::new();
    }
    format!("from {}", in_english().locale().regions(regions))
}

/// Target of a check as the list shows it: the method for HTTP, and the period of a heartbeat.
pub(crate) fn target_of(monitor: &Monitor) -> String {
    match &monitor.check {
        Check::Http(check) => format!("{} {}", check.method.name(), check.url),
        Check::Heartbeat(check) => format!("Every {}", words::duration(i64::from(check.period_seconds) * 1000)),
        other => other.target(),
    }
}
