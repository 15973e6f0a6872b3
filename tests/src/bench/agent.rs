//! Benchmarks of the agent: CPU per check, checks per second on one core, lateness of checks, memory, and bytes on the
//! wire.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use parallax_agent::config::AgentConfig;
use parallax_agent::data_folder::DataFolder;
use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::check::{
    WireCertificateCheck, WireCheckSpec, WireDnsCheck, WireHttpCheck, WireKeywordMode, WireMethod, WirePingCheck,
    WireRecordType, WireTcpCheck,
};
use parallax_protocol::id::WireMonitorId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::stub_coordinator::{SLOT_EPOCH, StubCoordinator};
use super::{figure, line, process_usage, quantile};
use crate::process::{TestProcess, binary};

/// Environment variable with the port on 127.0.0.1 to .16 of a web server; without it the benchmark serves itself.
const TARGET: &str = "PARALLAX_BENCH_TARGET_PORT";
/// Environment variable with the port on 127.0.0.1 of an HTTPS server whose certificate `PARALLAX_AGENT_TRUST` covers.
const TLS_TARGET: &str = "PARALLAX_BENCH_TLS_PORT";
/// Environment variable with the port on 127.0.0.1 of a name server that resolves probe.test.
const DNS_TARGET: &str = "PARALLAX_BENCH_DNS_PORT";
/// Addresses that checks are spread over.
const SPREAD: u32 = 16;
/// Longest wait for the first result.
const START: Duration = Duration::from_secs(60);
/// Warm-up between the first result and the measurement: connected, caches filled.
const WARM: Duration = Duration::from_secs(2);
/// Length of the trial that finds how many checks one core can do, in seconds.
const TRIAL: u64 = 2;
/// Concurrent checks while the agent is saturated.
const IN_FLIGHT: &str = "32";

/// Figures of one run of an agent.
#[derive(Debug, Clone, Copy)]
struct AgentRun {
    checks: u64,
    bad: u64,
    cpu_us: f64,
    per_second: f64,
    late_p50_ms: f64,
    late_p99_ms: f64,
    resident: u64,
    stream_bytes: f64,
    datagram_bytes: f64,
}

/// Load that an agent is given.
#[derive(Debug, Clone, Copy)]
struct Load<'a> {
    kind: &'a str,
    monitors: u32,
    interval_ms: u32,
    in_flight: Option<&'a str>,
    seconds: u64,
}

/// Runs `TYPE RATE SECONDS`: http, tcp, https, cert, dns or icmp, at RATE checks per second over 10,000 monitors, or 0
/// for saturation. The last line is JSON, which `tests/peers` reads.
pub(super) fn checks(kind: &str, rate: u32, seconds: u32) {
    let seconds = u64::from(seconds.clamp(1, 120));
    let load = if rate == 0 {
        saturating(kind, seconds)
    } else {
        Load { kind, monitors: 10_000, interval_ms: 10_000_000 / rate.clamp(1, 10_000), in_flight: None, seconds }
    };
    let shown = run(load);
    let name = format!("agent_{kind}_{}", if rate == 0 { "saturated".to_owned() } else { format!("{rate}_a_second") });
    figure(&format!("{name}_cpu"), shown.cpu_us, "us", "-");
    figure(&format!("{name}_rate"), shown.per_second, "checks/s", "-");
    if rate > 0 {
        figure(&format!("{name}_late_p50"), shown.late_p50_ms, "ms", "-");
        figure(&format!("{name}_late_p99"), shown.late_p99_ms, "ms", "<=30");
    }
    figure(&format!("{name}_resident"), mebibytes(shown.resident), "MiB", "-");
    figure("load", process_usage::load(), "-", "-");
    line(&format!(
        "{{\"ok\":{},\"bad\":{},\"cpu_us_per\":{:.3},\"rate\":{:.1}}}",
        shown.checks - shown.bad,
        shown.bad,
        shown.cpu_us,
        shown.per_second
    ));
}

/// Measures memory with 1,000, 10,000 and 100,000 monitors at 60 s.
pub(super) fn memory() {
    for (monitors, bound) in [(1_000, "<=12"), (10_000, "<=18"), (100_000, "<=80")] {
        let shown = run(Load { kind: "http", monitors, interval_ms: 60_000, in_flight: None, seconds: 8 });
        figure(&format!("agent_resident_{monitors}"), mebibytes(shown.resident), "MiB", bound);
    }
}

/// Measures how late checks start with 1,000 and 10,000 monitors at 60 s. The first few seconds are not counted.
pub(super) fn lateness() {
    for monitors in [1_000, 10_000] {
        let shown = run(Load { kind: "http", monitors, interval_ms: 60_000, in_flight: None, seconds: 40 });
        figure(&format!("agent_late_{monitors}_p50"), shown.late_p50_ms, "ms", "-");
        figure(&format!("agent_late_{monitors}_p99"), shown.late_p99_ms, "ms", "<=30");
        figure(&format!("agent_late_{monitors}_rate"), shown.per_second, "checks/s", "-");
    }
    figure("load", process_usage::load(), "-", "-");
}

/// Measures bytes per result on the wire, at rates that give batches of 200 and of 500 results.
pub(super) fn wire() {
    for rate in [2_000, 8_000] {
        let shown = run(Load { kind: "tcp", monitors: rate, interval_ms: 1_000, in_flight: None, seconds: 20 });
        #[allow(clippy::cast_precision_loss, reason = "a count")]
        let checks = shown.checks as f64;
        figure(&format!("agent_wire_{rate}_stream"), shown.stream_bytes / checks, "B", "-");
        figure(&format!("agent_wire_{rate}_datagrams"), shown.datagram_bytes / checks, "B", "<=3");
    }
}

/// Returns a load slightly above what one core can do, found by a trial with monitors at 1 s. Not far above: skipped
/// checks cost CPU too.
fn saturating(kind: &str, seconds: u64) -> Load<'_> {
    let load = Load { kind, monitors: 12_000, interval_ms: 1_000, in_flight: Some(IN_FLIGHT), seconds };
    let mut trial = Load { seconds: TRIAL, ..load };
    let mut most = run(trial).per_second;
    if most > 0.9 * f64::from(trial.monitors) {
        trial.monitors *= 3;
        most = run(trial).per_second;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of monitors")]
    let monitors = (most * 1.2) as u32;
    Load { monitors: monitors.max(1_000), ..load }
}

fn run(load: Load<'_>) -> AgentRun {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let name = match load.kind {
            "https" | "cert" => TLS_TARGET,
            "dns" => DNS_TARGET,
            _ => TARGET,
        };
        let port = match std::env::var(name) {
            Ok(port) => port.parse().expect("a port"),
            Err(_) if name == TARGET => serve().await,
            Err(_) => panic!("{}: {name} is not set", load.kind),
        };
        let folder = tempfile::tempdir().expect("a folder");
        let assignments: Vec<Assignment> = (0..load.monitors).map(|slot| assignment(load, slot, port)).collect();
        let stub = StubCoordinator::start(assignments.clone());
        let data = folder.path().join("agent");
        let config = AgentConfig::new(&data);
        parallax_agent::join::join(&config, stub.address(), &stub.token()).await.expect("the stub lets it join");
        write_schedule(&data, assignments);
        let resolver = (load.kind == "dns").then_some(port);
        record_lateness(load, &data, folder.path(), &stub, core, resolver).await
    })
}

/// Returns the command of the agent, pinned to `core`.
pub(super) fn agent_command(core: Option<usize>) -> Command {
    let agent = binary("parallax-agent");
    let Some(core) = core else { return Command::new(agent) };
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(agent);
    command
}

/// Writes a schedule with these assignments to the agent's data folder.
pub(super) fn write_schedule(data: &Path, assignments: Vec<Assignment>) {
    let home = DataFolder::open(data).expect("a home");
    let (base, drop, more) = (None, Vec::new(), false);
    let change = ScheduleChange { slot_epoch: SLOT_EPOCH, base, revision: 1, put: assignments, drop, has_more: more };
    home.store_schedule(&change).expect("a schedule can be kept");
}

async fn record_lateness(
    load: Load<'_>,
    data: &Path,
    folder: &Path,
    stub: &StubCoordinator,
    core: Option<usize>,
    resolver: Option<u16>,
) -> AgentRun {
    let mut command = agent_command(core);
    command.args(["run", "--allow-private", "--allow-own-host", "--data"]).arg(data).stdin(Stdio::null());
    if let Some(in_flight) = load.in_flight {
        command.env("PARALLAX_AGENT_CONCURRENCY", in_flight);
    }
    if let Some(port) = resolver {
        command.env("PARALLAX_AGENT_RESOLVERS", format!("127.0.0.1:{port}"));
    }
    let agent = TestProcess::start("agent", command, folder);
    let seen = stub.counters();
    let begun = tokio::time::Instant::now();
    while seen.results.load(Ordering::Relaxed) == 0 && begun.elapsed() < START {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(WARM).await;
    let count = || (seen.results.load(Ordering::Relaxed), seen.not_passed.load(Ordering::Relaxed));
    let bytes = || (seen.stream_bytes.load(Ordering::Relaxed), seen.datagram_bytes.load(Ordering::Relaxed));
    assert!(count().0 > 0, "the agent runs no checks:\n{}", agent.log());
    seen.late_ms.lock().expect("nobody panics").clear();
    let (before, bytes_before) = (count(), bytes());
    let (cpu, begun) = (process_usage::cpu_seconds(agent.id()), tokio::time::Instant::now());
    tokio::time::sleep(Duration::from_secs(load.seconds)).await;
    let (cpu, took) = (process_usage::cpu_seconds(agent.id()) - cpu, begun.elapsed().as_secs_f64());
    let (after, bytes_after) = (count(), bytes());
    let mut late = std::mem::take(&mut *seen.late_ms.lock().expect("nobody panics"));
    late.sort_unstable();
    let checks = after.0 - before.0;
    #[allow(clippy::cast_precision_loss, reason = "counts")]
    AgentRun {
        checks,
        bad: after.1 - before.1,
        cpu_us: cpu * 1e6 / checks as f64,
        per_second: checks as f64 / took,
        late_p50_ms: quantile(&late, 0.5),
        late_p99_ms: quantile(&late, 0.99),
        resident: process_usage::resident_bytes(agent.id()),
        stream_bytes: (bytes_after.0 - bytes_before.0) as f64,
        datagram_bytes: (bytes_after.1 - bytes_before.1) as f64,
    }
}

fn assignment(load: Load<'_>, slot: u32, port: u16) -> Assignment {
    let address = 1 + slot % SPREAD;
    let get = |url: String| {
        WireCheckSpec::Http(WireHttpCheck {
            url,
            method: WireMethod::Get,
            headers: Vec::new(),
            body: None,
            expect_status: None,
            keyword: None,
            keyword_mode: WireKeywordMode::Present,
        })
    };
    let spec = match load.kind {
        "http" => get(format!("http://127.0.0.{address}:{port}/m{slot}")),
        "https" => get(format!("https://127.0.0.1:{port}/m{slot}")),
        "tcp" => WireCheckSpec::Tcp(WireTcpCheck { host: format!("127.0.0.{address}"), port }),
        "cert" => WireCheckSpec::Certificate(WireCertificateCheck { host: "127.0.0.1".into(), port, warn_days: 14 }),
        "dns" => {
            WireCheckSpec::Dns(WireDnsCheck { host: "probe.test".into(), record: WireRecordType::A, expect: None })
        }
        "icmp" => WireCheckSpec::Ping(WirePingCheck { host: "127.0.0.1".into() }),
        other => panic!("no type `{other}`: http, tcp, https, cert, dns or icmp"),
    };
    Assignment {
        monitor: WireMonitorId(u128::from(slot) + 1),
        slot,
        revision: 1,
        spec,
        interval_ms: load.interval_ms,
        // Knuth's multiplicative hash: spread evenly, and identical in every run.
        offset_ms: slot.wrapping_mul(2_654_435_761) % load.interval_ms,
        every: 1,
        turn: 0,
        account: 1,
    }
}

/// Starts a web server on the same port of every address; responses have 1 KiB.
pub(super) async fn serve() -> u16 {
    let first = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let port = first.local_addr().expect("a bound socket").port();
    tokio::spawn(answer(first));
    for address in 2..=SPREAD {
        let listener = TcpListener::bind(format!("127.0.0.{address}:{port}")).await.expect("a socket");
        tokio::spawn(answer(listener));
    }
    port
}

async fn answer(listener: TcpListener) {
    let text: &'static str =
        Box::leak(format!("HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n{}", "k".repeat(1024)).into_boxed_str());
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut request = [0; 1024];
            while let Ok(1..) = stream.read(&mut request).await {
                if stream.write_all(text.as_bytes()).await.is_err() {
                    break;
                }
            }
        });
    }
}

fn mebibytes(bytes: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "bytes")]
    let bytes = bytes as f64;
    bytes / f64::from(1 << 20)
}
