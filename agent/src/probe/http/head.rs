//! Heads of HTTP/1.1 responses, parsed as leniently as browsers and curl do.
//!
//! A valid head is parsed directly. Any other is repaired line by line first, and parsed again: a monitor
//! judges whether visitors get the page, and their programs tolerate odd lines.

use std::{borrow::Cow, mem::MaybeUninit};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use httparse::{Header, ParserConfig, Response, Status};
use parallax_protocol::result::WireFailure;

use super::framing::BodyFraming;

/// Maximum length of a response head: 64 KiB.
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// Maximum number of header lines of a response.
const MAX_HEADERS: usize = 256;

/// Selection of the response headers to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderSelection {
    /// All of them.
    All,
    /// `Location` and `Set-Cookie` of a redirect; none of any other response.
    Redirects,
}

/// The head of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    /// Its status.
    pub(super) status: StatusCode,
    /// Its headers, or the selected ones.
    pub(super) headers: HeaderMap,
}

/// Buffered bytes of an incomplete head.
pub(super) struct HeadReader {
    buffer: Vec<u8>,
    /// True for the method HEAD, whose answers have no body.
    to_head: bool,
    selection: HeaderSelection,
    interim: usize,
}

/// The final head of a response, its body's framing, and the number of bytes of the last piece that belonged
/// to heads.
type ParsedHead = (ResponseHead, BodyFraming, usize);

/// Maximum number of interim responses (1xx) before the final one.
const MAX_INTERIM: usize = 100;

impl HeadReader {
    pub(super) fn new(to_head: bool, keep: HeaderSelection) -> Self {
        Self { buffer: Vec::new(), to_head, selection: keep, interim: 0 }
    }

    /// Takes received bytes; returns the final head once it is complete.
    ///
    /// # Errors
    /// The failure for an invalid head (RFC 9112, sections 4 to 6).
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<Option<ParsedHead>, WireFailure> {
        if self.buffer.is_empty() {
            let (whole, read) = self.read(piece)?;
            if whole.is_none() {
                self.append(piece.get(read..).unwrap_or_default())?;
            }
            return Ok(whole);
        }
        let before = self.buffer.len();
        let looked_through = before.saturating_sub(3);
        self.append(piece)?;
        // A head in many small pieces is parsed once, at its end, and not for each of them.
        if self.buffer.get(looked_through..).and_then(end_of_lines).is_none() {
            return Ok(None);
        }
        let buffer = std::mem::take(&mut self.buffer);
        let (whole, read) = self.read(&buffer)?;
        self.buffer = buffer;
        self.buffer.drain(..read);
        // The buffered bytes had no complete head, so this one ends in the piece.
        Ok(whole.map(|(head, framing, read)| (head, framing, read.saturating_sub(before))))
    }

    fn append(&mut self, piece: &[u8]) -> Result<(), WireFailure> {
        self.buffer.extend_from_slice(piece);
        if self.buffer.len() > MAX_HEAD { Err(WireFailure::HeadTooLarge) } else { Ok(()) }
    }

    /// Skips informational heads (RFC 9110, section 15.2) up to the final one; also returns how many bytes
    /// were complete heads.
    fn read(&mut self, bytes: &[u8]) -> Result<(Option<ParsedHead>, usize), WireFailure> {
        let mut read = 0;
        while let Some(rest) = bytes.get(read..).filter(|rest| !rest.is_empty()) {
            let Some((head, framing, length)) = parse_one(rest, self.to_head, self.selection)? else { break };
            read += length;
            if length > MAX_HEAD {
                return Err(WireFailure::HeadTooLarge);
            }
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok((Some((head, framing, read)), read));
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Err(WireFailure::HeadTooLarge);
            }
        }
        Ok((None, read))
    }
}

/// Parses one head at the start of `bytes`, and returns it with its framing and length; `None` if it is
/// incomplete.
fn parse_one(bytes: &[u8], to_head: bool, keep: HeaderSelection) -> Result<Option<ParsedHead>, WireFailure> {
    match parsed(bytes, to_head, keep) {
        Ok(one) => Ok(one),
        Err(HeadParseError::Fatal(failure)) => Err(failure),
        Err(HeadParseError::Malformed) => {
            if !may_be_http(bytes) {
                return Err(WireFailure::HttpMalformed);
            }
            let begins = bytes.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(bytes.len());
            let Some(length) = bytes.get(begins..).and_then(end_of_lines).map(|end| begins + end) else {
                return Ok(None);
            };
            let mended = repaired(bytes.get(begins..length).unwrap_or_default())?;
            match parsed(&mended, to_head, keep) {
                Ok(Some((head, framing, _))) => Ok(Some((head, framing, length))),
                Ok(None) | Err(HeadParseError::Malformed) => Err(WireFailure::HttpMalformed),
                Err(HeadParseError::Fatal(failure)) => Err(failure),
            }
        }
    }
}

/// Reasons why a head could not be parsed directly.
enum HeadParseError {
    /// It breaks a rule; a repaired version may parse.
    Malformed,
    /// It can't be repaired.
    Fatal(WireFailure),
}

fn parsed(bytes: &[u8], to_head: bool, keep: HeaderSelection) -> Result<Option<ParsedHead>, HeadParseError> {
    let mut space = [MaybeUninit::<Header<'_>>::uninit(); MAX_HEADERS];
    let mut response = Response::new(&mut []);
    let config = ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut response, bytes, &mut space) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(HeadParseError::Fatal(WireFailure::HeadTooLarge)),
        Err(_) => return Err(HeadParseError::Malformed),
    };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(HeadParseError::Fatal(WireFailure::HttpMalformed))?;
    let has_body =
        !(to_head || status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED));
    let framing = if has_body { framing(&response).map_err(HeadParseError::Fatal)? } else { BodyFraming::Empty };
    let mut headers = HeaderMap::new();
    if keep == HeaderSelection::All || status.is_redirection() {
        for line in response.headers.iter() {
            let Ok(name) = HeaderName::from_bytes(line.name.as_bytes()) else { continue };
            if keep == HeaderSelection::All || name == header::LOCATION || name == header::SET_COOKIE {
                let value = HeaderValue::from_bytes(line.value).map_err(|_| HeadParseError::Malformed)?;
                headers.append(name, value);
            }
        }
    }
    Ok(Some((ResponseHead { status, headers }, framing, length)))
}

/// Returns the body's framing (RFC 9112, section 6.3). As in browsers an invalid length is ignored, and equal
/// lengths count as one.
///
/// # Errors
/// [`WireFailure::HttpMalformed`] for conflicting lengths: every reader picks a different one.
fn framing(response: &Response<'_, '_>) -> Result<BodyFraming, WireFailure> {
    let mut codings = named(response, &header::TRANSFER_ENCODING).flat_map(items);
    if codings.any(|coding| coding.eq_ignore_ascii_case(b"chunked")) {
        return Ok(BodyFraming::Chunked);
    }
    let mut lengths = named(response, &header::CONTENT_LENGTH).flat_map(items).map(digits);
    let first = lengths.next().flatten();
    if !lengths.all(|length| length == first) {
        return Err(WireFailure::HttpMalformed);
    }
    Ok(first.map_or(BodyFraming::UntilClose, BodyFraming::Length))
}

fn named<'a>(response: &'a Response<'_, '_>, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    response.headers.iter().filter(move |line| *name == line.name).map(|line| line.value)
}

fn items(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

fn digits(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the end of the first empty line.
fn end_of_lines(bytes: &[u8]) -> Option<usize> {
    let mut after_line = false;
    let mut after_return = false;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' if after_line => return Some(at + 1),
            b'\n' => (after_line, after_return) = (true, false),
            b'\r' if after_line && !after_return => after_return = true,
            _ => (after_line, after_return) = (false, false),
        }
    }
    None
}

/// Possible starts of a response. `ICY` is that of Shoutcast servers.
const BEGINNINGS: [&[u8]; 2] = [b"HTTP/", b"ICY "];

/// Returns true if the received bytes may be the start of a response.
fn may_be_http(bytes: &[u8]) -> bool {
    let begins = bytes.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(bytes.len());
    let bytes = bytes.get(begins..).unwrap_or_default();
    BEGINNINGS.iter().any(|beginning| {
        let both = bytes.len().min(beginning.len());
        bytes.iter().zip(*beginning).take(both).all(|(byte, expected)| byte.eq_ignore_ascii_case(expected))
    })
}

/// Repairs a complete head that breaks the rules: invalid lines are dropped, folded ones joined, whitespace
/// around names and control characters in values removed.
///
/// # Errors
/// [`WireFailure::HttpMalformed`] if there is no readable status, and for NUL, or a CR that doesn't end a line:
/// every reader interprets those differently.
fn repaired(head: &[u8]) -> Result<Vec<u8>, WireFailure> {
    let mut lines = head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (minor, status) = lines.next().and_then(status_line).ok_or(WireFailure::HttpMalformed)?;
    let mut fields: Vec<(HeaderName, Vec<u8>)> = Vec::new();
    // True if the previous line was a header, which a folded line continues.
    let mut goes_on = false;
    for line in lines {
        if line.iter().any(|byte| b"\0\r".contains(byte)) {
            return Err(WireFailure::HttpMalformed);
        }
        if line.first().is_some_and(|first| b" \t".contains(first)) {
            if let Some((_, value)) = fields.last_mut().filter(|_| goes_on) {
                value.push(b' ');
                value.extend_from_slice(line.trim_ascii());
            }
            continue;
        }
        goes_on = false;
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = line.split_at(colon);
        let Ok(name) = HeaderName::from_bytes(name.trim_ascii_end()) else { continue };
        goes_on = true;
        fields.push((name, value.get(1..).unwrap_or_default().trim_ascii().to_vec()));
    }
    let mut mended = format!("HTTP/1.{minor} {status} \r\n").into_bytes();
    for (name, value) in fields {
        let Some(value) = printable(&name, &value) else { continue };
        for part in [name.as_str().as_bytes(), b": ", &value, b"\r\n"] {
            mended.extend_from_slice(part);
        }
    }
    mended.extend_from_slice(b"\r\n");
    Ok(mended)
}

/// Returns the version after `HTTP/1.` and the three digits of the status; other versions are read as 1.1, as
/// browsers do.
fn status_line(line: &[u8]) -> Option<(u8, u16)> {
    let (version, rest) = line.split_at(line.iter().position(|byte| b" \t".contains(byte))?);
    let is_old = version.eq_ignore_ascii_case(b"ICY") || version.eq_ignore_ascii_case(b"HTTP/1.0");
    if !is_old {
        let (name, number) = version.split_at_checked(5)?;
        let is_number = number.first().is_some_and(u8::is_ascii_digit)
            && number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        if !name.eq_ignore_ascii_case(b"HTTP/") || !is_number {
            return None;
        }
    }
    let rest = rest.trim_ascii_start();
    let (code, rest) = rest.split_at_checked(3)?;
    if rest.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let code = u16::try_from(digits(code)?).ok()?;
    Some((u8::from(!is_old), code))
}

/// Removes control characters from the value (RFC 9110, section 5.5). A cookie with one is dropped, as in
/// browsers; in an address they are escaped.
fn printable<'a>(name: &HeaderName, value: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if !value.iter().any(is_control) {
        return Some(Cow::Borrowed(value));
    }
    if *name == header::SET_COOKIE {
        return None;
    }
    let mut printable = Vec::with_capacity(value.len());
    for byte in value {
        match byte {
            byte if !is_control(byte) => printable.push(*byte),
            byte if *name == header::LOCATION => printable.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => {}
        }
    }
    Some(Cow::Owned(printable))
}

#[cfg(test)]
mod tests;
