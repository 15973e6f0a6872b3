//! Benchmarks of deliveries to receivers on loopback: deliveries per CPU second, and the latency from commit to
//! receipt.

use std::sync::Arc;
use std::time::Duration;

use parallax_core::delivery::{Delivery, DeliveryMessage, DeliveryState, Recipient};
use parallax_core::destination::{Channel, DeliveryHealth, Destination, SigningSecrets};
use parallax_core::id::{DeliveryId, DestinationId, MonitorId, PageId};
use parallax_core::plan::Plan;
use parallax_core::time::Timestamp;
use parallax_notify::deliver::channel::ServiceUrls;
use parallax_notify::deliver::http_client::DeliveryClient;
use parallax_notify::deliver::mail::{MailBackend, MailConfig, Mailer};
use parallax_notify::deliver::stop_links::StopLinks;
use parallax_notify::deliver::{Deliverer, DeliverySettings};
use parallax_runtime::clock::Clock;
use parallax_runtime::supervisor::Supervisor;
use parallax_store::{Batch, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::coordinator::{self, BenchInstallation};
use super::{figure, is_whole, now_ms, process_usage, quantile};

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Receivers, each on its own port.
const RECEIVERS: u16 = 64;
/// Monitors that the deliveries refer to.
const MONITORS: u32 = 1000;
/// Deliveries sent one by one.
const SINGLE: u32 = 500;
/// Length of a message, close to that of a real one.
const LETTER: usize = 900;

/// Sends `count` queued deliveries, then some one by one.
pub(super) fn deliveries(count: u32) {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let made = coordinator::create_installation(1, 0, Plan::Pro).await;
        let (told, mut taken) = watch::channel(0_u32);
        let told = Arc::new(told);
        let mut ports = Vec::new();
        for _ in 0..RECEIVERS {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            ports.push(listener.local_addr().expect("an address").port());
            tokio::spawn(accept_connections(listener, Arc::clone(&told)));
        }
        let page = made.monitors[0].page;
        seed(&made, page, &ports, count).await;

        let running = made.serve(core).await;
        let begun = Instant::now();
        let cpu = process_usage::cpu_seconds(running.process.id());
        let before = *taken.borrow();
        taken.wait_for(|taken| *taken >= count).await.expect("the sender lives");
        let cpu = process_usage::cpu_seconds(running.process.id()) - cpu;
        let sent = f64::from(count - before);
        figure("deliveries_per_cpu_second", sent / cpu, "deliveries/s", "-");
        figure("deliveries_rate", sent / begun.elapsed().as_secs_f64(), "deliveries/s", "-");
        figure("deliveries_cpu", cpu * 1e6 / sent, "us/delivery", "-");
        drop(running);

        let mut micros = one_by_one(&made, page, &mut taken).await;
        micros.sort_unstable();
        figure("delivery_from_commit_p50", quantile(&micros, 0.5) / 1e3, "ms", "-");
        figure("delivery_from_commit_p99", quantile(&micros, 0.99) / 1e3, "ms", "<=2000");
    });
}

async fn seed(made: &BenchInstallation, page: PageId, ports: &[u16], count: u32) {
    let store = made.open_store().await;
    let mut batch = Batch::new();
    for (n, port) in (0..).zip(ports) {
        let secret = SigningSecrets { newest: SECRET.to_owned(), previous: None };
        batch.write(Destination {
            id: DestinationId::from_u128(n),
            page,
            name: "Receiver".to_owned(),
            channel: Channel::Webhook { url: format!("http://127.0.0.1:{port}/"), secret },
            events: None,
            monitors: None,
            enabled: true,
            health: DeliveryHealth::default(),
            created_at: Timestamp::from_millis(now_ms()),
            evidence_link: false,
        });
    }
    store.commit(batch).await.expect("a commit");
    for first in (0..count).step_by(coordinator::WRITES_PER_COMMIT) {
        let mut batch = Batch::new();
        let some = first..count.min(first + u32::try_from(coordinator::WRITES_PER_COMMIT).expect("a number"));
        for number in some {
            batch.write(delivery(page, number));
        }
        store.commit(batch).await.expect("a commit");
    }
    store.close().await;
}

/// Returns the microseconds from commit to receipt of each delivery.
async fn one_by_one(made: &BenchInstallation, page: PageId, taken: &mut watch::Receiver<u32>) -> Vec<i64> {
    let (store, wake) = (made.open_store().await, Arc::new(Notify::new()));
    let nowhere = || reqwest::Url::parse("http://127.0.0.1:9").expect("a URL");
    let settings = DeliverySettings {
        service_urls: ServiceUrls { telegram: nowhere(), pagerduty: nowhere() },
        base_url: "http://127.0.0.1:9".to_owned(),
        root_domain: None,
        operator_mail: None,
        operator_hook: None,
    };
    let client = DeliveryClient::new(true, &[]).expect("a client");
    let from = "parallax@example.com".to_owned();
    let mail = MailConfig { backend: MailBackend::None, from, reply_to: None };
    let mailer = Arc::new(Mailer::new(&mail).expect("a mailer"));
    let deliverer = Deliverer::new(
        store.clone(),
        Clock::system(),
        client,
        mailer,
        settings,
        StopLinks::default(),
        Arc::clone(&wake),
    );
    let (stop, stops) = watch::channel(false);
    let running = tokio::spawn(deliverer.run(stops, Supervisor::default()));
    let mut micros = Vec::new();
    for number in 0..SINGLE {
        let before = *taken.borrow_and_update();
        commit(&store, delivery(page, u32::MAX - number)).await;
        let begun = Instant::now();
        wake.notify_one();
        taken.wait_for(|taken| *taken > before).await.expect("the sender lives");
        micros.push(i64::try_from(begun.elapsed().as_micros()).expect("it fits"));
        // Irregular pauses, as with real alerts.
        tokio::time::sleep(Duration::from_millis(u64::from(number % 7) * 5)).await;
    }
    stop.send_replace(true);
    running.await.expect("it stops");
    store.close().await;
    micros
}

async fn commit(store: &Store, delivery: Delivery) {
    store.commit(Batch::new().write(delivery).clone()).await.expect("a commit");
}

fn delivery(page: PageId, number: u32) -> Delivery {
    let now = Timestamp::from_millis(now_ms());
    let mut random = [0; 10];
    random[..4].copy_from_slice(&number.to_be_bytes());
    Delivery {
        id: DeliveryId::new(now, random),
        page: Some(page),
        to: Recipient::Destination(DestinationId::from_u128(u128::from(number % u32::from(RECEIVERS)))),
        event: "went-down".to_owned(),
        monitor: Some(MonitorId::from_u128(u128::from(number / u32::from(RECEIVERS) % MONITORS))),
        incident: None,
        seq: u64::from(number),
        message: DeliveryMessage::Json(vec![b'x'; LETTER]),
        is_single_attempt: false,
        created_at: now,
        state: DeliveryState::Waiting(now),
        attempts: Default::default(),
        attempt_log: Vec::new(),
        outage_start: None,
    }
}

async fn accept_connections(listener: TcpListener, told: Arc<watch::Sender<u32>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, Arc::clone(&told)));
    }
}

async fn answer(mut stream: TcpStream, told: Arc<watch::Sender<u32>>) {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 8192]);
    while !is_whole(&bytes) {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    }
    told.send_modify(|taken| *taken += 1);
    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
}
