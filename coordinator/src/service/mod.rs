//! What a person may ask for: every rule once, for the API, the dashboard and the command line alike.
//!
//! A [`Caller`] comes of an API key; what its key does not reach is [`Error::NotFound`], found out by the same work
//! as what does not exist. Every change is one batch: the record, what must still be true, and an event. Where another
//! change came first, it is read and decided again. Calls that no key may make are marked as the operator's.

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

/// How often a change is decided again because another came first.
const TRIES: usize = 16;

/// How many things can be changed side by side, at least.
const TURNS: usize = 64;

/// Milliseconds between two looks on request at one monitor, or at one page's domain.
const LOOKED_APART: i64 = 10 * SECOND;

/// What the operator has set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address of the dashboard, the API and pings, without a trailing slash.
    pub base_url: String,
    /// Domain under which pages have their labels, where there is one.
    pub root_domain: Option<String>,
    /// What each plan allows.
    pub limits: PlanLimits,
    /// Whether deliveries may go to the operator's own networks.
    pub allow_private: bool,
    /// What proves that a visitor's pass is ours.
    pub doors: doors::DoorKey,
}

/// Everything that may be asked for. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Service(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    store: Store,
    clock: Clock,
    queries: Queries,
    beats: Beats,
    /// Pings with an unknown token, and those above their token's pace.
    pings_refused: [AtomicU64; 2],
    figures: Arc<dyn Figures>,
    settings: Settings,
    /// One monitor or account is made at a time, so that makers don't race for the next dense number or an address.
    making: tokio::sync::Mutex<()>,
    /// Changes of one thing take turns, so that a crowd of them does not end in conflicts; things share these by id.
    turns: [tokio::sync::Mutex<()>; TURNS],
    /// When monitors were last checked on request.
    looked: Mutex<Pace<MonitorId>>,
    /// Every key's id by its hash, once it was read.
    names: Mutex<Option<BTreeMap<[u8; 32], KeyId>>>,
    /// Who asked to be told of pages, and is not shown yet to want it.
    wishes: subscribers::Wishes,
    /// How many addresses were asked to confirm because of whom.
    asking: asking::Asking,
    /// Accounts with more incidents than any plan has twice, with how many each had; none before the first look.
    incidents_kept: Mutex<Option<BTreeMap<AccountId, usize>>>,
    /// How often each mailbox was sent a link to sign in by.
    linked: Mutex<Pace<String>>,
    /// The hostnames that pages ask for, as they were last read.
    claims: Mutex<Option<domains::Claims>>,
    /// Whoever looks for their records.
    lookup: OnceLock<Arc<dyn domains::Lookup>>,
    /// Whoever keeps their certificates.
    certificates: OnceLock<hosts::Certified>,
    /// When pages' domains were last looked for on request.
    domains_looked: Mutex<Pace<PageId>>,
    /// Pages that visitors asked for.
    known: known::Known,
    /// The last commit that held an edit.
    edits: watch::Receiver<u64>,
    /// How often each page's destinations were tested.
    tested: Mutex<Pace<PageId>>,
    /// How often each account's destinations were tested.
    tested_by: Mutex<Pace<AccountId>>,
    /// How often each page's subscribers were notified.
    notified: Mutex<Pace<PageId>>,
    /// How often subscribers of each account's pages were.
    notified_by: Mutex<Pace<AccountId>>,
    /// Told when deliveries were put into the store, or are due anew.
    outgoing: Arc<Notify>,
    /// Told when a page was let go, and may have to be cleared.
    let_go: Notify,
    /// When the use of a key was last noted.
    used: Mutex<BTreeMap<KeyId, Timestamp>>,
}

/// Who asks: a key that was shown to be good.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key.
    pub key: Key,
}

/// Why something is not done: one variant for each error code of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No key, or none that is good.
    #[error("a valid API key is needed")]
    Unauthenticated,
    /// A read key was used to write.
    #[error("this key may only read")]
    ReadOnly,
    /// Nothing by that id that the key reaches.
    #[error("not found, or not accessible with this key")]
    NotFound,
    /// What was sent breaks rules.
    #[error("{0}")]
    Invalid(#[from] Refusals),
    /// The key reaches one page, and what is asked for is not of a page.
    #[error("this key reaches one page only")]
    OnePage,
    /// The same idempotency key came with another request before.
    #[error("this Idempotency-Key was used for another request")]
    KeyReused,
    /// The monitor was checked on request a moment ago.
    #[error("this monitor was checked on request just now; again in {seconds} seconds")]
    CheckedJustNow {
        /// Seconds until it may be again.
        seconds: u32,
    },
    /// The page's domain was looked for on request a moment ago.
    #[error("this page's domain was looked for on request just now; again in {seconds} seconds")]
    DomainCheckedJustNow {
        /// Seconds until it may be again.
        seconds: u32,
    },
    /// The page's destinations were tested as often as a minute allows.
    #[error(
        "a page's destinations may be tested {} times a minute; again in {seconds} seconds",
        deliveries::TESTS
    )]
    TestedTooOften {
        /// Seconds until the minute is up.
        seconds: u32,
    },
    /// The page had as many addresses asked to confirm as a minute allows.
    #[error("a page may ask {PAGE_A_MINUTE} addresses a minute to confirm; again in {seconds} seconds")]
    PageAsks {
        /// Seconds until the minute is up.
        seconds: u32,
    },
    /// The account had as many addresses asked to confirm as an hour allows.
    #[error(
        "an account may ask {limit} addresses an hour to confirm ({}); again in {seconds} seconds",
        asker.words()
    )]
    AccountAsks {
        /// The one who has them asked.
        asker: Asker,
        /// How many it may ask now.
        limit: u32,
        /// Seconds until the hour is up.
        seconds: u32,
    },
    /// The account's destinations were tested as often as an hour allows.
    #[error(
        "an account's destinations may be tested {} times an hour; again in {seconds} seconds",
        deliveries::ACCOUNT_TESTS
    )]
    AccountTestedTooOften {
        /// Seconds until the hour is up.
        seconds: u32,
    },
    /// Subscribers were notified as often as an hour allows.
    #[error(
        "{whose} may be notified {limit} times an hour; again in {seconds} seconds, or at once with notify false"
    )]
    NotifiedTooOften {
        /// Subscribers of a page, or of an account.
        whose: &'static str,
        /// How often.
        limit: u32,
        /// Seconds until the hour is up.
        seconds: u32,
    },
    /// More passwords are checked than at once can be.
    #[error("too many passwords are being checked; again in {seconds} seconds")]
    Busy {
        /// Seconds after which it may be tried again.
        seconds: u32,
    },
    /// A ping's address leads to no heartbeat.
    #[error(
        "no heartbeat has this ping address: send pings to the monitor's `pingUrl`, alone or followed by /start, /fail, \
         /log or an exit code from 0 to 255"
    )]
    UnknownPing,
    /// A ping's token has brought its pings of this second.
    #[error("more than {PINGS_A_SECOND} pings in a second")]
    TooManyPings,
    /// The plan does not allow it.
    #[error("{0}")]
    PlanLimit(#[from] PlanRefusal),
    /// The disk is full, which the store has logged.
    #[error("the disk is full")]
    DiskFull,
    /// A fault on our side; the words are for the log.
    #[error("{0}")]
    Internal(String),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        if error == StoreError::Full { Self::DiskFull } else { Self::Internal(error.to_string()) }
    }
}

/// What a call gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Service {
    /// A service over the store. `queries` and `beats` are the ways to the driver, which knows the monitors' present
    /// state and takes pings in.
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

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Told when deliveries were put into the store, or are due anew: whoever sends them waits for it.
    pub fn outgoing(&self) -> Arc<Notify> {
        Arc::clone(&self.0.outgoing)
    }

    fn store(&self) -> &Store {
        &self.0.store
    }

    /// Counts one more time for a thing, where its pace allows it.
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

    /// Commits what `decide` makes of the present state, in the turn of the `thing` with that id; where another change
    /// came first all the same it decides again. None of `decide` says that nothing is to be written.
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

    /// Commits a batch. One with an edit is done once the driver judges by it: the answer, and whatever is asked next,
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
