//! Rounds run on time, once, and never in bunches.

use super::*;
use parallax_protocol::check::{CheckSpec, PingCheck};
use proptest::prelude::*;

const START: i64 = 1_790_000_000_000;

fn assignment(n: u128, interval_ms: u32, offset_ms: u32) -> Assignment {
    Assignment {
        monitor: MonitorId(n),
        slot: u32::try_from(n).unwrap(),
        revision: 1,
        spec: CheckSpec::Ping(PingCheck { host: "example.com".into() }),
        interval_ms,
        offset_ms,
        every: 1,
        turn: 0,
    }
}

fn snapshot(revision: u64, put: Vec<Assignment>) -> ScheduleChange {
    ScheduleChange { book: 1, base: None, revision, put, drop: vec![], more: false }
}

fn delta(base: u64, put: Vec<Assignment>, drop: Vec<MonitorId>) -> ScheduleChange {
    ScheduleChange { book: 1, base: Some(base), revision: base + 1, put, drop, more: false }
}

fn schedule(put: Vec<Assignment>) -> Schedule {
    let mut schedule = Schedule::default();
    schedule.apply(snapshot(1, put), START).unwrap();
    schedule
}

/// Runs every round at once from `from_ms` to `to_ms` and notes when each began.
fn run(schedule: &mut Schedule, from_ms: i64, to_ms: i64) -> Vec<(i64, u64)> {
    let mut seen = Vec::new();
    let mut now = from_ms;
    loop {
        for due in schedule.take_due(now, usize::MAX) {
            seen.push((now, due.round));
            schedule.finished(due.assignment.monitor);
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
fn two_places_share_the_rounds_between_them() {
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
    let mut schedule =
        schedule((1..=50).map(|n| assignment(n, 60_000, u32::try_from(n).unwrap() * 1_000)).collect());
    run(&mut schedule, START, START + 60_000);
    let woken = START + 3_600_000;
    let at_once = schedule.take_due(woken, usize::MAX);
    assert!(at_once.len() <= 6, "{}", at_once.len());
    assert!(schedule.missed() >= 50 * 57);
    assert!(schedule.next_due_ms().unwrap() > woken);
}

#[test]
fn a_monitor_still_being_checked_is_not_checked_again() {
    let mut schedule = schedule(vec![assignment(1, 1_000, 0)]);
    let first = schedule.next_due_ms().unwrap();
    assert_eq!(schedule.take_due(first, 9).len(), 1);
    assert!(schedule.take_due(first + 1_000, 9).is_empty());
    schedule.finished(MonitorId(1));
    assert_eq!(schedule.take_due(first + 2_000, 9).len(), 1);
    assert_eq!(schedule.missed(), 1);
}

#[test]
fn a_delta_keeps_the_rest_and_a_wrong_base_changes_nothing() {
    let mut schedule = schedule(vec![assignment(1, 60_000, 0), assignment(2, 60_000, 0)]);
    assert_eq!(schedule.apply(delta(7, vec![], vec![MonitorId(1)]), START), Err(DoesNotFit));
    assert_eq!(schedule.len(), 2);
    let before = schedule.next_due_ms();
    let changed = Assignment { revision: 2, slot: 9, ..assignment(2, 60_000, 0) };
    schedule.apply(delta(1, vec![changed], vec![MonitorId(1)]), START + 1).unwrap();
    assert_eq!((schedule.len(), schedule.slot_of(MonitorId(2))), (1, Some(9)));
    assert_eq!(schedule.next_due_ms(), before);
    assert_eq!(schedule.held(), Some(HeldSchedule { book: 1, revision: 2 }));
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
fn the_limit_leaves_rounds_for_later() {
    let mut schedule = schedule((1..=5).map(|n| assignment(n, 60_000, 0)).collect());
    let at = schedule.next_due_ms().unwrap();
    assert_eq!(schedule.take_due(at, 2).len(), 2);
    assert_eq!(schedule.take_due(at + 10, 9).len(), 3);
}

proptest! {
    #[test]
    fn whatever_the_clock_does_rounds_only_go_up_and_never_overlap(
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
            let due = schedule.take_due(now, usize::MAX);
            prop_assert!(due.len() <= 1);
            if let Some(due) = due.first() {
                prop_assert!(!running);
                prop_assert!(a.is_own(due.round));
                prop_assert!(last.is_none_or(|last| due.round > last));
                prop_assert!(now - a.round_start_ms(due.round) <= Schedule::GRACE_MS);
                last = Some(due.round);
                running = true;
            }
            prop_assert!(schedule.next_due_ms().unwrap() > now);
            if finish {
                schedule.finished(MonitorId(1));
                running = false;
            }
        }
    }
}
