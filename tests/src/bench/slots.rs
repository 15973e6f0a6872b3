//! Fair shares of an agent's slots: how late the checks of one account start, alone and beside others' black holes.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parallax_agent::config::Config;
use parallax_protocol::assignment::Assignment;
use parallax_protocol::check::{CheckSpec, HttpCheck, KeywordMode, Method};
use parallax_protocol::id::MonitorId;

use super::agent::{agent_on, keep, serve};
use super::stub::Stub;
use super::{figure, gauge, quantile};
use crate::process::Process;

/// Monitors of the account whose checks are watched, and their interval.
const WATCHED: u32 = 500;
const WATCHED_INTERVAL_MS: u32 = 10_000;
/// Accounts of the black holes, and their monitors' interval.
const OTHERS: u32 = 10;
const HANGING_INTERVAL_MS: u32 = 60_000;
/// Until every black hole was met once, and holds slots.
const WARM: Duration = Duration::from_secs(70);

/// Result of a run.
struct Shown {
    p50_ms: f64,
    p99_ms: f64,
    checks: usize,
    bad: u64,
}

/// `[HANGING] [SECONDS]`: the lateness of 500 monitors without and with so many black holes of ten other accounts.
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
    figure("load", gauge::load(), "-", "-");
}

fn run(hanging: u32, span: Duration) -> Shown {
    let core = gauge::step_aside();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let port = serve().await;
        // Nobody ever accepts: first the backlog takes the connections, then no answer comes at all.
        let hole = TcpListener::bind("127.0.0.1:0").expect("a port");
        let hole_port = hole.local_addr().expect("a bound socket").port();
        let folder = tempfile::tempdir().expect("a folder");
        let watched = (0..WATCHED).map(|slot| assignment(slot, 1, port, WATCHED_INTERVAL_MS));
        let holes = (WATCHED..WATCHED + hanging)
            .map(|slot| assignment(slot, 2 + slot % OTHERS, hole_port, HANGING_INTERVAL_MS));
        let assignments: Vec<Assignment> = watched.chain(holes).collect();
        let stub = Stub::watching(assignments.clone(), WATCHED);
        let data = folder.path().join("agent");
        parallax_agent::join::join(&Config::new(&data), stub.address(), &stub.token())
            .await
            .expect("the stub lets it join");
        keep(&data, assignments);
        let mut command = agent_on(core);
        command.args(["run", "--allow-private", "--allow-own-host", "--data"]).arg(&data);
        let agent = Process::start("agent", command, folder.path());
        let seen = stub.seen();
        tokio::time::sleep(WARM).await;
        assert!(seen.results.load(Ordering::Relaxed) > 0, "the agent runs no checks:\n{}", agent.log());
        seen.late_ms.lock().expect("nobody panics").clear();
        let bad = seen.bad.load(Ordering::Relaxed);
        tokio::time::sleep(span).await;
        let mut late = std::mem::take(&mut *seen.late_ms.lock().expect("nobody panics"));
        late.sort_unstable();
        Shown {
            p50_ms: quantile(&late, 0.5),
            p99_ms: quantile(&late, 0.99),
            checks: late.len(),
            bad: seen.bad.load(Ordering::Relaxed) - bad,
        }
    })
}

fn assignment(slot: u32, account: u32, port: u16, interval_ms: u32) -> Assignment {
    Assignment {
        monitor: MonitorId(u128::from(slot) + 1),
        slot,
        revision: 1,
        spec: CheckSpec::Http(HttpCheck {
            url: format!("http://127.0.0.1:{port}/m{slot}"),
            method: Method::Get,
            headers: Vec::new(),
            body: None,
            expect_status: None,
            keyword: None,
            keyword_mode: KeywordMode::Present,
        }),
        interval_ms,
        // Knuth's multiplicative hash: spread like real ones, and the same in every run.
        offset_ms: slot.wrapping_mul(2_654_435_761) % interval_ms,
        every: 1,
        turn: 0,
        account,
    }
}
