//! Monitor statistics computed from the history: all monitors of a page in one read, off the async runtime.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use chrono::NaiveDate;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::board::{Chart, Stretch};
use parallax_core::confirm;
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::place::{Mesh, Region, RegionSet};
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::rollup::Counts;
use parallax_core::time::{DAY, HOUR, Timestamp};
use parallax_core::uptime::{Span, Spans};
use parallax_core::watch::{Confirmation, Watch};
use tokio::sync::watch;

use super::past;
use crate::flow::warmup::Judging;
use crate::history::{self, History, HistoryError, KEEP_BLOCKS, Question};
use crate::mesh::AgentView;
use crate::service::figures::{Figure, Figures, SeenByDay, SeenBySlice};
use crate::service::history::{Place, Stand};
use crate::service::{Error, Result};
use crate::storage::{Read, Store, StoreError};

/// Returns the current agents.
type Viewer = Box<dyn Fn() -> Vec<AgentView> + Send + Sync>;

/// Statistics computed from the history.
pub(super) struct FromHistory {
    store: Store,
    history: Arc<History>,
    mesh: watch::Receiver<Arc<Mesh>>,
    judging: Judging,
    agents: Viewer,
}

impl fmt::Debug for FromHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromHistory").field("judging", &self.judging).finish_non_exhaustive()
    }
}

impl FromHistory {
    /// Statistics from that history, using the current mesh and agents at each call.
    pub(super) fn new(
        store: Store,
        history: Arc<History>,
        mesh: watch::Receiver<Arc<Mesh>>,
        judging: Judging,
        agents: Viewer,
    ) -> Self {
        Self { store, history, mesh, judging, agents }
    }
}

impl Figures for FromHistory {
    fn last_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<Figure>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitors) = (Arc::clone(&self.history), page.clone(), monitors.to_vec());
        let count = monitors.len();
        let looked = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let windows = history::windows_within(read, page.id, now - DAY..now)?;
            let figure = |monitor: &Monitor| {
                let covering = windows.iter().filter(|window| window.covers(monitor.id));
                let excluded: Spans = covering.map(|window| window.span).collect();
                let question =
                    Question { excluded: excluded.clone(), ..question(monitor, &page, plan, &mesh, now) };
                Ok(match history.figures(read, &question) {
                    Ok(it) => Figure {
                        uptime: it.uptime_24h,
                        latency_ms: it.latency_ms_24h,
                        seen: it.seen,
                        excluded,
                    },
                    Err(error) => {
                        tracing::error!(monitor = %monitor.id, %error, "statistics can't be computed");
                        Figure::default()
                    }
                })
            };
            monitors.iter().map(figure).collect()
        });
        looked
            .map(move |looked| {
                looked.unwrap_or_else(|error| {
                    tracing::error!(%error, "statistics can't be read");
                    vec![Figure::default(); count]
                })
            })
            .boxed()
    }

    fn readings<'a>(
        &'a self,
        monitor: &'a Monitor,
        after: Place,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Reading>>> {
        let (history, named, made) =
            (Arc::clone(&self.history), (monitor.slot, monitor.id), monitor.created_at);
        let look = self
            .store
            .read(move |read| newest(&history, read, named, made, after, limit).map_err(StoreError::from));
        look.map(|looked| looked.map_err(Error::from)).boxed()
    }

    fn days<'a>(
        &'a self,
        page: &'a Page,
        monitor: &'a Monitor,
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<BTreeMap<NaiveDate, Counts>>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitor) = (Arc::clone(&self.history), page.clone(), monitor.clone());
        let look = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let question = question(&monitor, &page, plan, &mesh, now);
            let lanes = past::lanes(&history, read, (&monitor, plan), &page, (now, question.counted), &days)?;
            let mut counts: BTreeMap<NaiveDate, Counts> = BTreeMap::new();
            for (date, of_region) in lanes.into_values().flatten() {
                counts.entry(date).or_default().merge(of_region);
            }
            Ok(counts)
        });
        look.map(|looked| looked.map_err(Error::from)).boxed()
    }

    fn lanes<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SeenByDay>>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitors) = (Arc::clone(&self.history), page.clone(), monitors.to_vec());
        let limits = self.judging.limits;
        let look = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let of = |monitor: &Monitor| {
                let counted = question(monitor, &page, plan, &mesh, now).counted;
                let all = (now, RegionSet::ALL);
                let lanes = past::lanes(&history, read, (monitor, plan), &page, all, &days)?;
                let interval = i64::from(watch(monitor, &page, plan, &limits).interval_ms);
                let looked = past::looked_by_day(&history, read, (monitor, interval), &page, now, &lanes)?;
                Ok(SeenByDay { counted, lanes, looked })
            };
            monitors.iter().map(of).collect()
        });
        look.map(|looked| looked.map_err(Error::from)).boxed()
    }

    fn slices<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        spans: &'a [Span],
    ) -> BoxFuture<'a, Result<Vec<SeenBySlice>>> {
        let (history, monitors, spans) = (Arc::clone(&self.history), monitors.to_vec(), spans.to_vec());
        let (page, limits) = (page.clone(), self.judging.limits);
        let look = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let of = |monitor: &Monitor| {
                let interval = i64::from(watch(monitor, &page, plan, &limits).interval_ms);
                Ok(past::slices(&history, read, (monitor, plan, interval), &spans)?)
            };
            monitors.iter().map(of).collect()
        });
        look.map(|looked| looked.map_err(Error::from)).boxed()
    }

    fn charts<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        stretch: Stretch,
    ) -> BoxFuture<'a, Result<Vec<Chart>>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitors) = (Arc::clone(&self.history), page.clone(), monitors.to_vec());
        let limits = self.judging.limits;
        let look = self.store.read(move |read| {
            let plan = plan_of(read, page.account)?;
            let of = |monitor: &Monitor| {
                let watch = watch(monitor, &page, plan, &limits);
                let stretch = stretch.fitted(monitor.created_at, i64::from(watch.interval_ms));
                let counted = watch.latency(&mesh);
                let measured = |region| Some((region, watch.threshold(region)?));
                let thresholds = counted.iter().filter_map(measured).collect();
                let chart = past::chart(&history, read, monitor, counted, stretch)?;
                Ok(Chart { thresholds, ..chart })
            };
            monitors.iter().map(of).collect()
        });
        look.map(|looked| looked.map_err(Error::from)).boxed()
    }

    fn stands(&self) -> Vec<Stand> {
        let agents = (self.agents)();
        let in_service = agents.iter().filter(|view| view.connected_since.is_some() && !view.is_quarantined);
        in_service
            .map(|view| Stand {
                region: view.agent.region,
                network: view.agent.network.clone(),
                address: view.remote.map(|remote| remote.ip().to_canonical()),
            })
            .collect()
    }

    fn can_confirm(&self, page: &Page, plan: Plan, monitor: &Monitor) -> bool {
        let Judging { limits, confirmation } = &self.judging;
        let watch = Watch::new(monitor, page, plan, limits, *confirmation);
        confirm::can_confirm(&watch, &self.mesh.borrow())
    }
}

/// Returns an account's plan: Free if the account was deleted in the meantime.
fn plan_of(read: &dyn Read, account: AccountId) -> std::result::Result<Plan, StoreError> {
    Ok(read.account(account)?.map_or(Plan::Free, |account| account.value.plan))
}

/// Builds the statistics query; the monitor's machine decides which regions count.
fn question(monitor: &Monitor, page: &Page, plan: Plan, mesh: &Mesh, now: Timestamp) -> Question {
    let watch = watch(monitor, page, plan, &PlanLimits::default());
    let counted = if watch.kind.is_regional() { watch.counted(mesh) } else { RegionSet::ALL };
    Question {
        monitor: monitor.id,
        slot: monitor.slot,
        counted,
        latency: watch.latency(mesh),
        excluded: Spans::default(),
        now,
    }
}

/// Effective settings of a monitor as its machine has them, except confirmation; the interval needs the real plan
/// limits.
fn watch(monitor: &Monitor, page: &Page, plan: Plan, limits: &PlanLimits) -> Watch {
    Watch::new(monitor, page, plan, limits, Confirmation::default())
}

/// Returns the newest readings after `after`. Scans back one hour, then four times as far, until there are enough or
/// no more.
fn newest(
    history: &History,
    read: &dyn Read,
    (slot, monitor): (u32, MonitorId),
    made: Timestamp,
    after: Place,
    limit: usize,
) -> std::result::Result<Vec<Reading>, HistoryError> {
    let (until, last) = after;
    let oldest = made.max(until - KEEP_BLOCKS * HOUR) - DAY;
    if until < oldest {
        return Ok(Vec::new());
    }
    let mut span = HOUR;
    loop {
        let from = oldest.max(until - span);
        let mut found = Vec::new();
        for region in Region::ALL {
            let samples = history.readings(read, (slot, monitor), region, from, until + 1)?;
            found.extend(samples.into_iter().map(|sample| sample.reading(slot, region)));
        }
        found.retain(|reading| reading.due < until || reading.region > last);
        if found.len() >= limit || from == oldest {
            found.sort_by_key(|reading| (std::cmp::Reverse(reading.due), reading.region));
            found.truncate(limit);
            return Ok(found);
        }
        span *= 4;
    }
}
