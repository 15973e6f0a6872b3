//! Response time of a page: each region normalized to its fastest main vantage, regions averaged.
//!
//! Vantages take turns, and a distant one is slower for reasons unrelated to the target. So before the region's
//! median is taken, every reading is shifted by the difference between the median of its own vantage and that of the
//! fastest one.

use std::collections::BTreeMap;

use crate::vantage::VantageNo;

/// A vantage counts as a main one with at least one in this many readings of its region.
const MAIN_SHARE: usize = 10;

/// Latencies of one region in a span of time, by vantage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionLatencies {
    vantages: BTreeMap<VantageNo, Vec<u32>>,
}

impl RegionLatencies {
    /// Adds the latency of a passed round, in milliseconds.
    pub fn add(&mut self, vantage: VantageNo, latency_ms: u32) {
        self.vantages.entry(vantage).or_default().push(latency_ms);
    }

    /// Response time of the region in milliseconds: the median of the readings of its main vantages, each shifted by
    /// (level - median of its vantage) and never below 1; the level is the lowest median of a main vantage. None
    /// without a main vantage.
    pub fn median_ms(&self) -> Option<f64> {
        let all: usize = self.vantages.values().map(Vec::len).sum();
        let shared: Vec<(f64, &Vec<u32>)> = self
            .vantages
            .values()
            .filter(|latencies| latencies.len() * MAIN_SHARE >= all)
            .filter_map(|latencies| Some((median(latencies.iter().copied().map(f64::from).collect())?, latencies)))
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

/// Response time of the monitor in whole milliseconds: the mean over the regions that have one, rounded half up.
pub fn mean_ms<'a>(regions: impl IntoIterator<Item = &'a RegionLatencies>) -> Option<u32> {
    let medians: Vec<f64> = regions.into_iter().filter_map(RegionLatencies::median_ms).collect();
    if medians.is_empty() {
        return None;
    }
    // A mean of values in range is in range; the cast saturates.
    Some((medians.iter().sum::<f64>() / medians.len() as f64).round() as u32)
}

/// Median of the values. Halves of whole numbers are exact in an `f64`.
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
        fn the_median_does_not_depend_on_the_order_of_readings(
            mut readings in proptest::collection::vec((0_u16..4, 1_u32..5000), 1..200),
        ) {
            let figure = |readings: &[(u16, u32)]| {
                let mut region = RegionLatencies::default();
                readings.iter().for_each(|(vantage, latency)| region.add(VantageNo(*vantage), *latency));
                region.median_ms()
            };
            let before = figure(&readings);
            readings.reverse();
            prop_assert_eq!(figure(&readings), before);
            // Four vantages at most: one of them has a quarter of the readings.
            prop_assert!(before.is_some_and(|median| median >= 1.0));
        }
    }
}
