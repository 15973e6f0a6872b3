//! What the journal says of pages: which changed, after which event, told to those who watch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use parallax_core::id::PageId;
use tokio::sync::watch;

use crate::service::{Result, Service};

/// Pages whose changes are remembered. For one more, all count as changed.
const MOST: usize = 65_536;

/// What was read of the journal.
#[derive(Debug)]
pub(super) struct Journal {
    news: watch::Receiver<u64>,
    /// The last event that was read.
    read: AtomicU64,
    reading: tokio::sync::Mutex<()>,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    /// The last event that concerned a page.
    changed: BTreeMap<PageId, u64>,
    /// The last event that may have concerned a page that is in the map no more.
    others: u64,
    watched: BTreeMap<PageId, watch::Sender<u64>>,
}

impl Journal {
    /// From this moment on: what was before is in every document that is drawn.
    pub(super) fn new(service: &Service) -> Self {
        let news = service.news();
        let read = AtomicU64::new(*news.borrow());
        Self { news, read, reading: tokio::sync::Mutex::default(), pages: Mutex::default() }
    }

    /// The last event that was read.
    pub(super) fn read_upto(&self) -> u64 {
        self.read.load(Ordering::Acquire)
    }

    /// The last event that was read and concerned the page.
    pub(super) fn changed(&self, page: PageId) -> u64 {
        let pages = self.pages();
        pages.changed.get(&page).copied().unwrap_or(0).max(pages.others)
    }

    /// Told with each event that concerns the page.
    pub(super) fn watch(&self, page: PageId) -> watch::Receiver<u64> {
        let mut pages = self.pages();
        pages.watched.entry(page).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Whether something was added since the last look.
    pub(super) fn is_behind(&self) -> bool {
        *self.news.borrow() > self.read_upto()
    }

    /// Reads what was added since the last look.
    pub(super) async fn catch_up(&self, service: &Service) -> Result<()> {
        if !self.is_behind() {
            return Ok(());
        }
        let _reading = self.reading.lock().await;
        while self.is_behind() {
            let changes = service.page_changes(self.read_upto()).await?;
            let mut pages = self.pages();
            for (page, seq) in changes.pages {
                pages.changed.insert(page, seq);
                if let Some(watched) = pages.watched.get(&page) {
                    watched.send_replace(seq);
                }
            }
            if pages.changed.len() > MOST {
                pages.changed.clear();
                pages.others = changes.upto;
            }
            drop(pages);
            self.read.store(changes.upto, Ordering::Release);
            if changes.is_end {
                break;
            }
        }
        Ok(())
    }

    /// Forgets pages that nobody watches and no document is kept of.
    ///
    /// What is kept is asked for while nothing can be added here: no change is forgotten of a page that just came.
    pub(super) fn tidy(&self, kept: impl FnOnce() -> BTreeSet<PageId>) {
        let mut pages = self.pages();
        let kept = kept();
        pages.watched.retain(|_, sender| sender.receiver_count() > 0);
        pages.changed.retain(|page, _| kept.contains(page));
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
