//! Extraction of bodies from an HTTP/1.1 connection.

use parallax_protocol::result::WireFailure;

/// Ways in which a body ends (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// There is no body.
    Empty,
    /// Ends after this many bytes.
    Length(u64),
    /// Ends with the zero-length chunk.
    Chunked,
    /// Ends with the connection.
    UntilClose,
}

/// Maximum length of one chunk's size line in bytes, extensions included.
const MAX_SIZE_LINE: usize = 16 * 1024;

/// Extracts the bytes of a body from the received ones.
#[derive(Debug)]
pub(super) struct Deframer(State);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Done,
    UntilClose,
    Length(u64),
    Size(SizeLine),
    Chunk(u64),
    /// The line end after a chunk.
    AfterChunk,
}

impl Deframer {
    pub(super) fn new(framing: BodyFraming) -> Self {
        Self(match framing {
            BodyFraming::Empty | BodyFraming::Length(0) => State::Done,
            BodyFraming::Length(length) => State::Length(length),
            BodyFraming::Chunked => State::Size(SizeLine::default()),
            BodyFraming::UntilClose => State::UntilClose,
        })
    }

    /// Returns true once the body is complete. Trailers after the last chunk are not read.
    pub(super) fn is_done(&self) -> bool {
        self.0 == State::Done
    }

    /// Appends the body's bytes among the `received` ones to `body`.
    ///
    /// # Errors
    /// [`WireFailure::HttpMalformed`] for a chunk without a readable size.
    pub(super) fn feed(&mut self, mut received: &[u8], body: &mut Vec<u8>) -> Result<(), WireFailure> {
        while let Some((&first, rest)) = received.split_first() {
            match self.0 {
                State::Done => break,
                State::UntilClose => {
                    body.extend_from_slice(received);
                    break;
                }
                State::Length(left) | State::Chunk(left) => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(received.len());
                    let (now, later) = received.split_at(taken);
                    body.extend_from_slice(now);
                    received = later;
                    let left = left.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX));
                    self.0 = match self.0 {
                        State::Chunk(_) if left == 0 => State::AfterChunk,
                        State::Chunk(_) => State::Chunk(left),
                        _ if left == 0 => State::Done,
                        _ => State::Length(left),
                    };
                }
                State::AfterChunk => {
                    self.0 = match first {
                        b'\r' => State::AfterChunk,
                        b'\n' => State::Size(SizeLine::default()),
                        _ => return Err(WireFailure::HttpMalformed),
                    };
                    received = rest;
                }
                State::Size(mut line) => {
                    self.0 = match line.feed(first)? {
                        None => State::Size(line),
                        Some(0) => State::Done,
                        Some(size) => State::Chunk(size),
                    };
                    received = rest;
                }
            }
        }
        Ok(())
    }

    /// Handles the end of the connection.
    ///
    /// # Errors
    /// [`WireFailure::ClosedEarly`] if the body is incomplete.
    pub(super) fn close(&self) -> Result<(), WireFailure> {
        match self.0 {
            State::Done | State::UntilClose => Ok(()),
            State::Length(_) | State::Size(_) | State::Chunk(_) | State::AfterChunk => Err(WireFailure::ClosedEarly),
        }
    }
}

/// A chunk's size line in progress: hexadecimal digits, whitespace around them, and extensions (RFC 9112,
/// section 7.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SizeLine {
    size: Option<u64>,
    length: usize,
    part: Part,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Before,
    Digits,
    After,
    Extension,
}

impl SizeLine {
    /// Takes one byte; returns the size at the end of the line.
    fn feed(&mut self, byte: u8) -> Result<Option<u64>, WireFailure> {
        self.length += 1;
        if self.length > MAX_SIZE_LINE {
            return Err(WireFailure::HttpMalformed);
        }
        let digit = char::from(byte).to_digit(16).map(u64::from);
        self.part = match (self.part, byte, digit) {
            (_, b'\n', _) => return self.size.map(Some).ok_or(WireFailure::HttpMalformed),
            (Part::Extension, _, _) | (Part::Digits | Part::After, b';', _) => Part::Extension,
            (Part::Before | Part::Digits, _, Some(digit)) => {
                let size = self.size.unwrap_or(0).checked_mul(16).ok_or(WireFailure::HttpMalformed)?;
                self.size = Some(size | digit);
                Part::Digits
            }
            (Part::Before, b' ' | b'\t', _) => Part::Before,
            (Part::Digits | Part::After, b' ' | b'\t' | b'\r', _) => Part::After,
            (Part::Before | Part::Digits | Part::After, _, _) => return Err(WireFailure::HttpMalformed),
        };
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the body, and whether it was complete at the end of the connection.
    fn read(framing: BodyFraming, received: &[u8], cut: usize) -> Result<(String, bool), WireFailure> {
        let (mut deframer, mut body) = (Deframer::new(framing), Vec::new());
        for piece in received.chunks(cut) {
            deframer.feed(piece, &mut body)?;
        }
        Ok((String::from_utf8(body).unwrap(), deframer.close().is_ok()))
    }

    #[test]
    fn a_body_ends_where_its_framing_says() {
        for (framing, received, body, is_whole) in [
            (BodyFraming::Empty, "abc", "", true),
            (BodyFraming::Length(0), "abc", "", true),
            (BodyFraming::Length(2), "abc", "ab", true),
            (BodyFraming::Length(4), "abc", "abc", false),
            (BodyFraming::UntilClose, "abc", "abc", true),
            (BodyFraming::Chunked, "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "abc", true),
            (BodyFraming::Chunked, "0A;name=\"x\"\r\n0123456789\r\n0;last\r\n", "0123456789", true),
            (BodyFraming::Chunked, " 2 \nab\n 00 \r\nServer : x\r\n", "ab", true),
            (BodyFraming::Chunked, "2\r\nab\r\n", "ab", false),
            (BodyFraming::Chunked, "2\r\na", "a", false),
            (BodyFraming::Chunked, "", "", false),
        ] {
            for cut in [1, 2, 3, 100] {
                let read = read(framing, received.as_bytes(), cut);
                assert_eq!(read, Ok((body.to_owned(), is_whole)), "{framing:?} {received:?} by {cut}");
            }
        }
    }

    #[test]
    fn a_chunk_without_a_size_is_no_http() {
        for received in ["\r\nab", "x\r\n", "2 2\r\nab", "-1\r\n", "0x2\r\nab", "2\r\nabc", &"0".repeat(20_000)] {
            assert_eq!(read(BodyFraming::Chunked, received.as_bytes(), 7), Err(WireFailure::HttpMalformed));
        }
        let endless = format!("{}\r\n", "f".repeat(17));
        assert_eq!(read(BodyFraming::Chunked, endless.as_bytes(), 7), Err(WireFailure::HttpMalformed));
    }

    proptest! {
        #[test]
        fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..200), cut in 1_usize..50) {
            let (mut deframer, mut body) = (Deframer::new(BodyFraming::Chunked), Vec::new());
            let _ = noise.chunks(cut).try_for_each(|piece| deframer.feed(piece, &mut body));
            prop_assert!(body.len() <= noise.len());
        }
    }
}
