//! Simulated days of one monitor with far more faults than in production, each from a seed: the invariants hold
//! throughout.
//!
//! Every test run simulates a few days. To run more, give a range of seeds: `PARALLAX_DAYS=0..10000 cargo test -p
//! parallax-core --test days`; for a single day: `PARALLAX_DAYS=17..18`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a failure may panic")]

#[path = "days/invariants.rs"]
mod invariants;
#[path = "days/plan.rs"]
mod plan;
#[path = "days/seeded_random.rs"]
mod seeded_random;
#[path = "days/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic;

use world::SimulatedDay;

/// Number of days in every run.
const FEW: u64 = 24;

/// Seeds from the environment, or a few by default.
fn seeds() -> Range<u64> {
    let range_setting = std::env::var("PARALLAX_DAYS").ok();
    let range = range_setting.as_deref().and_then(|range_setting| range_setting.split_once(".."));
    range.map_or(0..FEW, |(from, to)| from.parse().unwrap()..to.parse().unwrap())
}

#[test]
fn the_invariants_hold_over_random_days() {
    let days = seeds();
    let (mut broken, mut alerts) = (Vec::new(), BTreeMap::new());
    for seed in days.clone() {
        match panic::catch_unwind(|| SimulatedDay::simulate(seed)) {
            Ok((_, counts)) => counts.into_iter().for_each(|(kind, count)| *alerts.entry(kind).or_insert(0) += count),
            Err(_) => broken.push(seed),
        }
    }
    assert!(broken.is_empty(), "{} of {days:?} failed: {broken:?}", broken.len());
    // The invariants would also hold on days without any alerts.
    assert!(days.end - days.start < FEW || alerts.len() == 5, "only {alerts:?} were sent");
}

#[test]
fn a_seed_gives_the_same_day_again() {
    for seed in 0..3 {
        assert_eq!(SimulatedDay::simulate(seed), SimulatedDay::simulate(seed), "day {seed}");
    }
}
