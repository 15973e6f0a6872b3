//! The response time of a page: each region levelled to its fastest shared place, several regions averaged.
//!
//! Places take turns, and a far one is slower for reasons that are not the target's. So every reading is shifted by
//! the difference between its own place's median and the fastest place's before the region's median is taken.

use std::collections::BTreeMap;

use crate::place::PlaceNo;

/// One place in so many readings of its region makes a shared place.
const SHARED_ONE_IN: usize = 10;

/// The latencies of one region in a stretch of time, by place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionLatencies {
    places: BTreeMap<PlaceNo, Vec<u32>>,
}

impl RegionLatencies {
    /// Takes in the latency of a passed round, in milliseconds.
    pub fn add(&mut self, place: PlaceNo, latency_ms: u32) {
        self.places.entry(place).or_default().push(latency_ms);
    }

    /// The region's response time in milliseconds: the median of its shared places' readings, each shifted by
    /// (level - median of its place) and never below 1; the level is the lowest median of a shared place. None
    /// without a shared place.
    pub fn median_ms(&self) -> Option<f64> {
        let all: usize = self.places.values().map(Vec::len).sum();
        let shared: Vec<(f64, &Vec<u32>)> = self
            .places
            .values()
            .filter(|latencies| latencies.len() * SHARED_ONE_IN >= all)
            .filter_map(|latencies| {
                Some((median(latencies.iter().copied().map(f64::from).collect())?, latencies))
            })
            .collect();
        let level = shared.iter().map(|(median, _)| *median).min_by(f64::total_cmp)?;
        let levelled = shared
            .iter()
            .flat_map(|(own, latencies)| {
                latencies.iter().map(move |latency| (f64::from(*latency) + level - own).max(1.0))
            })
            .collect();
        median(levelled)
    }
}

/// The monitor's response time in whole milliseconds: the mean over the regions that have one, rounded (a half up).
pub fn mean_ms<'a>(regions: impl IntoIterator<Item = &'a RegionLatencies>) -> Option<u32> {
    let medians: Vec<f64> = regions.into_iter().filter_map(RegionLatencies::median_ms).collect();
    if medians.is_empty() {
        return None;
    }
    // A mean of latencies that fit is within their range; the cast saturates.
    Some((medians.iter().sum::<f64>() / medians.len() as f64).round() as u32)
}

/// The middle value, or the mean of the two in the middle. Halves of whole numbers are exact in an `f64`.
fn median(mut values: Vec<f64>) -> Option<f64> {
    let upper = values.len() / 2;
    let odd = values.len() % 2 == 1;
    if values.is_empty() {
        return None;
    }
    let (below, middle, _) = values.select_nth_unstable_by(upper, f64::total_cmp);
    let middle = *middle;
    if odd {
        return Some(middle);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    Some((lower + middle) / 2.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![7.0]), Some(7.0));
        assert_eq!(median(vec![9.0, 1.0]), Some(5.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    proptest! {
        #[test]
        fn the_figure_does_not_hang_on_the_order_of_readings(
            mut readings in proptest::collection::vec((0_u16..4, 1_u32..5000), 1..200),
        ) {
            let figure = |readings: &[(u16, u32)]| {
                let mut region = RegionLatencies::default();
                readings.iter().for_each(|(place, latency)| region.add(PlaceNo(*place), *latency));
                region.median_ms()
            };
            let before = figure(&readings);
            readings.reverse();
            prop_assert_eq!(figure(&readings), before);
            // Four places at most: one of them gave a quarter of the readings.
            prop_assert!(before.is_some_and(|median| median >= 1.0));
        }
    }
}
