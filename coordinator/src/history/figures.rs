//! Exact figures of the last 24 hours of one monitor, from roll-ups, blocks and open tails.

use std::collections::BTreeMap;

use parallax_core::block::Sample;
use parallax_core::id::MonitorId;
use parallax_core::latency::{RegionLatencies, mean_ms};
use parallax_core::observation::Word;
use parallax_core::place::{Region, RegionSet};
use parallax_core::time::{DAY, HOUR, SECOND, Timestamp};
use parallax_core::uptime::{Span, Spans, Tally};

use super::{History, HourRollups, join, unpack, unpack_rollup};
use crate::storage::{Read, Result};

/// Lifetime of cached figures, in milliseconds.
const FRESH: i64 = 5 * SECOND;
/// Maximum number of cached figures.
const REMEMBERED: usize = 4096;

/// A query for the figures of one monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The monitor.
    pub monitor: MonitorId,
    /// Its dense number.
    pub slot: u32,
    /// Regions whose rounds count for uptime.
    pub counted: RegionSet,
    /// Regions whose readings count for response time; empty for a type without one.
    pub latency: RegionSet,
    /// Maintenance windows that cover it: rounds due within them don't count for uptime.
    pub excluded: Spans,
    /// End of the 24 hours.
    pub now: Timestamp,
}

/// A monitor's figures of the last 24 hours.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Share of counted rounds that passed, in percent with 3 decimals, rounded down; none without counted
    /// rounds.
    pub uptime_24h: Option<f64>,
    /// Response time in milliseconds, levelled to the fastest common vantage; none without readings.
    pub latency_ms_24h: Option<u32>,
    /// Regions with readings in the 24 hours except their first, partial hour, whether or not they count.
    pub seen: RegionSet,
}

/// Cache of recent figures.
#[derive(Debug, Default)]
pub(super) struct Cache(BTreeMap<MonitorId, (Question, Figures)>);

impl Cache {
    pub(super) fn get(&self, question: &Question) -> Option<Figures> {
        let (asked, figures) = self.0.get(&question.monitor)?;
        let age = question.now.since(asked.now);
        let same = Question { now: asked.now, ..question.clone() } == *asked;
        (same && (0..FRESH).contains(&age)).then_some(*figures)
    }

    pub(super) fn put(&mut self, question: &Question, figures: Figures) {
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, (asked, _)| question.now.since(asked.now) < FRESH);
        }
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(question.monitor, (question.clone(), figures));
    }

    pub(super) fn forget(&mut self, monitor: MonitorId) {
        self.0.remove(&monitor);
    }
}

/// Computes the figures.
pub(super) fn compute(history: &History, read: &dyn Read, question: &Question) -> Result<Figures> {
    let (after, until) = (question.now - DAY, question.now);
    let (first, last) = (after.hour(), until.hour());
    // Tails are read first: readings sealed in between are then in both, never in neither.
    let open = history.open_hours(question.slot);
    let rollups = read.hours(question.monitor, first.saturating_add(1)..last)?;
    let hours = rollups.iter().map(|rollup| (rollup.at, unpack_rollup::<HourRollups>(rollup)));
    let hours: Vec<(i64, HourRollups)> = hours.collect();
    let sealed = hours.iter().flat_map(|(_, regions)| regions.keys());
    // The partial hour at the beginning is left out: it would have to be unpacked.
    let is_in = |hour: i64, samples: &[Sample]| hour > first && samples.iter().any(|it| it.due <= until);
    let late =
        open.iter().filter(|((_, hour), samples)| is_in(*hour, samples)).map(|((region, _), _)| region);
    let seen = sealed.chain(late).copied().collect();
    let whole = hours
        .into_iter()
        .filter(|(at, _)| !question.excluded.touch(hour(*at)))
        .filter(|(_, regions)| regions.values().all(|rollup| rollup.counts.excluded == 0))
        .collect();
    let mut day = Day { read, question, after, until, open, whole, tally: Tally::default() };

    let mut latencies = Vec::new();
    for region in question.counted.union(question.latency).iter() {
        latencies.extend(day.region(region)?);
    }
    Ok(Figures { uptime_24h: day.tally.percent(), latency_ms_24h: mean_ms(&latencies), seen })
}

/// The computation for one monitor.
struct Day<'a> {
    read: &'a dyn Read,
    question: &'a Question,
    /// Exclusive lower bound of the due times.
    after: Timestamp,
    /// Inclusive upper bound of the due times.
    until: Timestamp,
    open: BTreeMap<(Region, i64), Vec<Sample>>,
    /// Roll-ups of whole hours within the 24 hours that no window touches, now or when they were computed: a
    /// window may have been deleted since.
    whole: BTreeMap<i64, HourRollups>,
    tally: Tally,
}

impl Day<'_> {
    /// Counts a region's rounds; returns its latencies if the region counts for response time.
    fn region(&mut self, region: Region) -> Result<Option<RegionLatencies>> {
        let counted = self.question.counted.contains(region);
        let mut latencies = self.question.latency.contains(region).then(RegionLatencies::default);
        for (start, end) in self.hours_to_unpack(region, latencies.is_some()) {
            for block in self.read.blocks(self.question.monitor, region, start..end.saturating_add(1))? {
                let counts = counted && self.summed(region, block.hour).is_none();
                let mut samples = unpack(&block);
                if let Some(late) = self.open.get(&(region, block.hour)) {
                    join(&mut samples, late.clone());
                    // They are counted with the block, and must not be counted again below.
                    self.open.insert((region, block.hour), Vec::new());
                }
                self.take(&samples, counts, &mut latencies);
            }
        }
        let mine: Vec<(Region, i64)> = self.open.keys().filter(|(of, _)| *of == region).copied().collect();
        for key in mine {
            let samples = self.open.remove(&key).unwrap_or_default();
            self.take(&samples, counted, &mut latencies);
        }
        Ok(latencies)
    }

    /// Counts what roll-ups cover, and returns the runs of hours whose blocks are needed.
    fn hours_to_unpack(&mut self, region: Region, timed: bool) -> Vec<(i64, i64)> {
        let mut runs: Vec<(i64, i64)> = Vec::new();
        for hour in self.after.hour()..=self.until.hour() {
            let sum = self.summed(region, hour);
            if self.question.counted.contains(region) {
                self.tally.merge(sum.unwrap_or_default());
            }
            if timed || sum.is_none() {
                match runs.last_mut() {
                    Some((_, end)) if *end + 1 == hour => *end = hour,
                    Some(_) | None => runs.push((hour, hour)),
                }
            }
        }
        runs
    }

    /// Tally of a whole hour from its roll-up; none where the blocks are needed: at the edges, where a window
    /// touches the hour, or where a tail has a reading of it.
    fn summed(&self, region: Region, hour: i64) -> Option<Tally> {
        let regions = self.whole.get(&hour).filter(|_| !self.open.contains_key(&(region, hour)))?;
        Some(regions.get(&region).map(|rollup| rollup.counts.tally()).unwrap_or_default())
    }

    fn take(&mut self, samples: &[Sample], counts: bool, latencies: &mut Option<RegionLatencies>) {
        let (after, until) = (self.after, self.until);
        for sample in samples.iter().filter(|sample| after < sample.due && sample.due <= until) {
            if counts && !self.question.excluded.contains(sample.due) {
                self.tally.add(sample.word);
            }
            if let (Some(latencies), Some(latency), Word::Passed) =
                (&mut *latencies, sample.latency_ms, sample.word)
            {
                latencies.add(sample.place, latency);
            }
        }
    }
}

fn hour(number: i64) -> Span {
    let from = Timestamp::from_millis(number.saturating_mul(HOUR));
    Span { from, to: from + HOUR }
}
