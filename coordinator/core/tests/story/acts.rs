//! Acts of the property tests, with the chance of each.

use parallax_core::observation::{Failure, InconclusiveReason, Measurements, ProbeOutcome};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Region, RegionSet};
use proptest::prelude::*;

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Wait(i64),
    Round { vantage: usize, outcome: ProbeOutcome, age: i64 },
    Again,
    Answer { which: usize, outcome: Option<ProbeOutcome> },
    Connect(usize, bool),
    Quarantine(usize, bool),
    Revoke(usize),
    Restart(i64),
    Threshold(Option<u32>),
    Uptime(Option<RegionSet>),
    Retarget,
    Pause(bool),
}

fn outcomes() -> impl Strategy<Value = ProbeOutcome> {
    let passed = |latency| ProbeOutcome::Passed(Measurements { latency_ms: Some(latency), ..Measurements::default() });
    prop_oneof![
        5 => Just(ProbeOutcome::Failed(Measurements::default(), Failure::Refused)),
        2 => prop_oneof![Just(40_u32), Just(900)].prop_map(passed),
        1 => (any::<bool>(), 0..3_i64).prop_map(|(degraded, expires)| ProbeOutcome::Passed(Measurements {
            degraded,
            expires_at: Some(Timestamp::from_millis(expires)),
            ..Measurements::default()
        })),
        2 => Just(ProbeOutcome::Pending),
        1 => Just(ProbeOutcome::Inconclusive(InconclusiveReason::NoRoute)),
    ]
}

pub(crate) fn acts() -> impl Strategy<Value = Act> {
    let set = prop::collection::vec(0..3_usize, 1..3)
        .prop_map(|regions| regions.into_iter().map(|at| Region::ALL[at]).collect::<RegionSet>());
    prop_oneof![
        8 => prop_oneof![0..6000_i64, Just(5000), 0..90_000_i64].prop_map(Act::Wait),
        1 => (100_000..700_000_i64).prop_map(Act::Wait),
        12 => (0..6_usize, outcomes(), prop_oneof![6 => Just(0_i64), 1 => -100_000..200_000_i64])
            .prop_map(|(vantage, outcome, age)| Act::Round { vantage, outcome, age }),
        1 => Just(Act::Again),
        20 => (0..4_usize, prop::option::weighted(0.9, outcomes()))
            .prop_map(|(which, outcome)| Act::Answer { which, outcome }),
        2 => (0..6_usize, prop::bool::weighted(0.7)).prop_map(|(vantage, on)| Act::Connect(vantage, on)),
        1 => (0..6_usize, any::<bool>()).prop_map(|(vantage, on)| Act::Quarantine(vantage, on)),
        1 => (0..40_usize).prop_map(Act::Revoke),
        2 => prop_oneof![Just(0), 0..30_000_i64].prop_map(Act::Restart),
        1 => prop::option::of(prop_oneof![Just(30_u32), Just(500), Just(1000)]).prop_map(Act::Threshold),
        1 => prop::option::of(set).prop_map(Act::Uptime),
        1 => Just(Act::Retarget),
        1 => prop::bool::weighted(0.3).prop_map(Act::Pause),
    ]
}
