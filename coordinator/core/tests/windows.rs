//! Whatever happens in maintenance windows, and whenever they begin and end: what was told last is what is so.

use std::collections::BTreeMap;

use parallax_core::check::CheckKind;
use parallax_core::event::{AlertKind, Change, Status, What};
use parallax_core::heartbeat::Beat;
use parallax_core::id::MonitorId;
use parallax_core::machine::{Machine, Output, Step};
use parallax_core::place::{Mesh, Region, RegionSet};
use parallax_core::time::{DAY, SECOND, Timestamp};
use parallax_core::watch::{Confirmation, Watch};
use proptest::prelude::*;

/// A heartbeat: its status is a ping away, so that many changes fit into one tale.
fn heartbeat() -> Watch {
    Watch {
        monitor: MonitorId::from_u128(7),
        revision: 1,
        kind: CheckKind::Heartbeat,
        interval_ms: 0,
        pinned: None,
        uptime_regions: None,
        latency_regions: RegionSet::only(Region::Europe),
        slow_threshold_ms: None,
        slow_thresholds: BTreeMap::new(),
        beat: Some((3_600 * SECOND, 300 * SECOND)),
        confirmation: Confirmation::OtherNetwork,
        paused: false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_told_is_what_is_so(acts in prop::collection::vec((0..6_u8, 0..4_000_000_i64), 1..60)) {
        let (mesh, mut now) = (Mesh::default(), Timestamp::from_millis(20_000 * DAY));
        let mut out = Vec::new();
        let mut machine = Machine::new(heartbeat(), &mut Step { now, mesh: &mesh, out: &mut out });
        let mut down_as_told = false;
        // Each act after the deadlines that came before it: what they tell is told before a window begins.
        let deadline = 6;
        for (kind, wait) in acts.into_iter().flat_map(|(kind, wait)| [(deadline, wait), (kind, 0)]) {
            now = now + wait;
            let mut step = Step { now, mesh: &mesh, out: &mut out };
            match kind {
                0 | 1 => machine.handle_window(kind == 0, &mut step),
                2 => drop(machine.handle_beat(Beat::Failed(None), None, &mut step)),
                3 => {
                    let written = postcard::to_allocvec(machine.state()).unwrap_or_default();
                    let state = postcard::from_bytes(&written).unwrap_or_default();
                    machine = Machine::restore(heartbeat(), state, now, &mut step);
                }
                6 => machine.handle_timeout(&mut step),
                _ => drop(machine.handle_beat(Beat::Ran, None, &mut step)),
            }
            for output in out.drain(..) {
                let Output::Happened(what) = output else { continue };
                let What::Changed(Change { alert: Some(alert), .. }) = *what else { continue };
                prop_assert!(!machine.is_covered(), "nothing is told while it is covered");
                prop_assert_eq!(alert == AlertKind::Recovered, down_as_told, "told in turn");
                down_as_told = alert == AlertKind::WentDown;
            }
            let is_down = machine.status() == Status::Down;
            prop_assert!(machine.is_covered() || is_down == down_as_told, "what is so is told");
        }
    }
}
