//! Data for a page's feeds and calendar: its newest incidents and windows, whatever their month.

use std::collections::BTreeMap;

use parallax_core::id::PageId;
use parallax_core::incident::cancelled::{self, CancelledWindow, CancelledWindows};
use parallax_core::incident::{Incident, IncidentKind, MAX_UNFINISHED, MAX_UPDATES};
use parallax_core::page_view::IncidentView;
use parallax_core::time::DAY;

use super::authorize::AuthorizedPage;
use super::incidents::lists::{TruncatedIncident, UpdateLimits, list_truncated};
use super::page_view::incident_view;
use super::{Service, ServiceError, ServiceResult, incidents};
use crate::storage::{Batch, Expect, Op, Presence, StoredResponse, VersionedValue};

/// Maximum closed incidents and windows of each kind in a feed.
pub const RECENT: usize = 50;
/// Maximum windows in a calendar: all that a page can have planned, and as many past ones.
pub const MAX_CALENDAR_WINDOWS: usize = 2 * MAX_UNFINISHED;
/// Limits per incident in a feed: all updates, within the bytes that a feed entry may have.
const FEED_LIMITS: UpdateLimits = UpdateLimits { updates: MAX_UPDATES, bytes: 64 * 1024 };
/// Milliseconds for which a past window stays in the calendar.
const CALENDAR_RETENTION: i64 = 90 * DAY;
/// Maximum incidents scanned, newest start first; planned ones come before all others.
const MAX_SCANNED: usize = MAX_UNFINISHED + 4 * RECENT;

impl Service {
    /// Lists all of a page's open incidents and windows, and the newest fifty others of each kind; newest first.
    ///
    /// # Errors
    /// [`super::ServiceError::Internal`] if the store can't be read.
    pub async fn recent_incidents(&self, page: &AuthorizedPage) -> ServiceResult<Vec<IncidentView>> {
        let found = self.newest_incidents(page).await?;
        let mut counts: BTreeMap<IncidentKind, usize> = BTreeMap::new();
        let is_wanted = |notice: &IncidentView| {
            let count = counts.entry(notice.incident.kind).or_default();
            *count += usize::from(!notice.incident.is_open());
            notice.incident.is_open() || *count <= RECENT
        };
        let notices = found.into_iter().map(|(_, notice)| notice);
        Ok(notices.filter(is_wanted).collect())
    }

    /// Lists a page's windows with the number of the commit that last wrote each, newest first: upcoming and current
    /// ones, and those that ended within the last ninety days.
    ///
    /// # Errors
    /// [`super::ServiceError::Internal`] if the store can't be read.
    pub async fn calendar_windows(&self, page: &AuthorizedPage) -> ServiceResult<Vec<(u64, IncidentView)>> {
        let since = self.now() - CALENDAR_RETENTION;
        let mut found = self.newest_incidents(page).await?;
        found.retain(|(_, notice)| {
            let ended = notice.incident.resolved_at.or(notice.incident.ends_at);
            notice.incident.kind == IncidentKind::Maintenance && ended.is_some_and(|ended| ended >= since)
        });
        found.truncate(MAX_CALENDAR_WINDOWS);
        Ok(found)
    }

    /// Lists a page's windows that were deleted within the last thirty days.
    ///
    /// # Errors
    /// [`super::ServiceError::Internal`] if the store can't be read.
    pub async fn cancelled_windows(&self, page: &AuthorizedPage) -> ServiceResult<Vec<CancelledWindow>> {
        let (name, now) = (cancelled_key(page.page().id), self.now());
        let found = self.store().read(move |store| store.stored_response(&name)).await?;
        let mut cancelled = found.map(|found| decode_cancelled(&found.value)).unwrap_or_default();
        cancelled.prune(now);
        Ok(cancelled.0)
    }

    /// Records a deleted window for calendars, if they need to know.
    pub(super) fn record_cancelled(&self, deleted: &VersionedValue<Incident>, batch: &mut Batch) -> ServiceResult<()> {
        let (name, now) = (cancelled_key(deleted.value.page), self.now());
        let before = self.store().reader().stored_response(&name)?;
        let mut cancelled = before.as_ref().map(|found| decode_cancelled(&found.value)).unwrap_or_default();
        if !cancelled.record_deletion(&deleted.value, deleted.revision, now) {
            return Ok(());
        }
        let answer = postcard::to_stdvec(&cancelled).map_err(|error| ServiceError::Internal(error.to_string()))?;
        let is = before.map_or(Presence::Absent, |found| Presence::At(found.revision));
        batch.expect(Expect::StoredResponse(name.clone(), is));
        let remembered =
            StoredResponse { fingerprint: [0; 32], response: answer, expires_at: now + cancelled::LISTED_FOR };
        batch.write(Op::DeleteExpiredResponses(now)).write(Op::PutStoredResponse(name, remembered));
        Ok(())
    }

    async fn newest_incidents(&self, page: &AuthorizedPage) -> ServiceResult<Vec<(u64, IncidentView)>> {
        let id = page.page().id;
        let found = self.store().read(move |store| {
            let names = incidents::monitor_names(store, id)?;
            let mut found = list_truncated(store, (id, false), None, MAX_SCANNED, FEED_LIMITS)?;
            // Incidents that have been open for long may have started before all of these.
            let open = list_truncated(store, (id, true), None, MAX_UNFINISHED, FEED_LIMITS)?;
            let place = |(it, _): &TruncatedIncident| (it.value.started_at, it.value.id);
            let oldest = found.last().map(place);
            found.extend(open.into_iter().filter(|open| oldest.is_some_and(|oldest| place(open) < oldest)));
            let shown = |found: TruncatedIncident| {
                let revision = found.0.revision;
                Ok((revision, incident_view(incidents::truncated_detail(store, found, &names)?)))
            };
            found.into_iter().map(shown).collect::<crate::storage::Result<Vec<_>>>()
        });
        Ok(found.await?)
    }
}

/// The key under which a page's deleted windows are stored.
fn cancelled_key(page: PageId) -> String {
    format!("cancelled-windows/{page}")
}

/// Decodes the deleted windows; empty if that fails, so that the calendar still works.
fn decode_cancelled(remembered: &StoredResponse) -> CancelledWindows {
    postcard::from_bytes(&remembered.response).unwrap_or_default()
}
