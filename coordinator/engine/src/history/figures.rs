//! Exact figures of the last 24 hours of one monitor, from roll-ups, blocks and open tails.

use std::collections::BTreeMap;

use parallax_core::block::BlockReading;
use parallax_core::id::MonitorId;
use parallax_core::latency::{RegionLatencies, mean_ms};
use parallax_core::observation::RoundOutcome;
use parallax_core::time::{DAY, HOUR, SECOND, Timestamp};
use parallax_core::uptime::{RoundTally, TimeSpan, TimeSpans};
use parallax_core::vantage::{Region, RegionSet};
use parallax_store::{Result, StoreRead};

use super::{History, HourRollups, merge_new, unpack, unpack_rollup};

/// Lifetime of cached figures, in milliseconds.
const CACHE_TTL: i64 = 5 * SECOND;
/// Maximum number of cached figures.
const MAX_CACHED: usize = 4096;

/// A query for the figures of one monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiguresQuery {
    /// The monitor.
    pub monitor: MonitorId,
    /// Its dense number.
    pub slot: u32,
    /// Regions whose rounds count for uptime.
    pub counted: RegionSet,
    /// Regions whose readings count for response time; empty for a type without one.
    pub latency: RegionSet,
    /// Maintenance windows that cover it: rounds due within them don't count for uptime.
    pub excluded: TimeSpans,
    /// End of the 24 hours.
    pub now: Timestamp,
}

/// A monitor's figures of the last 24 hours.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MonitorFigures {
    /// Share of counted rounds that passed, in percent with 3 decimals, rounded down; none without counted
    /// rounds.
    pub uptime_24h: Option<f64>,
    /// Response time in milliseconds, levelled to the fastest common vantage; none without readings.
    pub latency_ms_24h: Option<u32>,
    /// Regions with readings in the 24 hours except their first, partial hour, whether or not they count.
    pub checked_regions: RegionSet,
}

/// Cache of recent figures.
#[derive(Debug, Default)]
pub(super) struct FiguresCache(BTreeMap<MonitorId, (FiguresQuery, MonitorFigures)>);

impl FiguresCache {
    pub(super) fn get(&self, query: &FiguresQuery) -> Option<MonitorFigures> {
        let (cached_query, figures) = self.0.get(&query.monitor)?;
        let age = query.now.since(cached_query.now);
        let same = FiguresQuery { now: cached_query.now, ..query.clone() } == *cached_query;
        (same && (0..CACHE_TTL).contains(&age)).then_some(*figures)
    }

    pub(super) fn put(&mut self, query: &FiguresQuery, figures: MonitorFigures) {
        if self.0.len() >= MAX_CACHED {
            self.0.retain(|_, (cached_query, _)| query.now.since(cached_query.now) < CACHE_TTL);
        }
        if self.0.len() >= MAX_CACHED {
            self.0.clear();
        }
        self.0.insert(query.monitor, (query.clone(), figures));
    }

    pub(super) fn remove(&mut self, monitor: MonitorId) {
        self.0.remove(&monitor);
    }
}

/// Computes the figures.
pub(super) fn compute(history: &History, read: &dyn StoreRead, query: &FiguresQuery) -> Result<MonitorFigures> {
    let (after, until) = (query.now - DAY, query.now);
    let (first, last) = (after.hour(), until.hour());
    // Tails are read first: readings sealed in between are then in both, never in neither.
    let open = history.open_hours(query.slot);
    let rollups = read.hours(query.monitor, first.saturating_add(1)..last)?;
    let hours = rollups.iter().map(|rollup| (rollup.at, unpack_rollup::<HourRollups>(rollup)));
    let hours: Vec<(i64, HourRollups)> = hours.collect();
    let sealed = hours.iter().flat_map(|(_, regions)| regions.keys());
    // The partial hour at the beginning is left out: it would have to be unpacked.
    let is_in_range = |hour: i64, samples: &[BlockReading]| hour > first && samples.iter().any(|it| it.due <= until);
    let open_regions =
        open.iter().filter(|((_, hour), samples)| is_in_range(*hour, samples)).map(|((region, _), _)| region);
    let checked_regions = sealed.chain(open_regions).copied().collect();
    let whole_hours = hours
        .into_iter()
        .filter(|(at, _)| !query.excluded.overlaps(hour_span(*at)))
        .filter(|(_, regions)| regions.values().all(|rollup| rollup.counts.excluded == 0))
        .collect();
    let mut builder = FiguresBuilder { read, query, after, until, open, whole_hours, tally: RoundTally::default() };

    let mut latencies = Vec::new();
    for region in query.counted.union(query.latency).iter() {
        latencies.extend(builder.count_region(region)?);
    }
    Ok(MonitorFigures { uptime_24h: builder.tally.percent(), latency_ms_24h: mean_ms(&latencies), checked_regions })
}

/// The computation for one monitor.
struct FiguresBuilder<'a> {
    read: &'a dyn StoreRead,
    query: &'a FiguresQuery,
    /// Exclusive lower bound of the due times.
    after: Timestamp,
    /// Inclusive upper bound of the due times.
    until: Timestamp,
    open: BTreeMap<(Region, i64), Vec<BlockReading>>,
    /// Roll-ups of whole hours within the 24 hours that no window touches, now or when they were computed: a
    /// window may have been deleted since.
    whole_hours: BTreeMap<i64, HourRollups>,
    tally: RoundTally,
}

impl FiguresBuilder<'_> {
    /// Counts a region's rounds; returns its latencies if the region counts for response time.
    fn count_region(&mut self, region: Region) -> Result<Option<RegionLatencies>> {
        let counted = self.query.counted.contains(region);
        let mut latencies = self.query.latency.contains(region).then(RegionLatencies::default);
        for (start, end) in self.hours_to_unpack(region, latencies.is_some()) {
            for block in self.read.blocks(self.query.monitor, region, start..end.saturating_add(1))? {
                let counts = counted && self.whole_hour_tally(region, block.hour).is_none();
                let mut samples = unpack(&block);
                if let Some(open_samples) = self.open.get(&(region, block.hour)) {
                    merge_new(&mut samples, open_samples.clone());
                    // They are counted with the block, and must not be counted again below.
                    self.open.insert((region, block.hour), Vec::new());
                }
                self.count_samples(&samples, counts, &mut latencies);
            }
        }
        let keys: Vec<(Region, i64)> =
            self.open.keys().filter(|(key_region, _)| *key_region == region).copied().collect();
        for key in keys {
            let samples = self.open.remove(&key).unwrap_or_default();
            self.count_samples(&samples, counted, &mut latencies);
        }
        Ok(latencies)
    }

    /// Counts what roll-ups cover, and returns the runs of hours whose blocks are needed.
    fn hours_to_unpack(&mut self, region: Region, with_latency: bool) -> Vec<(i64, i64)> {
        let mut runs: Vec<(i64, i64)> = Vec::new();
        for hour in self.after.hour()..=self.until.hour() {
            let tally = self.whole_hour_tally(region, hour);
            if self.query.counted.contains(region) {
                self.tally.merge(tally.unwrap_or_default());
            }
            if with_latency || tally.is_none() {
                match runs.last_mut() {
                    Some((_, end)) if *end + 1 == hour => *end = hour,
                    Some(_) | None => runs.push((hour, hour)),
                }
            }
        }
        runs
    }

    /// Returns the tally of a whole hour from its roll-up; `None` if the blocks are needed: at the edges, if a
    /// window overlaps the hour, or if a tail has a reading of it.
    fn whole_hour_tally(&self, region: Region, hour: i64) -> Option<RoundTally> {
        let regions = self.whole_hours.get(&hour).filter(|_| !self.open.contains_key(&(region, hour)))?;
        Some(regions.get(&region).map(|rollup| rollup.counts.tally()).unwrap_or_default())
    }

    fn count_samples(&mut self, samples: &[BlockReading], counts: bool, latencies: &mut Option<RegionLatencies>) {
        let (after, until) = (self.after, self.until);
        for sample in samples.iter().filter(|sample| after < sample.due && sample.due <= until) {
            if counts && !self.query.excluded.contains(sample.due) {
                self.tally.add(sample.outcome);
            }
            if let (Some(latencies), Some(latency), RoundOutcome::Passed) =
                (&mut *latencies, sample.latency_ms, sample.outcome)
            {
                latencies.add(sample.vantage, latency);
            }
        }
    }
}

fn hour_span(number: i64) -> TimeSpan {
    let from = Timestamp::from_millis(number.saturating_mul(HOUR));
    TimeSpan { from, to: from + HOUR }
}
