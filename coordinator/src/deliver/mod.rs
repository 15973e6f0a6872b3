//! What goes out of the door: each delivery to its receiver, in order for each receiver and monitor, until it is taken or
//! given up; and the proof of who sent it.
//!
//! The store says what waits. It is listed anew whenever somebody says that there is more, and once in a while, so nothing
//! depends on a word that was missed. What is on its way is known in memory alone: a crash between a receiver's answer and
//! our note of it has that one delivery sent again, under the same id.

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

/// Shortest pause between two lists of what waits.
const PAUSE: Duration = Duration::from_millis(20);
/// And how many times longer it is than a list took.
const SHARE: u32 = 10;
/// Longest pause between two lists, whether anybody said that there is more or not.
const LOOK: Duration = Duration::from_secs(5);
/// How often the clock is looked at while something waits for its time: it may jump.
const TICK: Duration = Duration::from_secs(1);
/// How many receivers are looked at before others have their turn.
const LOOKS: usize = 1024;
/// Pause after a failure of the store.
const RETRY: Duration = Duration::from_secs(1);
/// How long what is on its way may take once the deliverer was told to stop.
const LAST: Duration = Duration::from_secs(5);

/// What an operator decides of deliveries.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Addresses of services that have one for everybody.
    pub bases: Bases,
    /// Address of the dashboard, without a trailing slash: links in mails begin with it.
    pub base_url: String,
    /// Domain under which pages have their labels.
    pub root_domain: Option<String>,
    /// The operator's mailbox.
    pub operator_mail: Option<String>,
    /// The operator's webhook, and what it is signed with.
    pub operator_hook: Option<(String, Secrets)>,
}

/// What every attempt uses.
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

/// Sends what waits.
#[derive(Debug)]
pub struct Deliverer {
    house: Arc<House>,
    wake: Arc<Notify>,
    queue: Queue,
    jobs: JoinSet<Done>,
    /// Those that wait behind another and are no still-down.
    ordinary: BTreeSet<DeliveryId>,
    is_listing: bool,
}

/// A piece of work that is over.
enum Done {
    /// A try of one of that lane.
    Tried(Lane, Came),
    /// A list of what waits.
    Listed(Option<Listed>),
    /// Something about what waits was changed.
    Changed,
}

impl Deliverer {
    /// A deliverer that has not begun. `wake` is told whenever there may be more to send.
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

    /// Has each alert to a mailbox end with the link that this makes of its destination, if any.
    pub fn link_stops(&self, make: impl Fn(&Destination) -> Option<String> + Send + Sync + 'static) {
        self.house.stop_links.set(make);
    }

    /// What it counts.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.house.counters)
    }

    /// Runs until it is told to stop, and then until what is on its way is noted, five seconds at most.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>, watch: Watch) {
        let mut rooms = watch.rooms();
        let (house, wake) = (Arc::clone(&self.house), Arc::clone(&self.wake));
        rooms.keep("deliveries", move || upkeep::keep(Arc::clone(&house), Arc::clone(&wake)));
        // Who is first asked to look again is asked at once.
        let (mut list_at, mut look_at) = (Instant::now(), Instant::now());
        let mut is_stale = true;
        loop {
            let is_all = self.send_due();
            let to_next = self.to_next();
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                // Before what is over: of that there may always be more.
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
                        // No job is ever aborted. What it was about is found out by a new list, which it may have been.
                        tracing::error!(%error, "a job of the deliverer broke off");
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
                "deliveries on their way are given up, and sent again"
            );
        }
    }

    /// Sends everything that is due and has room; false where there may be more.
    fn send_due(&mut self) -> bool {
        let now = self.house.clock.now();
        let mut looks = LOOKS;
        let house = &self.house;
        while let Some((lane, id)) = self.queue.next(now, &mut looks, |to| house.class_of(to)) {
            let house = Arc::clone(&self.house);
            self.jobs.spawn(async move {
                let trying = AssertUnwindSafe(attempt::attempt(&house, id)).catch_unwind();
                let came = trying.await.unwrap_or_else(|_| {
                    tracing::error!(%id, "an attempt to deliver broke off");
                    Came::later(house.clock.now() + note::BROKEN)
                });
                Done::Tried(lane, came)
            });
        }
        looks > 0
    }

    /// How long until the next one is due; none where nothing waits for its time.
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
                    tracing::error!(%error, "what is to be delivered can't be listed; trying again");
                    sleep(RETRY).await;
                    Done::Listed(None)
                }
            }
        });
    }

    /// Takes in a list, and says how long there is none after it.
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

    /// Notes that a try is over; true where what waits was changed with it.
    fn back(&mut self, lane: Lane, came: Came) -> bool {
        self.queue.back(lane, came.left, came.went);
        if came.is_gone {
            self.queue.forget(lane.to);
        }
        if came.is_turn {
            // What else waits for it goes out at once, or is let go.
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
    /// Whose slots a receiver takes. What can't be read is found out again by the attempt.
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

/// A moment's share of chance, from -1 to 1.
fn jitter() -> f64 {
    rand::random::<f64>().mul_add(2.0, -1.0)
}

/// An id for a delivery that is made now.
fn fresh_id(now: Timestamp) -> DeliveryId {
    DeliveryId::new(now, rand::random())
}

#[cfg(test)]
mod tests;
