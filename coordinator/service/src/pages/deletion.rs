//! Deletion of pages: invisible after one batch; the contents of large pages are then deleted in slices.

use std::sync::Arc;
use std::time::Duration;

use parallax_core::event::EditKind;
use parallax_core::id::PageId;
use parallax_core::page::NO_ACCOUNT;
use parallax_store::{self as storage, Batch, Expect, Op, Presence, StoreError, StoreRead};

use super::PageService;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::{Caller, ServiceResult};

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
struct DeletionSlice {
    batch: Batch,
    /// True if no further slice is needed after it.
    is_last: bool,
}

impl PageService {
    /// Deletes a page with its monitors and the keys that are bound to it. One batch makes all of it inaccessible. A
    /// page with more contents than a batch takes is marked as deleted, and its contents are deleted in slices by
    /// [`Self::run_cleanup`], even after a crash; the store deletes the monitors' history in slices of its own.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::KeyBoundToPage` for a key that is bound to a page,
    /// `ServiceError::NotFound`.
    pub async fn delete(
        &self,
        caller: &Caller,
        id: PageId,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        self.require_admin(caller)?;
        if let Some(answer) = self.context.replayed_answer(once)? {
            return Ok(RequestOutcome::Replayed(answer));
        }
        let _making = self.context.create_lock.lock().await;
        let (outcome, keys) = self
            .context
            .commit_change(id.to_u128(), || async move {
                let page = self.context.accessible_page(caller, id)?;
                let DeletionSlice { mut batch, is_last } = self.slice_of(id).await?;
                if is_last {
                    batch.write(Op::DeletePage(id));
                } else {
                    batch = Batch::new();
                    batch.write(page.value.mark_deleted());
                }
                batch.ops.extend(self.reserve_released_host(&page.value));
                batch.expect(Expect::Page(id, Presence::At(page.revision)));
                batch.event(self.context.page_event(id, EditKind::Deleted));
                let account = page.value.account;
                let mut keys = self.context.store().read(move |store| store.keys_of(account)).await?;
                keys.retain(|key| key.value.page == Some(id));
                for key in &keys {
                    batch.write(Op::DeleteKey(key.value.id));
                }
                self.context.log_change(caller, &mut batch)?;
                self.context.store_answer(once, &(), &mut batch)?;
                Ok(((RequestOutcome::Fresh(()), keys), Some(batch)))
            })
            .await?;
        keys.iter().for_each(|key| self.keys.evict(&key.value));
        self.page_deleted.notify_one();
        Ok(outcome)
    }

    /// Deletes the contents of deleted pages, as long as the coordinator runs; starts with those left by the last
    /// run.
    pub async fn run_cleanup(self: Arc<Self>) {
        loop {
            match self.clear_deleted().await {
                Ok(()) => self.page_deleted.notified().await,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    error.log_retry("the contents of a deleted page can't be removed");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Deletes the contents of every deleted page.
    pub(crate) async fn clear_deleted(&self) -> storage::Result<()> {
        while self.clear_slice().await? {}
        Ok(())
    }

    /// Deletes one slice of a deleted page; returns whether there was one.
    pub(crate) async fn clear_slice(&self) -> storage::Result<bool> {
        let pages = self.context.store().read(|store| store.pages_of(NO_ACCOUNT)).await?;
        let Some(page) = pages.first().map(|page| page.value.id) else { return Ok(false) };
        let DeletionSlice { mut batch, is_last } = self.slice_of(page).await?;
        if is_last {
            // Objects created on it during its deletion are deleted with it; monitors are created under the same
            // lock.
            batch.write(Op::DeletePage(page)).expect(Expect::Page(page, Presence::Present));
        }
        self.context.store().commit(batch).await?;
        Ok(true)
    }

    async fn slice_of(&self, page: PageId) -> storage::Result<DeletionSlice> {
        let mut slice = self.context.store().read(move |store| read_slice(store, page)).await?;
        let monitors = slice.batch.ops.iter().filter_map(|op| match op {
            Op::DeleteMonitor(id) => Some(*id),
            _ => None,
        });
        slice.batch.events = monitors.map(|id| self.context.monitor_event(page, id, EditKind::Deleted)).collect();
        Ok(slice)
    }
}

fn read_slice(store: &dyn StoreRead, page: PageId) -> storage::Result<DeletionSlice> {
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
        batch.write(Op::ClearNotifications(page));
    }
    let is_last = monitors.len() <= MONITORS_AT_ONCE
        && incidents.len() <= OTHERS_AT_ONCE
        && deploys.len() <= OTHERS_AT_ONCE
        && subscribers.max(deliveries) <= OUTGOING_AT_ONCE;
    Ok(DeletionSlice { batch, is_last })
}
