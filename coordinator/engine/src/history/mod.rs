//! Readings history: from durable readings through packed tails and blocks to figures and roll-ups.
//!
//! ```text
//! commit ──append──▶ open tails ──hourly──▶ blocks, hour and day roll-ups
//!    │                   │
//!    └─ journal      checkpoint every 15 minutes; the journal is trimmed behind it
//! ```
//!
//! A reading stays in the journal until a checkpoint or a block holds it, so that a start finds all of them.
//! Blocks, checkpoint and journal may hold the same reading; a round counts once, with its first reading.

mod checkpoint;
mod event_retention;
mod figures;
mod open_tails;
mod seal;
#[cfg(test)]
mod tests;
pub use event_retention::trim_events;
pub use figures::{FiguresQuery, MonitorFigures};
pub use seal::{PastHour, seal_past};

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parallax_core::block::{self, BlockReading};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::incident::{MAX_COUNTED_WINDOWS, MAX_WINDOW};
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::rollup::{DayRollup, HourRollup};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::uptime::TimeSpans;
use parallax_core::vantage::Region;
use parallax_store::{Batch, Block, Op, Rollup, Store, StoreError, StoreRead};

use checkpoint::CheckpointProgress;
use figures::FiguresCache;
use open_tails::OpenTails;

/// Retention of raw readings in hours; up to two days longer, since whole days are deleted.
pub const BLOCK_RETENTION_HOURS: i64 = 30 * 24;
/// Minimum retention of hour roll-ups, in hours.
pub(crate) const ROLLUP_RETENTION_HOURS: i64 = 400 * 24;
/// Interval between two checkpoints of the open tails, in milliseconds.
pub(crate) const CHECKPOINT_EVERY: i64 = 15 * MINUTE;

/// Roll-ups of one hour, by region.
pub type HourRollups = BTreeMap<Region, HourRollup>;
/// Roll-ups of one day, by region.
pub type DayRollups = BTreeMap<Region, DayRollup>;

/// Source of the maintenance windows of a monitor that matter to a time range: rounds due in them don't count
/// for uptime.
pub type WindowSource = Arc<dyn Fn(&dyn StoreRead, &Monitor, Range<Timestamp>) -> TimeSpans + Send + Sync>;

/// An error of the history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A checkpoint is damaged.
    #[error("the checkpoint of open tails is damaged in part {0}")]
    Checkpoint(u32),
}

impl HistoryError {
    /// Logs that work failed and is retried; see [`StoreError::log_retry`].
    pub fn log_retry(&self, failed: &'static str) {
        match self {
            Self::Store(error) => error.log_retry(failed),
            Self::Checkpoint(_) => tracing::error!(error = %self, "{failed}; trying again"),
        }
    }

    /// Returns true if stored data is damaged: a snapshot must be restored.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Store(StoreError::Damaged(_)) | Self::Checkpoint(_))
    }
}

impl From<HistoryError> for StoreError {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Store(error) => error,
            HistoryError::Checkpoint(_) => Self::Damaged(error.to_string()),
        }
    }
}

/// The readings history of every monitor. One writer appends and removes; anyone may read.
#[derive(Debug)]
pub struct History {
    tails: Mutex<OpenTails>,
    cache: Mutex<FiguresCache>,
    checkpoint_progress: tokio::sync::Mutex<CheckpointProgress>,
}

impl History {
    /// Rebuilds the history from the checkpoint and the journal entries after it. Blocks.
    ///
    /// # Errors
    /// If the store can't be read, or its checkpoint is damaged.
    pub fn rebuild(read: &dyn StoreRead) -> Result<Self, HistoryError> {
        let (tails, checkpoint_progress) = checkpoint::rebuild(read)?;
        Ok(Self {
            tails: Mutex::new(tails),
            cache: Mutex::default(),
            checkpoint_progress: tokio::sync::Mutex::new(checkpoint_progress),
        })
    }

    /// Registers a new monitor. Readings of unknown monitors are ignored.
    pub fn register(&self, slot: u32, monitor: MonitorId) {
        self.tails().register(slot, monitor);
    }

    /// Removes a deleted monitor and its open tails.
    pub fn remove(&self, slot: u32) {
        let monitor = self.tails().remove(slot);
        if let Some(monitor) = monitor {
            locked(&self.cache).remove(monitor);
        }
    }

    /// Appends the readings of one durable commit, in commit order; `journal_seq` is its entry in the
    /// readings journal. Returns the number of readings ignored: of unknown monitors, of rounds that have a
    /// reading already, or beyond what an hour holds.
    pub fn append(&self, readings: &[Reading], journal_seq: u64) -> usize {
        let mut tails = self.tails();
        let accepted = readings.iter().filter(|reading| tails.push(reading)).count();
        tails.applied = tails.applied.max(journal_seq);
        readings.len() - accepted
    }

    /// Does one slice of the due work: blocks and roll-ups of some monitors, parts of a checkpoint, trimming
    /// the journal. Returns true if more is due at once; otherwise the caller waits a second. One slice runs
    /// at a time.
    ///
    /// # Errors
    /// If the store can't be read or written; the next call retries.
    pub async fn upkeep(
        self: &Arc<Self>,
        store: &Store,
        now: Timestamp,
        windows: &WindowSource,
    ) -> Result<bool, HistoryError> {
        let mut progress = self.checkpoint_progress.lock().await;
        let (history, windows) = (Arc::clone(self), Arc::clone(windows));
        let sealed = store.read(move |read| seal::slice(&history, read, now, &windows)).await?;
        commit(store, sealed.ops).await?;
        self.tails().confirm_sealed(&sealed.sealings, now);
        Ok(self.checkpoint(&mut progress, store, now).await? || sealed.more)
    }

    /// Does one slice of the checkpoint and the trim; returns true if more is due. Packing takes
    /// milliseconds, so it runs on a blocking thread.
    async fn checkpoint(
        self: &Arc<Self>,
        progress: &mut CheckpointProgress,
        store: &Store,
        now: Timestamp,
    ) -> Result<bool, HistoryError> {
        let (history, current) = (Arc::clone(self), progress.clone());
        let mut slice = store.read(move |_| Ok(current.slice(&history, now))).await?;
        let more = slice.more;
        commit(store, std::mem::take(&mut slice.ops)).await?;
        progress.confirm(slice);
        Ok(more)
    }

    /// Computes the figures of the 24 hours up to `query.now`, from roll-ups, blocks and open tails of
    /// this monitor; the result is cached for some seconds. Blocks as long as the store's reads do.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn figures(&self, read: &dyn StoreRead, query: &FiguresQuery) -> Result<MonitorFigures, HistoryError> {
        if let Some(figures) = locked(&self.cache).get(query) {
            return Ok(figures);
        }
        let figures = figures::compute(self, read, query)?;
        locked(&self.cache).put(query, figures);
        Ok(figures)
    }

    /// Returns the readings of a monitor in a region due at or after `from` and before `to`, by due time.
    /// Meant for ranges of days, not for the whole history.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn readings(
        &self,
        read: &dyn StoreRead,
        (slot, monitor): (u32, MonitorId),
        region: Region,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<BlockReading>, HistoryError> {
        // Tails are read first: readings sealed in between are then in both, never in neither.
        let open = self.open_hours(slot);
        let hours = from.hour()..to.hour().saturating_add(1);
        let mut by_hour: BTreeMap<i64, Vec<BlockReading>> = BTreeMap::new();
        for block in read.blocks(monitor, region, hours.clone())? {
            by_hour.insert(block.hour, unpack(&block));
        }
        for ((_, hour), samples) in
            open.into_iter().filter(|((open_region, hour), _)| *open_region == region && hours.contains(hour))
        {
            merge_new(by_hour.entry(hour).or_default(), samples);
        }
        let mut readings: Vec<BlockReading> = by_hour.into_values().flatten().collect();
        readings.retain(|sample| from <= sample.due && sample.due < to);
        readings.sort_by_key(|sample| (sample.due, sample.round));
        Ok(readings)
    }

    /// Returns the sealed day roll-ups of a monitor, by days since the epoch in the page's time zone.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn days(
        &self,
        read: &dyn StoreRead,
        monitor: MonitorId,
        days: Range<i64>,
    ) -> Result<BTreeMap<i64, DayRollups>, HistoryError> {
        let rollups = read.days(monitor, days)?;
        Ok(rollups.iter().map(|rollup| (rollup.at, unpack_rollup(rollup))).collect())
    }

    /// Returns the sealed hour roll-ups of a monitor, by hours since the epoch.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn hours(
        &self,
        read: &dyn StoreRead,
        monitor: MonitorId,
        hours: Range<i64>,
    ) -> Result<BTreeMap<i64, HourRollups>, HistoryError> {
        let rollups = read.hours(monitor, hours)?;
        Ok(rollups.iter().map(|rollup| (rollup.at, unpack_rollup(rollup))).collect())
    }

    fn tails(&self) -> MutexGuard<'_, OpenTails> {
        locked(&self.tails)
    }

    /// The readings in the open tails of a monitor, by region and hour.
    fn open_hours(&self, slot: u32) -> BTreeMap<(Region, i64), Vec<BlockReading>> {
        self.tails().samples(slot)
    }
}

/// A source without windows: nothing is excluded.
pub fn no_windows() -> WindowSource {
    Arc::new(|_, _, _| TimeSpans::default())
}

/// The source of stored windows.
pub fn stored_windows() -> WindowSource {
    Arc::new(|read, monitor, time| {
        windows_covering(read, monitor, time).unwrap_or_else(|error| {
            tracing::error!(monitor = %monitor.id, %error, "failed to read maintenance windows; counting all rounds");
            TimeSpans::default()
        })
    })
}

/// Returns the maintenance windows that cover the monitor and matter to that time range.
///
/// # Errors
/// If the store can't be read.
pub fn windows_covering(
    read: &dyn StoreRead,
    monitor: &Monitor,
    time: Range<Timestamp>,
) -> Result<TimeSpans, StoreError> {
    let windows = read.windows_of(monitor.page, Some(monitor.id), start_range(time), MAX_COUNTED_WINDOWS)?;
    Ok(windows.into_iter().map(|window| window.span).collect())
}

/// Returns the page's windows that may reach into that time range, oldest first, bounded by the maximum
/// length of a window and, if there are very many, the newest.
///
/// # Errors
/// If the store can't be read.
pub fn windows_within(
    read: &dyn StoreRead,
    page: PageId,
    time: Range<Timestamp>,
) -> Result<Vec<MaintenanceWindow>, StoreError> {
    read.windows_of(page, None, start_range(time), MAX_COUNTED_WINDOWS)
}

/// Range of the start times of windows that may reach into that time range.
fn start_range(time: Range<Timestamp>) -> Range<Timestamp> {
    time.start - MAX_WINDOW..time.end
}

async fn commit(store: &Store, ops: Vec<Op>) -> Result<(), HistoryError> {
    if !ops.is_empty() {
        store.commit(Batch { ops, ..Batch::new() }).await?;
    }
    Ok(())
}

/// Ignores poisoning: every change under these locks is a single step, so that a panic leaves consistent
/// values.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the readings whose rounds are missing, and returns them.
fn merge_new(samples: &mut Vec<BlockReading>, others: Vec<BlockReading>) -> Vec<BlockReading> {
    let added: Vec<BlockReading> = others
        .into_iter()
        .filter(|other| samples.binary_search_by_key(&other.round, |sample| sample.round).is_err())
        .collect();
    samples.extend_from_slice(&added);
    samples.sort_by_key(|sample| sample.round);
    added
}

/// Decodes a stored block; empty on an error, which its checksum would have revealed before.
fn unpack(block: &Block) -> Vec<BlockReading> {
    block::decode(block.hour, &block.bytes).unwrap_or_else(|error| {
        tracing::error!(monitor = %block.monitor, hour = block.hour, %error, "failed to decode a block of readings");
        Vec::new()
    })
}

/// Decodes a stored roll-up; empty on an error, which its checksum would have revealed before.
fn unpack_rollup<T: serde::de::DeserializeOwned + Default>(rollup: &Rollup) -> T {
    postcard::from_bytes(&rollup.bytes).unwrap_or_else(|error| {
        tracing::error!(monitor = %rollup.monitor, at = rollup.at, %error, "failed to decode a roll-up");
        T::default()
    })
}
