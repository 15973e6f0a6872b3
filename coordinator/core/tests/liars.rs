//! Simulated days of a service with one lying vantage: it passes every check (a captive portal, an intercepting
//! proxy, a resolver that answers for every name), or it fails every check. The others must not be affected, and
//! neither must a vantage that the sites of one customer refuse.
//!
//! Every test run simulates a few days. To run more, give a range of seeds: `PARALLAX_DAYS=0..1000 cargo test -p
//! parallax-core --test liars`.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failure may panic; the random numbers are shared"
)]

#[path = "story/reports.rs"]
mod reports;
#[path = "days/seeded_random.rs"]
mod seeded_random;
#[path = "liars/vantages.rs"]
mod vantages;
#[path = "liars/world.rs"]
mod world;

use std::ops::Range;
use std::panic;

use world::{Lie, SimulatedService};

/// Number of days in every run, for each kind of lie.
const FEW: u64 = 12;

/// Seeds from the environment, or a few by default.
fn seeds() -> Range<u64> {
    let range_setting = std::env::var("PARALLAX_DAYS").ok();
    let range = range_setting.as_deref().and_then(|range_setting| range_setting.split_once(".."));
    range.map_or(0..FEW, |(from, to)| from.parse().unwrap()..to.parse().unwrap())
}

#[test]
fn one_liar_hides_ends_and_makes_no_outage_and_has_no_other_quarantined() {
    let mut broken = Vec::new();
    for lie in [None, Some(Lie::Passes), Some(Lie::Fails), Some(Lie::Shunned)] {
        let (mut found, mut delays) = (0, Vec::new());
        for seed in seeds() {
            match panic::catch_unwind(|| SimulatedService::simulate(seed, lie)) {
                Ok(day) => {
                    found += usize::from(day.is_liar_found);
                    delays.extend(day.delays);
                }
                Err(_) => broken.push((lie, seed)),
            }
        }
        let mean = delays.iter().sum::<i64>() / i64::try_from(delays.len().max(1)).unwrap();
        let worst = delays.iter().max().copied().unwrap_or_default();
        println!("{lie:?}: {} outages, down after {mean} ms on average, {worst} at most", delays.len());
        println!("{lie:?}: the liar was quarantined on {found} days of {}", seeds().count());
        // A liar that passes is detected if several sites are down within a minute, which does not happen every day.
        let wanted = match lie {
            Some(Lie::Passes) => seeds().count() / 3,
            Some(Lie::Fails) => seeds().count() / 2,
            Some(Lie::Shunned) | None => 0,
        };
        assert!(!broken.is_empty() || found >= wanted, "{lie:?}: found on {found} days");
    }
    assert!(broken.is_empty(), "{broken:?}");
}
