//! Benchmark of the dashboard: its screens for 500 monitors, and browsers with open live streams.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use parallax_core::role::Role;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::visitors::start_target;
use super::{figure, is_whole, process_usage, quantile};
use crate::dashboard_browser::{DashboardBrowser, add_member};
use crate::installation::{CoordinatorProcess, TestAccount};

/// Monitors of the account.
const MONITORS: u32 = 500;
/// Requests for each screen, after the first.
const REQUESTS: u32 = 100;
/// Live streams that one session may have open.
const STREAMS_PER_SESSION: u32 = 8;
/// Sessions of one person; a person may have 50.
const SESSIONS_PER_PERSON: u32 = 40;
/// Time for which the streams are watched, quiet and with a change each second.
const WATCHED: Duration = Duration::from_secs(30);
/// Time after which the last sign-in and its writes no longer cost anything.
const SETTLE: Duration = Duration::from_secs(12);
/// Rate limit high enough that no key reaches it.
const CONFIG: &str = "requests_per_minute = 100000000\n";
const PASSWORD: &str = "correct horse battery";
const EMAIL: &str = "olga@example.com";

/// Measures the screens, then `browsers` open live streams.
pub(super) fn dashboard(browsers: u32) {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut coordinator = CoordinatorProcess::serve(here, CONFIG).await;
        let account = coordinator.create_account_of(EMAIL, "pro");
        let (id, browser) = DashboardBrowser::set_up(&coordinator, EMAIL, PASSWORD).await;
        coordinator.process.kill();
        for member in 0..members(browsers) {
            let person = (&*member_email(member), "Vera", Role::Viewer);
            add_member(coordinator.data(), id, EMAIL, person).await;
        }
        coordinator.restart().await;
        let target = start_target().await;
        let mut monitor = String::new();
        for number in 0..MONITORS {
            let body =
                json!({ "name": format!("Service number {number}"), "url": format!("http://{target}/{number}") });
            let made = account.client.create_monitor(&account.page, &body).await;
            monitor = made["id"].as_str().expect("a monitor has an id").to_owned();
        }
        let _agent = coordinator.start_agent("eu", "europe", "AS64500", None);
        coordinator.wait_for_agents(1).await;
        process_usage::pin(coordinator.process.id(), core);
        let base = coordinator.ready.base_url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let address: SocketAddr = base.parse().expect("an address");
        // By then all monitors were checked.
        tokio::time::sleep(SETTLE).await;
        measure_screens(&coordinator, &account, &monitor, (browser, address)).await;
        measure_streams(&coordinator, &account, address, browsers).await;
        figure("load", process_usage::load(), "-", "-");
    });
}

/// Requests each screen a hundred times: time from request to whole answer, CPU, and bytes as sent.
async fn measure_screens(
    coordinator: &CoordinatorProcess,
    account: &TestAccount,
    monitor: &str,
    (mut browser, address): (DashboardBrowser, SocketAddr),
) {
    let page = format!("/app/pages/{}", account.page);
    let screens = [
        ("overview", "/app".to_owned(), "<=25"),
        ("page", page.clone(), "<=25"),
        ("monitors", format!("{page}/monitors"), "<=60"),
        ("monitor", format!("{page}/monitors/{monitor}"), "<=25"),
        ("monitor_new", format!("{page}/monitors/new"), "<=25"),
        ("incidents", format!("{page}/incidents"), "<=25"),
        ("incident_new", format!("{page}/incidents/new"), "<=25"),
        ("alerts", format!("{page}/alerts"), "<=25"),
        ("subscribers", format!("{page}/subscribers"), "<=25"),
        ("settings", format!("{page}/settings/look"), "<=25"),
        ("audit", "/app/account/audit".to_owned(), "<=25"),
        ("palette", "/app/search?q=number%2049".to_owned(), "<=20"),
    ];
    let process = coordinator.process.id();
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    for (name, path, bound) in screens {
        let request = request(&browser, address, &path);
        let first = exchange(&mut stream, &request).await;
        assert!(
            first.starts_with(b"HTTP/1.1 200"),
            "{path}: {}",
            String::from_utf8_lossy(&first[..first.len().min(400)])
        );
        let cpu = process_usage::cpu_seconds(process);
        let mut micros = Vec::new();
        for _ in 0..REQUESTS {
            let begun = Instant::now();
            exchange(&mut stream, &request).await;
            micros.push(i64::try_from(begun.elapsed().as_micros()).expect("seconds"));
        }
        micros.sort_unstable();
        let cpu = (process_usage::cpu_seconds(process) - cpu) * 1e3 / f64::from(REQUESTS);
        figure(&format!("screen_{name}_p95"), quantile(&micros, 0.95) / 1e3, "ms", bound);
        figure(&format!("screen_{name}_cpu"), cpu, "ms", "-");
        let bytes = if name == "monitors" { "<=60" } else { "<=25" };
        figure(&format!("screen_{name}_sent"), kibibytes(body_of(&first).len()), "KiB", bytes);
    }
    let screen = browser.open("/app").await.expect("it is up").text;
    for (kind, opening, bound) in [("style", "rel=\"stylesheet\" href=\"", "<=9"), ("script", "<script src=\"", "<=12")]
    {
        let mut sent = 0;
        for rest in screen.split(opening).skip(1) {
            let path = rest.split('"').next().expect("the attribute ends");
            sent += body_of(&exchange(&mut stream, &request(&browser, address, path)).await).len();
        }
        figure(&format!("transfer_{kind}"), kibibytes(sent), "KiB", bound);
    }
}

fn kibibytes(bytes: usize) -> f64 {
    lossless(u64::try_from(bytes).expect("a size")) / 1024.0
}

/// Opens live streams: what they cost while nothing changes, and with a change each second.
async fn measure_streams(coordinator: &CoordinatorProcess, account: &TestAccount, address: SocketAddr, browsers: u32) {
    let process = coordinator.process.id();
    let before = process_usage::resident_bytes(process);
    let mut open = Vec::new();
    while open.len() < browsers as usize {
        let visitor = DashboardBrowser::new(&coordinator.ready.base_url);
        let session = u32::try_from(open.len()).expect("a count") / STREAMS_PER_SESSION;
        let email = member_email(session / SESSIONS_PER_PERSON);
        let fields = [("email", &*email), ("password", PASSWORD)];
        let browser = visitor.sign_in("/sign-in", &fields).await.expect("it is up");
        for _ in 0..STREAMS_PER_SESSION.min(browsers - u32::try_from(open.len()).expect("a count")) {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            stream.write_all(request(&browser, address, "/app/live").as_bytes()).await.expect("it listens");
            let mut said = [0; 1024];
            let count = stream.read(&mut said).await.expect("an answer");
            assert!(said[..count].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said[..count]));
            open.push(stream);
        }
    }
    figure("live_browsers", f64::from(browsers), "streams", "-");
    tokio::time::sleep(SETTLE).await;
    let grown = process_usage::resident_bytes(process).saturating_sub(before);
    figure("live_memory", lossless(grown / 1024) / f64::from(browsers), "KiB/stream", "-");
    let counters = Rc::new(StreamCounters::default());
    let read = |stream| tokio::task::spawn_local(read_stream(stream, Rc::clone(&counters)));
    let readers: Vec<_> = open.into_iter().map(read).collect();
    let cpu = process_usage::cpu_seconds(process);
    tokio::time::sleep(WATCHED).await;
    let quiet = (process_usage::cpu_seconds(process) - cpu) / WATCHED.as_secs_f64();
    figure("live_quiet_cpu", quiet * 100.0, "% of a core", "<=1");
    let incident = json!({ "title": "Told to all", "impact": "none", "message": "x" });
    let made = account.client.post(&format!("/pages/{}/incidents", account.page), &incident).await.expect_status(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    counters.messages.set(0);
    counters.bytes.set(0);
    let begun = Instant::now();
    let cpu = process_usage::cpu_seconds(process);
    let mut changes = 0;
    while begun.elapsed() < WATCHED {
        let note = json!({ "message": format!("Change {changes}") });
        account.client.post(&format!("/pages/{}/incidents/{id}/updates", account.page), &note).await.expect_status(201);
        changes += 1;
        tokio::time::sleep_until(begun + Duration::from_secs(1) * changes).await;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let busy = (process_usage::cpu_seconds(process) - cpu) / seconds;
    figure("live_changing_cpu", busy * 100.0, "% of a core", "-");
    let each = |sum: u64| lossless(sum) / f64::from(browsers) / seconds;
    figure("live_messages", each(counters.messages.get()), "messages/s/stream", "<=1");
    figure("live_bytes", each(counters.bytes.get()) / 1024.0, "KiB/s/stream", "<=10");
    // One that ended would have been counted as cheap.
    assert!(readers.iter().all(|reader| !reader.is_finished()), "all streams stay");
    for reader in readers {
        reader.abort();
    }
}

/// Persons whose sessions have that many streams.
fn members(browsers: u32) -> u32 {
    browsers.div_ceil(STREAMS_PER_SESSION * SESSIONS_PER_PERSON)
}

fn member_email(number: u32) -> String {
    format!("{number}vera@example.com")
}

/// Sums over all streams.
#[derive(Debug, Default)]
struct StreamCounters {
    messages: Cell<u64>,
    bytes: Cell<u64>,
}

/// Counts the messages of a stream until it is aborted.
async fn read_stream(mut stream: TcpStream, counters: Rc<StreamCounters>) {
    let mut part = vec![0; 4096];
    loop {
        let count = stream.read(&mut part).await.expect("the stream stays");
        assert!(count > 0, "the stream stays");
        let messages = part[..count].windows(6).filter(|six| six == b"\ndata:" || *six == b"data: ").count();
        counters.messages.set(counters.messages.get() + u64::from(messages > 0));
        counters.bytes.set(counters.bytes.get() + u64::try_from(count).expect("a size"));
    }
}

/// A request of a signed-in browser that takes gzip.
fn request(browser: &DashboardBrowser, address: SocketAddr, path: &str) -> String {
    let cookie = browser.cookie();
    format!("GET {path} HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\naccept-encoding: gzip\r\n\r\n")
}

/// Sends a request, and returns the whole answer.
async fn exchange(stream: &mut TcpStream, request: &str) -> Vec<u8> {
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut held = Vec::with_capacity(64 * 1024);
    while !is_whole(&held) {
        assert!(stream.read_buf(&mut held).await.expect("an answer") > 0, "it stays");
    }
    held
}

fn body_of(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole answer");
    &answer[end + 4..]
}

fn lossless(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("a small count"))
}
