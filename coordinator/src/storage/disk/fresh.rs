//! A fresh store in the place of another: filled beside it, proved, and swapped in at once.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sled::Db;

use super::files::{self, Watermark};
use super::layout;
use super::record;
use super::sealing::KEYS_KEY;
use super::snapshot::{self, parent};
use super::tally::Tally;
use super::{Options, Shared, engine_config, engine_folder, failed, io_failed, moment, open_engine};
use crate::storage::{Compacted, Restored, Result, Whole};

/// Bytes that are handed to the engine at once.
const BATCH: usize = 1 << 20;
/// Ends the name of a store that is on its way to another name.
const BETWEEN: &str = "between";

/// Puts a snapshot in the place of the store in `folder`, which is kept under a name that begins with `aside`. Files that
/// lay beside the store are put back where none is there now.
pub(super) fn restore(folder: &Path, file: &Path, aside: &str, options: &Options) -> Result<Restored> {
    recover(folder)?;
    fs::create_dir_all(folder).map_err(io_failed)?;
    let _lock = files::lock(folder)?;
    let (aside, whole) = prepare(folder, file, aside, options)?;
    let is_empty = !engine_folder(folder).exists();
    swap(folder, &aside)?;
    files::sync_folder(parent(folder))?;
    if is_empty {
        // The store is in its place; an empty folder that stays beside it is no fault.
        let _ = fs::remove_dir_all(&aside);
        return Ok(Restored { whole, aside: None });
    }
    Ok(Restored { whole, aside: Some(aside) })
}

/// Does all of a restore that can fail, but the exchange: makes the fresh store under the name that the old one gets by
/// the exchange, and puts missing files back. A kill before the exchange leaves the old store as it was, and one after it
/// leaves nothing to do; no later restore or compaction removes what has that name.
pub(super) fn prepare(
    folder: &Path,
    file: &Path,
    aside: &str,
    options: &Options,
) -> Result<(PathBuf, Whole)> {
    // Proved before anything is touched.
    let (head, _, _) = snapshot::prove(file)?;
    let mut reset = BTreeMap::new();
    for name in &options.reset {
        let key = layout::cursor(name);
        let zero = record::encode(&key, &0_u64, None)?.head;
        reset.insert(key, zero);
    }
    let mut fresh = Fresh::make(folder, options)?;
    snapshot::read(file, |key, value| fresh.put(key, reset.get(key).map_or(value, Vec::as_slice)))?;
    let (fresh, whole) = fresh.finish()?;
    // Before the exchange: with the store, but without its authority, the coordinator would make another one.
    for (name, bytes) in head.beside.iter().filter(|(name, _)| options.beside.contains(name)) {
        put_back(&folder.with_file_name(name), bytes)?;
    }
    let aside = unused(folder, aside);
    fs::rename(&fresh, &aside).map_err(io_failed)?;
    files::sync_folder(parent(folder))?;
    Ok((aside, whole))
}

/// A name beside the store that nothing has: two restores may fall into one second.
fn unused(folder: &Path, aside: &str) -> PathBuf {
    let first = std::iter::once(aside.to_owned());
    let names = first.chain((2_u64..).map(|number| format!("{aside}-{number}")));
    let mut paths = names.map(|name| folder.with_added_extension(name));
    paths.find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_else(|| folder.to_owned())
}

/// Brings back a store that a kill left between two names, where the file system can't exchange two folders in one step.
/// Its lock went with it: a process that still has it is exchanging them now.
pub(super) fn recover(folder: &Path) -> Result<()> {
    let between = folder.with_added_extension(BETWEEN);
    if fs::symlink_metadata(&between).is_err() {
        return Ok(());
    }
    files::own(&between)?;
    let _lock = files::lock(&between)?;
    // With a store in its place, it is the old one, which is kept.
    let to = if folder.exists() { unused(folder, "before-kill") } else { folder.to_owned() };
    fs::rename(&between, &to).map_err(io_failed)
}

/// Puts a fresh copy of an open store in its place: the engine never gives space back by itself. Where there is a key
/// for secrets, all that hold some are sealed with the newest.
pub(super) fn compact(shared: &Shared, options: &Options) -> Result<Compacted> {
    let before = shared.db.size_on_disk().map_err(failed)?;
    let mut fresh = Fresh::make(&shared.folder, options)?;
    moment::walk(shared, |key, value| {
        let kept = shared.records.reseal(key, value)?;
        kept.iter().try_for_each(|(key, value)| fresh.put(key, value))
    })?;
    if let Some(newest) = shared.records.newest_key()? {
        fresh.put(KEYS_KEY, &newest)?;
    }
    let (fresh, whole) = fresh.finish()?;
    let after = fs::metadata(engine_folder(&fresh).join("db")).map_err(io_failed)?.len();
    swap(&shared.folder, &fresh)?;
    fs::remove_dir_all(&fresh).map_err(io_failed)?;
    files::sync_folder(parent(&shared.folder))?;
    Ok(Compacted { before, after, whole })
}

/// A store that is being filled.
struct Fresh {
    folder: PathBuf,
    db: Db,
    batch: sled::Batch,
    bytes: usize,
    tally: Tally,
}

impl Fresh {
    /// Beside the store in `folder`, whose lock the caller holds; what a killed one left is removed.
    fn make(folder: &Path, options: &Options) -> Result<Self> {
        let folder = folder.with_added_extension("new");
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_failed(error)),
            Ok(()) | Err(_) => {}
        }
        fs::create_dir(&folder).map_err(io_failed)?;
        let db = open_engine(&engine_config(&folder, options))?;
        Ok(Self { folder, db, batch: sled::Batch::default(), bytes: 0, tally: Tally::default() })
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
        self.db.apply_batch(std::mem::take(&mut self.batch)).map_err(failed)
    }

    /// Makes it durable, and proves that it is whole.
    fn finish(mut self) -> Result<(PathBuf, Whole)> {
        self.write()?;
        let (meta, whole) = self.tally.finish()?;
        self.db.flush().map_err(failed)?;
        let engine = engine_folder(&self.folder);
        let file = File::options().read(true).write(true).open(engine.join("db")).map_err(io_failed)?;
        file.sync_all().map_err(io_failed)?;
        Watermark::open(&self.folder)?.write(meta.group, meta.chain)?;
        drop(self.db);
        files::sync_folder(&engine)?;
        files::sync_folder(&self.folder)?;
        Ok((self.folder, whole))
    }
}

/// Two folders take each other's names, in one step where the file system can.
fn swap(one: &Path, other: &Path) -> Result<()> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            let between = one.with_added_extension(BETWEEN);
            fs::rename(one, &between)
                .and_then(|()| fs::rename(other, one))
                .and_then(|()| fs::rename(&between, other))
                .map_err(io_failed)
        }
        Err(error) => Err(io_failed(error.into())),
    }
}

/// Writes a secret file where none is.
fn put_back(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt;
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => file.write_all(bytes).and_then(|()| file.sync_all()).map_err(io_failed),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io_failed(error)),
    }
}
