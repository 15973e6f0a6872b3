//! The service layer: every operation and rule once, shared by the API, the dashboard and the command line.
//!
//! A [`Caller`] is an authenticated API key; what the key can't access is [`Error::NotFound`], with the same work as
//! for what does not exist. Every change is one batch: the record, its preconditions, and an event. After a conflict
//! with another change it is read and decided again. Operations that no key may call are documented as called by the
//! operator.

pub mod accounts;
mod asking;
pub mod beats;
pub mod board;
pub mod care;
pub mod deliveries;
pub mod deploys;
pub mod destinations;
pub mod domains;
pub mod doors;
pub mod figures;
pub mod gate;
pub mod history;
pub mod hosts;
mod incident_limit;
pub mod incidents;
pub mod keys;
mod known;
mod live;
pub mod look;
pub mod monitors;
mod notifying;
pub mod once;
mod pace;
pub mod pages;
pub mod password;
pub mod recent;
pub mod sign_in;
pub mod subscribers;
pub mod subscribers_owned;
mod telling;
pub mod token;
pub mod usage;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use parallax_core::event::What;
use parallax_core::id::{AccountId, KeyId, MonitorId, PageId};
use parallax_core::key::Key;
use parallax_core::plan::{PlanLimits, PlanRefusal};
use parallax_core::refusal::Refusals;
use parallax_core::subscriber::asking::{Asker, PAGE_A_MINUTE};
use parallax_core::time::{HOUR, MINUTE, SECOND, Timestamp};

use tokio::sync::{Notify, watch};

use crate::clock::Clock;
use crate::flow::{Beats, PINGS_A_SECOND, Queries};
use crate::storage::{Batch, Store, StoreError};

use figures::Figures;
use pace::{Pace, TooOften};

/// Attempts of a change that conflicts with other changes.
const TRIES: usize = 16;

/// Number of locks for changes, and so of changes that can run in parallel.
const TURNS: usize = 64;

/// Minimum milliseconds between two checks on request of one monitor, or of one page's domain.
const LOOKED_APART: i64 = 10 * SECOND;

/// Settings from the operator's configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Base URL of the dashboard, the API and pings, without a trailing slash.
    pub base_url: String,
    /// Domain under which pages have their slugs, if configured.
    pub root_domain: Option<String>,
    /// Limits of each plan.
    pub limits: PlanLimits,
    /// Allows deliveries to private networks.
    pub allow_private: bool,
    /// HMAC key of visitors' access tokens.
    pub doors: doors::DoorKey,
}

/// The service layer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Service(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    store: Store,
    clock: Clock,
    queries: Queries,
    beats: Beats,
    /// Number of refused pings: with an unknown token, and above the rate limit.
    pings_refused: [AtomicU64; 2],
    figures: Arc<dyn Figures>,
    settings: Settings,
    /// Serializes the creation of monitors, pages and accounts, which compete for the next slot number or an address.
    making: tokio::sync::Mutex<()>,
    /// Locks for changes, shared by id: many changes of one object queue up instead of conflicting.
    turns: [tokio::sync::Mutex<()>; TURNS],
    /// Checks on request, by monitor.
    looked: Mutex<Pace<MonitorId>>,
    /// Index of key ids by hash, once it is loaded.
    names: Mutex<Option<BTreeMap<[u8; 32], KeyId>>>,
    /// Subscription requests that are not confirmed yet.
    wishes: subscribers::Wishes,
    /// Confirmation requests sent, by visitor, page and account.
    asking: asking::Asking,
    /// Accounts with more incidents than twice the largest plan's number, with their counts; `None` before the first
    /// sweep.
    incidents_kept: Mutex<Option<BTreeMap<AccountId, usize>>>,
    /// Sign-in links sent, by mailbox, page and account.
    linked: Mutex<Pace<String>>,
    /// Pending domain claims, as they were last read.
    claims: Mutex<Option<domains::Claims>>,
    /// Source of TXT records for domain claims.
    lookup: OnceLock<Arc<dyn domains::Lookup>>,
    /// Source of certificate problems.
    certificates: OnceLock<hosts::Certified>,
    /// Domain look-ups on request, by page.
    domains_looked: Mutex<Pace<PageId>>,
    /// Cache of public pages.
    known: known::Known,
    /// The number of the last event of an edit.
    edits: watch::Receiver<u64>,
    /// Destination tests, by page.
    tested: Mutex<Pace<PageId>>,
    /// Destination tests, by account.
    tested_by: Mutex<Pace<AccountId>>,
    /// Notifications of subscribers, by page.
    notified: Mutex<Pace<PageId>>,
    /// Notifications of subscribers, by account.
    notified_by: Mutex<Pace<AccountId>>,
    /// Notified when deliveries are stored or become due again.
    outgoing: Arc<Notify>,
    /// Notified when a page is deleted and may need clearing.
    let_go: Notify,
    /// Time of the last recorded use of each key.
    used: Mutex<BTreeMap<KeyId, Timestamp>>,
}

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The API key.
    pub key: Key,
}

/// Errors of the service layer: one variant for each error code of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
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
    Invalid(#[from] Refusals),
    /// The key is bound to one page, and the operation is not about a page.
    #[error("this key is limited to one page")]
    OnePage,
    /// The idempotency key was used with another request before.
    #[error("this Idempotency-Key was already used for another request")]
    KeyReused,
    /// The monitor was checked on request a moment ago.
    #[error("this monitor was just checked; try again in {seconds} seconds")]
    CheckedJustNow {
        /// Seconds until a retry.
        seconds: u32,
    },
    /// The page's domain was looked up on request a moment ago.
    #[error("this page's domain was just checked; try again in {seconds} seconds")]
    DomainCheckedJustNow {
        /// Seconds until a retry.
        seconds: u32,
    },
    /// The page's destinations were tested too often within a minute.
    #[error(
        "a page's destinations can be tested {} times a minute; try again in {seconds} seconds",
        deliveries::TESTS
    )]
    TestedTooOften {
        /// Seconds until the minute is over.
        seconds: u32,
    },
    /// The page sent too many confirmation requests within a minute.
    #[error("a page can send {PAGE_A_MINUTE} confirmation requests a minute; try again in {seconds} seconds")]
    PageAsks {
        /// Seconds until the minute is over.
        seconds: u32,
    },
    /// The account sent too many confirmation requests within an hour.
    #[error(
        "an account can send {limit} confirmation requests an hour ({}); try again in {seconds} seconds",
        asker.words()
    )]
    AccountAsks {
        /// Cause of the requests: visitors or the owner.
        asker: Asker,
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
    AccountTestedTooOften {
        /// Seconds until the hour is over.
        seconds: u32,
    },
    /// Subscribers were notified too often within an hour.
    #[error(
        "{whose} can be notified {limit} times an hour; try again in {seconds} seconds, or set notify to false"
    )]
    NotifiedTooOften {
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
    #[error("more than {PINGS_A_SECOND} pings in one second")]
    TooManyPings,
    /// The plan does not allow it.
    #[error("{0}")]
    PlanLimit(#[from] PlanRefusal),
    /// The disk is full; the store has logged it.
    #[error("the disk is full")]
    DiskFull,
    /// An internal fault; the text is for the log.
    #[error("{0}")]
    Internal(String),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        if error == StoreError::Full { Self::DiskFull } else { Self::Internal(error.to_string()) }
    }
}

/// Result of the service's operations.
pub type Result<T> = std::result::Result<T, Error>;

impl Service {
    /// Creates the service. `queries` and `beats` lead to the driver, which has the monitors' current states and
    /// processes pings.
    pub fn new(
        store: Store,
        clock: Clock,
        queries: Queries,
        beats: Beats,
        figures: Arc<dyn Figures>,
        settings: Settings,
    ) -> Self {
        let edits = store.edits_seen();
        Self(Arc::new(Parts {
            store,
            clock,
            queries,
            beats,
            pings_refused: Default::default(),
            figures,
            settings,
            making: tokio::sync::Mutex::new(()),
            turns: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            looked: Mutex::new(Pace::new(LOOKED_APART)),
            names: Mutex::new(None),
            wishes: subscribers::Wishes::default(),
            asking: asking::Asking::default(),
            incidents_kept: Mutex::default(),
            linked: Mutex::new(Pace::new(HOUR)),
            claims: Mutex::default(),
            lookup: OnceLock::new(),
            certificates: OnceLock::new(),
            domains_looked: Mutex::new(Pace::new(LOOKED_APART)),
            known: known::Known::default(),
            edits,
            tested: Mutex::new(Pace::new(MINUTE)),
            tested_by: Mutex::new(Pace::new(HOUR)),
            notified: Mutex::new(Pace::new(HOUR)),
            notified_by: Mutex::new(Pace::new(HOUR)),
            outgoing: Arc::default(),
            let_go: Notify::new(),
            used: Mutex::new(BTreeMap::new()),
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
    pub fn outgoing(&self) -> Arc<Notify> {
        Arc::clone(&self.0.outgoing)
    }

    fn store(&self) -> &Store {
        &self.0.store
    }

    /// Counts an action of that key against a rate limit.
    fn paced<K: Ord + Clone>(
        &self,
        pace: &Mutex<Pace<K>>,
        times: u32,
        thing: &K,
    ) -> std::result::Result<(), TooOften> {
        pace.lock().unwrap_or_else(PoisonError::into_inner).admit(times, thing, self.now())
    }

    fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Commits the batch that `decide` makes of the current state, under the lock of the `thing` with that id; after
    /// a conflict it decides again. Without a batch nothing is written.
    async fn change<T, F, D>(&self, thing: u128, mut decide: D) -> Result<T>
    where
        D: FnMut() -> F,
        F: Future<Output = Result<(T, Option<Batch>)>>,
    {
        let turn = self.0.turns.get(usize::try_from(thing % TURNS as u128).unwrap_or(0));
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
            matches!(event.what, What::MonitorEdited(_) | What::PageEdited(_) | What::Incident(_))
        });
        let committed = self.store().commit(batch).await?;
        if is_edit {
            self.followed(committed.last_event).await;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
