//! The head of an answer over HTTP/1.1, for checks that need no body: one write, and no read beyond the head.
//!
//! hyper does this too, with buffers, a task and a channel for all the rest that it can do. They cost a check a
//! fifth of its CPU, and most checks look at a status only.

use std::{
    future::poll_fn,
    mem::MaybeUninit,
    pin::Pin,
    task::{Poll, ready},
};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use httparse::{Header, ParserConfig, Response, Status};
use parallax_protocol::result::Failure;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::exchange::{MAX_HEAD, MAX_HEADERS};
use crate::probe::tls;

/// Bytes read at once: most heads come whole.
const CHUNK: usize = 4 * 1024;

/// What a check without a keyword needs of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    /// `Location` alone, and only where the answer has one.
    pub(super) headers: HeaderMap,
}

/// Sends a request without a body, and reads the head of the final answer. `to_head` tells that the method is HEAD.
///
/// # Errors
/// The word for a broken connection, or for what is no head of an answer (RFC 9112, sections 4 to 6).
pub(super) async fn ask<S>(stream: &mut S, request: &[u8], to_head: bool) -> Result<Head, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let broken = |error| tls::io_failure(&error).unwrap_or(Failure::Reset);
    stream.write_all(request).await.map_err(broken)?;
    stream.flush().await.map_err(broken)?;
    let mut reading = Reading { held: Vec::new(), to_head };
    poll_fn(|cx| {
        loop {
            // On the stack, so that a check that waits holds no buffer.
            let mut space = [MaybeUninit::uninit(); CHUNK];
            let mut piece = ReadBuf::uninit(&mut space);
            ready!(Pin::new(&mut *stream).poll_read(cx, &mut piece)).map_err(broken)?;
            if piece.filled().is_empty() {
                return Poll::Ready(Err(Failure::ClosedEarly));
            }
            if let Some(head) = reading.take(piece.filled())? {
                return Poll::Ready(Ok(head));
            }
        }
    })
    .await
}

/// Bytes of heads that are not whole yet.
struct Reading {
    held: Vec<u8>,
    to_head: bool,
}

impl Reading {
    /// Takes what came; gives the final head once that is whole.
    fn take(&mut self, piece: &[u8]) -> Result<Option<Head>, Failure> {
        if self.held.is_empty() {
            let (head, read) = self.read(piece)?;
            if head.is_none() {
                self.hold(piece.get(read..).unwrap_or_default())?;
            }
            return Ok(head);
        }
        let looked_through = self.held.len().saturating_sub(3);
        self.hold(piece)?;
        // A head in many small pieces is read once, at its end, and not at each of them.
        if !self.held.get(looked_through..).is_some_and(has_blank_line) {
            return Ok(None);
        }
        let (head, read) = self.read(&self.held)?;
        self.held.drain(..read);
        Ok(head)
    }

    fn hold(&mut self, piece: &[u8]) -> Result<(), Failure> {
        self.held.extend_from_slice(piece);
        if self.held.len() > MAX_HEAD { Err(Failure::HeadTooLarge) } else { Ok(()) }
    }

    /// Reads past informational heads (RFC 9110, section 15.2) to the final one; also how many bytes were whole heads.
    fn read(&self, bytes: &[u8]) -> Result<(Option<Head>, usize), Failure> {
        let mut read = 0;
        while let Some(rest) = bytes.get(read..).filter(|rest| !rest.is_empty()) {
            let Some((head, length)) = one(rest, self.to_head)? else { break };
            read += length;
            if length > MAX_HEAD {
                return Err(Failure::HeadTooLarge);
            }
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok((Some(head), read));
            }
        }
        Ok((None, read))
    }
}

fn has_blank_line(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}

/// One head at the start of `bytes` and its length; `None` while it is not whole.
fn one(bytes: &[u8], to_head: bool) -> Result<Option<(Head, usize)>, Failure> {
    let mut space = [MaybeUninit::<Header<'_>>::uninit(); MAX_HEADERS];
    let mut response = Response::new(&mut []);
    let config = ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut response, bytes, &mut space) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Failure::HeadTooLarge),
        Err(_) => return Err(Failure::HttpMalformed),
    };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(Failure::HttpMalformed)?;
    let has_body = !(to_head
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED));
    if has_body && !is_framed(&response) {
        return Err(Failure::HttpMalformed);
    }
    let mut headers = HeaderMap::new();
    if status.is_redirection()
        && let Some(location) = named(&response, header::LOCATION.as_str()).next()
    {
        let location = HeaderValue::from_bytes(location).map_err(|_| Failure::HttpMalformed)?;
        headers.insert(header::LOCATION, location);
    }
    Ok(Some((Head { status, headers }, length)))
}

/// Whether it is plain where the body ends, by the rules for answers (RFC 9112, section 6.3).
fn is_framed(response: &Response<'_, '_>) -> bool {
    if named(response, header::TRANSFER_ENCODING.as_str()).next().is_some() {
        return response.version == Some(1);
    }
    let mut lengths = named(response, header::CONTENT_LENGTH.as_str())
        .flat_map(|line| line.split(|&byte| byte == b','))
        .map(digits);
    match lengths.next() {
        None => true,
        Some(first) => first.is_some() && lengths.all(|length| length == first),
    }
}

fn named<'a>(response: &'a Response<'_, '_>, name: &str) -> impl Iterator<Item = &'a [u8]> {
    response.headers.iter().filter(move |line| line.name.eq_ignore_ascii_case(name)).map(|line| line.value)
}

fn digits(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]], to_head: bool) -> Result<Option<u16>, Failure> {
        let mut reading = Reading { held: Vec::new(), to_head };
        for piece in pieces {
            if let Some(head) = reading.take(piece)? {
                return Ok(Some(head.status.as_u16()));
            }
        }
        Ok(None)
    }

    fn status(text: &str) -> Result<Option<u16>, Failure> {
        read(&[text.as_bytes()], false)
    }

    #[test]
    fn informational_answers_are_passed_over() {
        let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
        assert_eq!(status(early), Ok(None));
        assert_eq!(status(&format!("{early}HTTP/1.1 204 None\r\n\r\n")), Ok(Some(204)));
        let last = "HTTP/1.1 200 OK\r\n\r\n";
        assert_eq!(read(&[early.as_bytes(), last.as_bytes()], false), Ok(Some(200)));
        assert_eq!(status("HTTP/1.1 101 Switching Protocols\r\n\r\n"), Ok(Some(101)));
    }

    #[test]
    fn what_is_no_head_is_refused_at_its_first_bytes() {
        for text in ["SSH-2.0-thing\r\n", "<html>", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n"] {
            assert_eq!(status(text), Err(Failure::HttpMalformed), "{text}");
        }
        assert_eq!(status("HTTP/1.1 200 OK\r\na b: c\r\n\r\n"), Err(Failure::HttpMalformed));
    }

    #[test]
    fn a_body_has_one_length() {
        for (lines, is_fine) in [
            ("", true),
            ("content-length: 5\r\n", true),
            ("Content-Length: 5, 5\r\ncontent-length: 5\r\n", true),
            ("content-length: 5\r\ncontent-length: 6\r\n", false),
            ("content-length: +5\r\n", false),
            ("content-length: -1\r\n", false),
            ("content-length:\r\n", false),
            ("transfer-encoding: chunked\r\n", true),
            ("transfer-encoding: chunked\r\ncontent-length: x\r\n", true),
        ] {
            let expected = if is_fine { Ok(Some(200)) } else { Err(Failure::HttpMalformed) };
            let head = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
            assert_eq!(status(&head), expected, "{lines}");
            assert_eq!(read(&[head.as_bytes()], true), Ok(Some(200)), "HEAD has no body: {lines}");
        }
        assert_eq!(
            status("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
            Err(Failure::HttpMalformed)
        );
    }

    #[test]
    fn a_head_ends_somewhere() {
        let line = [b'a'; 100];
        let mut pieces: Vec<&[u8]> = vec![b"HTTP/1.1 200 OK\r\nx: "];
        pieces.extend(vec![line.as_slice(); 700]);
        assert_eq!(read(&pieces, false), Err(Failure::HeadTooLarge));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        assert_eq!(status(&many), Err(Failure::HeadTooLarge));
    }

    #[test]
    fn a_redirects_target_is_kept() {
        let text = b"HTTP/1.1 302 Found\r\nLOCATION: /a\r\nlocation: /b\r\ncontent-length: 0\r\n\r\n";
        let (head, _) = one(text, false).unwrap().unwrap();
        assert_eq!(head.headers[header::LOCATION], "/a");
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_head_of_the_whole(cuts in prop::collection::vec(0usize..120, 0..6)) {
            let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\nserver: x\r\ncontent-length: 3\r\n\r\nbye";
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts
                .windows(2)
                .map(|pair| &text[pair[0]..pair[1]])
                .filter(|piece| !piece.is_empty())
                .collect();
            prop_assert_eq!(read(&pieces, false), Ok(Some(404)));
        }
    }
}
