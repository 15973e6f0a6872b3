//! Sends deliveries: in order for each receiver and monitor, signed, and retried until accepted or failed for
//! good.
//!
//! The store holds all waiting deliveries. They are listed whenever a producer signals new ones, and
//! periodically, so a missed signal only delays them. Deliveries in flight are tracked in memory only: after
//! a crash between a receiver's response and the recorded result, that one delivery is sent again with the
//! same id.

mod attempt;
pub mod channel;
pub mod counters;
mod error;
mod health;
pub mod mail;
mod note;
mod post;
mod queue;
pub mod sign;
mod stop_links;
mod upkeep;
pub mod webhook;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parallax_core::delivery::{Lane, Recipient};
use parallax_core::destination::{Destination, Secrets};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::channel::Bases;
use self::counters::Counters;
pub use self::error::DeliverError;
use self::note::Came;
pub use self::post::{Parcel, Post, Posted};
use self::queue::{Class, Queue};
use self::stop_links::StopLinks;
use self::upkeep::Listed;
use self::webhook::Client;
use crate::clock::Clock;
use crate::storage::Store;
use crate::supervise::Watch;

/// Minimum pause between two listings of the waiting deliveries.
const PAUSE: Duration = Duration::from_millis(20);
/// Minimum pause as a multiple of the time that a listing took.
const SHARE: u32 = 10;
/// Maximum pause between two listings, even without a signal.
const LOOK: Duration = Duration::from_secs(5);
/// Interval at which the clock is checked while deliveries wait for their due time: the clock may jump.
const TICK: Duration = Duration::from_secs(1);
/// Number of receivers checked before yielding to other work.
const LOOKS: usize = 1024;
/// Pause after a store error.
const RETRY: Duration = Duration::from_secs(1);
/// Time allowed for deliveries in flight after a stop request.
const LAST: Duration = Duration::from_secs(5);

/// Operator's settings for deliveries.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Base URLs of services with a single public endpoint.
    pub bases: Bases,
    /// URL of the dashboard, without a trailing slash: prefix of links in mails.
    pub base_url: String,
    /// Domain under which pages have their subdomains.
    pub root_domain: Option<String>,
    /// The operator's mailbox.
    pub operator_mail: Option<String>,
    /// The operator's webhook URL and its signing secrets.
    pub operator_hook: Option<(String, Secrets)>,
}

/// Shared context of all attempts.
#[derive(Debug)]
struct House {
    store: Store,
    clock: Clock,
    client: Client,
    post: Arc<dyn Post>,
    settings: Settings,
    counters: Arc<Counters>,
    stop_links: StopLinks,
}

/// Sends waiting deliveries.
#[derive(Debug)]
pub struct Deliverer {
    house: Arc<House>,
    wake: Arc<Notify>,
    queue: Queue,
    jobs: JoinSet<Done>,
    /// Deliveries queued behind another one that are known not to be `still-down` reminders.
    ordinary: BTreeSet<DeliveryId>,
    is_listing: bool,
}

/// Result of a background job.
enum Done {
    /// An attempt for this ordering key.
    Tried(Lane, Came),
    /// A listing of the waiting deliveries.
    Listed(Option<Listed>),
    /// A change to waiting deliveries.
    Changed,
}

impl Deliverer {
    /// Creates a deliverer without starting it. `wake` signals that there may be more to send.
    pub fn new(
        store: Store,
        clock: Clock,
        client: Client,
        post: Arc<dyn Post>,
        settings: Settings,
        wake: Arc<Notify>,
    ) -> Self {
        let counters = Arc::new(Counters::new(clock.clone()));
        let house = Arc::new(House {
            store,
            clock,
            client,
            post,
            settings,
            counters,
            stop_links: StopLinks::default(),
        });
        Self {
            house,
            wake,
            queue: Queue::default(),
            jobs: JoinSet::new(),
            ordinary: BTreeSet::new(),
            is_listing: false,
        }
    }

    /// Sets the function that makes the stop link of a destination, which is added to alerts by mail.
    pub fn link_stops(&self, make: impl Fn(&Destination) -> Option<String> + Send + Sync + 'static) {
        self.house.stop_links.set(make);
    }

    /// Delivery counters.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.house.counters)
    }

    /// Runs until stopped, then waits up to five seconds for deliveries in flight to be recorded.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>, watch: Watch) {
        let mut rooms = watch.rooms();
        let (house, wake) = (Arc::clone(&self.house), Arc::clone(&self.wake));
        rooms.keep("deliveries", move || upkeep::keep(Arc::clone(&house), Arc::clone(&wake)));
        // Both are due now: the first listing runs at once.
        let (mut list_at, mut look_at) = (Instant::now(), Instant::now());
        let mut is_stale = true;
        loop {
            let is_all = self.send_due();
            let to_next = self.to_next();
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                // Before finished jobs: those may never run out.
                () = self.wake.notified() => is_stale = true,
                () = sleep_until(list_at), if is_stale && !self.is_listing => {
                    is_stale = false;
                    self.list();
                }
                Some(done) = self.jobs.join_next() => match done {
                    Ok(Done::Listed(listed)) => {
                        self.is_listing = false;
                        let pause = self.take(listed);
                        list_at = Instant::now() + pause;
                        look_at = Instant::now() + LOOK.max(pause);
                    }
                    Ok(Done::Tried(lane, came)) => is_stale |= self.back(lane, came),
                    Ok(Done::Changed) => is_stale = true,
                    Err(error) => {
                        // Jobs are never aborted, so this is a panic. A new listing restores the state of its
                        // deliveries.
                        tracing::error!(%error, "a delivery job panicked; listing the waiting deliveries again");
                        self.is_listing = false;
                        is_stale = true;
                        list_at = Instant::now() + LOOK;
                    }
                },
                () = tokio::task::yield_now(), if !is_all => {}
                () = sleep_until(look_at), if !is_stale && !self.is_listing => is_stale = true,
                () = sleep(to_next.unwrap_or_default()), if to_next.is_some() => {}
            }
        }
        rooms.stop().await;
        if timeout(LAST, async { while self.jobs.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!(
                deliveries = self.queue.busy(),
                "stopped before all deliveries finished; they are sent again after the next start"
            );
        }
    }

    /// Sends everything that is due and has a free slot; false if there may be more.
    fn send_due(&mut self) -> bool {
        let now = self.house.clock.now();
        let mut looks = LOOKS;
        let house = &self.house;
        while let Some((lane, id)) = self.queue.next(now, &mut looks, |to| house.class_of(to)) {
            let house = Arc::clone(&self.house);
            self.jobs.spawn(async move {
                let trying = AssertUnwindSafe(attempt::attempt(&house, id)).catch_unwind();
                let came = trying.await.unwrap_or_else(|_| {
                    tracing::error!(%id, "a delivery attempt panicked; retrying later");
                    Came::later(house.clock.now() + note::BROKEN)
                });
                Done::Tried(lane, came)
            });
        }
        looks > 0
    }

    /// Time until the next delivery is due; `None` if none waits for its time.
    fn to_next(&self) -> Option<Duration> {
        let millis = self.queue.next_due()?.since(self.house.clock.now());
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or_default()).min(TICK))
    }

    fn list(&mut self) {
        self.is_listing = true;
        let (store, ordinary) = (self.house.store.clone(), self.ordinary.clone());
        self.jobs.spawn(async move {
            match upkeep::list(&store, ordinary).await {
                Ok(listed) => Done::Listed(Some(listed)),
                Err(error) => {
                    tracing::error!(%error, "can't list the waiting deliveries; retrying");
                    sleep(RETRY).await;
                    Done::Listed(None)
                }
            }
        });
    }

    /// Applies a listing and returns the pause until the next one.
    fn take(&mut self, listed: Option<Listed>) -> Duration {
        let Some(mut listed) = listed else { return PAUSE };
        let began = Instant::now();
        self.house.counters.waiting(&listed.waiting);
        listed.stale.retain(|it| !self.queue.is_busy(it.lane, it.id));
        if !listed.stale.is_empty() {
            let stale: BTreeSet<DeliveryId> = listed.stale.iter().map(|it| it.id).collect();
            listed.waiting.retain(|it| !stale.contains(&it.id));
            let house = Arc::clone(&self.house);
            self.jobs.spawn(async move {
                upkeep::drop_all(&house, stale).await;
                Done::Changed
            });
        }
        self.ordinary = listed.ordinary;
        self.queue.fill(&listed.waiting);
        (listed.took + began.elapsed()).saturating_mul(SHARE).max(PAUSE)
    }

    /// Applies the result of an attempt; true if waiting deliveries changed as well.
    fn back(&mut self, lane: Lane, came: Came) -> bool {
        self.queue.back(lane, came.left, came.went);
        if came.is_gone {
            self.queue.forget(lane.to);
        }
        if came.is_turn {
            // Everything else that waits for this receiver is sent now, or dropped.
            let (house, to) = (Arc::clone(&self.house), lane.to);
            self.jobs.spawn(async move {
                upkeep::bring_forward(&house, BTreeSet::from([to])).await;
                Done::Changed
            });
        }
        came.is_turn
    }
}

impl House {
    /// Class of a receiver, which decides whose slots it uses. A read error surfaces again in the attempt.
    fn class_of(&self, to: Recipient) -> Class {
        let read = self.store.reader();
        let of = |host: Option<String>, is_failing: bool| Class {
            host: host.map(Into::into),
            last: is_failing.then_some(false),
        };
        match to {
            Recipient::Destination(id) => match read.destination(id) {
                Ok(Some(it)) => of(
                    channel::host(&it.value.channel, &self.settings.bases),
                    it.value.health.failing_since.is_some(),
                ),
                Ok(None) | Err(_) => of(Some(String::new()), false),
            },
            Recipient::Subscriber(id) => match read.subscriber(id) {
                Ok(Some(it)) => {
                    of(attempt::host_of(&it.value.contact), it.value.health.failing_since.is_some())
                }
                Ok(None) | Err(_) => of(Some(String::new()), false),
            },
            Recipient::OperatorHook => {
                of(self.settings.operator_hook.as_ref().map(|(url, _)| channel::host_of(url)), false)
            }
            Recipient::Owner(_) | Recipient::OperatorMail | Recipient::Asked(_) | Recipient::Visitor(_) => {
                of(None, false)
            }
        }
    }
}

/// Random factor from -1 to 1.
fn jitter() -> f64 {
    rand::random::<f64>().mul_add(2.0, -1.0)
}

/// Creates an id for a delivery created now.
fn fresh_id(now: Timestamp) -> DeliveryId {
    DeliveryId::new(now, rand::random())
}

#[cfg(test)]
mod tests;
