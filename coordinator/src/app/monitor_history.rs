//! A monitor's past from the history: round outcomes by day, and response times, by region.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use parallax_core::monitor::Monitor;
use parallax_core::observation::RoundOutcome;
use parallax_core::page::Page;
use parallax_core::page_view::{ChartRange, LatencyBand, LatencyChart};
use parallax_core::plan::Plan;
use parallax_core::rollup::{Histogram, OutcomeCounts, RollupRules, end_of_day, span_of_hour, start_of_day};
use parallax_core::time::{DAY, HOUR, Timestamp};
use parallax_core::uptime::{RoundTally, TimeSpan};
use parallax_core::vantage::{Region, RegionSet};
use parallax_engine::history::{self, BLOCK_RETENTION_HOURS, History, HistoryError};
use parallax_service::statistics::{CountsByDay, CountsBySlice, SliceOutcomes, WatchedHours};
use parallax_store::StoreRead;

/// Longest period drawn from single readings; longer ones are drawn from hourly roll-ups.
const FROM_READINGS: i64 = 2 * DAY;

/// Percentage of a day that its rounds must cover for the day to count as fully watched.
const FULL_DAY_PERCENT: i128 = 98;

/// Counts per day from roll-ups; the newest three days, which may be only partly sealed, from readings.
pub(super) fn counts_by_day(
    history: &History,
    read: &dyn StoreRead,
    (monitor, plan): (&Monitor, Plan),
    page: &Page,
    (now, regions): (Timestamp, RegionSet),
    days: &RangeInclusive<NaiveDate>,
) -> Result<CountsByDay, HistoryError> {
    let zone = page.timezone;
    let number = |day: &NaiveDate| i64::from(day.to_epoch_days());
    // No data exists before the epoch.
    let first = number(days.start()).max(0);
    let last = number(days.end()).max(first);
    let mut region_counts = CountsByDay::new();
    for (day, sealed_counts) in history.days(read, monitor.id, first..last.saturating_add(1))? {
        let Some(date) = i32::try_from(day).ok().and_then(NaiveDate::from_epoch_days) else { continue };
        for (region, rollup) in sealed_counts.into_iter().filter(|(region, _)| regions.contains(*region)) {
            region_counts.entry(region).or_default().insert(date, rollup.counts);
        }
    }
    // Sealed days already account for their windows; days that are not sealed yet are counted again.
    let windows = history::windows_covering(read, monitor, now - 3 * DAY..now)?;
    for date in days.start().iter_days().take_while(|date| date <= days.end()) {
        let bounds = start_of_day(date, zone).zip(end_of_day(date, zone));
        let Some((start, end)) = bounds.filter(|(_, end)| *end > now - 2 * DAY) else { continue };
        if start > now {
            break;
        }
        for region in regions.iter() {
            let slow_threshold_ms = monitor.slow_threshold(region, plan);
            let mut counts = OutcomeCounts::default();
            for sample in history.readings(read, (monitor.slot, monitor.id), region, start, end)? {
                let excluded = windows.contains(sample.due);
                counts.add(&sample, RollupRules { slow_threshold_ms, excluded });
            }
            if counts == OutcomeCounts::default() {
                if let Some(days) = region_counts.get_mut(&region) {
                    days.remove(&date);
                }
            } else {
                region_counts.entry(region).or_default().insert(date, counts);
            }
        }
    }
    Ok(region_counts)
}

/// Returns the times when a monitor was watched, for days with a failed round in any region. Days with as many rounds
/// as a whole day has are skipped: they were watched throughout.
pub(super) fn watched_by_day(
    history: &History,
    read: &dyn StoreRead,
    (monitor, interval_ms): (&Monitor, i64),
    page: &Page,
    now: Timestamp,
    region_counts: &CountsByDay,
) -> Result<BTreeMap<NaiveDate, WatchedHours>, HistoryError> {
    let failed = |(date, counts): (&NaiveDate, &OutcomeCounts)| (counts.failed > 0).then_some(*date);
    let dates: BTreeSet<NaiveDate> = region_counts.values().flatten().filter_map(failed).collect();
    let mut watched = BTreeMap::new();
    for date in dates {
        let bounds = start_of_day(date, page.timezone).zip(end_of_day(date, page.timezone));
        let Some((start, end)) = bounds else { continue };
        let of_date = || region_counts.values().filter_map(|days| days.get(&date));
        let is_whole = |counts: &OutcomeCounts| {
            let RoundTally { passed, failed } = counts.tally();
            let stand_for = i128::from(passed.saturating_add(failed)) * i128::from(interval_ms);
            stand_for * 100 >= i128::from(end.since(start)) * FULL_DAY_PERCENT
        };
        if of_date().all(|counts| counts.excluded == 0) && of_date().any(is_whole) {
            continue;
        }
        // An earlier check may cover the start of the day.
        let from = start - interval_ms.max(HOUR);
        let mut since = from.max(now - FROM_READINGS);
        let mut hours = Vec::new();
        for (hour, regions) in history.hours(read, monitor.id, from.hour()..end.hour().saturating_add(1))? {
            since = since.max(Timestamp::from_millis(hour.saturating_mul(HOUR)) + HOUR);
            if regions.values().any(|rollup| rollup.counts.tally().percent().is_some()) {
                hours.push(hour);
            }
        }
        for region in unsealed_regions(since, end) {
            let samples = history.readings(read, (monitor.slot, monitor.id), *region, since, end)?;
            let judged_samples = samples.iter().filter(|sample| sample.outcome.counts_as_passed().is_some());
            hours.extend(judged_samples.map(|sample| sample.due.hour()));
        }
        let hours = hours.into_iter().map(|hour| span_of_hour(hour, interval_ms)).collect();
        watched.insert(date, WatchedHours { hours, excluded: history::windows_covering(read, monitor, start..end)? });
    }
    Ok(watched)
}

/// Returns the regions whose single readings are needed in that period: none if roll-ups reach beyond its end.
fn unsealed_regions(since: Timestamp, end: Timestamp) -> &'static [Region] {
    if since < end { &Region::ALL } else { &[] }
}

/// Counts per slice from hourly roll-ups, and from readings of hours that have no roll-up yet.
pub(super) fn counts_by_slice(
    history: &History,
    read: &dyn StoreRead,
    (monitor, plan, interval_ms): (&Monitor, Plan, i64),
    spans: &[TimeSpan],
) -> Result<SliceOutcomes, HistoryError> {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return Ok(SliceOutcomes::default());
    };
    let (from, to, width) = (first.from, last.to, first.to.since(first.from).max(1));
    let bucket_of = |time: Timestamp| usize::try_from(time.since(from).div_euclid(width)).ok();
    let mut counts = CountsBySlice::new();
    let mut hours = BTreeSet::new();
    let mut since = from.max(to - FROM_READINGS);
    // An earlier check may cover the start of the first slice.
    let earlier = from - interval_ms.max(HOUR);
    for (hour, regions) in history.hours(read, monitor.id, earlier.hour()..to.hour())? {
        let start = Timestamp::from_millis(hour.saturating_mul(HOUR));
        since = since.max(start + HOUR);
        if regions.values().any(|rollup| rollup.counts.tally().percent().is_some()) {
            hours.insert(hour);
        }
        if hour < from.hour() {
            continue;
        }
        for (region, rollup) in regions {
            let parts = counts.entry(region).or_insert_with(|| vec![OutcomeCounts::default(); spans.len()]);
            let Some(bucket) = bucket_of(start.max(from)).and_then(|at| parts.get_mut(at)) else { continue };
            bucket.merge(rollup.counts);
        }
    }
    let windows = history::windows_covering(read, monitor, from..to)?;
    for region in Region::ALL {
        let slow_threshold_ms = monitor.slow_threshold(region, plan);
        for sample in history.readings(read, (monitor.slot, monitor.id), region, since, to)? {
            let parts = counts.entry(region).or_insert_with(|| vec![OutcomeCounts::default(); spans.len()]);
            let Some(bucket) = bucket_of(sample.due).and_then(|at| parts.get_mut(at)) else { continue };
            let excluded = windows.contains(sample.due);
            bucket.add(&sample, RollupRules { slow_threshold_ms, excluded });
            if sample.outcome.counts_as_passed().is_some() {
                hours.insert(sample.due.hour());
            }
        }
    }
    let hours = hours.into_iter().map(|hour| span_of_hour(hour, interval_ms)).collect();
    let watched = WatchedHours { hours, excluded: windows };
    Ok(SliceOutcomes { by_region: counts, watched, ..SliceOutcomes::default() })
}

/// Period of a chart with its buckets, and what fills them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChartPeriod {
    range: ChartRange,
    /// True for hourly roll-ups, and the readings that are in none yet; false for single readings.
    is_from_hours: bool,
}

impl ChartPeriod {
    /// A period is drawn from roll-ups if it is long, or if its single readings may be deleted.
    fn new(range: ChartRange, now: Timestamp) -> Self {
        let is_long = range.to.since(range.from) > FROM_READINGS;
        Self { range, is_from_hours: is_long || range.from < now - BLOCK_RETENTION_HOURS * HOUR }
    }

    /// Fits the buckets to a monitor created at `made` and checked every `interval_ms` milliseconds. Roll-ups are hourly:
    /// shorter buckets would leave gaps in the line.
    pub(super) fn fitted(range: ChartRange, (made, interval_ms): (Timestamp, i64), now: Timestamp) -> Self {
        let it = Self::new(range, now);
        let least_width = interval_ms.max(if it.is_from_hours { HOUR } else { 0 });
        Self { range: range.fitted_to(made, least_width), ..it }
    }
}

/// Returns the median response time of each bucket of a period that ends now, by region.
pub(super) fn chart(
    history: &History,
    read: &dyn StoreRead,
    monitor: &Monitor,
    counted: RegionSet,
    range: ChartRange,
) -> Result<LatencyChart, HistoryError> {
    Ok(LatencyBuckets::read(history, read, monitor, ChartPeriod::new(range, range.to))?.into_chart(counted, range))
}

/// Returns the same as [`chart`] of any period, with the lowest and highest response time of each bucket.
pub(super) fn banded_chart(
    history: &History,
    read: &dyn StoreRead,
    monitor: &Monitor,
    counted: RegionSet,
    period: ChartPeriod,
) -> Result<LatencyChart, HistoryError> {
    let buckets = LatencyBuckets::read(history, read, monitor, period)?;
    let bands = buckets.bands();
    Ok(LatencyChart { bands, ..buckets.into_chart(counted, period.range) })
}

/// Response times of a monitor in the buckets of a chart, by region.
#[derive(Default)]
struct LatencyBuckets {
    /// From hourly roll-ups.
    folded: BTreeMap<Region, Vec<Histogram>>,
    /// From single readings. A bucket that has roll-ups ignores its few single readings.
    exact: BTreeMap<Region, Vec<Vec<u32>>>,
}

impl LatencyBuckets {
    fn read(
        history: &History,
        read: &dyn StoreRead,
        monitor: &Monitor,
        ChartPeriod { range, is_from_hours }: ChartPeriod,
    ) -> Result<Self, HistoryError> {
        let ChartRange { from, to, buckets: parts } = range;
        let mut buckets = Self::default();
        if !monitor.check.kind().has_latency() || parts == 0 {
            return Ok(buckets);
        }
        // The width that the chart is drawn with: another one would move the readings in time.
        let width = range.width().max(1);
        let bucket_of = |time: Timestamp| usize::try_from(time.since(from).div_euclid(width)).ok();
        let mut since = from;
        if is_from_hours {
            since = from.max(to - FROM_READINGS);
            // The hour of the end has a roll-up if the period ended long ago.
            for (hour, regions) in history.hours(read, monitor.id, from.hour()..to.hour().saturating_add(1))? {
                let start = Timestamp::from_millis(hour.saturating_mul(HOUR));
                since = since.max(start + HOUR);
                for (region, rollup) in regions {
                    let parts = buckets.folded.entry(region).or_insert_with(|| vec![Histogram::default(); parts]);
                    let Some(bucket) = bucket_of(start.max(from)).and_then(|at| parts.get_mut(at)) else { continue };
                    rollup.vantages.iter().for_each(|(_, latencies)| bucket.merge(latencies));
                }
            }
        }
        for region in Region::ALL {
            for sample in history.readings(read, (monitor.slot, monitor.id), region, since, to + 1)? {
                let Some(latency) = sample.latency_ms.filter(|_| sample.outcome == RoundOutcome::Passed) else {
                    continue;
                };
                let parts = buckets.exact.entry(region).or_insert_with(|| vec![Vec::new(); parts]);
                if let Some(bucket) = bucket_of(sample.due).and_then(|at| parts.get_mut(at)) {
                    bucket.push(latency);
                }
            }
        }
        Ok(buckets)
    }

    fn into_chart(mut self, counted: RegionSet, range: ChartRange) -> LatencyChart {
        let mut chart = LatencyChart { from: range.from, to: range.to, counted, ..LatencyChart::default() };
        for region in Region::ALL {
            let (sums, singles) = (self.folded.get(&region), self.exact.get_mut(&region));
            if sums.is_none() && singles.is_none() {
                continue;
            }
            let mut medians: Vec<Option<u32>> = match sums {
                Some(parts) => parts.iter().map(|bucket| bucket.quantile_ms(500)).collect(),
                None => vec![None; range.buckets],
            };
            for (value, singles) in medians.iter_mut().zip(singles.into_iter().flatten()) {
                *value = value.or_else(|| median(singles));
            }
            chart.regions.insert(region, medians);
        }
        chart
    }

    fn bands(&self) -> BTreeMap<Region, Vec<Option<LatencyBand>>> {
        let of_histogram =
            |bucket: &Histogram| Some(LatencyBand { min: bucket.quantile_ms(0)?, max: bucket.quantile_ms(1000)? });
        let of_readings =
            |bucket: &Vec<u32>| Some(LatencyBand { min: *bucket.iter().min()?, max: *bucket.iter().max()? });
        let mut bands: BTreeMap<Region, Vec<Option<LatencyBand>>> =
            self.folded.iter().map(|(region, parts)| (*region, parts.iter().map(of_histogram).collect())).collect();
        for (region, parts) in &self.exact {
            let bands = bands.entry(*region).or_insert_with(|| vec![None; parts.len()]);
            for (band, readings) in bands.iter_mut().zip(parts) {
                *band = band.or_else(|| of_readings(readings));
            }
        }
        bands
    }
}

fn median(latencies: &mut [u32]) -> Option<u32> {
    let middle = latencies.len() / 2;
    if latencies.is_empty() {
        return None;
    }
    Some(*latencies.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests;
