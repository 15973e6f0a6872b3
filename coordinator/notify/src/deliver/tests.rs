//! The deliverer with an in-memory store and receivers on loopback; the clock is set manually.

mod alert_confirmation;
mod mailboxes;
mod plan_channels;
pub(crate) mod receiver;
mod recipients;
mod response_excerpts;

use std::sync::Mutex;

use futures_util::future::BoxFuture;
use parallax_core::delivery::{AttemptOutcome, Delivery, DeliveryMessage, DeliveryState, MailMessage};
use parallax_core::destination::{Channel, Destination, DisableReason};
use parallax_core::id::{DestinationId, IncidentId, SubscriberId};
use parallax_core::subscriber::Contact;
use parallax_core::time::SECOND;
use parallax_store::samples;
use parallax_store::{Batch, Op};
use tokio::task::JoinHandle;
use url::Url;

use self::receiver::{TestReceiver, TestReply, status_reply};
use super::*;

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const BEGAN: Timestamp = Timestamp::from_millis(1_795_783_560_000);
const PATIENCE: Duration = Duration::from_secs(20);

/// A mail transport that stores the mails.
#[derive(Debug, Default)]
struct RecordingMailer {
    mails: Mutex<Vec<OutgoingMail>>,
    refuses: bool,
}

impl SendMail for RecordingMailer {
    fn send_mail(&self, parcel: OutgoingMail) -> BoxFuture<'_, SendResult> {
        self.mails.lock().unwrap().push(parcel);
        let outcome = if self.refuses { AttemptOutcome::Rejected } else { AttemptOutcome::Accepted };
        let posted = SendResult { outcome, status: Some(250), error: None, reply: String::new(), is_our_fault: false };
        Box::pin(std::future::ready(posted))
    }
}

struct DeliveryWorld {
    store: Store,
    clock: Clock,
    wake: Arc<Notify>,
    mails: Arc<RecordingMailer>,
    counters: Arc<DeliveryCounters>,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
    made: std::sync::atomic::AtomicU64,
}

impl DeliveryWorld {
    async fn new() -> Self {
        Self::with(RecordingMailer::default()).await
    }

    async fn with(mails: RecordingMailer) -> Self {
        let store = Store::in_memory().unwrap();
        let clock = Clock::manual(BEGAN);
        let (wake, mails) = (Arc::new(Notify::new()), Arc::new(mails));
        let settings = DeliverySettings {
            service_urls: ServiceUrls {
                telegram: Url::parse("http://127.0.0.1:9").unwrap(),
                pagerduty: Url::parse("http://127.0.0.1:9").unwrap(),
            },
            base_url: "https://status.example".to_owned(),
            root_domain: None,
            operator_mail: None,
            operator_hook: None,
        };
        let client = DeliveryClient::new(true, &[]).unwrap();
        let post = Arc::clone(&mails) as Arc<dyn SendMail>;
        let deliverer = Deliverer::new(
            store.clone(),
            clock.clone(),
            client,
            post,
            settings,
            StopLinks::default(),
            Arc::clone(&wake),
        );
        let counters = deliverer.counters();
        let (stop, stops) = watch::channel(false);
        let mut batch = Batch::new();
        batch.write(samples::account(1)).write(samples::page(1, 1, "one"));
        store.commit(batch).await.unwrap();
        let running = tokio::spawn(deliverer.run(stops, Supervisor::default()));
        Self { store, clock, wake, mails, counters, stop, running, made: Default::default() }
    }

    async fn put(&self, op: impl Into<Op>) {
        self.store.commit(Batch::new().write(op).clone()).await.unwrap();
        self.wake.notify_one();
    }

    /// Adds a signed webhook.
    async fn hook(&self, n: u128, url: &str) -> DestinationId {
        let secret = SigningSecrets { newest: SECRET.to_owned(), previous: None };
        let channel = Channel::Webhook { url: url.to_owned(), secret };
        self.put(Destination { channel, ..samples::destination(n, 1) }).await;
        DestinationId::from_u128(n)
    }

    /// Adds a delivery to a destination that is due now.
    async fn send(&self, to: u128, monitor: u128, seq: u64, event: &str) -> DeliveryId {
        let delivery = self.delivery(Recipient::Destination(DestinationId::from_u128(to)), seq, event);
        let delivery = Delivery { monitor: Some(samples::monitor_id(monitor)), ..delivery };
        let id = delivery.id;
        self.put(delivery).await;
        id
    }

    fn delivery(&self, to: Recipient, seq: u64, event: &str) -> Delivery {
        let now = self.clock.now();
        let number = self.made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut random = [0; 10];
        random[2..].copy_from_slice(&number.to_be_bytes());
        Delivery {
            id: DeliveryId::new(now, random),
            to,
            event: event.to_owned(),
            seq,
            message: DeliveryMessage::Json(format!("{{\"event\":\"{event}\",\"seq\":{seq}}}").into_bytes()),
            created_at: now,
            ..samples::delivery(1, Some(1), Some(now.as_millis()))
        }
    }

    fn stage(&self, id: DeliveryId) -> DeliveryState {
        self.store.reader().delivery(id).unwrap().unwrap().value.state
    }

    /// Waits until a delivery reaches a stage.
    async fn wait_for_stage(&self, id: DeliveryId, is: impl Fn(DeliveryState) -> bool) -> Delivery {
        let waiting = async {
            loop {
                let found = self.store.reader().delivery(id).unwrap().unwrap().value;
                if is(found.state) && (found.attempts.total() > 0 || !matches!(found.state, DeliveryState::Waiting(_)))
                {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{id} is {:?}", self.stage(id)))
    }

    /// Waits until that many attempts and drops are counted: they are stored first.
    async fn wait_for_counts(&self, attempts: u64, dropped: u64) {
        let counted = || {
            let attempts = self.counters.attempts().map(|(_, _, count)| count).sum();
            (attempts, self.counters.dropped.load(std::sync::atomic::Ordering::Relaxed))
        };
        let waiting = async {
            while counted() != (attempts, dropped) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("counted {:?}", counted()));
    }

    async fn advance_clock(&self, millis: i64) {
        self.clock.set(self.clock.now() + millis);
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.running).await.unwrap().unwrap();
    }
}

fn delivered(stage: DeliveryState) -> bool {
    matches!(stage, DeliveryState::Delivered(_))
}

fn dropped(stage: DeliveryState) -> bool {
    matches!(stage, DeliveryState::Dropped(_))
}

fn waits(stage: DeliveryState) -> bool {
    matches!(stage, DeliveryState::Waiting(_))
}

#[tokio::test]
async fn what_is_written_is_posted_once_signed_and_noted() {
    let (world, receiver) = (DeliveryWorld::new().await, TestReceiver::healthy().await);
    world.hook(1, &receiver.url()).await;
    let id = world.send(1, 1, 4, "went-down").await;
    let noted = world.wait_for_stage(id, delivered).await;
    assert_eq!(
        (noted.attempts.total(), noted.attempt_log[0].status, noted.attempt_log[0].response.as_str()),
        (1, Some(200), "ok")
    );
    let got = receiver.requests();
    assert_eq!((got.len(), got[0].body.as_slice()), (1, br#"{"event":"went-down","seq":4}"#.as_slice()));
    assert!(got[0].head.starts_with("POST /in HTTP/1.1\r\n"), "{}", got[0].head);
    for (name, value) in [
        ("Host", receiver.address.to_string()),
        ("Content-Type", "application/json".to_owned()),
        ("X-Service-Event", "went-down".to_owned()),
        ("X-Service-Delivery", id.to_string()),
        ("webhook-id", id.to_string()),
        ("webhook-timestamp", "1795783560".to_owned()),
        ("User-Agent", concat!("Parallax/", env!("CARGO_PKG_VERSION")).to_owned()),
    ] {
        assert_eq!(got[0].header(name), Some(value.as_str()), "{name}");
    }
    world.wait_for_counts(1, 0).await;
    world.stop().await;
}

#[tokio::test]
async fn fifty_that_hang_do_not_delay_a_healthy_one() {
    let world = DeliveryWorld::new().await;
    let hanging = TestReceiver::start(|_, _| TestReply::Hang).await;
    let mut hung = Vec::new();
    for n in 0..50 {
        // One host name per destination, as in production; all resolve to this host.
        world.hook(10 + n, &format!("http://h{n}.localhost:{}/", hanging.address.port())).await;
        for monitor in 0..4 {
            hung.push(world.send(10 + n, monitor, 1, "went-down").await);
        }
    }
    hanging.wait_for_requests(50).await;
    let healthy = TestReceiver::healthy().await;
    world.hook(1, &healthy.url()).await;
    let began = Instant::now();
    let mut ids = Vec::new();
    for monitor in 0..20 {
        ids.push(world.send(1, monitor, 2, "went-down").await);
    }
    for id in ids {
        world.wait_for_stage(id, delivered).await;
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(hanging.requests().len(), 50, "one slot each");
    assert!(hung.iter().all(|id| waits(world.stage(*id))));
}

#[tokio::test]
async fn a_lane_goes_out_in_its_order_and_a_failure_holds_it_up_alone() {
    let world = DeliveryWorld::new().await;
    let receiver = TestReceiver::start(|number, _| status_reply(if number == 0 { 500 } else { 200 }, "")).await;
    world.hook(1, &receiver.url()).await;
    let first = world.send(1, 1, 1, "went-down").await;
    world.wait_for_stage(first, waits).await;
    let later = [world.send(1, 1, 3, "recovered").await, world.send(1, 1, 2, "went-slow").await];
    let other = world.send(1, 2, 4, "went-down").await;
    world.wait_for_stage(other, delivered).await;
    // The success of another monitor's delivery brings the first one forward.
    for id in later {
        world.wait_for_stage(id, delivered).await;
    }
    let body = |got: &receiver::ReceivedRequest| serde_json::from_slice::<serde_json::Value>(&got.body).unwrap();
    let seqs: Vec<_> = receiver.requests().iter().map(|got| body(got)["seq"].clone()).collect();
    assert_eq!(seqs, [1, 4, 1, 2, 3]);
    let ids: Vec<_> = receiver.requests().iter().map(|got| got.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!(ids[0], ids[2], "a delivery keeps its id across attempts");
}

#[tokio::test]
async fn a_still_down_behind_another_is_dropped_and_nothing_else_is() {
    let world = DeliveryWorld::new().await;
    let receiver = TestReceiver::start(|number, _| status_reply(if number == 0 { 500 } else { 200 }, "")).await;
    world.hook(1, &receiver.url()).await;
    let first = world.send(1, 1, 1, "went-down").await;
    world.wait_for_stage(first, waits).await;
    let still = world.send(1, 1, 2, "still-down").await;
    let recovered = world.send(1, 1, 3, "recovered").await;
    world.wait_for_stage(still, dropped).await;
    world.advance_clock(7 * SECOND).await;
    world.wait_for_stage(first, delivered).await;
    world.wait_for_stage(recovered, delivered).await;
    let alone = world.send(1, 1, 4, "still-down").await;
    world.wait_for_stage(alone, delivered).await;
    assert_eq!(receiver.requests().len(), 4);
    world.wait_for_counts(4, 1).await;
}

#[tokio::test]
async fn a_receiver_that_asks_to_wait_is_left_alone_for_so_long() {
    let world = DeliveryWorld::new().await;
    let receiver = TestReceiver::start(|number, _| match number {
        0 => status_reply(429, "Retry-After: 7\r\n"),
        _ => status_reply(200, ""),
    })
    .await;
    world.hook(1, &receiver.url()).await;
    let id = world.send(1, 1, 1, "went-down").await;
    let noted = world.wait_for_stage(id, waits).await;
    assert_eq!(noted.state, DeliveryState::Waiting(BEGAN + 7_000));
    assert_eq!(noted.attempt_log[0].error.as_deref(), Some("unexpected status 429"));
    world.advance_clock(7_000).await;
    world.wait_for_stage(id, delivered).await;
}

#[tokio::test]
async fn one_that_is_gone_is_switched_off_its_owner_is_told_and_what_waits_is_dropped() {
    let world = DeliveryWorld::new().await;
    let receiver = TestReceiver::start(|number, _| status_reply(if number == 0 { 500 } else { 410 }, "")).await;
    let to = world.hook(1, &receiver.url()).await;
    let waiting = world.send(1, 1, 1, "went-down").await;
    world.wait_for_stage(waiting, waits).await;
    let id = world.send(1, 2, 2, "went-down").await;
    world.wait_for_stage(id, |stage| matches!(stage, DeliveryState::Failed(_))).await;
    world.wait_for_stage(waiting, dropped).await;
    let health = world.store.reader().destination(to).unwrap().unwrap().value.health;
    assert_eq!(health.disabled, Some((BEGAN, DisableReason::Gone)));
    let told = world.store.reader().deliveries_of(Some(samples::page_id(1)), None, 10).unwrap();
    let told = told.iter().find(|it| it.value.event == "destination.off").unwrap().value.id;
    world.wait_for_stage(told, delivered).await;
    let mails = world.mails.mails.lock().unwrap().clone();
    let account = world.store.reader().account(samples::account_id(1)).unwrap().unwrap().value;
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, account.email.as_str()));
    // Only a test is still sent.
    let vain = world.send(1, 3, 3, "went-down").await;
    world.wait_for_stage(vain, dropped).await;
    let test = world.send(1, 4, 4, "test").await;
    world.wait_for_stage(test, |stage| matches!(stage, DeliveryState::Failed(_))).await;
    assert_eq!(receiver.requests().len(), 3);
}

#[tokio::test]
async fn a_test_that_fails_switches_nothing_off_and_accuses_nobody() {
    let world = DeliveryWorld::new().await;
    let receiver = TestReceiver::start(|_, _| status_reply(410, "")).await;
    let to = world.hook(1, &receiver.url()).await;
    let id = world.send(1, 1, 1, "test").await;
    world.wait_for_stage(id, |stage| matches!(stage, DeliveryState::Failed(_))).await;
    let health = world.store.reader().destination(to).unwrap().unwrap().value.health;
    assert_eq!(health, Default::default());
}
