//! The past of a page's monitors: days, slices of a short range, and response times.

use chrono::{Days, NaiveDate};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::page_view::{ChartRange, HISTORY_DAYS, MonitorHistory, TimeRange, UptimeDay, UptimeSlice};
use parallax_core::rollup::{OutcomeCounts, day_of, end_of_day, start_of_day};
use parallax_core::time::Timestamp;
use parallax_core::uptime::{MonitoredTime, TimeSpan, time_within};
use parallax_core::vantage::RegionSet;

use super::PublicPageService;
use crate::monitors::history::DowntimeHistory;
use crate::statistics::{SliceOutcomes, WatchedHours};
use crate::{ServiceResult, monitors};

impl PublicPageService {
    /// Returns the past of each of a page's monitors, in the same order, with slices of that range and charts of that
    /// period.
    pub(super) async fn monitor_histories(
        &self,
        page: &Page,
        with_states: &[monitors::MonitorWithState],
        chart_range: ChartRange,
        range: TimeRange,
    ) -> ServiceResult<Vec<MonitorHistory>> {
        let now = self.context.now();
        let Some(today) = day_of(now, page.timezone) else {
            return Ok(vec![MonitorHistory::default(); with_states.len()]);
        };
        let first = today.checked_sub_days(Days::new(HISTORY_DAYS as u64 - 1)).unwrap_or(today);
        let monitors: Vec<Monitor> = with_states.iter().map(|monitor| monitor.monitor.clone()).collect();
        let mut outcomes =
            self.context.statistics.outcomes_by_day(page, &monitors, first..=today, now).await?.into_iter();
        let mut charts = self.context.statistics.charts(page, &monitors, chart_range).await?.into_iter();
        let spans = range.slices(now, page.timezone);
        let mut slices = if spans.is_empty() {
            Vec::new().into_iter()
        } else {
            self.context.statistics.outcomes_by_slice(page, &monitors, &spans).await?.into_iter()
        };
        // Computed once for all monitors: time-zone look-ups are slow.
        let bounds = |date| {
            let bounds = start_of_day(date, page.timezone).zip(end_of_day(date, page.timezone));
            (date, bounds.map(|(from, to)| TimeSpan { from, to }))
        };
        let dates: Vec<(NaiveDate, Option<TimeSpan>)> = first.iter_days().take(HISTORY_DAYS).map(bounds).collect();
        let has_downtime = |monitor: &monitors::MonitorWithState| monitor.monitor.check.kind().has_downtime();
        let stored_downtimes = with_states
            .iter()
            .filter(|monitor| has_downtime(monitor))
            .map(|monitor| (monitor.monitor.id, monitor.view.downtime.clone()));
        let mut downtimes =
            self.history.downtime_histories(page, stored_downtimes.collect(), first..=today).await?.into_iter();
        let mut histories = Vec::with_capacity(with_states.len());
        for monitor in with_states {
            let outcomes = outcomes.next().unwrap_or_default();
            let downtime = if has_downtime(monitor) { downtimes.next() } else { None };
            let life = MonitorLife {
                downtime: downtime.as_ref(),
                created_at: monitor.monitor.created_at,
                now,
                pauses: &monitor.view.pauses,
            };
            let day = |&(date, span): &(NaiveDate, Option<TimeSpan>)| {
                let mut counts = OutcomeCounts::default();
                for (_, days) in outcomes.by_region.iter().filter(|(region, _)| outcomes.counted.contains(**region)) {
                    counts.merge(days.get(&date).copied().unwrap_or_default());
                }
                let time = span.map(|span| life.time(span, counts, outcomes.watched.get(&date)));
                let time = time.unwrap_or_default();
                UptimeDay { date, counts, uptime: life.uptime(time, counts), time }
            };
            let sliced = slices.next().unwrap_or_default();
            let slices = life.slices(&spans, &sliced, outcomes.counted);
            let days = dates.iter().map(day).collect();
            let chart = charts.next().unwrap_or_default();
            histories.push(MonitorHistory {
                days,
                regions: outcomes.by_region,
                slices,
                slice_regions: sliced.by_region,
                chart,
            });
        }
        Ok(histories)
    }

    /// Returns the last 24 hours of each of a page's monitors in hourly slices, in the same order: from roll-ups, and
    /// the readings of the hours that have none yet.
    pub(crate) async fn last_day_slices(
        &self,
        page: &Page,
        with_states: &[monitors::MonitorWithState],
    ) -> ServiceResult<Vec<Vec<UptimeSlice>>> {
        let now = self.context.now();
        let Some(today) = day_of(now, page.timezone) else { return Ok(vec![Vec::new(); with_states.len()]) };
        let spans = TimeRange::Day.slices(now, page.timezone);
        let monitors: Vec<Monitor> = with_states.iter().map(|monitor| monitor.monitor.clone()).collect();
        let outcomes = self.context.statistics.outcomes_by_slice(page, &monitors, &spans).await?;
        let yesterday = today.checked_sub_days(Days::new(1)).unwrap_or(today);
        let with_downtime = with_states.iter().filter(|monitor| monitor.monitor.check.kind().has_downtime());
        let stored = with_downtime.map(|monitor| (monitor.monitor.id, monitor.view.downtime.clone())).collect();
        let mut downtimes = self.history.downtime_histories(page, stored, yesterday..=today).await?.into_iter();
        let slices = with_states.iter().zip(outcomes).map(|(monitor, sliced)| {
            let kind = monitor.monitor.check.kind();
            let downtime = if kind.has_downtime() { downtimes.next() } else { None };
            let (created_at, pauses) = (monitor.monitor.created_at, monitor.view.pauses.as_slice());
            let life = MonitorLife { downtime: downtime.as_ref(), created_at, now, pauses };
            life.slices(&spans, &sliced, sliced.counted)
        });
        Ok(slices.collect())
    }
}

/// Parts of a monitor's life that an uptime figure is computed from.
struct MonitorLife<'a> {
    /// Its downtime, for types without rounds of their own.
    downtime: Option<&'a DowntimeHistory>,
    created_at: Timestamp,
    now: Timestamp,
    pauses: &'a [TimeSpan],
}

impl MonitorLife<'_> {
    /// Returns the slices of a short range, from the round outcomes of the counted regions.
    fn slices(&self, spans: &[TimeSpan], sliced: &SliceOutcomes, counted: RegionSet) -> Vec<UptimeSlice> {
        let slice = |(at, span): (usize, &TimeSpan)| {
            let mut counts = OutcomeCounts::default();
            for (_, parts) in sliced.by_region.iter().filter(|(region, _)| counted.contains(**region)) {
                counts.merge(parts.get(at).copied().unwrap_or_default());
            }
            let time = self.time(*span, counts, Some(&sliced.watched));
            UptimeSlice { span: *span, counts, uptime: self.uptime(time, counts), time }
        };
        spans.iter().enumerate().map(slice).collect()
    }

    /// Computes how much of a period was watched, and how much of that the monitor was down, from its counted rounds.
    /// Without times of checks, all of its life outside pauses counts as watched.
    fn time(&self, span: TimeSpan, counts: OutcomeCounts, watched_hours: Option<&WatchedHours>) -> MonitoredTime {
        if let Some(downtime) = self.downtime {
            return downtime.time_in(span);
        }
        let window = TimeSpan { from: span.from.max(self.created_at), to: span.to.min(self.now) };
        let watched = match watched_hours {
            Some(watched_hours) => watched_hours.watched_ms(window, self.pauses),
            None => time_within(window, &[window], self.pauses),
        };
        MonitoredTime::of_rounds(watched, counts.tally())
    }

    fn uptime(&self, time: MonitoredTime, counts: OutcomeCounts) -> Option<f64> {
        if self.downtime.is_some() { time.percent() } else { counts.tally().percent() }
    }
}
