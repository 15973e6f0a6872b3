//! Care of the store: snapshots by the hour while it is served, and the commands for when it is not.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parallax_certs::files;
use parallax_core::time::{SECOND, Timestamp};

use super::options::{Keys, store_options};
use super::{AppError, STORE, rescue};
use crate::clock::Clock;
use crate::config::Config;
use crate::storage::shelf::{Keep, Shelf, stamp};
use crate::storage::{Compacted, Restored, Store, StoreError, Whole, disk};

/// Pause between two looks at whether a snapshot is due, at how the store stands, and at whether a
/// fault of writes is over.
const LOOK: Duration = Duration::from_secs(60);
/// Bytes that must be left beside a snapshot: taking one must never be what stops the writes.
const MUST_REMAIN: u64 = 256 << 20;

/// Which snapshot is put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The newest of the shelf that reads back whole.
    Newest,
    /// This file.
    File(PathBuf),
}

/// Takes a snapshot whenever one is due, watches how the store stands, and tries to write while writes fail.
pub(super) async fn keep(store: Store, config: Config, clock: Clock) {
    let every = i64::try_from(config.store.snapshot_seconds).unwrap_or(i64::MAX).saturating_mul(SECOND);
    let keep = Keep { newest: config.store.snapshots_hourly, days: config.store.snapshots_daily };
    let shelf = Shelf::of(&config.data.join(STORE));
    let look = LOOK.min(Duration::from_secs(config.store.snapshot_seconds));
    let mut tried: Option<Timestamp> = None;
    loop {
        let now = clock.now();
        let due = if let Some(tried) = tried.filter(|tried| *tried <= now) {
            tried + every
        } else {
            newest(&store, &shelf).await.filter(|at| *at <= now).map_or(now, |at| at + every)
        };
        if due <= now {
            tried = Some(now);
            take(&store, &shelf, now, keep).await;
        }
        watch(&store).await;
        store.retry_write().await;
        tokio::time::sleep(look).await;
    }
}

async fn newest(store: &Store, shelf: &Shelf) -> Option<Timestamp> {
    let shelf = shelf.clone();
    let listed = store.read(move |_| shelf.list()).await;
    match listed {
        Ok(all) => all.last().map(|snapshot| snapshot.at),
        Err(error) => {
            tracing::error!(%error, "the snapshots can't be looked at");
            None
        }
    }
}

async fn take(store: &Store, shelf: &Shelf, now: Timestamp, keep: Keep) {
    let shelf = shelf.clone();
    let taken = store.read(move |read| {
        let stands = read.footprint()?;
        if stands.free < stands.bytes.saturating_add(MUST_REMAIN) {
            return Err(StoreError::Full);
        }
        shelf.take(read, now, keep)
    });
    match taken.await {
        Ok((snapshot, exported)) => {
            let (file, records) = (snapshot.path.display().to_string(), exported.whole.records);
            tracing::info!(file, bytes = exported.bytes, records, "a snapshot was taken and read back");
        }
        Err(StoreError::Full) => tracing::warn!("no snapshot: the disk has too little space for one"),
        Err(error) => tracing::error!(%error, "no snapshot could be taken"),
    }
}

async fn watch(store: &Store) {
    match store.read(|read| read.footprint()).await {
        Ok(stands) if stands.blobs > 0 => tracing::error!(
            files = stands.blobs,
            "the engine keeps pages in files that a power cut would lose; `parallax backup` now, and report this"
        ),
        Ok(_) => {}
        Err(error) => tracing::error!(%error, "it can't be told how the store stands"),
    }
}

/// Streams a backup to `sink` while no coordinator runs, and returns it.
///
/// # Errors
/// Where the store can't be opened, or the sink takes no more.
pub async fn backup<W: Write + Send + 'static>(config: &Config, mut sink: W) -> Result<W, AppError> {
    let options = store_options(config, Keys::Read)?;
    blocking(config, move |store| {
        let (read, _write) = disk::open(store, options)?;
        read.stream(&mut sink)?;
        Ok(sink)
    })
    .await
}

/// Reads the whole store and proves it, while no coordinator runs.
///
/// # Errors
/// [`AppError::Rescue`] with what was found and the command that helps.
pub async fn verify(config: &Config) -> Result<Whole, AppError> {
    let options = disk::Options { verify_up_to: 0, ..store_options(config, Keys::Read)? };
    blocking(config, move |store| {
        let (read, _write) = disk::open(store, options)?;
        Ok(read.verify()?)
    })
    .await
}

/// Reads a snapshot or backup whole and proves it.
///
/// # Errors
/// Where it can't be read, or is not whole.
pub async fn verify_file(config: &Config, file: PathBuf) -> Result<Whole, AppError> {
    plain(config, move |_| disk::check(&file).map_err(|error| of_file(&file, error))).await
}

/// Puts a snapshot in the store's place; gives its file too.
///
/// # Errors
/// Where a coordinator runs, or no snapshot is good: nothing is touched then.
pub async fn restore(
    config: &Config,
    source: Source,
    now: Timestamp,
) -> Result<(PathBuf, Restored), AppError> {
    // A snapshot is put back as it is; the next start needs the keys.
    let options = store_options(config, Keys::NotNeeded)?;
    plain(config, move |store| {
        let data = store.parent().unwrap_or(store);
        files::private_folder(data).map_err(|error| AppError::Data(error.to_string()))?;
        let file = match source {
            Source::File(file) => file,
            Source::Newest => {
                let shelf = Shelf::of(store);
                let bad = |snapshot: &crate::storage::shelf::Snapshot, error: StoreError| {
                    tracing::warn!(file = %snapshot.path.display(), %error, "a snapshot is of no use");
                };
                let (newest, _) = shelf.newest_good(bad)?.ok_or_else(|| {
                    AppError::Data(format!("no good snapshot is in {}", shelf.folder().display()))
                })?;
                newest.path
            }
        };
        let aside = format!("before-{}", stamp(now));
        let restored =
            disk::restore(store, &file, &aside, &options).map_err(|error| of_file(&file, error))?;
        Ok((file, restored))
    })
    .await
}

/// Rewrites the store, which gives space back, and seals customers' secrets with the newest key where there is one.
///
/// # Errors
/// Where a coordinator runs, or the store can't be opened: it is then as it was.
pub async fn compact(config: &Config) -> Result<Compacted, AppError> {
    let options = store_options(config, Keys::Read)?;
    blocking(config, move |store| Ok(disk::compact(store, &options)?)).await
}

/// Damage of a snapshot is not the store's.
fn of_file(file: &Path, error: StoreError) -> AppError {
    match error {
        StoreError::Damaged(how) => AppError::Data(format!("{} is no good snapshot: {how}", file.display())),
        other => other.into(),
    }
}

/// Works on the store's folder off the runtime; damage is told with what helps.
async fn blocking<T, F>(config: &Config, work: F) -> Result<T, AppError>
where
    T: Send + 'static,
    F: FnOnce(&Path) -> Result<T, AppError> + Send + 'static,
{
    let data = config.data.clone();
    plain(config, move |store| work(store).map_err(|error| rescue::explain(&data, error))).await
}

async fn plain<T, F>(config: &Config, work: F) -> Result<T, AppError>
where
    T: Send + 'static,
    F: FnOnce(&Path) -> Result<T, AppError> + Send + 'static,
{
    let store = config.data.join(STORE);
    let done = tokio::task::spawn_blocking(move || work(&store)).await;
    done.map_err(|error| StoreError::Io(error.to_string()))?
}
