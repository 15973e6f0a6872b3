//! A crowd at a public page: views while monitors go on, and event streams that stay open.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::{figure, gauge, is_whole, line, quantile};
use crate::installation::{Account, Coordinator};

/// Monitors that go on meanwhile.
const MONITORS: u32 = 500;
/// Connections that views come over, each a view after another.
const CONNECTIONS: u32 = 32;
/// Views a second: an hour's crowd of a large service in some minutes.
const RATE: u32 = 2_000;
/// How often each monitor is checked.
const INTERVAL: Duration = Duration::from_secs(30);
/// Microseconds after which a view is called slow.
const SLOW: i64 = 20_000;
/// No key's minute is up in a bench.
const CONFIG: &str = "requests_per_minute = 100000000\n";

/// When each monitor was checked, as its target saw it.
type Arrivals = Rc<RefCell<BTreeMap<u32, Vec<Instant>>>>;

/// So many views of a page while its monitors are checked, then so many streams of its events.
pub(super) fn visitors(views: u32, streams: u32) {
    let core = gauge::step_aside();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let coordinator = Coordinator::serve(here, CONFIG).await;
        let account = coordinator.account("pro");
        let arrivals = Arrivals::default();
        let target = target(Rc::clone(&arrivals)).await;
        for number in 0..MONITORS {
            let body =
                json!({ "name": format!("Service {number}"), "url": format!("http://{target}/{number}") });
            account.client.create_monitor(&account.page, &body).await;
        }
        let mut agent = coordinator.agent("eu", "europe", "AS64500", None);
        coordinator.connected(1).await;
        for process in [coordinator.process.id(), agent.process().id()] {
            gauge::pin(process, core);
        }
        let base = coordinator.ready.base_url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let address: SocketAddr = base.parse().expect("an address");
        watched(&coordinator, &account, address, &arrivals, views).await;
        streamed(&coordinator, &account, address, streams).await;
        figure("load", gauge::load(), "-", "-");
    });
}

/// Views at a steady rate, and what they do to the checks.
async fn watched(
    coordinator: &Coordinator,
    account: &Account,
    address: SocketAddr,
    arrivals: &Arrivals,
    views: u32,
) {
    let process = coordinator.process.id();
    let request = request(&format!("/p/{}", account.slug), address);
    // All have been checked, and the page was drawn.
    tokio::time::sleep(INTERVAL + Duration::from_secs(5)).await;
    one(address, &request).await;
    let calm = Instant::now();
    tokio::time::sleep(INTERVAL * 2).await;
    let before = gauge::resident(process);
    let crowd = Instant::now();
    let cpu = gauge::cpu_seconds(process);
    let request = Rc::new(request);
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|first| {
            let request = Rc::clone(&request);
            tokio::task::spawn_local(async move {
                let mut stream = TcpStream::connect(address).await.expect("it listens");
                stream.set_nodelay(true).expect("a socket");
                let (mut held, mut micros) = (Vec::with_capacity(64 * 1024), Vec::new());
                for turn in (first..views).step_by(CONNECTIONS as usize) {
                    let due = crowd + Duration::from_secs(1) * turn / RATE;
                    tokio::time::sleep_until(due).await;
                    stream.write_all(request.as_bytes()).await.expect("it listens");
                    held.clear();
                    while !is_whole(&held) {
                        assert!(stream.read_buf(&mut held).await.expect("an answer") > 0, "it stays");
                    }
                    assert!(held.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&held));
                    // From when it was due, so that one who had to wait counts.
                    let took = i64::try_from(due.elapsed().as_micros()).expect("seconds");
                    micros.push((took, turn / RATE));
                }
                micros
            })
        })
        .collect();
    let mut micros = Vec::new();
    for task in tasks {
        micros.extend(task.await.expect("a visitor ends"));
    }
    // Which seconds were slow, for whoever asks why.
    let mut worst: BTreeMap<u32, i64> = BTreeMap::new();
    for (micros, second) in &micros {
        worst.entry(*second).and_modify(|worst| *worst = (*worst).max(*micros)).or_insert(*micros);
    }
    let slow = worst
        .iter()
        .filter(|(_, micros)| **micros > SLOW)
        .map(|(at, micros)| format!("{at}:{}", micros / 1000));
    line(&format!("# slow seconds and their worst ms: {}", slow.collect::<Vec<_>>().join(" ")));
    let mut micros: Vec<i64> = micros.into_iter().map(|(micros, _)| micros).collect();
    micros.sort_unstable();
    let (took, cpu) = (crowd.elapsed(), gauge::cpu_seconds(process) - cpu);
    figure("views", f64::from(views), "views", "-");
    figure("views_rate", f64::from(views) / took.as_secs_f64(), "views/s", "-");
    figure("views_cpu", cpu * 1e6 / f64::from(views), "us/view", "-");
    figure("views_p50", quantile(&micros, 0.5) / 1e3, "ms", "-");
    figure("views_p99", quantile(&micros, 0.99) / 1e3, "ms", "<=50");
    figure("views_worst", quantile(&micros, 1.0) / 1e3, "ms", "-");
    let grown = mebibytes(gauge::resident(process)) - mebibytes(before);
    figure("views_memory", grown, "MiB", "<=64");
    for (name, from, to) in [("before", calm, crowd), ("during", crowd, Instant::now())] {
        let mut off = rhythm(&arrivals.borrow(), from, to);
        off.sort_unstable();
        figure(
            &format!("checks_{name}"),
            f64::from(u32::try_from(off.len()).expect("a count")),
            "checks",
            "-",
        );
        figure(&format!("checks_{name}_off_p50"), quantile(&off, 0.5), "ms", "-");
        figure(&format!("checks_{name}_off_p99"), quantile(&off, 0.99), "ms", "-");
    }
}

/// By how many ms each check in that time came off the rhythm of the one before it.
fn rhythm(arrivals: &BTreeMap<u32, Vec<Instant>>, from: Instant, to: Instant) -> Vec<i64> {
    let pairs = arrivals.values().flat_map(|of_one| of_one.windows(2));
    let within = pairs.filter(|two| from <= two[1] && two[1] < to);
    within
        .map(|two| {
            let apart = i64::try_from((two[1] - two[0]).as_millis()).expect("minutes");
            let interval = i64::try_from(INTERVAL.as_millis()).expect("seconds");
            (apart - interval * (apart + interval / 2).div_euclid(interval).max(1)).abs()
        })
        .collect()
}

/// Streams of the page's events, what they cost, and how soon all of them hear of a change.
async fn streamed(coordinator: &Coordinator, account: &Account, address: SocketAddr, streams: u32) {
    let process = coordinator.process.id();
    let before = gauge::resident(process);
    let begun = Instant::now();
    let request = request(&format!("/p/{}/events", account.slug), address);
    let mut open = Vec::new();
    for _ in 0..streams {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it listens");
        let mut said = [0; 1024];
        let count = stream.read(&mut said).await.expect("an answer");
        assert!(said[..count].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said));
        open.push(stream);
    }
    let after = gauge::resident(process);
    figure("streams", f64::from(streams), "streams", "-");
    figure("streams_opened_in", begun.elapsed().as_secs_f64(), "s", "-");
    figure("streams_memory", mebibytes(after) - mebibytes(before), "MiB", "<=200");
    let changed = Instant::now();
    let incident = json!({ "title": "Told to all", "impact": "none", "message": "x" });
    account.client.post(&format!("/pages/{}/incidents", account.page), &incident).await.is(201);
    let hear = |mut stream: TcpStream| {
        tokio::task::spawn_local(async move {
            let mut said = Vec::new();
            while !said.windows(5).any(|five| five == b"data:") {
                assert!(stream.read_buf(&mut said).await.expect("a word") > 0, "the stream stays");
            }
            i64::try_from(changed.elapsed().as_millis()).expect("seconds")
        })
    };
    let mut millis = Vec::new();
    for heard in open.into_iter().map(hear).collect::<Vec<_>>() {
        millis.push(heard.await.expect("a stream hears"));
    }
    millis.sort_unstable();
    figure("streams_heard_p50", quantile(&millis, 0.5), "ms", "-");
    figure("streams_heard_last", quantile(&millis, 1.0), "ms", "-");
    figure("streams_memory_told", mebibytes(gauge::resident(process)) - mebibytes(before), "MiB", "<=200");
}

async fn one(address: SocketAddr, request: &str) {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut held = Vec::new();
    while !is_whole(&held) {
        assert!(stream.read_buf(&mut held).await.expect("an answer") > 0, "it stays");
    }
}

fn request(path: &str, address: SocketAddr) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept-encoding: gzip, br\r\n\r\n")
}

/// A web server that notes when it was asked for which number.
async fn target(arrivals: Arrivals) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::task::spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let arrivals = Rc::clone(&arrivals);
            tokio::task::spawn_local(async move {
                let mut request = [0; 1024];
                while let Ok(count @ 1..) = stream.read(&mut request).await {
                    let text = String::from_utf8_lossy(&request[..count]).into_owned();
                    let number = text.split(['/', ' ']).nth(2).and_then(|number| number.parse().ok());
                    if let Some(number) = number {
                        arrivals.borrow_mut().entry(number).or_default().push(Instant::now());
                    }
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    if stream.write_all(answer).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

fn mebibytes(bytes: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "bytes")]
    let bytes = bytes as f64;
    bytes / f64::from(1 << 20)
}
