//! Reports to the service manager that started this process (systemd, `Type=notify`): when it starts, serves and stops, and,
//! for its watchdog, that the driver turns. Without one, nothing is sent.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::flow::counters::Counters;

/// How long the service manager is asked to wait for a start that goes on, and how often.
const EXTENSION: Duration = Duration::from_secs(60);
const EXTEND_EVERY: Duration = Duration::from_secs(15);
/// How often it is asked at most: six hours, after which a start hangs. Reading back the largest store takes minutes.
const EXTENSIONS: u32 = 6 * 3_600 / 15;
/// The driver turns every five seconds at least. One that has not for this long stands still.
const STANDSTILL: Duration = Duration::from_secs(20);

/// A start under way: the service manager waits while this lives, for six hours at most.
#[derive(Debug)]
pub(super) struct Starting(JoinHandle<()>);

/// Says that the start has begun.
pub(super) fn starting() -> Starting {
    let microseconds = u32::try_from(EXTENSION.as_micros()).unwrap_or(u32::MAX);
    let extension = NotifyState::ExtendTimeoutUsec(microseconds);
    notify(&[extension.clone(), NotifyState::Status("Opening the store and reading it back")]);
    Starting(tokio::spawn(extend(EXTEND_EVERY, move || notify(std::slice::from_ref(&extension)))))
}

/// Asks for more time once in `every`, until it has done so as often as a start may need it.
async fn extend(every: Duration, ask: impl Fn()) {
    for _ in 0..EXTENSIONS {
        tokio::time::sleep(every).await;
        ask();
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Says that everything serves, and from then on that the driver turns; then, that the process was told to stop.
pub(super) fn serving(status: &str, flow: Arc<Counters>, mut shutdown: watch::Receiver<bool>) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
    tokio::spawn(async move {
        tokio::select! {
            _ = shutdown.wait_for(|stop| *stop) => {}
            () = watchdog(&flow) => {}
        }
        notify(&[
            NotifyState::Stopping,
            NotifyState::Status("Stopping: connections, agents, deliveries, store"),
        ]);
    });
}

/// Feeds the watchdog for as long as the driver turns; without a watchdog there is nothing to do.
async fn watchdog(flow: &Counters) {
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let mut pulse = Pulse::new(Instant::now());
    loop {
        if pulse.turns(flow.turns.load(Ordering::Relaxed), Instant::now()) {
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
    fn new(now: Instant) -> Self {
        Self { count: 0, changed: now }
    }

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

    #[tokio::test]
    async fn a_start_that_hangs_is_not_waited_for_without_end() {
        let asked = std::cell::Cell::new(0);
        extend(Duration::ZERO, || asked.set(asked.get() + 1)).await;
        assert_eq!(EXTEND_EVERY * asked.get(), Duration::from_secs(6 * 3_600));
    }

    #[test]
    fn a_driver_that_stands_still_no_longer_feeds_the_watchdog() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut pulse = Pulse::new(start);
        assert!(pulse.turns(1, at(0)) && pulse.turns(1, at(19)) && pulse.turns(2, at(25)));
        assert!(pulse.turns(2, at(44)));
        assert!(!pulse.turns(2, at(45)) && !pulse.turns(2, at(46)));
        assert!(pulse.turns(3, at(60)), "one that turns again does");
    }
}
