//! Tests of a vantage's rounds: by share, by time, across disconnects and restarts of the coordinator.

use std::sync::Arc;

use parallax_core::assign::{ScheduleShare, share};
use parallax_core::check::{Check, DomainCheck, TcpCheck};
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::vantage::{NetworkNo, Vantage};

use super::*;

/// Wall clock time; the monotonic clock started ten days before.
const NOW: i64 = 1_790_000_000_000;
const STEADY: i64 = 864_000_000;
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
fn mesh(places: &[u16]) -> Arc<Mesh> {
    let place = |no, region| Vantage {
        no: VantageNo(no),
        region,
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
        unfit: false,
    };
    let asia = places.iter().map(|no| place(*no, Region::Asia));
    Arc::new(Mesh::new(asia.chain([place(9, Region::Europe)])))
}

fn basis(places: &[u16]) -> PlanInputs {
    PlanInputs { mesh: mesh(places), ..PlanInputs::default() }
}

/// Builds a history whose first share has been in force for an hour.
fn history(places: &[u16]) -> AssignmentHistory {
    let mut history = AssignmentHistory::default();
    history.connect(false, STEADY - 3_600_000);
    history.send(&basis(places), 1, STEADY - 3_600_000);
    history.confirm(1, STEADY - 3_600_000);
    history
}

fn share_of(monitor: &ScheduledMonitor, places: &[u16], place: u16) -> ScheduleShare {
    share(monitor, &mesh(places), VantageNo(place)).unwrap()
}

/// Returns the vantage's newest own round that is due within `from_now` of now.
fn own_round(monitor: &ScheduledMonitor, places: &[u16], place: u16, from_now: i64) -> u64 {
    let share = share_of(monitor, places, place);
    let at = NOW + from_now - i64::from(share.offset_ms);
    let mut round = at.div_euclid(i64::from(share.interval_ms)).unsigned_abs();
    while round % u64::from(share.every) != u64::from(share.from) {
        round -= 1;
    }
    round
}

fn has(history: &AssignmentHistory, monitor: &ScheduledMonitor, round: u64) -> bool {
    history.round_checker(ME, Timestamp::from_millis(NOW), STEADY).is_assigned(monitor, round, round)
}

#[test]
fn own_rounds_count_and_rounds_of_another_place_do_not() {
    let both = history(&[1, 2]);
    for seed in 0..50 {
        let monitor = monitor(seed);
        for back in [0, -20_000, -600_000] {
            assert!(has(&both, &monitor, own_round(&monitor, &[1, 2], 1, back)), "{seed}, {back}");
            assert!(!has(&both, &monitor, own_round(&monitor, &[1, 2], 2, back)), "{seed}, {back}");
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
            assert!(has(&alone, &monitor, round), "{seed}");
            let soon = own_round(&monitor, &[1], 1, MAX_AHEAD);
            assert!(has(&alone, &monitor, soon) && !has(&alone, &monitor, soon + 1), "{seed}, {interval_ms}");
        }
    }
}

#[test]
fn a_check_of_one_place_for_all_regions_counts_from_that_place_alone() {
    let both = history(&[1, 2]);
    let check = Check::Domain(DomainCheck { host: "example.com".to_owned(), warn_days: 14 });
    let monitor = ScheduledMonitor { check: Arc::new(check), interval_ms: 600_000, ..monitor(3) };
    let places = share_of(&monitor, &[1, 2], 1).every;
    assert_eq!(places, 3);
    let now = own_round(&monitor, &[1, 2], 1, 0);
    assert!(has(&both, &monitor, now) && !has(&both, &monitor, now - 1));
    let pinned = ScheduledMonitor { pinned: Some(Region::Europe), ..monitor };
    assert!((0..3).all(|back| !has(&both, &pinned, now - back)), "not of that region");
}

#[test]
fn a_share_counts_until_the_agent_has_confirmed_the_next() {
    let monitor = monitor(7);
    let mut history = history(&[1]);
    history.send(&basis(&[1, 2]), 2, STEADY - 50_000);
    let of_the_other = own_round(&monitor, &[1, 2], 2, -10_000);
    assert!(has(&history, &monitor, of_the_other), "the agent may not have received the next share");
    history.confirm(2, STEADY - 40_000);
    assert!(!has(&history, &monitor, of_the_other));
    assert!(has(&history, &monitor, own_round(&monitor, &[1, 2], 2, -60_000)), "catching up");
    assert!(has(&history, &monitor, own_round(&monitor, &[1, 2], 1, -10_000)));
}

#[test]
fn who_confirms_nothing_while_connected_keeps_no_share_for_long() {
    let monitor = monitor(7);
    let mut history = history(&[1]);
    history.send(&basis(&[1, 2]), 2, STEADY - 90_000);
    history.expire(STEADY - 29_000);
    let of_the_other = own_round(&monitor, &[1, 2], 2, 0);
    assert!(!has(&history, &monitor, of_the_other));
}

#[test]
fn a_share_that_is_sent_again_and_again_keeps_no_earlier_one() {
    let monitor = monitor(7);
    let begun = STEADY - 600_000;
    let (of_the_other, own) = (own_round(&monitor, &[1, 2], 2, -60_000), own_round(&monitor, &[1, 2], 1, -60_000));
    // A snapshot or an edit every 50 s, without and with a new connection each time; nothing is ever confirmed.
    for comes_back in [false, true] {
        let mut history = AssignmentHistory::default();
        history.connect(true, begun);
        for (turn, revision) in (0..8).zip(1..) {
            let at = begun + 50_000 * turn;
            if comes_back {
                history.connect(true, at);
            }
            history.send(&basis(&[1, 2]), revision, at);
            assert!(turn > 0 || has(&history, &monitor, of_the_other), "what it held counts at first");
            history.expire(at + 49_000);
        }
        assert!(!has(&history, &monitor, of_the_other), "{comes_back}");
        assert!(has(&history, &monitor, own));
    }
}

#[test]
fn connections_without_end_keep_no_earlier_share() {
    let monitor = monitor(7);
    let mut history = AssignmentHistory::default();
    for (turn, revision) in (0..70).zip(1..) {
        history.connect(true, STEADY - 600_000 + turn);
        history.send(&basis(&[1, 2]), revision, STEADY - 600_000 + turn);
        history.expire(STEADY - 600_000 + turn);
    }
    assert!(!has(&history, &monitor, own_round(&monitor, &[1, 2], 2, -60_000)));
}

#[test]
fn a_share_is_confirmed_by_the_first_revision_of_it() {
    let monitor = monitor(7);
    let mut history = history(&[1]);
    history.send(&basis(&[1, 2]), 2, STEADY - 50_000);
    // An edit was sent before the agent could respond.
    history.send(&basis(&[1, 2]), 3, STEADY - 49_000);
    history.confirm(2, STEADY - 48_000);
    assert!(!has(&history, &monitor, own_round(&monitor, &[1, 2], 2, -10_000)));
}

#[test]
fn rounds_that_are_looked_up_in_older_shares_are_bounded() {
    let mut history = history(&[1, 2]);
    for turn in 0..400_i64 {
        let places: &[u16] = if turn % 2 == 0 { &[1, 2, 3] } else { &[1, 2] };
        history.send(&basis(places), 2, STEADY - 60_000 + turn * 100);
    }
    let monitor = ScheduledMonitor { interval_ms: 86_400_000, ..monitor(7) };
    let mut rounds = history.round_checker(ME, Timestamp::from_millis(NOW), STEADY);
    let round = NOW.unsigned_abs() / 86_400_000;
    for _ in 0..20 {
        // Its number fits no share.
        rounds.is_assigned(&monitor, 1, round);
    }
    assert_eq!(rounds.lookups, 0);
    assert!(!rounds.is_assigned(&monitor, 1, round));
}

#[test]
fn an_agent_that_was_cut_off_tells_the_rounds_of_the_share_it_held() {
    let monitor = monitor(7);
    let mut history = history(&[1]);
    // The new share was sent while the agent was disconnected; its old share counts until it confirms the next one
    // it gets.
    history.send(&basis(&[1, 2]), 2, STEADY - 1_000_000);
    history.connect(true, STEADY - 1_000);
    history.send(&basis(&[1, 2]), 3, STEADY - 1_000);
    history.confirm(3, STEADY);
    for back in [-500_000, -900_000] {
        assert!(has(&history, &monitor, own_round(&monitor, &[1, 2], 2, back)));
    }
}

#[test]
fn after_a_start_of_the_coordinator_what_agents_held_counts_until_they_have_the_new() {
    let monitor = monitor(7);
    for holds in [true, false] {
        let mut history = AssignmentHistory::default();
        history.connect(holds, STEADY - 40_000);
        history.send(&basis(&[1, 2]), 1, STEADY - 40_000);
        let before = own_round(&monitor, &[1, 2], 2, -60_000);
        assert!(has(&history, &monitor, before), "nothing is known about that time");
        let since = own_round(&monitor, &[1, 2], 2, -10_000);
        assert_eq!(has(&history, &monitor, since), holds);
        history.confirm(1, STEADY - 39_000);
        assert!(!has(&history, &monitor, since) && has(&history, &monitor, before));
    }
}

#[test]
fn a_round_is_the_places_own_by_the_number_that_it_went_by() {
    let (monitor, both) = (monitor(7), history(&[1, 2]));
    let round = own_round(&monitor, &[1, 2], 1, 0);
    let mut rounds = both.round_checker(ME, Timestamp::from_millis(NOW), STEADY);
    // The clock was set forward by one round meanwhile.
    assert!(rounds.is_assigned(&monitor, round - 1 + 1, round) && !rounds.is_assigned(&monitor, round - 1, round));
}

#[test]
fn shares_without_end_leave_room_and_only_history_is_taken_of_their_time() {
    let monitor = monitor(7);
    let mut history = history(&[1, 2]);
    for turn in 0..2_000 {
        let places: &[u16] = if turn % 2 == 0 { &[1, 2, 3] } else { &[1, 2] };
        history.send(&basis(places), 2 + turn, STEADY - 60_000);
    }
    history.confirm(5_000, STEADY - 60_000);
    assert_eq!(history.entries.len(), MAX_ENTRIES);
    assert!(!has(&history, &monitor, own_round(&monitor, &[1, 2], 2, -90_000)));
    assert!(has(&history, &monitor, own_round(&monitor, &[1, 2], 2, -600_000)), "history");
}
