//! Benchmark of fair sharing of an agent's slots: lateness of one account's checks, alone and with other accounts'
//! black holes.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parallax_agent::config::AgentConfig;
use parallax_protocol::assignment::Assignment;
use parallax_protocol::check::{WireCheckSpec, WireHttpCheck, WireKeywordMode, WireMethod};
use parallax_protocol::id::WireMonitorId;

use super::agent::{agent_command, serve, write_schedule};
use super::stub_coordinator::StubCoordinator;
use super::{figure, process_usage, quantile};
use crate::process::TestProcess;

/// Monitors of the measured account, and their interval.
const WATCHED: u32 = 500;
const WATCHED_INTERVAL_MS: u32 = 10_000;
/// Accounts with black holes, and their monitors' interval.
const OTHERS: u32 = 10;
const HANGING_INTERVAL_MS: u32 = 60_000;
/// Time until every black hole was checked once and occupies slots.
const WARM: Duration = Duration::from_secs(70);

/// Result of a run.
struct SlotsRun {
    p50_ms: f64,
    p99_ms: f64,
    checks: usize,
    bad: u64,
}

/// Runs `[HANGING] [SECONDS]`: the lateness of 500 monitors, without and with HANGING black holes of ten other
/// accounts.
pub(super) fn slots(hanging: u32, seconds: u32) {
    let span = Duration::from_secs(u64::from(seconds.clamp(5, 600)));
    let alone = run(0, span);
    let beside = run(hanging, span);
    for (name, shown) in [("alone", &alone), ("beside", &beside)] {
        #[allow(clippy::cast_precision_loss, reason = "counts")]
        let (checks, bad) = (shown.checks as f64, shown.bad as f64);
        figure(&format!("slots_{name}_checks"), checks, "-", "-");
        figure(&format!("slots_{name}_late_p50"), shown.p50_ms, "ms", "-");
        figure(&format!("slots_{name}_late_p99"), shown.p99_ms, "ms", "-");
        figure(&format!("slots_{name}_failed"), bad, "-", "-");
    }
    figure("slots_late_p99_ratio", beside.p99_ms / alone.p99_ms, "-", "<=2");
    figure("load", process_usage::load(), "-", "-");
}

fn run(hanging: u32, span: Duration) -> SlotsRun {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let port = serve().await;
        // Never accepts: first the backlog takes the connections, then no SYN is answered.
        let hole = TcpListener::bind("127.0.0.1:0").expect("a port");
        let hole_port = hole.local_addr().expect("a bound socket").port();
        let folder = tempfile::tempdir().expect("a folder");
        let watched = (0..WATCHED).map(|slot| assignment(slot, 1, port, WATCHED_INTERVAL_MS));
        let holes = (WATCHED..WATCHED + hanging)
            .map(|slot| assignment(slot, 2 + slot % OTHERS, hole_port, HANGING_INTERVAL_MS));
        let assignments: Vec<Assignment> = watched.chain(holes).collect();
        let stub = StubCoordinator::start_watching(assignments.clone(), WATCHED);
        let data = folder.path().join("agent");
        parallax_agent::join::join(&AgentConfig::new(&data), stub.address(), &stub.token())
            .await
            .expect("the stub lets it join");
        write_schedule(&data, assignments);
        let mut command = agent_command(core);
        command.args(["run", "--allow-private", "--allow-own-host", "--data"]).arg(&data);
        let agent = TestProcess::start("agent", command, folder.path());
        let seen = stub.counters();
        tokio::time::sleep(WARM).await;
        assert!(seen.results.load(Ordering::Relaxed) > 0, "the agent runs no checks:\n{}", agent.log());
        seen.late_ms.lock().expect("nobody panics").clear();
        let bad = seen.not_passed.load(Ordering::Relaxed);
        tokio::time::sleep(span).await;
        let mut late = std::mem::take(&mut *seen.late_ms.lock().expect("nobody panics"));
        late.sort_unstable();
        SlotsRun {
            p50_ms: quantile(&late, 0.5),
            p99_ms: quantile(&late, 0.99),
            checks: late.len(),
            bad: seen.not_passed.load(Ordering::Relaxed) - bad,
        }
    })
}

fn assignment(slot: u32, account: u32, port: u16, interval_ms: u32) -> Assignment {
    Assignment {
        monitor: WireMonitorId(u128::from(slot) + 1),
        slot,
        revision: 1,
        spec: WireCheckSpec::Http(WireHttpCheck {
            url: format!("http://127.0.0.1:{port}/m{slot}"),
            method: WireMethod::Get,
            headers: Vec::new(),
            body: None,
            expect_status: None,
            keyword: None,
            keyword_mode: WireKeywordMode::Present,
        }),
        interval_ms,
        // Knuth's multiplicative hash: spread evenly, and identical in every run.
        offset_ms: slot.wrapping_mul(2_654_435_761) % interval_ms,
        every: 1,
        turn: 0,
        account,
    }
}
