//! Tables and properties of quarantine: entry, stay and release.

use proptest::prelude::*;

use super::*;
use crate::event::ProbeReason;
use crate::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use crate::time::SECOND;
use crate::vantage::{NetworkNo, Region, Vantage};

const PLACE: VantageNo = VantageNo(1);
const PORTAL: VantageNo = VantageNo(2);

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * SECOND)
}

/// Vantages 1, 2 and so on, on these networks.
fn mesh(networks: &[u16]) -> Mesh {
    Mesh::new((1..).zip(networks).map(|(no, network)| Vantage {
        no: VantageNo(no),
        region: Region::Europe,
        network: NetworkNo(*network),
        connected: true,
        quarantined: false,
        unfit: false,
    }))
}

/// Target of an account, with the number of accounts that have monitors.
fn target(host: u64, account: u128, accounts: usize) -> CheckTarget {
    CheckTarget { host, account: AccountId::from_u128(account), accounts }
}

/// Round with outcomes of these vantages in order, each with whether it passed.
fn round(outcomes: &[(u16, bool)]) -> RoundReport {
    let mut outcomes = outcomes.iter().map(|(no, passed)| {
        let failed = ProbeOutcome::Failed(Measurements::default(), Failure::Refused);
        (VantageNo(*no), if *passed { ProbeOutcome::Passed(Measurements::default()) } else { failed })
    });
    let (first, outcome) = outcomes.next().unwrap();
    let (mut second, mut third) = (outcomes.next(), outcomes.next());
    let passed = |outcome: &Option<(VantageNo, ProbeOutcome)>| matches!(outcome, Some((_, ProbeOutcome::Passed(_))));
    let round_outcome = match (passed(&second), third.is_some()) {
        (false, _) => RoundOutcome::Failed,
        (true, true) if !passed(&third) => {
            std::mem::swap(&mut second, &mut third);
            RoundOutcome::Failed
        }
        (true, _) => RoundOutcome::Disputed,
    };
    let (region, started) = (Region::Europe, at(0));
    RoundReport {
        region,
        reason: ProbeReason::Scheduled,
        round: None,
        started,
        round_outcome,
        first_vantage: first,
        first_outcome: outcome,
        second,
        third: third.map(Box::new),
    }
}

/// Applies rounds on targets one second apart, and lists when a vantage was quarantined, spared or released.
fn story(quarantine: &mut Quarantine, mesh: &Mesh, rounds: &[(&[(u16, bool)], u64)]) -> Vec<(i64, u16, &'static str)> {
    let mut changes = Vec::new();
    for (second, (outcomes, host)) in (0..).zip(rounds) {
        for (vantage, turn) in quarantine.apply_round(&round(outcomes), target(*host, 1, 1), mesh, at(second)) {
            let turn = match turn {
                QuarantineChange::Quarantined(_) => "held",
                QuarantineChange::Spared(_) => "spared",
                QuarantineChange::Released => "released",
            };
            changes.push((second, vantage.0, turn));
        }
    }
    changes
}

const DISPUTED: &[(u16, bool)] = &[(1, false), (2, true), (3, true)];
const CONFIRMED: &[(u16, bool)] = &[(1, false), (2, false)];
const OUTVOTED: &[(u16, bool)] = &[(1, false), (2, true), (3, false)];
const BY_ONE: &[(u16, bool)] = &[(1, false), (2, true)];

fn quarantine_of_one() -> Quarantine {
    let mut quarantine = Quarantine::default();
    let rounds = [1, 2, 3, 1, 2].map(|target| (DISPUTED, target));
    assert_eq!(story(&mut quarantine, &mesh(&[1, 2, 3]), &rounds), [(4, 1, "held")]);
    quarantine
}

#[test]
fn five_outcomes_mostly_disputed_over_three_targets_quarantine_a_vantage() {
    let quarantine = quarantine_of_one();
    assert!(quarantine.is_quarantined(PLACE));
    let by = vec![(VantageNo(2), 5), (VantageNo(3), 5)];
    let found = Contradictions { outcomes: 5, contradicted: 5, by };
    assert_eq!(quarantine.suspected().quarantined, [(PLACE, found.clone())].into());
    let text = found.describe(|vantage| format!("place {}", vantage.0));
    assert_eq!(text, "5 of 5 results contradicted, 5 by place 2, 5 by place 3");
}

#[test]
fn fewer_failures_or_targets_or_disputes_do_not() {
    type Rounds = [(&'static [(u16, bool)], u64)];
    let cases: [&Rounds; 4] = [
        &[1, 2, 3, 4].map(|target| (DISPUTED, target)),
        &[1, 2, 1, 2, 1, 2].map(|target| (DISPUTED, target)),
        &[(CONFIRMED, 1), (DISPUTED, 2), (CONFIRMED, 3), (DISPUTED, 1), (CONFIRMED, 2), (DISPUTED, 3)],
        // Two sites are disputed; two more that are down for everyone do not add to them.
        &[(CONFIRMED, 3), (CONFIRMED, 4), (DISPUTED, 1), (DISPUTED, 2), (DISPUTED, 1), (DISPUTED, 2)],
    ];
    for rounds in cases {
        assert_eq!(story(&mut Quarantine::default(), &mesh(&[1, 2, 3]), rounds), [], "{rounds:?}");
    }
}

#[test]
fn the_odd_one_of_three_is_contradicted_in_any_order() {
    let rounds = [1, 2, 3, 1, 2].map(|target| (OUTVOTED, target));
    let mut quarantine = Quarantine::default();
    assert_eq!(story(&mut quarantine, &mesh(&[1, 2, 3]), &rounds), [(4, PORTAL.0, "held")]);
}

#[test]
fn a_single_disputing_vantage_quarantines_none_if_others_could_dispute() {
    let rounds = [1, 2, 3, 4, 5, 6].map(|target| (BY_ONE, target));
    for (networks, changes) in [
        // If there is only one other network, its outcome suffices; if that has more vantages, one of them does not.
        (&[1, 2, 3][..], vec![]),
        (&[1, 2, 2], vec![]),
        (&[1, 2, 1], vec![(4, 1, "held")]),
    ] {
        assert_eq!(story(&mut Quarantine::default(), &mesh(networks), &rounds), changes, "{networks:?}");
    }
}

#[test]
fn at_most_a_third_of_the_vantages_is_quarantined() {
    // Two vantages that fail every check.
    let rounds = [1, 2, 3, 1, 2].map(|target| (&[(4, false), (2, true), (3, true)][..], target));
    let mut quarantine = quarantine_of_one();
    let four = mesh(&[1, 2, 3, 4]);
    assert_eq!(story(&mut quarantine, &four, &rounds), [(4, 4, "spared")]);
    assert_eq!(quarantine.suspected().spared[&VantageNo(4)].contradicted, 5);
    assert_eq!(quarantine.poll_timeout(), Some(at(304)));
    assert_eq!(quarantine.handle_timeout(at(304)), []);
    assert!(quarantine.suspected().spared.is_empty());
    // With six vantages a second one may be quarantined.
    assert_eq!(story(&mut quarantine_of_one(), &mesh(&[1, 2, 3, 4, 5, 6]), &rounds), [(4, 4, "held")]);
    // With two, none may.
    let rounds = [1, 2, 3, 1, 2].map(|target| (BY_ONE, target));
    assert_eq!(story(&mut Quarantine::default(), &mesh(&[1, 2]), &rounds), [(4, 1, "spared")]);
}

#[test]
fn words_over_a_minute_old_do_not_count() {
    let (mut quarantine, mesh) = (Quarantine::default(), mesh(&[1, 2, 3]));
    story(&mut quarantine, &mesh, &[1, 2, 3, 4].map(|target| (DISPUTED, target)));
    assert_eq!(quarantine.apply_round(&round(DISPUTED), target(5, 1, 1), &mesh, at(62)), []);
}

fn agree(quarantine: &mut Quarantine, from: i64, times: usize) -> Vec<(i64, QuarantineChange)> {
    let changes = (from..).take(times).filter_map(|second| {
        quarantine.apply_shadow_round(PLACE, true, target(1, 1, 1), at(second)).map(|turn| (second, turn))
    });
    changes.collect()
}

#[test]
fn ten_agreeing_outcomes_end_a_quarantine() {
    let mut quarantine = quarantine_of_one();
    assert_eq!(agree(&mut quarantine, 10, 10), [(19, QuarantineChange::Released)]);
    assert!(!quarantine.is_quarantined(PLACE));
}

#[test]
fn five_calm_minutes_and_three_agreeing_outcomes_end_a_quarantine() {
    let mut quarantine = quarantine_of_one();
    agree(&mut quarantine, 10, 2);
    assert_eq!(quarantine.poll_timeout(), None, "two outcomes are too few, whatever the time");
    agree(&mut quarantine, 20, 1);
    assert_eq!(quarantine.poll_timeout(), Some(at(304)));
    assert_eq!(quarantine.handle_timeout(at(303)), []);
    assert_eq!(quarantine.handle_timeout(at(304)), [PLACE]);
    assert!(!quarantine.is_quarantined(PLACE));
}

#[test]
fn a_dispute_in_quarantine_restarts_the_waiting_time() {
    let mut quarantine = quarantine_of_one();
    agree(&mut quarantine, 10, 9);
    quarantine.apply_shadow_round(PLACE, false, target(1, 1, 1), at(30));
    assert_eq!(agree(&mut quarantine, 40, 9), []);
    assert_eq!(quarantine.poll_timeout(), Some(at(330)));
}

#[test]
fn shadow_rounds_from_before_the_quarantine_or_of_long_ago_do_not_count() {
    let mut quarantine = quarantine_of_one();
    assert!(!quarantine.counts_shadow_round(PLACE, at(3), at(10)));
    assert!(quarantine.counts_shadow_round(PLACE, at(5), at(125)));
    assert!(!quarantine.counts_shadow_round(PLACE, at(5), at(126)));
    quarantine.apply_shadow_round(PLACE, false, target(1, 1, 1), at(30));
    assert!(!quarantine.counts_shadow_round(PLACE, at(29), at(31)), "from before it was last contradicted");
    assert!(!Quarantine::default().counts_shadow_round(PLACE, at(5), at(6)), "not in quarantine");
}

#[test]
fn a_vantage_that_is_no_longer_enrolled_is_removed() {
    let mut quarantine = quarantine_of_one();
    quarantine.retain_enrolled(&mesh(&[1, 2, 3]));
    assert!(quarantine.is_quarantined(PLACE));
    quarantine.retain_enrolled(&Mesh::default());
    assert!(!quarantine.is_quarantined(PLACE));
}

/// Returns true if vantage 1 is quarantined after rounds on hosts of accounts, one second apart, in which it alone
/// saw failures.
fn is_held(rounds: &[(u64, u128)], accounts: usize) -> bool {
    let (mut quarantine, mesh) = (Quarantine::default(), mesh(&[1, 2, 3]));
    for (second, (host, account)) in (0..).zip(rounds) {
        quarantine.apply_round(&round(DISPUTED), target(*host, *account, accounts), &mesh, at(second));
    }
    quarantine.is_quarantined(PLACE)
}

#[test]
fn one_account_alone_quarantines_no_vantage() {
    let alone = [1, 2, 3, 4, 5, 6, 7, 8].map(|host| (host, 1));
    for accounts in [2, 3, 100] {
        assert!(!is_held(&alone, accounts), "of {accounts}");
    }
    assert!(is_held(&alone, 1), "there is no other account");
    // One other account whose site blocks that agent helps no more than two do, and does not help where there are
    // only two.
    let with_one = |times| [&alone[..], &[(9, 2); 8][..times]].concat();
    assert!(!is_held(&with_one(2), 2), "at most half may come from one account");
    assert!(is_held(&with_one(3), 2), "six of eleven count");
    assert!(!is_held(&with_one(8), 3), "three accounts must have had it contradicted");
    assert!(is_held(&[&with_one(1)[..], &[(10, 3), (10, 3)]].concat(), 3));
}

#[test]
fn one_account_alone_prolongs_no_quarantine() {
    let customer = |quarantine: &mut Quarantine, account, second| {
        quarantine.apply_shadow_round(PLACE, false, target(1, account, 3), at(second))
    };
    let mut quarantine = quarantine_of_one();
    for second in 10..19 {
        assert_eq!(customer(&mut quarantine, 7, second), None);
        assert_eq!(agree(&mut quarantine, second, 1), []);
    }
    customer(&mut quarantine, 7, 19);
    assert_eq!(agree(&mut quarantine, 19, 1), [(19, QuarantineChange::Released)]);
    // Three of three accounts within five minutes suffice.
    let mut quarantine = quarantine_of_one();
    agree(&mut quarantine, 10, 9);
    for (account, second) in [(7, 30), (8, 31), (7, 32), (9, 33)] {
        assert_eq!(customer(&mut quarantine, account, second), None);
    }
    assert_eq!(agree(&mut quarantine, 40, 9), []);
    // Disputes of two of them are five minutes old by then, so the vantage counts as undisputed.
    let mut quarantine = quarantine_of_one();
    agree(&mut quarantine, 10, 9);
    for (account, second) in [(7, 30), (8, 31)] {
        assert_eq!(customer(&mut quarantine, account, second), None);
    }
    assert_eq!(customer(&mut quarantine, 9, 331), Some(QuarantineChange::Released));
}

#[test]
fn a_disconnected_quarantined_vantage_still_counts() {
    let (mut quarantine, whole) = (quarantine_of_one(), mesh(&[1, 2, 3, 4, 5]));
    let away = |vantage: &Vantage| Vantage { connected: vantage.no != PLACE, ..*vantage };
    let without = Mesh::new(whole.vantages().iter().map(away));
    let rounds = [1, 2, 3, 1, 2].map(|target| (&[(4, false), (2, true), (3, true)][..], target));
    assert_eq!(story(&mut quarantine, &without, &rounds), [(4, 4, "spared")]);
    assert_eq!(quarantine.suspected().quarantined.len(), 1, "of five, with the one that comes back");
}

proptest! {
    #[test]
    fn a_vantage_is_quarantined_only_below_a_third_of_the_connected(
        acts in prop::collection::vec((0..9_u16, 0..9_u16, any::<bool>()), 1..400),
    ) {
        let mut places = mesh(&[1, 2, 3, 1, 2, 3, 1, 2, 3]).vantages().to_vec();
        let mut quarantine = Quarantine::default();
        for (second, (first, other, toggles)) in (0..).zip(acts) {
            let found = places.iter_mut().find(|vantage| vantage.no == VantageNo(first + 1));
            if let Some(vantage) = found.filter(|_| toggles && other < 3) {
                vantage.connected = !vantage.connected;
            }
            let laid = places.iter().map(|it| Vantage { quarantined: quarantine.is_quarantined(it.no), ..*it });
            let mesh = Mesh::new(laid.collect::<Vec<_>>());
            let outcomes = [(first % 4 + 1, false), ((first + 1) % 9 + 1, true), ((first + 2) % 9 + 1, true)];
            let turns = quarantine.apply_round(&round(&outcomes), target(other.into(), 1, 1), &mesh, at(second));
            let connected = mesh.vantages().iter().filter(|vantage| vantage.connected).count();
            let quarantined = quarantine.suspected().quarantined.len();
            let is_put_in = turns.iter().any(|(_, turn)| matches!(turn, QuarantineChange::Quarantined(_)));
            let is_within = quarantined * VANTAGES_PER_QUARANTINED <= connected;
            prop_assert!(!is_put_in || is_within, "{quarantined} of {connected}");
        }
    }
}
