//! What was seen of a monitor: its checks, its events, its days, and where checks come from.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use parallax_core::downtime::Downtime;
use parallax_core::event::{RoundReport, What};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::incident::{MAX_COUNTED, MAX_WINDOW};
use parallax_core::member::Agent;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::place::{PlaceNo, Region};
use parallax_core::rollup::{Counts, day_of, end_of_day, start_of_day};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::uptime::{Span, Spans, WatchedTime};

use super::{Caller, Error, Result, Service};
pub use crate::flow::Sighting;
pub use crate::storage::Recorded;

/// Events that one look goes through at most.
const SCANNED: usize = 8192;
/// Events read at once.
const READ_AT_ONCE: usize = 512;
/// Days that one question may span.
pub const MAX_DAYS: i64 = 400;
/// How long before a round's event its round can have been due, in milliseconds.
const ROUND_TAKES: i64 = 5 * MINUTE;

/// Where a list of checks goes on: after this due time and region.
pub type Place = (Timestamp, Region);

/// Agents by their number, revoked ones too.
pub type Places = BTreeMap<PlaceNo, Agent>;

/// One finished scheduled round, and what is kept of it beside the reading.
#[derive(Debug, Clone)]
pub struct Check {
    /// The reading.
    pub reading: Reading,
    /// Both places' words: of rounds that were no plain pass, as long as their events are kept.
    pub report: Option<RoundReport>,
}

/// A part of a list, and where it goes on.
#[derive(Debug, Clone)]
pub struct Part<T, C> {
    /// The things, newest first.
    pub items: Vec<T>,
    /// Where the next part begins; none at the end.
    pub next: Option<C>,
    /// Who the places are.
    pub places: Places,
}

/// One day of a monitor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Day {
    /// Its date in the page's zone.
    pub date: NaiveDate,
    /// How the rounds of the counted regions ended.
    pub counts: Counts,
    /// Uptime in percent: the share of rounds that passed; of a heartbeat and a component, which have none of their
    /// own, the share of time not down. None where nothing is known.
    pub uptime: Option<f64>,
}

/// A region that checks come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stand {
    /// The region.
    pub region: Region,
    /// The network's label.
    pub network: String,
    /// Where the coordinator sees the place connect from; none while it is away.
    pub address: Option<IpAddr>,
}

/// Time down, and what of it does not count.
pub(super) struct Timed {
    zone: chrono_tz::Tz,
    now: Timestamp,
    downtime: Downtime,
    excluded: Spans,
}

impl Timed {
    /// How much of a stretch of time was watched, and how much of that it was down.
    pub(super) fn time_in(&self, window: Span) -> WatchedTime {
        self.downtime.time_over(window, self.now, self.excluded.as_slice())
    }

    fn uptime(&self, date: NaiveDate) -> Option<f64> {
        let window = Span { from: start_of_day(date, self.zone)?, to: end_of_day(date, self.zone)? };
        self.time_in(window).percent()
    }
}

impl Service {
    /// Scheduled rounds of a monitor, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a monitor that the key does not reach.
    pub async fn checks(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        after: Option<Place>,
        limit: usize,
    ) -> Result<Part<Check, Place>> {
        let page = self.page(caller, page)?;
        let monitor = self.monitor_on(&page, id)?.value;
        let from = after.unwrap_or((self.now() + 1, Region::Europe));
        let mut readings = self.0.figures.readings(&monitor, from, limit.saturating_add(1)).await?;
        let more = readings.len() > limit;
        readings.truncate(limit);
        let next = readings.last().filter(|_| more).map(|last| (last.due, last.region));
        let mut reports = self.reports(id, &readings).await?;
        let items = readings
            .into_iter()
            .map(|reading| Check { report: reports.remove(&(reading.region, reading.round)), reading });
        Ok(Part { items: items.collect(), next, places: self.places().await? })
    }

    /// Changes of a monitor's status, of the regions that see it down and of a heartbeat's deadline, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a monitor that the key does not reach.
    pub async fn events(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        before: Option<u64>,
        limit: usize,
    ) -> Result<Part<Recorded, u64>> {
        let page = self.page(caller, page)?;
        self.monitor_on(&page, id)?;
        let (mut items, mut before, mut scanned) = (Vec::new(), before, 0);
        let next = loop {
            let read = self.store().read(move |store| store.events_of(id, before, READ_AT_ONCE)).await?;
            let Some(oldest) = read.last().map(|event| event.seq) else { break None };
            scanned += read.len();
            let told = |event: &Recorded| match &event.event.what {
                // That it is still down is told again and again, and changes nothing.
                What::Changed(change) => change.is_transition(),
                What::ScopeChanged(_) | What::DeadlineExtended(_) => true,
                _ => false,
            };
            items.extend(read.into_iter().filter(told));
            if items.len() > limit {
                items.truncate(limit);
                break items.last().map(|last| last.seq);
            }
            // A long calm: who asks goes on from there.
            if scanned >= SCANNED {
                break Some(oldest);
            }
            before = Some(oldest);
        };
        Ok(Part { items, next, places: self.places().await? })
    }

    /// How a monitor's rounds ended, day by day in the page's zone, oldest first. Without a range: the ninety days up
    /// to today.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a monitor that the key does not reach, [`Error::Invalid`] for a bad range.
    pub async fn days(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        from: Option<NaiveDate>,
        to: Option<NaiveDate>,
    ) -> Result<Vec<Day>> {
        let page = self.page(caller, page)?;
        let monitor = self.monitor_on(&page, id)?.value;
        let today = || day_of(self.now(), page.timezone);
        let fault = |field: &str, rule: &str| Error::from(parallax_core::refusal::Refusals::one(field, rule));
        let to = to.or_else(today).ok_or(Error::NotFound)?;
        let standard = to.checked_sub_days(chrono::Days::new(89));
        let from = from.or(standard).ok_or_else(|| fault("from", "must be a date after the year 0"))?;
        if from > to {
            return Err(fault("from", "must not be after to"));
        }
        if to.signed_duration_since(from).num_days() >= MAX_DAYS {
            return Err(fault("from", "must be at most 399 days before to"));
        }
        let mut counts = self.0.figures.days(&page, &monitor, from..=to, self.now()).await?;
        let timed = if monitor.check.kind().has_downtime() {
            let downtime = self.views(vec![id]).await.pop().and_then(|view| view.downtime);
            self.timed(&page, vec![(id, downtime)], from..=to).await?.pop()
        } else {
            None
        };
        let days = from.iter_days().take_while(|date| *date <= to);
        let day = |date| {
            let counts = counts.remove(&date).unwrap_or_default();
            let uptime = match &timed {
                Some(timed) => timed.uptime(date),
                None => counts.tally().percent(),
            };
            Day { date, counts, uptime }
        };
        Ok(days.map(day).collect())
    }

    /// What those days of a page's monitors without rounds of their own are worked out from, in the same order: each
    /// comes with when it was down, as its view has it.
    pub(super) async fn timed(
        &self,
        page: &Page,
        monitors: Vec<(MonitorId, Option<Downtime>)>,
        days: RangeInclusive<NaiveDate>,
    ) -> Result<Vec<Timed>> {
        if monitors.is_empty() {
            return Ok(Vec::new());
        }
        let (zone, now, id) = (page.timezone, self.now(), page.id);
        let first = start_of_day(*days.start(), zone).unwrap_or(now);
        let end = end_of_day(*days.end(), zone).map_or(now, |end| end.min(now));
        let starts = first - MAX_WINDOW..end;
        let timed = self.store().read(move |store| {
            let all = store.windows_of(id, None, starts.clone(), MAX_COUNTED)?;
            let timed = |(monitor, downtime): (MonitorId, Option<Downtime>)| {
                // Where the page has more than are counted, those of others take no monitor's own away.
                let own = if all.len() < MAX_COUNTED {
                    all.iter().filter(|window| window.covers(monitor)).map(|window| window.span).collect()
                } else {
                    let own = store.windows_of(id, Some(monitor), starts.clone(), MAX_COUNTED)?;
                    own.into_iter().map(|window| window.span).collect()
                };
                Ok(Timed { zone, now, downtime: downtime.unwrap_or_default(), excluded: own })
            };
            monitors.into_iter().map(timed).collect()
        });
        Ok(timed.await?)
    }

    /// The places in service, by region.
    pub fn stands(&self) -> Vec<Stand> {
        self.0.figures.stands()
    }

    /// Agents by their number.
    pub(super) async fn places(&self) -> Result<Places> {
        let agents = self.store().read(|store| store.agents()).await?;
        Ok(agents.into_iter().map(|agent| (agent.value.place, agent.value)).collect())
    }

    /// What the journal keeps of those of the rounds that were no plain pass.
    async fn reports(
        &self,
        id: MonitorId,
        readings: &[Reading],
    ) -> Result<BTreeMap<(Region, u64), RoundReport>> {
        let odd = |reading: &&Reading| reading.word != parallax_core::observation::Word::Passed;
        let Some(oldest) = readings.iter().filter(odd).map(|reading| reading.due).min() else {
            return Ok(BTreeMap::new());
        };
        let (mut reports, mut before, mut scanned) = (BTreeMap::new(), None, 0);
        loop {
            let read = self.store().read(move |store| store.events_of(id, before, READ_AT_ONCE)).await?;
            let Some(last) = read.last() else { return Ok(reports) };
            let is_past = last.event.at < oldest - ROUND_TAKES;
            before = Some(last.seq);
            scanned += read.len();
            for event in read {
                let found = match event.event.what {
                    What::Round(report) => vec![report],
                    What::Changed(change) => change.evidence,
                    _ => Vec::new(),
                };
                for report in found {
                    if let Some(round) = report.round {
                        reports.entry((report.region, round)).or_insert(report);
                    }
                }
            }
            if is_past || scanned >= SCANNED {
                return Ok(reports);
            }
        }
    }
}
