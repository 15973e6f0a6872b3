//! Condition of a monitor as its owner sees it, and what else needs an owner's attention.

use crate::check::CheckKind;
use crate::destination::Destination;
use crate::event::MonitorStatus;
use crate::incident::{Incident, IncidentKind};
use crate::machine::MachineView;
use crate::monitor::Monitor;
use crate::page_view::is_probed;
use crate::time::{DAY, HOUR, Timestamp};

/// Age in milliseconds at which a heartbeat that was never pinged needs attention.
pub const UNPINGED_AFTER: i64 = HOUR;
/// Age in milliseconds of an open incident's last change after which it needs an update.
pub const UPDATE_DUE_AFTER: i64 = HOUR;
/// Time in milliseconds before a certificate's end at which it needs attention.
pub const CERTIFICATE_ENDS_WITHIN: i64 = 14 * DAY;
/// Time in milliseconds before a domain's end at which it needs attention.
pub const DOMAIN_ENDS_WITHIN: i64 = 30 * DAY;

/// Condition of a monitor, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// Down, from all or some regions.
    Down,
    /// Its checks fail, or contradict each other, and no second network confirms that.
    Unconfirmed,
    /// Slow.
    Slow,
    /// There were results, and there are no fresh ones.
    Outdated,
    /// There was no result yet, or a heartbeat waits for its next ping.
    NoData,
    /// In a running maintenance window.
    Maintenance,
    /// Paused by its owner or by the plan.
    Paused,
    /// Up.
    Up,
}

impl Condition {
    /// All conditions, the worst first.
    pub const ALL: [Self; 8] = [
        Self::Down,
        Self::Unconfirmed,
        Self::Slow,
        Self::Outdated,
        Self::NoData,
        Self::Maintenance,
        Self::Paused,
        Self::Up,
    ];

    /// Returns the condition of a monitor. `is_covered` if a running window covers it, `is_stale` if no agent is there
    /// to check its page ([`is_stale`](crate::page_view::is_stale)).
    pub fn of(monitor: &Monitor, view: &MachineView, is_covered: bool, is_stale: bool) -> Self {
        let has_result = view.last_check.is_some() || view.last_ping_at.is_some();
        let is_heartbeat = monitor.check.kind() == CheckKind::Heartbeat;
        match view.status {
            _ if monitor.paused => Self::Paused,
            _ if is_covered => Self::Maintenance,
            MonitorStatus::Down => Self::Down,
            MonitorStatus::Unknown if !is_stale && !view.unconfirmed_from.is_empty() => Self::Unconfirmed,
            // A heartbeat that was resumed waits for its next ping, as a new one waits for its first.
            MonitorStatus::Unknown if !has_result || is_heartbeat => Self::NoData,
            MonitorStatus::Unknown => Self::Outdated,
            MonitorStatus::Up | MonitorStatus::Slow if is_stale && is_probed(monitor) => Self::Outdated,
            MonitorStatus::Up if !view.unconfirmed_from.is_empty() || view.disputed_since.is_some() => {
                Self::Unconfirmed
            }
            MonitorStatus::Up => Self::Up,
            MonitorStatus::Slow => Self::Slow,
        }
    }

    /// Returns true for conditions on which someone should act; a new monitor's first check is awaited.
    pub const fn needs_attention(self) -> bool {
        matches!(self, Self::Down | Self::Unconfirmed | Self::Slow | Self::Outdated)
    }
}

/// Returns true for a heartbeat whose job has not requested its ping address for an hour since its creation.
pub fn is_never_pinged(monitor: &Monitor, view: &MachineView, now: Timestamp) -> bool {
    let is_waiting = monitor.check.kind() == CheckKind::Heartbeat && view.last_ping_at.is_none() && !monitor.paused;
    is_waiting && view.status == MonitorStatus::Unknown && now.since(monitor.created_at) >= UNPINGED_AFTER
}

/// Returns the end of a certificate or domain if it is near; one that is down for that reason is reported as down.
pub fn ends_soon(monitor: &Monitor, view: &MachineView, now: Timestamp) -> Option<Timestamp> {
    let within = match monitor.check.kind() {
        CheckKind::Certificate => CERTIFICATE_ENDS_WITHIN,
        CheckKind::Domain => DOMAIN_ENDS_WITHIN,
        _ => return None,
    };
    let is_reported = monitor.paused || view.status == MonitorStatus::Down;
    view.expires_at.filter(|at| !is_reported && at.since(now) < within)
}

/// Returns true for a destination whose deliveries fail, or that the service switched off for another reason than
/// that its mailbox has yet to confirm.
pub fn is_failing(destination: &Destination) -> bool {
    let health = &destination.health;
    let is_off = health.disabled.is_some() && destination.confirmation_sent_at().is_none();
    destination.enabled && (is_off || health.failing_since.is_some())
}

/// Returns true for an open incident about which readers were told nothing for an hour. Automatic incidents follow
/// their monitors.
pub fn needs_update(incident: &Incident, now: Timestamp) -> bool {
    let is_manual = incident.kind == IncidentKind::Incident && incident.is_open() && !incident.automatic;
    is_manual && now.since(incident.last_change()) >= UPDATE_DUE_AFTER
}

/// Returns true if at least 80 % of a limit are used.
pub const fn is_nearly_full(used: usize, limit: usize) -> bool {
    limit > 0 && used.saturating_mul(5) >= limit.saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::edit::CheckEdit;
    use crate::id::{MonitorId, PageId};
    use crate::incident::edit::tests::{at, incident, window};
    use crate::machine::LastCheck;
    use crate::monitor::NewMonitor;
    use crate::monitor::edit::MonitorEdit;
    use crate::observation::Measurements;
    use crate::patch::PatchField;
    use crate::vantage::Region;

    fn monitor() -> Monitor {
        let place = NewMonitor {
            id: MonitorId::from_u128(1),
            page: PageId::from_u128(1),
            slot: 1,
            position: 0,
            now: Timestamp::from_millis(0),
        };
        let url = PatchField::Value("https://shop.example".to_owned());
        let edit = MonitorEdit { check: CheckEdit { url, ..CheckEdit::default() }, ..MonitorEdit::default() };
        Monitor::new(place, edit.validate(None, "token").unwrap())
    }

    #[test]
    fn a_condition_is_the_worst_that_is_true_now() {
        let plain = monitor();
        let paused = Monitor { paused: true, ..plain.clone() };
        let checked = LastCheck { at: at(1), ok: true, facts: Measurements::default(), error: None };
        let view = |status| MachineView { status, last_check: Some(checked.clone()), ..MachineView::default() };
        let unconfirmed =
            MachineView { unconfirmed_from: [Region::Africa].into_iter().collect(), ..view(MonitorStatus::Up) };
        let disputed = MachineView { disputed_since: Some(at(1)), ..view(MonitorStatus::Up) };
        let from_the_start = MachineView { status: MonitorStatus::Unknown, ..unconfirmed.clone() };
        let none = MachineView::default();
        let (up, down, slow) = (view(MonitorStatus::Up), view(MonitorStatus::Down), view(MonitorStatus::Slow));
        let unknown = view(MonitorStatus::Unknown);
        for (name, monitor, view, covered, stale, expected) in [
            ("up", &plain, &up, false, false, Condition::Up),
            ("slow", &plain, &slow, false, false, Condition::Slow),
            ("down", &plain, &down, false, true, Condition::Down),
            ("not confirmed", &plain, &unconfirmed, false, false, Condition::Unconfirmed),
            ("never confirmed", &plain, &from_the_start, false, false, Condition::Unconfirmed),
            ("never confirmed, and no agent left", &plain, &from_the_start, false, true, Condition::Outdated),
            ("disputed", &plain, &disputed, false, false, Condition::Unconfirmed),
            ("no agent", &plain, &up, false, true, Condition::Outdated),
            ("no fresh result", &plain, &unknown, false, false, Condition::Outdated),
            ("new", &plain, &none, false, false, Condition::NoData),
            ("maintenance", &plain, &down, true, false, Condition::Maintenance),
            ("paused", &paused, &down, true, true, Condition::Paused),
        ] {
            assert_eq!(Condition::of(monitor, view, covered, stale), expected, "{name}");
        }
        assert!(Condition::ALL.is_sorted());
    }

    #[test]
    fn an_incident_needs_an_update_an_hour_after_the_last() {
        let open = Incident { automatic: false, updates: Vec::new(), ..incident() };
        let since = open.last_change();
        assert!(!needs_update(&open, since + UPDATE_DUE_AFTER - 1));
        assert!(needs_update(&open, since + UPDATE_DUE_AFTER));
        assert!(!needs_update(&Incident { automatic: true, ..open }, since + DAY));
        assert!(!needs_update(&window(1, 10), at(1) + DAY));
    }

    #[test]
    fn a_limit_is_nearly_full_from_four_fifths_on() {
        for (used, limit, expected) in [(39, 50, false), (40, 50, true), (50, 50, true), (8, 10, true), (0, 0, false)] {
            assert_eq!(is_nearly_full(used, limit), expected, "{used} of {limit}");
        }
    }
}
