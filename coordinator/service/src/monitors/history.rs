//! A monitor's history: its checks, events and days, and the agents that run checks.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use chrono::NaiveDate;
use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::downtime::Downtime;
use parallax_core::event::{EventKind, RoundReport};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::incident::{MAX_COUNTED_WINDOWS, MAX_WINDOW};
use parallax_core::member::AgentRecord;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page_view::{ChartRange, LatencyChart, TimeRange};
use parallax_core::rollup::{OutcomeCounts, day_of, end_of_day, start_of_day};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::uptime::{MonitoredTime, TimeSpan, TimeSpans};
use parallax_core::validation::ValidationErrors;
use parallax_core::vantage::{Region, RegionSet, VantageNo};
pub use parallax_engine::CheckNowResult;
pub use parallax_store::JournalEvent;
use parallax_store::StoreRead;

use crate::context::ServiceContext;
use crate::statistics::{CheckCursor, ServingAgent};
use crate::{Caller, ServiceError, ServiceResult};

/// Maximum events scanned per call.
const MAX_EVENTS_SCANNED: usize = 8192;
/// Events read per query.
const READ_AT_ONCE: usize = 512;
/// Maximum days per request.
pub(crate) const MAX_DAYS: i64 = 400;
/// Maximum milliseconds between a round's due time and its event.
const MAX_ROUND_DURATION: i64 = 5 * MINUTE;

/// Agents by number, including revoked ones.
pub type AgentsByNumber = BTreeMap<VantageNo, AgentRecord>;

/// Finished scheduled round, with its details if they are still stored.
#[derive(Debug, Clone)]
pub struct CheckRecord {
    /// The reading.
    pub reading: Reading,
    /// Reports of the agents: for rounds that were not a plain pass, as long as their events are stored.
    pub report: Option<RoundReport>,
}

/// Part of a list, with a cursor.
#[derive(Debug, Clone)]
pub struct HistorySlice<T, C> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// Cursor of the next part; `None` at the end.
    pub next: Option<C>,
    /// Agents named in the items.
    pub agents: AgentsByNumber,
}

/// Statistics of one day of a monitor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MonitorDay {
    /// Its date in the page's time zone.
    pub date: NaiveDate,
    /// Round outcomes of the counted regions.
    pub counts: OutcomeCounts,
    /// Uptime in percent: the share of rounds that passed; for heartbeats and components, which have no rounds, the
    /// share of time not down. `None` without data.
    pub uptime: Option<f64>,
}

/// Downtime of a monitor, with the excluded periods.
pub(crate) struct DowntimeHistory {
    zone: chrono_tz::Tz,
    now: Timestamp,
    downtime: Downtime,
    excluded: TimeSpans,
}

impl DowntimeHistory {
    /// Computes how much of a period was watched, and how much of that the monitor was down.
    pub(crate) fn time_in(&self, window: TimeSpan) -> MonitoredTime {
        self.downtime.monitored_time(window, self.now, self.excluded.as_slice())
    }

    fn uptime(&self, date: NaiveDate) -> Option<f64> {
        let window = TimeSpan { from: start_of_day(date, self.zone)?, to: end_of_day(date, self.zone)? };
        self.time_in(window).percent()
    }
}

/// Returns true for an event that the lists of events show.
fn is_listed(event: &JournalEvent) -> bool {
    match &event.event.kind {
        // "Still down" alerts repeat without changing anything.
        EventKind::StatusChanged(change) => change.is_transition(),
        EventKind::ScopeChanged(_)
        | EventKind::DeadlineExtended(_)
        | EventKind::OutageAcknowledged(_)
        | EventKind::AcknowledgementWithdrawn(_) => true,
        _ => false,
    }
}

/// Reads the histories of monitors, and the agents that run checks. Each read is bounded.
#[derive(Debug)]
pub struct HistoryService {
    pub(super) context: Arc<ServiceContext>,
}

impl HistoryService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self { context: Arc::clone(context) }
    }

    /// Lists a monitor's scheduled rounds, newest first.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a monitor that the key can't access.
    pub async fn checks(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        after: Option<CheckCursor>,
        limit: usize,
    ) -> ServiceResult<HistorySlice<CheckRecord, CheckCursor>> {
        let page = self.context.page(caller, page)?;
        let monitor = self.context.monitor_on(&page, id)?.value;
        let from = after.unwrap_or((self.context.now() + 1, Region::Europe));
        let mut readings = self.context.statistics.readings(&monitor, from, limit.saturating_add(1)).await?;
        let has_more = readings.len() > limit;
        readings.truncate(limit);
        let next = readings.last().filter(|_| has_more).map(|last| (last.due, last.region));
        let mut reports = self.reports(id, &readings).await?;
        let items = readings
            .into_iter()
            .map(|reading| CheckRecord { report: reports.remove(&(reading.region, reading.round)), reading });
        Ok(HistorySlice { items: items.collect(), next, agents: self.context.agents_by_number().await? })
    }

    /// Lists changes of a monitor's status, of its affected regions and of a heartbeat's deadline, and acknowledgements
    /// of its outages, newest first.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a monitor that the key can't access.
    pub async fn events(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        before: Option<u64>,
        limit: usize,
    ) -> ServiceResult<HistorySlice<JournalEvent, u64>> {
        let page = self.context.page(caller, page)?;
        self.context.monitor_on(&page, id)?;
        self.newest_events(vec![id], before, limit).await
    }

    /// Lists the same changes of all monitors of a page, or of one of them, newest first. Each monitor's events are
    /// found by an index of its own: a request costs one look-up for each monitor and at most `MAX_EVENTS_SCANNED` events.
    /// A deleted monitor's events are gone.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access, [`ServiceError::Invalid`] for a monitor that is
    /// not on it.
    pub async fn page_events(
        &self,
        caller: &Caller,
        page: PageId,
        monitor: Option<MonitorId>,
        before: Option<u64>,
        limit: usize,
    ) -> ServiceResult<HistorySlice<JournalEvent, u64>> {
        let page = self.context.page(caller, page)?;
        let mut monitors = self.context.monitor_ids(&page).await?;
        if let Some(monitor) = monitor {
            monitors.retain(|id| *id == monitor);
            if monitors.is_empty() {
                return Err(ValidationErrors::single("monitor", "must be the id of a monitor of this page").into());
            }
        }
        self.newest_events(monitors.into_iter().collect(), before, limit).await
    }

    async fn newest_events(
        &self,
        monitors: Vec<MonitorId>,
        before: Option<u64>,
        limit: usize,
    ) -> ServiceResult<HistorySlice<JournalEvent, u64>> {
        let monitors: Arc<[MonitorId]> = monitors.into();
        let (mut items, mut before, mut scanned) = (Vec::new(), before, 0);
        let next = loop {
            let monitors = Arc::clone(&monitors);
            let read = move |store: &dyn StoreRead| store.events_of_many(&monitors, before, READ_AT_ONCE);
            let read = self.context.store().read(read).await?;
            let Some(oldest) = read.last().map(|event| event.seq) else { break None };
            scanned += read.len();
            items.extend(read.into_iter().filter(is_listed));
            if items.len() > limit {
                items.truncate(limit);
                break items.last().map(|last| last.seq);
            }
            // A long quiet period: the caller continues from here.
            if scanned >= MAX_EVENTS_SCANNED {
                break Some(oldest);
            }
            before = Some(oldest);
        };
        Ok(HistorySlice { items, next, agents: self.context.agents_by_number().await? })
    }

    /// Returns a monitor's round outcomes by day in the page's time zone, oldest first. Without a range: the ninety
    /// days up to today.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a monitor that the key can't access, [`ServiceError::Invalid`] for a bad range.
    pub async fn days(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        from: Option<NaiveDate>,
        to: Option<NaiveDate>,
    ) -> ServiceResult<Vec<MonitorDay>> {
        let page = self.context.page(caller, page)?;
        let monitor = self.context.monitor_on(&page, id)?.value;
        let today = || day_of(self.context.now(), page.timezone);
        let fault = |field: &str, rule: &str| ServiceError::from(ValidationErrors::single(field, rule));
        let to = to.or_else(today).ok_or(ServiceError::NotFound)?;
        let standard = to.checked_sub_days(chrono::Days::new(89));
        let from = from.or(standard).ok_or_else(|| fault("from", "must be a date after the year 0"))?;
        if from > to {
            return Err(fault("from", "must not be after to"));
        }
        if to.signed_duration_since(from).num_days() >= MAX_DAYS {
            return Err(fault("from", "must be at most 399 days before to"));
        }
        let mut counts = self.context.statistics.days(&page, &monitor, from..=to, self.context.now()).await?;
        let downtime_of_monitor = if monitor.check.kind().has_downtime() {
            let downtime = self.context.monitor_views(vec![id]).await.pop().and_then(|view| view.downtime);
            self.downtime_histories(&page, vec![(id, downtime)], from..=to).await?.pop()
        } else {
            None
        };
        let days = from.iter_days().take_while(|date| *date <= to);
        let day = |date| {
            let counts = counts.remove(&date).unwrap_or_default();
            let uptime = match &downtime_of_monitor {
                Some(downtime_of_monitor) => downtime_of_monitor.uptime(date),
                None => counts.tally().percent(),
            };
            MonitorDay { date, counts, uptime }
        };
        Ok(days.map(day).collect())
    }

    /// Returns a monitor's response times by region, of that range or as much of it as the monitor's age fills, with at
    /// most `points` points a line. Empty for a type without response times.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a monitor that the key can't access.
    pub async fn latency(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        range: TimeRange,
        points: usize,
    ) -> ServiceResult<LatencyChart> {
        let page = self.context.page(caller, page)?;
        let monitor = self.context.monitor_on(&page, id)?.value;
        let now = self.context.now();
        let range = ChartRange::ending_at(now, range, points);
        self.context.statistics.latency(&page, &monitor, range, now).await
    }

    /// Returns a monitor's response times by region between two times, with at most `points` points a line.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a monitor that the key can't access.
    pub async fn latency_between(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        (from, to): (Timestamp, Timestamp),
        points: usize,
    ) -> ServiceResult<LatencyChart> {
        let page = self.context.page(caller, page)?;
        let monitor = self.context.monitor_on(&page, id)?.value;
        let range = ChartRange { from, to, buckets: points };
        self.context.statistics.latency(&page, &monitor, range, self.context.now()).await
    }

    /// Reads the downtime of a page's monitors that have no rounds of their own, in the same order: each is given
    /// with the downtime of its view.
    pub(crate) async fn downtime_histories(
        &self,
        page: &Page,
        monitors: Vec<(MonitorId, Option<Downtime>)>,
        days: RangeInclusive<NaiveDate>,
    ) -> ServiceResult<Vec<DowntimeHistory>> {
        if monitors.is_empty() {
            return Ok(Vec::new());
        }
        let (zone, now, id) = (page.timezone, self.context.now(), page.id);
        let first = start_of_day(*days.start(), zone).unwrap_or(now);
        let end = end_of_day(*days.end(), zone).map_or(now, |end| end.min(now));
        let starts = first - MAX_WINDOW..end;
        let with_downtime = self.context.store().read(move |store| {
            let all = store.windows_of(id, None, starts.clone(), MAX_COUNTED_WINDOWS)?;
            let with_downtime = |(monitor, downtime): (MonitorId, Option<Downtime>)| {
                // If the page has more windows than the limit, read each monitor's own, so that others can't displace
                // them.
                let windows = if all.len() < MAX_COUNTED_WINDOWS {
                    all.iter().filter(|window| window.covers(monitor)).map(|window| window.span).collect()
                } else {
                    let windows = store.windows_of(id, Some(monitor), starts.clone(), MAX_COUNTED_WINDOWS)?;
                    windows.into_iter().map(|window| window.span).collect()
                };
                Ok(DowntimeHistory { zone, now, downtime: downtime.unwrap_or_default(), excluded: windows })
            };
            monitors.into_iter().map(with_downtime).collect()
        });
        Ok(with_downtime.await?)
    }

    /// Lists the agents in service by region and network.
    pub fn agents_in_service(&self) -> Vec<ServingAgent> {
        self.context.statistics.agents_in_service()
    }

    /// Returns how failures are confirmed now.
    pub fn confirming_networks(&self) -> ConfirmingNetworks {
        self.context.statistics.confirming_networks()
    }

    /// Reads the reports of those rounds that were not a plain pass from the journal.
    pub(super) async fn reports(
        &self,
        id: MonitorId,
        readings: &[Reading],
    ) -> ServiceResult<BTreeMap<(Region, u64), RoundReport>> {
        let is_not_passed = |reading: &&Reading| reading.outcome != parallax_core::observation::RoundOutcome::Passed;
        let Some(oldest) = readings.iter().filter(is_not_passed).map(|reading| reading.due).min() else {
            return Ok(BTreeMap::new());
        };
        let (mut reports, mut before, mut scanned) = (BTreeMap::new(), None, 0);
        loop {
            let read = self.context.store().read(move |store| store.events_of(id, before, READ_AT_ONCE)).await?;
            let Some(last) = read.last() else { return Ok(reports) };
            let is_past = last.event.at < oldest - MAX_ROUND_DURATION;
            before = Some(last.seq);
            scanned += read.len();
            for event in read {
                let evidence = match event.event.kind {
                    EventKind::Round(report) => vec![report],
                    EventKind::StatusChanged(change) => change.evidence,
                    _ => Vec::new(),
                };
                for report in evidence {
                    if let Some(round) = report.round {
                        reports.entry((report.region, round)).or_insert(report);
                    }
                }
            }
            if is_past || scanned >= MAX_EVENTS_SCANNED {
                return Ok(reports);
            }
        }
    }

    pub(crate) fn regions_in_service(&self) -> RegionSet {
        self.agents_in_service().into_iter().map(|agent| agent.region).collect()
    }
}
