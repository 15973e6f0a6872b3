//! Tests of rounds from another schedule than the current one: they go to history at the time they ran.

use parallax_core::check::DomainCheck;
use parallax_core::time::{HOUR, MINUTE};
use parallax_core::vantage::RegionSet;

use super::*;

/// Six hours: rounds are numbered since the epoch.
const INTERVAL: i64 = 6 * HOUR;

fn domain(revision: u32, host: &str) -> Monitor {
    Monitor { revision, check: Check::Domain(DomainCheck { host: host.to_owned(), warn_days: 30 }), ..monitor() }
}

#[test]
fn a_round_of_the_domain_before_the_edit_is_stored_at_its_start_time() {
    let (mesh, mut pending, mut machines) = (mesh(), PendingCommit::default(), Machines::default());
    let settings_of = |monitor: &Monitor| EffectiveSettings {
        monitor: MONITOR,
        account: AccountId::from_u128(1),
        revision: monitor.revision,
        kind: monitor.check.kind(),
        interval_ms: u32::try_from(INTERVAL).unwrap(),
        pinned: None,
        uptime_regions: None,
        latency_regions: RegionSet::only(Region::Europe),
        slow_threshold_ms: None,
        slow_thresholds: BTreeMap::new(),
        heartbeat: None,
        confirmation: ConfirmationPolicy::default(),
        repeat_minutes: None,
        paused: false,
        acknowledged_outage: None,
    };
    let due = |host: &str, round: i64| {
        let check = domain(1, host).check;
        let spread = parallax_core::assign::phase_hash(MONITOR, &check);
        let interval = u32::try_from(INTERVAL).unwrap();
        let offset = parallax_core::assign::offset_ms(spread, interval, RegionSet::NONE, Region::Europe);
        Timestamp::from_millis(round * INTERVAL + i64::from(offset))
    };
    let round = START.as_millis() / INTERVAL;
    let (old, new) = (domain(1, "first.example"), domain(2, "second.test"));
    let (first_due, second_due) = (due("first.example", round), due("second.test", round));
    assert!(first_due.since(second_due).abs() > 2 * MINUTE, "the test needs two different due times");
    let now = first_due.max(second_due) + 3 * HOUR;
    let mut cx = Cx { now, mesh: &mesh, pending: &mut pending };
    machines.upsert(&old, settings_of(&old), &mut cx);
    machines.upsert(&new, settings_of(&new), &mut cx);
    let observation = Observation {
        revision: 1,
        region: Region::Europe,
        vantage: VantageNo(0),
        network: NetworkNo(0),
        round: Some(round.unsigned_abs()),
        started: first_due + 20,
        ended: first_due + 900,
        outcome: passed(),
    };
    machines.observe(0, observation, &mut cx).unwrap();
    let due_times: Vec<Timestamp> = pending.readings.iter().map(|reading| reading.due).collect();
    assert_eq!(due_times, [first_due + 20]);
}
