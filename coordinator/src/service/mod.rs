//! The service layer: every operation and rule once, shared by the API, the dashboard and the command line.
//!
//! A [`Caller`] is an authenticated API key; what the key can't access is [`ServiceError::NotFound`], with the same work as
//! for what does not exist. Every change is one batch: the record, its preconditions, and an event. After a conflict
//! with another change it is read and decided again. Operations that no key may call are documented as called by the
//! operator.

pub mod accounts;
mod alert_settings;
pub mod authorize;
pub mod check_now;
mod confirmation_limits;
pub mod deliveries;
pub mod deploys;
pub mod destinations;
pub mod domains;
pub mod feed_data;
pub mod history;
pub mod hosts;
pub mod idempotency;
mod incident_limit;
pub mod incidents;
pub mod keys;
pub mod monitor_inspection;
mod monitor_state;
pub mod monitors;
mod notification_limits;
pub mod page_access;
mod page_index;
pub mod page_view;
pub mod pages;
pub mod password;
pub mod pings;
pub mod secret_text;
pub mod sign_in;
pub mod statistics;
pub mod store_admin;
pub mod subscriber_admin;
pub mod subscribers;
pub mod usage;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use parallax_core::event::EventKind;
use parallax_core::id::{AccountId, KeyId, MonitorId, PageId};
use parallax_core::key::ApiKey;
use parallax_core::plan::{PlanLimitError, PlanLimits};
use parallax_core::rate_limit::{FixedWindowLimit, RateExceeded};
use parallax_core::subscriber::confirmation_limit::{ConfirmationOrigin, PER_PAGE_MINUTE};
use parallax_core::time::{HOUR, MINUTE, SECOND, Timestamp};
use parallax_core::validation::ValidationErrors;

use tokio::sync::{Notify, watch};

use crate::clock::Clock;
use crate::engine::{MAX_PINGS_PER_SECOND, MachineQuerySender, PingIntake};
use crate::storage::{Batch, Store, StoreError};

use statistics::Statistics;

/// Attempts of a change that conflicts with other changes.
const TRIES: usize = 16;

/// Number of locks for changes, and so of changes that can run in parallel.
const CHANGE_LOCKS: usize = 64;

/// Minimum milliseconds between two checks on request of one monitor, or of one page's domain.
const CHECK_NOW_INTERVAL: i64 = 10 * SECOND;

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
    /// HMAC key of visitors' access tokens.
    pub access_token_key: page_access::AccessTokenKey,
}

/// The service layer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Service(Arc<ServiceInner>);

#[derive(Debug)]
struct ServiceInner {
    store: Store,
    clock: Clock,
    queries: MachineQuerySender,
    pings: PingIntake,
    /// Number of refused pings: with an unknown token, and above the rate limit.
    pings_refused: [AtomicU64; 2],
    statistics: Arc<dyn Statistics>,
    settings: ServiceSettings,
    /// Serializes the creation of monitors, pages and accounts, which compete for the next slot number or an address.
    create_lock: tokio::sync::Mutex<()>,
    /// Locks for changes, shared by id: many changes of one object queue up instead of conflicting.
    change_locks: [tokio::sync::Mutex<()>; CHANGE_LOCKS],
    /// Checks on request, by monitor.
    check_now_limit: Mutex<FixedWindowLimit<MonitorId>>,
    /// Index of key ids by hash, once it is loaded.
    key_index: Mutex<Option<BTreeMap<[u8; 32], KeyId>>>,
    /// Subscription requests that are not confirmed yet.
    pending_subscriptions: subscribers::PendingSubscriptions,
    /// Confirmation requests sent, by visitor, page and account.
    confirmation_limits: confirmation_limits::ConfirmationLimits,
    /// Accounts with more incidents than twice the largest plan's number, with their counts; `None` before the first
    /// sweep.
    excess_incidents: Mutex<Option<BTreeMap<AccountId, usize>>>,
    /// Sign-in links sent, by mailbox, page and account.
    sign_in_limit: Mutex<FixedWindowLimit<String>>,
    /// Pending domain claims, as they were last read.
    claims: Mutex<Option<domains::PendingClaims>>,
    /// Source of TXT records for domain claims.
    txt_lookup: OnceLock<Arc<dyn domains::TxtLookup>>,
    /// Source of certificate problems.
    certificate_problems: OnceLock<hosts::CertificateProblems>,
    /// Domain look-ups on request, by page.
    domain_check_limit: Mutex<FixedWindowLimit<PageId>>,
    /// Cache of public pages.
    page_index: page_index::PageIndex,
    /// The number of the last event of an edit.
    edits: watch::Receiver<u64>,
    /// Destination tests, by page.
    page_test_limit: Mutex<FixedWindowLimit<PageId>>,
    /// Destination tests, by account.
    account_test_limit: Mutex<FixedWindowLimit<AccountId>>,
    /// Notifications of subscribers, by page.
    page_notify_limit: Mutex<FixedWindowLimit<PageId>>,
    /// Notifications of subscribers, by account.
    account_notify_limit: Mutex<FixedWindowLimit<AccountId>>,
    /// Notified when deliveries are stored or become due again.
    deliveries_due: Arc<Notify>,
    /// Notified when a page is deleted and may need clearing.
    page_deleted: Notify,
    /// Time of the last recorded use of each key.
    key_last_used: Mutex<BTreeMap<KeyId, Timestamp>>,
}

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The API key.
    pub key: ApiKey,
}

/// Errors of the service layer: one variant for each error code of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The API key is missing or invalid.
    #[error("a valid API key is required")]
    Unauthenticated,
    /// A read key was used to write.
    #[error("this key may only read")]
    ReadOnly,
    /// No object with that id that the key can access.
    #[error("not found, or not accessible with this key")]
    NotFound,
    /// The input breaks rules.
    #[error("{0}")]
    Invalid(#[from] ValidationErrors),
    /// The key is bound to one page, and the operation is not about a page.
    #[error("this key is limited to one page")]
    KeyBoundToPage,
    /// The idempotency key was used with another request before.
    #[error("this Idempotency-Key was already used for another request")]
    IdempotencyKeyReused,
    /// The monitor was checked on request a moment ago.
    #[error("this monitor was just checked; try again in {seconds} seconds")]
    CheckNowTooSoon {
        /// Seconds until a retry.
        seconds: u32,
    },
    /// The page's domain was looked up on request a moment ago.
    #[error("this page's domain was just checked; try again in {seconds} seconds")]
    DomainCheckTooSoon {
        /// Seconds until a retry.
        seconds: u32,
    },
    /// The page's destinations were tested too often within a minute.
    #[error("a page's destinations can be tested {} times a minute; try again in {seconds} seconds", deliveries::TESTS)]
    PageTestLimit {
        /// Seconds until the minute is over.
        seconds: u32,
    },
    /// The page sent too many confirmation requests within a minute.
    #[error("a page can send {PER_PAGE_MINUTE} confirmation requests a minute; try again in {seconds} seconds")]
    PageConfirmationLimit {
        /// Seconds until the minute is over.
        seconds: u32,
    },
    /// The account sent too many confirmation requests within an hour.
    #[error(
        "an account can send {limit} confirmation requests an hour ({}); try again in {seconds} seconds",
        asker.description()
    )]
    AccountConfirmationLimit {
        /// Cause of the requests: visitors or the owner.
        asker: ConfirmationOrigin,
        /// The current limit.
        limit: u32,
        /// Seconds until the hour is over.
        seconds: u32,
    },
    /// The account's destinations were tested too often within an hour.
    #[error(
        "an account's destinations can be tested {} times an hour; try again in {seconds} seconds",
        deliveries::ACCOUNT_TESTS
    )]
    AccountTestLimit {
        /// Seconds until the hour is over.
        seconds: u32,
    },
    /// Subscribers were notified too often within an hour.
    #[error("{whose} can be notified {limit} times an hour; try again in {seconds} seconds, or set notify to false")]
    NotificationLimit {
        /// Subscribers of a page, or of an account.
        whose: &'static str,
        /// The limit.
        limit: u32,
        /// Seconds until the hour is over.
        seconds: u32,
    },
    /// The queue of password checks is full.
    #[error("too many passwords are being checked; try again in {seconds} seconds")]
    Busy {
        /// Seconds until a retry.
        seconds: u32,
    },
    /// No heartbeat has this ping URL.
    #[error(
        "no heartbeat has this ping URL: send pings to the monitor's `pingUrl`, alone or followed by /start, /fail, \
         /log or an exit code from 0 to 255"
    )]
    UnknownPing,
    /// The token exceeded its pings in this second.
    #[error("more than {MAX_PINGS_PER_SECOND} pings in one second")]
    TooManyPings,
    /// The plan does not allow it.
    #[error("{0}")]
    PlanLimit(#[from] PlanLimitError),
    /// The disk is full; the store has logged it.
    #[error("the disk is full")]
    DiskFull,
    /// An internal fault; the text is for the log.
    #[error("{0}")]
    Internal(String),
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        if error == StoreError::Full { Self::DiskFull } else { Self::Internal(error.to_string()) }
    }
}

/// Result of the service's operations.
pub type ServiceResult<T> = std::result::Result<T, ServiceError>;

impl Service {
    /// Creates the service. `queries` and `pings` lead to the driver, which has the monitors' current states and
    /// processes pings.
    pub fn new(
        store: Store,
        clock: Clock,
        queries: MachineQuerySender,
        pings: PingIntake,
        statistics: Arc<dyn Statistics>,
        settings: ServiceSettings,
    ) -> Self {
        let edits = store.subscribe_edits();
        Self(Arc::new(ServiceInner {
            store,
            clock,
            queries,
            pings,
            pings_refused: Default::default(),
            statistics,
            settings,
            create_lock: tokio::sync::Mutex::new(()),
            change_locks: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            check_now_limit: Mutex::new(FixedWindowLimit::new(CHECK_NOW_INTERVAL)),
            key_index: Mutex::new(None),
            pending_subscriptions: subscribers::PendingSubscriptions::default(),
            confirmation_limits: confirmation_limits::ConfirmationLimits::default(),
            excess_incidents: Mutex::default(),
            sign_in_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
            claims: Mutex::default(),
            txt_lookup: OnceLock::new(),
            certificate_problems: OnceLock::new(),
            domain_check_limit: Mutex::new(FixedWindowLimit::new(CHECK_NOW_INTERVAL)),
            page_index: page_index::PageIndex::default(),
            edits,
            page_test_limit: Mutex::new(FixedWindowLimit::new(MINUTE)),
            account_test_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
            page_notify_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
            account_notify_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
            deliveries_due: Arc::default(),
            page_deleted: Notify::new(),
            key_last_used: Mutex::new(BTreeMap::new()),
        }))
    }

    /// Address of the dashboard, the API and pings, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.0.settings.base_url
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Returns the signal for stored or due deliveries, on which the deliverer waits.
    pub fn deliveries_due(&self) -> Arc<Notify> {
        Arc::clone(&self.0.deliveries_due)
    }

    fn store(&self) -> &Store {
        &self.0.store
    }

    /// Counts an action of that key against a rate limit.
    fn check_rate<K: Ord + Clone>(
        &self,
        pace: &Mutex<FixedWindowLimit<K>>,
        times: u32,
        thing: &K,
    ) -> std::result::Result<(), RateExceeded> {
        pace.lock().unwrap_or_else(PoisonError::into_inner).admit(times, thing, self.now())
    }

    fn settings(&self) -> &ServiceSettings {
        &self.0.settings
    }

    /// Commits the batch that `decide` makes of the current state, under the lock of the `thing` with that id; after
    /// a conflict it decides again. Without a batch nothing is written.
    async fn commit_change<T, F, D>(&self, thing: u128, mut decide: D) -> ServiceResult<T>
    where
        D: FnMut() -> F,
        F: Future<Output = ServiceResult<(T, Option<Batch>)>>,
    {
        let turn = self.0.change_locks.get(usize::try_from(thing % CHANGE_LOCKS as u128).unwrap_or(0));
        let _turn = match turn {
            Some(turn) => Some(turn.lock().await),
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
    async fn commit(&self, batch: Option<Batch>) -> std::result::Result<(), StoreError> {
        let Some(batch) = batch else { return Ok(()) };
        let is_edit = batch.events.iter().any(|event| {
            matches!(event.kind, EventKind::MonitorEdited(_) | EventKind::PageEdited(_) | EventKind::Incident(_))
        });
        let committed = self.store().commit(batch).await?;
        if is_edit {
            self.await_edit(committed.last_event).await;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
