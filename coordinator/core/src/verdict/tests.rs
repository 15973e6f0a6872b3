//! Tests of runs of two failed rounds, the outcomes that reset them, and the scope of an outage.

use super::*;
use crate::time::MINUTE;
use crate::vantage::Region;

fn failed(second: i64, reason: ProbeReason) -> (RoundFacts, Timestamp) {
    let started = Timestamp::from_millis(second * SECOND);
    (RoundFacts { started, reason, was_pending: false, interval: MINUTE }, started + 200)
}

fn apply(region_state: &mut RegionState, second: i64, reason: ProbeReason, outcome: RoundOutcome) -> RegionTransition {
    let (round, now) = failed(second, reason);
    region_state.apply_outcome(outcome, round, now)
}

#[test]
fn two_failed_rounds_five_seconds_apart_are_down_and_four_for_a_second_round() {
    for (gap, reason, turn) in [
        (4, ProbeReason::Scheduled, RegionTransition::FirstFailure),
        (5, ProbeReason::Scheduled, RegionTransition::WentDown),
        (3, ProbeReason::Second, RegionTransition::FirstFailure),
        (4, ProbeReason::Second, RegionTransition::WentDown),
        (180, ProbeReason::Scheduled, RegionTransition::WentDown),
        (181, ProbeReason::Scheduled, RegionTransition::FirstFailure),
    ] {
        let mut region_state = RegionState::default();
        assert_eq!(
            apply(&mut region_state, 100, ProbeReason::Scheduled, RoundOutcome::Failed),
            RegionTransition::FirstFailure
        );
        assert_eq!(apply(&mut region_state, 100 + gap, reason, RoundOutcome::Failed), turn, "{gap} s, {reason:?}");
    }
}

#[test]
fn a_dispute_breaks_the_run_and_an_unconfirmed_round_does_not() {
    for (between, turn) in [
        (RoundOutcome::Disputed, RegionTransition::FirstFailure),
        (RoundOutcome::Passed, RegionTransition::FirstFailure),
        (RoundOutcome::Unconfirmed, RegionTransition::WentDown),
        (RoundOutcome::Inconclusive, RegionTransition::WentDown),
    ] {
        let mut region_state = RegionState::default();
        apply(&mut region_state, 100, ProbeReason::Scheduled, RoundOutcome::Failed);
        apply(&mut region_state, 130, ProbeReason::Scheduled, between);
        assert_eq!(apply(&mut region_state, 160, ProbeReason::Scheduled, RoundOutcome::Failed), turn, "{between:?}");
    }
}

#[test]
fn a_round_is_recorded_once_in_any_order() {
    let mut region_state = RegionState::default();
    for number in [100, 102, 101, 165, 103, 292, 611] {
        assert!(region_state.record_round(number), "{number}");
    }
    for number in [611, 292, 165, 103, 102, 101, 100] {
        assert!(!region_state.record_round(number), "{number}");
    }
    for number in [110, 164, 166, 291, 293, 610] {
        assert!(region_state.record_round(number), "{number}");
    }
    assert!(!region_state.record_round(99), "too old to tell");
}

#[test]
fn down_from_names_regions_only_while_another_has_seen_it_up() {
    use Region::{Africa, Asia, Europe, Oceania};

    let set = |regions: &[Region]| regions.iter().copied().collect::<RegionSet>();
    let says = |counted: RegionSet, suspecting: &[Region], witnesses: &[Region]| {
        judge(&RegionSummary {
            counted,
            down: set(&[Asia]),
            up: set(&[Europe, Africa]),
            suspected: set(suspecting),
            witnesses: set(witnesses),
        })
    };
    let down = |from: &[Region], whole| Verdict::Down { from: (!from.is_empty()).then(|| set(from)), whole };
    assert_eq!(says(RegionSet::ALL, &[], &[Europe]), down(&[Asia], false));
    // No region has been checked since it began: it is not known to be up anywhere.
    assert_eq!(says(RegionSet::ALL, &[], &[]), down(&[], false));
    assert_eq!(says(RegionSet::ALL, &[Europe], &[Europe, Africa]), down(&[Asia, Europe], false));
    assert_eq!(says(set(&[Asia, Europe]), &[Europe], &[Europe]), down(&[], true));
    assert_eq!(says(set(&[Asia, Europe]), &[], &[Africa]), down(&[], false), "no counted region");
    assert_eq!(says(set(&[Oceania]), &[], &[]), Verdict::Unknown);
    assert_eq!(says(set(&[Oceania, Europe]), &[], &[]), Verdict::Up);
}
