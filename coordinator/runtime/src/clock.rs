//! The only place that reads the wall clock; tests pass in a manual clock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parallax_core::time::Timestamp;

/// Difference in milliseconds between wall-clock and monotonic time that counts as a clock step.
pub const STEP: i64 = 2_000;

/// A source of the current time. Cheap to clone.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<ManualClock>>);

/// A manually set clock, for tests.
#[derive(Debug)]
struct ManualClock {
    wall: AtomicI64,
    /// Monotonic time: advances with the wall clock, and never goes back.
    monotonic: AtomicI64,
}

#[cfg(target_os = "linux")]
const MONOTONIC_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const MONOTONIC_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

impl Clock {
    /// The host's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that stays at `at` until [`Clock::set`] moves it.
    pub fn manual(at: Timestamp) -> Self {
        let at = at.as_millis();
        Self(Some(Arc::new(ManualClock { wall: AtomicI64::new(at), monotonic: AtomicI64::new(at) })))
    }

    /// Returns the current wall-clock time.
    #[allow(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn now(&self) -> Timestamp {
        let millis = match &self.0 {
            Some(manual) => manual.wall.load(Ordering::Acquire),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
        };
        Timestamp::from_millis(millis)
    }

    /// Monotonic milliseconds since an arbitrary point in time, unaffected by changes of the wall clock. Includes
    /// time in suspend where the system supports it.
    pub fn monotonic(&self) -> i64 {
        match &self.0 {
            Some(manual) => manual.monotonic.load(Ordering::Acquire),
            None => {
                let now = rustix::time::clock_gettime(MONOTONIC_CLOCK);
                now.tv_sec.saturating_mul(1_000).saturating_add(now.tv_nsec / 1_000_000)
            }
        }
    }

    /// Sets a clock made with [`Clock::manual`]; does nothing to the system clock. Monotonic time advances too if
    /// the new time is later.
    pub fn set(&self, at: Timestamp) {
        if let Some(manual) = &self.0 {
            let previous = manual.wall.swap(at.as_millis(), Ordering::AcqRel);
            manual.monotonic.fetch_add(at.as_millis().saturating_sub(previous).max(0), Ordering::AcqRel);
        }
    }

    /// Steps only the wall time of a clock made with [`Clock::manual`], by `by` milliseconds: no time passes.
    pub fn step(&self, by: i64) {
        if let Some(manual) = &self.0 {
            manual.wall.fetch_add(by, Ordering::AcqRel);
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.now())
    }
}
