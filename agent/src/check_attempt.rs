//! A check with a hard deadline, and a notification if it is slow.

use crate::clock::AgentClock;
use crate::probe::{self, CheckCache, Probes};
use futures_util::FutureExt;
use parallax_protocol::check::WireCheckSpec;
use parallax_protocol::result::{ProbeReport, WireOutcome, WireOwnFault};
use parallax_protocol::text::ShortText;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Hard time limit of a check.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Time without a response after which a check is reported as pending.
pub const PENDING_AFTER: Duration = Duration::from_secs(3);

/// Extra time before a probe is cut off: it ends by its own deadline and reports in which phase.
const OVERRUN_GRACE: Duration = Duration::from_millis(250);

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckAttempt {
    /// Report of the probe.
    pub report: ProbeReport,
    /// End of the check, monotonic ms.
    pub ended_mono_ms: i64,
}

/// Runs `spec`, with its cached parts in `cache`, within `limit`. `pending` is polled only if the check takes
/// longer than [`PENDING_AFTER`].
pub async fn run_with_deadline(
    spec: &WireCheckSpec,
    cache: &CheckCache,
    probes: &Probes,
    clock: &AgentClock,
    limit: Duration,
    pending: impl Future<Output = ()>,
) -> CheckAttempt {
    let started = Instant::now();
    let limit = limit.min(DEADLINE);
    let (slow, over) = (started + PENDING_AFTER, started + limit + OVERRUN_GRACE);
    let limited;
    let probes = if probes.limit() == limit {
        probes
    } else {
        limited = probes.clone().with_limit(limit);
        &limited
    };
    let mut probe = pin!(AssertUnwindSafe(probe::run_cached(spec, cache, probes)).catch_unwind());
    // One timer at a time: few checks reach even the first one.
    let report = match timeout_at(slow.min(over), &mut probe).await {
        Ok(done) => report_or_panic(done),
        Err(_) => {
            let rest = async { timeout_at(over, probe).await.map_or_else(|_| overrun_report(), report_or_panic) };
            let notified = async {
                if slow < over {
                    pending.await;
                }
            };
            tokio::join!(rest, notified).0
        }
    };
    CheckAttempt { report, ended_mono_ms: clock.mono_ms() }
}

fn report_or_panic(done: std::thread::Result<ProbeReport>) -> ProbeReport {
    done.unwrap_or_else(|_| own_fault("the probe panicked"))
}

fn overrun_report() -> ProbeReport {
    own_fault("the probe exceeded its time limit")
}

fn own_fault(detail: &str) -> ProbeReport {
    ProbeReport::outcome_only(WireOutcome::Inconclusive(WireOwnFault::Internal { detail: ShortText::new(detail) }))
}
