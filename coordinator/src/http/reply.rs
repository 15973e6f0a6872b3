//! An answer before it is on the wire.

use ::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use ::http::{HeaderMap, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use parallax_core::quota::Allowance;
use serde::Serialize;

/// What a page for people may load and do: nothing.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Status, headers and body.
#[derive(Debug)]
pub(super) struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    /// A JSON document.
    pub(super) fn json(status: StatusCode, document: &impl Serialize) -> Self {
        Self::written(status, serde_json::to_vec(document).unwrap_or_default())
    }

    /// A JSON document that is written already; without one where the status has none.
    pub(super) fn written(status: StatusCode, document: Vec<u8>) -> Self {
        let reply = Self { status, headers: HeaderMap::new(), body: document.into() }
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if status == StatusCode::NO_CONTENT {
            reply
        } else {
            reply.with(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        }
    }

    /// Nothing but a status.
    pub(super) fn empty(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), body: Bytes::new() }
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
    }

    /// A word in plain text that no one may keep.
    pub(super) fn text(text: &'static str) -> Self {
        Self { status: StatusCode::OK, headers: HeaderMap::new(), body: Bytes::from_static(text.as_bytes()) }
            .with(CONTENT_TYPE, HeaderValue::from_static("text/plain"))
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
    }

    /// A page for people, which loads nothing.
    pub(super) fn html(text: String) -> Self {
        Self { status: StatusCode::OK, headers: HeaderMap::new(), body: text.into() }
            .with(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))
            .with(CACHE_CONTROL, HeaderValue::from_static("public, max-age=15"))
            .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))
            .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
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

    /// The answer as warp takes it.
    pub(super) fn into_response(self) -> Response<Bytes> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}
