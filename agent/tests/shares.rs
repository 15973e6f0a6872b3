//! Simulation of minutes of an agent: 5,000 black holes of other accounts, and the delay of one account's
//! checks.
#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use parallax_agent::schedule::AgentSchedule;
use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::check::{WireCheckSpec, WireTcpCheck};
use parallax_protocol::fair_slots::{FairSlotPermit, FairSlots};
use parallax_protocol::id::WireMonitorId;
use std::collections::{BTreeMap, VecDeque};

/// A whole minute.
const START: i64 = 1_790_000_040_000;
const MINUTE: i64 = 60_000;
/// Interval in which groups of due checks start, in ms.
const GROUP: i64 = 25;
const SLOTS: usize = 512;
/// Monitors of the measured account; its targets respond in 100 ms.
const WATCHED: u32 = 300;
const ANSWER: i64 = 100;
/// Monitors whose targets never respond: each check holds its slot for 10 s.
const HANGING: u32 = 5_000;
const TIME_OUT: i64 = 10_000;
const VICTIM: u32 = 1;

/// Behaviour and owner of the black holes: how often they hang, and whose they are.
#[derive(Debug, Clone, Copy)]
struct BlackHoles {
    count: u32,
    accounts: u32,
    hangs_once_in: u64,
    /// True if they belong to the measured account.
    are_own: bool,
}

fn assignment(n: u32, account: u32) -> Assignment {
    Assignment {
        monitor: WireMonitorId(u128::from(n)),
        slot: n,
        revision: 1,
        spec: WireCheckSpec::Tcp(WireTcpCheck { host: "example.com".into(), port: 443 }),
        interval_ms: 60_000,
        // Knuth's multiplicative hash spreads them as in production.
        offset_ms: n.wrapping_mul(2_654_435_761) % 60_000,
        every: 1,
        turn: 0,
        account,
    }
}

/// The queue for slots: fair as in the runner, or first come, first served.
enum Queue {
    Fair(FairSlots<WireMonitorId>),
    FirstCome(VecDeque<WireMonitorId>, usize),
}

/// Returns the sorted delays in ms of the measured monitors' checks over five minutes, after the warm-up; a
/// skipped round counts as the whole grace period.
fn lateness(holes: BlackHoles, warm: i64, mut queue: Queue) -> Vec<i64> {
    let watched = (0..WATCHED).map(|n| assignment(n, VICTIM));
    let owner = |n| if holes.are_own { VICTIM } else { VICTIM + 1 + n % holes.accounts };
    let hanging = (0..holes.count).map(|n| assignment(WATCHED + n, owner(n)));
    let put: Vec<Assignment> = watched.chain(hanging).collect();
    let mut schedule = AgentSchedule::default();
    let change = ScheduleChange { slot_epoch: 1, base: None, revision: 1, put, drop: vec![], has_more: false };
    schedule.apply(change, START).unwrap();
    let mut ends: BTreeMap<i64, Vec<(WireMonitorId, i64, Option<FairSlotPermit>)>> = BTreeMap::new();
    let mut late = Vec::new();
    let mut now = START;
    while now < START + (warm + 5) * MINUTE {
        let later = ends.split_off(&(now + 1));
        for (monitor, took, permit) in std::mem::replace(&mut ends, later).into_values().flatten() {
            schedule.finish(monitor, took);
            match (&mut queue, permit) {
                (Queue::Fair(slots), Some(permit)) => slots.release(permit),
                (Queue::FirstCome(_, running), _) => *running -= 1,
                (Queue::Fair(_), None) => {}
            }
        }
        schedule.take_due(now, |due| match &mut queue {
            Queue::Fair(slots) => slots.push(due.account, due.pool, due.monitor),
            Queue::FirstCome(waiting, _) => waiting.push_back(due.monitor),
        });
        loop {
            let next = match &mut queue {
                Queue::Fair(slots) => slots.start_next().map(|(monitor, permit)| (monitor, Some(permit))),
                Queue::FirstCome(waiting, running) if *running < SLOTS => {
                    waiting.pop_front().map(|monitor| (monitor, None)).inspect(|_| *running += 1)
                }
                Queue::FirstCome(..) => None,
            };
            let Some((monitor, permit)) = next else { break };
            let Some(due) = schedule.begin(monitor, now) else {
                match (&mut queue, permit) {
                    (Queue::Fair(slots), Some(permit)) => slots.release(permit),
                    (Queue::FirstCome(_, running), _) => *running -= 1,
                    (Queue::Fair(_), None) => {}
                }
                continue;
            };
            let is_watched = due.assignment.slot < WATCHED;
            if is_watched && now >= START + warm * MINUTE {
                late.push(now - due.assignment.round_start_ms(due.round));
            }
            let hangs = !is_watched && due.round % holes.hangs_once_in == 0;
            let took = if hangs { TIME_OUT } else { ANSWER };
            ends.entry(now + took).or_default().push((monitor, took, permit));
        }
        now += GROUP;
    }
    let expected = usize::try_from(WATCHED).unwrap() * 5;
    late.resize(late.len().max(expected - 10), AgentSchedule::GRACE_MS);
    late.sort_unstable();
    late
}

fn p99(late: &[i64]) -> i64 {
    late[late.len() * 99 / 100]
}

#[test]
fn checks_are_at_most_twice_as_late_beside_five_thousand_black_holes_of_others() {
    let fair = || Queue::Fair(FairSlots::new(SLOTS));
    let none = BlackHoles { count: 0, accounts: 1, hangs_once_in: 1, are_own: false };
    let alone = p99(&lateness(none, 1, fair()));
    assert!(alone <= GROUP);
    for accounts in [1, 3, 10, 100] {
        // Black holes, and targets that respond just often enough to count as fast again.
        for hangs_once_in in [1, 2, 5, 6] {
            let holes = BlackHoles { count: HANGING, accounts, hangs_once_in, are_own: false };
            let beside = p99(&lateness(holes, 1, fair()));
            assert!(beside <= 2 * alone.max(GROUP), "{holes:?}: {beside} ms, alone {alone} ms");
        }
    }
}

#[test]
fn a_plain_queue_would_starve_them() {
    let holes = BlackHoles { count: HANGING, accounts: 3, hangs_once_in: 1, are_own: false };
    let late = lateness(holes, 1, Queue::FirstCome(VecDeque::new(), 0));
    assert!(p99(&late) >= 4_000, "the black holes hold all slots: {} ms", p99(&late));
}

#[test]
fn unresponsive_targets_hardly_delay_the_accounts_other_checks() {
    // If there are more than slots, it takes some minutes until all are known to be slow.
    for (count, warm) in [(2_000, 1), (HANGING, 5)] {
        let holes = BlackHoles { count, accounts: 1, hangs_once_in: 1, are_own: true };
        let late = lateness(holes, warm, Queue::Fair(FairSlots::new(SLOTS)));
        assert!(p99(&late) <= 100, "{count}: {} ms", p99(&late));
    }
}
