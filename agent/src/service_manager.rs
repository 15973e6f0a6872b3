//! Reports to the service manager that started this process (systemd, `Type=notify`): that it runs and stops, and, for its
//! watchdog, that the runner turns. Without one, nothing is sent.

use sd_notify::NotifyState;
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// The runner turns every second, or when one of its checks ends, which takes ten seconds at most. One that has not for
/// this long stands still.
const STANDSTILL: Duration = Duration::from_secs(30);

/// Says that identity and spool are open, and that checks run. The coordinator may still be away.
pub(crate) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Says that the process was told to stop.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("Stopping: running checks end, results are sent")]);
}

/// Feeds the watchdog for as long as the runner turns; without a watchdog it waits for ever.
pub(crate) async fn watchdog(turns: impl Fn() -> u64) -> Infallible {
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let mut pulse = Pulse { count: 0, changed: Instant::now() };
    loop {
        if pulse.turns(turns(), Instant::now()) {
            notify(&[NotifyState::Watchdog]);
        }
        tokio::time::sleep(limit / 4).await;
    }
}

/// Notices when a count that should grow stands still.
#[derive(Debug)]
struct Pulse {
    count: u64,
    changed: Instant,
}

impl Pulse {
    /// Notes the count; true if it has changed lately.
    fn turns(&mut self, count: u64, now: Instant) -> bool {
        if count != self.count {
            *self = Self { count, changed: now };
        }
        now.saturating_duration_since(self.changed) < STANDSTILL
    }
}

/// A service manager that can't be reached decides by itself what becomes of this process.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not reached");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_stands_still_no_longer_feeds_the_watchdog() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut pulse = Pulse { count: 0, changed: start };
        assert!(pulse.turns(1, at(1)) && pulse.turns(1, at(30)) && pulse.turns(2, at(40)));
        assert!(pulse.turns(2, at(69)) && !pulse.turns(2, at(70)));
        assert!(pulse.turns(3, at(80)), "one that turns again does");
    }
}
