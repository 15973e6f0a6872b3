//! The deliverer with an in-memory store and receivers on loopback; the clock is set manually.

mod acknowledged_outages;
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
const START: Timestamp = Timestamp::from_millis(1_795_783_560_000);
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// A mail transport that stores the mails.
#[derive(Debug, Default)]
struct RecordingMailer {
    mails: Mutex<Vec<OutgoingMail>>,
    refuses: bool,
}

impl SendMail for RecordingMailer {
    fn send_mail(&self, mail: OutgoingMail) -> BoxFuture<'_, SendResult> {
        self.mails.lock().unwrap().push(mail);
        let outcome = if self.refuses { AttemptOutcome::Rejected } else { AttemptOutcome::Accepted };
        let result = SendResult { outcome, status: Some(250), error: None, reply: String::new(), is_our_fault: false };
        Box::pin(std::future::ready(result))
    }
}

struct DeliveryBench {
    store: Store,
    clock: Clock,
    wake: Arc<Notify>,
    mails: Arc<RecordingMailer>,
    counters: Arc<DeliveryCounters>,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
    created_count: std::sync::atomic::AtomicU64,
}

impl DeliveryBench {
    async fn new() -> Self {
        Self::with(RecordingMailer::default()).await
    }

    async fn with(mails: RecordingMailer) -> Self {
        let store = Store::in_memory().unwrap();
        let clock = Clock::manual(START);
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
        let mailer = Arc::clone(&mails) as Arc<dyn SendMail>;
        let deliverer = Deliverer::new(
            store.clone(),
            clock.clone(),
            client,
            mailer,
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
        Self { store, clock, wake, mails, counters, stop, running, created_count: Default::default() }
    }

    async fn put(&self, op: impl Into<Op>) {
        self.store.commit(Batch::new().write(op).clone()).await.unwrap();
        self.wake.notify_one();
    }

    /// Adds a signed webhook.
    async fn add_webhook(&self, n: u128, url: &str) -> DestinationId {
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
        let number = self.created_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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

    fn state(&self, id: DeliveryId) -> DeliveryState {
        self.store.reader().delivery(id).unwrap().unwrap().value.state
    }

    /// Waits until a delivery reaches a state.
    async fn wait_for_state(&self, id: DeliveryId, is_reached: impl Fn(DeliveryState) -> bool) -> Delivery {
        let waiting = async {
            loop {
                let delivery = self.store.reader().delivery(id).unwrap().unwrap().value;
                if is_reached(delivery.state)
                    && (delivery.attempts.total() > 0 || !matches!(delivery.state, DeliveryState::Waiting(_)))
                {
                    return delivery;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(WAIT_LIMIT, waiting).await.unwrap_or_else(|_| panic!("{id} is {:?}", self.state(id)))
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
        timeout(WAIT_LIMIT, waiting).await.unwrap_or_else(|_| panic!("counted {:?}", counted()));
    }

    async fn advance_clock(&self, millis: i64) {
        self.clock.set(self.clock.now() + millis);
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        timeout(WAIT_LIMIT, self.running).await.unwrap().unwrap();
    }
}

fn is_delivered(state: DeliveryState) -> bool {
    matches!(state, DeliveryState::Delivered(_))
}

fn is_dropped(state: DeliveryState) -> bool {
    matches!(state, DeliveryState::Dropped(_))
}

fn is_waiting(state: DeliveryState) -> bool {
    matches!(state, DeliveryState::Waiting(_))
}

#[tokio::test]
async fn a_delivery_is_posted_once_signed_and_recorded() {
    let (bench, receiver) = (DeliveryBench::new().await, TestReceiver::healthy().await);
    bench.add_webhook(1, &receiver.url()).await;
    let id = bench.send(1, 1, 4, "went-down").await;
    let stored = bench.wait_for_state(id, is_delivered).await;
    assert_eq!(
        (stored.attempts.total(), stored.attempt_log[0].status, stored.attempt_log[0].response.as_str()),
        (1, Some(200), "ok")
    );
    let requests = receiver.requests();
    assert_eq!((requests.len(), requests[0].body.as_slice()), (1, br#"{"event":"went-down","seq":4}"#.as_slice()));
    assert!(requests[0].head.starts_with("POST /in HTTP/1.1\r\n"), "{}", requests[0].head);
    for (name, value) in [
        ("Host", receiver.address.to_string()),
        ("Content-Type", "application/json".to_owned()),
        ("X-Service-Event", "went-down".to_owned()),
        ("X-Service-Delivery", id.to_string()),
        ("webhook-id", id.to_string()),
        ("webhook-timestamp", "1795783560".to_owned()),
        ("User-Agent", concat!("Parallax/", env!("CARGO_PKG_VERSION")).to_owned()),
    ] {
        assert_eq!(requests[0].header(name), Some(value.as_str()), "{name}");
    }
    bench.wait_for_counts(1, 0).await;
    bench.stop().await;
}

#[tokio::test]
async fn fifty_hanging_receivers_do_not_delay_a_healthy_one() {
    let bench = DeliveryBench::new().await;
    let hanging = TestReceiver::start(|_, _| TestReply::Hang).await;
    let mut blocked = Vec::new();
    for n in 0..50 {
        // One host name per destination, as in production; all resolve to this host.
        bench.add_webhook(10 + n, &format!("http://h{n}.localhost:{}/", hanging.address.port())).await;
        for monitor in 0..4 {
            blocked.push(bench.send(10 + n, monitor, 1, "went-down").await);
        }
    }
    hanging.wait_for_requests(50).await;
    let healthy = TestReceiver::healthy().await;
    bench.add_webhook(1, &healthy.url()).await;
    let started = Instant::now();
    let mut ids = Vec::new();
    for monitor in 0..20 {
        ids.push(bench.send(1, monitor, 2, "went-down").await);
    }
    for id in ids {
        bench.wait_for_state(id, is_delivered).await;
    }
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    assert_eq!(hanging.requests().len(), 50, "one slot each");
    assert!(blocked.iter().all(|id| is_waiting(bench.state(*id))));
}

#[tokio::test]
async fn deliveries_of_a_monitor_stay_in_order_and_a_failure_blocks_no_other_monitor() {
    let bench = DeliveryBench::new().await;
    let receiver = TestReceiver::start(|number, _| status_reply(if number == 0 { 500 } else { 200 }, "")).await;
    bench.add_webhook(1, &receiver.url()).await;
    let first = bench.send(1, 1, 1, "went-down").await;
    bench.wait_for_state(first, is_waiting).await;
    let later = [bench.send(1, 1, 3, "recovered").await, bench.send(1, 1, 2, "went-slow").await];
    let other = bench.send(1, 2, 4, "went-down").await;
    bench.wait_for_state(other, is_delivered).await;
    // The success of another monitor's delivery brings the first one forward.
    for id in later {
        bench.wait_for_state(id, is_delivered).await;
    }
    let body =
        |request: &receiver::ReceivedRequest| serde_json::from_slice::<serde_json::Value>(&request.body).unwrap();
    let seqs: Vec<_> = receiver.requests().iter().map(|request| body(request)["seq"].clone()).collect();
    assert_eq!(seqs, [1, 4, 1, 2, 3]);
    let ids: Vec<_> =
        receiver.requests().iter().map(|request| request.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!(ids[0], ids[2], "a delivery keeps its id across attempts");
}

#[tokio::test]
async fn only_still_down_reminders_behind_another_delivery_are_dropped() {
    let bench = DeliveryBench::new().await;
    let receiver = TestReceiver::start(|number, _| status_reply(if number == 0 { 500 } else { 200 }, "")).await;
    bench.add_webhook(1, &receiver.url()).await;
    let first = bench.send(1, 1, 1, "went-down").await;
    bench.wait_for_state(first, is_waiting).await;
    let still = bench.send(1, 1, 2, "still-down").await;
    let recovered = bench.send(1, 1, 3, "recovered").await;
    bench.wait_for_state(still, is_dropped).await;
    bench.advance_clock(7 * SECOND).await;
    bench.wait_for_state(first, is_delivered).await;
    bench.wait_for_state(recovered, is_delivered).await;
    let alone = bench.send(1, 1, 4, "still-down").await;
    bench.wait_for_state(alone, is_delivered).await;
    assert_eq!(receiver.requests().len(), 4);
    bench.wait_for_counts(4, 1).await;
}

#[tokio::test]
async fn retry_after_delays_the_next_attempt() {
    let bench = DeliveryBench::new().await;
    let receiver = TestReceiver::start(|number, _| match number {
        0 => status_reply(429, "Retry-After: 7\r\n"),
        _ => status_reply(200, ""),
    })
    .await;
    bench.add_webhook(1, &receiver.url()).await;
    let id = bench.send(1, 1, 1, "went-down").await;
    let stored = bench.wait_for_state(id, is_waiting).await;
    assert_eq!(stored.state, DeliveryState::Waiting(START + 7_000));
    assert_eq!(stored.attempt_log[0].error.as_deref(), Some("unexpected status 429"));
    bench.advance_clock(7_000).await;
    bench.wait_for_state(id, is_delivered).await;
}

#[tokio::test]
async fn a_gone_receiver_is_switched_off_its_owner_notified_and_its_deliveries_dropped() {
    let bench = DeliveryBench::new().await;
    let receiver = TestReceiver::start(|number, _| status_reply(if number == 0 { 500 } else { 410 }, "")).await;
    let to = bench.add_webhook(1, &receiver.url()).await;
    let waiting = bench.send(1, 1, 1, "went-down").await;
    bench.wait_for_state(waiting, is_waiting).await;
    let id = bench.send(1, 2, 2, "went-down").await;
    bench.wait_for_state(id, |state| matches!(state, DeliveryState::Failed(_))).await;
    bench.wait_for_state(waiting, is_dropped).await;
    let health = bench.store.reader().destination(to).unwrap().unwrap().value.health;
    assert_eq!(health.disabled, Some((START, DisableReason::Gone)));
    let notification = bench.store.reader().deliveries_of(Some(samples::page_id(1)), None, 10).unwrap();
    let notification = notification.iter().find(|it| it.value.event == "destination.off").unwrap().value.id;
    bench.wait_for_state(notification, is_delivered).await;
    let mails = bench.mails.mails.lock().unwrap().clone();
    let account = bench.store.reader().account(samples::account_id(1)).unwrap().unwrap().value;
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, account.email.as_str()));
    // Only a test is still sent.
    let dropped_delivery = bench.send(1, 3, 3, "went-down").await;
    bench.wait_for_state(dropped_delivery, is_dropped).await;
    let test = bench.send(1, 4, 4, "test").await;
    bench.wait_for_state(test, |state| matches!(state, DeliveryState::Failed(_))).await;
    assert_eq!(receiver.requests().len(), 3);
}

#[tokio::test]
async fn a_failed_test_alert_does_not_count_against_the_receiver() {
    let bench = DeliveryBench::new().await;
    let receiver = TestReceiver::start(|_, _| status_reply(410, "")).await;
    let to = bench.add_webhook(1, &receiver.url()).await;
    let id = bench.send(1, 1, 1, "test").await;
    bench.wait_for_state(id, |state| matches!(state, DeliveryState::Failed(_))).await;
    let health = bench.store.reader().destination(to).unwrap().unwrap().value.health;
    assert_eq!(health, Default::default());
}
