//! The page view: a page with its past as visitors see it, from which public pages are rendered.

use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate};
use parallax_core::event::EventKind;
use parallax_core::id::{IncidentId, MonitorId, PageId};
use parallax_core::incident::Incident;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::outage::{Outage, OutageHistory};
use parallax_core::page::Page;
use parallax_core::page_view::{
    BUDGET_DAYS, ChartRange, HISTORY_DAYS, IncidentView, MonitorHistory, MonitorView, PageView, TimeRange,
};
use parallax_core::rollup::{day_of, start_of_day};
use parallax_core::time::{DAY, Timestamp};
use parallax_core::vantage::RegionSet;
use parallax_store::StoreRead;

use super::PublicPageService;
use super::overview::{OpenSections, PageOverview, split_open};
use crate::incidents::lists::{TruncatedIncident, UpdateLimits, list_truncated};
use crate::page_access::authorize::AuthorizedPage;
use crate::{Caller, ServiceError, ServiceResult, incidents, monitors};

/// Maximum incidents and windows in a list.
const MAX_LISTED: usize = 200;
/// Limits per incident in such a list: a card shows the newest five updates.
const LIST_LIMITS: UpdateLimits = UpdateLimits { updates: 5, bytes: 16 * 1024 };
/// Incidents that began before such a list and lasted into it: maximum listed, maximum scanned, and how long before
/// the list they may have begun.
const MAX_LASTED: usize = 50;
const MAX_LASTED_SCANNED: usize = 600;
const MAX_LOOKBACK: i64 = 90 * DAY;
/// Number of points in a page's charts.
const CHART_POINTS: usize = 48;
/// Maximum outages on a monitor's page.
const OUTAGES: usize = 50;
/// Maximum events scanned in one search for outages.
const MAX_EVENTS_SCANNED: usize = 4096;
/// Events read per query.
const READ_AT_ONCE: usize = 512;
/// Maximum deploy markers shown.
const DEPLOYS: usize = 50;

/// A monitor's detail view: a longer chart, its outages and its incidents.
#[derive(Debug, Clone)]
pub struct MonitorDetail {
    /// The page it is on.
    pub page: Page,
    /// Time at which the view was computed.
    pub now: Timestamp,
    /// The monitor.
    pub monitor: MonitorView,
    /// Period of its uptime bars and its chart.
    pub range: TimeRange,
    /// Time at which the default range changes, if the monitor's age determines it.
    pub range_until: Option<Timestamp>,
    /// Its open incidents, newest first, followed by its current and upcoming maintenance, soonest first.
    pub open: Vec<IncidentView>,
    /// Its incidents and windows of the last [`HISTORY_DAYS`], including those that lasted into that period, newest
    /// first.
    pub incidents: Vec<IncidentView>,
    /// Its outages, newest first.
    pub outages: Vec<Outage>,
    /// Deploy markers, newest first; empty if the page does not show them.
    pub deploys: Vec<parallax_core::deploy::Deploy>,
    /// Regions with an agent in service.
    pub regions: RegionSet,
}

/// Pages that changed since a position in the journal.
#[derive(Debug, Default)]
pub struct ChangedPages {
    /// Each page with the last event that concerns it.
    pub pages: BTreeMap<PageId, u64>,
    /// The last event that was read.
    pub last_event: u64,
    /// True if that was the newest event.
    pub is_newest: bool,
}

impl PublicPageService {
    /// Lists pages that changed after that event, up to one read's length. Rounds without a state change don't count.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub async fn changes(&self, after: u64) -> ServiceResult<ChangedPages> {
        let read = self.context.store().read(move |store| store.events_after(after, READ_AT_ONCE)).await?;
        let mut changes =
            ChangedPages { last_event: after, is_newest: read.len() < READ_AT_ONCE, ..ChangedPages::default() };
        for event in read {
            changes.last_event = event.seq;
            let Some(page) = event.event.page else { continue };
            if !matches!(event.event.kind, EventKind::Round(_)) {
                changes.pages.insert(page, event.seq);
            }
        }
        Ok(changes)
    }

    /// Builds the page view with uptime bars of the chosen range, or of the default range for its age.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub async fn view(&self, page: &AuthorizedPage, requested: Option<TimeRange>) -> ServiceResult<PageView> {
        self.view_of(self.public_overview(page).await?, requested).await
    }

    /// Builds the page view of a page with settings that aren't saved, for someone who manages it.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the caller can't access.
    pub async fn unsaved_view(&self, caller: &Caller, page: Page) -> ServiceResult<PageView> {
        self.context.page(caller, page.id)?;
        self.view_of(self.overview_of(page).await?, None).await
    }

    async fn view_of(&self, overview: PageOverview, requested: Option<TimeRange>) -> ServiceResult<PageView> {
        let now = self.context.now();
        let page = &overview.page;
        // The oldest monitor determines the age of the data, however old the page is.
        let oldest_monitor = overview.monitors.iter().map(|it| it.monitor.created_at).min();
        let (range, range_until) = range_of(requested, oldest_monitor.unwrap_or(page.created_at), now);
        let windows: Vec<MaintenanceWindow> = overview
            .maintenance
            .iter()
            .filter_map(|it| MaintenanceWindow::of(&it.incident))
            .filter(|window| window.span.contains(now))
            .collect();
        let is_covered = |id| windows.iter().any(|window| window.covers(id));
        let covered: Vec<bool> = overview.monitors.iter().map(|it| is_covered(it.monitor.id)).collect();
        let chart_range = ChartRange { from: now - DAY, to: now, buckets: CHART_POINTS };
        let histories = self.monitor_histories(page, &overview.monitors, chart_range, range).await?;
        let seen = overview.monitors.into_iter().zip(histories).zip(covered);
        let monitors = seen.map(|((it, past), covered)| monitor_view(it, past, covered)).collect();
        let mut past = self.incidents_between(page, now - HISTORY_DAYS as i64 * DAY, now + 1).await?;
        past.retain(|notice| !notice.incident.is_open());
        Ok(PageView {
            now,
            range,
            range_changes_at: range_until,
            is_range_chosen: requested.is_some(),
            indicator: overview.indicator,
            monitors,
            incidents: overview.incidents.into_iter().map(incident_view).collect(),
            maintenance: overview.maintenance.into_iter().map(incident_view).collect(),
            later_maintenance: overview.later.into_iter().map(incident_view).collect(),
            past_incidents: past,
            deploys: self.deploy_markers(page).await?,
            regions: overview.regions,
            page: overview.page,
        })
    }

    /// Builds the detail view of one of a page's monitors, with uptime bars and a chart of the chosen range, or of
    /// the default range for its age.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a monitor that is not on the page.
    pub async fn monitor_detail(
        &self,
        page: &AuthorizedPage,
        id: MonitorId,
        requested: Option<TimeRange>,
    ) -> ServiceResult<MonitorDetail> {
        self.detail_of(page.page().clone(), id, requested).await
    }

    /// Builds the same view for someone who manages the page. It has the page's deploys whether visitors see them or
    /// not.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a monitor that the caller can't access.
    pub async fn managed_monitor_detail(
        &self,
        caller: &Caller,
        page: PageId,
        id: MonitorId,
        requested: Option<TimeRange>,
    ) -> ServiceResult<MonitorDetail> {
        let page = Page { show_deploys: true, ..self.context.page(caller, page)? };
        self.detail_of(page, id, requested).await
    }

    async fn detail_of(&self, page: Page, id: MonitorId, requested: Option<TimeRange>) -> ServiceResult<MonitorDetail> {
        let monitor = self.context.monitor_on(&page, id)?.value;
        let now = self.context.now();
        let (range, range_until) = range_of(requested, monitor.created_at, now);
        let with_state = self.monitors.with_state(&page, vec![monitor]).await?;
        let open = self.incidents.open_incidents(page.id, parallax_core::incident::MAX_UNFINISHED).await?;
        let covers = |window: MaintenanceWindow| window.span.contains(now) && window.covers(id);
        let covered = open.iter().filter_map(|it| MaintenanceWindow::of(&it.incident)).any(covers);
        let length = range.days() as i64 * DAY;
        let chart_range = ChartRange { from: now - length, to: now, buckets: range.chart_buckets() };
        let history = self.monitor_histories(&page, &with_state, chart_range, range).await?.pop().unwrap_or_default();
        let OpenSections { incidents, maintenance, .. } = split_open(open, now);
        let mut open: Vec<IncidentView> = incidents.into_iter().chain(maintenance).map(incident_view).collect();
        open.retain(|notice| notice.affects(id));
        let mut notices = self.incidents_between(&page, now - HISTORY_DAYS as i64 * DAY, now + 1).await?;
        notices.retain(|notice| notice.affects(id));
        let with_state = with_state.into_iter().next().ok_or(ServiceError::NotFound)?;
        let outage_since = with_state.view.outage_since;
        Ok(MonitorDetail {
            now,
            monitor: monitor_view(with_state, history, covered),
            range,
            range_until,
            open,
            incidents: notices,
            outages: self.outages(id, outage_since).await?,
            deploys: self.deploy_markers(&page).await?,
            regions: self.history.regions_in_service(),
            page,
        })
    }

    /// Returns one of a page's incidents or windows.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for one that is not on the page.
    pub async fn incident(&self, page: &AuthorizedPage, id: IncidentId) -> ServiceResult<IncidentView> {
        let incident = self.context.incident_on(page.page(), id)?.value;
        self.incidents.incident_detail(incident).await.map(incident_view)
    }

    /// Lists a page's incidents and windows of a month in its time zone, including those that lasted into it, newest
    /// first; at most two hundred.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an invalid month.
    pub async fn incidents_in_month(
        &self,
        page: &AuthorizedPage,
        year: i32,
        month: u32,
    ) -> ServiceResult<Vec<IncidentView>> {
        let zone = page.page().timezone;
        let first = NaiveDate::from_ymd_opt(year, month, 1).ok_or(ServiceError::NotFound)?;
        let next = first.checked_add_months(chrono::Months::new(1)).ok_or(ServiceError::NotFound)?;
        let bounds = start_of_day(first, zone).zip(start_of_day(next, zone));
        let (from, to) = bounds.ok_or(ServiceError::NotFound)?;
        self.incidents_between(page.page(), from, to).await
    }

    /// Returns the first and last month of a page's history as years and months: from its creation, or from its
    /// oldest incident if that was entered with an earlier date, to the current month.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub async fn months(&self, page: &AuthorizedPage) -> ServiceResult<((i32, u32), (i32, u32))> {
        let (id, created) = (page.page().id, page.page().created_at);
        let oldest = self.context.store().read(move |store| store.oldest_incident(id)).await?;
        let first = oldest.map_or(created, |oldest| oldest.min(created));
        Ok((month(first, page.page()), self.this_month(page)))
    }

    /// Returns the current month in a page's time zone, as year and month.
    pub fn this_month(&self, page: &AuthorizedPage) -> (i32, u32) {
        month(self.context.now(), page.page())
    }

    /// Lists incidents and windows that began in a period or lasted into it, newest first.
    async fn incidents_between(&self, page: &Page, from: Timestamp, to: Timestamp) -> ServiceResult<Vec<IncidentView>> {
        let (id, now) = (page.id, self.context.now());
        let before = Some((to, IncidentId::from_u128(0)));
        let incidents = self.context.store().read(move |store| {
            let names = incidents::monitor_names(store, id)?;
            let mut incidents = list_truncated(store, (id, false), before, MAX_LISTED, LIST_LIMITS)?;
            if let Some((oldest, _)) = incidents.last().filter(|_| incidents.len() == MAX_LISTED) {
                incidents.extend(older_incidents_lasting_into(store, &oldest.value, from, now)?);
            }
            let is_wanted = |it: &Incident| it.started_at >= from || lasts_past(it, from, now);
            incidents.retain(|(incident, _)| is_wanted(&incident.value));
            incidents
                .into_iter()
                .map(|incident| incidents::truncated_detail(store, incident, &names))
                .collect::<parallax_store::Result<Vec<_>>>()
        });
        Ok(incidents.await?.into_iter().map(incident_view).collect())
    }

    async fn deploy_markers(&self, page: &Page) -> ServiceResult<Vec<parallax_core::deploy::Deploy>> {
        if !page.show_deploys {
            return Ok(Vec::new());
        }
        let id = page.id;
        let deploys = self.context.store().read(move |store| store.deploys_of(id, DEPLOYS)).await?;
        Ok(deploys.into_iter().map(|deploy| deploy.value).collect())
    }

    /// Lists a monitor's outages as far back as its changes are stored, newest first; `since` is the start of the
    /// ongoing one.
    async fn outages(&self, id: MonitorId, since: Option<Timestamp>) -> ServiceResult<Vec<Outage>> {
        let (mut outages, mut before, mut scanned) = (OutageHistory::new(since), None, 0);
        while outages.len() < OUTAGES && scanned < MAX_EVENTS_SCANNED {
            let read = self.context.store().read(move |store| store.events_of(id, before, READ_AT_ONCE)).await?;
            let Some(oldest) = read.last() else { break };
            before = Some(oldest.seq);
            scanned += read.len();
            for event in read {
                match event.event.kind {
                    EventKind::StatusChanged(change) => outages.push_earlier_change(change),
                    EventKind::ScopeChanged(regions) => outages.push_earlier_scope(regions),
                    _ => {}
                }
            }
        }
        let mut outages = outages.into_vec();
        outages.truncate(OUTAGES);
        Ok(outages)
    }
}

/// Finds incidents of the same page that began before that incident and lasted past its start, or past `from` if that
/// is later; newest first.
fn older_incidents_lasting_into(
    store: &dyn StoreRead,
    oldest: &Incident,
    from: Timestamp,
    now: Timestamp,
) -> parallax_store::Result<Vec<TruncatedIncident>> {
    let since = oldest.started_at.max(from);
    let (mut before, mut incidents) = ((oldest.started_at, oldest.id), Vec::new());
    for _ in 0..MAX_LASTED_SCANNED / MAX_LISTED {
        let read = list_truncated(store, (oldest.page, false), Some(before), MAX_LISTED, LIST_LIMITS)?;
        let Some((last, _)) = read.last() else { break };
        before = (last.value.started_at, last.value.id);
        incidents.extend(read.into_iter().filter(|(it, _)| lasts_past(&it.value, since, now)));
        if incidents.len() >= MAX_LASTED || before.0 < since - MAX_LOOKBACK {
            break;
        }
    }
    incidents.truncate(MAX_LASTED);
    Ok(incidents)
}

fn lasts_past(incident: &Incident, at: Timestamp, now: Timestamp) -> bool {
    incident.duration_so_far(now).is_some_and(|lasted| lasted.to > at)
}

/// Returns the chosen range, or the default for data that old with the time at which it changes.
fn range_of(requested: Option<TimeRange>, created_at: Timestamp, now: Timestamp) -> (TimeRange, Option<Timestamp>) {
    requested.map_or_else(|| TimeRange::default_for(created_at, now), |range| (range, None))
}

fn month(at: Timestamp, page: &Page) -> (i32, u32) {
    day_of(at, page.timezone).map_or((1970, 1), |day| (day.year(), day.month()))
}

fn monitor_view(monitor: monitors::MonitorWithState, history: MonitorHistory, covered: bool) -> MonitorView {
    MonitorView {
        monitor: monitor.monitor,
        state: monitor.view,
        uptime_24h: monitor.statistics.uptime,
        latency_ms: monitor.statistics.latency_ms,
        in_maintenance: covered,
        history,
    }
}

pub(super) fn incident_view(detail: incidents::IncidentDetail) -> IncidentView {
    IncidentView::from(detail)
}

const _: () = assert!(BUDGET_DAYS <= HISTORY_DAYS, "the error budget is computed from the days of the uptime bars");
