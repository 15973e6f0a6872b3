//! Decoding of content codings (RFC 9110, section 8.4), in pieces and in bounded memory.
//!
//! Each coding is a stage that writes its decoded bytes into the next one. An error of a later stage passes
//! through the earlier ones unchanged, which is how the last stage ends the reading.

use std::io::{self, Read, Write};

use flate2::{Decompress, FlushDecompress, Status, write::GzDecoder};
use http::{HeaderMap, header};
use ruzstd::decoding::StreamingDecoder;

mod brotli;

use self::brotli::Brotli;
use crate::probe::memory_budget::MemoryShare;

/// Maximum number of stacked codings.
const MAX_LAYERS: usize = 2;
/// Maximum number of bytes that one coding may produce for the next.
const MAX_INTERMEDIATE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of members of one gzip body: each costs a decoder, however little it contains.
const MAX_MEMBERS: usize = 1024;
/// Number of bytes decoded at once.
const PIECE: usize = 16 * 1024;
/// The largest window of zstd (RFC 9659): 8 MiB.
const MAX_WINDOW: u64 = 8 * 1024 * 1024;
/// Approximate memory of a gzip or deflate decoder: window, tables and buffers.
const INFLATE: usize = 96 * 1024;

/// A stage that a body is written through.
pub(super) trait DecodeStage: Write + Send {
    /// Ends the body.
    fn end(&mut self) -> io::Result<()>;
}

/// The next stage.
pub(super) type NextStage = Box<dyn DecodeStage>;

/// Puts decoding stages for a response's codings before `last`; returns `None` for too many codings. Tokens
/// that name no coding are ignored, as in browsers: servers put charsets, `new` and `aws-chunked` there. The
/// stages' memory is charged to the account of `share`.
pub(super) fn decoding_stages(headers: &HeaderMap, last: NextStage, share: &MemoryShare) -> Option<NextStage> {
    let lines = headers.get_all(header::CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let codings = lines.flat_map(|line| line.split(',')).filter_map(|token| Coding::named(token.trim()));
    let codings: Vec<Coding> = codings.take(MAX_LAYERS + 1).collect();
    if codings.len() > MAX_LAYERS {
        return None;
    }
    // The first coding named was applied first and is decoded last.
    Some(codings.into_iter().enumerate().fold(last, |next, (layer, coding)| {
        let next = if layer == 0 { next } else { Box::new(ByteLimitStage { remaining: MAX_INTERMEDIATE_BYTES, next }) };
        coding.stage(next, share.sibling())
    }))
}

/// Supported codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    fn named(token: &str) -> Option<Self> {
        let names = [
            ("gzip", Self::Gzip),
            ("x-gzip", Self::Gzip),
            ("deflate", Self::Deflate),
            ("br", Self::Brotli),
            ("zstd", Self::Zstd),
        ];
        names.into_iter().find(|(name, _)| token.eq_ignore_ascii_case(name)).map(|(_, coding)| coding)
    }

    fn stage(self, next: NextStage, share: MemoryShare) -> NextStage {
        let inflating = |first, share| Box::new(InflateStage { first, share });
        match self {
            Self::Gzip => inflating(Box::new(Gzip::new(next)) as NextStage, share),
            Self::Deflate => {
                inflating(Box::new(Deflate { head: Vec::new(), stream: None, is_done: false, next }), share)
            }
            Self::Brotli => Box::new(Brotli::new(next, share)),
            Self::Zstd => Box::new(Zstd { encoded: Vec::new(), share, next }),
        }
    }
}

/// Limits the bytes to the next stage: a body that grows without end in one layer may shrink to nothing in
/// the next, where no limit would catch it.
struct ByteLimitStage {
    remaining: usize,
    next: NextStage,
}

impl Write for ByteLimitStage {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.remaining = self.remaining.checked_sub(piece.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        self.next.write_all(piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DecodeStage for ByteLimitStage {
    fn end(&mut self) -> io::Result<()> {
        self.next.end()
    }
}

/// Charges the memory of a gzip or deflate decoder.
struct InflateStage {
    first: NextStage,
    share: MemoryShare,
}

impl Write for InflateStage {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.share.grow_to(INFLATE)?;
        self.first.write(piece)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DecodeStage for InflateStage {
    fn end(&mut self) -> io::Result<()> {
        self.first.end()
    }
}

fn invalid_data(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// gzip (RFC 1952): consecutive members are one body; data after the last one is ignored.
struct Gzip {
    member: Option<GzDecoder<NextStage>>,
    /// The first bytes after a member, until they show whether another one follows.
    head: Vec<u8>,
    /// The next stage, between members.
    next: Option<NextStage>,
    members: usize,
    is_done: bool,
}

const MEMBER: [u8; 2] = [0x1f, 0x8b];

impl Gzip {
    fn new(next: NextStage) -> Self {
        Self { member: Some(GzDecoder::new(next)), head: Vec::new(), next: None, members: 1, is_done: false }
    }
}

impl Write for Gzip {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let Some(first) = piece.first().filter(|_| !self.is_done) else { return Ok(piece.len()) };
        if let Some(member) = self.member.as_mut() {
            let taken = member.write(piece)?;
            if taken > 0 {
                return Ok(taken);
            }
            self.next = self.member.take().map(GzDecoder::finish).transpose()?;
        }
        self.head.push(*first);
        if self.head == MEMBER {
            self.head.clear();
            self.members += 1;
            if self.members > MAX_MEMBERS {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            if let Some(next) = self.next.take() {
                self.member.insert(GzDecoder::new(next)).write_all(&MEMBER)?;
            }
        } else if !MEMBER.starts_with(&self.head) {
            self.is_done = true;
        }
        Ok(1)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DecodeStage for Gzip {
    fn end(&mut self) -> io::Result<()> {
        if let Some(member) = self.member.take() {
            self.next = Some(member.finish()?);
        }
        self.next.as_mut().map_or(Ok(()), |next| next.end())
    }
}

/// deflate: in a zlib wrapper (RFC 1950), as it should be, or raw (RFC 1951), as some servers send it.
struct Deflate {
    /// The first two bytes, which distinguish the forms.
    head: Vec<u8>,
    stream: Option<Decompress>,
    is_done: bool,
    next: NextStage,
}

impl Deflate {
    fn inflate(&mut self, mut piece: &[u8]) -> io::Result<()> {
        let Some(stream) = self.stream.as_mut() else { return Ok(()) };
        let mut undone = vec![0; PIECE];
        while !self.is_done {
            let (read, written) = (stream.total_in(), stream.total_out());
            let status =
                stream.decompress(piece, &mut undone, FlushDecompress::None).map_err(|_| invalid_data("deflate"))?;
            let (read, written) = (stream.total_in() - read, stream.total_out() - written);
            piece = piece.get(usize::try_from(read).unwrap_or(usize::MAX)..).unwrap_or_default();
            let written = usize::try_from(written).unwrap_or(usize::MAX);
            self.next.write_all(undone.get(..written).unwrap_or_default())?;
            self.is_done = status == Status::StreamEnd;
            if piece.is_empty() && written < undone.len() {
                break;
            }
            if read == 0 && written == 0 && !self.is_done {
                return Err(invalid_data("deflate"));
            }
        }
        Ok(())
    }
}

impl Write for Deflate {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.stream.is_some() {
            self.inflate(piece)?;
            return Ok(piece.len());
        }
        let taken = piece.len().min(2 - self.head.len());
        self.head.extend(piece.iter().take(taken));
        if let [method, check] = self.head[..] {
            let is_zlib = method & 0x0f == 8 && u16::from_be_bytes([method, check]).is_multiple_of(31);
            self.stream = Some(Decompress::new(is_zlib));
            let head = std::mem::take(&mut self.head);
            self.inflate(&head)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DecodeStage for Deflate {
    fn end(&mut self) -> io::Result<()> {
        if !self.is_done {
            return Err(invalid_data("deflate"));
        }
        self.next.end()
    }
}

/// zstd (RFC 8878). Its decoder buffers a whole window, so the body is decoded at its end; the input is
/// bounded by the reader of the body, and charged to its account.
struct Zstd {
    encoded: Vec<u8>,
    share: MemoryShare,
    next: NextStage,
}

impl Write for Zstd {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.share.grow_to(self.encoded.len() + piece.len())?;
        self.encoded.extend(piece);
        self.share.grow_to(self.encoded.capacity())?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DecodeStage for Zstd {
    fn end(&mut self) -> io::Result<()> {
        let mut rest = self.encoded.as_slice();
        let mut undone = vec![0; PIECE];
        while let Some(magic) = rest.first_chunk::<4>() {
            // A skippable frame (section 3.1.2).
            if (0x184d_2a50..=0x184d_2a5f).contains(&u32::from_le_bytes(*magic)) {
                let len = rest.get(4..8).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes);
                let len = len.and_then(|len| usize::try_from(len).ok()).ok_or_else(|| invalid_data("zstd"))?;
                rest = rest.get(8..).and_then(|rest| rest.get(len..)).ok_or_else(|| invalid_data("zstd"))?;
                continue;
            }
            if window(rest).is_none_or(|window| window > MAX_WINDOW) {
                return Err(invalid_data("zstd"));
            }
            let mut frame = StreamingDecoder::new(&mut rest).map_err(|_| invalid_data("zstd"))?;
            loop {
                let len = frame.read(&mut undone)?;
                if len == 0 {
                    break;
                }
                self.next.write_all(undone.get(..len).unwrap_or_default())?;
            }
        }
        if rest.is_empty() { self.next.end() } else { Err(invalid_data("zstd")) }
    }
}

/// Returns the window that a frame needs, in bytes (RFC 8878, section 3.1.1.1).
fn window(frame: &[u8]) -> Option<u64> {
    let descriptor = *frame.get(4)?;
    if descriptor & 0x20 == 0 {
        let window = *frame.get(5)?;
        let base = 1_u64 << (10 + u32::from(window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // A single segment: the window is the content, whose size follows the dictionary's id.
    let at = 5 + [0, 1, 2, 4].get(usize::from(descriptor & 3))?;
    let len = 1 << (descriptor >> 6);
    let size = frame.get(at..at + len)?.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    Some(if len == 2 { size + 256 } else { size })
}

#[cfg(test)]
mod tests;
