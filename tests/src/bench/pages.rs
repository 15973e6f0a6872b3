//! Benchmark of the public page from memory against nginx with the same compressed bytes as a static file: CPU per
//! request of each, in interleaved rounds under wrk.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use parallax_core::plan::Plan;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{coordinator, figure, is_whole, line, process_usage};
use crate::process::TestProcess;

/// Monitors on the page.
const MONITORS: u32 = 20;
/// Length of one server's run in a round, in seconds.
const SECONDS: u32 = 4;
/// Longest start and stop of nginx.
const START: Duration = Duration::from_secs(10);

/// Request patterns: name, connections, and an extra header.
const CASES: [(&str, u32, Option<Header>); 4] = [
    ("keepalive", 64, None),
    ("one", 1, None),
    ("unchanged", 64, Some(Header::IfNoneMatch)),
    ("close", 64, Some(Header::Close)),
];

/// Extra header of a pattern.
#[derive(Debug, Clone, Copy)]
enum Header {
    /// `If-None-Match` with the current ETag.
    IfNoneMatch,
    /// `Connection: close`, so that each request opens a connection.
    Close,
}

/// A server of the comparison.
struct Contender {
    name: &'static str,
    process: Vec<u32>,
    url: String,
    tag: String,
    /// CPU per request in µs, by pattern.
    micros: Vec<Vec<f64>>,
}

/// Runs `rounds` rounds, nginx and the coordinator alternating.
pub(super) fn pages(rounds: u32) {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let made = coordinator::create_installation(MONITORS, 6, Plan::Pro).await;
        let running = made.serve(core).await;
        let base = running.ready.base_url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let address: SocketAddr = base.parse().expect("an address");
        let (body, tag) = page(address).await;
        figure("page_bytes_gzip", kib(body.len()), "KiB", "<=30");
        let folder = tempfile::tempdir().expect("a folder");
        let (mut nginx, port) = nginx(&folder, &body, core).await;
        let workers = workers(&folder);
        let there = SocketAddr::from(([127, 0, 0, 1], port));
        let mut asked = [
            Contender::new("nginx", workers, format!("http://{there}/page.html"), tag_at(there).await),
            Contender::new("parallax", vec![running.process.id()], format!("http://{address}/p/page"), tag),
        ];
        for round in 0..rounds {
            for it in &mut asked {
                for (at, case) in CASES.iter().enumerate() {
                    let micros = it.round(case);
                    line(&format!("# round {round} {} {} {micros:.1} us", it.name, case.0));
                    it.micros[at].push(micros);
                }
            }
        }
        // SIGKILL would leave its worker behind.
        nginx.terminate();
        nginx.wait_for_exit(START).await;
        for (at, (case, ..)) in CASES.iter().enumerate() {
            let [nginx, ours] = [0, 1].map(|who: usize| median(&mut asked[who].micros[at]));
            figure(&format!("page_{case}_nginx"), nginx, "us/request", "-");
            figure(&format!("page_{case}_parallax"), ours, "us/request", "-");
            figure(&format!("page_{case}_ratio"), ours / nginx, "-", "<=1");
        }
        figure("load", process_usage::load(), "-", "-");
    });
}

impl Contender {
    fn new(name: &'static str, process: Vec<u32>, url: String, tag: String) -> Self {
        Self { name, process, url, tag, micros: vec![Vec::new(); CASES.len()] }
    }

    /// Returns the CPU per request in µs over one run of wrk, which runs on this process's core.
    fn round(&self, (_, connections, header): &(&str, u32, Option<Header>)) -> f64 {
        let cpu = || self.process.iter().map(|process| process_usage::cpu_seconds(*process)).sum::<f64>();
        let mut wrk = Command::new("wrk");
        wrk.args(["-t1", &format!("-c{connections}"), &format!("-d{SECONDS}s"), "-H", "Accept-Encoding: gzip"]);
        match header {
            Some(Header::IfNoneMatch) => wrk.args(["-H", &format!("If-None-Match: {}", self.tag)]),
            Some(Header::Close) => wrk.args(["-H", "Connection: close"]),
            None => &mut wrk,
        };
        let before = cpu();
        let ran = wrk.arg(&self.url).output().expect("wrk is installed");
        let used = cpu() - before;
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(!said.contains("Non-2xx") || matches!(header, Some(Header::IfNoneMatch)), "{said}");
        let requests = said.lines().find(|line| line.contains("requests in")).expect("wrk counts");
        let requests: f64 = requests.split_whitespace().next().and_then(|count| count.parse().ok()).expect("a count");
        used * 1e6 / requests
    }
}

/// Returns the page as a browser gets it, and its ETag.
async fn page(address: SocketAddr) -> (Vec<u8>, String) {
    let answer = fetch(address, "/p/page").await;
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
    let (head, body) = answer.split_at(head + 4);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    assert!(head.contains("content-encoding: gzip"), "{head}");
    (body.to_vec(), tag(&head))
}

async fn tag_at(address: SocketAddr) -> String {
    let answer = fetch(address, "/page.html").await;
    tag(&String::from_utf8_lossy(&answer).to_ascii_lowercase())
}

fn tag(head: &str) -> String {
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("it has a tag");
    tag.replacen("w/", "W/", 1)
}

async fn fetch(address: SocketAddr, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept-encoding: gzip\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut held = Vec::new();
    while !is_whole(&held) {
        assert!(stream.read_buf(&mut held).await.expect("an answer") > 0, "{held:?}");
    }
    held
}

/// Starts nginx with one worker on `core`, serving the bytes as they are.
async fn nginx(folder: &TempDir, body: &[u8], core: Option<usize>) -> (TestProcess, u16) {
    let root = folder.path();
    std::fs::write(root.join("page.html.gz"), body).expect("a file");
    let port = {
        let held = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        held.local_addr().expect("an address").port()
    };
    let mut config = String::from("worker_processes 1; daemon off; error_log stderr crit; user root;\n");
    write!(
        config,
        "pid {0}/pid; events {{ worker_connections 4096; }}\nhttp {{ access_log off; sendfile on; tcp_nopush on; \
         keepalive_requests 1000000000; open_file_cache max=16 inactive=1h; default_type text/html; gzip_static on; \
         etag on; server {{ listen 127.0.0.1:{port} backlog=4096; root {0}; }} }}\n",
        root.display()
    )
    .expect("a text");
    let file = root.join("nginx.conf");
    std::fs::write(&file, config).expect("a file");
    let mut command = Command::new("/usr/sbin/nginx");
    command.arg("-c").arg(&file).arg("-p").arg(root);
    let process = TestProcess::start("nginx", command, root);
    let begun = tokio::time::Instant::now();
    // The pid file is written once the port is bound. Connecting to an unbound local port may connect to itself.
    while !root.join("pid").exists() || TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(begun.elapsed() < START, "nginx does not listen:\n{}", process.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for worker in workers(folder) {
        process_usage::pin(worker, core);
    }
    (process, port)
}

/// Returns the process ids of the workers of the nginx in `folder`.
fn workers(folder: &TempDir) -> Vec<u32> {
    let master = std::fs::read_to_string(folder.path().join("pid")).expect("nginx runs");
    let path = format!("/proc/{0}/task/{0}/children", master.trim());
    let children = std::fs::read_to_string(Path::new(&path)).expect("it has workers");
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn median(micros: &mut [f64]) -> f64 {
    micros.sort_by(f64::total_cmp);
    micros.get(micros.len() / 2).copied().unwrap_or(f64::NAN)
}

fn kib(bytes: usize) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "bytes")]
    let bytes = bytes as f64;
    bytes / 1024.0
}
