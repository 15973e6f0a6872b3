//! Figures of the installation for its operators, from what the program knows anyway.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parallax_core::time::{MINUTE, SECOND, Timestamp};
use parallax_engine::counters::{DurationHistogram, EngineCounters};
use parallax_service::mesh::InstallationFigures;
use parallax_store::Store;
use parallax_store::snapshots::SnapshotFolder;

/// Milliseconds of a minute.
const A_MINUTE: u128 = MINUTE.unsigned_abs() as u128;

/// Sources of the figures.
pub(super) struct InstallationSources {
    pub(super) store: Store,
    pub(super) snapshots: SnapshotFolder,
    /// Start of the program.
    pub(super) started: Timestamp,
    /// Returns the end of the certificate authority, in seconds since 1970.
    pub(super) authority_expiry: Box<dyn Fn() -> i64 + Send + Sync>,
}

impl InstallationSources {
    /// Returns the figures. One that can't be read is left out: the other figures and the screen stay.
    pub(super) async fn figures(&self, counters: &EngineCounters, now: Timestamp) -> InstallationFigures {
        let folder = self.snapshots.clone();
        let (size, snapshots) = tokio::join!(
            self.store.read(|store| store.size()),
            // A listing of a folder: file access has its place in the store's threads.
            self.store.read(move |_| folder.list()),
        );
        let size = size.ok();
        InstallationFigures {
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            snapshot_at: snapshots.ok().and_then(|all| all.last().map(|snapshot| snapshot.at)),
            store_bytes: size.map(|size| size.bytes).filter(|bytes| *bytes > 0),
            disk: size.map(|size| (size.free, size.capacity)).filter(|(_, capacity)| *capacity > 0),
            rounds_per_minute: per_minute(counters.readings.load(Relaxed), now.since(self.started)),
            commit_micros: average_micros(&counters.commits),
            authority_until: Some(Timestamp::from_millis((self.authority_expiry)().saturating_mul(SECOND))),
        }
    }
}

/// Returns how many there were a minute, rounded; none before the first minute is over.
fn per_minute(count: u64, elapsed_ms: i64) -> Option<u64> {
    let elapsed = u128::try_from(elapsed_ms).ok().filter(|elapsed| *elapsed >= A_MINUTE)?;
    u64::try_from((u128::from(count) * A_MINUTE + elapsed / 2) / elapsed).ok()
}

/// Returns the average of the recorded durations; none without any.
fn average_micros(durations: &DurationHistogram) -> Option<u64> {
    let (buckets, seconds) = durations.snapshot();
    let count: u64 = buckets.iter().map(|(_, count)| count).sum();
    (count > 0).then(|| micros(seconds / count as f64))
}

fn micros(seconds: f64) -> u64 {
    // Zero for what is no duration.
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_known_figures_are_returned() {
        let folder = tempfile::tempdir().unwrap();
        let (store, counters) = (Store::in_memory().unwrap(), EngineCounters::default());
        let sources = InstallationSources {
            store,
            snapshots: SnapshotFolder::of(&folder.path().join("store")),
            started: Timestamp::from_millis(0),
            authority_expiry: Box::new(|| 1_000),
        };
        let early = sources.figures(&counters, Timestamp::from_millis(MINUTE - 1)).await;
        assert_eq!((early.snapshot_at, early.rounds_per_minute, early.commit_micros), (None, None, None));
        assert_eq!(early.authority_until, Some(Timestamp::from_millis(1_000_000)));
        counters.readings.fetch_add(90, Relaxed);
        counters.commits.record(Duration::from_micros(1_000));
        counters.commits.record(Duration::from_micros(3_000));
        let later = sources.figures(&counters, Timestamp::from_millis(3 * MINUTE)).await;
        assert_eq!((later.rounds_per_minute, later.commit_micros), (Some(30), Some(2_000)));
    }

    #[test]
    fn a_part_of_a_minute_counts() {
        assert_eq!(per_minute(90, 2 * MINUTE - 1), Some(45), "not by whole minutes alone");
        assert_eq!(per_minute(100, MINUTE), Some(100));
        assert_eq!([per_minute(9, MINUTE - 1), per_minute(9, 0), per_minute(9, -MINUTE)], [None; 3]);
    }
}
