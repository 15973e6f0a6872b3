//! Monitor statistics computed from the history: all monitors of a page in one read, off the async runtime.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use chrono::NaiveDate;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::confirmation::{self, ConfirmingNetworks};
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page_view::{ChartRange, LatencyChart};
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::rollup::OutcomeCounts;
use parallax_core::time::{DAY, HOUR, Timestamp};
use parallax_core::uptime::{TimeSpan, TimeSpans};
use parallax_core::vantage::{Mesh, Region, RegionSet};
use parallax_engine::history::{self, BLOCK_RETENTION_HOURS, FiguresQuery, History, HistoryError};
use parallax_engine::restore::VerdictSettings;
use parallax_mesh::AgentView;
use parallax_service::statistics::{
    CheckCursor, DailyOutcomes, MonitorStatistics, ServingAgent, SliceOutcomes, Statistics,
};
use parallax_service::{ServiceError, ServiceResult};
use parallax_store::{Store, StoreError, StoreRead};
use tokio::sync::watch;

use super::monitor_history::{self, ChartPeriod};

/// Returns the current agents.
type AgentLister = Box<dyn Fn() -> Vec<AgentView> + Send + Sync>;

/// Statistics computed from the history.
pub(super) struct HistoryStatistics {
    store: Store,
    history: Arc<History>,
    mesh: watch::Receiver<Arc<Mesh>>,
    verdict_settings: VerdictSettings,
    agents: AgentLister,
}

impl fmt::Debug for HistoryStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoryStatistics").field("verdict_settings", &self.verdict_settings).finish_non_exhaustive()
    }
}

impl HistoryStatistics {
    /// Statistics from that history, using the current mesh and agents at each call.
    pub(super) fn new(
        store: Store,
        history: Arc<History>,
        mesh: watch::Receiver<Arc<Mesh>>,
        verdict_settings: VerdictSettings,
        agents: AgentLister,
    ) -> Self {
        Self { store, history, mesh, verdict_settings, agents }
    }
}

impl Statistics for HistoryStatistics {
    fn last_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<MonitorStatistics>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitors) = (Arc::clone(&self.history), page.clone(), monitors.to_vec());
        let count = monitors.len();
        let result = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let windows = history::windows_within(read, page.id, now - DAY..now)?;
            let statistics_of = |monitor: &Monitor| {
                let covering = windows.iter().filter(|window| window.covers(monitor.id));
                let excluded: TimeSpans = covering.map(|window| window.span).collect();
                let question =
                    FiguresQuery { excluded: excluded.clone(), ..statistics_query(monitor, &page, plan, &mesh, now) };
                Ok(match history.figures(read, &question) {
                    Ok(it) => MonitorStatistics {
                        uptime: it.uptime_24h,
                        latency_ms: it.latency_ms_24h,
                        checked_regions: it.checked_regions,
                        excluded,
                    },
                    Err(error) => {
                        tracing::error!(monitor = %monitor.id, %error, "statistics can't be computed");
                        MonitorStatistics::default()
                    }
                })
            };
            monitors.iter().map(statistics_of).collect()
        });
        result
            .map(move |result| {
                result.unwrap_or_else(|error| {
                    tracing::error!(%error, "statistics can't be read");
                    vec![MonitorStatistics::default(); count]
                })
            })
            .boxed()
    }

    fn readings<'a>(
        &'a self,
        monitor: &'a Monitor,
        after: CheckCursor,
        limit: usize,
    ) -> BoxFuture<'a, ServiceResult<Vec<Reading>>> {
        let (history, slot_and_id, created_at) =
            (Arc::clone(&self.history), (monitor.slot, monitor.id), monitor.created_at);
        let query = self.store.read(move |read| {
            newest_readings(&history, read, slot_and_id, created_at, after, limit).map_err(StoreError::from)
        });
        query.map(|result| result.map_err(ServiceError::from)).boxed()
    }

    fn days<'a>(
        &'a self,
        page: &'a Page,
        monitor: &'a Monitor,
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<BTreeMap<NaiveDate, OutcomeCounts>>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitor) = (Arc::clone(&self.history), page.clone(), monitor.clone());
        let query = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let question = statistics_query(&monitor, &page, plan, &mesh, now);
            let day_counts = monitor_history::counts_by_day(
                &history,
                read,
                (&monitor, plan),
                &page,
                (now, question.counted),
                &days,
            )?;
            let mut counts: BTreeMap<NaiveDate, OutcomeCounts> = BTreeMap::new();
            for (date, of_region) in day_counts.into_values().flatten() {
                counts.entry(date).or_default().merge(of_region);
            }
            Ok(counts)
        });
        query.map(|result| result.map_err(ServiceError::from)).boxed()
    }

    fn outcomes_by_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<Vec<DailyOutcomes>>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitors) = (Arc::clone(&self.history), page.clone(), monitors.to_vec());
        let limits = self.verdict_settings.plan_limits;
        let query = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let read_one = |monitor: &Monitor| {
                let counted = statistics_query(monitor, &page, plan, &mesh, now).counted;
                let all = (now, RegionSet::ALL);
                let counts = monitor_history::counts_by_day(&history, read, (monitor, plan), &page, all, &days)?;
                let interval = i64::from(effective_settings(monitor, &page, plan, &limits).interval_ms);
                let watched =
                    monitor_history::watched_by_day(&history, read, (monitor, interval), &page, now, &counts)?;
                Ok(DailyOutcomes { counted, by_region: counts, watched })
            };
            monitors.iter().map(read_one).collect()
        });
        query.map(|result| result.map_err(ServiceError::from)).boxed()
    }

    fn outcomes_by_slice<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        spans: &'a [TimeSpan],
    ) -> BoxFuture<'a, ServiceResult<Vec<SliceOutcomes>>> {
        let (history, monitors, spans) = (Arc::clone(&self.history), monitors.to_vec(), spans.to_vec());
        let mesh = Arc::clone(&self.mesh.borrow());
        let (page, limits) = (page.clone(), self.verdict_settings.plan_limits);
        let query = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let read_one = |monitor: &Monitor| {
                let interval = i64::from(effective_settings(monitor, &page, plan, &limits).interval_ms);
                let outcomes = monitor_history::counts_by_slice(&history, read, (monitor, plan, interval), &spans)?;
                let end = spans.last().map_or(monitor.created_at, |span| span.to);
                Ok(SliceOutcomes { counted: statistics_query(monitor, &page, plan, &mesh, end).counted, ..outcomes })
            };
            monitors.iter().map(read_one).collect()
        });
        query.map(|result| result.map_err(ServiceError::from)).boxed()
    }

    fn charts<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        range: ChartRange,
    ) -> BoxFuture<'a, ServiceResult<Vec<LatencyChart>>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitors) = (Arc::clone(&self.history), page.clone(), monitors.to_vec());
        let limits = self.verdict_settings.plan_limits;
        let query = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let read_one = |monitor: &Monitor| {
                let effective = effective_settings(monitor, &page, plan, &limits);
                let range = range.fitted_to(monitor.created_at, i64::from(effective.interval_ms));
                let counted = effective.judged_latency_regions(&mesh);
                let chart = monitor_history::chart(&history, read, monitor, counted, range)?;
                Ok(LatencyChart { thresholds: thresholds(&effective, counted), ..chart })
            };
            monitors.iter().map(read_one).collect()
        });
        query.map(|result| result.map_err(ServiceError::from)).boxed()
    }

    fn latency<'a>(
        &'a self,
        page: &'a Page,
        monitor: &'a Monitor,
        range: ChartRange,
        now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<LatencyChart>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitor) = (Arc::clone(&self.history), page.clone(), monitor.clone());
        let limits = self.verdict_settings.plan_limits;
        let query = self.store.read(move |read| {
            let effective = effective_settings(&monitor, &page, plan_of(read, page.account)?, &limits);
            let period = ChartPeriod::fitted(range, (monitor.created_at, i64::from(effective.interval_ms)), now);
            let counted = effective.judged_latency_regions(&mesh);
            let chart = monitor_history::banded_chart(&history, read, &monitor, counted, period)?;
            Ok(LatencyChart { thresholds: thresholds(&effective, counted), ..chart })
        });
        query.map(|result: Result<_, StoreError>| result.map_err(ServiceError::from)).boxed()
    }

    fn agents_in_service(&self) -> Vec<ServingAgent> {
        let agents = (self.agents)();
        let in_service = agents.iter().filter(|view| view.connected_since.is_some() && !view.is_quarantined);
        in_service
            .map(|view| ServingAgent {
                region: view.agent.region,
                network: view.agent.network.clone(),
                address: view.remote.map(|remote| remote.ip().to_canonical()),
            })
            .collect()
    }

    fn confirming_networks(&self) -> ConfirmingNetworks {
        ConfirmingNetworks::of(&self.mesh.borrow(), self.verdict_settings.confirmation)
    }

    fn can_confirm(&self, page: &Page, plan: Plan, monitor: &Monitor) -> bool {
        let VerdictSettings { plan_limits: limits, confirmation } = &self.verdict_settings;
        let effective = EffectiveSettings::new(monitor, page, plan, limits, *confirmation);
        confirmation::can_confirm(&effective, &self.mesh.borrow())
    }
}

/// Returns an account's plan: Free if the account was deleted in the meantime.
fn plan_of(read: &dyn StoreRead, account: AccountId) -> std::result::Result<Plan, StoreError> {
    Ok(read.account(account)?.map_or(Plan::Free, |account| account.value.plan))
}

/// Builds the statistics query; the monitor's machine decides which regions count.
fn statistics_query(monitor: &Monitor, page: &Page, plan: Plan, mesh: &Mesh, now: Timestamp) -> FiguresQuery {
    let effective = effective_settings(monitor, page, plan, &PlanLimits::default());
    let counted = if effective.kind.is_regional() { effective.counted_regions(mesh) } else { RegionSet::ALL };
    FiguresQuery {
        monitor: monitor.id,
        slot: monitor.slot,
        counted,
        latency: effective.judged_latency_regions(mesh),
        excluded: TimeSpans::default(),
        now,
    }
}

/// Response time thresholds in milliseconds, of the counted regions that have one.
fn thresholds(effective: &EffectiveSettings, counted: RegionSet) -> BTreeMap<Region, u32> {
    counted.iter().filter_map(|region| Some((region, effective.threshold(region)?))).collect()
}

/// Effective settings of a monitor as its machine has them, except confirmation; the interval needs the real plan
/// limits.
fn effective_settings(monitor: &Monitor, page: &Page, plan: Plan, limits: &PlanLimits) -> EffectiveSettings {
    EffectiveSettings::new(monitor, page, plan, limits, ConfirmationPolicy::default())
}

/// Returns the newest readings after `after`. Scans back one hour, then four times as far, until there are enough or
/// no more.
fn newest_readings(
    history: &History,
    read: &dyn StoreRead,
    (slot, monitor): (u32, MonitorId),
    created_at: Timestamp,
    after: CheckCursor,
    limit: usize,
) -> std::result::Result<Vec<Reading>, HistoryError> {
    let (until, last) = after;
    let oldest = created_at.max(until - BLOCK_RETENTION_HOURS * HOUR) - DAY;
    if until < oldest {
        return Ok(Vec::new());
    }
    let mut span = HOUR;
    loop {
        let from = oldest.max(until - span);
        let mut readings = Vec::new();
        for region in Region::ALL {
            let samples = history.readings(read, (slot, monitor), region, from, until + 1)?;
            readings.extend(samples.into_iter().map(|sample| sample.to_reading(slot, region)));
        }
        readings.retain(|reading| reading.due < until || reading.region > last);
        if readings.len() >= limit || from == oldest {
            readings.sort_by_key(|reading| (std::cmp::Reverse(reading.due), reading.region));
            readings.truncate(limit);
            return Ok(readings);
        }
        span *= 4;
    }
}
