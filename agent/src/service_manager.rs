//! Notifications for the service manager (systemd, `Type=notify`): start, stop, and watchdog pings while the
//! runner makes progress. Without a service manager, nothing is sent.

use sd_notify::NotifyState;
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// Time without progress after which the runner counts as stuck. It loops every second, or when a check ends,
/// which takes ten seconds at most.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// Reports that identity and spool are open, and that checks run. The coordinator may still be unreachable.
pub(crate) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the process is stopping.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("Stopping: waiting for running checks and sending results")]);
}

/// Pings the watchdog as long as the runner makes progress; without a watchdog it waits forever.
pub(crate) async fn watchdog(turns: impl Fn() -> u64) -> Infallible {
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let mut pulse = ProgressWatch { count: 0, changed: Instant::now() };
    loop {
        if pulse.is_progressing(turns(), Instant::now()) {
            notify(&[NotifyState::Watchdog]);
        }
        tokio::time::sleep(limit / 4).await;
    }
}

/// Detects a count that no longer grows.
#[derive(Debug)]
struct ProgressWatch {
    count: u64,
    changed: Instant,
}

impl ProgressWatch {
    /// Records the count; returns true if it has changed recently.
    fn is_progressing(&mut self, count: u64, now: Instant) -> bool {
        if count != self.count {
            *self = Self { count, changed: now };
        }
        now.saturating_duration_since(self.changed) < STUCK_AFTER
    }
}

/// Sends a notification. If it fails, the service manager decides by itself what happens to this process.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager could not be notified");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_runner_stops_notifying_the_watchdog() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut pulse = ProgressWatch { count: 0, changed: start };
        assert!(pulse.is_progressing(1, at(1)) && pulse.is_progressing(1, at(30)) && pulse.is_progressing(2, at(40)));
        assert!(pulse.is_progressing(2, at(69)) && !pulse.is_progressing(2, at(70)));
        assert!(pulse.is_progressing(3, at(80)), "a runner that makes progress again does");
    }
}
