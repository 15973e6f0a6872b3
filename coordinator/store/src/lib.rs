//! The store: queries in the terms of the domain, and batches as the only way to write.
//!
//! [`Store`] is what the other crates use: it commits [`Batch`]es through one writer thread and hands out an
//! [`Arc<dyn StoreRead>`](StoreRead). It has two engines, [`memory`] for tests and `disk` for production; one test suite runs on
//! both. No key and no bytes are visible outside this crate, and only the program names an engine.

mod audit;
pub mod batch;
#[cfg(test)]
pub(crate) mod contract;

mod blobs;
pub mod disk;
mod handle;
pub mod memory;
mod notifications;
mod people;
#[cfg(any(test, feature = "samples"))]
#[allow(clippy::unwrap_used, reason = "for tests only")]
pub mod samples;
pub mod snapshots;
mod write_health;

pub use audit::{AuditRead, NumberedAuditEntry};
pub use batch::{Batch, CommitReceipt, Expect, MAX_EXPIRED_PER_OP, Op, Presence};
pub use blobs::{Block, Checkpoint, Rollup, StoredResponse};
pub use handle::Store;
pub use notifications::{NotificationRead, WaitingDelivery};
pub use people::PeopleRead;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use parallax_core::account::Account;
use parallax_core::deploy::Deploy;
use parallax_core::event::Event;
use parallax_core::heartbeat::StoredPing;
use parallax_core::id::{AccountId, AgentId, DeployId, IncidentId, InvitationId, KeyId, MonitorId, PageId, SeriesId};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::machine::MachineState;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page::branding::PictureUse;
use parallax_core::page::domain::ReservedHostname;
use parallax_core::time::Timestamp;
use parallax_core::vantage::{NetworkNo, Region, VantageNo};

/// Result of a query or a commit.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Reason why the store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A condition of the batch no longer holds: read again and decide again. Nothing was written.
    #[error("another change came first: {0} does not hold")]
    Conflict(Expect),
    /// A part of the batch exceeds a limit. Nothing was written.
    #[error("{0} is too large to be stored")]
    TooLarge(&'static str),
    /// The disk is nearly full. Reads continue; writes resume automatically once there is space.
    #[error("the disk is nearly full: nothing is written until there is space")]
    Full,
    /// The data read is not the data written. A snapshot must be restored.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The store's files belong to another user, and this process may not access them.
    #[error("{} belongs to user {owner}, and this is user {user}", .path.display())]
    Denied {
        /// A file or folder without access.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        user: u32,
    },
    /// Another process has the store open.
    #[error("the store is in use by another process")]
    Locked,
    /// A later version of the program wrote the store.
    #[error("the store has schema {found}, and this version knows schemas up to {known}: use a newer version")]
    Newer {
        /// Schema of the store.
        found: u32,
        /// Newest schema that this program knows.
        known: u32,
    },
    /// Secrets in the store are sealed with a key that was not given; its id.
    #[error("secrets in the store are sealed with the key {0}: set `secrets_key_file` to a file that has this key")]
    KeyMissing(String),
    /// The host failed to read or write. After a failed write nothing more is written until the next start.
    #[error("the store can't be read or written: {0}")]
    Io(String),
    /// The store is closed, or closing.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Logs that work failed and is retried. Does not log a full disk: the store logs that itself, and only once.
    pub fn log_retry(&self, failed: &'static str) {
        if *self != Self::Full {
            tracing::error!(error = %self, "{failed}; trying again");
        }
    }
}

/// A record with its revision: the number of the commit that last wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedValue<T> {
    /// Number of the commit that wrote it. Never reused, not even for a record that was deleted and recreated.
    pub revision: u64,
    /// The record.
    pub value: T,
}

/// An event with its sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEvent {
    /// Sequence number, from 1, without gaps.
    pub seq: u64,
    /// The event.
    pub event: Event,
}

/// An entry of the readings journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadingsEntry {
    /// Sequence number, from 1, without gaps.
    pub seq: u64,
    /// The readings of one batch.
    pub readings: Vec<Reading>,
}

/// Counts of a page's limited records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Open incidents and unfinished windows.
    pub open_incidents: usize,
    /// Series that are not stopped.
    pub running_series: usize,
    /// Incidents and windows, closed ones too.
    pub incidents: usize,
}

/// Size of the store, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// Bytes on disk.
    pub bytes: u64,
    /// Files in the engine's folder for oversized pages, which must stay empty: they are not made durable.
    pub oversized_pages: u64,
    /// Bytes available.
    pub free: u64,
    /// Bytes of the whole disk.
    pub capacity: u64,
}

/// Counts of a verified store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Records of every kind.
    pub records: u64,
    /// Accounts, pages, monitors and similar documents among them.
    pub documents: u64,
    /// Events in the journal.
    pub events: u64,
    /// Entries in the readings journal.
    pub readings: u64,
    /// Commits ever made.
    pub commits: u64,
}

/// A snapshot whose checksums match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedSnapshot {
    /// Its counts.
    pub counts: StoreCounts,
    /// Records verified by checksum only: sealed with a key that is not given, or of an older schema.
    pub checksum_only: u64,
    /// Records that match their checksum but can't be decoded, if there are any.
    pub undecodable: Option<UndecodableRecords>,
}

/// Records that match their checksum but can't be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("records that can't be decoded: {count}; the first: {first}")]
pub struct UndecodableRecords {
    /// Number of them, at least 1.
    pub count: u64,
    /// The first one's key and the problem with it.
    pub first: String,
}

/// A snapshot that was written and read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenSnapshot {
    /// Bytes of the file.
    pub bytes: u64,
    /// Its counts.
    pub counts: StoreCounts,
}

/// A restored snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreResult {
    /// Its counts.
    pub counts: StoreCounts,
    /// Path of the replaced store; `None` if there was none.
    pub replaced_store: Option<PathBuf>,
}

/// A compacted store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionResult {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
    /// Its counts.
    pub counts: StoreCounts,
}

/// Queries. Each returns a complete result; no lock and no iterator outlives a call. Every query after a commit's
/// acknowledgement reflects it; a query shortly before may.
///
/// Queries for one record, a cursor or a counter take microseconds and may be called from async code directly; those
/// that return lists go through [`Store::reader`].
pub trait StoreRead: AuditRead + NotificationRead + PeopleRead + Send + Sync + fmt::Debug {
    /// The account.
    fn account(&self, id: AccountId) -> Result<Option<VersionedValue<Account>>>;
    /// Every account, by id.
    fn accounts(&self) -> Result<Vec<VersionedValue<Account>>>;
    /// The page.
    fn page(&self, id: PageId) -> Result<Option<VersionedValue<Page>>>;
    /// The page with that slug.
    fn page_by_slug(&self, slug: &str) -> Result<Option<VersionedValue<Page>>>;
    /// The page with that custom hostname.
    fn page_by_host(&self, host: &str) -> Result<Option<VersionedValue<Page>>>;
    /// The bytes of a page's picture.
    fn picture(&self, page: PageId, usage: PictureUse) -> Result<Option<Vec<u8>>>;
    /// The reservation of a hostname that a page had, expired or not.
    fn reserved_hostname(&self, host: &str) -> Result<Option<ReservedHostname>>;
    /// Every page, by id.
    fn pages(&self) -> Result<Vec<VersionedValue<Page>>>;
    /// The account's pages, by id.
    fn pages_of(&self, account: AccountId) -> Result<Vec<VersionedValue<Page>>>;
    /// The monitor.
    fn monitor(&self, id: MonitorId) -> Result<Option<VersionedValue<Monitor>>>;
    /// Up to `limit` monitors by id, after `after`. A start reads them in slices instead of all at once.
    fn monitors_after(&self, after: Option<MonitorId>, limit: usize) -> Result<Vec<VersionedValue<Monitor>>>;
    /// Every monitor, by id.
    fn monitors(&self) -> Result<Vec<VersionedValue<Monitor>>> {
        self.monitors_after(None, usize::MAX)
    }
    /// The page's monitors in page order: by position, then by id.
    fn monitors_of(&self, page: PageId) -> Result<Vec<VersionedValue<Monitor>>>;
    /// The API key.
    fn key(&self, id: KeyId) -> Result<Option<VersionedValue<ApiKey>>>;
    /// The account's API keys, by id.
    fn keys_of(&self, account: AccountId) -> Result<Vec<VersionedValue<ApiKey>>>;
    /// The agent.
    fn agent(&self, id: AgentId) -> Result<Option<VersionedValue<AgentRecord>>>;
    /// Every agent, revoked ones too, by id.
    fn agents(&self) -> Result<Vec<VersionedValue<AgentRecord>>>;
    /// The invitation.
    fn invitation(&self, id: InvitationId) -> Result<Option<VersionedValue<Invitation>>>;
    /// Every invitation, used and expired ones too, by id.
    fn invitations(&self) -> Result<Vec<VersionedValue<Invitation>>>;

    /// The incident or maintenance window.
    fn incident(&self, id: IncidentId) -> Result<Option<VersionedValue<Incident>>>;
    /// Up to `limit` of the page's incidents and windows, or of its open ones only, newest first: by `startedAt`, then
    /// by id. With `before`, only those after it in that order.
    fn incidents_of(
        &self,
        page: PageId,
        open: bool,
        before: Option<(Timestamp, IncidentId)>,
        limit: usize,
    ) -> Result<Vec<VersionedValue<Incident>>>;
    /// Up to `limit` of the page's incidents and windows, oldest first: by `startedAt`, then by id.
    fn oldest_incidents(&self, page: PageId, limit: usize) -> Result<Vec<VersionedValue<Incident>>>;
    /// Start of the page's oldest incident or window; `None` if it has none.
    fn oldest_incident(&self, page: PageId) -> Result<Option<Timestamp>> {
        Ok(self.oldest_incidents(page, 1)?.first().map(|oldest| oldest.value.started_at))
    }
    /// The page's counts, from its keys: takes some milliseconds for a page at its limits.
    fn page_counts(&self, page: PageId) -> Result<PageCounts>;
    /// Every open incident and unfinished window of all pages.
    fn open_incidents(&self) -> Result<Vec<VersionedValue<Incident>>>;
    /// The newest `limit` of the page's maintenance windows with a start in `starts.start <= start < starts.end`,
    /// oldest first. With a monitor, only those that cover it; others don't count toward the limit.
    fn windows_of(
        &self,
        page: PageId,
        covering: Option<MonitorId>,
        starts: Range<Timestamp>,
        limit: usize,
    ) -> Result<Vec<MaintenanceWindow>>;
    /// The series.
    fn series(&self, id: SeriesId) -> Result<Option<VersionedValue<Series>>>;
    /// Every series that is not stopped.
    fn running_series(&self) -> Result<Vec<VersionedValue<Series>>>;
    /// The deploy marker.
    fn deploy(&self, id: DeployId) -> Result<Option<VersionedValue<Deploy>>>;
    /// Up to `limit` of the page's deploy markers, newest first: by time, then by id.
    fn deploys_of(&self, page: PageId, limit: usize) -> Result<Vec<VersionedValue<Deploy>>>;

    /// The monitor's machine state.
    fn machine(&self, monitor: MonitorId) -> Result<Option<MachineState>>;
    /// The heartbeat's stored pings, newest first.
    fn pings(&self, monitor: MonitorId) -> Result<Vec<StoredPing>>;
    /// Up to `limit` events with a sequence number above `seq`, oldest first.
    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<JournalEvent>>;
    /// Up to `limit` events of a monitor with a sequence number below `before` (`None`: from the end), newest first.
    /// Empty for a deleted monitor.
    fn events_of(&self, monitor: MonitorId, before: Option<u64>, limit: usize) -> Result<Vec<JournalEvent>> {
        self.events_of_many(&[monitor], before, limit)
    }
    /// Up to `limit` events of any of these monitors, each given once, in the same order. Costs one look-up in the index
    /// for each monitor and for each event, and reads the returned events alone.
    fn events_of_many(&self, monitors: &[MonitorId], before: Option<u64>, limit: usize) -> Result<Vec<JournalEvent>>;
    /// Sequence number of the newest event; 0 before the first.
    fn last_event(&self) -> Result<u64>;
    /// Sequence number of the last event that the consumer with that cursor has processed; 0 before the first.
    fn cursor(&self, reader: &str) -> Result<u64>;
    /// Up to `limit` entries of the readings journal with a sequence number above `seq`, oldest first.
    fn readings_after(&self, seq: u64, limit: usize) -> Result<Vec<ReadingsEntry>>;
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

    /// The next monitor's slot; 0 at first.
    fn next_slot(&self) -> Result<u32>;
    /// The next agent's vantage number; 0 at first.
    fn next_vantage(&self) -> Result<VantageNo>;
    /// The networks' numbers by label.
    fn networks(&self) -> Result<BTreeMap<String, NetworkNo>>;
    /// The stored response of an idempotency name, expired or not.
    fn stored_response(&self, name: &str) -> Result<Option<VersionedValue<StoredResponse>>>;
    /// Writes the store at one point in time to a new file, verified by reading it back; commits continue meanwhile.
    /// Blocking. An engine with its own tools for this returns an error.
    fn export(&self, to: &Path) -> Result<WrittenSnapshot>;
    /// Writes the bytes of a snapshot to `sink`. Only reading them back verifies them. Blocking.
    fn stream(&self, sink: &mut dyn io::Write) -> Result<()>;
    /// Reads and verifies the whole store at one point in time; commits continue meanwhile. Blocking.
    fn verify(&self) -> Result<StoreCounts>;
    /// The size of the store.
    fn size(&self) -> Result<StoreSize>;
}

/// The only way to write. An engine has one writer; [`Store`] gives it a thread.
pub trait StoreWrite: Send + fmt::Debug {
    /// Commits the batches in order, each completely or not at all, each seeing the writes of those before it. When
    /// this returns, every batch reported as committed is durable.
    fn commit(&mut self, group: &[Batch]) -> Vec<Result<CommitReceipt>>;

    /// Does one small slice of clean-up work (history of deleted monitors). Returns true if more is left.
    fn clean_up(&mut self) -> Result<bool>;
}
