//! The overall status of a page: indicator, headline, monitors, and what is open.

use parallax_core::event::MonitorStatus;
use parallax_core::headline::{self, HeadlineCandidate, Indicator, STALE};
use parallax_core::id::PageId;
use parallax_core::incident::automatic::title_for_down;
use parallax_core::incident::{Impact, IncidentKind, MAX_UNFINISHED};
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::page::Page;
use parallax_core::page_view;
use parallax_core::time::{DAY, Timestamp};
use parallax_core::vantage::{Region, RegionSet};

use super::PublicPageService;
use crate::incidents;
use crate::monitors::MonitorWithState;
use crate::page_access::authorize::AuthorizedPage;
use crate::{Caller, ServiceResult};

/// Overall status of a page, for its visitors.
#[derive(Debug, Clone)]
pub struct PageOverview {
    /// The page.
    pub page: Page,
    /// Machine-readable overall status.
    pub indicator: Indicator,
    /// The same as a headline for people.
    pub headline: String,
    /// Its monitors in page order.
    pub monitors: Vec<MonitorWithState>,
    /// Its open incidents, newest first.
    pub incidents: Vec<incidents::IncidentDetail>,
    /// Maintenance in progress, or planned within the next week, soonest first.
    pub maintenance: Vec<incidents::IncidentDetail>,
    /// Maintenance planned for later than that, soonest first.
    pub later: Vec<incidents::IncidentDetail>,
    /// Regions with an agent in service.
    pub regions: RegionSet,
    /// True if the shown statuses are out of date: there are monitors to check, and no agent to check them.
    pub is_stale: bool,
}

impl PageOverview {
    /// Returns the end of the newest check that contributes to the overview.
    pub fn last_checked(&self) -> Option<Timestamp> {
        page_view::newest_check_at(|| self.monitors.iter().map(|it| (&it.monitor, &it.view)))
    }

    /// Returns the regions in service that checked any of the monitors in the last 24 hours.
    pub fn checked_regions(&self) -> RegionSet {
        let probed = || self.monitors.iter().filter(|it| page_view::is_probed(&it.monitor));
        let is_seen = |region: &Region| probed().any(|it| it.statistics.checked_regions.contains(*region));
        self.regions.iter().filter(is_seen).collect()
    }
}

impl PublicPageService {
    /// Returns the overall status of a page.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a page that the key can't access.
    pub async fn overview(&self, caller: &Caller, id: PageId) -> ServiceResult<PageOverview> {
        let page = self.context.page(caller, id)?;
        self.overview_of(page).await
    }

    /// Returns the overall status of a page, for its visitors.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub async fn public_overview(&self, page: &AuthorizedPage) -> ServiceResult<PageOverview> {
        self.overview_of(page.page().clone()).await
    }

    pub(super) async fn overview_of(&self, page: Page) -> ServiceResult<PageOverview> {
        let monitors = self.monitors.monitors_with_state(&page).await?;
        let now = self.context.now();
        let open = self.incidents.open_incidents(page.id, MAX_UNFINISHED).await?;
        let OpenSections { incidents, maintenance, later } = split_open(open, now);
        let running: Vec<MaintenanceWindow> = maintenance
            .iter()
            .filter_map(|it| MaintenanceWindow::of(&it.incident))
            .filter(|window| window.span.contains(now))
            .collect();
        let is_covered = |id| running.iter().any(|window| window.covers(id));
        let regions = self.history.regions_in_service();
        let looked_at = monitors.iter().map(|it| (&it.monitor, &it.view));
        let is_stale = page_view::is_stale(regions, looked_at.clone(), now);
        let uncovered = monitors.iter().filter(|it| !is_covered(it.monitor.id));
        let impact = incidents.iter().map(|it| it.incident.impact).max();
        let impact = impact.filter(|worst| *worst > Impact::None);
        let by = |impact| page_view::page_indicator(impact, looked_at.clone(), &running, is_stale);
        let (computed, indicator) = (by(None), by(impact));
        let candidates = incidents.iter().map(|it| HeadlineCandidate::of(&it.incident, &it.monitors));
        let quoted = headline::quoted_incident(candidates, computed);
        let headline = match quoted.and_then(|at| incidents.get(at)) {
            Some(it) => it.incident.title.clone(),
            None if is_stale && computed == Indicator::Unknown => STALE.to_owned(),
            None => {
                // For an automatic incident, the headline names the monitors that are down now.
                let down = uncovered.filter(|it| impact.is_some() && it.view.status == MonitorStatus::Down);
                let down: Vec<_> = down.map(|it| (it.monitor.name.as_str(), it.view.down_from)).collect();
                title_for_down(&down, page.language).unwrap_or_else(|| computed.headline().to_owned())
            }
        };
        Ok(PageOverview { page, indicator, headline, monitors, incidents, maintenance, later, regions, is_stale })
    }
}

/// A page's open incidents and windows, by section.
pub(super) struct OpenSections {
    /// Incidents, newest first.
    pub(super) incidents: Vec<incidents::IncidentDetail>,
    /// Maintenance in progress or within the next week, soonest first.
    pub(super) maintenance: Vec<incidents::IncidentDetail>,
    /// Maintenance planned for later than that, soonest first.
    pub(super) later: Vec<incidents::IncidentDetail>,
}

/// Splits open incidents and windows, given newest first, into sections.
pub(super) fn split_open(open: Vec<incidents::IncidentDetail>, now: Timestamp) -> OpenSections {
    let (incidents, mut maintenance): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|it| it.incident.kind == IncidentKind::Incident);
    maintenance.reverse();
    let is_near = |it: &incidents::IncidentDetail| it.incident.started_at <= now + 7 * DAY;
    let (maintenance, later) = maintenance.into_iter().partition(is_near);
    OpenSections { incidents, maintenance, later }
}
