//! The history: readings from the moment they are durable, through packed tails and blocks, to figures and roll-ups.
//!
//! ```text
//! commit ──append──▶ open tails ──by the hour──▶ blocks, hour and day roll-ups
//!    │                   │
//!    └─ journal      checkpoint every 15 minutes; the journal is trimmed behind it
//! ```
//!
//! A reading is in the journal until a checkpoint or a block holds it, so that a start finds all of them. Blocks,
//! checkpoint and journal may hold the same reading; a round counts once, and its first reading stays.

mod checkpoint;
mod figures;
mod journal;
mod seal;
mod tails;
#[cfg(test)]
mod tests;

pub use figures::{Figures, Question};
pub use journal::{KEEP_EVENTS, trim_events};

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parallax_core::block::{self, Sample};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::incident::{MAX_COUNTED, MAX_WINDOW};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::place::Region;
use parallax_core::rollup::{DayRollup, HourRollup};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::uptime::Spans;
use parallax_core::window::Window;

use crate::storage::{Batch, Block, Op, Read, Rollup, Store, StoreError};

use checkpoint::Upkeep;
use figures::Cache;
use tails::Tails;

/// Hours that raw readings are kept after they were due; up to two days longer, since they go by whole days.
pub const KEEP_BLOCKS: i64 = 30 * 24;
/// Hours that hour roll-ups are kept, at least.
pub const KEEP_HOURS: i64 = 400 * 24;
/// Time between two checkpoints of the open tails, in milliseconds.
pub const CHECKPOINT_EVERY: i64 = 15 * MINUTE;

/// What is kept of one hour, by region.
pub type HourRollups = BTreeMap<Region, HourRollup>;
/// What is kept of one day, by region.
pub type DayRollups = BTreeMap<Region, DayRollup>;

/// When maintenance covered a monitor, as far as it matters to some time: its rounds due then don't count for uptime.
pub type Windows = Arc<dyn Fn(&dyn Read, &Monitor, Range<Timestamp>) -> Spans + Send + Sync>;

/// Why the history can't say or do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The store can't.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A checkpoint is not what was written.
    #[error("the checkpoint of open tails is damaged in part {0}")]
    Checkpoint(u32),
}

impl HistoryError {
    /// Logs that work was not done and is tried again; see [`StoreError::log_retry`].
    pub fn log_retry(&self, failed: &'static str) {
        match self {
            Self::Store(error) => error.log_retry(failed),
            Self::Checkpoint(_) => tracing::error!(error = %self, "{failed}; trying again"),
        }
    }

    /// Whether what was stored is not what was written: a snapshot must be put back.
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

/// The history of every monitor. One writer appends and forgets; anybody may read.
#[derive(Debug)]
pub struct History {
    tails: Mutex<Tails>,
    cache: Mutex<Cache>,
    upkeep: tokio::sync::Mutex<Upkeep>,
}

impl History {
    /// The history as the store has it: the checkpoint and the journal's entries after it. Blocks.
    ///
    /// # Errors
    /// When the store can't be read, or a checkpoint in it is damaged.
    pub fn rebuild(read: &dyn Read) -> Result<Self, HistoryError> {
        let (tails, upkeep) = checkpoint::rebuild(read)?;
        Ok(Self {
            tails: Mutex::new(tails),
            cache: Mutex::default(),
            upkeep: tokio::sync::Mutex::new(upkeep),
        })
    }

    /// Makes a new monitor known. Readings of unknown ones are not taken in.
    pub fn enlist(&self, slot: u32, monitor: MonitorId) {
        self.tails().enlist(slot, monitor);
    }

    /// Forgets a deleted monitor and its open tails.
    pub fn forget(&self, slot: u32) {
        let monitor = self.tails().forget(slot);
        if let Some(monitor) = monitor {
            locked(&self.cache).forget(monitor);
        }
    }

    /// Takes in the readings of one commit once it is durable, in the order of commits; `journal_seq` is its entry in
    /// the readings journal. Gives how many were not taken in: of unknown monitors, of a round that has one already,
    /// or more than an hour holds.
    pub fn append(&self, readings: &[Reading], journal_seq: u64) -> usize {
        let mut tails = self.tails();
        let taken = readings.iter().filter(|reading| tails.push(reading)).count();
        tails.applied = tails.applied.max(journal_seq);
        readings.len() - taken
    }

    /// Does one slice of what is due: blocks and roll-ups of some monitors, parts of a checkpoint, trimming the
    /// journal. True when more is due at once; else a second's pause is right. One slice runs at a time.
    ///
    /// # Errors
    /// When the store can't be read or written; the same is tried again by the next call.
    pub async fn upkeep(
        self: &Arc<Self>,
        store: &Store,
        now: Timestamp,
        windows: &Windows,
    ) -> Result<bool, HistoryError> {
        let mut upkeep = self.upkeep.lock().await;
        let (history, windows) = (Arc::clone(self), Arc::clone(windows));
        let seal = store.read(move |read| seal::slice(&history, read, now, &windows)).await?;
        commit(store, seal.ops).await?;
        self.tails().settle(&seal.sealings, now);
        Ok(self.checkpoint(&mut upkeep, store, now).await? || seal.more)
    }

    /// Does one slice of the checkpoint and the trim; true when more is due. Packing takes milliseconds, so it has a
    /// thread that may block.
    async fn checkpoint(
        self: &Arc<Self>,
        upkeep: &mut Upkeep,
        store: &Store,
        now: Timestamp,
    ) -> Result<bool, HistoryError> {
        let (history, before) = (Arc::clone(self), upkeep.clone());
        let mut progress = store.read(move |_| Ok(before.slice(&history, now))).await?;
        let more = progress.more;
        commit(store, std::mem::take(&mut progress.ops)).await?;
        upkeep.settle(progress);
        Ok(more)
    }

    /// The figures of the 24 hours up to `question.now`, from roll-ups, blocks and open tails of this monitor alone;
    /// the same question gets the same answer for some seconds. Blocks for as long as the store's reads do.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn figures(&self, read: &dyn Read, question: &Question) -> Result<Figures, HistoryError> {
        if let Some(figures) = locked(&self.cache).get(question) {
            return Ok(figures);
        }
        let figures = figures::compute(self, read, question)?;
        locked(&self.cache).put(question, figures);
        Ok(figures)
    }

    /// The readings of a monitor in a region that were due from `from` on and before `to`, by the time they were due.
    /// Ask for days, not for all there is.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn readings(
        &self,
        read: &dyn Read,
        (slot, monitor): (u32, MonitorId),
        region: Region,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<Sample>, HistoryError> {
        // Tails first: what is sealed in between is then in both, never in neither.
        let open = self.open_hours(slot);
        let hours = from.hour()..to.hour().saturating_add(1);
        let mut by_hour: BTreeMap<i64, Vec<Sample>> = BTreeMap::new();
        for block in read.blocks(monitor, region, hours.clone())? {
            by_hour.insert(block.hour, unpack(&block));
        }
        for ((_, hour), samples) in
            open.into_iter().filter(|((of, hour), _)| *of == region && hours.contains(hour))
        {
            join(by_hour.entry(hour).or_default(), samples);
        }
        let mut readings: Vec<Sample> = by_hour.into_values().flatten().collect();
        readings.retain(|sample| from <= sample.due && sample.due < to);
        readings.sort_by_key(|sample| (sample.due, sample.round));
        Ok(readings)
    }

    /// The sealed day roll-ups of a monitor, by the number of days since the epoch in the page's zone.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn days(
        &self,
        read: &dyn Read,
        monitor: MonitorId,
        days: Range<i64>,
    ) -> Result<BTreeMap<i64, DayRollups>, HistoryError> {
        let rollups = read.days(monitor, days)?;
        Ok(rollups.iter().map(|rollup| (rollup.at, unpack_rollup(rollup))).collect())
    }

    /// The sealed hour roll-ups of a monitor, by the number of hours since the epoch.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn hours(
        &self,
        read: &dyn Read,
        monitor: MonitorId,
        hours: Range<i64>,
    ) -> Result<BTreeMap<i64, HourRollups>, HistoryError> {
        let rollups = read.hours(monitor, hours)?;
        Ok(rollups.iter().map(|rollup| (rollup.at, unpack_rollup(rollup))).collect())
    }

    fn tails(&self) -> MutexGuard<'_, Tails> {
        locked(&self.tails)
    }

    /// The readings in the open tails of a monitor, by region and hour.
    fn open_hours(&self, slot: u32) -> BTreeMap<(Region, i64), Vec<Sample>> {
        self.tails().samples(slot)
    }
}

/// Windows for where none are kept: nothing is excluded.
pub fn no_windows() -> Windows {
    Arc::new(|_, _, _| Spans::default())
}

/// The windows that the store keeps.
pub fn stored_windows() -> Windows {
    Arc::new(|read, monitor, time| {
        covering(read, monitor, time).unwrap_or_else(|error| {
            tracing::error!(monitor = %monitor.id, %error, "maintenance windows can't be read");
            Spans::default()
        })
    })
}

/// When maintenance covered the monitor, as far as it matters to that time.
///
/// # Errors
/// When the store can't be read.
pub fn covering(read: &dyn Read, monitor: &Monitor, time: Range<Timestamp>) -> Result<Spans, StoreError> {
    let windows = read.windows_of(monitor.page, Some(monitor.id), reaching_into(time), MAX_COUNTED)?;
    Ok(windows.into_iter().map(|window| window.span).collect())
}

/// The page's windows that may reach into that time, oldest first: none that began longer before it than a window may
/// last, and of very many the newest.
///
/// # Errors
/// When the store can't be read.
pub fn windows_within(
    read: &dyn Read,
    page: PageId,
    time: Range<Timestamp>,
) -> Result<Vec<Window>, StoreError> {
    read.windows_of(page, None, reaching_into(time), MAX_COUNTED)
}

/// When a window begins that may reach into that time.
fn reaching_into(time: Range<Timestamp>) -> Range<Timestamp> {
    time.start - MAX_WINDOW..time.end
}

async fn commit(store: &Store, ops: Vec<Op>) -> Result<(), HistoryError> {
    if !ops.is_empty() {
        store.commit(Batch { ops, ..Batch::new() }).await?;
    }
    Ok(())
}

/// Whatever panicked elsewhere left whole values behind: every change under these locks is one step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the readings whose rounds are not there yet, and gives them back.
fn join(samples: &mut Vec<Sample>, others: Vec<Sample>) -> Vec<Sample> {
    let fresh: Vec<Sample> = others
        .into_iter()
        .filter(|other| samples.binary_search_by_key(&other.round, |sample| sample.round).is_err())
        .collect();
    samples.extend_from_slice(&fresh);
    samples.sort_by_key(|sample| sample.round);
    fresh
}

/// The readings of a stored block; none where it can't be read, which its checksum would have told before.
fn unpack(block: &Block) -> Vec<Sample> {
    block::decode(block.hour, &block.bytes).unwrap_or_else(|error| {
        tracing::error!(monitor = %block.monitor, hour = block.hour, %error, "a block of readings can't be read");
        Vec::new()
    })
}

/// A stored roll-up; an empty one where it can't be read, which its checksum would have told before.
fn unpack_rollup<T: serde::de::DeserializeOwned + Default>(rollup: &Rollup) -> T {
    postcard::from_bytes(&rollup.bytes).unwrap_or_else(|error| {
        tracing::error!(monitor = %rollup.monitor, at = rollup.at, %error, "a roll-up can't be read");
        T::default()
    })
}
