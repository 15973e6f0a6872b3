//! The agent's clocks: monotonic, wall, and an estimate of the coordinator's based on the monotonic one.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Reads the clocks. Clones share the estimate of the coordinator's time.
#[derive(Debug, Clone)]
pub struct AgentClock {
    /// Coordinator's time minus monotonic time, in ms.
    offset_ms: Arc<AtomicI64>,
}

impl AgentClock {
    /// Creates a clock that estimates the coordinator's time as the host's wall clock minus `skew_ms`, until
    /// the first exchange.
    pub fn new(skew_ms: i64) -> Self {
        let offset = wall_ms().saturating_sub(skew_ms).saturating_sub(mono_us() / 1000);
        Self { offset_ms: Arc::new(AtomicI64::new(offset)) }
    }

    /// Returns monotonic microseconds. Time that the host spent suspended counts, if the system reports it.
    pub fn mono_us(&self) -> i64 {
        mono_us()
    }

    /// Returns monotonic milliseconds.
    pub fn mono_ms(&self) -> i64 {
        mono_us() / 1000
    }

    /// Returns the host's wall clock, epoch ms. It can step; nothing is scheduled by it.
    pub fn wall_ms(&self) -> i64 {
        wall_ms()
    }

    /// Returns the coordinator's time, epoch ms. It moves with the monotonic clock and steps only in
    /// [`Self::set_offset`].
    pub fn coordinator_ms(&self) -> i64 {
        self.mono_ms().saturating_add(self.offset_ms.load(Ordering::Relaxed))
    }

    /// Sets a new offset (coordinator's minus monotonic, ms) and returns the size of the step.
    pub fn set_offset(&self, offset_ms: i64) -> i64 {
        offset_ms.saturating_sub(self.offset_ms.swap(offset_ms, Ordering::Relaxed))
    }

    /// Returns the host's wall clock minus the coordinator's, in ms.
    pub fn skew_ms(&self) -> i64 {
        self.wall_ms().saturating_sub(self.coordinator_ms())
    }
}

#[cfg(target_os = "linux")]
const MONOTONIC: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const MONOTONIC: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

fn mono_us() -> i64 {
    let now = rustix::time::clock_gettime(MONOTONIC);
    now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1000)
}

#[allow(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
fn wall_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

/// The last time exchanges with the coordinator; the one with the shortest round trip is used.
#[derive(Debug, Default)]
pub struct TimeExchanges {
    recent: Vec<TimeExchange>,
}

/// A time request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeExchange {
    /// Coordinator's time minus monotonic time, in ms, assuming equal delays in both directions.
    pub offset_ms: i64,
    /// Round trip in ms.
    pub round_trip_ms: u32,
}

impl TimeExchanges {
    const CAPACITY: usize = 8;

    /// Difference of offsets above which a clock is taken to have stepped.
    const STEP_MS: u64 = 1000;

    /// Adds a response: the times of the request and of the response (monotonic us), and the time it
    /// contained. Returns the exchange to use; `None` if the times are impossible.
    pub fn add(&mut self, sent_us: i64, came_us: i64, coordinator_ms: i64) -> Option<TimeExchange> {
        let round_trip_us = came_us.checked_sub(sent_us).filter(|&us| us >= 0)?;
        let middle_ms = (sent_us + round_trip_us / 2) / 1000;
        let new = TimeExchange {
            offset_ms: coordinator_ms.checked_sub(middle_ms)?,
            round_trip_ms: u32::try_from(round_trip_us / 1000).ok()?,
        };
        let stepped = |old: &TimeExchange| {
            let doubt = u64::from(old.round_trip_ms.max(new.round_trip_ms));
            old.offset_ms.abs_diff(new.offset_ms) > Self::STEP_MS + doubt
        };
        if self.recent.iter().any(stepped) {
            self.recent.clear();
        }
        if self.recent.len() == Self::CAPACITY {
            self.recent.remove(0);
        }
        self.recent.push(new);
        self.recent.iter().rev().min_by_key(|exchange| exchange.round_trip_ms).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_is_used() {
        let mut exchanges = TimeExchanges::default();
        let first = exchanges.add(0, 200_000, 1_000_100).unwrap();
        assert_eq!(first, TimeExchange { offset_ms: 1_000_000, round_trip_ms: 200 });
        let second = exchanges.add(1_000_000, 1_010_000, 1_001_025).unwrap();
        assert_eq!(second, TimeExchange { offset_ms: 1_000_020, round_trip_ms: 10 });
        assert_eq!(exchanges.add(2_000_000, 2_400_000, 1_002_250), Some(second));
    }

    #[test]
    fn a_step_of_the_coordinators_clock_discards_earlier_exchanges() {
        let mut exchanges = TimeExchanges::default();
        exchanges.add(0, 1_000, 1_000_000);
        let later = exchanges.add(60_000_000, 60_300_000, 60_150 + 4_600_000).unwrap();
        assert_eq!(later.offset_ms, 4_600_000);
    }

    #[test]
    fn a_response_before_its_request_is_ignored() {
        assert_eq!(TimeExchanges::default().add(5, 4, 0), None);
    }

    #[test]
    fn the_coordinators_time_starts_at_the_wall_clock_less_the_skew() {
        let clock = AgentClock::new(5_000);
        assert!((clock.skew_ms() - 5_000).abs() < 100);
        let offset = clock.coordinator_ms() - clock.mono_ms();
        assert!((clock.set_offset(offset + 3_600_000) - 3_600_000).abs() < 100);
    }
}
