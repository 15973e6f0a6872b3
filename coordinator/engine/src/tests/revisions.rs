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
fn a_round_of_the_domain_before_the_edit_is_kept_at_the_moment_it_began() {
    let (mesh, mut harvest, mut machines) = (mesh(), PendingCommit::default(), Machines::default());
    let watch = |monitor: &Monitor| EffectiveSettings {
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
    let (began, other) = (due("first.example", round), due("second.test", round));
    assert!(began.since(other).abs() > 2 * MINUTE, "the test needs two different due times");
    let now = began.max(other) + 3 * HOUR;
    let mut cx = Cx { now, mesh: &mesh, pending: &mut harvest };
    machines.upsert(&old, watch(&old), &mut cx);
    machines.upsert(&new, watch(&new), &mut cx);
    let seen = Observation {
        revision: 1,
        region: Region::Europe,
        vantage: VantageNo(0),
        network: NetworkNo(0),
        round: Some(round.unsigned_abs()),
        started: began + 20,
        ended: began + 900,
        outcome: passed(),
    };
    machines.observe(0, seen, &mut cx).unwrap();
    let kept: Vec<Timestamp> = harvest.readings.iter().map(|reading| reading.due).collect();
    assert_eq!(kept, [began + 20]);
}
