//! Files next to the engine's: the lock, the watermark, and the ballast that lets the store open on a full disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::io_error;
use crate::{Result, StoreError};

/// Time to wait for the lock: a process that ends releases it shortly afterwards, and a child process that is just
/// being started holds copies of this one's files until it executes.
const LOCK_WAIT: Duration = Duration::from_millis(500);
const LOCK_PERIOD: Duration = Duration::from_millis(10);

/// Locks the store for this process until the returned file is dropped.
pub(super) fn lock(folder: &Path) -> Result<File> {
    let file = open(&folder.join("LOCK"))?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_WAIT => thread::park_timeout(LOCK_PERIOD),
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked),
            Err(TryLockError::Error(error)) => return Err(io_error(error)),
        }
    }
}

/// Refuses a store with files that this process may not access, for instance after it ran as another user; the
/// error names their owner.
pub(super) fn check_owner(folder: &Path) -> Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let denied = |path: &Path, error: io::Error| {
            // Inside a folder without access nothing can be examined: the error names the folder then.
            let foreign = |path: &Path| Some((path.to_owned(), std::fs::metadata(path).ok()?.uid()));
            match path.ancestors().filter_map(foreign).find(|(_, owner)| *owner != user) {
                Some((path, owner)) if error.kind() == io::ErrorKind::PermissionDenied => {
                    StoreError::Denied { path, owner, user }
                }
                _ => StoreError::Io(format!("{}: {error}", path.display())),
            }
        };
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|error| denied(&folder, error))?,
        };
        for entry in entries {
            let path = entry.map_err(io_error)?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                OpenOptions::new().read(true).write(true).open(&path).map_err(|error| denied(&path, error))?;
            }
        }
    }
    Ok(())
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io_error)
}

/// Watermark: number and checksum of the last durable group, which the store must have reached.
///
/// Two positions are written alternately, so that a power cut while one is written leaves the other.
#[derive(Debug)]
pub(super) struct Watermark(File);

const MARK_BYTES: usize = 16;
const MARK_COUNT: u64 = 2;
const MARK_SPACING: u64 = 4096;

impl Watermark {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        open(&folder.join("WATERMARK")).map(Self)
    }

    /// Returns the highest valid mark; `None` before the first.
    pub(super) fn read(&self) -> Result<Option<(u64, u32)>> {
        let mut highest = None;
        for index in 0..MARK_COUNT {
            let mut bytes = [0; MARK_BYTES];
            match self.0.read_exact_at(&mut bytes, index * MARK_SPACING) {
                Ok(()) => highest = highest.max(parse(bytes)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Err(error) => return Err(io_error(error)),
            }
        }
        Ok(highest)
    }

    /// Writes a mark and makes it durable.
    pub(super) fn write(&self, group: u64, chain: u32) -> Result<()> {
        let at = (group % MARK_COUNT) * MARK_SPACING;
        self.0.write_all_at(&compose(group, chain), at).and_then(|()| self.0.sync_data()).map_err(io_error)
    }
}

fn compose(group: u64, chain: u32) -> [u8; MARK_BYTES] {
    let mut bytes = [0; MARK_BYTES];
    let (fields, check) = bytes.split_at_mut(12);
    let (number, sum) = fields.split_at_mut(8);
    number.copy_from_slice(&group.to_le_bytes());
    sum.copy_from_slice(&chain.to_le_bytes());
    check.copy_from_slice(&crc32c::crc32c(fields).to_le_bytes());
    bytes
}

fn parse(bytes: [u8; MARK_BYTES]) -> Option<(u64, u32)> {
    let (group, rest) = bytes.split_first_chunk::<8>()?;
    let chain = rest.first_chunk::<4>()?;
    let (group, chain) = (u64::from_le_bytes(*group), u32::from_le_bytes(*chain));
    (group > 0 && compose(group, chain) == bytes).then_some((group, chain))
}

/// Limits of free disk space.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpaceLimits {
    pub(super) refuse_below: u64,
    pub(super) resume_above: u64,
    pub(super) ballast: u64,
}

/// Monitors free disk space, and holds a ballast file that is released when the store must open on a full disk.
#[derive(Debug)]
pub(super) struct DiskSpace {
    folder: PathBuf,
    limits: SpaceLimits,
    is_low: bool,
}

impl DiskSpace {
    pub(super) fn new(folder: &Path, limits: SpaceLimits) -> Self {
        Self { folder: folder.to_owned(), limits, is_low: false }
    }

    /// Releases the ballast before the engine opens if space is short: the engine can't open on a full disk.
    pub(super) fn release_ballast_if_low(&mut self) -> Result<()> {
        if self.check_low()? {
            match std::fs::remove_file(self.ballast()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(error)),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Creates the ballast (again), if there is space for it.
    pub(super) fn restore_ballast(&mut self) -> Result<()> {
        let path = self.ballast();
        let size = std::fs::metadata(&path).map_or(0, |file| file.len());
        if size == self.limits.ballast || self.is_low || free_bytes(&self.folder)? < self.limits.resume_above {
            return Ok(());
        }
        let result = write_zeros(&path, self.limits.ballast);
        if result.is_err() {
            // A partial ballast is useless.
            let _ = std::fs::remove_file(&path);
        }
        result
    }

    /// Returns true if writes must wait for space: from below the lower limit until above the upper one. Logs every
    /// change, and recreates the ballast once there is space.
    pub(super) fn check_low(&mut self) -> Result<bool> {
        let free = free_bytes(&self.folder)?;
        let was_low = self.is_low;
        self.is_low = is_below_limit(self.limits, was_low, free);
        match (was_low, self.is_low) {
            (false, true) => tracing::error!(
                free,
                resume_above = self.limits.resume_above,
                "the disk is nearly full: nothing is written until there is space; reads continue"
            ),
            (true, false) => {
                tracing::info!(free, "the disk has space again: writes continue");
                if let Err(error) = self.restore_ballast() {
                    tracing::warn!(%error, "the ballast could not be recreated");
                }
            }
            (true, true) | (false, false) => {}
        }
        Ok(self.is_low)
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("BALLAST")
    }
}

/// Returns the bytes available to the store.
pub(super) fn free_bytes(folder: &Path) -> Result<u64> {
    disk_bytes(folder).map(|(free, _)| free)
}

/// Returns the bytes available to the store, and those of the whole disk.
pub(super) fn disk_bytes(folder: &Path) -> Result<(u64, u64)> {
    let stat = rustix::fs::statvfs(folder).map_err(|error| io_error(error.into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok((bytes(stat.f_bavail), bytes(stat.f_blocks)))
}

/// Writes zeros: a sparse file would take no space.
fn write_zeros(path: &Path, bytes: u64) -> Result<()> {
    let mut file = open(path)?;
    let zeros = vec![0; 1 << 16];
    let mut remaining = bytes;
    while remaining > 0 {
        let piece = remaining.min(zeros.len() as u64);
        file.write_all(zeros.get(..piece as usize).unwrap_or(&zeros)).map_err(io_error)?;
        remaining -= piece;
    }
    file.sync_all().map_err(io_error)
}

fn is_below_limit(limits: SpaceLimits, is_low: bool, free: u64) -> bool {
    free < if is_low { limits.resume_above } else { limits.refuse_below }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_watermark_falls_back_to_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let mark = Watermark::open(folder.path()).unwrap();
        assert_eq!(mark.read(), Ok(None));
        mark.write(1, 11).unwrap();
        mark.write(2, 22).unwrap();
        mark.write(3, 33).unwrap();
        assert_eq!(mark.read(), Ok(Some((3, 33))));
        mark.0.write_all_at(&[9], MARK_SPACING + 3).unwrap();
        assert_eq!(mark.read(), Ok(Some((2, 22))));
    }

    #[test]
    fn a_second_lock_is_refused_until_the_first_is_released() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        assert_eq!(lock(folder.path()).unwrap_err(), StoreError::Locked);
        drop(first);
        assert!(lock(folder.path()).is_ok());
    }

    #[test]
    fn writes_stop_below_the_lower_limit_until_above_the_upper() {
        let limits = SpaceLimits { refuse_below: 64, resume_above: 128, ballast: 0 };
        let states: Vec<_> = [200, 64, 63, 100, 127, 128, 70]
            .into_iter()
            .scan(false, |is_low, free| {
                *is_low = is_below_limit(limits, *is_low, free);
                Some(*is_low)
            })
            .collect();
        assert_eq!(states, [false, false, true, true, true, false, false]);
    }
}
