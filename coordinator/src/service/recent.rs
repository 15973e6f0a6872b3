//! What a page's feeds and calendar are made of: its newest incidents and windows, whatever their month.

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

/// Incidents and windows of one list at most, unless more are open.
pub const RECENT: usize = 50;
/// Windows of a calendar at most: all that a page can have planned, and as many that are over.
pub const PLANNED: usize = 2 * MAX_UNFINISHED;
/// The part of each of them that a feed may tell: all updates, within the bytes that a feed gives one entry.
const SAID: Newest = Newest { updates: MAX_UPDATES, bytes: 64 * 1024 };
/// How long a calendar keeps a window that is over, in milliseconds.
const KEPT: i64 = 90 * DAY;
/// The newest by their beginning that are looked through: beside what is planned, which stands before all else.
const LOOKED: usize = MAX_UNFINISHED + 4 * RECENT;

impl Service {
    /// All of a page's open incidents and windows, and the newest fifty others of each kind; newest first.
    ///
    /// # Errors
    /// [`super::Error::Internal`] where the store can't be read.
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

    /// A page's windows with the number of the commit that wrote each of them last, newest first: those to come, those
    /// under way, and those that ended within the last ninety days.
    ///
    /// # Errors
    /// [`super::Error::Internal`] where the store can't be read.
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

    /// A page's windows that were deleted within the last thirty days.
    ///
    /// # Errors
    /// [`super::Error::Internal`] where the store can't be read.
    pub async fn cancelled_windows(&self, page: &Admitted) -> Result<Vec<CancelledWindow>> {
        let (name, now) = (cancelled_name(page.page().id), self.now());
        let found = self.store().read(move |store| store.remembered(&name)).await?;
        let mut cancelled = found.map(|found| unpacked(&found.value)).unwrap_or_default();
        cancelled.prune(now);
        Ok(cancelled.0)
    }

    /// Writes that an incident is deleted, where calendars have to learn it.
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
            // What has been open for long may have begun before all of these.
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

/// The name under which a page's deleted windows are remembered.
fn cancelled_name(page: PageId) -> String {
    format!("cancelled-windows/{page}")
}

/// The deleted windows in it; none where it can't be read, which is no reason to refuse a calendar.
fn unpacked(remembered: &Remembered) -> CancelledWindows {
    postcard::from_bytes(&remembered.answer).unwrap_or_default()
}
