//! A check with a hard deadline, and a notification if it is slow.

use crate::clock::Clock;
use crate::probe::{self, Kept, Net};
use futures_util::FutureExt;
use parallax_protocol::check::CheckSpec;
use parallax_protocol::result::{Outcome, OwnFault, Report};
use parallax_protocol::text::Detail;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Hard time limit of a check.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Time without a response after which a check is reported as pending.
pub const PENDING: Duration = Duration::from_secs(3);

/// Extra time before a probe is cut off: it ends by its own deadline and reports in which phase.
const MERCY: Duration = Duration::from_millis(250);

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Report of the probe.
    pub report: Report,
    /// End of the check, monotonic ms.
    pub ended_mono_ms: i64,
}

/// Runs `spec`, with its cached parts in `kept`, within `limit`. `pending` is polled only if the check takes
/// longer than [`PENDING`].
pub async fn attempt(
    spec: &CheckSpec,
    kept: &Kept,
    net: &Net,
    clock: &Clock,
    limit: Duration,
    pending: impl Future<Output = ()>,
) -> Attempt {
    let begun = Instant::now();
    let limit = limit.min(DEADLINE);
    let (slow, over) = (begun + PENDING, begun + limit + MERCY);
    let limited;
    let net = if net.limit() == limit {
        net
    } else {
        limited = net.clone().limited_to(limit);
        &limited
    };
    let mut probe = pin!(AssertUnwindSafe(probe::run_again(spec, kept, net)).catch_unwind());
    // One timer at a time: few checks reach even the first one.
    let report = match timeout_at(slow.min(over), &mut probe).await {
        Ok(done) => ended(done),
        Err(_) => {
            let rest = async { timeout_at(over, probe).await.map_or_else(|_| overran(), ended) };
            let told = async {
                if slow < over {
                    pending.await;
                }
            };
            tokio::join!(rest, told).0
        }
    };
    Attempt { report, ended_mono_ms: clock.mono_ms() }
}

fn ended(done: std::thread::Result<Report>) -> Report {
    done.unwrap_or_else(|_| own_fault("the probe panicked"))
}

fn overran() -> Report {
    own_fault("the probe exceeded its time limit")
}

fn own_fault(detail: &str) -> Report {
    Report::bare(Outcome::Inconclusive(OwnFault::Internal { detail: Detail::new(detail) }))
}
