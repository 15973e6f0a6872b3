//! Benchmarks of the HTTP API: reads per CPU second, and durable writes by concurrent clients.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::{figure, is_whole, process_usage, quantile};
use crate::installation::CoordinatorProcess;

/// Monitors on the page that is read.
const MONITORS: u32 = 50;
/// Connections of an unthrottled run.
const CONNECTIONS: u32 = 16;
/// Rate limit high enough that no key reaches it.
const CONFIG: &str = "requests_per_minute = 100000000\n";

/// Responses counted in one run.
#[derive(Default)]
struct ResponseCounts {
    answers: Cell<u64>,
    micros: RefCell<Vec<i64>>,
}

/// Measures reads of the monitor list and the status document, and monitor changes by 1, 10 and 100 clients, for
/// `seconds` each.
pub(super) fn api(seconds: u32) {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let mesh = SocketAddr::from(([127, 0, 0, 1], 0));
        let coordinator = CoordinatorProcess::serve(mesh, CONFIG).await;
        process_usage::pin(coordinator.process.id(), core);
        let account = coordinator.create_account("pro");
        let mut monitors = Vec::new();
        for number in 0..MONITORS {
            let body = json!({ "url": format!("https://service-{number}.example.com/health"), "slowThresholdMs": 900 });
            let made = account.client.create_monitor(&account.page, &body).await;
            monitors.push(made["id"].as_str().expect("it has an id").to_owned());
        }
        let base = coordinator.ready.base_url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let address: SocketAddr = base.parse().expect("an address");
        let length = Duration::from_secs(seconds.into());
        let page = format!("/api/v1/pages/{}", account.page);
        let request = |method: &str, path: &str, body: &str| {
            format!(
                "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                account.key,
                body.len()
            )
        };
        let process = coordinator.process.id();
        for (name, path) in [("monitors", "/monitors"), ("status", "/status")] {
            let requests = vec![request("GET", &format!("{page}{path}"), "")];
            report(&format!("api_read_{name}"), process, send_requests(address, requests, CONNECTIONS, length), length)
                .await;
        }
        for clients in [1, 10, 100] {
            // Two alternating names, so that each request is a change.
            let requests = (0..2 * MONITORS).map(|turn| {
                let monitor = &monitors[(turn % MONITORS) as usize];
                let body = json!({ "name": format!("Service {}", turn / MONITORS) }).to_string();
                request("PATCH", &format!("{page}/monitors/{monitor}"), &body)
            });
            let fed = send_requests(address, requests.collect(), clients, length);
            report(&format!("api_write_{clients}_clients"), process, fed, length).await;
        }
        figure("load", process_usage::load(), "-", "-");
    });
}

async fn report(name: &str, process: u32, feeding: impl Future<Output = Rc<ResponseCounts>>, length: Duration) {
    let cpu = process_usage::cpu_seconds(process);
    let fed = feeding.await;
    let cpu = process_usage::cpu_seconds(process) - cpu;
    #[allow(clippy::cast_precision_loss, reason = "counts")]
    let answers = fed.answers.get() as f64;
    let mut micros = fed.micros.take();
    micros.sort_unstable();
    figure(&format!("{name}_per_cpu_second"), answers / cpu, "requests/s", "-");
    figure(&format!("{name}_rate"), answers / length.as_secs_f64(), "requests/s", "-");
    figure(&format!("{name}_p50"), quantile(&micros, 0.5) / 1e3, "ms", "-");
    figure(&format!("{name}_p99"), quantile(&micros, 0.99) / 1e3, "ms", "-");
}

/// Sends `requests` in turn on `connections` connections, one at a time on each, for `length`.
async fn send_requests(
    address: SocketAddr,
    requests: Vec<String>,
    connections: u32,
    length: Duration,
) -> Rc<ResponseCounts> {
    let (fed, requests) = (Rc::new(ResponseCounts::default()), Rc::new(requests));
    let until = Instant::now() + length;
    let tasks: Vec<_> = (0..connections as usize)
        .map(|first| {
            let (fed, requests) = (Rc::clone(&fed), Rc::clone(&requests));
            tokio::task::spawn_local(async move {
                let mut stream = TcpStream::connect(address).await.expect("it listens");
                stream.set_nodelay(true).expect("a socket");
                let mut held = Vec::with_capacity(128 * 1024);
                for request in requests.iter().cycle().skip(first).step_by(connections as usize) {
                    if Instant::now() >= until {
                        return;
                    }
                    let begun = Instant::now();
                    stream.write_all(request.as_bytes()).await.expect("it listens");
                    held.clear();
                    while !is_whole(&held) {
                        assert!(stream.read_buf(&mut held).await.expect("an answer") > 0, "the connection stays");
                    }
                    assert!(held.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&held));
                    fed.answers.set(fed.answers.get() + 1);
                    fed.micros.borrow_mut().push(i64::try_from(begun.elapsed().as_micros()).expect("seconds"));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a feed ends");
    }
    fed
}
