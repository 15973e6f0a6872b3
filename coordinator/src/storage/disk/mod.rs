//! The engine on disk: sled, with what it does not do itself built around it.
//!
//! A folder holds sled's own folder and, beside it, the lock, the watermark and the ballast. A group of commits is one
//! atomic batch in one tree, then a flush, then an fsync of sled's file (its flush alone is not proof against a power
//! cut), then the watermark. Every value bears a checksum, and none is so long that sled would move it to a file of
//! its own.

mod cache;
mod calendar;
mod files;
mod fold;
mod fresh;
mod layout;
mod load;
mod meta;
mod migrate;
mod moment;
mod old;
mod outgoing;
mod pages;
mod pending;
mod read;
mod record;
mod remembered;
mod sealing;
mod snapshot;
mod stage;
mod tally;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use parallax_certs::sealing::Keyring;
use sled::Db;

use self::files::{Bounds, Space, Watermark};
use self::meta::Meta;
use self::moment::Moments;
use self::read::Reader;
use self::sealing::Records;
use self::writer::{Durable, Writer};
use super::{Compacted, Read, Restored, Result, StoreError, Whole, Write};

/// Settings of the store on disk; sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Memory for the engine's pages.
    pub cache: u64,
    /// Size of the file that is let go when the store must be opened on a full disk.
    pub ballast: u64,
    /// Below so much free space nothing is written.
    pub refuse_below: u64,
    /// Above so much it is again.
    pub resume_above: u64,
    /// A store up to this size is read whole and checked when it is opened; a larger one in what all else hangs on.
    pub verify_up_to: u64,
    /// Names of files that lie beside the store's folder and go into its snapshots.
    pub beside: Vec<String>,
    /// Cursors that a restore sets back to 0, since what they stand for is no longer so.
    pub reset: Vec<String>,
    /// Keys for records that hold customers' secrets; none keeps them in clear.
    pub keyring: Option<Arc<Keyring>>,
    /// What a commit leaves out, to show that the tests of kills and power cuts would notice.
    #[cfg(test)]
    pub(crate) skip: writer::Skip,
}

impl Default for Options {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            cache: 64 * MIB,
            ballast: 32 * MIB,
            refuse_below: 64 * MIB,
            resume_above: 128 * MIB,
            verify_up_to: 128 * MIB,
            beside: Vec::new(),
            reset: Vec::new(),
            keyring: None,
            #[cfg(test)]
            skip: writer::Skip::Nothing,
        }
    }
}

/// Opens the store in a folder, or makes one there: the two sides for [`Store::start`](super::Store::start).
///
/// Fails with [`StoreError::Locked`] where another process has it, [`StoreError::Newer`] where a later version wrote
/// it, [`StoreError::Denied`] where its files are somebody else's, [`StoreError::KeyMissing`] where secrets in it are
/// sealed with a key that is not given, and [`StoreError::Damaged`] where it holds less, or
/// other, than was made durable. An older schema is brought up to date after a snapshot. Blocks.
pub fn open(folder: &Path, options: Options) -> Result<(Arc<dyn Read>, Box<dyn Write>)> {
    let folder = folder.to_owned();
    guarded(move || {
        let (shared, writer) = open_here(&folder, &options)?;
        let reader: Arc<dyn Read> = Arc::new(Reader::new(shared));
        let writer: Box<dyn Write> = Box::new(writer);
        Ok((reader, writer))
    })
}

/// Puts a snapshot in the place of the store in `folder`; what was there is kept beside it under a name that has
/// `aside` behind the store's. Files that lay beside the store are put back where none is there now.
///
/// Nothing is touched where the snapshot is not whole ([`StoreError::Damaged`]), or a process has the store open
/// ([`StoreError::Locked`]). Blocks.
pub fn restore(folder: &Path, file: &Path, aside: &str, options: &Options) -> Result<Restored> {
    let (folder, file, aside, options) =
        (folder.to_owned(), file.to_owned(), aside.to_owned(), options.clone());
    guarded(move || fresh::restore(&folder, &file, &aside, &options))
}

/// Writes the store in `folder` anew, which gives back what the engine holds and does not need. Fails as [`open`] does;
/// the store is then as it was. Blocks.
pub fn compact(folder: &Path, options: &Options) -> Result<Compacted> {
    let (folder, options) = (folder.to_owned(), options.clone());
    guarded(move || {
        let (shared, _writer) = open_here(&folder, &options)?;
        fresh::compact(&shared, &options)
    })
}

/// Reads a snapshot whole: what is in it, where it is all there. Blocks.
pub fn check(file: &Path) -> Result<Whole> {
    snapshot::prove(file).map(|(_, _, whole)| whole)
}

/// The folder of the snapshots of the store in `folder`: beside it.
pub fn snapshots(folder: &Path) -> PathBuf {
    folder.with_file_name("snapshots")
}

/// Works on a thread of its own: sled can panic on damaged files, and there that is an answer, not the end.
fn guarded<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let working = thread::Builder::new().name("store-open".to_owned()).spawn(work);
    working.map_err(io_failed)?.join().unwrap_or_else(|_| {
        Err(StoreError::Damaged("the engine could not make sense of its files".to_owned()))
    })
}

/// What both sides share.
struct Shared {
    db: Db,
    /// The same tree, as records are read and written.
    records: Records,
    /// Held for writing while a batch is applied, for reading within one question: so each answer is of one moment.
    gate: RwLock<()>,
    moments: Moments,
    folder: PathBuf,
    beside: Vec<String>,
    /// After `db`, so that the engine's files are let go before the store is.
    _lock: File,
}

impl Shared {
    fn reading(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many files lie in the engine's folder for oversized pages.
    fn blobs(&self) -> Result<u64> {
        match std::fs::read_dir(engine_folder(&self.folder).join("blobs")) {
            Ok(entries) => Ok(entries.count() as u64),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(io_failed(error)),
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("folder", &self.folder).finish_non_exhaustive()
    }
}

fn open_here(folder: &Path, options: &Options) -> Result<(Arc<Shared>, Writer)> {
    fresh::recover(folder)?;
    files::own(folder)?;
    std::fs::create_dir_all(folder).map_err(io_failed)?;
    let lock = files::lock(folder)?;
    let bounds = Bounds {
        refuse_below: options.refuse_below,
        resume_above: options.resume_above,
        ballast: options.ballast,
    };
    let mut space = Space::new(folder, bounds);
    space.make_room()?;
    let db = open_engine(&engine_config(folder, options))?;
    let records = Records::new(sled::Tree::clone(&db), options.keyring.clone());
    let shared = Arc::new(Shared {
        db,
        records,
        gate: RwLock::new(()),
        moments: Moments::default(),
        folder: folder.to_owned(),
        beside: options.beside.clone(),
        _lock: lock,
    });
    if shared.blobs()? > 0 {
        return Err(StoreError::Damaged("the engine keeps pages in files that are not durable".to_owned()));
    }
    let engine = engine_folder(folder);
    let file = File::options().read(true).write(true).open(engine.join("db")).map_err(io_failed)?;
    let watermark = Watermark::open(folder)?;
    let found = verify::state(&shared.db, watermark.read()?)?;
    let mut durable = Durable::new(file, watermark);
    #[cfg(test)]
    durable.skip(options.skip);
    // Before anything is read that may be sealed.
    shared.records.keys_to_list()?;
    let meta = match found {
        None => None,
        Some((schema, meta)) => {
            let whole = shared.db.size_on_disk().map_err(failed)? <= options.verify_up_to;
            verify::records(&shared.db, &meta, whole)?;
            let is_old = schema < layout::SCHEMA;
            Some(if is_old { migrate::migrate(&shared, schema, meta, &mut durable)? } else { meta })
        }
    };
    space.load_ballast()?;
    let mut writer = Writer::new(Arc::clone(&shared), durable, space, meta.unwrap_or_else(Meta::new));
    if meta.is_none() {
        writer.found()?;
    }
    writer.list_key()?;
    // The first open may have been cut off just before this.
    files::sync_folder(&engine)?;
    files::sync_folder(folder)?;
    files::sync_folder(snapshot::parent(folder))?;
    Ok((shared, writer))
}

fn engine_config(folder: &Path, options: &Options) -> sled::Config {
    sled::Config::new()
        .path(engine_folder(folder))
        .segment_size(2 << 20)
        .cache_capacity(options.cache)
        .flush_every_ms(Some(500))
}

/// Opens sled. Its own lock can outlive a store that this process has just closed by a moment, for as long as a task of
/// its pool holds the file; our lock is held by now, so nobody else can be the reason and waiting is safe.
fn open_engine(config: &sled::Config) -> Result<Db> {
    let mut waits = LOCK_WAITS;
    loop {
        match config.open() {
            Err(sled::Error::Io(error)) if waits > 0 && error.to_string().starts_with(LOCK_WORDS) => {
                waits -= 1;
                thread::park_timeout(LOCK_WAIT);
            }
            opened => return opened.map_err(failed),
        }
    }
}

/// How sled begins to say that it could not take its lock; it has no kind of error for that.
const LOCK_WORDS: &str = "could not acquire lock";
const LOCK_WAIT: Duration = Duration::from_millis(20);
const LOCK_WAITS: u32 = 250;

fn engine_folder(folder: &Path) -> PathBuf {
    folder.join("sled")
}

fn failed(error: sled::Error) -> StoreError {
    match error {
        sled::Error::Io(error) => io_failed(error),
        sled::Error::Corruption { .. }
        | sled::Error::CollectionNotFound(_)
        | sled::Error::Unsupported(_)
        | sled::Error::ReportableBug(_) => StoreError::Damaged(error.to_string()),
    }
}

fn io_failed(error: io::Error) -> StoreError {
    StoreError::Io(error.to_string())
}
