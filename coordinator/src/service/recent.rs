//! Data for a page's feeds and calendar: its newest incidents and windows, whatever their month.

use std::collections::BTreeMap;

use parallax_core::board::Notice;
use parallax_core::id::PageId;
use parallax_core::incident::cancelled::{self, CancelledWindow, CancelledWindows};
use parallax_core::incident::{Incident, Kind, MAX_UNFINISHED, MAX_UPDATES};
use parallax_core::time::DAY;

use super::board::notice;
use super::gate::Admitted;
use super::incidents::listed::{Cut, Newest, cut};
use super::{Error, Result, Service, incidents};
use crate::storage::{Batch, Expect, Is, Op, Remembered, Versioned};

/// Maximum closed incidents and windows of each kind in a feed.
pub const RECENT: usize = 50;
/// Maximum windows in a calendar: all that a page can have planned, and as many past ones.
pub const PLANNED: usize = 2 * MAX_UNFINISHED;
/// Limits per incident in a feed: all updates, within the bytes that a feed entry may have.
const SAID: Newest = Newest { updates: MAX_UPDATES, bytes: 64 * 1024 };
/// Milliseconds for which a past window stays in the calendar.
const KEPT: i64 = 90 * DAY;
/// Maximum incidents scanned, newest start first; planned ones come before all others.
const LOOKED: usize = MAX_UNFINISHED + 4 * RECENT;

impl Service {
    /// Lists all of a page's open incidents and windows, and the newest fifty others of each kind; newest first.
    ///
    /// # Errors
    /// [`super::Error::Internal`] if the store can't be read.
    pub async fn recent(&self, page: &Admitted) -> Result<Vec<Notice>> {
        let found = self.newest(page).await?;
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        let is_wanted = |notice: &Notice| {
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
    /// [`super::Error::Internal`] if the store can't be read.
    pub async fn windows(&self, page: &Admitted) -> Result<Vec<(u64, Notice)>> {
        let since = self.now() - KEPT;
        let mut found = self.newest(page).await?;
        found.retain(|(_, notice)| {
            let ended = notice.incident.resolved_at.or(notice.incident.ends_at);
            notice.incident.kind == Kind::Maintenance && ended.is_some_and(|ended| ended >= since)
        });
        found.truncate(PLANNED);
        Ok(found)
    }

    /// Lists a page's windows that were deleted within the last thirty days.
    ///
    /// # Errors
    /// [`super::Error::Internal`] if the store can't be read.
    pub async fn cancelled_windows(&self, page: &Admitted) -> Result<Vec<CancelledWindow>> {
        let (name, now) = (cancelled_name(page.page().id), self.now());
        let found = self.store().read(move |store| store.remembered(&name)).await?;
        let mut cancelled = found.map(|found| unpacked(&found.value)).unwrap_or_default();
        cancelled.prune(now);
        Ok(cancelled.0)
    }

    /// Records a deleted window for calendars, if they need to know.
    pub(super) fn note_cancelled(&self, deleted: &Versioned<Incident>, batch: &mut Batch) -> Result<()> {
        let (name, now) = (cancelled_name(deleted.value.page), self.now());
        let before = self.store().reader().remembered(&name)?;
        let mut cancelled = before.as_ref().map(|found| unpacked(&found.value)).unwrap_or_default();
        if !cancelled.note(&deleted.value, deleted.revision, now) {
            return Ok(());
        }
        let answer = postcard::to_stdvec(&cancelled).map_err(|error| Error::Internal(error.to_string()))?;
        let is = before.map_or(Is::Absent, |found| Is::At(found.revision));
        batch.expect(Expect::Remembered(name.clone(), is));
        let remembered = Remembered { fingerprint: [0; 32], answer, expires_at: now + cancelled::KEPT };
        batch.write(Op::ForgetExpired(now)).write(Op::Remember(name, remembered));
        Ok(())
    }

    async fn newest(&self, page: &Admitted) -> Result<Vec<(u64, Notice)>> {
        let id = page.page().id;
        let found = self.store().read(move |store| {
            let names = incidents::names(store, id)?;
            let mut found = cut(store, (id, false), None, LOOKED, SAID)?;
            // Incidents that have been open for long may have started before all of these.
            let open = cut(store, (id, true), None, MAX_UNFINISHED, SAID)?;
            let place = |(it, _): &Cut| (it.value.started_at, it.value.id);
            let oldest = found.last().map(place);
            found.extend(open.into_iter().filter(|open| oldest.is_some_and(|oldest| place(open) < oldest)));
            let shown = |found: Cut| {
                let revision = found.0.revision;
                Ok((revision, notice(incidents::shown_cut(store, found, &names)?)))
            };
            found.into_iter().map(shown).collect::<crate::storage::Result<Vec<_>>>()
        });
        Ok(found.await?)
    }
}

/// The key under which a page's deleted windows are stored.
fn cancelled_name(page: PageId) -> String {
    format!("cancelled-windows/{page}")
}

/// Decodes the deleted windows; empty if that fails, so that the calendar still works.
fn unpacked(remembered: &Remembered) -> CancelledWindows {
    postcard::from_bytes(&remembered.answer).unwrap_or_default()
}
