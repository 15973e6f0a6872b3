//! The past of a page's monitors: days, slices of a short range, and response times.

use chrono::{Days, NaiveDate};
use parallax_core::board::{DAYS, Day, Past, Range, Slice, Stretch};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::rollup::{Counts, day_of, end_of_day, start_of_day};
use parallax_core::time::Timestamp;
use parallax_core::uptime::{Span, WatchedTime, time_within};

use super::super::figures::Looked;
use super::super::history::Timed;
use super::super::{Result, Service, monitors};

impl Service {
    /// Returns the past of each of a page's monitors, in the same order, with slices of that range and charts of that
    /// period.
    pub(super) async fn pasts(
        &self,
        page: &Page,
        shown: &[monitors::Shown],
        stretch: Stretch,
        range: Range,
    ) -> Result<Vec<Past>> {
        let now = self.now();
        let Some(today) = day_of(now, page.timezone) else { return Ok(vec![Past::default(); shown.len()]) };
        let first = today.checked_sub_days(Days::new(DAYS as u64 - 1)).unwrap_or(today);
        let monitors: Vec<Monitor> = shown.iter().map(|shown| shown.monitor.clone()).collect();
        let mut seen = self.0.figures.lanes(page, &monitors, first..=today, now).await?.into_iter();
        let mut charts = self.0.figures.charts(page, &monitors, stretch).await?.into_iter();
        let spans = range.slices(now, page.timezone);
        let mut slices = if spans.is_empty() {
            Vec::new().into_iter()
        } else {
            self.0.figures.slices(page, &monitors, &spans).await?.into_iter()
        };
        // Computed once for all monitors: time-zone look-ups are slow.
        let bounds = |date| {
            let bounds = start_of_day(date, page.timezone).zip(end_of_day(date, page.timezone));
            (date, bounds.map(|(from, to)| Span { from, to }))
        };
        let dates: Vec<(NaiveDate, Option<Span>)> = first.iter_days().take(DAYS).map(bounds).collect();
        let timed = |shown: &&monitors::Shown| shown.monitor.check.kind().has_downtime();
        let timed = shown.iter().filter(timed).map(|shown| (shown.monitor.id, shown.view.downtime.clone()));
        let mut timed = self.timed(page, timed.collect(), first..=today).await?.into_iter();
        let mut pasts = Vec::with_capacity(shown.len());
        for shown in shown {
            let seen = seen.next().unwrap_or_default();
            let timed = if shown.monitor.check.kind().has_downtime() { timed.next() } else { None };
            let of = Life {
                timed: timed.as_ref(),
                made: shown.monitor.created_at,
                now,
                pauses: &shown.view.pauses,
            };
            let day = |&(date, span): &(NaiveDate, Option<Span>)| {
                let mut counts = Counts::default();
                for (_, days) in seen.lanes.iter().filter(|(region, _)| seen.counted.contains(**region)) {
                    counts.merge(days.get(&date).copied().unwrap_or_default());
                }
                let time = span.map(|span| of.time(span, counts, seen.looked.get(&date)));
                let time = time.unwrap_or_default();
                Day { date, counts, uptime: of.uptime(time, counts), time }
            };
            let sliced = slices.next().unwrap_or_default();
            let slice = |(at, span): (usize, &Span)| {
                let mut counts = Counts::default();
                for (_, parts) in sliced.lanes.iter().filter(|(region, _)| seen.counted.contains(**region)) {
                    counts.merge(parts.get(at).copied().unwrap_or_default());
                }
                let time = of.time(*span, counts, Some(&sliced.looked));
                Slice { span: *span, counts, uptime: of.uptime(time, counts), time }
            };
            let slices = spans.iter().enumerate().map(slice).collect();
            let days = dates.iter().map(day).collect();
            let chart = charts.next().unwrap_or_default();
            pasts.push(Past { days, lanes: seen.lanes, slices, slice_lanes: sliced.lanes, chart });
        }
        Ok(pasts)
    }
}

/// Parts of a monitor's life that an uptime figure is computed from.
struct Life<'a> {
    /// Its downtime, for types without rounds of their own.
    timed: Option<&'a Timed>,
    made: Timestamp,
    now: Timestamp,
    pauses: &'a [Span],
}

impl Life<'_> {
    /// Computes how much of a period was watched, and how much of that the monitor was down, from its counted rounds.
    /// Without times of checks, all of its life outside pauses counts as watched.
    fn time(&self, span: Span, counts: Counts, looked: Option<&Looked>) -> WatchedTime {
        if let Some(timed) = self.timed {
            return timed.time_in(span);
        }
        let window = Span { from: span.from.max(self.made), to: span.to.min(self.now) };
        let watched = match looked {
            Some(looked) => looked.watched(window, self.pauses),
            None => time_within(window, &[window], self.pauses),
        };
        WatchedTime::of_rounds(watched, counts.tally())
    }

    fn uptime(&self, time: WatchedTime, counts: Counts) -> Option<f64> {
        if self.timed.is_some() { time.percent() } else { counts.tally().percent() }
    }
}
