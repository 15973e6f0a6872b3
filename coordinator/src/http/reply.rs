//! An answer before it is on the wire.

use std::convert::Infallible;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use ::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName,
    IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use ::http::{HeaderMap, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use foldhash::quality::FixedState;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use parallax_core::quota::Allowance;
use serde::Serialize;

/// What a page for people may load and do: nothing.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Parts of a body that has no end of its own.
pub(super) type Parts = BoxStream<'static, Result<Bytes, Infallible>>;

/// The same for one who wants to share it between threads, which nobody does.
struct Alone(Mutex<Parts>);

impl Stream for Alone {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll_next(cx)
    }
}

/// Status, headers and body.
pub(super) struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// What of the body a tag is made of; none where it is all of it.
    gist: Option<Bytes>,
    /// What follows the body for as long as somebody reads it.
    rest: Option<Parts>,
    /// Set where all readers have one copy of the body.
    is_shared: bool,
    /// Set where that copy is kept for as long as the service runs.
    is_lasting: bool,
    /// Set where something was changed by a request whose method does not tell.
    wrote: bool,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

impl Reply {
    const fn bare(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Self {
            status,
            headers,
            body,
            gist: None,
            rest: None,
            is_shared: false,
            is_lasting: false,
            wrote: false,
        }
    }

    /// A JSON document.
    pub(super) fn json(status: StatusCode, document: &impl Serialize) -> Self {
        Self::written(status, serde_json::to_vec(document).unwrap_or_default())
    }

    /// A JSON document that is written already; without one where the status has none.
    pub(super) fn written(status: StatusCode, document: impl Into<Bytes>) -> Self {
        let reply = Self::bare(status, HeaderMap::new(), document.into())
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if status == StatusCode::NO_CONTENT {
            reply
        } else {
            reply.with(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        }
    }

    /// The same, whose tag is made of that alone: what else the body says does not make it another one.
    pub(super) fn known_by(self, gist: Vec<u8>) -> Self {
        Self { gist: Some(gist.into()), ..self }
    }

    /// Nothing but a status.
    pub(super) fn empty(status: StatusCode) -> Self {
        Self::bare(status, HeaderMap::new(), Bytes::new())
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
    }

    /// A word in plain text that no one may keep.
    pub(super) fn text(text: &'static str) -> Self {
        let body = Bytes::from_static(text.as_bytes());
        Self::bare(StatusCode::OK, HeaderMap::new(), body)
            .with(CONTENT_TYPE, HeaderValue::from_static("text/plain"))
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
    }

    /// Bytes of that media type, of which the headers are the caller's affair.
    pub(super) fn bytes(media: &'static str, body: impl Into<Bytes>) -> Self {
        // As many as a document of a page has, so that the map does not grow on the way.
        let headers = HeaderMap::with_capacity(12);
        Self::bare(StatusCode::OK, headers, body.into())
            .with(CONTENT_TYPE, HeaderValue::from_static(media))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
    }

    /// The same, of whose body all readers have one copy.
    pub(super) fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// The same, of whose body all readers have one copy that is kept for good.
    pub(super) fn lasting(self) -> Self {
        Self { is_lasting: true, ..self.shared() }
    }

    /// The same, said to report a change.
    pub(super) fn of_write(self, wrote: bool) -> Self {
        Self { wrote, ..self }
    }

    /// Tells whether it reports a change.
    pub(super) const fn wrote(&self) -> bool {
        self.wrote
    }

    /// Tells whether the body is kept for good.
    pub(super) const fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    /// Tells whether all readers have one copy of the body.
    pub(super) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The same with a body made of its own.
    pub(super) fn with_body(self, make: impl FnOnce(Bytes) -> Bytes) -> Self {
        Self { body: make(self.body), ..self }
    }

    /// The same, followed by what has no end of its own.
    pub(super) fn followed_by(self, rest: Parts) -> Self {
        Self { rest: Some(rest), ..self }
    }

    /// The same, whose body the reader has already.
    pub(super) fn unchanged(mut self) -> Self {
        self.status = StatusCode::NOT_MODIFIED;
        self.body = Bytes::new();
        self.headers.remove(CONTENT_TYPE);
        self
    }

    /// A page for people, which loads nothing.
    pub(super) fn html(text: String) -> Self {
        Self::bytes("text/html; charset=utf-8", text)
            .with(CACHE_CONTROL, HeaderValue::from_static("public, max-age=15"))
            .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))
            .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
    }

    /// The same with another status.
    pub(super) const fn of(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Its status.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Its body.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The same with a header set.
    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same with what its sender has left of the minute.
    pub(super) fn with_allowance(self, allowance: &Allowance) -> Self {
        self.with(HeaderName::from_static("ratelimit-limit"), HeaderValue::from(allowance.limit))
            .with(HeaderName::from_static("ratelimit-remaining"), HeaderValue::from(allowance.remaining))
            .with(HeaderName::from_static("ratelimit-reset"), HeaderValue::from(allowance.reset_seconds))
    }

    /// The same, kept by nobody but its reader, and not by him either, and found by no search.
    pub(super) fn sealed(mut self) -> Self {
        self.headers.remove(ETAG);
        self.headers.remove(ACCESS_CONTROL_ALLOW_ORIGIN);
        let vary = self.headers.get(VARY).and_then(|vary| vary.to_str().ok()).unwrap_or_default();
        let vary = match vary {
            "" => "cookie".to_owned(),
            vary if vary.contains("cookie") => vary.to_owned(),
            vary => format!("{vary}, cookie"),
        };
        if let Ok(vary) = HeaderValue::try_from(vary) {
            self.headers.insert(VARY, vary);
        }
        self.with(CACHE_CONTROL, HeaderValue::from_static("private, no-store"))
            .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
    }

    /// The same, said to be the answer to an earlier sending of the request.
    pub(super) fn replayed(self) -> Self {
        self.with(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"))
    }

    /// The same, said to show the thing as it is now, since its first answer was too long to keep.
    pub(super) fn redrawn(self) -> Self {
        self.with(HeaderName::from_static("idempotency-answer"), HeaderValue::from_static("current"))
    }

    /// The same, with where the thing that was made is to be found.
    pub(super) fn at(self, path: &str) -> Self {
        match HeaderValue::try_from(path) {
            Ok(path) => self.with(LOCATION, path),
            Err(_) => self,
        }
    }

    /// A read's answer with the tag of its body; only the tag where the reader has that body already (RFC 9110, 13.1.2).
    /// The body may be kept, but not used unasked.
    pub(super) fn tagged(self, headers: &HeaderMap) -> Self {
        if self.status != StatusCode::OK {
            return self;
        }
        let tag = tag(self.gist.as_ref().unwrap_or(&self.body));
        self.tagged_as(&tag, headers)
    }

    /// The same, with the body's tag as it was made before.
    pub(super) fn tagged_as(self, tag: &str, headers: &HeaderMap) -> Self {
        let reply = if is_known(tag, headers) { self.unchanged() } else { self };
        let reply = reply.with(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        match HeaderValue::try_from(tag) {
            Ok(tag) => reply.with(ETAG, tag),
            Err(_) => reply,
        }
    }

    /// Status line and headers as they are sent (RFC 9112, sections 4 and 5), with the length of the body; without the
    /// date, which the moment gives.
    pub(super) fn head(&self) -> Bytes {
        let reason = self.status.canonical_reason().unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", self.status.as_str()).into_bytes();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        if self.status != StatusCode::NOT_MODIFIED {
            head.extend_from_slice(format!("content-length: {}\r\n", self.body.len()).as_bytes());
        }
        head.into()
    }

    /// The answer as warp takes it.
    pub(super) fn into_warp(self) -> warp::reply::Response {
        let mut response = match self.rest {
            None => Response::new(self.body.into()),
            Some(rest) => {
                let first = stream::iter([Ok::<_, Infallible>(self.body)]);
                warp::Reply::into_response(warp::reply::stream(Alone(Mutex::new(first.chain(rest).boxed()))))
            }
        };
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }

    /// The answer as far as it is known.
    #[cfg(test)]
    pub(super) fn into_response(self) -> Response<Bytes> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// The tag of a body. Whoever has another document under the same 64 bits has made it so for himself.
pub(super) fn tag(body: &[u8]) -> String {
    format!("W/\"{:016x}-{:x}\"", FixedState::default().hash_one(body), body.len())
}

/// The tag of a body that follows from these facts, and from nothing else.
pub(super) fn tag_of(facts: &impl Hash) -> String {
    format!("W/\"{:016x}\"", FixedState::default().hash_one(facts))
}

/// Whether the reader says that he has what that tag stands for.
pub(super) fn is_known(tag: &str, headers: &HeaderMap) -> bool {
    values(headers, &IF_NONE_MATCH).any(|value| names(value, tag))
}

/// The values of all headers of that name that are plain text.
pub(super) fn values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
}

/// Whether a list of tags names that one, weakly compared (RFC 9110, 8.8.3.2), or any.
pub(super) fn names(list: &str, tag: &str) -> bool {
    fn opaque(tag: &str) -> &str {
        tag.trim().trim_start_matches("W/")
    }
    list.trim() == "*" || list.split(',').any(|one| opaque(one) == opaque(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_who_has_the_body_gets_its_tag_alone() {
        let read = |none_match: Option<&str>| {
            let headers = none_match.map(|value| (IF_NONE_MATCH, value.parse().unwrap()));
            Reply::json(StatusCode::OK, &1).tagged(&headers.into_iter().collect()).into_response()
        };
        let whole = read(None);
        let tag = whole.headers()[ETAG].to_str().unwrap().to_owned();
        assert_eq!((whole.status(), &whole.body()[..]), (StatusCode::OK, &b"1"[..]));
        for known in [tag.as_str(), "*", &format!("\"other\", {tag}"), tag.trim_start_matches("W/")] {
            let short = read(Some(known));
            assert_eq!((short.status(), short.body().len()), (StatusCode::NOT_MODIFIED, 0), "{known}");
            assert_eq!(short.headers()[ETAG].to_str().unwrap(), tag);
        }
        assert_eq!(read(Some("W/\"other\"")).status(), StatusCode::OK);
        assert!(!Reply::json(StatusCode::NOT_FOUND, &1).tagged(&HeaderMap::new()).headers.contains_key(ETAG));
    }
}
