//! Tests that rounds run on time, once, and never in bursts.

use super::*;
use parallax_protocol::check::{WireCheckSpec, WirePingCheck};
use proptest::prelude::*;

const START: i64 = 1_790_000_000_000;

fn assignment(n: u128, interval_ms: u32, offset_ms: u32) -> Assignment {
    Assignment {
        monitor: WireMonitorId(n),
        slot: u32::try_from(n).unwrap(),
        revision: 1,
        spec: WireCheckSpec::Ping(WirePingCheck { host: "example.com".into() }),
        interval_ms,
        offset_ms,
        every: 1,
        turn: 0,
        account: 7,
    }
}

/// Assigns a slot to at most `limit` of the due rounds.
fn begin_due(schedule: &mut AgentSchedule, now_ms: i64, limit: usize) -> Vec<DueRound> {
    let mut ready = Vec::new();
    schedule.take_due(now_ms, |one| ready.push(one.monitor));
    ready.into_iter().take(limit).filter_map(|monitor| schedule.begin(monitor, now_ms)).collect()
}

fn pool(schedule: &mut AgentSchedule, now_ms: i64) -> Vec<SlotPool> {
    let mut pools = Vec::new();
    schedule.take_due(now_ms, |one| pools.push(one.pool));
    pools
}

fn snapshot(revision: u64, put: Vec<Assignment>) -> ScheduleChange {
    ScheduleChange { slot_epoch: 1, base: None, revision, put, drop: vec![], has_more: false }
}

fn delta(base: u64, put: Vec<Assignment>, drop: Vec<WireMonitorId>) -> ScheduleChange {
    ScheduleChange { slot_epoch: 1, base: Some(base), revision: base + 1, put, drop, has_more: false }
}

fn schedule(put: Vec<Assignment>) -> AgentSchedule {
    let mut schedule = AgentSchedule::default();
    schedule.apply(snapshot(1, put), START).unwrap();
    schedule
}

/// Runs every round at once from `from_ms` to `to_ms` and returns when each began.
fn run(schedule: &mut AgentSchedule, from_ms: i64, to_ms: i64) -> Vec<(i64, u64)> {
    let mut seen = Vec::new();
    let mut now = from_ms;
    loop {
        for due in begin_due(schedule, now, usize::MAX) {
            seen.push((now, due.round));
            schedule.finish(due.assignment.monitor, 20);
        }
        match schedule.next_due_ms() {
            Some(next) if next <= to_ms => now = next.max(now),
            _ => return seen,
        }
    }
}

#[test]
fn every_round_runs_once_at_its_time() {
    let mut schedule = schedule(vec![assignment(1, 60_000, 7_000)]);
    let seen = run(&mut schedule, START, START + 600_000);
    assert_eq!(seen.len(), 10);
    for pair in seen.windows(2) {
        assert_eq!((pair[1].0 - pair[0].0, pair[1].1 - pair[0].1), (60_000, 1));
    }
}

#[test]
fn two_agents_share_the_rounds() {
    let half = |turn| Assignment { every: 2, turn, ..assignment(1, 30_000, 0) };
    let mut rounds: Vec<u64> = [half(0), half(1)]
        .into_iter()
        .flat_map(|a| run(&mut schedule(vec![a]), START, START + 300_000))
        .map(|(_, round)| round)
        .collect();
    rounds.sort_unstable();
    assert!(rounds.windows(2).all(|pair| pair[1] == pair[0] + 1), "{rounds:?}");
    assert!(rounds.len() >= 10);
}

#[test]
fn rounds_missed_in_sleep_are_skipped_not_run_at_once() {
    let mut schedule = schedule((1..=50).map(|n| assignment(n, 60_000, u32::try_from(n).unwrap() * 1_000)).collect());
    run(&mut schedule, START, START + 60_000);
    let woken = START + 3_600_000;
    let at_once = begin_due(&mut schedule, woken, usize::MAX);
    assert!(at_once.len() <= 6, "{}", at_once.len());
    assert!(schedule.missed() >= 50 * 57);
    assert!(schedule.next_due_ms().unwrap() > woken);
}

#[test]
fn a_monitor_still_being_checked_is_not_checked_again() {
    let mut schedule = schedule(vec![assignment(1, 1_000, 0)]);
    let first = schedule.next_due_ms().unwrap();
    assert_eq!(begin_due(&mut schedule, first, 9).len(), 1);
    assert!(begin_due(&mut schedule, first + 1_000, 9).is_empty());
    schedule.finish(WireMonitorId(1), 1_500);
    assert_eq!(begin_due(&mut schedule, first + 2_000, 9).len(), 1);
    assert_eq!(schedule.missed(), 1);
}

#[test]
fn a_delta_keeps_the_rest_and_a_wrong_base_changes_nothing() {
    let mut schedule = schedule(vec![assignment(1, 60_000, 0), assignment(2, 60_000, 0)]);
    assert_eq!(schedule.apply(delta(7, vec![], vec![WireMonitorId(1)]), START), Err(BaseMismatch));
    assert_eq!(schedule.len(), 2);
    let before = schedule.next_due_ms();
    let changed = Assignment { revision: 2, slot: 9, ..assignment(2, 60_000, 0) };
    schedule.apply(delta(1, vec![changed], vec![WireMonitorId(1)]), START + 1).unwrap();
    assert_eq!((schedule.len(), schedule.slot_of(WireMonitorId(2))), (1, Some(9)));
    assert_eq!(schedule.next_due_ms(), before);
    assert_eq!(schedule.version(), Some(ScheduleVersion { slot_epoch: 1, revision: 2 }));
}

#[test]
fn a_snapshot_replaces_everything_and_reads_back() {
    let mut old = schedule(vec![assignment(1, 60_000, 0)]);
    old.apply(snapshot(5, vec![assignment(3, 60_000, 0)]), START).unwrap();
    let kept = old.snapshot().unwrap();
    assert_eq!(kept, snapshot(5, vec![assignment(3, 60_000, 0)]));
}

#[test]
fn a_step_of_the_coordinators_clock_neither_bunches_nor_stops_rounds() {
    for step in [-86_400_000, -3_600_000, 3_600_000, 86_400_000] {
        let mut schedule = schedule(vec![assignment(1, 60_000, 0)]);
        let now = START + 120_000 + step;
        schedule.rebase(now);
        let next = schedule.next_due_ms().unwrap();
        assert!(next >= now && next <= now + 60_000);
        assert_eq!(run(&mut schedule, now, now + 300_000).len(), 5);
    }
}

#[test]
fn a_round_waits_for_a_slot_and_is_missed_after_its_deadline() {
    let mut schedule = schedule(vec![assignment(1, 60_000, 0)]);
    let (monitor, at) = (WireMonitorId(1), schedule.next_due_ms().unwrap());
    let round = at.unsigned_abs() / 60_000;
    assert!(begin_due(&mut schedule, at, 0).is_empty());
    assert!(schedule.is_waiting(monitor));
    assert_eq!(schedule.begin(monitor, at + 5_000).map(|due| due.round), Some(round));
    assert!(schedule.begin(monitor, at + 5_000).is_none(), "it has already begun");
    schedule.finish(monitor, 20);
    begin_due(&mut schedule, at + 60_000, 0);
    assert!(schedule.begin(monitor, at + 65_001).is_none());
    assert_eq!((schedule.is_waiting(monitor), schedule.missed()), (false, 1));
}

#[test]
fn a_waiting_monitor_takes_its_newer_round_and_waits_once() {
    let mut schedule = schedule(vec![assignment(1, 8_000, 0)]);
    let (monitor, at) = (WireMonitorId(1), schedule.next_due_ms().unwrap());
    assert_eq!(pool(&mut schedule, at).len(), 1);
    assert_eq!(pool(&mut schedule, at + 8_000).len(), 0);
    let round = at.unsigned_abs() / 8_000 + 1;
    assert_eq!(schedule.begin(monitor, at + 8_100).map(|due| due.round), Some(round));
    assert_eq!(schedule.missed(), 1);
}

#[test]
fn a_slow_target_stays_slow_until_four_timely_responses() {
    let mut schedule = schedule(vec![assignment(1, 60_000, 0)]);
    let mut round = |took_ms| {
        let at = schedule.next_due_ms().unwrap();
        let pools = pool(&mut schedule, at);
        schedule.begin(WireMonitorId(1), at).unwrap();
        schedule.finish(WireMonitorId(1), took_ms);
        pools
    };
    let seen: Vec<_> = [20, 1_999, 2_000, 20, 20, 10_000, 20, 20, 20, 20, 20].map(&mut round).concat();
    let (fast, slow) = (SlotPool::Fast, SlotPool::Slow);
    assert_eq!(seen, [fast, fast, fast, slow, slow, slow, slow, slow, slow, slow, fast]);
}

#[test]
fn waiting_rounds_are_withdrawn_with_their_monitor_and_survive_an_edit() {
    let mut schedule = schedule(vec![assignment(1, 60_000, 0), assignment(2, 60_000, 0)]);
    let at = schedule.next_due_ms().unwrap();
    begin_due(&mut schedule, at, 0);
    let edited = Assignment { revision: 2, ..assignment(2, 60_000, 0) };
    schedule.apply(delta(1, vec![edited], vec![WireMonitorId(1)]), at).unwrap();
    assert!(schedule.take_withdrawn() && !schedule.take_withdrawn());
    assert!(!schedule.is_waiting(WireMonitorId(1)) && schedule.is_waiting(WireMonitorId(2)));
    assert_eq!(schedule.begin(WireMonitorId(2), at).unwrap().assignment.revision, 2);
    schedule.finish(WireMonitorId(2), 20);
    begin_due(&mut schedule, at + 60_000, 0);
    schedule.rebase(at + 61_000);
    assert!(schedule.take_withdrawn() && !schedule.is_waiting(WireMonitorId(2)));
    let next = schedule.next_due_ms().unwrap();
    begin_due(&mut schedule, next, 0);
    let moved = Assignment { revision: 3, offset_ms: 9, ..assignment(2, 60_000, 0) };
    schedule.apply(delta(2, vec![moved], vec![]), at).unwrap();
    assert!(schedule.take_withdrawn() && !schedule.is_waiting(WireMonitorId(2)));
}

#[test]
fn a_schedule_names_accounts_once_a_snapshot_does_and_until_a_change_does_not() {
    let nameless = |n| Assignment { account: 0, ..assignment(n, 60_000, 0) };
    let mut schedule = schedule(vec![nameless(1), assignment(2, 60_000, 0)]);
    assert!(!schedule.has_accounts());
    schedule.apply(delta(1, vec![assignment(1, 60_000, 0)], vec![]), START).unwrap();
    assert!(!schedule.has_accounts(), "others may still have none");
    schedule.apply(snapshot(9, vec![assignment(1, 60_000, 0)]), START).unwrap();
    assert!(schedule.has_accounts());
    schedule.apply(delta(9, vec![nameless(2)], vec![]), START).unwrap();
    assert!(!schedule.has_accounts());
}

proptest! {
    #[test]
    fn rounds_only_increase_and_never_overlap(
        steps in prop::collection::vec((0i64..400_000, any::<bool>()), 1..60),
        interval in 1_000u32..120_000,
        every in 1u32..5,
    ) {
        let a = Assignment { every, turn: every - 1, offset_ms: interval / 3, ..assignment(1, interval, 0) };
        let mut schedule = schedule(vec![a.clone()]);
        let mut now = START;
        let mut last = None;
        let mut running = false;
        for (step, finish) in steps {
            now += step;
            let due = begin_due(&mut schedule, now, usize::MAX);
            prop_assert!(due.len() <= 1);
            if let Some(due) = due.first() {
                prop_assert!(!running);
                prop_assert!(a.is_own(due.round));
                prop_assert!(last.is_none_or(|last| due.round > last));
                prop_assert!(now - a.round_start_ms(due.round) <= AgentSchedule::GRACE_MS);
                last = Some(due.round);
                running = true;
            }
            prop_assert!(schedule.next_due_ms().unwrap() > now);
            if finish {
                schedule.finish(WireMonitorId(1), 20);
                running = false;
            }
        }
    }
}
