//! Store maintenance: scheduled snapshots while the store is served, and the offline commands.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parallax_certs::files;
use parallax_core::time::{SECOND, Timestamp};
use parallax_runtime::clock::Clock;
use parallax_store::snapshots::{SnapshotFolder, SnapshotRetention, SnapshotSearch, format_time};
use parallax_store::{CompactionResult, RestoreResult, Store, StoreCounts, StoreError, VerifiedSnapshot, disk};

use super::options::{KeyNeed, ReadableKeys, store_options};
use super::recovery_hint::RecoveryHint;
use super::{AppError, STORE};
use crate::config::CoordinatorConfig;

/// Interval at which the task checks whether a snapshot is due, inspects the store, and retries failed writes.
const INTERVAL: Duration = Duration::from_secs(60);
/// Bytes that must stay free after a snapshot: a snapshot must never be what stops writes.
const MIN_FREE: u64 = 256 << 20;

/// The snapshot to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotSource {
    /// The newest usable snapshot.
    Newest,
    /// This file.
    File(PathBuf),
}

/// A verified snapshot or backup file.
#[derive(Debug)]
pub struct FileVerification {
    /// The result.
    pub verified: VerifiedSnapshot,
    /// Problems that limit the verification, for the operator.
    pub warnings: Vec<String>,
}

/// A snapshot restored in place of the store.
#[derive(Debug)]
pub struct SnapshotRestoration {
    /// File of the snapshot.
    pub file: PathBuf,
    /// The result.
    pub result: RestoreResult,
    /// Snapshots that were skipped and records that can't be decoded, for the operator.
    pub warnings: Vec<String>,
}

/// Takes due snapshots, inspects the store, and retries writes while they fail.
pub(super) async fn run(store: Store, config: CoordinatorConfig, clock: Clock) {
    let every = i64::try_from(config.store.snapshot_seconds).unwrap_or(i64::MAX).saturating_mul(SECOND);
    let retention = SnapshotRetention { newest: config.store.snapshots_hourly, days: config.store.snapshots_daily };
    let folder = SnapshotFolder::of(&config.data.join(STORE));
    let check_interval = INTERVAL.min(Duration::from_secs(config.store.snapshot_seconds));
    let mut last_attempt: Option<Timestamp> = None;
    loop {
        let now = clock.now();
        let due = if let Some(last_attempt) = last_attempt.filter(|last_attempt| *last_attempt <= now) {
            last_attempt + every
        } else {
            newest_snapshot(&store, &folder).await.filter(|at| *at <= now).map_or(now, |at| at + every)
        };
        if due <= now {
            last_attempt = Some(now);
            take_snapshot(&store, &folder, now, retention).await;
        }
        check_blobs(&store).await;
        store.retry_write().await;
        tokio::time::sleep(check_interval).await;
    }
}

async fn newest_snapshot(store: &Store, folder: &SnapshotFolder) -> Option<Timestamp> {
    let folder = folder.clone();
    let snapshots = store.read(move |_| folder.list()).await;
    match snapshots {
        Ok(all) => all.last().map(|snapshot| snapshot.at),
        Err(error) => {
            tracing::error!(%error, "snapshots can't be listed");
            None
        }
    }
}

async fn take_snapshot(store: &Store, folder: &SnapshotFolder, now: Timestamp, retention: SnapshotRetention) {
    let folder = folder.clone();
    let result = store.read(move |read| {
        let size = read.size()?;
        if size.free < size.bytes.saturating_add(MIN_FREE) {
            return Err(StoreError::Full);
        }
        folder.take(read, now, retention)
    });
    match result.await {
        Ok((snapshot, exported)) => {
            let (file, records) = (snapshot.path.display().to_string(), exported.counts.records);
            tracing::info!(file, bytes = exported.bytes, records, "snapshot taken and verified");
        }
        Err(StoreError::Full) => tracing::warn!("no snapshot taken: too little free disk space"),
        Err(error) => tracing::error!(%error, "snapshot failed"),
    }
}

async fn check_blobs(store: &Store) {
    match store.read(|read| read.size()).await {
        Ok(size) if size.oversized_pages > 0 => tracing::error!(
            files = size.oversized_pages,
            "store pages in separate files would be lost on a power failure; run `parallax backup` now and report this"
        ),
        Ok(_) => {}
        Err(error) => tracing::error!(%error, "the store's size can't be read"),
    }
}

/// Streams a backup to `sink` while no coordinator runs, and returns the sink.
///
/// # Errors
/// Fails if the store can't be opened or the sink can't be written.
pub async fn backup<W: Write + Send + 'static>(config: &CoordinatorConfig, mut sink: W) -> Result<W, AppError> {
    let options = store_options(config, KeyNeed::Read)?;
    run_with_hint(config, move |store| {
        let (read, _write) = disk::open(store, options)?;
        read.stream(&mut sink)?;
        Ok(sink)
    })
    .await
}

/// Verifies the whole store while no coordinator runs.
///
/// # Errors
/// [`AppError::NeedsRecovery`] with the problem found and the command that helps.
pub async fn verify(config: &CoordinatorConfig) -> Result<StoreCounts, AppError> {
    let options = disk::DiskOptions { verify_up_to: 0, ..store_options(config, KeyNeed::Read)? };
    run_with_hint(config, move |store| {
        let (read, _write) = disk::open(store, options)?;
        Ok(read.verify()?)
    })
    .await
}

/// Verifies a snapshot or backup file, and counts its records that can't be decoded. Sealed records are decoded if the
/// keys can be read.
///
/// # Errors
/// Fails if the file can't be read or is damaged.
pub async fn verify_file(config: &CoordinatorConfig, file: PathBuf) -> Result<FileVerification, AppError> {
    let ReadableKeys { keyring, warning } = ReadableKeys::read(config.secrets_key_file.as_deref());
    run_blocking(config, move |_| {
        let verified = disk::verify_snapshot_records(&file, keyring.as_ref());
        let verified = verified.map_err(|error| file_error(&file, error))?;
        Ok(FileVerification { verified, warnings: warning.into_iter().collect() })
    })
    .await
}

/// Reads a backup that was just written and verifies its checksums. Whether its records decode is a question to the
/// store, and no reason to have no backup.
///
/// # Errors
/// Fails if the file can't be read or is damaged.
pub async fn read_back(config: &CoordinatorConfig, file: PathBuf) -> Result<StoreCounts, AppError> {
    run_blocking(config, move |_| disk::verify_snapshot(&file).map_err(|error| file_error(&file, error))).await
}

/// Restores a snapshot in place of the store.
///
/// # Errors
/// Fails if a coordinator runs or no snapshot is intact; nothing is changed then.
pub async fn restore(
    config: &CoordinatorConfig,
    source: SnapshotSource,
    now: Timestamp,
) -> Result<SnapshotRestoration, AppError> {
    // Restoring copies records as they are; only the next start needs the keys.
    let options = store_options(config, KeyNeed::NotNeeded)?;
    let key_file = config.secrets_key_file.clone();
    run_blocking(config, move |store| {
        let data = store.parent().unwrap_or(store);
        files::ensure_private_folder(data).map_err(|error| AppError::Data(error.to_string()))?;
        let mut warnings = Vec::new();
        let file = match source {
            SnapshotSource::File(file) => file,
            SnapshotSource::Newest => newest_usable(store, key_file.as_deref(), &mut warnings)?,
        };
        let aside = format!("before-{}", format_time(now));
        let result = disk::restore(store, &file, &aside, &options).map_err(|error| file_error(&file, error))?;
        Ok(SnapshotRestoration { file, result, warnings })
    })
    .await
}

/// Rewrites the store to reclaim space, and reseals customers' secrets with the newest key if there is one.
///
/// # Errors
/// Fails if a coordinator runs or the store can't be opened; the store is unchanged then.
pub async fn compact(config: &CoordinatorConfig) -> Result<CompactionResult, AppError> {
    let options = store_options(config, KeyNeed::Read)?;
    run_with_hint(config, move |store| Ok(disk::compact(store, &options)?)).await
}

/// Returns the newest usable snapshot's file; adds what the operator should know of the choice to `warnings`.
fn newest_usable(store: &Path, key_file: Option<&Path>, warnings: &mut Vec<String>) -> Result<PathBuf, AppError> {
    let ReadableKeys { keyring, warning } = ReadableKeys::read(key_file);
    warnings.extend(warning);
    let folder = SnapshotFolder::of(store);
    let SnapshotSearch { found: newest, skipped } = folder.newest_usable(keyring.as_ref())?;
    let skipped = skipped.iter().map(|(snapshot, reason)| format!("skipped {}: {reason}", snapshot.path.display()));
    let Some((snapshot, verified)) = newest else {
        let mut problem = format!("no usable snapshot in {}", folder.path().display());
        skipped.for_each(|skipped| problem.push_str(&format!("\n{skipped}")));
        return Err(AppError::Data(problem));
    };
    warnings.extend(skipped);
    if let Some(records) = verified.undecodable {
        warnings.push(format!("no snapshot can be read completely; {} has {records}", snapshot.path.display()));
    }
    Ok(snapshot.path)
}

/// Reports damage as the file's, not the store's.
fn file_error(file: &Path, error: StoreError) -> AppError {
    match error {
        StoreError::Damaged(how) => AppError::Data(format!("{} is not a usable snapshot: {how}", file.display())),
        other => other.into(),
    }
}

/// Runs `work` on the store's folder off the async runtime; adds the remedy to an error about damage.
async fn run_with_hint<T, F>(config: &CoordinatorConfig, work: F) -> Result<T, AppError>
where
    T: Send + 'static,
    F: FnOnce(&Path) -> Result<T, AppError> + Send + 'static,
{
    let hint = RecoveryHint::of(config);
    run_blocking(config, move |store| work(store).map_err(|error| hint.add(error))).await
}

async fn run_blocking<T, F>(config: &CoordinatorConfig, work: F) -> Result<T, AppError>
where
    T: Send + 'static,
    F: FnOnce(&Path) -> Result<T, AppError> + Send + 'static,
{
    let store = config.data.join(STORE);
    let result = tokio::task::spawn_blocking(move || work(&store)).await;
    result.map_err(|error| StoreError::Io(error.to_string()))?
}
