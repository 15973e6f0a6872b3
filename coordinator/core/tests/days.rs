//! Whole days of one monitor with faults far beyond nature, each out of a seed: what must hold always, holds.
//!
//! A few days are lived at every run. More of them, by their seeds: `PARALLAX_DAYS=0..10000 cargo test -p parallax-core
//! --test days`; one day alone: `PARALLAX_DAYS=17..18`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what is wrong fails the test"
)]

#[path = "days/chance.rs"]
mod chance;
#[path = "days/held.rs"]
mod held;
#[path = "days/plan.rs"]
mod plan;
#[path = "days/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic;

use world::World;

/// Days that every run lives.
const FEW: u64 = 24;

/// The seeds that were asked for, or a few.
fn seeds() -> Range<u64> {
    let asked = std::env::var("PARALLAX_DAYS").ok();
    let range = asked.as_deref().and_then(|asked| asked.split_once(".."));
    range.map_or(0..FEW, |(from, to)| from.parse().unwrap()..to.parse().unwrap())
}

#[test]
fn whatever_a_day_brings_the_promises_hold() {
    let days = seeds();
    let (mut broken, mut alerts) = (Vec::new(), BTreeMap::new());
    for seed in days.clone() {
        match panic::catch_unwind(|| World::live(seed)) {
            Ok((_, told)) => {
                told.into_iter().for_each(|(kind, count)| *alerts.entry(kind).or_insert(0) += count)
            }
            Err(_) => broken.push(seed),
        }
    }
    assert!(broken.is_empty(), "{} of {days:?} are broken: {broken:?}", broken.len());
    // A day on which nothing happens holds everything.
    assert!(days.end - days.start < FEW || alerts.len() == 5, "only {alerts:?} were told");
}

#[test]
fn a_seed_gives_the_same_day_again() {
    for seed in 0..3 {
        assert_eq!(World::live(seed), World::live(seed), "day {seed}");
    }
}
