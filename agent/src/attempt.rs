//! One check with its hard deadline, and word of it when it is slow.

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

/// Runs `spec`, of which `kept` is kept, within `limit`. `pending` is polled only where the check takes longer than
/// [`PENDING`].
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
    // One timer at a time: hardly any check sees even the first one go off.
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
    own_fault("the probe overran its time")
}

fn own_fault(detail: &str) -> Report {
    Report::bare(Outcome::Inconclusive(OwnFault::Internal { detail: Detail::new(detail) }))
}
