//! Deliveries to real receivers: late but whole and in order, past the sick, and over kill -9 in the worst moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parallax_coordinator::storage::disk::Options;
use parallax_coordinator::storage::{Batch, Store};
use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::destination::{Channel, Destination, Health, Secrets};
use parallax_core::id::{DeliveryId, DestinationId, MonitorId, PageId};
use parallax_core::time::Timestamp;
use parallax_tests::eventually::{eventually, figure, note, wall_clock};
use parallax_tests::installation::Coordinator;
use parallax_tests::receivers::{Manner, Receiver, Taken};
use parallax_tests::tools::{self, Tools};
use serde_json::json;
use tempfile::TempDir;

const CONFIG: &str = "[deliver]\nallow_private = true\n";
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Longest wait for what should be quick.
const SOON: Duration = Duration::from_secs(60);
/// Seconds that the receiver of `one_that_was_away…` is away for: 1200 for the long run.
const AWAY: &str = "PARALLAX_AWAY_SECONDS";

/// A coordinator whose store was given destinations and deliveries.
struct Scene {
    coordinator: Coordinator,
    page: PageId,
    made: u64,
    batch: Batch,
}

impl Scene {
    async fn new() -> Self {
        let mut coordinator = Coordinator::serve(([127, 0, 0, 1], 0).into(), CONFIG).await;
        let account = coordinator.account("pro");
        coordinator.process.terminate();
        coordinator.process.ended(SOON).await;
        Self { coordinator, page: account.page.parse().unwrap(), made: 0, batch: Batch::new() }
    }

    fn destination(&mut self, n: u128, url: &str) {
        let secret = Secrets { present: SECRET.to_owned(), before: None };
        self.batch.write(Destination {
            id: DestinationId::from_u128(n),
            page: self.page,
            name: format!("Receiver {n}"),
            channel: Channel::Webhook { url: url.to_owned(), secret },
            events: None,
            monitors: None,
            enabled: true,
            health: Health::default(),
            created_at: wall_clock(),
        });
    }

    /// The next event of a monitor, to be sent to a destination from `due` on.
    fn deliver(&mut self, to: u128, monitor: u128, event: &str, due: Timestamp) -> DeliveryId {
        self.made += 1;
        let mut random = [0; 10];
        random[2..].copy_from_slice(&self.made.to_be_bytes());
        let id = DeliveryId::new(due, random);
        let letter =
            json!({ "event": event, "monitorId": monitor.to_string(), "seq": self.made }).to_string();
        self.batch.write(Delivery {
            id,
            page: Some(self.page),
            to: Recipient::Destination(DestinationId::from_u128(to)),
            event: event.to_owned(),
            monitor: Some(MonitorId::from_u128(monitor)),
            incident: None,
            seq: self.made,
            letter: Letter::Json(letter.into_bytes()),
            once: false,
            created_at: due,
            stage: Stage::Waiting(due),
            tries: Default::default(),
            log: Vec::new(),
            began: None,
        });
        id
    }

    async fn store(&self) -> Store {
        let folder = self.coordinator.data().join("store");
        tokio::task::spawn_blocking(move || Store::on_disk(&folder, Options::default()))
            .await
            .unwrap()
            .unwrap()
    }

    /// Starts the coordinator on what was made.
    async fn begin(&mut self) {
        let store = self.store().await;
        store.commit(std::mem::take(&mut self.batch)).await.unwrap();
        store.close().await;
        drop(store);
        self.coordinator.restart().await;
    }

    /// Stops the coordinator, and opens what it left.
    async fn left(&mut self) -> Store {
        self.coordinator.process.terminate();
        assert!(self.coordinator.process.ended(SOON).await.success());
        self.store().await
    }
}

/// Deliveries that came more than once, by how often beyond that.
fn repeated(taken: &[Taken]) -> BTreeMap<String, usize> {
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

/// Each monitor's events in the order in which they came for the first time.
fn by_monitor(taken: &[Taken]) -> BTreeMap<String, Vec<u64>> {
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

/// Has Python check the signatures, where it is there.
async fn check_signatures(test: &str, taken: &[Taken]) {
    let Some(tools) = Tools::find(test) else { return };
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
    python.arg(Tools::file("deliveries.py")).arg(&file).arg(SECRET);
    let ran = tools::run("receiver", python, folder.path(), SOON).await;
    let expected = format!("{} deliveries are signed", taken.len());
    assert!(ran.ok && ran.said.contains(&expected), "{}", ran.said);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_away_gets_everything_later_in_order_with_the_words_of_its_moment() {
    const MONITORS: u128 = 100;
    let away: i64 = std::env::var(AWAY).map_or(8, |text| text.parse().unwrap());
    let mut receiver = Receiver::closed(|_, _| Manner::Take).await;
    let mut scene = Scene::new().await;
    scene.destination(1, &receiver.url());
    // A flap of each monitor every 40 s, as long as nobody is there.
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
    receiver.open().await;
    let opened = std::time::Instant::now();
    let count = made.values().map(Vec::len).sum();
    // The next try of some lane is at most the longest pause that so long an absence leads to away.
    let limit = Duration::from_secs(if away > 30 { 36 * 60 } else { 60 });
    receiver.has(count, limit).await;
    figure("everything came, after the receiver was back", opened.elapsed(), limit);
    let taken = receiver.taken();
    assert_eq!((taken.len(), by_monitor(&taken)), (count, made));
    check_signatures("one_that_was_away_gets_everything_later_in_order", &taken).await;
    let store = scene.left().await;
    assert!(store.reader().waiting().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_sick_receivers_do_not_delay_a_healthy_one() {
    const HEALTHY: u128 = 1;
    let secret = Receiver::start(Manner::Take).await;
    let healthy = Receiver::start(Manner::Take).await;
    let mut scene = Scene::new().await;
    scene.destination(HEALTHY, &healthy.url());
    let redirect = Manner::Status(302, format!("Location: {}\r\n", secret.url()));
    let kinds = [
        Manner::Hang,
        Manner::Drip,
        Manner::Status(500, String::new()),
        redirect,
        Manner::Huge,
        Manner::Cut,
        Manner::Status(410, String::new()),
        Manner::Status(429, "Retry-After: 7\r\n".to_owned()),
    ];
    // Later than the coordinator takes to start on all this.
    let start = wall_clock() + 15_000;
    let mut sick = Vec::new();
    for (n, manner) in (0..50).zip(kinds.iter().cycle()) {
        let receiver = Receiver::start(manner.clone()).await;
        // Every ninth is spoken to by TLS, which it does not speak.
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
    healthy.has(100, Duration::from_secs(60)).await;
    let mut late: Vec<i64> =
        healthy.taken().iter().map(|it| it.at.since(due[it.header("webhook-id")])).collect();
    late.sort_unstable();
    note(&format!("a healthy receiver beside 50 sick ones: p50 {} ms, p99 {} ms late", late[49], late[98]));
    // One that hangs holds whoever waits for it for ten seconds.
    assert!(late[98] <= 8_000, "{late:?}");
    assert_eq!(secret.count(), 0, "nobody follows a redirect");
    let mut gaps = Vec::new();
    for (n, manner, receiver) in &sick {
        let taken = receiver.taken();
        match manner {
            Manner::Status(410, _) if n % 9 != 0 => assert!(taken.len() <= 4, "{n}: {}", taken.len()),
            Manner::Status(429, _) if n % 9 != 0 => {
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
    note(&format!(
        "told to wait for 7 s, {} tries came after {:?} to {:?} ms",
        gaps.len(),
        gaps.iter().min(),
        gaps.iter().max()
    ));
    assert!(gaps.len() >= 8 && gaps.iter().all(|gap| (6_000..=16_000).contains(gap)), "{gaps:?}");
    let store = scene.left().await;
    for (n, manner, _) in &sick {
        let is_off =
            store.reader().destination(DestinationId::from_u128(100 + n)).unwrap().unwrap().value.health.off;
        let gone = *manner == Manner::Status(410, String::new()) && n % 9 != 0;
        assert_eq!(is_off.is_some(), gone, "{n} {manner:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_says_when_is_tried_again_then_however_long_our_pause_would_be() {
    // The pauses of ours would be 5 and 30 s.
    let receiver = Receiver::deciding(|number, _| match number {
        0 => Manner::Status(500, String::new()),
        1 | 2 => Manner::Status(503, "Retry-After: 7\r\n".to_owned()),
        3 => Manner::Status(429, "Retry-After: 2\r\n".to_owned()),
        _ => Manner::Take,
    })
    .await;
    let mut scene = Scene::new().await;
    scene.destination(1, &receiver.url());
    let id = scene.deliver(1, 1, "went-down", wall_clock());
    scene.begin().await;
    receiver.has(5, Duration::from_secs(80)).await;
    let at: Vec<Timestamp> = receiver.taken().iter().map(|it| it.at).collect();
    let gaps: Vec<i64> = at.windows(2).map(|two| two[1].since(two[0])).collect();
    // The last bound is below the 30 s that our own pause would be.
    for (gap, asked) in gaps[1..].iter().zip([7_000, 7_000, 2_000]) {
        assert!((asked - 1_000..=asked + 10_000).contains(gap), "{gaps:?}");
    }
    let store = scene.left().await;
    let tries = store.reader().delivery(id).unwrap().unwrap().value.tries;
    assert_eq!((tries.counted(), tries.asked()), (2, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_between_an_answer_and_its_note_repeats_that_one_and_loses_nothing() {
    const MONITORS: u128 = 12;
    const EVENTS: u64 = 20;
    const KILLS: u32 = 8;
    let (mut scene, pid, kills) =
        (Scene::new().await, Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (of, killed) = (Arc::clone(&pid), Arc::clone(&kills));
    // Every fourteenth answer is the last that the process hears.
    let receiver = Receiver::deciding(move |number, _| {
        let process = of.load(Ordering::SeqCst);
        if number % 14 == 13 && process != 0 && killed.load(Ordering::SeqCst) < KILLS {
            of.store(0, Ordering::SeqCst);
            killed.fetch_add(1, Ordering::SeqCst);
            return Manner::TakeAndKill(process);
        }
        Manner::Take
    })
    .await;
    // Until it is known whom to kill, nothing is taken: all may be there before the process says it is ready.
    receiver.hold();
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
    let is_all = || by_monitor(&receiver.taken()).values().map(Vec::len).sum::<usize>() == count;
    while kills.load(Ordering::SeqCst) < KILLS {
        pid.store(scene.coordinator.process.id(), Ordering::SeqCst);
        receiver.go_on();
        let process = &mut scene.coordinator.process;
        eventually("it is killed", SOON, async || (!process.running()).then_some(())).await;
        receiver.hold();
        scene.coordinator.restart().await;
    }
    receiver.go_on();
    eventually("everything came", SOON, async || is_all().then_some(())).await;
    let store = scene.left().await;
    assert!(store.reader().waiting().unwrap().is_empty());
    let taken = receiver.taken();
    assert_eq!(by_monitor(&taken), made, "nothing is lost");
    assert!(is_in_order(&by_monitor(&taken)));
    let repeated = repeated(&taken);
    note(&format!("{KILLS} kills between answer and note: {} of {count} came again", repeated.len()));
    // One is on its way to one receiver at most.
    assert!(repeated.values().sum::<usize>() <= KILLS as usize, "{repeated:?}");
}
