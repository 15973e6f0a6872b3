//! Snapshot file format: a title line, then frames, each with a checksum over everything before it.
//!
//! | frame | content |
//! |---|---|
//! | 0, first | the schema, and the files next to the store, by name |
//! | 1 | keys and values as the engine has them: lengths of both (`u16`, `u32`), key, value |
//! | 2, last | the number of keys |
//!
//! A frame is its length and its checksum (`u32` each, little-endian), its kind in one byte, and its content. The
//! checksum continues that of the frame before, so that a missing, repeated or moved frame is noticed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use parallax_certs::sealing::Keyring;
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use super::integrity::IntegrityCheck;
use super::layout::{PIECES, SCHEMA, TreeKey};
use super::meta::StoreState;
use super::{SharedStore, files, io_error, record_types, snapshot_reader};
use crate::{Result, StoreCounts, StoreError, UndecodableRecords, VerifiedSnapshot, WrittenSnapshot};

const TITLE: &[u8] = b"parallax snapshot 1\n";
const HEAD: u8 = 0;
const ENTRIES: u8 = 1;
const END: u8 = 2;
/// Size from which on a frame of entries ends.
const FRAME: usize = 256 << 10;
/// Longest valid frame: a file with a longer one is damaged.
const MAX_FRAME: usize = 4 << 20;
/// Longest file next to the store that a snapshot includes, in bytes.
const MAX_ADJACENT_FILE: u64 = 64 << 10;

/// Content of the first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotHeader {
    schema: u32,
    /// Files next to the store: name and bytes.
    pub(super) adjacent_files: Vec<(String, Vec<u8>)>,
}

/// Writes the store at one point in time to a file, reads that back, and only then gives it its name. An existing
/// file is replaced only by a repeated migration of the same store.
pub(super) fn export(shared: &SharedStore, schema: u32, to: &Path, replace: bool) -> Result<WrittenSnapshot> {
    if !replace && to.exists() {
        return Err(StoreError::Io(format!("{} already exists", to.display())));
    }
    let part = to.with_added_extension("part");
    let exported = write(shared, schema, &part).and_then(|()| {
        let (_, _, counts) = verify(&part)?;
        let bytes = fs::metadata(&part).map_err(io_error)?.len();
        fs::rename(&part, to).map_err(io_error)?;
        files::sync_folder(parent(to))?;
        Ok(WrittenSnapshot { bytes, counts })
    });
    if exported.is_err() {
        // The rest of it is useless; a failure to remove it is not the error to report.
        let _ = fs::remove_file(&part);
    }
    exported
}

/// Reads and verifies a whole snapshot.
pub(super) fn verify(file: &Path) -> Result<(SnapshotHeader, StoreState, StoreCounts)> {
    let mut check = IntegrityCheck::default();
    let head = read(file, |key, value| check.add(key, value))?;
    let (meta, counts) = check.finish()?;
    Ok((head, meta, counts))
}

/// Reads and verifies a whole snapshot, and counts its records that can't be decoded. Those that are sealed with a key
/// that is not given, and those of an older schema, are verified by checksum only.
pub(super) fn verify_records(file: &Path, keyring: Option<&Keyring>) -> Result<VerifiedSnapshot> {
    let mut check = IntegrityCheck::default();
    let (mut checksum_only, mut undecodable) = (0, None::<UndecodableRecords>);
    let (head, mut input) = open(file)?;
    let pieces_file = input.file.get_ref().try_clone().map_err(io_error)?;
    // Pieces come before their heads: positions and lengths are kept, and the bytes are read again with the head.
    let mut pieces: BTreeMap<TreeKey, (u64, usize)> = BTreeMap::new();
    input.entries(|at, key, value| {
        check.add(key, value)?;
        if head.schema != SCHEMA {
            checksum_only += u64::from(record_types::is_typed(key));
            return Ok(());
        }
        if let Some(record_key) = key.strip_prefix(PIECES) {
            if record_types::is_typed(record_key) {
                pieces.insert(key.to_vec(), (at, value.len()));
            }
            return Ok(());
        }
        let piece = |part: &[u8]| {
            let Some((at, length)) = pieces.remove(part) else { return Ok(None) };
            let mut bytes = vec![0; length];
            pieces_file.read_exact_at(&mut bytes, at).map_err(io_error)?;
            Ok(Some(bytes))
        };
        match record_types::verify(key, value, piece, keyring) {
            Err(StoreError::KeyMissing(_)) => checksum_only += 1,
            // Its checksum matches: the file is intact.
            Err(StoreError::Damaged(problem)) => {
                undecodable.get_or_insert(UndecodableRecords { count: 0, first: problem }).count += 1;
            }
            verified => verified?,
        }
        Ok(())
    })?;
    let (_, counts) = check.finish()?;
    Ok(VerifiedSnapshot { counts, checksum_only, undecodable })
}

/// Reads a snapshot and passes on each key and value. They are verified only once this returns.
pub(super) fn read(file: &Path, mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<SnapshotHeader> {
    let (head, mut input) = open(file)?;
    input.entries(|_, key, value| visit(key, value))?;
    Ok(head)
}

/// Opens a snapshot and reads its first frame.
fn open(file: &Path) -> Result<(SnapshotHeader, Input)> {
    let opened = File::open(file).map_err(|error| StoreError::Io(format!("{}: {error}", file.display())))?;
    let mut input = Input { file: BufReader::with_capacity(FRAME, opened), at: 0, sum: crc32c::crc32c(TITLE) };
    if !input.bytes::<{ TITLE.len() }>().is_ok_and(|title| title == *TITLE) {
        return damaged("the file is not a snapshot, or its beginning is missing");
    }
    let (kind, payload) = input.frame()?;
    let head: SnapshotHeader = match (kind, postcard::from_bytes(&payload)) {
        (HEAD, Ok(head)) => head,
        _ => return damaged("its first frame is invalid"),
    };
    if head.schema > SCHEMA {
        return Err(StoreError::Newer { found: head.schema, known: SCHEMA });
    }
    Ok((head, input))
}

fn write(shared: &SharedStore, schema: u32, part: &Path) -> Result<()> {
    let mut options = OpenOptions::new();
    // It holds secrets: only its owner may read it.
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(part);
    let file = file.map_err(|error| StoreError::Io(format!("{}: {error}", part.display())))?;
    let file = stream(shared, schema, file)?;
    file.sync_all().map_err(io_error)?;
    // Drops it from the page cache, so that reading it back reads the disk. A host that does not support that is
    // fine.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok(())
}

/// Writes the store at one point in time to `sink` and returns it. Only reading it back verifies what was written.
pub(super) fn stream<W: io::Write>(shared: &SharedStore, schema: u32, sink: W) -> Result<W> {
    let mut output = Output { sink: BufWriter::with_capacity(FRAME, sink), sum: crc32c::crc32c(TITLE) };
    output.sink.write_all(TITLE).map_err(io_error)?;
    output.frame(HEAD, &encoded(&SnapshotHeader { schema, adjacent_files: adjacent_files(shared)? })?)?;
    let mut frame = Vec::with_capacity(FRAME * 2);
    let mut count = 0_u64;
    snapshot_reader::walk(shared, |key, value| {
        count += 1;
        let (key_length, value_length) = (u16::try_from(key.len()), u32::try_from(value.len()));
        let (Ok(key_length), Ok(value_length)) = (key_length, value_length) else {
            return Err(StoreError::TooLarge("a record"));
        };
        frame.extend_from_slice(&key_length.to_le_bytes());
        frame.extend_from_slice(&value_length.to_le_bytes());
        frame.extend_from_slice(key);
        frame.extend_from_slice(value);
        if frame.len() >= FRAME {
            output.frame(ENTRIES, &frame)?;
            frame.clear();
        }
        Ok(())
    })?;
    if !frame.is_empty() {
        output.frame(ENTRIES, &frame)?;
    }
    output.frame(END, &encoded(&count)?)?;
    output.sink.into_inner().map_err(|error| io_error(error.into_error()))
}

/// Reads the files next to the store that belong to its snapshots.
fn adjacent_files(shared: &SharedStore) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for name in &shared.adjacent_files {
        let path = shared.folder.with_file_name(name);
        match File::open(&path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(MAX_ADJACENT_FILE + 1).read_to_end(&mut bytes).map_err(io_error)?;
                if bytes.len() as u64 > MAX_ADJACENT_FILE {
                    return Err(StoreError::TooLarge("a file next to the store"));
                }
                files.push((name.clone(), bytes));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error(error)),
        }
    }
    Ok(files)
}

struct Output<W: io::Write> {
    sink: BufWriter<W>,
    sum: u32,
}

impl<W: io::Write> Output<W> {
    fn frame(&mut self, kind: u8, payload: &[u8]) -> Result<()> {
        let length = u32::try_from(payload.len() + 1).map_err(|_| StoreError::TooLarge("a frame"))?;
        self.sum = crc32c::crc32c_append(crc32c::crc32c_append(self.sum, &[kind]), payload);
        let written = self
            .sink
            .write_all(&length.to_le_bytes())
            .and_then(|()| self.sink.write_all(&self.sum.to_le_bytes()))
            .and_then(|()| self.sink.write_all(&[kind]))
            .and_then(|()| self.sink.write_all(payload));
        written.map_err(io_error)
    }
}

struct Input {
    file: BufReader<File>,
    /// Number of bytes read.
    at: u64,
    sum: u32,
}

impl Input {
    /// Reads all entries, up to the end of the file, and passes on each value's position, its key and the value.
    fn entries(&mut self, mut visit: impl FnMut(u64, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut count = 0_u64;
        loop {
            let (kind, payload) = self.frame()?;
            match kind {
                ENTRIES => count += entries(&payload, self.at - payload.len() as u64, &mut visit)?,
                END if postcard::from_bytes(&payload) == Ok(count) => break,
                _ => return damaged("a frame is missing or out of order"),
            }
        }
        match self.file.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => damaged("it has data after its end"),
            Err(error) => Err(io_error(error)),
        }
    }

    /// Reads the next frame's kind and content.
    fn frame(&mut self) -> Result<(u8, Vec<u8>)> {
        let (length, sum) = (u32::from_le_bytes(self.bytes()?), u32::from_le_bytes(self.bytes()?));
        let [kind] = self.bytes()?;
        let length = (length as usize).wrapping_sub(1);
        if length > MAX_FRAME {
            return damaged("a frame is too long");
        }
        let mut payload = vec![0; length];
        self.fill(&mut payload)?;
        self.sum = crc32c::crc32c_append(crc32c::crc32c_append(self.sum, &[kind]), &payload);
        if self.sum == sum { Ok((kind, payload)) } else { damaged("a frame does not match its checksum") }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        self.file.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => StoreError::Damaged("the file is truncated".to_owned()),
            _ => io_error(error),
        })
    }
}

/// Passes on the entries of a frame whose content begins at `start`, and returns their number.
fn entries(mut frame: &[u8], start: u64, visit: &mut impl FnMut(u64, &[u8], &[u8]) -> Result<()>) -> Result<u64> {
    let end = start + frame.len() as u64;
    let mut count = 0;
    while !frame.is_empty() {
        let entry = frame.split_first_chunk::<2>().and_then(|(key_length, rest)| {
            let (value_length, rest) = rest.split_first_chunk::<4>()?;
            let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*key_length)))?;
            let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_length) as usize)?;
            Some((key, value, rest))
        });
        let Some((key, value, rest)) = entry else { return damaged("an entry is truncated") };
        visit(end - (value.len() + rest.len()) as u64, key, value)?;
        frame = rest;
        count += 1;
    }
    Ok(count)
}

fn encoded<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|error| StoreError::Io(error.to_string()))
}

/// Returns the folder of a file.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn damaged<T>(problem: &str) -> Result<T> {
    Err(StoreError::Damaged(problem.to_owned()))
}
