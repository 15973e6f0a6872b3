//! Data of the dashboard: the pages with their worst state, what needs attention, and the list of monitors.
//!
//! Each call reads a page's records once and queries the driver once for all states. Histories are read as public
//! pages read them; none is read for the frame.

mod activity;
mod next_steps;

use std::sync::Arc;

use parallax_core::check::CheckKind;
use parallax_core::condition::{self, Condition};
use parallax_core::destination::Destination;
use parallax_core::headline::Indicator;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::incident::{Impact, IncidentKind, MAX_UNFINISHED};
use parallax_core::machine::MachineView;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::page_view::{self, UptimeSlice};
use parallax_core::time::{DAY, Timestamp};
use parallax_store::StoreRead;

pub use self::activity::{DeliveryCounts, RecentChange};
pub use self::next_steps::SetUpStep;
use crate::context::ServiceContext;
use crate::monitors::MonitorWithState;
use crate::monitors::history::HistoryService;
use crate::public_pages::PublicPageService;
use crate::public_pages::overview::PageOverview;
use crate::{Caller, ServiceResult};

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
    /// Alerts of the last 24 hours.
    pub deliveries: DeliveryCounts,
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

/// Monitors that a search found, with the summaries of all pages.
#[derive(Debug, Clone)]
pub struct SearchResult {
    /// Every page that the caller reaches, by name.
    pub pages: Vec<PageSummary>,
    /// Monitors found, the best match first.
    pub matches: Vec<SearchMatch>,
}

/// Reads the data of the dashboard's frame, overview and list of monitors.
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
        let pages = self.pages_with_states(caller).await?;
        Ok(pages.into_iter().map(|page| self.summary(page)).collect())
    }

    /// Reads every page that the caller reaches, by name, with the states of its monitors.
    async fn pages_with_states(&self, caller: &Caller) -> ServiceResult<Vec<PageWithStates>> {
        let (caller, now) = (caller.clone(), self.context.now());
        let mut pages = self.context.store().read(move |store| read_pages(store, &caller, now)).await?;
        pages.sort_by(|one, other| one.page.name.cmp(&other.page.name).then(one.page.id.cmp(&other.page.id)));
        let ids = pages.iter().flat_map(|page| page.monitors.iter().map(|monitor| monitor.id)).collect();
        let mut views = self.context.monitor_views(ids).await.into_iter();
        let regions = self.history.regions_in_service();
        let with_states = |records: PageRecords| {
            let views: Vec<MachineView> = views.by_ref().take(records.monitors.len()).collect();
            let is_stale = page_view::is_stale(regions, records.monitors.iter().zip(&views), now);
            PageWithStates { records, views, is_stale }
        };
        Ok(pages.into_iter().map(with_states).collect())
    }

    fn summary(&self, page: PageWithStates) -> PageSummary {
        let conditions: Vec<Condition> = page.conditions().collect();
        let PageWithStates { records, views, is_stale } = &page;
        let states = records.monitors.iter().zip(views);
        PageSummary {
            url: self.context.page_url(&records.page),
            indicator: page_view::page_indicator(records.impact, states, &records.windows, *is_stale),
            down: conditions.iter().filter(|condition| **condition == Condition::Down).count(),
            open_incidents: records.open_incidents,
            failing_destinations: records.failing_destinations,
            page: page.records.page,
        }
    }

    /// Returns everything that the overview of a page shows; of `pages_shown` pages, each has its share of the deliveries
    /// that are read.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a page that the caller can't access.
    pub async fn page_state(
        &self,
        caller: &Caller,
        pages: &PublicPageService,
        (id, pages_shown): (PageId, usize),
    ) -> ServiceResult<PageState> {
        let overview = pages.overview(caller, id).await?;
        let account = self.context.account_of(&overview.page)?;
        let since = self.context.now() - DAY;
        let (destinations, subscribers, deliveries) = self
            .context
            .store()
            .read(move |store| {
                let counts = activity::count_alerts(store, (id, pages_shown), since)?;
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
    /// empty text finds those with trouble. Returns them with the summaries of all pages, from the same read.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub async fn search(&self, caller: &Caller, text: &str, limit: usize) -> ServiceResult<SearchResult> {
        let wanted = text.trim().to_lowercase();
        let pages = self.pages_with_states(caller).await?;
        let mut found: Vec<(u8, SearchMatch)> = Vec::new();
        for page in &pages {
            let states = page.records.monitors.iter().zip(&page.views).zip(page.conditions());
            for ((monitor, view), condition) in states {
                let rank =
                    if wanted.is_empty() { condition.needs_attention().then_some(0) } else { rank(monitor, &wanted) };
                let Some(rank) = rank else { continue };
                let (page, monitor, view) = (page.records.page.name.clone(), monitor.clone(), view.clone());
                found.push((rank, SearchMatch { page, monitor, view, condition }));
            }
        }
        found.sort_by_key(|(rank, _)| *rank);
        found.truncate(limit);
        let matches = found.into_iter().map(|(_, found)| found).collect();
        Ok(SearchResult { pages: pages.into_iter().map(|page| self.summary(page)).collect(), matches })
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
    /// Worst impact of these, if any has one.
    impact: Option<Impact>,
    failing_destinations: usize,
}

impl PageRecords {
    fn is_covered(&self, monitor: MonitorId) -> bool {
        self.windows.iter().any(|window| window.covers(monitor))
    }
}

/// Records of a page with the state of each monitor, in the same order.
struct PageWithStates {
    records: PageRecords,
    views: Vec<MachineView>,
    is_stale: bool,
}

impl PageWithStates {
    /// Condition of each monitor, in the same order.
    fn conditions(&self) -> impl Iterator<Item = Condition> {
        self.records
            .monitors
            .iter()
            .zip(&self.views)
            .map(|(monitor, view)| Condition::of(monitor, view, self.records.is_covered(monitor.id), self.is_stale))
    }
}

fn read_pages(store: &dyn StoreRead, caller: &Caller, now: Timestamp) -> parallax_store::Result<Vec<PageRecords>> {
    let pages = store.pages_of(caller.account)?.into_iter().map(|page| page.value);
    let account = store.account(caller.account)?.map(|account| account.value);
    let read = |page: Page| {
        let open = store.incidents_of(page.id, true, None, MAX_UNFINISHED)?;
        let windows = open.iter().filter_map(|it| MaintenanceWindow::of(&it.value));
        let incidents = || open.iter().filter(|it| it.value.kind == IncidentKind::Incident);
        let on_plan = |destination: Destination| match &account {
            Some(account) => destination.on_plan(account),
            None => destination,
        };
        let destinations = store.destinations_of(page.id)?.into_iter().map(|it| on_plan(it.value));
        let has_components = account.as_ref().is_some_and(|account| account.plan.has_components());
        let paused_by_plan = |monitor: Monitor| Monitor {
            paused: monitor.paused || (monitor.check.kind() == CheckKind::Component && !has_components),
            ..monitor
        };
        Ok(PageRecords {
            monitors: store.monitors_of(page.id)?.into_iter().map(|it| paused_by_plan(it.value)).collect(),
            windows: windows.filter(|window| window.span.contains(now)).collect(),
            open_incidents: incidents().count(),
            impact: incidents().map(|it| it.value.impact).max().filter(|worst| *worst > Impact::None),
            failing_destinations: destinations.filter(condition::is_failing).count(),
            page,
        })
    };
    pages.filter(|page| caller.reaches(page)).map(read).collect()
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
