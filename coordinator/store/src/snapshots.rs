//! The snapshots folder next to the store: file names, the newest usable snapshot, and retention. The format of a
//! snapshot is in `disk/snapshot.rs`; the program takes one each hour (`app/store_maintenance.rs`).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parallax_certs::sealing::Keyring;
use parallax_core::time::{DAY, Timestamp};

use super::{Result, StoreError, StoreRead, VerifiedSnapshot, WrittenSnapshot, disk};

/// Suffix of a snapshot's name.
const SUFFIX: &str = ".snapshot";
/// Suffix of an unfinished snapshot's name.
const UNFINISHED: &str = ".snapshot.part";
/// Start of the name: the time in UTC.
const TIME_FORMAT: &str = "%Y%m%dT%H%M%SZ";

/// Retention of snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRetention {
    /// Number of the newest snapshots to keep.
    pub newest: usize,
    /// Number of days of which the last snapshot is kept.
    pub days: usize,
}

/// The snapshots of a store.
#[derive(Debug, Clone)]
pub struct SnapshotFolder(PathBuf);

/// A snapshot file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotFile {
    /// Time of the snapshot, to the second.
    pub at: Timestamp,
    /// Its file.
    pub path: PathBuf,
}

/// The newest usable snapshot, and the newer ones that were skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSearch {
    /// The snapshot; `None` if there is no intact one. If records in it can't be decoded, that is so in all.
    pub found: Option<(SnapshotFile, VerifiedSnapshot)>,
    /// Newer ones, newest first; all if none was found. Each with the reason why it was skipped.
    pub skipped: Vec<(SnapshotFile, String)>,
}

impl SnapshotFolder {
    /// Returns the snapshots of the store in that folder.
    pub fn of(store: &Path) -> Self {
        Self(disk::snapshots_folder(store))
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns every snapshot by its time, oldest first. Files with other names are ignored.
    ///
    /// # Errors
    /// If the folder can't be read; a missing folder is empty.
    pub fn list(&self) -> Result<Vec<SnapshotFile>> {
        let mut snapshots = Vec::new();
        for name in self.names()? {
            if let Some(at) = name.strip_suffix(SUFFIX).and_then(parse_time) {
                snapshots.push(SnapshotFile { at, path: self.0.join(name) });
            }
        }
        snapshots.sort();
        Ok(snapshots)
    }

    /// Returns the newest intact snapshot whose records all decode. If there is none, returns the newest intact one: it
    /// restores all but the records that can't be decoded. Sealed records are decoded with the keys of `keyring`.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub fn newest_usable(&self, keyring: Option<&Keyring>) -> Result<SnapshotSearch> {
        let mut skipped = Vec::new();
        let mut intact = None;
        for snapshot in self.list()?.into_iter().rev() {
            let reason = match disk::verify_snapshot_records(&snapshot.path, keyring) {
                Ok(verified) => {
                    let Some(reason) = verified.undecodable.as_ref().map(ToString::to_string) else {
                        return Ok(SnapshotSearch { found: Some((snapshot, verified)), skipped });
                    };
                    intact.get_or_insert((snapshot.clone(), verified, skipped.len()));
                    reason
                }
                Err(error) => error.to_string(),
            };
            skipped.push((snapshot, reason));
        }
        let found = intact.map(|(snapshot, verified, newer)| {
            skipped.truncate(newer);
            (snapshot, verified)
        });
        Ok(SnapshotSearch { found, skipped })
    }

    /// Takes a snapshot, then deletes those that retention no longer keeps. Blocking.
    ///
    /// # Errors
    /// If it can't be written or verified; nothing is deleted then.
    pub fn take(
        &self,
        read: &dyn StoreRead,
        now: Timestamp,
        retention: SnapshotRetention,
    ) -> Result<(SnapshotFile, WrittenSnapshot)> {
        fs::create_dir_all(&self.0).map_err(io_error)?;
        for name in self.names()?.iter().filter(|name| name.ends_with(UNFINISHED)) {
            fs::remove_file(self.0.join(name)).map_err(io_error)?;
        }
        let path = self.0.join(format!("{}{SUFFIX}", format_time(now)));
        let exported = read.export(&path)?;
        let snapshots = self.list()?;
        let times: Vec<Timestamp> = snapshots.iter().map(|snapshot| snapshot.at).collect();
        for snapshot in expired(&times, retention).into_iter().filter_map(|index| snapshots.get(index)) {
            fs::remove_file(&snapshot.path).map_err(io_error)?;
        }
        Ok((SnapshotFile { at: now, path }, exported))
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::Io(format!("{}: {error}", self.0.display()))),
        };
        entries.map(|entry| Ok(entry.map_err(io_error)?.file_name().to_string_lossy().into_owned())).collect()
    }
}

/// Formats a time for file names: `20261128T001024Z`.
pub fn format_time(at: Timestamp) -> String {
    at.to_utc().map_or_else(|| at.as_millis().to_string(), |at| at.format(TIME_FORMAT).to_string())
}

fn parse_time(name: &str) -> Option<Timestamp> {
    let at = chrono::NaiveDateTime::parse_from_str(name, TIME_FORMAT).ok()?;
    Some(Timestamp::from_millis(at.and_utc().timestamp_millis()))
}

/// Returns the indexes of the snapshots to delete; `times` is oldest first.
fn expired(times: &[Timestamp], retention: SnapshotRetention) -> Vec<usize> {
    let mut days = BTreeSet::new();
    let mut dropped = Vec::new();
    for (age, (index, time)) in times.iter().enumerate().rev().enumerate() {
        // The newest of its day, while days are left.
        let is_last_of_day = days.len() < retention.days && days.insert(time.as_millis().div_euclid(DAY));
        if age >= retention.newest.max(1) && !is_last_of_day {
            dropped.push(index);
        }
    }
    dropped
}

fn io_error(error: io::Error) -> StoreError {
    StoreError::Io(error.to_string())
}

#[cfg(test)]
mod tests {
    use parallax_core::time::HOUR;

    use super::*;

    #[test]
    fn the_newest_and_the_last_of_each_day_are_kept() {
        let retention = SnapshotRetention { newest: 24, days: 7 };
        let mut times: Vec<Timestamp> = Vec::new();
        for hour in 0..24 * 30 {
            times.push(Timestamp::from_millis(hour * HOUR));
            for index in expired(&times, retention).into_iter().rev() {
                times.remove(index);
            }
        }
        let hours: Vec<i64> = times.iter().map(|at| at.as_millis() / HOUR).collect();
        let last = 24 * 30 - 1;
        let daily = (1..7).rev().map(|day| last - 24 * day);
        assert_eq!(hours, daily.chain(last - 23..=last).collect::<Vec<_>>());
    }

    #[test]
    fn the_newest_snapshot_is_always_kept() {
        let times = [1, 2].map(Timestamp::from_millis);
        assert_eq!(expired(&times, SnapshotRetention { newest: 0, days: 0 }), [0]);
    }

    #[test]
    fn a_file_name_contains_its_time() {
        let at = Timestamp::parse_iso("2026-11-28T00:10:24Z").unwrap();
        assert_eq!(format_time(at), "20261128T001024Z");
        assert_eq!(parse_time("20261128T001024Z"), Some(at));
        assert_eq!(parse_time("before-schema-2"), None);
    }
}
