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
pub mod http_client;
pub mod mail;
mod maintenance;
mod outgoing_mail;
mod queue;
mod receiver;
mod receiver_health;
mod record;
pub mod signature;
pub mod stop_links;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parallax_core::delivery::{OrderingKey, Recipient};
use parallax_core::destination::SigningSecrets;
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use parallax_runtime::clock::Clock;
use parallax_runtime::supervisor::Supervisor;
use parallax_store::Store;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::channel::ServiceUrls;
use self::counters::DeliveryCounters;
pub use self::error::DeliveryError;
use self::http_client::DeliveryClient;
use self::maintenance::WaitingListing;
pub use self::outgoing_mail::{OutgoingMail, SendMail, SendResult};
use self::queue::{DeliveryQueue, ReceiverClass};
use self::record::TurnResult;
use self::stop_links::StopLinks;

/// Minimum pause between two listings of the waiting deliveries.
const MIN_LIST_PAUSE: Duration = Duration::from_millis(20);
/// Minimum pause as a multiple of the time that a listing took.
const PAUSE_FACTOR: u32 = 10;
/// Maximum pause between two listings, even without a signal.
const MAX_LIST_PAUSE: Duration = Duration::from_secs(5);
/// Interval at which the clock is checked while deliveries wait for their due time: the clock may jump.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Number of receivers checked before yielding to other work.
const MAX_CHECKS_PER_TURN: usize = 1024;
/// Pause after a store error.
const STORE_RETRY: Duration = Duration::from_secs(1);
/// Time allowed for deliveries in flight after a stop request.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Operator's settings for deliveries.
#[derive(Debug, Clone)]
pub struct DeliverySettings {
    /// Base URLs of services with a single public endpoint.
    pub service_urls: ServiceUrls,
    /// URL of the dashboard, without a trailing slash: prefix of links in mails.
    pub base_url: String,
    /// Domain under which pages have their subdomains.
    pub root_domain: Option<String>,
    /// The operator's mailbox.
    pub operator_mail: Option<String>,
    /// The operator's webhook URL and its signing secrets.
    pub operator_hook: Option<(String, SigningSecrets)>,
}

/// Shared context of all attempts.
#[derive(Debug)]
struct DeliveryContext {
    store: Store,
    clock: Clock,
    client: DeliveryClient,
    mailer: Arc<dyn SendMail>,
    settings: DeliverySettings,
    counters: Arc<DeliveryCounters>,
    stop_links: StopLinks,
}

/// Sends waiting deliveries.
#[derive(Debug)]
pub struct Deliverer {
    context: Arc<DeliveryContext>,
    wake: Arc<Notify>,
    queue: DeliveryQueue,
    jobs: JoinSet<JobResult>,
    /// Deliveries queued behind another one that are known not to be `still-down` reminders.
    known_not_reminders: BTreeSet<DeliveryId>,
    is_listing: bool,
}

/// Result of a background job.
enum JobResult {
    /// An attempt for this ordering key.
    Attempted(OrderingKey, TurnResult),
    /// A listing of the waiting deliveries.
    Listed(Option<WaitingListing>),
    /// A change to waiting deliveries.
    Changed,
}

impl Deliverer {
    /// Creates a deliverer without starting it. `wake` signals that there may be more to send; `stop_links` are added
    /// to alerts by mail.
    pub fn new(
        store: Store,
        clock: Clock,
        client: DeliveryClient,
        mailer: Arc<dyn SendMail>,
        settings: DeliverySettings,
        stop_links: StopLinks,
        wake: Arc<Notify>,
    ) -> Self {
        let counters = Arc::new(DeliveryCounters::new(clock.clone()));
        let context = Arc::new(DeliveryContext { store, clock, client, mailer, settings, counters, stop_links });
        Self {
            context,
            wake,
            queue: DeliveryQueue::default(),
            jobs: JoinSet::new(),
            known_not_reminders: BTreeSet::new(),
            is_listing: false,
        }
    }

    /// Delivery counters.
    pub fn counters(&self) -> Arc<DeliveryCounters> {
        Arc::clone(&self.context.counters)
    }

    /// Runs until stopped, then waits up to five seconds for deliveries in flight to be recorded.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>, supervisor: Supervisor) {
        let mut tasks = supervisor.task_group();
        let (context, wake) = (Arc::clone(&self.context), Arc::clone(&self.wake));
        tasks.spawn_restarting("deliveries", move || {
            maintenance::run_maintenance(Arc::clone(&context), Arc::clone(&wake))
        });
        // Both are due now: the first listing runs at once.
        let (mut list_at, mut refresh_at) = (Instant::now(), Instant::now());
        let mut needs_listing = true;
        loop {
            let all_sent = self.send_due();
            let to_next = self.time_to_next();
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                // Before finished jobs: those may never run out.
                () = self.wake.notified() => needs_listing = true,
                () = sleep_until(list_at), if needs_listing && !self.is_listing => {
                    needs_listing = false;
                    self.start_listing();
                }
                Some(finished) = self.jobs.join_next() => match finished {
                    Ok(JobResult::Listed(listing)) => {
                        self.is_listing = false;
                        let pause = self.apply_listing(listing);
                        list_at = Instant::now() + pause;
                        refresh_at = Instant::now() + MAX_LIST_PAUSE.max(pause);
                    }
                    Ok(JobResult::Attempted(ordering_key, result)) => {
                        needs_listing |= self.on_attempt_finished(ordering_key, result);
                    }
                    Ok(JobResult::Changed) => needs_listing = true,
                    Err(error) => {
                        // Jobs are never aborted, so this is a panic. A new listing restores the state of its
                        // deliveries.
                        tracing::error!(%error, "a delivery job panicked; listing the waiting deliveries again");
                        self.is_listing = false;
                        needs_listing = true;
                        list_at = Instant::now() + MAX_LIST_PAUSE;
                    }
                },
                () = tokio::task::yield_now(), if !all_sent => {}
                () = sleep_until(refresh_at), if !needs_listing && !self.is_listing => needs_listing = true,
                () = sleep(to_next.unwrap_or_default()), if to_next.is_some() => {}
            }
        }
        tasks.stop().await;
        if timeout(SHUTDOWN_TIMEOUT, async { while self.jobs.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!(
                deliveries = self.queue.in_flight_count(),
                "stopped before all deliveries finished; they are sent again after the next start"
            );
        }
    }

    /// Sends everything that is due and has a free slot; false if there may be more.
    fn send_due(&mut self) -> bool {
        let now = self.context.clock.now();
        let mut checks_left = MAX_CHECKS_PER_TURN;
        let context = &self.context;
        while let Some((ordering_key, id)) = self.queue.take_next(now, &mut checks_left, |to| context.class_of(to)) {
            let context = Arc::clone(&self.context);
            self.jobs.spawn(async move {
                let attempting = AssertUnwindSafe(attempt::attempt(&context, id)).catch_unwind();
                let result = attempting.await.unwrap_or_else(|_| {
                    tracing::error!(%id, "a delivery attempt panicked; retrying later");
                    TurnResult::waiting_until(context.clock.now() + record::PANIC_RETRY_MS)
                });
                JobResult::Attempted(ordering_key, result)
            });
        }
        checks_left > 0
    }

    /// Time until the next delivery is due; `None` if none waits for its time.
    fn time_to_next(&self) -> Option<Duration> {
        let millis = self.queue.next_due()?.since(self.context.clock.now());
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or_default()).min(CLOCK_CHECK_INTERVAL))
    }

    fn start_listing(&mut self) {
        self.is_listing = true;
        let (store, known_not_reminders) = (self.context.store.clone(), self.known_not_reminders.clone());
        self.jobs.spawn(async move {
            match maintenance::list_waiting(&store, known_not_reminders).await {
                Ok(listing) => JobResult::Listed(Some(listing)),
                Err(error) => {
                    tracing::error!(%error, "can't list the waiting deliveries; retrying");
                    sleep(STORE_RETRY).await;
                    JobResult::Listed(None)
                }
            }
        });
    }

    /// Applies a listing and returns the pause until the next one.
    fn apply_listing(&mut self, listing: Option<WaitingListing>) -> Duration {
        let Some(mut listing) = listing else { return MIN_LIST_PAUSE };
        let started = Instant::now();
        self.context.counters.set_waiting(&listing.waiting);
        listing.outdated.retain(|it| !self.queue.is_in_flight(it.ordering_key, it.id));
        if !listing.outdated.is_empty() {
            let outdated: BTreeSet<DeliveryId> = listing.outdated.iter().map(|it| it.id).collect();
            listing.waiting.retain(|it| !outdated.contains(&it.id));
            let context = Arc::clone(&self.context);
            self.jobs.spawn(async move {
                maintenance::drop_waiting(&context, outdated).await;
                JobResult::Changed
            });
        }
        self.known_not_reminders = listing.known_not_reminders;
        self.queue.replace_waiting(&listing.waiting);
        (listing.duration + started.elapsed()).saturating_mul(PAUSE_FACTOR).max(MIN_LIST_PAUSE)
    }

    /// Applies the result of an attempt; true if waiting deliveries changed as well.
    fn on_attempt_finished(&mut self, ordering_key: OrderingKey, result: TurnResult) -> bool {
        self.queue.on_finished(ordering_key, result.next_step, result.succeeded);
        if result.is_receiver_stale {
            self.queue.remove_class(ordering_key.to);
        }
        if result.recheck_waiting {
            // Everything else that waits for this receiver is sent now, or dropped.
            let (context, to) = (Arc::clone(&self.context), ordering_key.to);
            self.jobs.spawn(async move {
                maintenance::bring_forward(&context, BTreeSet::from([to])).await;
                JobResult::Changed
            });
        }
        result.recheck_waiting
    }
}

impl DeliveryContext {
    /// Class of a receiver, which decides which pools it uses. A read error surfaces again in the attempt.
    fn class_of(&self, to: Recipient) -> ReceiverClass {
        let read = self.store.reader();
        let class = |host: Option<String>, is_failing: bool| ReceiverClass {
            host: host.map(Into::into),
            last_succeeded: is_failing.then_some(false),
        };
        match to {
            Recipient::Destination(id) => match read.destination(id) {
                Ok(Some(it)) => class(
                    channel::receiver_host(&it.value.channel, &self.settings.service_urls),
                    it.value.health.failing_since.is_some(),
                ),
                Ok(None) | Err(_) => class(Some(String::new()), false),
            },
            Recipient::Subscriber(id) => match read.subscriber(id) {
                Ok(Some(it)) => class(attempt::host_of(&it.value.contact), it.value.health.failing_since.is_some()),
                Ok(None) | Err(_) => class(Some(String::new()), false),
            },
            Recipient::OperatorWebhook => {
                class(self.settings.operator_hook.as_ref().map(|(url, _)| channel::host_of(url)), false)
            }
            Recipient::Owner(_)
            | Recipient::OperatorMail
            | Recipient::UnconfirmedDestination(_)
            | Recipient::Visitor(_) => class(None, false),
        }
    }
}

/// Random factor from -1 to 1.
fn jitter() -> f64 {
    rand::random::<f64>().mul_add(2.0, -1.0)
}

/// Creates an id for a delivery created now.
fn new_delivery_id(now: Timestamp) -> DeliveryId {
    DeliveryId::new(now, rand::random())
}

#[cfg(test)]
mod tests;
