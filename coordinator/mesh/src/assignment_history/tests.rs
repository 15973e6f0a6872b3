//! Tests of a vantage's rounds: by share, by time, across disconnects and restarts of the coordinator.

use std::sync::Arc;

use parallax_core::assign::{ScheduleShare, share};
use parallax_core::check::{Check, DomainCheck, TcpCheck};
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::vantage::{NetworkNo, Vantage};

use super::*;

/// Wall clock time; the monotonic clock started ten days before.
const NOW: i64 = 1_790_000_000_000;
const MONOTONIC: i64 = 864_000_000;
const ME: (VantageNo, Region) = (VantageNo(1), Region::Asia);

fn monitor(seed: u128) -> ScheduledMonitor {
    ScheduledMonitor {
        monitor: MonitorId::from_u128(seed),
        account: AccountId::from_u128(1),
        slot: 1,
        revision: 1,
        check: Arc::new(Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 })),
        interval_ms: 10_000,
        pinned: None,
    }
}

/// Builds a mesh of connected vantages in Asia with those numbers, and one in Europe.
fn mesh(vantages: &[u16]) -> Arc<Mesh> {
    let vantage = |no, region| Vantage {
        no: VantageNo(no),
        region,
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
        unfit: false,
    };
    let asia = vantages.iter().map(|no| vantage(*no, Region::Asia));
    Arc::new(Mesh::new(asia.chain([vantage(9, Region::Europe)])))
}

fn inputs(vantages: &[u16]) -> ShareInputs {
    ShareInputs { mesh: mesh(vantages), ..ShareInputs::default() }
}

/// Builds a history whose first share has been in force for an hour.
fn history(vantages: &[u16]) -> AssignmentHistory {
    let mut history = AssignmentHistory::default();
    history.connect(false, MONOTONIC - 3_600_000);
    history.send(&inputs(vantages), 1, MONOTONIC - 3_600_000);
    history.confirm(1, MONOTONIC - 3_600_000);
    history
}

fn share_of(monitor: &ScheduledMonitor, vantages: &[u16], vantage: u16) -> ScheduleShare {
    share(monitor, &mesh(vantages), VantageNo(vantage)).unwrap()
}

/// Returns the vantage's newest own round that is due within `from_now` of now.
fn own_round(monitor: &ScheduledMonitor, vantages: &[u16], vantage: u16, from_now: i64) -> u64 {
    let share = share_of(monitor, vantages, vantage);
    let at = NOW + from_now - i64::from(share.offset_ms);
    let mut round = at.div_euclid(i64::from(share.interval_ms)).unsigned_abs();
    while round % u64::from(share.every) != u64::from(share.from) {
        round -= 1;
    }
    round
}

fn counts(history: &AssignmentHistory, monitor: &ScheduledMonitor, round: u64) -> bool {
    history.round_checker(ME, Timestamp::from_millis(NOW), MONOTONIC).is_assigned(monitor, round, round)
}

#[test]
fn own_rounds_count_and_rounds_of_another_vantage_do_not() {
    let both = history(&[1, 2]);
    for seed in 0..50 {
        let monitor = monitor(seed);
        for offset_ms in [0, -20_000, -600_000] {
            assert!(counts(&both, &monitor, own_round(&monitor, &[1, 2], 1, offset_ms)), "{seed}, {offset_ms}");
            assert!(!counts(&both, &monitor, own_round(&monitor, &[1, 2], 2, offset_ms)), "{seed}, {offset_ms}");
        }
    }
}

#[test]
fn no_round_counts_before_it_is_due() {
    let alone = history(&[1]);
    for seed in 0..50 {
        for interval_ms in [10_000, 60_000, 86_400_000] {
            let monitor = ScheduledMonitor { interval_ms, ..monitor(seed) };
            let round = own_round(&monitor, &[1], 1, 0);
            assert!(counts(&alone, &monitor, round), "{seed}");
            let soon = own_round(&monitor, &[1], 1, MAX_AHEAD);
            assert!(counts(&alone, &monitor, soon) && !counts(&alone, &monitor, soon + 1), "{seed}, {interval_ms}");
        }
    }
}

#[test]
fn a_check_that_one_vantage_runs_for_all_regions_counts_from_that_vantage_only() {
    let both = history(&[1, 2]);
    let check = Check::Domain(DomainCheck { host: "example.com".to_owned(), warn_days: 14 });
    let monitor = ScheduledMonitor { check: Arc::new(check), interval_ms: 600_000, ..monitor(3) };
    let every = share_of(&monitor, &[1, 2], 1).every;
    assert_eq!(every, 3);
    let now = own_round(&monitor, &[1, 2], 1, 0);
    assert!(counts(&both, &monitor, now) && !counts(&both, &monitor, now - 1));
    let pinned = ScheduledMonitor { pinned: Some(Region::Europe), ..monitor };
    assert!((0..3).all(|offset_ms| !counts(&both, &pinned, now - offset_ms)), "not of that region");
}

#[test]
fn a_share_counts_until_the_agent_has_confirmed_the_next() {
    let monitor = monitor(7);
    let mut history = history(&[1]);
    history.send(&inputs(&[1, 2]), 2, MONOTONIC - 50_000);
    let other_round = own_round(&monitor, &[1, 2], 2, -10_000);
    assert!(counts(&history, &monitor, other_round), "the agent may not have received the next share");
    history.confirm(2, MONOTONIC - 40_000);
    assert!(!counts(&history, &monitor, other_round));
    assert!(counts(&history, &monitor, own_round(&monitor, &[1, 2], 2, -60_000)), "catching up");
    assert!(counts(&history, &monitor, own_round(&monitor, &[1, 2], 1, -10_000)));
}

#[test]
fn an_unconfirmed_share_expires_while_the_agent_is_connected() {
    let monitor = monitor(7);
    let mut history = history(&[1]);
    history.send(&inputs(&[1, 2]), 2, MONOTONIC - 90_000);
    history.expire(MONOTONIC - 29_000);
    let other_round = own_round(&monitor, &[1, 2], 2, 0);
    assert!(!counts(&history, &monitor, other_round));
}

#[test]
fn resending_a_share_does_not_keep_an_earlier_one_in_force() {
    let monitor = monitor(7);
    let start = MONOTONIC - 600_000;
    let (other_round, own) = (own_round(&monitor, &[1, 2], 2, -60_000), own_round(&monitor, &[1, 2], 1, -60_000));
    // A snapshot or an edit every 50 s, without and with a new connection each time; nothing is ever confirmed.
    for reconnects in [false, true] {
        let mut history = AssignmentHistory::default();
        history.connect(true, start);
        for (step, revision) in (0..8).zip(1..) {
            let at = start + 50_000 * step;
            if reconnects {
                history.connect(true, at);
            }
            history.send(&inputs(&[1, 2]), revision, at);
            assert!(step > 0 || counts(&history, &monitor, other_round), "what it held counts at first");
            history.expire(at + 49_000);
        }
        assert!(!counts(&history, &monitor, other_round), "{reconnects}");
        assert!(counts(&history, &monitor, own));
    }
}

#[test]
fn endless_reconnects_do_not_keep_an_earlier_share_in_force() {
    let monitor = monitor(7);
    let mut history = AssignmentHistory::default();
    for (step, revision) in (0..70).zip(1..) {
        history.connect(true, MONOTONIC - 600_000 + step);
        history.send(&inputs(&[1, 2]), revision, MONOTONIC - 600_000 + step);
        history.expire(MONOTONIC - 600_000 + step);
    }
    assert!(!counts(&history, &monitor, own_round(&monitor, &[1, 2], 2, -60_000)));
}

#[test]
fn a_share_is_confirmed_by_its_first_revision() {
    let monitor = monitor(7);
    let mut history = history(&[1]);
    history.send(&inputs(&[1, 2]), 2, MONOTONIC - 50_000);
    // An edit was sent before the agent could respond.
    history.send(&inputs(&[1, 2]), 3, MONOTONIC - 49_000);
    history.confirm(2, MONOTONIC - 48_000);
    assert!(!counts(&history, &monitor, own_round(&monitor, &[1, 2], 2, -10_000)));
}

#[test]
fn look_ups_in_older_shares_are_bounded() {
    let mut history = history(&[1, 2]);
    for step in 0..400_i64 {
        let vantages: &[u16] = if step % 2 == 0 { &[1, 2, 3] } else { &[1, 2] };
        history.send(&inputs(vantages), 2, MONOTONIC - 60_000 + step * 100);
    }
    let monitor = ScheduledMonitor { interval_ms: 86_400_000, ..monitor(7) };
    let mut checker = history.round_checker(ME, Timestamp::from_millis(NOW), MONOTONIC);
    let round = NOW.unsigned_abs() / 86_400_000;
    for _ in 0..20 {
        // Its number fits no share.
        checker.is_assigned(&monitor, 1, round);
    }
    assert_eq!(checker.lookups, 0);
    assert!(!checker.is_assigned(&monitor, 1, round));
}

#[test]
fn rounds_of_a_disconnected_agent_count_by_the_share_it_held() {
    let monitor = monitor(7);
    let mut history = history(&[1]);
    // The new share was sent while the agent was disconnected; its old share counts until it confirms the next one
    // it gets.
    history.send(&inputs(&[1, 2]), 2, MONOTONIC - 1_000_000);
    history.connect(true, MONOTONIC - 1_000);
    history.send(&inputs(&[1, 2]), 3, MONOTONIC - 1_000);
    history.confirm(3, MONOTONIC);
    for offset_ms in [-500_000, -900_000] {
        assert!(counts(&history, &monitor, own_round(&monitor, &[1, 2], 2, offset_ms)));
    }
}

#[test]
fn after_a_coordinator_start_the_held_share_counts_until_the_new_one_is_confirmed() {
    let monitor = monitor(7);
    for holds_schedule in [true, false] {
        let mut history = AssignmentHistory::default();
        history.connect(holds_schedule, MONOTONIC - 40_000);
        history.send(&inputs(&[1, 2]), 1, MONOTONIC - 40_000);
        let earlier_round = own_round(&monitor, &[1, 2], 2, -60_000);
        assert!(counts(&history, &monitor, earlier_round), "nothing is known about that time");
        let recent_round = own_round(&monitor, &[1, 2], 2, -10_000);
        assert_eq!(counts(&history, &monitor, recent_round), holds_schedule);
        history.confirm(1, MONOTONIC - 39_000);
        assert!(!counts(&history, &monitor, recent_round) && counts(&history, &monitor, earlier_round));
    }
}

#[test]
fn a_round_is_matched_by_the_number_that_the_agent_used() {
    let (monitor, both) = (monitor(7), history(&[1, 2]));
    let round = own_round(&monitor, &[1, 2], 1, 0);
    let mut checker = both.round_checker(ME, Timestamp::from_millis(NOW), MONOTONIC);
    // The clock was set forward by one round meanwhile.
    assert!(checker.is_assigned(&monitor, round - 1 + 1, round) && !checker.is_assigned(&monitor, round - 1, round));
}

#[test]
fn beyond_the_maximum_of_shares_only_old_rounds_are_accepted_for_history() {
    let monitor = monitor(7);
    let mut history = history(&[1, 2]);
    for step in 0..2_000 {
        let vantages: &[u16] = if step % 2 == 0 { &[1, 2, 3] } else { &[1, 2] };
        history.send(&inputs(vantages), 2 + step, MONOTONIC - 60_000);
    }
    history.confirm(5_000, MONOTONIC - 60_000);
    assert_eq!(history.entries.len(), MAX_ENTRIES);
    assert!(!counts(&history, &monitor, own_round(&monitor, &[1, 2], 2, -90_000)));
    assert!(counts(&history, &monitor, own_round(&monitor, &[1, 2], 2, -600_000)), "history");
}
