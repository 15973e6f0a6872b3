//! The deliverer with an in-memory store and receivers on loopback; the clock is set manually.

mod asked;
mod excerpts;
mod plans;
pub(crate) mod receiver;

use std::sync::Mutex;

use futures_util::future::BoxFuture;
use parallax_core::delivery::{Delivery, Letter, Mail, Outcome, Stage};
use parallax_core::destination::{Channel, Destination, OffReason};
use parallax_core::id::{DestinationId, IncidentId, SubscriberId};
use parallax_core::subscriber::Contact;
use parallax_core::time::SECOND;
use tokio::task::JoinHandle;
use url::Url;

use self::receiver::{Receiver, Reply, status};
use super::*;
use crate::storage::contract::samples;
use crate::storage::{Batch, Op};

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const BEGAN: Timestamp = Timestamp::from_millis(1_795_783_560_000);
const PATIENCE: Duration = Duration::from_secs(20);

/// A mail transport that stores the mails.
#[derive(Debug, Default)]
struct Letterbox {
    mails: Mutex<Vec<Parcel>>,
    refuses: bool,
}

impl Post for Letterbox {
    fn post(&self, parcel: Parcel) -> BoxFuture<'_, Posted> {
        self.mails.lock().unwrap().push(parcel);
        let outcome = if self.refuses { Outcome::Refused } else { Outcome::Taken };
        let posted =
            Posted { outcome, status: Some(250), error: None, answer: String::new(), is_ours: false };
        Box::pin(std::future::ready(posted))
    }
}

struct World {
    store: Store,
    clock: Clock,
    wake: Arc<Notify>,
    mails: Arc<Letterbox>,
    counters: Arc<Counters>,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
    made: std::sync::atomic::AtomicU64,
}

impl World {
    async fn new() -> Self {
        Self::with(Letterbox::default()).await
    }

    async fn with(mails: Letterbox) -> Self {
        let store = Store::in_memory().unwrap();
        let clock = Clock::by_hand(BEGAN);
        let (wake, mails) = (Arc::new(Notify::new()), Arc::new(mails));
        let settings = Settings {
            bases: Bases {
                telegram: Url::parse("http://127.0.0.1:9").unwrap(),
                pagerduty: Url::parse("http://127.0.0.1:9").unwrap(),
            },
            base_url: "https://status.example".to_owned(),
            root_domain: None,
            operator_mail: None,
            operator_hook: None,
        };
        let client = Client::new(true, &[]).unwrap();
        let post = Arc::clone(&mails) as Arc<dyn Post>;
        let deliverer =
            Deliverer::new(store.clone(), clock.clone(), client, post, settings, Arc::clone(&wake));
        let counters = deliverer.counters();
        let (stop, stops) = watch::channel(false);
        let mut batch = Batch::new();
        batch.write(samples::account(1)).write(samples::page(1, 1, "one"));
        store.commit(batch).await.unwrap();
        let running = tokio::spawn(deliverer.run(stops, Watch::default()));
        Self { store, clock, wake, mails, counters, stop, running, made: Default::default() }
    }

    async fn put(&self, op: impl Into<Op>) {
        self.store.commit(Batch::new().write(op).clone()).await.unwrap();
        self.wake.notify_one();
    }

    /// Adds a signed webhook.
    async fn hook(&self, n: u128, url: &str) -> DestinationId {
        let secret = Secrets { present: SECRET.to_owned(), before: None };
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
            letter: Letter::Json(format!("{{\"event\":\"{event}\",\"seq\":{seq}}}").into_bytes()),
            created_at: now,
            ..samples::delivery(1, Some(1), Some(now.as_millis()))
        }
    }

    fn stage(&self, id: DeliveryId) -> Stage {
        self.store.reader().delivery(id).unwrap().unwrap().value.stage
    }

    /// Waits until a delivery reaches a stage.
    async fn stands(&self, id: DeliveryId, is: impl Fn(Stage) -> bool) -> Delivery {
        let waiting = async {
            loop {
                let found = self.store.reader().delivery(id).unwrap().unwrap().value;
                if is(found.stage) && (found.tries.all() > 0 || !matches!(found.stage, Stage::Waiting(_))) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{id} is {:?}", self.stage(id)))
    }

    async fn later(&self, millis: i64) {
        self.clock.set(self.clock.now() + millis);
    }

    async fn stopped(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.running).await.unwrap().unwrap();
    }
}

fn delivered(stage: Stage) -> bool {
    matches!(stage, Stage::Delivered(_))
}

fn dropped(stage: Stage) -> bool {
    matches!(stage, Stage::Dropped(_))
}

fn waits(stage: Stage) -> bool {
    matches!(stage, Stage::Waiting(_))
}

#[tokio::test]
async fn what_is_written_is_posted_once_signed_and_noted() {
    let (world, receiver) = (World::new().await, Receiver::healthy().await);
    world.hook(1, &receiver.url()).await;
    let id = world.send(1, 1, 4, "went-down").await;
    let noted = world.stands(id, delivered).await;
    assert_eq!((noted.tries.all(), noted.log[0].status, noted.log[0].answer.as_str()), (1, Some(200), "ok"));
    let got = receiver.got();
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
    assert_eq!(world.counters.tries().filter(|(_, _, count)| *count > 0).count(), 1);
    world.stopped().await;
}

#[tokio::test]
async fn fifty_that_hang_do_not_delay_a_healthy_one() {
    let world = World::new().await;
    let hanging = Receiver::start(|_, _| Reply::Hang).await;
    let mut hung = Vec::new();
    for n in 0..50 {
        // One host name per destination, as in production; all resolve to this host.
        world.hook(10 + n, &format!("http://h{n}.localhost:{}/", hanging.address.port())).await;
        for monitor in 0..4 {
            hung.push(world.send(10 + n, monitor, 1, "went-down").await);
        }
    }
    hanging.has(50).await;
    let healthy = Receiver::healthy().await;
    world.hook(1, &healthy.url()).await;
    let began = Instant::now();
    let mut ids = Vec::new();
    for monitor in 0..20 {
        ids.push(world.send(1, monitor, 2, "went-down").await);
    }
    for id in ids {
        world.stands(id, delivered).await;
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(hanging.got().len(), 50, "one slot each");
    assert!(hung.iter().all(|id| waits(world.stage(*id))));
}

#[tokio::test]
async fn a_lane_goes_out_in_its_order_and_a_failure_holds_it_up_alone() {
    let world = World::new().await;
    let receiver = Receiver::start(|number, _| status(if number == 0 { 500 } else { 200 }, "")).await;
    world.hook(1, &receiver.url()).await;
    let first = world.send(1, 1, 1, "went-down").await;
    world.stands(first, waits).await;
    let later = [world.send(1, 1, 3, "recovered").await, world.send(1, 1, 2, "went-slow").await];
    let other = world.send(1, 2, 4, "went-down").await;
    world.stands(other, delivered).await;
    // The success of another monitor's delivery brings the first one forward.
    for id in later {
        world.stands(id, delivered).await;
    }
    let body = |got: &receiver::Got| serde_json::from_slice::<serde_json::Value>(&got.body).unwrap();
    let seqs: Vec<_> = receiver.got().iter().map(|got| body(got)["seq"].clone()).collect();
    assert_eq!(seqs, [1, 4, 1, 2, 3]);
    let ids: Vec<_> = receiver.got().iter().map(|got| got.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!(ids[0], ids[2], "a delivery keeps its id across attempts");
}

#[tokio::test]
async fn a_still_down_behind_another_is_dropped_and_nothing_else_is() {
    let world = World::new().await;
    let receiver = Receiver::start(|number, _| status(if number == 0 { 500 } else { 200 }, "")).await;
    world.hook(1, &receiver.url()).await;
    let first = world.send(1, 1, 1, "went-down").await;
    world.stands(first, waits).await;
    let still = world.send(1, 1, 2, "still-down").await;
    let recovered = world.send(1, 1, 3, "recovered").await;
    world.stands(still, dropped).await;
    world.later(7 * SECOND).await;
    world.stands(first, delivered).await;
    world.stands(recovered, delivered).await;
    let alone = world.send(1, 1, 4, "still-down").await;
    world.stands(alone, delivered).await;
    assert_eq!(receiver.got().len(), 4);
    assert_eq!(world.counters.dropped.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_receiver_that_asks_to_wait_is_left_alone_for_so_long() {
    let world = World::new().await;
    let receiver = Receiver::start(|number, _| match number {
        0 => status(429, "Retry-After: 7\r\n"),
        _ => status(200, ""),
    })
    .await;
    world.hook(1, &receiver.url()).await;
    let id = world.send(1, 1, 1, "went-down").await;
    let noted = world.stands(id, waits).await;
    assert_eq!(noted.stage, Stage::Waiting(BEGAN + 7_000));
    assert_eq!(noted.log[0].error.as_deref(), Some("unexpected status 429"));
    world.later(7_000).await;
    world.stands(id, delivered).await;
}

#[tokio::test]
async fn one_that_is_gone_is_switched_off_its_owner_is_told_and_what_waits_is_dropped() {
    let world = World::new().await;
    let receiver = Receiver::start(|number, _| status(if number == 0 { 500 } else { 410 }, "")).await;
    let to = world.hook(1, &receiver.url()).await;
    let waiting = world.send(1, 1, 1, "went-down").await;
    world.stands(waiting, waits).await;
    let id = world.send(1, 2, 2, "went-down").await;
    world.stands(id, |stage| matches!(stage, Stage::Failed(_))).await;
    world.stands(waiting, dropped).await;
    let health = world.store.reader().destination(to).unwrap().unwrap().value.health;
    assert_eq!(health.off, Some((BEGAN, OffReason::Gone)));
    let told = world.store.reader().deliveries_of(Some(samples::page_id(1)), None, 10).unwrap();
    let told = told.iter().find(|it| it.value.event == "destination.off").unwrap().value.id;
    world.stands(told, delivered).await;
    let mails = world.mails.mails.lock().unwrap().clone();
    let account = world.store.reader().account(samples::account_id(1)).unwrap().unwrap().value;
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, account.email.as_str()));
    // Only a test is still sent.
    let vain = world.send(1, 3, 3, "went-down").await;
    world.stands(vain, dropped).await;
    let test = world.send(1, 4, 4, "test").await;
    world.stands(test, |stage| matches!(stage, Stage::Failed(_))).await;
    assert_eq!(receiver.got().len(), 3);
}

#[tokio::test]
async fn a_test_that_fails_switches_nothing_off_and_accuses_nobody() {
    let world = World::new().await;
    let receiver = Receiver::start(|_, _| status(410, "")).await;
    let to = world.hook(1, &receiver.url()).await;
    let id = world.send(1, 1, 1, "test").await;
    world.stands(id, |stage| matches!(stage, Stage::Failed(_))).await;
    let health = world.store.reader().destination(to).unwrap().unwrap().value.health;
    assert_eq!(health, Default::default());
}

#[tokio::test]
async fn what_is_for_a_receiver_that_was_deleted_or_disabled_is_dropped() {
    let world = World::new().await;
    let receiver = Receiver::healthy().await;
    let to = world.hook(1, &receiver.url()).await;
    let disabled =
        Destination { enabled: false, ..world.store.reader().destination(to).unwrap().unwrap().value };
    world.put(disabled).await;
    let id = world.send(1, 1, 1, "went-down").await;
    world.stands(id, dropped).await;
    let nobody = world.send(2, 1, 1, "went-down").await;
    world.stands(nobody, dropped).await;
    assert!(receiver.got().is_empty());
}

#[tokio::test]
async fn a_mailbox_that_refuses_for_good_three_times_is_switched_off() {
    let world = World::with(Letterbox { refuses: true, ..Letterbox::default() }).await;
    world.put(samples::destination(1, 1)).await;
    for seq in 1..=4 {
        let letter = Letter::Mail(Mail { subject: String::new(), text: String::new(), html: String::new() });
        let to = Recipient::Destination(DestinationId::from_u128(1));
        let delivery = Delivery { letter, ..world.delivery(to, seq, "went-down") };
        let id = delivery.id;
        world.put(delivery).await;
        let ends = |stage| if seq < 4 { matches!(stage, Stage::Failed(_)) } else { dropped(stage) };
        world.stands(id, ends).await;
    }
    let health = world.store.reader().destination(DestinationId::from_u128(1)).unwrap().unwrap().value.health;
    assert_eq!(health.off, Some((BEGAN, OffReason::Refused)));
}

#[tokio::test]
async fn news_goes_to_subscribers_who_confirmed_by_the_way_they_chose() {
    let (world, receiver) = (World::new().await, Receiver::healthy().await);
    let bulletin = samples::bulletin(5, 1, false);
    world.put(bulletin.clone()).await;
    let secret = Secrets { present: SECRET.to_owned(), before: None };
    let hook = Contact::Webhook { url: receiver.url(), secret };
    let mut hooked = samples::subscriber(1, 1, 1);
    hooked.contact = hook;
    let mut unconfirmed = samples::subscriber(3, 1, 3);
    unconfirmed.confirmed_at = None;
    for subscriber in [hooked, samples::subscriber(2, 1, 2), unconfirmed] {
        world.put(subscriber).await;
    }
    let mut ids = Vec::new();
    for n in 1..=4 {
        let incident = Some(IncidentId::from_u128(1));
        let letter = Letter::Bulletin(bulletin.id);
        let delivery = world.delivery(Recipient::Subscriber(SubscriberId::from_u128(n)), 3, &bulletin.event);
        let delivery = Delivery { monitor: None, incident, letter, ..delivery };
        ids.push(delivery.id);
        world.put(delivery).await;
    }
    world.stands(ids[0], delivered).await;
    world.stands(ids[1], delivered).await;
    world.stands(ids[2], dropped).await;
    world.stands(ids[3], dropped).await;
    let got = receiver.got();
    assert_eq!((got.len(), got[0].header("X-Service-Event")), (1, Some("incident.created")));
    let body: serde_json::Value = serde_json::from_slice(&got[0].body).unwrap();
    let leave = samples::subscriber(1, 1, 1).unsubscribe_url("https://status.example/p/one");
    assert_eq!(body["unsubscribeUrl"], leave, "a webhook has its own unsubscribe URL");
    let mails = world.mails.mails.lock().unwrap().clone();
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, "2@example.com"));
    assert!(mails[0].unsubscribe.as_ref().is_some_and(|url| url.starts_with("https://status.example/")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_on_its_way_is_noted_before_it_stops() {
    let world = World::new().await;
    let (let_go, hold) = std::sync::mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let receiver = Receiver::start(move |_, _| {
        tokio::task::block_in_place(|| hold.lock().unwrap().recv().unwrap());
        status(200, "")
    });
    let receiver = receiver.await;
    world.hook(1, &receiver.url()).await;
    let id = world.send(1, 1, 1, "went-down").await;
    receiver.has(1).await;
    world.stop.send_replace(true);
    let store = world.store.clone();
    let_go.send(()).unwrap();
    timeout(PATIENCE, world.running).await.unwrap().unwrap();
    assert!(delivered(store.reader().delivery(id).unwrap().unwrap().value.stage));
}
