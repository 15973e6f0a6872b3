//! One check with its hard deadline, and word of it when it is slow.

use crate::clock::Clock;
use crate::probe::{self, Net};
use futures_util::FutureExt;
use parallax_protocol::check::CheckSpec;
use parallax_protocol::result::{Outcome, OwnFault, Report};
use parallax_protocol::text::Detail;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// No check runs longer.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// A check without an answer for this long is told as pending.
pub const PENDING: Duration = Duration::from_secs(3);

/// A probe ends by its own deadline and says in which phase; it gets this much longer before it is cut off.
const MERCY: Duration = Duration::from_millis(250);

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// What the probe says.
    pub report: Report,
    /// When it ended, monotonic ms.
    pub ended_mono_ms: i64,
}

/// Runs `spec` within `limit`. `pending` is polled only where the check takes longer than [`PENDING`].
pub async fn attempt(
    spec: &CheckSpec,
    net: &Net,
    clock: &Clock,
    limit: Duration,
    pending: impl Future<Output = ()>,
) -> Attempt {
    let begun = Instant::now();
    let limit = limit.min(DEADLINE);
    let net = net.clone().limited_to(limit);
    let probe = AssertUnwindSafe(probe::run(spec, &net)).catch_unwind();
    let hard = async {
        tokio::select! {
            biased;
            done = probe => done.unwrap_or_else(|_| own_fault("the probe panicked")),
            () = sleep_until(begun + limit + MERCY) => own_fault("the probe overran its time"),
        }
    };
    tokio::pin!(hard);
    let report = tokio::select! {
        biased;
        report = &mut hard => report,
        () = sleep_until(begun + PENDING) => tokio::join!(hard, pending).0,
    };
    Attempt { report, ended_mono_ms: clock.mono_ms() }
}

fn own_fault(detail: &str) -> Report {
    Report::bare(Outcome::Inconclusive(OwnFault::Internal { detail: Detail::new(detail) }))
}
