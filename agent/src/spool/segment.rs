//! A segment file of the spool.

use crate::error::AgentError;
use parallax_protocol::id::BootId;
use parallax_protocol::message::ResultGap;
use parallax_protocol::result::CheckResult;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const HEAD: usize = 8;

/// Maximum size of a record body that is read back.
const MAX_BODY: u32 = 1 << 20;

/// A result as stored on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SpooledResult {
    pub(super) seq: u64,
    /// End of its check, epoch ms by the coordinator's clock.
    pub(super) ended_ms: i64,
    pub(super) result: CheckResult,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordBody {
    boot: BootId,
    results: Vec<SpooledResult>,
}

/// Position and contents of a record.
#[derive(Debug)]
pub(super) struct SegmentRecord {
    offset: u64,
    pub(super) boot: BootId,
    pub(super) from: u64,
    pub(super) through: u64,
    from_ms: i64,
    through_ms: i64,
    pub(super) acked: bool,
}

impl SegmentRecord {
    pub(super) fn count(&self) -> u64 {
        self.through.saturating_sub(self.from).saturating_add(1)
    }

    /// Returns the gap that dropping it leaves; `None` if it was acknowledged.
    pub(super) fn gap(&self) -> Option<ResultGap> {
        (!self.acked).then_some(ResultGap {
            boot: self.boot,
            from: self.from,
            through: self.through,
            from_ms: self.from_ms,
            through_ms: self.through_ms,
        })
    }

    fn of(offset: u64, boot: BootId, results: &[SpooledResult]) -> Option<Self> {
        let (first, last) = (results.first()?, results.last()?);
        let consecutive = results.windows(2).all(|pair| match pair {
            [a, b] => a.seq.checked_add(1) == Some(b.seq),
            _ => true,
        });
        consecutive.then_some(Self {
            offset,
            boot,
            from: first.seq,
            through: last.seq,
            from_ms: first.result.started_ms,
            through_ms: last.result.started_ms,
            acked: false,
        })
    }
}

/// An open segment.
#[derive(Debug)]
pub(super) struct SpoolSegment {
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) records: Vec<SegmentRecord>,
    /// True if no more records are appended.
    pub(super) closed: bool,
    path: PathBuf,
    file: File,
}

impl SpoolSegment {
    pub(super) fn create(folder: &Path, number: u64) -> Result<Self, AgentError> {
        let path = folder.join(format!("{number:016x}.seg"));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(AgentError::file(&path))?;
        Ok(Self { number, bytes: 0, records: Vec::new(), closed: false, path, file })
    }

    /// Reads the segment of an earlier run; returns whether all of it was valid.
    pub(super) fn scan(folder: &Path, number: u64, limit: u64) -> Result<(Self, bool), AgentError> {
        let path = folder.join(format!("{number:016x}.seg"));
        let mut file = File::open(&path).map_err(AgentError::file(&path))?;
        let length = file.metadata().map_err(AgentError::file(&path))?.len();
        let mut content = Vec::new();
        Read::by_ref(&mut file).take(limit).read_to_end(&mut content).map_err(AgentError::file(&path))?;
        let mut records = Vec::new();
        let mut at = 0;
        while let Some((record, size)) = content.get(at..).and_then(|rest| parse(rest, at)) {
            records.extend(record);
            at += size;
        }
        let bytes = u64::try_from(at).unwrap_or(u64::MAX);
        Ok((Self { number, bytes, records, closed: true, path, file }, bytes == length))
    }

    /// Appends one record and flushes it; a failed write is undone.
    pub(super) fn append(&mut self, boot: BootId, results: &[SpooledResult]) -> Result<(), AgentError> {
        let Some(record) = SegmentRecord::of(self.bytes, boot, results) else {
            return Ok(());
        };
        let unwritable = |_| AgentError::Damaged { path: self.path.clone(), rule: "record does not encode" };
        let body = postcard::to_stdvec(&RecordBody { boot, results: results.to_vec() }).map_err(unwritable)?;
        let length = u32::try_from(body.len()).ok().filter(|&length| length <= MAX_BODY);
        let Some(length) = length else {
            return Err(AgentError::Damaged { path: self.path.clone(), rule: "record is longer than 1 MiB" });
        };
        let mut bytes = Vec::with_capacity(HEAD + body.len());
        bytes.extend(length.to_le_bytes());
        bytes.extend(crc32c::crc32c(&body).to_le_bytes());
        bytes.extend(body);
        let written = self
            .file
            .seek(SeekFrom::Start(self.bytes))
            .and_then(|_| self.file.write_all(&bytes))
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // If even this fails, the checksum prevents the half-written record from being read.
            let undone = self.file.set_len(self.bytes);
            self.closed = undone.is_err();
            return Err(AgentError::File { path: self.path.clone(), source: error });
        }
        self.bytes += u64::try_from(bytes.len()).unwrap_or(0);
        self.records.push(record);
        Ok(())
    }

    /// Reads a record back; `None` if it is damaged.
    pub(super) fn read(&self, record: &SegmentRecord) -> Result<Option<Vec<SpooledResult>>, AgentError> {
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, record.offset).map_err(AgentError::file(&self.path))?;
        let Some((length, _)) = head_of(&head) else {
            return Ok(None);
        };
        let mut bytes = head.to_vec();
        bytes.resize(HEAD + length, 0);
        let offset = record.offset + HEAD as u64;
        let body = bytes.get_mut(HEAD..).unwrap_or_default();
        self.file.read_exact_at(body, offset).map_err(AgentError::file(&self.path))?;
        Ok(body_of(&bytes).map(|(body, _)| body.results))
    }

    pub(super) fn remove(self) -> Result<(), AgentError> {
        std::fs::remove_file(&self.path).map_err(AgentError::file(&self.path))
    }
}

/// Returns the number in a segment's file name.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".seg").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

fn parse(bytes: &[u8], offset: usize) -> Option<(Option<SegmentRecord>, usize)> {
    let (body, size) = body_of(bytes)?;
    let offset = u64::try_from(offset).ok()?;
    Some((SegmentRecord::of(offset, body.boot, &body.results), size))
}

fn head_of(bytes: &[u8]) -> Option<(usize, u32)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, _) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length);
    let length = usize::try_from(length).ok().filter(|_| length <= MAX_BODY)?;
    Some((length, u32::from_le_bytes(*checksum)))
}

fn body_of(bytes: &[u8]) -> Option<(RecordBody, usize)> {
    let (length, checksum) = head_of(bytes)?;
    let body = bytes.get(HEAD..HEAD + length)?;
    if crc32c::crc32c(body) != checksum {
        return None;
    }
    Some((postcard::from_bytes(body).ok()?, HEAD + length))
}
