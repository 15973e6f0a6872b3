//! Notifications to the service manager (systemd, `Type=notify`) about start, readiness and stop, and watchdog
//! pings while the engine runs. Nothing is sent without a service manager.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parallax_engine::counters::EngineCounters;
use sd_notify::NotifyState;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Extra start time requested from the service manager, and how often it is requested.
const EXTENSION: Duration = Duration::from_secs(60);
const EXTEND_EVERY: Duration = Duration::from_secs(15);
/// Extension requests at most: six hours, after which the start counts as hung. Verifying the largest store takes
/// minutes.
const EXTENSIONS: u32 = 6 * 3_600 / 15;
/// The engine loop turns at least every five seconds. After this long without a turn it counts as stalled.
const STALL_TIMEOUT: Duration = Duration::from_secs(20);

/// A start in progress: while this lives, the service manager is asked to wait, for six hours at most.
#[derive(Debug)]
pub(super) struct StartNotifier(JoinHandle<()>);

/// Reports that the start has begun.
pub(super) fn notify_starting() -> StartNotifier {
    let microseconds = u32::try_from(EXTENSION.as_micros()).unwrap_or(u32::MAX);
    let extension = NotifyState::ExtendTimeoutUsec(microseconds);
    notify(&[extension.clone(), NotifyState::Status("Opening and verifying the store")]);
    StartNotifier(tokio::spawn(extend(EXTEND_EVERY, move || notify(std::slice::from_ref(&extension)))))
}

/// Requests more time once in `every`, up to the limit for a start.
async fn extend(every: Duration, ask: impl Fn()) {
    for _ in 0..EXTENSIONS {
        tokio::time::sleep(every).await;
        ask();
    }
}

impl Drop for StartNotifier {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports readiness, pings the watchdog while the engine runs, and reports the stop on shutdown.
pub(super) fn notify_ready(status: &str, flow: Arc<EngineCounters>, mut shutdown: watch::Receiver<bool>) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
    tokio::spawn(async move {
        tokio::select! {
            _ = shutdown.wait_for(|stop| *stop) => {}
            () = watchdog(&flow) => {}
        }
        notify(&[NotifyState::Stopping, NotifyState::Status("Stopping connections, agents, deliveries and the store")]);
    });
}

/// Pings the watchdog while the engine loop turns; waits forever if there is no watchdog.
async fn watchdog(flow: &EngineCounters) {
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let mut pulse = StallDetector::new(Instant::now());
    loop {
        if pulse.is_running(flow.loop_iterations.load(Ordering::Relaxed), Instant::now()) {
            notify(&[NotifyState::Watchdog]);
        }
        tokio::time::sleep(limit / 4).await;
    }
}

/// Detects that a growing counter has stopped.
#[derive(Debug)]
struct StallDetector {
    count: u64,
    changed: Instant,
}

impl StallDetector {
    fn new(now: Instant) -> Self {
        Self { count: 0, changed: now }
    }

    /// Records the count; returns true if it changed recently.
    fn is_running(&mut self, count: u64, now: Instant) -> bool {
        if count != self.count {
            *self = Self { count, changed: now };
        }
        now.saturating_duration_since(self.changed) < STALL_TIMEOUT
    }
}

/// A failed notification is only logged: the service manager then acts on its own time-outs.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "could not notify the service manager");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_start_timeout_is_extended_only_for_a_bounded_time() {
        let calls = std::cell::Cell::new(0);
        extend(Duration::ZERO, || calls.set(calls.get() + 1)).await;
        assert_eq!(EXTEND_EVERY * calls.get(), Duration::from_secs(6 * 3_600));
    }

    #[test]
    fn a_stalled_driver_no_longer_feeds_the_watchdog() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut pulse = StallDetector::new(start);
        assert!(pulse.is_running(1, at(0)) && pulse.is_running(1, at(19)) && pulse.is_running(2, at(25)));
        assert!(pulse.is_running(2, at(44)));
        assert!(!pulse.is_running(2, at(45)) && !pulse.is_running(2, at(46)));
        assert!(pulse.is_running(3, at(60)), "one that turns again does");
    }
}
