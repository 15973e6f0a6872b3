//! Pages deleted: gone for everybody with one batch, and what lies on a large one cleared away in slices after it.

use std::time::Duration;

use parallax_core::event::Edited;
use parallax_core::id::PageId;
use parallax_core::page::NOBODY;

use crate::service::once::{Done, Once};
use crate::service::{Caller, Result, Service};
use crate::storage::{self, Batch, Expect, Is, Op, Read, StoreError};

/// Monitors that one batch takes out.
const MONITORS_AT_ONCE: usize = 4096;
/// Incidents, and deploy markers, that one batch takes out.
const OTHERS_AT_ONCE: usize = 256;
/// Subscribers, and deliveries, that are left to the last batch; of more, a slice takes what the store takes out at once.
const OUTGOING_AT_ONCE: usize = 256;
/// How long a slice that failed is waited for.
const RETRY: Duration = Duration::from_secs(10);

/// Some of what lies on a page, to be taken out.
struct Slice {
    batch: Batch,
    /// Whether nothing that takes several is left after it.
    is_last: bool,
}

impl Service {
    /// Deletes a page with its monitors and the keys that are bound to it. All of it is gone for everybody with one
    /// batch. A page that holds more than a batch takes is nobody's from then on, and is cleared in slices by
    /// [`Self::keep_clearing`], also after a crash; the monitors' history follows in the store's own.
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

    /// Clears pages that were deleted, as long as the coordinator runs; begins with what the last run left.
    pub async fn keep_clearing(self) {
        loop {
            match self.clear_pages().await {
                Ok(()) => self.0.let_go.notified().await,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    error.log_retry("a deleted page can't be cleared");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Clears every page that nobody has.
    pub(in crate::service) async fn clear_pages(&self) -> storage::Result<()> {
        while self.clear_some().await? {}
        Ok(())
    }

    /// Takes out one slice of a page that nobody has; whether there was one.
    pub(in crate::service) async fn clear_some(&self) -> storage::Result<bool> {
        let pages = self.store().read(|store| store.pages_of(NOBODY)).await?;
        let Some(page) = pages.first().map(|page| page.value.id) else { return Ok(false) };
        let Slice { mut batch, is_last } = self.slice_of(page).await?;
        if is_last {
            // Whatever was being put on it while it was let go goes with it; monitors are made in the same turn.
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
