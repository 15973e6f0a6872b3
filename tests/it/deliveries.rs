//! Deliveries to real receivers: complete and in order after downtime, unaffected by failing receivers, and across
//! kill -9 at the worst moments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parallax_core::delivery::{Delivery, DeliveryMessage, DeliveryState, Recipient};
use parallax_core::destination::{Channel, DeliveryHealth, Destination, SigningSecrets};
use parallax_core::id::{DeliveryId, DestinationId, MonitorId, PageId};
use parallax_core::time::Timestamp;
use parallax_store::disk::DiskOptions;
use parallax_store::{Batch, Store};
use parallax_tests::eventually::{eventually, print_figure, print_note, wall_clock};
use parallax_tests::external_tools::{self, ExternalTools};
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::webhook_receiver::{ReceiverMode, WebhookReceiver, WebhookRequest};
use serde_json::json;
use tempfile::TempDir;

const CONFIG: &str = "[deliver]\nallow_private = true\n";
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Longest wait for quick operations.
const SOON: Duration = Duration::from_secs(60);
/// Environment variable with the downtime of the receiver of `one_that_was_away…`, in seconds: 1200 for the long run.
const AWAY: &str = "PARALLAX_AWAY_SECONDS";

/// A coordinator whose store contains destinations and deliveries.
struct Scene {
    coordinator: CoordinatorProcess,
    page: PageId,
    made: u64,
    batch: Batch,
}

impl Scene {
    async fn new() -> Self {
        let mut coordinator = CoordinatorProcess::serve(([127, 0, 0, 1], 0).into(), CONFIG).await;
        let account = coordinator.create_account("pro");
        coordinator.process.terminate();
        coordinator.process.wait_for_exit(SOON).await;
        Self { coordinator, page: account.page.parse().unwrap(), made: 0, batch: Batch::new() }
    }

    fn destination(&mut self, n: u128, url: &str) {
        let secret = SigningSecrets { newest: SECRET.to_owned(), previous: None };
        self.batch.write(Destination {
            id: DestinationId::from_u128(n),
            page: self.page,
            name: format!("Receiver {n}"),
            channel: Channel::Webhook { url: url.to_owned(), secret },
            events: None,
            monitors: None,
            enabled: true,
            health: DeliveryHealth::default(),
            created_at: wall_clock(),
            evidence_link: false,
        });
    }

    /// Queues the next event of a monitor for a destination, due at `due`.
    fn deliver(&mut self, to: u128, monitor: u128, event: &str, due: Timestamp) -> DeliveryId {
        self.made += 1;
        let mut random = [0; 10];
        random[2..].copy_from_slice(&self.made.to_be_bytes());
        let id = DeliveryId::new(due, random);
        let letter = json!({ "event": event, "monitorId": monitor.to_string(), "seq": self.made }).to_string();
        self.batch.write(Delivery {
            id,
            page: Some(self.page),
            to: Recipient::Destination(DestinationId::from_u128(to)),
            event: event.to_owned(),
            monitor: Some(MonitorId::from_u128(monitor)),
            incident: None,
            seq: self.made,
            message: DeliveryMessage::Json(letter.into_bytes()),
            is_single_attempt: false,
            created_at: due,
            state: DeliveryState::Waiting(due),
            attempts: Default::default(),
            attempt_log: Vec::new(),
            outage_start: None,
        });
        id
    }

    async fn store(&self) -> Store {
        let folder = self.coordinator.data().join("store");
        tokio::task::spawn_blocking(move || Store::on_disk(&folder, DiskOptions::default())).await.unwrap().unwrap()
    }

    /// Starts the coordinator on the prepared store.
    async fn begin(&mut self) {
        let store = self.store().await;
        store.commit(std::mem::take(&mut self.batch)).await.unwrap();
        store.close().await;
        drop(store);
        self.coordinator.restart().await;
    }

    /// Stops the coordinator, and opens its store.
    async fn left(&mut self) -> Store {
        self.coordinator.process.terminate();
        assert!(self.coordinator.process.wait_for_exit(SOON).await.success());
        self.store().await
    }
}

/// Counts repeated deliveries, by id.
fn repeated(taken: &[WebhookRequest]) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for it in taken {
        *counts.entry(it.header("webhook-id").to_owned()).or_default() += 1;
    }
    counts.retain(|_, count| {
        *count -= 1;
        *count > 0
    });
    counts
}

/// Returns each monitor's events, in order of first arrival.
fn by_monitor(taken: &[WebhookRequest]) -> BTreeMap<String, Vec<u64>> {
    let (mut seen, mut all) = (BTreeSet::new(), BTreeMap::<String, Vec<u64>>::new());
    for it in taken {
        let body: serde_json::Value = serde_json::from_slice(&it.body).unwrap();
        assert_eq!(it.header("x-service-event"), body["event"]);
        if seen.insert(it.header("webhook-id").to_owned()) {
            let monitor = body["monitorId"].as_str().unwrap().to_owned();
            all.entry(monitor).or_default().push(body["seq"].as_u64().unwrap());
        }
    }
    all
}

fn is_in_order(all: &BTreeMap<String, Vec<u64>>) -> bool {
    all.values().all(|seqs| seqs.is_sorted())
}

/// Verifies the signatures with Python, if it is installed.
async fn check_signatures(test: &str, taken: &[WebhookRequest]) {
    let Some(tools) = ExternalTools::find(test) else { return };
    let folder = TempDir::new().unwrap();
    let lines = taken.iter().map(|it| {
        let headers: serde_json::Map<_, _> =
            it.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        let body: String = it.body.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({ "headers": headers, "body": body }).to_string() + "\n"
    });
    let file = folder.path().join("requests.jsonl");
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let mut python = tools.python("python");
    python.arg(ExternalTools::file("deliveries.py")).arg(&file).arg(SECRET);
    let ran = external_tools::run("receiver", python, folder.path(), SOON).await;
    let expected = format!("{} deliveries are signed", taken.len());
    assert!(ran.success && ran.output.contains(&expected), "{}", ran.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_away_gets_everything_later_in_order_with_the_words_of_its_moment() {
    const MONITORS: u128 = 100;
    let away: i64 = std::env::var(AWAY).map_or(8, |text| text.parse().unwrap());
    let mut receiver = WebhookReceiver::reserve(|_, _| ReceiverMode::Accept).await;
    let mut scene = Scene::new().await;
    scene.destination(1, &receiver.url());
    // Each monitor flaps every 40 s while the receiver is down.
    let began = wall_clock();
    let mut made = BTreeMap::<String, Vec<u64>>::new();
    for flap in 0..=away / 40 {
        for event in ["went-down", "recovered"] {
            for monitor in 0..MONITORS {
                let due = began + flap * 40_000 + if event == "went-down" { 0 } else { 1_500 };
                scene.deliver(1, monitor, event, due);
                made.entry(monitor.to_string()).or_default().push(scene.made);
            }
        }
    }
    scene.begin().await;
    tokio::time::sleep(Duration::from_millis(away.unsigned_abs() * 1_000)).await;
    receiver.listen().await;
    let opened = std::time::Instant::now();
    let count = made.values().map(Vec::len).sum();
    // The next attempt of a destination is at most the longest back-off after such a downtime away.
    let limit = Duration::from_secs(if away > 30 { 36 * 60 } else { 60 });
    receiver.wait_for_count(count, limit).await;
    print_figure("everything came, after the receiver was back", opened.elapsed(), limit);
    let taken = receiver.received();
    assert_eq!((taken.len(), by_monitor(&taken)), (count, made));
    check_signatures("one_that_was_away_gets_everything_later_in_order", &taken).await;
    let store = scene.left().await;
    assert!(store.reader().waiting_deliveries().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_sick_receivers_do_not_delay_a_healthy_one() {
    const HEALTHY: u128 = 1;
    let secret = WebhookReceiver::start(ReceiverMode::Accept).await;
    let healthy = WebhookReceiver::start(ReceiverMode::Accept).await;
    let mut scene = Scene::new().await;
    scene.destination(HEALTHY, &healthy.url());
    let redirect = ReceiverMode::Status(302, format!("Location: {}\r\n", secret.url()));
    let kinds = [
        ReceiverMode::Hang,
        ReceiverMode::Drip,
        ReceiverMode::Status(500, String::new()),
        redirect,
        ReceiverMode::Huge,
        ReceiverMode::Disconnect,
        ReceiverMode::Status(410, String::new()),
        ReceiverMode::Status(429, "Retry-After: 7\r\n".to_owned()),
    ];
    // Later than the coordinator's start with this many deliveries.
    let start = wall_clock() + 15_000;
    let mut sick = Vec::new();
    for (n, manner) in (0..50).zip(kinds.iter().cycle()) {
        let receiver = WebhookReceiver::start(manner.clone()).await;
        // Every ninth destination uses TLS with a receiver that does not.
        let url = if n % 9 == 0 { receiver.url().replace("http:", "https:") } else { receiver.url() };
        scene.destination(100 + n, &url);
        for monitor in 0..4 {
            scene.deliver(100 + n, monitor, "went-down", start);
        }
        sick.push((n, manner.clone(), receiver));
    }
    let mut due = BTreeMap::new();
    for n in 0..100_u32 {
        let at = start + 200 * i64::from(n);
        due.insert(scene.deliver(HEALTHY, u128::from(n % 10 + 20), "went-down", at).to_string(), at);
    }
    scene.begin().await;
    healthy.wait_for_count(100, Duration::from_secs(60)).await;
    let mut late: Vec<i64> = healthy.received().iter().map(|it| it.at.since(due[it.header("webhook-id")])).collect();
    late.sort_unstable();
    print_note(&format!("a healthy receiver next to 50 failing ones: p50 {} ms, p99 {} ms late", late[49], late[98]));
    // A receiver that hangs blocks its own deliveries for ten seconds, and no others.
    assert!(late[98] <= 8_000, "{late:?}");
    assert_eq!(secret.count(), 0, "nobody follows a redirect");
    let mut gaps = Vec::new();
    for (n, manner, receiver) in &sick {
        let taken = receiver.received();
        match manner {
            ReceiverMode::Status(410, _) if n % 9 != 0 => assert!(taken.len() <= 4, "{n}: {}", taken.len()),
            ReceiverMode::Status(429, _) if n % 9 != 0 => {
                let mut last = BTreeMap::new();
                for it in &taken {
                    if let Some(before) = last.insert(it.header("webhook-id").to_owned(), it.at) {
                        gaps.push(it.at.since(before));
                    }
                }
            }
            _ => {}
        }
    }
    print_note(&format!(
        "told to wait for 7 s, {} tries came after {:?} to {:?} ms",
        gaps.len(),
        gaps.iter().min(),
        gaps.iter().max()
    ));
    assert!(gaps.len() >= 8 && gaps.iter().all(|gap| (6_000..=16_000).contains(gap)), "{gaps:?}");
    let store = scene.left().await;
    for (n, manner, _) in &sick {
        let is_off =
            store.reader().destination(DestinationId::from_u128(100 + n)).unwrap().unwrap().value.health.disabled;
        let gone = *manner == ReceiverMode::Status(410, String::new()) && n % 9 != 0;
        assert_eq!(is_off.is_some(), gone, "{n} {manner:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_says_when_is_tried_again_then_however_long_our_pause_would_be() {
    // Our own back-off would be 5 and 30 s.
    let receiver = WebhookReceiver::start_with(|number, _| match number {
        0 => ReceiverMode::Status(500, String::new()),
        1 | 2 => ReceiverMode::Status(503, "Retry-After: 7\r\n".to_owned()),
        3 => ReceiverMode::Status(429, "Retry-After: 2\r\n".to_owned()),
        _ => ReceiverMode::Accept,
    })
    .await;
    let mut scene = Scene::new().await;
    scene.destination(1, &receiver.url());
    let id = scene.deliver(1, 1, "went-down", wall_clock());
    scene.begin().await;
    receiver.wait_for_count(5, Duration::from_secs(80)).await;
    let at: Vec<Timestamp> = receiver.received().iter().map(|it| it.at).collect();
    let gaps: Vec<i64> = at.windows(2).map(|two| two[1].since(two[0])).collect();
    // The last bound is below our own back-off of 30 s.
    for (gap, asked) in gaps[1..].iter().zip([7_000, 7_000, 2_000]) {
        assert!((asked - 1_000..=asked + 10_000).contains(gap), "{gaps:?}");
    }
    let store = scene.left().await;
    let tries = store.reader().delivery(id).unwrap().unwrap().value.attempts;
    assert_eq!((tries.counted(), tries.deferred()), (2, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_between_an_answer_and_its_note_repeats_that_one_and_loses_nothing() {
    const MONITORS: u128 = 12;
    const EVENTS: u64 = 20;
    const KILLS: u32 = 8;
    let (mut scene, pid, kills) = (Scene::new().await, Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (of, killed) = (Arc::clone(&pid), Arc::clone(&kills));
    // The process is killed after every fourteenth response.
    let receiver = WebhookReceiver::start_with(move |number, _| {
        let process = of.load(Ordering::SeqCst);
        if number % 14 == 13 && process != 0 && killed.load(Ordering::SeqCst) < KILLS {
            of.store(0, Ordering::SeqCst);
            killed.fetch_add(1, Ordering::SeqCst);
            return ReceiverMode::AcceptAndKill(process);
        }
        ReceiverMode::Accept
    })
    .await;
    // The receiver waits until the process id is known: all deliveries may arrive before the process is ready.
    receiver.pause();
    scene.destination(1, &receiver.url());
    let mut made = BTreeMap::<String, Vec<u64>>::new();
    for event in 0..EVENTS {
        for monitor in 0..MONITORS {
            let word = if event % 2 == 0 { "went-down" } else { "recovered" };
            scene.deliver(1, monitor, word, wall_clock());
            made.entry(monitor.to_string()).or_default().push(scene.made);
        }
    }
    scene.begin().await;
    let count = made.values().map(Vec::len).sum::<usize>();
    let is_all = || by_monitor(&receiver.received()).values().map(Vec::len).sum::<usize>() == count;
    while kills.load(Ordering::SeqCst) < KILLS {
        pid.store(scene.coordinator.process.id(), Ordering::SeqCst);
        receiver.resume();
        let process = &mut scene.coordinator.process;
        eventually("it is killed", SOON, async || (!process.is_running()).then_some(())).await;
        receiver.pause();
        scene.coordinator.restart().await;
    }
    receiver.resume();
    eventually("everything came", SOON, async || is_all().then_some(())).await;
    let store = scene.left().await;
    assert!(store.reader().waiting_deliveries().unwrap().is_empty());
    let taken = receiver.received();
    assert_eq!(by_monitor(&taken), made, "nothing is lost");
    assert!(is_in_order(&by_monitor(&taken)));
    let repeated = repeated(&taken);
    print_note(&format!("{KILLS} kills between answer and note: {} of {count} came again", repeated.len()));
    // At most one delivery per receiver is in flight.
    assert!(repeated.values().sum::<usize>() <= KILLS as usize, "{repeated:?}");
}
