//! End of an agent's membership: the coordinator removed it, or its certificate has expired.
//!
//! A schedule contains customers' secret headers, so it must not outlive the membership. An agent that was
//! revoked or forgotten stops at once and deletes schedule, results and identity. One that can't reach the
//! coordinator stops when its certificate expires, and deletes schedule and results. One that has not
//! received the coordinator's time since the start can't be sure of the expiry, since this host's clock may
//! be wrong: it checks nothing, deletes the schedule and keeps trying to connect.
//!
//! Only the coordinator can cause this. A stranger who sees a connection's first packets can close it, since
//! their keys are not secret (RFC 9001, section 5.2). So a reason counts only if it came in a frame, or on a
//! connection after the welcome.

use crate::context::{AgentContext, lock};
use crate::data_folder::validity_of;
use crate::departure::Departure;
use crate::error::AgentError;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep;

/// Interval of the expiry checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Returns true if the certificate has expired, by the later of the present time and the coordinator's last
/// known time.
pub(crate) fn has_expired(shared: &AgentContext) -> bool {
    let received_ms = shared.membership().record.coordinator_ms;
    has_ended(shared, shared.clock.coordinator_ms().max(received_ms))
}

/// Resolves once the certificate has certainly expired. In case of doubt the schedule is deleted, and the
/// agent keeps trying to connect.
pub(crate) async fn until_expired(shared: &AgentContext) {
    loop {
        let has_received_time = shared.counters.connections.load(Ordering::Relaxed) > 0;
        let by_host = has_ended(shared, shared.clock.wall_ms());
        match judge_expiry(has_expired(shared), by_host, has_received_time) {
            Expiry::No => {}
            Expiry::InDoubt => suspend(shared, has_received_time),
            Expiry::Sure => return,
        }
        sleep(CHECK_INTERVAL).await;
    }
}

/// Certainty of a certificate's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry {
    No,
    InDoubt,
    Sure,
}

/// Decides by the clocks: `by_any` by the present time or the last known one, `by_host` by the host's clock.
/// A wrong clock must not end an agent, or every agent of a mesh, for good: so the coordinator must have sent
/// its time since the start, and this host's clock must agree.
const fn judge_expiry(by_any: bool, by_host: bool, has_received_time: bool) -> Expiry {
    match (by_any, by_host && has_received_time) {
        (false, _) => Expiry::No,
        (true, false) => Expiry::InDoubt,
        (true, true) => Expiry::Sure,
    }
}

fn has_ended(shared: &AgentContext, now_ms: i64) -> bool {
    let membership = shared.membership();
    validity_of(&membership.credentials).is_ok_and(|validity| now_ms / 1000 > validity.not_after)
}

/// Stops checking until a coordinator sends a schedule again.
fn suspend(shared: &AgentContext, has_received_time: bool) {
    let _files = lock(&shared.is_erased);
    if shared.schedule().clear() {
        let by = match has_received_time {
            true => "by the coordinator's clock, not by this host's",
            false => "by this host's clock, and the coordinator has not been reached since the start",
        };
        tracing::warn!("the certificate has expired {by}: checks are suspended");
        if let Err(error) = shared.data_folder.delete_schedule() {
            tracing::error!(%error, "the schedule can't be deleted");
        }
    }
}

/// Deletes the files that must not outlive the membership. Nothing is written to the folder afterwards.
pub(crate) fn erase(shared: &AgentContext, departure: Departure) -> AgentError {
    *lock(&shared.is_erased) = true;
    crate::status::remove(shared.data_folder.folder());
    match shared.data_folder.erase_membership(departure) {
        Ok(()) => AgentError::Departed { departure, folder: shared.data_folder.folder().to_owned() },
        Err(error) => {
            tracing::error!(%error, "some files could not be deleted; the next start tries again");
            error
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_must_agree_on_the_expiry() {
        assert_eq!(judge_expiry(false, false, true), Expiry::No);
        assert_eq!(judge_expiry(true, true, false), Expiry::InDoubt, "a host years ahead, its coordinator away");
        assert_eq!(judge_expiry(true, false, true), Expiry::InDoubt, "a coordinator whose clock stepped");
        assert_eq!(judge_expiry(true, true, true), Expiry::Sure);
    }
}
