//! Benchmark of many visitors on a public page: views while monitors are checked, and open event streams.

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

use super::{figure, is_whole, line, process_usage, quantile};
use crate::installation::{CoordinatorProcess, TestAccount};

/// Monitors that are checked meanwhile.
const MONITORS: u32 = 500;
/// Connections for page views, one request at a time on each.
const CONNECTIONS: u32 = 32;
/// Views per second: a large service's hourly visitors within minutes.
const RATE: u32 = 2_000;
/// Interval of each monitor.
const INTERVAL: Duration = Duration::from_secs(30);
/// Threshold of a slow view, in µs.
const SLOW: i64 = 20_000;
/// Rate limit high enough that no key reaches it.
const CONFIG: &str = "requests_per_minute = 100000000\n";

/// Times of the checks of each monitor, as the target saw them.
type Arrivals = Rc<RefCell<BTreeMap<u32, Vec<Instant>>>>;

/// Measures `views` page views while monitors are checked, then `streams` open event streams.
pub(super) fn visitors(views: u32, streams: u32) {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let coordinator = CoordinatorProcess::serve(here, CONFIG).await;
        let account = coordinator.create_account("pro");
        let arrivals = Arrivals::default();
        let target = target(Rc::clone(&arrivals)).await;
        for number in 0..MONITORS {
            let body = json!({ "name": format!("Service {number}"), "url": format!("http://{target}/{number}") });
            account.client.create_monitor(&account.page, &body).await;
        }
        let mut agent = coordinator.start_agent("eu", "europe", "AS64500", None);
        coordinator.wait_for_agents(1).await;
        for process in [coordinator.process.id(), agent.process().id()] {
            process_usage::pin(process, core);
        }
        let base = coordinator.ready.base_url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let address: SocketAddr = base.parse().expect("an address");
        measure_views(&coordinator, &account, address, &arrivals, views).await;
        measure_streams(&coordinator, &account, address, streams).await;
        figure("load", process_usage::load(), "-", "-");
    });
}

/// Sends views at a steady rate, and measures their effect on the checks.
async fn measure_views(
    coordinator: &CoordinatorProcess,
    account: &TestAccount,
    address: SocketAddr,
    arrivals: &Arrivals,
    views: u32,
) {
    let process = coordinator.process.id();
    let request = request(&format!("/p/{}", account.slug), address);
    // By then all monitors were checked and the page was rendered.
    tokio::time::sleep(INTERVAL + Duration::from_secs(5)).await;
    open_stream(address, &request).await;
    let calm = Instant::now();
    tokio::time::sleep(INTERVAL * 2).await;
    let before = process_usage::resident_bytes(process);
    let crowd = Instant::now();
    let cpu = process_usage::cpu_seconds(process);
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
                    // Measured from the due time, so that queueing counts.
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
    // Slow views by second, printed for analysis.
    let mut worst: BTreeMap<u32, i64> = BTreeMap::new();
    for (micros, second) in &micros {
        worst.entry(*second).and_modify(|worst| *worst = (*worst).max(*micros)).or_insert(*micros);
    }
    let slow = worst.iter().filter(|(_, micros)| **micros > SLOW).map(|(at, micros)| format!("{at}:{}", micros / 1000));
    line(&format!("# slow seconds and their worst ms: {}", slow.collect::<Vec<_>>().join(" ")));
    let mut micros: Vec<i64> = micros.into_iter().map(|(micros, _)| micros).collect();
    micros.sort_unstable();
    let (took, cpu) = (crowd.elapsed(), process_usage::cpu_seconds(process) - cpu);
    figure("views", f64::from(views), "views", "-");
    figure("views_rate", f64::from(views) / took.as_secs_f64(), "views/s", "-");
    figure("views_cpu", cpu * 1e6 / f64::from(views), "us/view", "-");
    figure("views_p50", quantile(&micros, 0.5) / 1e3, "ms", "-");
    figure("views_p99", quantile(&micros, 0.99) / 1e3, "ms", "<=50");
    figure("views_worst", quantile(&micros, 1.0) / 1e3, "ms", "-");
    let grown = mebibytes(process_usage::resident_bytes(process)) - mebibytes(before);
    figure("views_memory", grown, "MiB", "<=64");
    for (name, from, to) in [("before", calm, crowd), ("during", crowd, Instant::now())] {
        let mut off = interval_deviations(&arrivals.borrow(), from, to);
        off.sort_unstable();
        figure(&format!("checks_{name}"), f64::from(u32::try_from(off.len()).expect("a count")), "checks", "-");
        figure(&format!("checks_{name}_off_p50"), quantile(&off, 0.5), "ms", "-");
        figure(&format!("checks_{name}_off_p99"), quantile(&off, 0.99), "ms", "-");
    }
}

/// Returns by how many ms each check in that time deviated from its interval.
fn interval_deviations(arrivals: &BTreeMap<u32, Vec<Instant>>, from: Instant, to: Instant) -> Vec<i64> {
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

/// Opens event streams, and measures their cost and how soon all of them receive a change.
async fn measure_streams(coordinator: &CoordinatorProcess, account: &TestAccount, address: SocketAddr, streams: u32) {
    let process = coordinator.process.id();
    let before = process_usage::resident_bytes(process);
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
    let after = process_usage::resident_bytes(process);
    figure("streams", f64::from(streams), "streams", "-");
    figure("streams_opened_in", begun.elapsed().as_secs_f64(), "s", "-");
    figure("streams_memory", mebibytes(after) - mebibytes(before), "MiB", "<=200");
    let changed = Instant::now();
    let incident = json!({ "title": "Told to all", "impact": "none", "message": "x" });
    account.client.post(&format!("/pages/{}/incidents", account.page), &incident).await.expect_status(201);
    let hear = |mut stream: TcpStream| {
        tokio::task::spawn_local(async move {
            let mut said = Vec::new();
            while !said.windows(5).any(|five| five == b"data:") {
                assert!(stream.read_buf(&mut said).await.expect("an event") > 0, "the stream stays");
            }
            i64::try_from(changed.elapsed().as_millis()).expect("seconds")
        })
    };
    let mut millis = Vec::new();
    for heard in open.into_iter().map(hear).collect::<Vec<_>>() {
        millis.push(heard.await.expect("a stream receives it"));
    }
    millis.sort_unstable();
    figure("streams_heard_p50", quantile(&millis, 0.5), "ms", "-");
    figure("streams_heard_last", quantile(&millis, 1.0), "ms", "-");
    figure(
        "streams_memory_told",
        mebibytes(process_usage::resident_bytes(process)) - mebibytes(before),
        "MiB",
        "<=200",
    );
}

async fn open_stream(address: SocketAddr, request: &str) {
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

/// Starts a web server that answers every request with 200.
pub(super) async fn start_target() -> SocketAddr {
    target(Arrivals::default()).await
}

/// Starts a web server that records the arrival time of each request by its number.
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
