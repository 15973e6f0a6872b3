//! What is kept and how it is asked for: questions in the domain's words, and one way to write, a batch.
//!
//! [`Store`] is what the other rooms hold: it commits [`Batch`]es through one writer thread and hands out an
//! [`Arc<dyn Read>`](Read). Two engines stand behind it, [`memory`] for tests and `disk` for service; one suite of
//! rules runs on both. No key, no byte and no engine's name leaves this room.

pub mod batch;
#[cfg(test)]
pub(crate) mod contract;

pub mod disk;
pub mod handle;
mod health;
pub mod memory;
mod outgoing;
mod packed;
pub mod shelf;

pub use batch::{Batch, Committed, Expect, Is, Op};
pub use handle::Store;
pub use outgoing::{Outgoing, Waiting};
pub use packed::{Block, Checkpoint, MAX_REMEMBERED, MAX_REMEMBERED_BYTES, Remembered, Rollup};

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use parallax_core::account::Account;
use parallax_core::deploy::Deploy;
use parallax_core::event::Event;
use parallax_core::heartbeat::Ping;
use parallax_core::id::{
    AccountId, AgentId, DeployId, IncidentId, InvitationId, KeyId, MonitorId, PageId, SeriesId,
};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::Key;
use parallax_core::machine::State;
use parallax_core::member::{Agent, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page::domain::Freed;
use parallax_core::page::look::PictureUse;
use parallax_core::place::{NetworkNo, PlaceNo, Region};
use parallax_core::time::Timestamp;
use parallax_core::window::Window;

/// What a question or a commit gives.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Why the store could not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Something that the batch counts on is no longer so: read again, decide again. Nothing was written.
    #[error("another change came first: {0} does not hold")]
    Conflict(Expect),
    /// A part of the batch is larger than the store takes. Nothing was written.
    #[error("{0} is too large to be stored")]
    TooLarge(&'static str),
    /// The disk is nearly full. Reads go on; writes are taken again by themselves once there is space.
    #[error("the disk is nearly full: nothing is written until there is space")]
    Full,
    /// What was read is not what was written, or less of it. A snapshot must be restored.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The store's files belong to another user, and this one may not use them.
    #[error("{} belongs to user {owner}, and this is user {user}", .path.display())]
    Denied {
        /// A file or folder that can't be used.
        path: PathBuf,
        /// Whose it is, by number.
        owner: u32,
        /// Who asks, by number.
        user: u32,
    },
    /// Another process has the store open.
    #[error("the store is in use by another process")]
    Locked,
    /// A later version of the program wrote the store.
    #[error(
        "the store has schema {found}, and this version knows schemas up to {known}: use a newer version"
    )]
    Newer {
        /// Schema of the store.
        found: u32,
        /// Newest schema that this program knows.
        known: u32,
    },
    /// Secrets in the store are sealed with a key that was not given: its id.
    #[error(
        "secrets in the store are sealed with the key {0}: set `secrets_key_file` to a file that has this key"
    )]
    KeyMissing(String),
    /// The host could not read or write. After a failed write nothing more is written until the next start.
    #[error("the store can't be read or written: {0}")]
    Io(String),
    /// The store is closed, or closing.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Logs that work was not done and is tried again. Nothing of a full disk: the store itself logs that, and once.
    pub fn log_retry(&self, failed: &'static str) {
        if *self != Self::Full {
            tracing::error!(error = %self, "{failed}; trying again");
        }
    }
}

/// A record with its revision: the number of the commit that last wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned<T> {
    /// Number of the commit that wrote it; never given twice, not even to a record that was deleted and made anew.
    pub revision: u64,
    /// The record.
    pub value: T,
}

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Sequence number, from 1, without gaps.
    pub seq: u64,
    /// What happened.
    pub event: Event,
}

/// One entry of the readings journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Sequence number, from 1, without gaps.
    pub seq: u64,
    /// The readings of one batch.
    pub readings: Vec<Reading>,
}

/// How much there is on a page of what an owner may have only so many of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Open incidents and unfinished windows.
    pub open: usize,
    /// Repeating entries that are not stopped.
    pub repeating: usize,
    /// Incidents and windows, closed ones too.
    pub incidents: usize,
}

/// How the store stands, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes that it takes on disk.
    pub bytes: u64,
    /// Files in the engine's folder for oversized pages, which must stay empty: they are not made durable.
    pub blobs: u64,
    /// Bytes left for it.
    pub free: u64,
}

/// What there is in a store that was proved to be whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whole {
    /// Records of every kind.
    pub records: u64,
    /// Accounts, pages, monitors and their like among them.
    pub documents: u64,
    /// Events that are kept.
    pub events: u64,
    /// Entries of the readings journal that are kept.
    pub readings: u64,
    /// Commits that there ever were.
    pub commits: u64,
}

/// A snapshot that was written and read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Bytes of the file.
    pub bytes: u64,
    /// What is in it.
    pub whole: Whole,
}

/// A snapshot that was put in a store's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// What is in it.
    pub whole: Whole,
    /// Where the store that was there is now; none where there was none.
    pub aside: Option<PathBuf>,
}

/// A store that was written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
    /// What is in it.
    pub whole: Whole,
}

/// The questions. Each gives a whole answer; no lock and no iterator outlives a call. What a commit wrote is seen by
/// every question asked after its acknowledgement, and maybe shortly before.
///
/// Questions for one record, a cursor or a counter take microseconds and may be asked from async code directly;
/// those that give lists go through [`Store::read`].
pub trait Read: Outgoing + Send + Sync + fmt::Debug {
    /// The account.
    fn account(&self, id: AccountId) -> Result<Option<Versioned<Account>>>;
    /// Every account, by id.
    fn accounts(&self) -> Result<Vec<Versioned<Account>>>;
    /// The page.
    fn page(&self, id: PageId) -> Result<Option<Versioned<Page>>>;
    /// The page under that address label.
    fn page_by_slug(&self, slug: &str) -> Result<Option<Versioned<Page>>>;
    /// The page that has that hostname as its own.
    fn page_by_host(&self, host: &str) -> Result<Option<Versioned<Page>>>;
    /// The bytes of a page's picture.
    fn picture(&self, page: PageId, usage: PictureUse) -> Result<Option<Vec<u8>>>;
    /// For whom a hostname is kept that a page had, whether the time is over or not.
    fn freed(&self, host: &str) -> Result<Option<Freed>>;
    /// Every page, by id.
    fn pages(&self) -> Result<Vec<Versioned<Page>>>;
    /// The account's pages, by id.
    fn pages_of(&self, account: AccountId) -> Result<Vec<Versioned<Page>>>;
    /// The monitor.
    fn monitor(&self, id: MonitorId) -> Result<Option<Versioned<Monitor>>>;
    /// Up to `limit` monitors by id, from the one behind `after` on: what a start goes through without holding all.
    fn monitors_after(&self, after: Option<MonitorId>, limit: usize) -> Result<Vec<Versioned<Monitor>>>;
    /// Every monitor, by id.
    fn monitors(&self) -> Result<Vec<Versioned<Monitor>>> {
        self.monitors_after(None, usize::MAX)
    }
    /// The page's monitors in page order: by position, then by id.
    fn monitors_of(&self, page: PageId) -> Result<Vec<Versioned<Monitor>>>;
    /// The API key.
    fn key(&self, id: KeyId) -> Result<Option<Versioned<Key>>>;
    /// The account's API keys, by id.
    fn keys_of(&self, account: AccountId) -> Result<Vec<Versioned<Key>>>;
    /// The agent.
    fn agent(&self, id: AgentId) -> Result<Option<Versioned<Agent>>>;
    /// Every agent, revoked ones too, by id.
    fn agents(&self) -> Result<Vec<Versioned<Agent>>>;
    /// The invitation.
    fn invitation(&self, id: InvitationId) -> Result<Option<Versioned<Invitation>>>;
    /// Every invitation, used and expired ones too, by id.
    fn invitations(&self) -> Result<Vec<Versioned<Invitation>>>;

    /// The incident or maintenance window.
    fn incident(&self, id: IncidentId) -> Result<Option<Versioned<Incident>>>;
    /// Up to `limit` of the page's incidents and windows, or of its open ones alone, newest first: by `startedAt`, then
    /// by id. Only those that come after `before` in that order, where it is given.
    fn incidents_of(
        &self,
        page: PageId,
        open: bool,
        before: Option<(Timestamp, IncidentId)>,
        limit: usize,
    ) -> Result<Vec<Versioned<Incident>>>;
    /// Up to `limit` of the page's incidents and windows, oldest first: by `startedAt`, then by id.
    fn oldest_incidents(&self, page: PageId, limit: usize) -> Result<Vec<Versioned<Incident>>>;
    /// When the oldest of the page's incidents and windows began; none where it has none.
    fn oldest_incident(&self, page: PageId) -> Result<Option<Timestamp>> {
        Ok(self.oldest_incidents(page, 1)?.first().map(|oldest| oldest.value.started_at))
    }
    /// How much there is on the page, counted by keys: some milliseconds for all that a page may have.
    fn standing(&self, page: PageId) -> Result<Standing>;
    /// Every open incident and unfinished window of all pages.
    fn open_incidents(&self) -> Result<Vec<Versioned<Incident>>>;
    /// The newest `limit` of the page's maintenance windows with a start in `starts.start <= start < starts.end`, oldest
    /// first. With a monitor only those that cover it, so that no other takes a place.
    fn windows_of(
        &self,
        page: PageId,
        covering: Option<MonitorId>,
        starts: Range<Timestamp>,
        limit: usize,
    ) -> Result<Vec<Window>>;
    /// The repeating entry.
    fn series(&self, id: SeriesId) -> Result<Option<Versioned<Series>>>;
    /// Every repeating entry that is not stopped.
    fn running_series(&self) -> Result<Vec<Versioned<Series>>>;
    /// The deploy marker.
    fn deploy(&self, id: DeployId) -> Result<Option<Versioned<Deploy>>>;
    /// Up to `limit` of the page's deploy markers, newest first: by their moment, then by id.
    fn deploys_of(&self, page: PageId, limit: usize) -> Result<Vec<Versioned<Deploy>>>;

    /// The monitor's machine state.
    fn machine(&self, monitor: MonitorId) -> Result<Option<State>>;
    /// The heartbeat's kept pings, newest first.
    fn pings(&self, monitor: MonitorId) -> Result<Vec<Ping>>;
    /// Up to `limit` events with a sequence number above `seq`, oldest first.
    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Recorded>>;
    /// Up to `limit` events of a monitor with a sequence number below `before` (none: from the end), newest first.
    /// None for a monitor that is gone.
    fn events_of(&self, monitor: MonitorId, before: Option<u64>, limit: usize) -> Result<Vec<Recorded>>;
    /// Sequence number of the newest event; 0 before the first.
    fn last_event(&self) -> Result<u64>;
    /// Sequence number of the last event that the reader is done with; 0 before the first.
    fn cursor(&self, reader: &str) -> Result<u64>;
    /// Up to `limit` entries of the readings journal with a sequence number above `seq`, oldest first.
    fn readings_after(&self, seq: u64, limit: usize) -> Result<Vec<Entry>>;
    /// Sequence number of the newest entry of the readings journal, trimmed or not; 0 before the first.
    fn last_reading(&self) -> Result<u64>;

    /// The monitor's blocks of a region with `hours.start <= hour < hours.end`, oldest first.
    fn blocks(&self, monitor: MonitorId, region: Region, hours: Range<i64>) -> Result<Vec<Block>>;
    /// The monitor's hour roll-ups with `hours.start <= at < hours.end`, oldest first.
    fn hours(&self, monitor: MonitorId, hours: Range<i64>) -> Result<Vec<Rollup>>;
    /// The monitor's day roll-ups with `days.start <= at < days.end`, oldest first.
    fn days(&self, monitor: MonitorId, days: Range<i64>) -> Result<Vec<Rollup>>;
    /// Up to `limit` checkpoints of the open tails, by part, from `part` on.
    fn checkpoints(&self, part: u32, limit: usize) -> Result<Vec<Checkpoint>>;

    /// The next monitor's dense number; 0 at first.
    fn next_slot(&self) -> Result<u32>;
    /// The next agent's dense number; 0 at first.
    fn next_place(&self) -> Result<PlaceNo>;
    /// The networks' numbers by label.
    fn networks(&self) -> Result<BTreeMap<String, NetworkNo>>;
    /// What is remembered under an idempotency name, expired or not.
    fn remembered(&self, name: &str) -> Result<Option<Versioned<Remembered>>>;
    /// Writes one moment of the store to a new file, proved by reading it back; commits go on meanwhile. Blocks. An
    /// engine that has tools of its own for this refuses.
    fn export(&self, to: &Path) -> Result<Exported>;
    /// Writes the bytes of a snapshot to `sink`. Only reading them back proves them. Blocks.
    fn stream(&self, sink: &mut dyn io::Write) -> Result<()>;
    /// Reads one moment of the store whole and proves it; commits go on meanwhile. Blocks.
    fn verify(&self) -> Result<Whole>;
    /// How the store stands.
    fn footprint(&self) -> Result<Footprint>;
}

/// The one way to write. An engine has one writer; [`Store`] gives it a thread.
pub trait Write: Send + fmt::Debug {
    /// Commits the batches in their order, each whole or not at all, each seeing what those before it wrote. When this
    /// returns, what it reports as committed is durable.
    fn commit(&mut self, group: &[Batch]) -> Vec<Result<Committed>>;

    /// Does one small slice of the work that nobody waits for (history of deleted monitors), and says whether more
    /// is left.
    fn tidy(&mut self) -> Result<bool>;
}
