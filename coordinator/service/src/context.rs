//! Context that all services share: store, clock, settings, and the commit of a change.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use parallax_core::plan::PlanLimits;
use parallax_core::rate_limit::{FixedWindowLimit, RateExceeded};
use parallax_core::time::Timestamp;
use parallax_engine::MachineQuerySender;
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, Store, StoreError};
use tokio::sync::{Notify, watch};

use super::ServiceResult;
use super::page_access::token_key::AccessTokenKey;
use super::statistics::Statistics;

/// Attempts of a change that conflicts with other changes.
pub(super) const TRIES: usize = 16;

/// Number of locks for changes, and so of changes that can run in parallel.
const CHANGE_LOCKS: usize = 64;

/// Settings from the operator's configuration.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Base URL of the dashboard, the API and pings, without a trailing slash.
    pub base_url: String,
    /// Domain under which pages have their slugs, if configured.
    pub root_domain: Option<String>,
    /// Limits of each plan.
    pub limits: PlanLimits,
    /// Allows deliveries to private networks.
    pub allow_private: bool,
    /// True if mails are sent: the operator named a mail server, or a folder.
    pub sends_mail: bool,
    /// HMAC key of visitors' access tokens.
    pub access_token_key: AccessTokenKey,
}

/// Shared by all services. Each service keeps its own state in addition.
#[derive(Debug)]
pub(super) struct ServiceContext {
    store: Store,
    clock: Clock,
    settings: ServiceSettings,
    /// Channel to the driver, which has the monitors' current states.
    pub(super) queries: MachineQuerySender,
    pub(super) statistics: Arc<dyn Statistics>,
    /// The number of the last event of an edit.
    pub(super) edits: watch::Receiver<u64>,
    /// Notified when deliveries are stored or become due again.
    pub(super) deliveries_due: Arc<Notify>,
    /// Serializes the creation of monitors, pages and accounts, which compete for the next slot number or an address.
    pub(super) create_lock: tokio::sync::Mutex<()>,
    /// Locks for changes, shared by id: many changes of one object queue up instead of conflicting.
    change_locks: [tokio::sync::Mutex<()>; CHANGE_LOCKS],
}

impl ServiceContext {
    pub(super) fn new(
        store: Store,
        clock: Clock,
        queries: MachineQuerySender,
        statistics: Arc<dyn Statistics>,
        settings: ServiceSettings,
    ) -> Self {
        let edits = store.subscribe_edits();
        Self {
            store,
            clock,
            settings,
            queries,
            statistics,
            edits,
            deliveries_due: Arc::default(),
            create_lock: tokio::sync::Mutex::new(()),
            change_locks: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
        }
    }

    pub(super) const fn store(&self) -> &Store {
        &self.store
    }

    pub(super) const fn settings(&self) -> &ServiceSettings {
        &self.settings
    }

    pub(super) fn base_url(&self) -> &str {
        &self.settings.base_url
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the number of the last event of an edit of anything.
    pub(super) fn last_edit(&self) -> u64 {
        *self.edits.borrow()
    }

    /// Counts an action of that key against a rate limit.
    pub(super) fn check_rate<K: Ord + Clone>(
        &self,
        pace: &Mutex<FixedWindowLimit<K>>,
        times: u32,
        key: &K,
    ) -> std::result::Result<(), RateExceeded> {
        pace.lock().unwrap_or_else(PoisonError::into_inner).admit(times, key, self.now())
    }

    /// Commits the batch that `decide` makes of the current state, under the lock with the id `lock_id`; after
    /// a conflict it decides again. Without a batch nothing is written.
    pub(super) async fn commit_change<T, F, D>(&self, lock_id: u128, mut decide: D) -> ServiceResult<T>
    where
        D: FnMut() -> F,
        F: Future<Output = ServiceResult<(T, Option<Batch>)>>,
    {
        let lock = self.change_locks.get(usize::try_from(lock_id % CHANGE_LOCKS as u128).unwrap_or(0));
        let _turn = match lock {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        for _ in 1..TRIES {
            let (value, batch) = decide().await?;
            match self.commit(batch).await {
                Ok(()) => return Ok(value),
                Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (value, batch) = decide().await?;
        self.commit(batch).await?;
        Ok(value)
    }

    /// Commits a batch. For an edit it also waits until the driver applies it: this answer, and every later one,
    /// shows the status after the change.
    pub(super) async fn commit(&self, batch: Option<Batch>) -> std::result::Result<(), StoreError> {
        let Some(batch) = batch else { return Ok(()) };
        #[cfg(any(test, feature = "test-world"))]
        self.assert_logged(&batch);
        let is_edit = batch.events.iter().any(|event| event.kind.is_edit());
        let committed = self.store().commit(batch).await?;
        if is_edit {
            self.await_edit(committed.last_event).await;
        }
        Ok(())
    }
}
