//! Rebuilding a store: a new one is filled next to the current one, verified, and swapped in atomically.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sled::Db;

use super::files::{self, Watermark};
use super::integrity::IntegrityCheck;
use super::layout;
use super::record;
use super::sealing::KEYS_KEY;
use super::snapshot::{self, parent};
use super::{
    DiskOptions, SharedStore, engine_config, engine_error, engine_folder, io_error, open_engine, snapshot_reader,
};
use crate::{CompactionResult, RestoreResult, Result, StoreCounts};

/// Bytes per write to the engine.
const BATCH: usize = 1 << 20;
/// Suffix of a store that is being renamed.
const RENAMING_SUFFIX: &str = "between";

/// Restores a snapshot into `folder`. The current store is kept under its name with `suffix` appended. Files next
/// to the store are restored where they are missing.
pub(super) fn restore(folder: &Path, file: &Path, suffix: &str, options: &DiskOptions) -> Result<RestoreResult> {
    recover(folder)?;
    fs::create_dir_all(folder).map_err(io_error)?;
    let _lock = files::lock(folder)?;
    let (replaced_store, counts) = prepare(folder, file, suffix, options)?;
    let is_empty = !engine_folder(folder).exists();
    exchange(folder, &replaced_store)?;
    files::sync_folder(parent(folder))?;
    if is_empty {
        // The store is in place; a leftover empty folder does no harm.
        let _ = fs::remove_dir_all(&replaced_store);
        return Ok(RestoreResult { counts, replaced_store: None });
    }
    Ok(RestoreResult { counts, replaced_store: Some(replaced_store) })
}

/// Does everything of a restore that can fail, except the swap: builds the new store under the name that the old
/// one will have afterwards, and restores missing files. A kill before the swap leaves the old store as it was, and
/// one after it leaves nothing to do. No later restore or compaction deletes the folder with that name.
pub(super) fn prepare(
    folder: &Path,
    file: &Path,
    suffix: &str,
    options: &DiskOptions,
) -> Result<(PathBuf, StoreCounts)> {
    // Verified before anything is touched.
    let (head, _, _) = snapshot::verify(file)?;
    let mut reset = BTreeMap::new();
    for name in &options.reset_cursors {
        let key = layout::cursor(name);
        let zero = record::encode(&key, &0_u64, None)?.head;
        reset.insert(key, zero);
    }
    let mut new_store = NewStore::create(folder, options)?;
    snapshot::read(file, |key, value| new_store.put(key, reset.get(key).map_or(value, Vec::as_slice)))?;
    let (new_store, counts) = new_store.finish()?;
    // Before the swap: a coordinator with the store but without its authority would create another authority.
    for (name, bytes) in head.adjacent_files.iter().filter(|(name, _)| options.adjacent_files.contains(name)) {
        restore_file(&folder.with_file_name(name), bytes)?;
    }
    let replaced_store = unused_path(folder, suffix);
    fs::rename(&new_store, &replaced_store).map_err(io_error)?;
    files::sync_folder(parent(folder))?;
    Ok((replaced_store, counts))
}

/// Returns an unused name next to the store: two restores may fall into one second.
fn unused_path(folder: &Path, suffix: &str) -> PathBuf {
    let first = std::iter::once(suffix.to_owned());
    let names = first.chain((2_u64..).map(|number| format!("{suffix}-{number}")));
    let mut paths = names.map(|name| folder.with_added_extension(name));
    paths.find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_else(|| folder.to_owned())
}

/// Recovers a store that a kill left between two names, on file systems that can't exchange two folders in one
/// step. Its lock moved with it: a process that holds the lock is swapping them right now.
pub(super) fn recover(folder: &Path) -> Result<()> {
    let renaming = folder.with_added_extension(RENAMING_SUFFIX);
    if fs::symlink_metadata(&renaming).is_err() {
        return Ok(());
    }
    files::check_owner(&renaming)?;
    let _lock = files::lock(&renaming)?;
    // If there is a store in place, this is the old one, which is kept.
    let to = if folder.exists() { unused_path(folder, "before-kill") } else { folder.to_owned() };
    fs::rename(&renaming, &to).map_err(io_error)
}

/// Replaces an open store with a compacted copy: the engine never frees space by itself. If there is an encryption
/// key, all records with secrets are sealed with the newest one.
pub(super) fn compact(shared: &SharedStore, options: &DiskOptions) -> Result<CompactionResult> {
    let before = shared.db.size_on_disk().map_err(engine_error)?;
    let mut new_store = NewStore::create(&shared.folder, options)?;
    snapshot_reader::walk(shared, |key, value| {
        let entries = shared.records.reseal(key, value)?;
        entries.iter().try_for_each(|(key, value)| new_store.put(key, value))
    })?;
    if let Some(newest) = shared.records.newest_key()? {
        new_store.put(KEYS_KEY, &newest)?;
    }
    let (new_store, counts) = new_store.finish()?;
    let after = fs::metadata(engine_folder(&new_store).join("db")).map_err(io_error)?.len();
    exchange(&shared.folder, &new_store)?;
    fs::remove_dir_all(&new_store).map_err(io_error)?;
    files::sync_folder(parent(&shared.folder))?;
    Ok(CompactionResult { before, after, counts })
}

/// A new store that is being filled.
struct NewStore {
    folder: PathBuf,
    db: Db,
    batch: sled::Batch,
    bytes: usize,
    tally: IntegrityCheck,
}

impl NewStore {
    /// Creates it next to the store in `folder`, whose lock the caller holds; leftovers of a killed process are
    /// removed.
    fn create(folder: &Path, options: &DiskOptions) -> Result<Self> {
        let folder = folder.with_added_extension("new");
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(error)),
            Ok(()) | Err(_) => {}
        }
        fs::create_dir(&folder).map_err(io_error)?;
        let db = open_engine(&engine_config(&folder, options))?;
        Ok(Self { folder, db, batch: sled::Batch::default(), bytes: 0, tally: IntegrityCheck::default() })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.tally.add(key, value)?;
        self.batch.insert(key, value);
        self.bytes += key.len() + value.len();
        if self.bytes >= BATCH {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.bytes = 0;
        self.db.apply_batch(std::mem::take(&mut self.batch)).map_err(engine_error)
    }

    /// Makes it durable and verifies that it is complete.
    fn finish(mut self) -> Result<(PathBuf, StoreCounts)> {
        self.write()?;
        let (meta, counts) = self.tally.finish()?;
        self.db.flush().map_err(engine_error)?;
        let engine = engine_folder(&self.folder);
        let file = File::options().read(true).write(true).open(engine.join("db")).map_err(io_error)?;
        file.sync_all().map_err(io_error)?;
        Watermark::open(&self.folder)?.write(meta.group, meta.chain)?;
        drop(self.db);
        files::sync_folder(&engine)?;
        files::sync_folder(&self.folder)?;
        Ok((self.folder, counts))
    }
}

/// Exchanges the names of two folders, in one step if the file system can.
fn exchange(one: &Path, other: &Path) -> Result<()> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            let renaming = one.with_added_extension(RENAMING_SUFFIX);
            fs::rename(one, &renaming)
                .and_then(|()| fs::rename(other, one))
                .and_then(|()| fs::rename(&renaming, other))
                .map_err(io_error)
        }
        Err(error) => Err(io_error(error.into())),
    }
}

/// Writes a secret file if it is missing.
fn restore_file(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt;
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => file.write_all(bytes).and_then(|()| file.sync_all()).map_err(io_error),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io_error(error)),
    }
}
