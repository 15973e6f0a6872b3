//! Maintenance windows: whatever happens in them, and whenever they begin and end, the last announced state is the
//! real one.

use std::collections::BTreeMap;

use parallax_core::check::CheckKind;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::{AlertKind, EventKind, MonitorStatus, StatusChange};
use parallax_core::heartbeat::PingKind;
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::machine::{MachineOutput, MachineStep, MonitorMachine};
use parallax_core::time::{DAY, MINUTE, SECOND, Timestamp};
use parallax_core::vantage::{Mesh, Region, RegionSet};
use proptest::prelude::*;

/// Heartbeat settings: its status changes with a ping, so that many changes fit into one test.
fn heartbeat() -> EffectiveSettings {
    EffectiveSettings {
        monitor: MonitorId::from_u128(7),
        account: AccountId::from_u128(1),
        revision: 1,
        kind: CheckKind::Heartbeat,
        interval_ms: 0,
        pinned: None,
        uptime_regions: None,
        latency_regions: RegionSet::only(Region::Europe),
        slow_threshold_ms: None,
        slow_thresholds: BTreeMap::new(),
        heartbeat: Some((3_600 * SECOND, 300 * SECOND)),
        confirmation: ConfirmationPolicy::OtherNetwork,
        repeat_minutes: None,
        paused: false,
        acknowledged_outage: None,
    }
}

/// Heartbeat settings with still-down alerts every five minutes.
fn repeated() -> EffectiveSettings {
    EffectiveSettings { repeat_minutes: Some(5), ..heartbeat() }
}

/// One monitor, and the alerts it sent, by minute.
struct Tale {
    machine: MonitorMachine,
    alerts: Vec<(i64, AlertKind)>,
}

impl Tale {
    /// Creates a monitor that is up since minute 0.
    fn new() -> Self {
        let (mesh, mut out) = (Mesh::default(), Vec::new());
        let machine = MonitorMachine::new(repeated(), &mut MachineStep { now: minute(0), mesh: &mesh, out: &mut out });
        let mut tale = Self { machine, alerts: Vec::new() };
        tale.is(true, 0);
        tale
    }

    /// Runs an action in that minute, after every deadline before it, each handled `late` milliseconds after it was
    /// due.
    fn at(&mut self, when: i64, late: i64, act: impl FnOnce(&mut MonitorMachine, &mut MachineStep<'_>)) {
        while let Some(due) = self.machine.poll_timeout().filter(|due| *due < minute(when)) {
            self.turn(due + late, MonitorMachine::handle_timeout);
        }
        self.turn(minute(when), act);
    }

    fn turn(&mut self, now: Timestamp, act: impl FnOnce(&mut MonitorMachine, &mut MachineStep<'_>)) {
        let (mesh, mut out) = (Mesh::default(), Vec::new());
        act(&mut self.machine, &mut MachineStep { now, mesh: &mesh, out: &mut out });
        for output in out {
            let MachineOutput::Event(what) = output else { continue };
            let EventKind::StatusChanged(change) = *what else { continue };
            self.alerts.extend(change.alert.map(|alert| (now.since(minute(0)) / MINUTE, alert)));
        }
    }

    fn is(&mut self, up: bool, when: i64) {
        let beat = if up { PingKind::Succeeded } else { PingKind::Failed(None) };
        self.at(when, 0, |machine, step| machine.handle_ping(beat, None, step).map_or((), drop));
    }
}

fn minute(minute: i64) -> Timestamp {
    Timestamp::from_millis(20_000 * DAY + minute * MINUTE)
}

#[test]
fn all_sixteen_courses_through_a_window_announce_only_the_net_difference() {
    for ways in 0..16_u8 {
        let [before, inside, at_end, after] = [8, 4, 2, 1].map(|bit| ways & bit == 0);
        let mut tale = Tale::new();
        tale.is(before, 1);
        tale.at(8, 0, |machine, step| machine.handle_window(true, step));
        tale.is(inside, 9);
        tale.is(at_end, 21);
        tale.at(29, 0, |machine, step| machine.handle_window(false, step));
        tale.is(after, 37);
        tale.at(45, 0, MonitorMachine::handle_timeout);
        let mut expected = Vec::new();
        let mut is_up = true;
        for (up, when) in [(before, 1), (at_end, 29), (after, 37)] {
            let alert = if up { AlertKind::Recovered } else { AlertKind::WentDown };
            expected.extend((up != is_up).then_some((when, alert)));
            is_up = up;
        }
        // The outage before the window began in minute 1. The one at its end began in minute 21 if it was up inside;
        // otherwise it is the one from before, or began in minute 9. The one after it began in minute 37.
        let end_began = match (before, inside) {
            (_, true) => 21,
            (true, false) => 9,
            (false, false) => 1,
        };
        let mut still = |began: i64, from: i64, until: i64| {
            let due = (1..20).map(|n| began + 5 * n).filter(|due| (from..until).contains(due));
            expected.extend(due.map(|due| (due, AlertKind::StillDown)));
        };
        if !before {
            still(1, 1, 8);
        }
        if !at_end {
            still(end_began, 30, if after { 37 } else { 46 });
        }
        if at_end && !after {
            still(37, 37, 46);
        }
        expected.sort();
        assert_eq!(tale.alerts, expected, "before {before}, inside {inside}, end {at_end}, after {after}");
    }
}

#[test]
fn twelve_intervals_do_not_drift_if_timeouts_are_late() {
    for late in [0, 1, 999, 59_999] {
        let mut tale = Tale::new();
        tale.is(false, 1);
        tale.at(63, late, MonitorMachine::handle_timeout);
        let expected: Vec<(i64, AlertKind)> =
            [(1, AlertKind::WentDown)].into_iter().chain((1..=12).map(|n| (1 + 5 * n, AlertKind::StillDown))).collect();
        assert_eq!(tale.alerts, expected, "noticed {late} ms late");
        assert_eq!(tale.machine.poll_timeout(), Some(minute(66)));
    }
}

#[test]
fn missed_still_down_alerts_are_sent_once_and_a_clock_set_back_silences_none() {
    let mut tale = Tale::new();
    tale.is(false, 1);
    tale.turn(minute(32), MonitorMachine::handle_timeout);
    assert_eq!(tale.alerts, [(1, AlertKind::WentDown), (32, AlertKind::StillDown)]);
    tale.turn(minute(10), MonitorMachine::handle_timeout);
    assert_eq!(tale.machine.poll_timeout(), Some(minute(11)), "not only after minute 32");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_told_is_what_is_so(acts in prop::collection::vec((0..6_u8, 0..4_000_000_i64), 1..60)) {
        let (mesh, mut now) = (Mesh::default(), Timestamp::from_millis(20_000 * DAY));
        let mut out = Vec::new();
        let mut machine = MonitorMachine::new(repeated(), &mut MachineStep { now, mesh: &mesh, out: &mut out });
        let mut down_as_told = false;
        // Each action follows the deadlines before it: their alerts are sent before a window begins.
        let deadline = 6;
        for (kind, wait) in acts.into_iter().flat_map(|(kind, wait)| [(deadline, wait), (kind, 0)]) {
            now = now + wait;
            let mut step = MachineStep { now, mesh: &mesh, out: &mut out };
            match kind {
                0 | 1 => machine.handle_window(kind == 0, &mut step),
                2 => drop(machine.handle_ping(PingKind::Failed(None), None, &mut step)),
                3 => {
                    let written = postcard::to_allocvec(machine.state()).unwrap_or_default();
                    let state = postcard::from_bytes(&written).unwrap_or_default();
                    machine = MonitorMachine::restore(repeated(), state, now, &mut step);
                }
                6 => machine.handle_timeout(&mut step),
                _ => drop(machine.handle_ping(PingKind::Succeeded, None, &mut step)),
            }
            for output in out.drain(..) {
                let MachineOutput::Event(what) = output else { continue };
                let EventKind::StatusChanged(StatusChange { alert: Some(alert), .. }) = *what else { continue };
                prop_assert!(!machine.is_covered(), "no alerts while it is covered");
                let ends_or_goes_on = alert != AlertKind::WentDown;
                prop_assert_eq!(ends_or_goes_on, down_as_told, "alerts must alternate");
                down_as_told = alert != AlertKind::Recovered;
            }
            let is_down = machine.status() == MonitorStatus::Down;
            prop_assert!(machine.is_covered() || is_down == down_as_told, "the status must be announced");
        }
    }
}
