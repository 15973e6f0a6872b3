//! Data of the dashboard: the pages with their worst state, what needs attention, and the list of monitors.
//!
//! A question reads each page's records once and asks the driver once for all states. Histories are read as public
//! pages read them; none is read for the frame.

use std::sync::Arc;

use parallax_core::condition::{self, Condition};
use parallax_core::delivery::DeliveryState;
use parallax_core::destination::Destination;
use parallax_core::event::EventKind;
use parallax_core::headline::Indicator;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::incident::{IncidentKind, MAX_UNFINISHED};
use parallax_core::machine::MachineView;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::monitor::Monitor;
use parallax_core::observation::RoundOutcome;
use parallax_core::page::Page;
use parallax_core::page_view::{self, UptimeSlice};
use parallax_core::time::{DAY, Timestamp};
use parallax_store::{JournalEvent, StoreRead};

use crate::context::ServiceContext;
use crate::monitors::MonitorWithState;
use crate::monitors::history::HistoryService;
use crate::public_pages::PublicPageService;
use crate::public_pages::overview::PageOverview;
use crate::{Caller, ServiceResult};

/// Maximum deliveries of a page that are counted, newest first.
const MAX_DELIVERIES: usize = 200;
/// Monitors whose newest events are read: those whose state changed last.
const RECENT_MONITORS: usize = 12;
/// Events read of each of them.
const RECENT_EVENTS: usize = 12;
/// Maximum recent changes returned.
const MAX_CHANGES: usize = 8;

/// A page as the dashboard's frame shows it.
#[derive(Debug, Clone)]
pub struct PageSummary {
    /// The page.
    pub page: Page,
    /// Its public URL.
    pub url: String,
    /// Overall status by its monitors and running windows.
    pub indicator: Indicator,
    /// Number of monitors that are down.
    pub down: usize,
    /// Number of open incidents, maintenance not counted.
    pub open_incidents: usize,
    /// Number of destinations whose deliveries fail.
    pub failing_destinations: usize,
}

/// A page with everything that its overview shows.
#[derive(Debug, Clone)]
pub struct PageState {
    /// Public URL of the page.
    pub url: String,
    /// The page with its monitors and what is open.
    pub overview: PageOverview,
    /// Condition of each monitor, in the same order.
    pub conditions: Vec<Condition>,
    /// Its destinations.
    pub destinations: Vec<Destination>,
    /// Number of its subscribers.
    pub subscribers: usize,
    /// Deliveries of the last 24 hours.
    pub deliveries: DeliveryCounts,
}

/// Deliveries of 24 hours, of the newest ones that are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    /// Number that arrived.
    pub delivered: usize,
    /// Number that wait or were given up.
    pub undelivered: usize,
    /// Milliseconds from the event to the accepted attempt, of those that arrived.
    pub durations_ms: Vec<i64>,
}

/// A recent change of a monitor.
#[derive(Debug, Clone)]
pub struct RecentChange {
    /// Page of the monitor.
    pub page: PageId,
    /// The monitor.
    pub monitor: MonitorId,
    /// The monitor's name.
    pub name: String,
    /// The event.
    pub event: JournalEvent,
}

/// A page's monitors as the list shows them.
#[derive(Debug, Clone)]
pub struct MonitorList {
    /// The page with its monitors.
    pub overview: PageOverview,
    /// Condition of each monitor, in the same order.
    pub conditions: Vec<Condition>,
    /// Last 24 hours of each monitor in hourly slices, in the same order.
    pub slices: Vec<Vec<UptimeSlice>>,
}

/// A monitor that a search found.
#[derive(Debug, Clone)]
pub struct SearchMatch {
    /// Name of its page.
    pub page: String,
    /// The monitor.
    pub monitor: Monitor,
    /// Its state.
    pub view: MachineView,
    /// Its condition.
    pub condition: Condition,
}

/// Answers the questions of the dashboard's frame, overview and list of monitors.
#[derive(Debug)]
pub struct DashboardService {
    context: Arc<ServiceContext>,
    history: Arc<HistoryService>,
}

impl DashboardService {
    pub(crate) fn new(context: &Arc<ServiceContext>, history: &Arc<HistoryService>) -> Self {
        Self { context: Arc::clone(context), history: Arc::clone(history) }
    }

    /// Returns every page that the caller reaches, by name, with the counts of the dashboard's frame.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub async fn summaries(&self, caller: &Caller) -> ServiceResult<Vec<PageSummary>> {
        let caller = caller.clone();
        let mut pages = self.context.store().read(move |store| read_pages(store, &caller)).await?;
        pages.sort_by(|one, other| one.page.name.cmp(&other.page.name).then(one.page.id.cmp(&other.page.id)));
        let ids = pages.iter().flat_map(|page| page.monitors.iter().map(|monitor| monitor.id)).collect();
        let mut views = self.context.monitor_views(ids).await.into_iter();
        let (now, regions) = (self.context.now(), self.history.regions_in_service());
        let summaries = pages.into_iter().map(|records| {
            let views: Vec<_> = views.by_ref().take(records.monitors.len()).collect();
            let shown = || records.monitors.iter().zip(&views);
            let is_stale = page_view::is_stale(regions, shown(), now);
            let is_covered = |id| records.windows.iter().any(|window| window.covers(id));
            let down = shown()
                .filter(|(monitor, view)| {
                    Condition::of(monitor, view, is_covered(monitor.id), is_stale) == Condition::Down
                })
                .count();
            let active = shown().filter(|(monitor, _)| !monitor.paused && !is_covered(monitor.id));
            let indicator = Indicator::of(None, active.map(|(_, view)| view.status), !records.windows.is_empty());
            PageSummary {
                url: self.context.page_url(&records.page),
                indicator: if is_stale && down == 0 { Indicator::Unknown } else { indicator },
                down,
                open_incidents: records.open_incidents,
                failing_destinations: records.destinations.iter().filter(|it| condition::is_failing(it)).count(),
                page: records.page,
            }
        });
        Ok(summaries.collect())
    }

    /// Returns everything that the overview of a page shows.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a page that the caller can't access.
    pub async fn page_state(&self, caller: &Caller, pages: &PublicPageService, id: PageId) -> ServiceResult<PageState> {
        let overview = pages.overview(caller, id).await?;
        let account = self.context.account_of(&overview.page)?;
        let since = self.context.now() - DAY;
        let (destinations, subscribers, deliveries) = self
            .context
            .store()
            .read(move |store| {
                let counts = count_deliveries(store, id, since)?;
                Ok((store.destinations_of(id)?, store.subscribers_count(id)?, counts))
            })
            .await?;
        Ok(PageState {
            url: self.context.page_url(&overview.page),
            conditions: conditions(&overview, self.context.now()),
            destinations: destinations.into_iter().map(|it| it.value.on_plan(&account)).collect(),
            overview,
            subscribers,
            deliveries,
        })
    }

    /// Returns the newest changes of the monitors of some pages, newest first: those of the monitors whose state
    /// changed last.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub async fn recent_changes(&self, states: &[PageState]) -> ServiceResult<Vec<RecentChange>> {
        let monitors = states.iter().flat_map(|state| &state.overview.monitors);
        let mut monitors: Vec<&MonitorWithState> = monitors.collect();
        let changed_at = |it: &MonitorWithState| it.view.since.unwrap_or(it.monitor.created_at);
        monitors.sort_by_key(|it| std::cmp::Reverse(changed_at(it)));
        let newest = monitors.into_iter().take(RECENT_MONITORS);
        let newest: Vec<_> = newest.map(|it| (it.monitor.page, it.monitor.id, it.monitor.name.clone())).collect();
        let read = self.context.store().read(move |store| {
            let mut changes = Vec::new();
            for (page, monitor, name) in newest {
                let events = store.events_of(monitor, None, RECENT_EVENTS)?.into_iter();
                let change = |event| RecentChange { page, monitor, name: name.clone(), event };
                changes.extend(events.filter(is_notable).map(change));
            }
            Ok(changes)
        });
        let mut changes = read.await?;
        changes.sort_by_key(|change| std::cmp::Reverse(change.event.seq));
        changes.truncate(MAX_CHANGES);
        Ok(changes)
    }

    /// Returns a page's monitors as the list shows them, in page order.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a page that the caller can't access.
    pub async fn monitor_list(
        &self,
        caller: &Caller,
        pages: &PublicPageService,
        id: PageId,
    ) -> ServiceResult<MonitorList> {
        let overview = pages.overview(caller, id).await?;
        let slices = pages.last_day_slices(&overview.page, &overview.monitors).await?;
        Ok(MonitorList { conditions: conditions(&overview, self.context.now()), overview, slices })
    }
}

impl DashboardService {
    /// Finds monitors by name, target, group or id, at most `limit`: first those whose names begin with the text. An
    /// empty text finds those with trouble.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub async fn search(&self, caller: &Caller, text: &str, limit: usize) -> ServiceResult<Vec<SearchMatch>> {
        let (caller, wanted) = (caller.clone(), text.trim().to_lowercase());
        let pages = self.context.store().read(move |store| read_pages(store, &caller)).await?;
        let mut found: Vec<(u8, &PageRecords, &Monitor)> = Vec::new();
        for page in &pages {
            let ranked = page.monitors.iter().filter_map(|monitor| Some((rank(monitor, &wanted)?, page, monitor)));
            found.extend(ranked);
        }
        found.sort_by_key(|(rank, ..)| *rank);
        if !wanted.is_empty() {
            found.truncate(limit);
        }
        let views = self.context.monitor_views(found.iter().map(|(.., monitor)| monitor.id).collect()).await;
        let matches = found.into_iter().zip(views).map(|((_, page, monitor), view)| {
            let is_covered = page.windows.iter().any(|window| window.covers(monitor.id));
            let condition = Condition::of(monitor, &view, is_covered, false);
            SearchMatch { page: page.page.name.clone(), monitor: monitor.clone(), view, condition }
        });
        let is_wanted = |found: &SearchMatch| !wanted.is_empty() || found.condition.needs_attention();
        Ok(matches.filter(is_wanted).take(limit).collect())
    }
}

/// Rank of a monitor in the results for a text in lower case, the best first; none if it does not match.
fn rank(monitor: &Monitor, wanted: &str) -> Option<u8> {
    let name = monitor.name.to_lowercase();
    if name.starts_with(wanted) {
        return Some(0);
    }
    if name.contains(wanted) {
        return Some(1);
    }
    let group = monitor.group.as_deref().unwrap_or_default().to_lowercase();
    let is_named = group.contains(wanted) || monitor.check.target().to_lowercase().contains(wanted);
    (is_named || monitor.id.to_string() == wanted).then_some(2)
}

/// Records of a page for its summary.
struct PageRecords {
    page: Page,
    monitors: Vec<Monitor>,
    /// Windows that are running.
    windows: Vec<MaintenanceWindow>,
    open_incidents: usize,
    destinations: Vec<Destination>,
}

fn read_pages(store: &dyn StoreRead, caller: &Caller) -> parallax_store::Result<Vec<PageRecords>> {
    let pages = store.pages_of(caller.account)?.into_iter().map(|page| page.value);
    let account = store.account(caller.account)?.map(|account| account.value);
    let read = |page: Page| {
        let open = store.incidents_of(page.id, true, None, MAX_UNFINISHED)?;
        let running = open.iter().filter(|it| it.value.is_running()).filter_map(|it| MaintenanceWindow::of(&it.value));
        let on_plan = |destination: Destination| match &account {
            Some(account) => destination.on_plan(account),
            None => destination,
        };
        let destinations = store.destinations_of(page.id)?.into_iter().map(|it| on_plan(it.value));
        Ok(PageRecords {
            monitors: store.monitors_of(page.id)?.into_iter().map(|monitor| monitor.value).collect(),
            windows: running.collect(),
            open_incidents: open.iter().filter(|it| it.value.kind == IncidentKind::Incident).count(),
            destinations: destinations.collect(),
            page,
        })
    };
    pages.filter(|page| caller.reaches(page)).map(read).collect()
}

fn count_deliveries(store: &dyn StoreRead, page: PageId, since: Timestamp) -> parallax_store::Result<DeliveryCounts> {
    let mut counts = DeliveryCounts::default();
    for delivery in store.deliveries_of(Some(page), None, MAX_DELIVERIES)? {
        let delivery = delivery.value;
        if delivery.created_at < since {
            break;
        }
        match delivery.state {
            DeliveryState::Delivered(at) => {
                counts.delivered += 1;
                counts.durations_ms.push(at.since(delivery.created_at));
            }
            DeliveryState::Waiting(_) | DeliveryState::Failed(_) => counts.undelivered += 1,
            DeliveryState::Dropped(_) => {}
        }
    }
    Ok(counts)
}

/// Returns the condition of each monitor of a page, in the same order.
fn conditions(overview: &PageOverview, now: Timestamp) -> Vec<Condition> {
    let windows = overview.maintenance.iter().filter_map(|it| MaintenanceWindow::of(&it.incident));
    let running: Vec<MaintenanceWindow> = windows.filter(|window| window.span.contains(now)).collect();
    let condition = |it: &MonitorWithState| {
        let is_covered = running.iter().any(|window| window.covers(it.monitor.id));
        Condition::of(&it.monitor, &it.view, is_covered, overview.is_stale)
    };
    overview.monitors.iter().map(condition).collect()
}

/// Returns true for events that the list of recent changes shows: rounds only if they could not make the monitor down.
fn is_notable(event: &JournalEvent) -> bool {
    match &event.event.kind {
        EventKind::StatusChanged(_) | EventKind::MonitorEdited(_) | EventKind::FlappingEnded(_) => true,
        EventKind::Round(report) => matches!(report.round_outcome, RoundOutcome::Disputed | RoundOutcome::Unconfirmed),
        _ => false,
    }
}
