//! Change tracker: follows the event journal, records the last change of each page, and wakes its watchers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use parallax_core::id::PageId;
use parallax_service::{ServiceResult, Services};
use tokio::sync::watch;

/// Pages whose changes are tracked. If there are more, all count as changed.
const MAX_TRACKED_PAGES: usize = 65_536;

/// State of the change tracker.
#[derive(Debug)]
pub(super) struct ChangeTracker {
    events: watch::Receiver<u64>,
    /// Sequence number of the last event read.
    last_read: AtomicU64,
    read_lock: tokio::sync::Mutex<()>,
    pages: Mutex<PageChanges>,
}

#[derive(Debug, Default)]
struct PageChanges {
    /// Last event of each page.
    last_events: BTreeMap<PageId, u64>,
    /// Last event that may concern a page that is no longer in the map.
    last_unlisted: u64,
    watchers: BTreeMap<PageId, watch::Sender<u64>>,
}

impl ChangeTracker {
    /// Starts at the present end of the journal: earlier changes are in every document that is rendered.
    pub(super) fn new(service: &Services) -> Self {
        let events = service.watch_events();
        let last_read = AtomicU64::new(*events.borrow());
        Self { events, last_read, read_lock: tokio::sync::Mutex::default(), pages: Mutex::default() }
    }

    /// Sequence number of the last event read.
    pub(super) fn last_read(&self) -> u64 {
        self.last_read.load(Ordering::Acquire)
    }

    /// Last event read that concerns the page.
    pub(super) fn last_change(&self, page: PageId) -> u64 {
        let pages = self.pages();
        pages.last_events.get(&page).copied().unwrap_or(0).max(pages.last_unlisted)
    }

    /// Returns a receiver that gets each event of the page.
    pub(super) fn watch(&self, page: PageId) -> watch::Receiver<u64> {
        let mut pages = self.pages();
        pages.watchers.entry(page).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Returns true if there are unread events.
    pub(super) fn is_behind(&self) -> bool {
        *self.events.borrow() > self.last_read()
    }

    /// Reads new events.
    pub(super) async fn catch_up(&self, service: &Services) -> ServiceResult<()> {
        if !self.is_behind() {
            return Ok(());
        }
        let _guard = self.read_lock.lock().await;
        while self.is_behind() {
            let changes = service.public_pages.changes(self.last_read()).await?;
            let mut pages = self.pages();
            for (page, seq) in changes.pages {
                pages.last_events.insert(page, seq);
                if let Some(sender) = pages.watchers.get(&page) {
                    sender.send_replace(seq);
                }
            }
            if pages.last_events.len() > MAX_TRACKED_PAGES {
                pages.last_events.clear();
                pages.last_unlisted = changes.last_event;
            }
            drop(pages);
            self.last_read.store(changes.last_event, Ordering::Release);
            if changes.is_newest {
                break;
            }
        }
        Ok(())
    }

    /// Removes pages without watchers and cached documents.
    ///
    /// The set of cached pages is read under the lock, while no event can be added: no change of a page that
    /// was just cached gets lost.
    pub(super) fn prune(&self, cached_pages: impl FnOnce() -> BTreeSet<PageId>) {
        let mut pages = self.pages();
        let cached_pages = cached_pages();
        pages.watchers.retain(|_, sender| sender.receiver_count() > 0);
        pages.last_events.retain(|page, _| cached_pages.contains(page));
    }

    fn pages(&self) -> MutexGuard<'_, PageChanges> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
