//! Requests simple enough for the fast path: a `GET` without a body, parsed in place.

use std::mem::MaybeUninit;

use httparse::{Header, Status};

/// Limit of header fields on the fast path.
const MAX_HEADERS: usize = 32;
/// Headers that exclude a request from the fast path.
const EXCLUDED_HEADERS: [&str; 6] =
    ["content-length", "transfer-encoding", "expect", "upgrade", "te", "http2-settings"];

/// A request that the fast path may serve: a `GET` without a body.
#[derive(Debug)]
pub(in crate::http) struct SimpleRequest<'a> {
    /// Path and query.
    pub(in crate::http) path: &'a str,
    headers: &'a [Header<'a>],
}

impl SimpleRequest<'_> {
    /// Values of all headers of a name (lowercase), skipping those that are not ASCII text.
    pub(super) fn header_values(&self, name: &'static str) -> impl Iterator<Item = &str> {
        let of_name = self.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        of_name.filter_map(|header| std::str::from_utf8(header.value).ok().filter(|value| value.is_ascii()))
    }

    /// Number of headers of a name.
    fn header_count(&self, name: &str) -> usize {
        self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count()
    }

    /// Returns whether the client asks to close the connection; `None` if the fast path does not handle the header.
    fn closes_connection(&self) -> Option<bool> {
        let mut values = self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("connection"));
        match (values.next(), values.next()) {
            (None, _) => Some(false),
            (Some(one), None) if one.value.eq_ignore_ascii_case(b"keep-alive") => Some(false),
            (Some(one), None) if one.value.eq_ignore_ascii_case(b"close") => Some(true),
            _ => None,
        }
    }
}

/// Parses the buffered bytes as a request and looks it up. Returns the result, the length of its header section, and if
/// the connection closes after it; `None` if the fast path can't serve it.
pub(in crate::http) fn look_up<T>(
    buffered: &[u8],
    respond: impl FnOnce(&SimpleRequest<'_>) -> Option<T>,
) -> Option<(T, usize, bool)> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let Ok(Status::Complete(length)) = request.parse_with_uninit_headers(buffered, &mut headers) else {
        return None;
    };
    if request.method != Some("GET") || request.version != Some(1) {
        return None;
    }
    let path = request.path.filter(|path| path.starts_with('/'))?;
    let question = SimpleRequest { path, headers: request.headers };
    if question.header_count("host") != 1 || EXCLUDED_HEADERS.iter().any(|name| question.header_count(name) > 0) {
        return None;
    }
    let closes = question.closes_connection()?;
    Some((respond(&question)?, length, closes))
}

#[cfg(test)]
mod tests;
