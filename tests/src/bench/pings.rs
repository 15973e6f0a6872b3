//! Benchmark of heartbeat pings over HTTP: pings per CPU second, and the cost of a flood.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use parallax_core::check::{Check, HeartbeatCheck};
use parallax_core::monitor::Monitor;
use parallax_core::plan::Plan;
use parallax_store::{Batch, Op};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::coordinator::{self, BenchCoordinator, BenchInstallation};
use super::{figure, is_whole, process_usage, quantile};

/// Heartbeat monitors.
const JOBS: u32 = 20_000;
/// Connections of an unthrottled run.
const CONNECTIONS: u32 = 64;

/// Tokens that a run sends pings for.
#[derive(Clone, Copy)]
enum PingTokens {
    /// All jobs in turn.
    All,
    /// The first so many jobs, each on its own connections.
    First(u32),
    /// Tokens that do not exist.
    Unknown,
}

/// Responses counted in one run.
#[derive(Default)]
struct PingCounts {
    taken: Cell<u64>,
    refused: Cell<u64>,
    micros: std::cell::RefCell<Vec<i64>>,
}

/// Runs for `seconds` each: all jobs in turn, unthrottled; one token; a thousand tokens; and guesses.
pub(super) fn pings(seconds: u32) {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let made = coordinator::create_installation(1, 0, Plan::Pro).await;
        create_jobs(&made).await;
        let running = made.serve(core).await;
        let length = Duration::from_secs(seconds.into());
        // Warm-up: each job is written to the files once.
        send_pings(&running, PingTokens::All, CONNECTIONS, length).await;
        for (name, whose, connections) in [
            ("everybody", PingTokens::All, CONNECTIONS),
            ("one_token", PingTokens::First(1), CONNECTIONS),
            ("thousand_tokens", PingTokens::First(1000), 3000),
            ("guesses", PingTokens::Unknown, CONNECTIONS),
        ] {
            let (cpu, bytes, begun) =
                (process_usage::cpu_seconds(running.process.id()), made.store_bytes(), Instant::now());
            let fed = send_pings(&running, whose, connections, length).await;
            let took = begun.elapsed().as_secs_f64();
            let cpu = process_usage::cpu_seconds(running.process.id()) - cpu;
            let all = fed.taken.get() + fed.refused.get();
            let mut micros = fed.micros.take();
            micros.sort_unstable();
            let bound = if matches!(whose, PingTokens::All) { ">=5000" } else { "-" };
            figure(&format!("pings_{name}_per_cpu_second"), count(all) / cpu, "requests/s", bound);
            figure(&format!("pings_{name}_rate"), count(all) / took, "requests/s", "-");
            figure(&format!("pings_{name}_taken"), count(fed.taken.get()) / took, "pings/s", "-");
            figure(&format!("pings_{name}_cpu"), cpu * 1e6 / count(all), "us/request", "-");
            let bound = if matches!(whose, PingTokens::Unknown) { "<=50" } else { "-" };
            figure(&format!("pings_{name}_p99"), quantile(&micros, 0.99) / 1e3, "ms", bound);
            let grown = made.store_bytes().saturating_sub(bytes);
            let bound = if matches!(whose, PingTokens::All) { "-" } else { "<=1" };
            figure(&format!("pings_{name}_growth"), count(grown) / 1_048_576.0 / took * 60.0, "MiB/min", bound);
        }
        #[allow(clippy::cast_precision_loss, reason = "bytes")]
        let resident = process_usage::resident_bytes(running.process.id()) as f64 / f64::from(1 << 20);
        figure("pings_resident", resident, "MiB", "-");
        figure("load", process_usage::load(), "-", "-");
    });
}

/// Creates the heartbeat monitors, in addition to the existing one.
async fn create_jobs(made: &BenchInstallation) {
    let store = made.open_store().await;
    let first = &made.monitors[0];
    for some in (1..=JOBS).collect::<Vec<_>>().chunks(4096) {
        let mut batch = Batch::new();
        for &slot in some {
            let check = HeartbeatCheck { period_seconds: 3600, grace_seconds: 60, token: token(slot) };
            let id = parallax_core::id::MonitorId::from_u128(first.id.to_u128() + u128::from(slot));
            batch.write(Monitor { id, slot, position: slot, check: Check::Heartbeat(check), ..first.clone() });
        }
        store.commit(batch).await.expect("a commit");
    }
    let mut batch = Batch::new();
    batch.write(Op::SetNextSlot(JOBS + 1));
    store.commit(batch).await.expect("a commit");
    store.close().await;
}

fn token(number: u32) -> String {
    format!("{number:022}")
}

/// Sends pings on `connections` connections, one at a time on each, for `length`.
async fn send_pings(
    running: &BenchCoordinator,
    whose: PingTokens,
    connections: u32,
    length: Duration,
) -> Rc<PingCounts> {
    let base = running.ready.base_url.strip_prefix("http://").expect("plain HTTP");
    let address: SocketAddr = base.trim_end_matches('/').parse().expect("an address");
    let fed = Rc::new(PingCounts::default());
    let until = Instant::now() + length;
    let tasks: Vec<_> = (0..connections)
        .map(|number| tokio::task::spawn_local(send(address, whose, number, connections, until, Rc::clone(&fed))))
        .collect();
    for task in tasks {
        task.await.expect("a feed ends");
    }
    fed
}

async fn send(address: SocketAddr, whose: PingTokens, first: u32, step: u32, until: Instant, fed: Rc<PingCounts>) {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    let mut answer = [0; 2048];
    let mut turn = first;
    while Instant::now() < until {
        let token = match whose {
            PingTokens::All => token(1 + turn % JOBS),
            PingTokens::First(jobs) => token(1 + first % jobs),
            PingTokens::Unknown => token(1_000_000 + turn),
        };
        turn = turn.wrapping_add(step);
        let begun = Instant::now();
        let request = format!("GET /ping/{token} HTTP/1.1\r\nhost: {address}\r\nuser-agent: curl/8\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it listens");
        let mut read = 0;
        // Every response has a `Content-Length`, and is far smaller than the buffer.
        while !is_whole(&answer[..read]) {
            let more = stream.read(&mut answer[read..]).await.expect("an answer");
            assert!(more > 0, "the connection stays");
            read += more;
        }
        let counted = if answer.starts_with(b"HTTP/1.1 200") { &fed.taken } else { &fed.refused };
        counted.set(counted.get() + 1);
        fed.micros.borrow_mut().push(i64::try_from(begun.elapsed().as_micros()).expect("seconds"));
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts")]
fn count(number: u64) -> f64 {
    number as f64
}
