//! HTTP responses as handlers build them: status, headers, body, ETag and caching.

use std::convert::Infallible;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use ::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH,
    LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use ::http::{HeaderMap, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use foldhash::quality::FixedState;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use parallax_core::rate_limit::RateLimitStatus;
use serde::Serialize;

/// Content security policy of HTML pages that load nothing.
const CONTENT_POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Stream of a body without a fixed end.
pub(super) type BodyStream = BoxStream<'static, Result<Bytes, Infallible>>;

/// Makes a body stream `Sync`, as warp requires, although it is never shared between threads.
struct SyncStream(Mutex<BodyStream>);

impl Stream for SyncStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll_next(cx)
    }
}

/// An HTTP response: status, headers and body.
pub(super) struct HttpResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// Bytes that the ETag is computed from; `None` for the whole body.
    etag_source: Option<Bytes>,
    /// Stream sent after the body until the client disconnects.
    stream: Option<BodyStream>,
    /// True if all readers share one copy of the body.
    is_shared: bool,
    /// True if that copy stays in memory for as long as the service runs.
    is_permanent: bool,
    /// True if the request changed something, for requests whose method does not show it (MCP).
    has_written: bool,
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

impl HttpResponse {
    const fn from_parts(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Self {
            status,
            headers,
            body,
            etag_source: None,
            stream: None,
            is_shared: false,
            is_permanent: false,
            has_written: false,
        }
    }

    /// Builds a JSON response.
    pub(super) fn json(status: StatusCode, document: &impl Serialize) -> Self {
        Self::json_bytes(status, serde_json::to_vec(document).unwrap_or_default())
    }

    /// Builds a response of serialized JSON; status 204 has no content type.
    pub(super) fn json_bytes(status: StatusCode, document: impl Into<Bytes>) -> Self {
        let reply = Self::from_parts(status, HeaderMap::new(), document.into())
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if status == StatusCode::NO_CONTENT {
            reply
        } else {
            reply.with(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        }
    }

    /// Computes the ETag from these bytes alone, so that other parts of the body do not change it.
    pub(super) fn with_etag_source(self, source: Vec<u8>) -> Self {
        Self { etag_source: Some(source.into()), ..self }
    }

    /// Builds a response without a body.
    pub(super) fn empty(status: StatusCode) -> Self {
        Self::from_parts(status, HeaderMap::new(), Bytes::new())
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
    }

    /// Builds a plain text response that must not be cached.
    pub(super) fn text(text: &'static str) -> Self {
        let body = Bytes::from_static(text.as_bytes());
        Self::from_parts(StatusCode::OK, HeaderMap::new(), body)
            .with(CONTENT_TYPE, HeaderValue::from_static("text/plain"))
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
    }

    /// Builds a response of a media type; the caller sets the caching headers.
    pub(super) fn bytes(media: &'static str, body: impl Into<Bytes>) -> Self {
        // The number of headers of a page document, so that the map does not grow.
        let headers = HeaderMap::with_capacity(12);
        Self::from_parts(StatusCode::OK, headers, body.into())
            .with(CONTENT_TYPE, HeaderValue::from_static(media))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
    }

    /// Marks the body as shared by all readers.
    pub(super) fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Marks the body as shared by all readers and permanently in memory.
    pub(super) fn permanent(self) -> Self {
        Self { is_permanent: true, ..self.shared() }
    }

    /// Sets whether the request changed something.
    pub(super) fn with_has_written(self, has_written: bool) -> Self {
        Self { has_written, ..self }
    }

    /// Returns true if the request changed something.
    pub(super) const fn has_written(&self) -> bool {
        self.has_written
    }

    /// Returns true if the body is permanently in memory.
    pub(super) const fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    /// Returns true if all readers share one copy of the body.
    pub(super) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns true if a stream follows the body.
    pub(super) const fn has_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Replaces the body by a function of it.
    pub(super) fn map_body(self, make: impl FnOnce(Bytes) -> Bytes) -> Self {
        Self { body: make(self.body), ..self }
    }

    /// Appends a stream to the body.
    pub(super) fn with_stream(self, stream: BodyStream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// Turns the response into 304 Not Modified.
    pub(super) fn not_modified(mut self) -> Self {
        self.status = StatusCode::NOT_MODIFIED;
        self.body = Bytes::new();
        self.headers.remove(CONTENT_TYPE);
        self
    }

    /// Builds an HTML page that loads no resources.
    pub(super) fn html(text: String) -> Self {
        Self::bytes("text/html; charset=utf-8", text)
            .with(CACHE_CONTROL, HeaderValue::from_static("public, max-age=15"))
            .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY))
            .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
    }

    /// Sets the status.
    pub(super) const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The status.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// A header.
    pub(super) fn header(&self, name: &HeaderName) -> Option<&HeaderValue> {
        self.headers.get(name)
    }

    /// The body.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Sets a header.
    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Adds the `RateLimit` headers.
    pub(super) fn with_allowance(self, allowance: &RateLimitStatus) -> Self {
        self.with(HeaderName::from_static("ratelimit-limit"), HeaderValue::from(allowance.limit))
            .with(HeaderName::from_static("ratelimit-remaining"), HeaderValue::from(allowance.remaining))
            .with(HeaderName::from_static("ratelimit-reset"), HeaderValue::from(allowance.reset_seconds))
    }

    /// Forbids caching and indexing: for pages that not everyone may see.
    pub(super) fn no_store(mut self) -> Self {
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

    /// Marks the response as a replay for an idempotency key.
    pub(super) fn replayed(self) -> Self {
        self.with(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"))
    }

    /// Marks a replay as showing the current state, since the first response was too long to store.
    pub(super) fn replayed_current(self) -> Self {
        self.with(HeaderName::from_static("idempotency-answer"), HeaderValue::from_static("current"))
    }

    /// Sets the `Location` header.
    pub(super) fn with_location(self, path: &str) -> Self {
        match HeaderValue::try_from(path) {
            Ok(path) => self.with(LOCATION, path),
            Err(_) => self,
        }
    }

    /// Adds an ETag to a response to a read, and turns it into 304 if the client has that version (RFC 9110, section
    /// 13.1.2). The response may be stored, but must be revalidated before use.
    pub(super) fn with_etag(self, headers: &HeaderMap) -> Self {
        // Of a stream only the beginning is known.
        if self.status != StatusCode::OK || self.stream.is_some() {
            return self;
        }
        let tag = etag_of_body(self.etag_source.as_ref().unwrap_or(&self.body));
        self.with_known_etag(&tag, headers)
    }

    /// Like [`Self::with_etag`], with an ETag that is already computed.
    pub(super) fn with_known_etag(self, tag: &str, headers: &HeaderMap) -> Self {
        let reply = if matches_if_none_match(tag, headers) { self.not_modified() } else { self };
        let reply = reply.with(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        match HeaderValue::try_from(tag) {
            Ok(tag) => reply.with(ETAG, tag),
            Err(_) => reply,
        }
    }

    /// Serializes status line and headers (RFC 9112, sections 4 and 5) without content length and date, which are added
    /// when the response is sent.
    pub(super) fn head(&self) -> Bytes {
        let reason = self.status.canonical_reason().unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", self.status.as_str()).into_bytes();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.into()
    }

    /// Converts to the response type of warp.
    pub(super) fn into_warp(self) -> warp::reply::Response {
        let mut response = match self.stream {
            None => Response::new(self.body.into()),
            Some(stream) => {
                let first = stream::iter([Ok::<_, Infallible>(self.body)]);
                warp::Reply::into_response(warp::reply::stream(SyncStream(Mutex::new(first.chain(stream).boxed()))))
            }
        };
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }

    /// Returns the stream that follows the body.
    #[cfg(test)]
    pub(super) fn into_stream(self) -> Option<BodyStream> {
        self.stream
    }

    /// Converts to a plain response, without the stream.
    #[cfg(test)]
    pub(super) fn into_response(self) -> Response<Bytes> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// ETag of a body, from a 64-bit hash. A client that provokes a collision affects only its own cache.
pub(super) fn etag_of_body(body: &[u8]) -> String {
    format!("W/\"{:016x}-{:x}\"", FixedState::default().hash_one(body), body.len())
}

/// ETag of a body that is determined by these values alone.
pub(super) fn etag_of(inputs: &impl Hash) -> String {
    format!("W/\"{:016x}\"", FixedState::default().hash_one(inputs))
}

/// Returns true if the `If-None-Match` header contains the ETag.
pub(super) fn matches_if_none_match(tag: &str, headers: &HeaderMap) -> bool {
    header_values(headers, &IF_NONE_MATCH).any(|value| etag_list_contains(value, tag))
}

/// Values of all headers of a name, skipping those that are not ASCII text.
pub(super) fn header_values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
}

/// Returns true if a list of ETags contains the one, by weak comparison (RFC 9110, section 8.8.3.2), or is `*`.
pub(super) fn etag_list_contains(list: &str, tag: &str) -> bool {
    fn opaque(tag: &str) -> &str {
        tag.trim().trim_start_matches("W/")
    }
    list.trim() == "*" || list.split(',').any(|one| opaque(one) == opaque(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_with_the_current_body_gets_304() {
        let read = |none_match: Option<&str>| {
            let headers = none_match.map(|value| (IF_NONE_MATCH, value.parse().unwrap()));
            HttpResponse::json(StatusCode::OK, &1).with_etag(&headers.into_iter().collect()).into_response()
        };
        let full = read(None);
        let tag = full.headers()[ETAG].to_str().unwrap().to_owned();
        assert_eq!((full.status(), &full.body()[..]), (StatusCode::OK, &b"1"[..]));
        for matching in [tag.as_str(), "*", &format!("\"other\", {tag}"), tag.trim_start_matches("W/")] {
            let short = read(Some(matching));
            assert_eq!((short.status(), short.body().len()), (StatusCode::NOT_MODIFIED, 0), "{matching}");
            assert_eq!(short.headers()[ETAG].to_str().unwrap(), tag);
        }
        assert_eq!(read(Some("W/\"other\"")).status(), StatusCode::OK);
        assert!(!HttpResponse::json(StatusCode::NOT_FOUND, &1).with_etag(&HeaderMap::new()).headers.contains_key(ETAG));
    }
}
