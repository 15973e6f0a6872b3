//! The store on disk: sled, with durability, checksums and recovery built around it.
//!
//! A folder holds sled's own folder and, next to it, the lock, the watermark and the ballast. A group of commits is
//! one atomic batch in one tree, then a flush, then an fsync of sled's file (its flush alone does not survive a power
//! cut), then the watermark. Every value has a checksum, and none is so long that sled would move it to a file of its
//! own.

mod audit;
mod cache_eviction;
mod compaction;
mod files;
mod idempotency;
mod incidents;
mod integrity;
mod layout;
mod legacy_records;
mod meta;
mod migrate;
mod monitor_events;
mod notifications;
mod pages;
mod pending;
mod people;
mod people_layout;
mod reader;
mod rebuild;
mod record;
mod record_read;
mod record_types;
mod sealed_tree;
mod sealing;
mod snapshot;
mod snapshot_reader;
mod stage;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use parallax_certs::sealing::Keyring;
use sled::Db;

use self::files::{DiskSpace, SpaceLimits, Watermark};
use self::meta::StoreState;
use self::reader::DiskReader;
use self::sealed_tree::SealedTree;
use self::snapshot_reader::SnapshotWalk;
use self::writer::{DiskWriter, DurableFiles};
use super::{
    CompactionResult, RestoreResult, Result, StoreCounts, StoreError, StoreRead, StoreWrite, VerifiedSnapshot,
};

/// Settings of the store on disk; sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskOptions {
    /// Memory for the engine's page cache.
    pub cache: u64,
    /// Size of the ballast file, which is released when the store must open on a full disk.
    pub ballast: u64,
    /// Free space below which nothing is written.
    pub refuse_below: u64,
    /// Free space above which writes resume.
    pub resume_above: u64,
    /// A store up to this size is read and verified completely when it is opened; of a larger one, only the essential
    /// parts.
    pub verify_up_to: u64,
    /// Names of files next to the store's folder that are part of its snapshots.
    pub adjacent_files: Vec<String>,
    /// Cursors that a restore resets to 0, since their values no longer apply.
    pub reset_cursors: Vec<String>,
    /// Keys for records that hold customers' secrets; `None` stores them in plain text.
    pub keyring: Option<Arc<Keyring>>,
    /// A step that commits skip, to prove that the kill and power cut tests would notice.
    #[cfg(test)]
    pub(crate) skip: writer::SkippedStep,
}

impl Default for DiskOptions {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            cache: 64 * MIB,
            ballast: 32 * MIB,
            refuse_below: 64 * MIB,
            resume_above: 128 * MIB,
            verify_up_to: 128 * MIB,
            adjacent_files: Vec::new(),
            reset_cursors: Vec::new(),
            keyring: None,
            #[cfg(test)]
            skip: writer::SkippedStep::Nothing,
        }
    }
}

/// Opens the store in a folder, or creates one there; returns both sides for [`Store::start`](super::Store::start).
/// Blocking.
///
/// # Errors
/// - [`StoreError::Locked`] if another process has it open,
/// - [`StoreError::Newer`] if a later version wrote it,
/// - [`StoreError::Denied`] if its files belong to another user,
/// - [`StoreError::KeyMissing`] if secrets in it are sealed with a key that is not given,
/// - [`StoreError::Damaged`] if its contents differ from those that were made durable.
///
/// An older schema is migrated after a snapshot.
pub fn open(folder: &Path, options: DiskOptions) -> Result<(Arc<dyn StoreRead>, Box<dyn StoreWrite>)> {
    let folder = folder.to_owned();
    catch_panic(move || {
        let (shared, writer) = open_here(&folder, &options)?;
        let reader: Arc<dyn StoreRead> = Arc::new(DiskReader::new(shared));
        let writer: Box<dyn StoreWrite> = Box::new(writer);
        Ok((reader, writer))
    })
}

/// Restores a snapshot into `folder`. The current store is kept next to it, under its name with `suffix` appended.
/// Files next to the store are restored where they are missing. Blocking.
///
/// Nothing is touched if the snapshot is incomplete ([`StoreError::Damaged`]) or a process has the store open
/// ([`StoreError::Locked`]).
pub fn restore(folder: &Path, file: &Path, suffix: &str, options: &DiskOptions) -> Result<RestoreResult> {
    let (folder, file, suffix, options) = (folder.to_owned(), file.to_owned(), suffix.to_owned(), options.clone());
    catch_panic(move || rebuild::restore(&folder, &file, &suffix, &options))
}

/// Rewrites the store in `folder`, which frees space that the engine holds and does not need. Fails as [`open`] does;
/// the store is unchanged then. Blocking.
pub fn compact(folder: &Path, options: &DiskOptions) -> Result<CompactionResult> {
    let (folder, options) = (folder.to_owned(), options.clone());
    catch_panic(move || {
        let (shared, _writer) = open_here(&folder, &options)?;
        rebuild::compact(&shared, &options)
    })
}

/// Reads a whole snapshot and verifies its checksums, and returns its counts. Blocking.
///
/// A record that matches its checksum may still be no value of its type: [`verify_snapshot_records`] finds those.
pub fn verify_snapshot(file: &Path) -> Result<StoreCounts> {
    snapshot::verify(file).map(|(_, _, counts)| counts)
}

/// Reads a whole snapshot, verifies its checksums, and counts the records that can't be decoded. Blocking.
///
/// Records that are sealed with a key that is not given, and those of an older schema, are verified by checksum only.
///
/// # Errors
/// If the file can't be read or is damaged. A record that can't be decoded is no error.
pub fn verify_snapshot_records(file: &Path, keyring: Option<&Keyring>) -> Result<VerifiedSnapshot> {
    snapshot::verify_records(file, keyring)
}

/// Returns the snapshots folder of the store in `folder`, which is next to it.
pub(crate) fn snapshots_folder(folder: &Path) -> PathBuf {
    folder.with_file_name("snapshots")
}

/// Runs work on a separate thread: sled can panic on damaged files, and there a panic becomes an error.
fn catch_panic<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let thread = thread::Builder::new().name("store-open".to_owned()).spawn(work);
    thread
        .map_err(io_error)?
        .join()
        .unwrap_or_else(|_| Err(StoreError::Damaged("the engine can't read its files".to_owned())))
}

/// Runs a read of the engine, which can panic on a damaged page; the panic becomes an error.
fn catch_read_panic<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(StoreError::Damaged("the engine can't read one of its pages".to_owned())))
}

/// State shared by the reader and the writer.
struct SharedStore {
    db: Db,
    /// The same tree, with sealing.
    records: SealedTree,
    /// Locked for writing while a batch is applied, for reading during one query: so each query sees one point in
    /// time.
    commit_lock: RwLock<()>,
    snapshot_walk: SnapshotWalk,
    folder: PathBuf,
    adjacent_files: Vec<String>,
    /// Declared after `db`, so that the engine's files are closed before the lock is released.
    _lock: File,
}

impl SharedStore {
    fn reading(&self) -> RwLockReadGuard<'_, ()> {
        self.commit_lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a query at one point in time.
    fn query<T>(&self, read: impl FnOnce(&SealedTree) -> Result<T>) -> Result<T> {
        let _guard = self.reading();
        catch_read_panic(|| read(&self.records))
    }

    fn writing(&self) -> RwLockWriteGuard<'_, ()> {
        self.commit_lock.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the files for oversized pages in the engine's folder.
    fn blobs(&self) -> Result<u64> {
        match std::fs::read_dir(engine_folder(&self.folder).join("blobs")) {
            Ok(entries) => Ok(entries.count() as u64),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(io_error(error)),
        }
    }
}

impl std::fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedStore").field("folder", &self.folder).finish_non_exhaustive()
    }
}

fn open_here(folder: &Path, options: &DiskOptions) -> Result<(Arc<SharedStore>, DiskWriter)> {
    rebuild::recover(folder)?;
    files::check_owner(folder)?;
    std::fs::create_dir_all(folder).map_err(io_error)?;
    let lock = files::lock(folder)?;
    let limits = SpaceLimits {
        refuse_below: options.refuse_below,
        resume_above: options.resume_above,
        ballast: options.ballast,
    };
    let mut space = DiskSpace::new(folder, limits);
    space.release_ballast_if_low()?;
    let db = open_engine(&engine_config(folder, options))?;
    let records = SealedTree::new(sled::Tree::clone(&db), options.keyring.clone());
    let shared = Arc::new(SharedStore {
        db,
        records,
        commit_lock: RwLock::new(()),
        snapshot_walk: SnapshotWalk::default(),
        folder: folder.to_owned(),
        adjacent_files: options.adjacent_files.clone(),
        _lock: lock,
    });
    if shared.blobs()? > 0 {
        return Err(StoreError::Damaged("the engine has pages in files that are not durable".to_owned()));
    }
    let engine = engine_folder(folder);
    let file = File::options().read(true).write(true).open(engine.join("db")).map_err(io_error)?;
    let watermark = Watermark::open(folder)?;
    let existing = verify::verify_state(&shared.db, watermark.read()?)?;
    let mut durable = DurableFiles::new(file, watermark);
    #[cfg(test)]
    durable.skip(options.skip);
    // Before anything is read that may be sealed.
    shared.records.unlisted_keys()?;
    let meta = match existing {
        None => None,
        Some((schema, meta)) => {
            let verify_all = shared.db.size_on_disk().map_err(engine_error)? <= options.verify_up_to;
            verify::verify_records(&shared.db, &meta, verify_all)?;
            let is_old = schema < layout::SCHEMA;
            Some(if is_old { migrate::migrate(&shared, schema, meta, &mut durable)? } else { meta })
        }
    };
    space.restore_ballast()?;
    let mut writer = DiskWriter::new(Arc::clone(&shared), durable, space, meta.unwrap_or_else(StoreState::new));
    if meta.is_none() {
        writer.initialize()?;
    }
    writer.record_sealing_key()?;
    // The first open may have been interrupted just before this.
    files::sync_folder(&engine)?;
    files::sync_folder(folder)?;
    files::sync_folder(snapshot::parent(folder))?;
    Ok((shared, writer))
}

fn engine_config(folder: &Path, options: &DiskOptions) -> sled::Config {
    sled::Config::new()
        .path(engine_folder(folder))
        .segment_size(2 << 20)
        .cache_capacity(options.cache)
        .flush_every_ms(Some(500))
}

/// Opens sled. Its own lock can briefly outlive a store that this process has just closed, while a task of its pool
/// holds the file. The store's lock is held by now, so no other process can be the reason and waiting is safe.
fn open_engine(config: &sled::Config) -> Result<Db> {
    let mut waits = LOCK_WAITS;
    loop {
        match config.open() {
            Err(sled::Error::Io(error)) if waits > 0 && error.to_string().starts_with(LOCK_ERROR_PREFIX) => {
                waits -= 1;
                thread::park_timeout(LOCK_WAIT);
            }
            opened => return opened.map_err(engine_error),
        }
    }
}

/// Start of sled's message that it could not take its lock; it has no error kind for that.
const LOCK_ERROR_PREFIX: &str = "could not acquire lock";
const LOCK_WAIT: Duration = Duration::from_millis(20);
const LOCK_WAITS: u32 = 250;

fn engine_folder(folder: &Path) -> PathBuf {
    folder.join("sled")
}

fn engine_error(error: sled::Error) -> StoreError {
    match error {
        sled::Error::Io(error) => io_error(error),
        sled::Error::Corruption { .. }
        | sled::Error::CollectionNotFound(_)
        | sled::Error::Unsupported(_)
        | sled::Error::ReportableBug(_) => StoreError::Damaged(error.to_string()),
    }
}

fn io_error(error: io::Error) -> StoreError {
    StoreError::Io(error.to_string())
}
