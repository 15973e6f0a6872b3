//! Deletion of pages: invisible after one batch; the contents of large pages are then deleted in slices.

use std::time::Duration;

use parallax_core::event::Edited;
use parallax_core::id::PageId;
use parallax_core::page::NOBODY;

use crate::service::once::{Done, Once};
use crate::service::{Caller, Result, Service};
use crate::storage::{self, Batch, Expect, Is, Op, Read, StoreError};

/// Monitors deleted per batch.
const MONITORS_AT_ONCE: usize = 4096;
/// Incidents deleted per batch, and deploy markers.
const OTHERS_AT_ONCE: usize = 256;
/// Subscribers and deliveries left for the last batch; if there are more, a slice deletes as many as the store does
/// at once.
const OUTGOING_AT_ONCE: usize = 256;
/// Pause after a failed slice.
const RETRY: Duration = Duration::from_secs(10);

/// A batch that deletes part of a page's contents.
struct Slice {
    batch: Batch,
    /// True if no further slice is needed after it.
    is_last: bool,
}

impl Service {
    /// Deletes a page with its monitors and the keys that are bound to it. One batch makes all of it inaccessible. A
    /// page with more contents than a batch takes is marked as deleted, and its contents are deleted in slices by
    /// [`Self::keep_clearing`], even after a crash; the store deletes the monitors' history in slices of its own.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::service::Error::ReadOnly), [`Error::OnePage`](crate::service::Error::OnePage) for a
    /// key that is bound to a page, [`Error::NotFound`](crate::service::Error::NotFound).
    pub async fn delete_page(&self, caller: &Caller, id: PageId, once: &Once<'_, ()>) -> Result<Done<()>> {
        self.makes_pages(caller)?;
        if let Some(answer) = self.answered(once)? {
            return Ok(Done::Before(answer));
        }
        let _making = self.0.making.lock().await;
        let (done, keys) = self
            .change(id.to_u128(), || async move {
                let page = self.reached(caller, id)?;
                let Slice { mut batch, is_last } = self.slice_of(id).await?;
                if is_last {
                    batch.write(Op::DeletePage(id));
                } else {
                    batch = Batch::new();
                    batch.write(page.value.let_go());
                }
                batch.ops.extend(self.given_up(&page.value));
                batch.expect(Expect::Page(id, Is::At(page.revision)));
                batch.event(self.page_event(id, Edited::Deleted));
                let account = page.value.account;
                let mut keys = self.store().read(move |store| store.keys_of(account)).await?;
                keys.retain(|key| key.value.page == Some(id));
                for key in &keys {
                    batch.write(Op::DeleteKey(key.value.id));
                }
                self.remember(once, &(), &mut batch)?;
                Ok(((Done::Now(()), keys), Some(batch)))
            })
            .await?;
        keys.iter().for_each(|key| self.forget_key(&key.value));
        self.0.let_go.notify_one();
        Ok(done)
    }

    /// Deletes the contents of deleted pages, as long as the coordinator runs; starts with those left by the last
    /// run.
    pub async fn keep_clearing(self) {
        loop {
            match self.clear_pages().await {
                Ok(()) => self.0.let_go.notified().await,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    error.log_retry("the contents of a deleted page can't be removed");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Deletes the contents of every deleted page.
    pub(in crate::service) async fn clear_pages(&self) -> storage::Result<()> {
        while self.clear_some().await? {}
        Ok(())
    }

    /// Deletes one slice of a deleted page; returns whether there was one.
    pub(in crate::service) async fn clear_some(&self) -> storage::Result<bool> {
        let pages = self.store().read(|store| store.pages_of(NOBODY)).await?;
        let Some(page) = pages.first().map(|page| page.value.id) else { return Ok(false) };
        let Slice { mut batch, is_last } = self.slice_of(page).await?;
        if is_last {
            // Objects created on it during its deletion are deleted with it; monitors are created under the same
            // lock.
            batch.write(Op::DeletePage(page)).expect(Expect::Page(page, Is::Present));
        }
        self.store().commit(batch).await?;
        Ok(true)
    }

    async fn slice_of(&self, page: PageId) -> storage::Result<Slice> {
        let mut slice = self.store().read(move |store| slice(store, page)).await?;
        let monitors = slice.batch.ops.iter().filter_map(|op| match op {
            Op::DeleteMonitor(id) => Some(*id),
            _ => None,
        });
        slice.batch.events = monitors.map(|id| self.monitor_event(page, id, Edited::Deleted)).collect();
        Ok(slice)
    }
}

fn slice(store: &dyn Read, page: PageId) -> storage::Result<Slice> {
    let monitors = store.monitors_of(page)?;
    let incidents = store.incidents_of(page, false, None, OTHERS_AT_ONCE + 1)?;
    let deploys = store.deploys_of(page, OTHERS_AT_ONCE + 1)?;
    let mut batch = Batch::new();
    for monitor in monitors.iter().take(MONITORS_AT_ONCE) {
        batch.write(Op::DeleteMonitor(monitor.value.id));
    }
    for incident in incidents.iter().take(OTHERS_AT_ONCE) {
        batch.write(Op::DeleteIncident(incident.value.id));
    }
    for deploy in deploys.iter().take(OTHERS_AT_ONCE) {
        batch.write(Op::DeleteDeploy(deploy.value.id));
    }
    let subscribers = store.subscribers_count(page)?;
    let deliveries = store.deliveries_of(Some(page), None, OUTGOING_AT_ONCE + 1)?.len();
    if subscribers.max(deliveries) > OUTGOING_AT_ONCE {
        batch.write(Op::ClearOutgoing(page));
    }
    let is_last = monitors.len() <= MONITORS_AT_ONCE
        && incidents.len() <= OTHERS_AT_ONCE
        && deploys.len() <= OTHERS_AT_ONCE
        && subscribers.max(deliveries) <= OUTGOING_AT_ONCE;
    Ok(Slice { batch, is_last })
}
