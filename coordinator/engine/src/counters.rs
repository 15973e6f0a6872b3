//! Engine counters for the operator's metrics, updated without locks.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use parallax_core::event::MonitorStatus;

use super::mesh_problems::MeshProblem;

/// Upper bounds of the commit duration buckets, in milliseconds.
const BOUNDS_MS: [u64; 11] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000];
/// Every status, in the order of [`EngineCounters::monitors`].
const STATUSES: [MonitorStatus; 4] =
    [MonitorStatus::Unknown, MonitorStatus::Up, MonitorStatus::Slow, MonitorStatus::Down];

/// Counts since the driver's start, and its current state.
#[derive(Debug, Default)]
pub struct EngineCounters {
    /// Durations of commits that became durable.
    pub commits: DurationHistogram,
    /// Iterations of the driver's loop. A stalled driver shows here.
    pub loop_iterations: AtomicU64,
    /// Finished rounds that were stored.
    pub readings: AtomicU64,
    /// Events that were stored.
    pub events: AtomicU64,
    /// Pings accepted.
    pub pings: AtomicU64,
    /// Arrivals waiting for the driver.
    pub backlog: AtomicU64,
    /// Readings, events and pings waiting for the commit in flight.
    pub pending: AtomicU64,
    /// Vantages in quarantine.
    pub quarantined: AtomicU64,
    monitors: [AtomicU64; 4],
    mesh_problems: Mutex<BTreeSet<MeshProblem>>,
}

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct DurationHistogram {
    buckets: [AtomicU64; BOUNDS_MS.len() + 1],
    micros: AtomicU64,
}

impl EngineCounters {
    /// Returns the number of monitors in each status.
    pub fn monitors(&self) -> [(MonitorStatus, u64); 4] {
        let mut counts = self.monitors.iter().map(|count| count.load(Ordering::Relaxed));
        STATUSES.map(|status| (status, counts.next().unwrap_or(0)))
    }

    /// Returns the current operator notices about the mesh.
    pub fn mesh_problems(&self) -> BTreeSet<MeshProblem> {
        self.mesh_problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the number of monitors in each status.
    pub(super) fn set_monitors(&self, by_status: [u64; 4]) {
        for (count, new_count) in self.monitors.iter().zip(by_status) {
            count.store(new_count, Ordering::Relaxed);
        }
    }

    /// Sets the current operator notices.
    pub(super) fn set_mesh_problems(&self, problems: &BTreeSet<MeshProblem>) {
        self.mesh_problems.lock().unwrap_or_else(PoisonError::into_inner).clone_from(problems);
    }
}

impl DurationHistogram {
    /// Records one duration.
    pub fn record(&self, duration: Duration) {
        let millis = duration.as_millis();
        let bucket = BOUNDS_MS.iter().take_while(|bound| u128::from(**bound) < millis).count();
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the upper bounds in seconds with the count of each bucket (the last one counts everything longer), and
    /// the sum in seconds.
    pub fn snapshot(&self) -> (Vec<(f64, u64)>, f64) {
        let bounds = BOUNDS_MS.iter().map(|bound| *bound as f64 / 1000.0).chain([f64::MAX]);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        (bounds.zip(counts).collect(), self.micros.load(Ordering::Relaxed) as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_bucket_that_it_fits_in() {
        let durations = DurationHistogram::default();
        for millis in [0, 1, 2, 3, 5001] {
            durations.record(Duration::from_millis(millis));
        }
        let (buckets, sum) = durations.snapshot();
        let counts: Vec<u64> = buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!((sum - 5.007).abs() < 1e-9, "{sum}");
    }
}
