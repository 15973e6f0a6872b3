//! Data for a page's feeds and calendar: its newest incidents and windows, whatever their month.

use std::collections::BTreeMap;

use parallax_core::incident::cancelled::CancelledWindow;
use parallax_core::incident::{IncidentKind, MAX_UNFINISHED, MAX_UPDATES};
use parallax_core::page_view::IncidentView;
use parallax_core::time::DAY;

use super::PublicPageService;
use super::page_view::incident_view;
use crate::incidents::lists::{TruncatedIncident, UpdateLimits, list_truncated};
use crate::page_access::authorize::AuthorizedPage;
use crate::{ServiceResult, incidents};

/// Maximum closed incidents and windows of each kind in a feed.
pub(super) const RECENT: usize = 50;
/// Maximum windows in a calendar: all that a page can have planned, and as many past ones.
pub(super) const MAX_CALENDAR_WINDOWS: usize = 2 * MAX_UNFINISHED;
/// Limits per incident in a feed: all updates, within the bytes that a feed entry may have.
const FEED_LIMITS: UpdateLimits = UpdateLimits { updates: MAX_UPDATES, bytes: 64 * 1024 };
/// Milliseconds for which a past window stays in the calendar.
const CALENDAR_RETENTION: i64 = 90 * DAY;
/// Maximum incidents scanned, newest start first; planned ones come before all others.
const MAX_SCANNED: usize = MAX_UNFINISHED + 4 * RECENT;

impl PublicPageService {
    /// Lists all of a page's open incidents and windows, and the newest fifty others of each kind; newest first.
    ///
    /// # Errors
    /// [`crate::ServiceError::Internal`] if the store can't be read.
    pub async fn recent_incidents(&self, page: &AuthorizedPage) -> ServiceResult<Vec<IncidentView>> {
        let incidents = self.newest_incidents(page).await?;
        let mut counts: BTreeMap<IncidentKind, usize> = BTreeMap::new();
        let is_wanted = |notice: &IncidentView| {
            let count = counts.entry(notice.incident.kind).or_default();
            *count += usize::from(!notice.incident.is_open());
            notice.incident.is_open() || *count <= RECENT
        };
        let notices = incidents.into_iter().map(|(_, notice)| notice);
        Ok(notices.filter(is_wanted).collect())
    }

    /// Lists a page's windows with the number of the commit that last wrote each, newest first: upcoming and current
    /// ones, and those that ended within the last ninety days.
    ///
    /// # Errors
    /// [`crate::ServiceError::Internal`] if the store can't be read.
    pub async fn calendar_windows(&self, page: &AuthorizedPage) -> ServiceResult<Vec<(u64, IncidentView)>> {
        let since = self.context.now() - CALENDAR_RETENTION;
        let mut incidents = self.newest_incidents(page).await?;
        incidents.retain(|(_, notice)| {
            let ended = notice.incident.resolved_at.or(notice.incident.ends_at);
            notice.incident.kind == IncidentKind::Maintenance && ended.is_some_and(|ended| ended >= since)
        });
        incidents.truncate(MAX_CALENDAR_WINDOWS);
        Ok(incidents)
    }

    /// Lists a page's windows that were deleted within the last thirty days.
    ///
    /// # Errors
    /// [`crate::ServiceError::Internal`] if the store can't be read.
    pub async fn cancelled_windows(&self, page: &AuthorizedPage) -> ServiceResult<Vec<CancelledWindow>> {
        self.incidents.cancelled_windows_of(page.page().id).await
    }

    async fn newest_incidents(&self, page: &AuthorizedPage) -> ServiceResult<Vec<(u64, IncidentView)>> {
        let id = page.page().id;
        let incidents = self.context.store().read(move |store| {
            let names = incidents::monitor_names(store, id)?;
            let mut incidents = list_truncated(store, (id, false), None, MAX_SCANNED, FEED_LIMITS)?;
            // Incidents that have been open for long may have started before all of these.
            let open = list_truncated(store, (id, true), None, MAX_UNFINISHED, FEED_LIMITS)?;
            let position = |(it, _): &TruncatedIncident| (it.value.started_at, it.value.id);
            let oldest = incidents.last().map(position);
            incidents.extend(open.into_iter().filter(|open| oldest.is_some_and(|oldest| position(open) < oldest)));
            let detail = |incident: TruncatedIncident| {
                let revision = incident.0.revision;
                Ok((revision, incident_view(incidents::truncated_detail(store, incident, &names)?)))
            };
            incidents.into_iter().map(detail).collect::<parallax_store::Result<Vec<_>>>()
        });
        Ok(incidents.await?)
    }
}
