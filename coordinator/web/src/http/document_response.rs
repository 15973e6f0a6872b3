//! Responses with documents: compressed as the client accepts, with caching and security headers.

use ::http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_SECURITY_POLICY, ETAG, HeaderName, LINK, REFERRER_POLICY, VARY,
};
use ::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use parallax_service::page_access::authorize::AuthorizedPage;

use super::content_negotiation::{Encoding, encoding};
use super::response::{HttpResponse, header_values, matches_if_none_match};
use crate::page_cache::CompressedDocument;

/// Content security policy of a page: only its own files, nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Browser features a page never uses.
const PERMISSIONS: &str = "camera=(), geolocation=(), microphone=(), payment=(), usb=()";
/// Cache lifetime of an open page, and for how long a stale copy may be used while a new one is fetched or can't
/// be.
const OPEN: &str = "public, max-age=15, stale-while-revalidate=60, stale-if-error=86400";
/// Cache lifetime of the API reference.
const REFERENCE: &str = "public, max-age=300, stale-while-revalidate=86400, stale-if-error=86400";
/// Cache lifetime of an asset, whose name changes with its content.
pub(super) const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// Builds the response with a document of a page the visitor may see.
pub(super) fn document(page: &AuthorizedPage, document: &CompressedDocument, headers: &HeaderMap) -> HttpResponse {
    let reply =
        if page.is_protected() { encoded_response(document, headers) } else { tagged_response(document, headers) };
    let reply = with_security_headers(reply);
    if page.is_protected() {
        return uncacheable(reply);
    }
    let reply = reply.with(CACHE_CONTROL, HeaderValue::from_static(OPEN));
    if page.page().noindex {
        reply.with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
    } else {
        reply
    }
}

/// Builds the response with a document for people.
pub(super) fn html_response(
    base_url: &str,
    page: &AuthorizedPage,
    rendered: &CompressedDocument,
    headers: &HeaderMap,
) -> HttpResponse {
    with_links(base_url, page, vary_on_accept(page, document(page, rendered, headers)))
}

/// Adds links to the machine-readable views (RFC 8288; `status` and `service-desc`: RFC 8631; `api-catalog`: RFC
/// 9727).
fn with_links(base_url: &str, page: &AuthorizedPage, reply: HttpResponse) -> HttpResponse {
    // A page's own host serves no API.
    let root = page.path_prefix();
    let links = format!(
        "<{root}/status.json>; rel=\"status\"; type=\"application/json\", \
         <{root}/feed.atom>; rel=\"alternate\"; type=\"application/atom+xml\", \
         <{base_url}/api/v1/openapi.json>; rel=\"service-desc\"; type=\"application/json\", \
         <{root}/.well-known/api-catalog>; rel=\"api-catalog\""
    );
    match HeaderValue::try_from(links) {
        Ok(links) => reply.with(LINK, links),
        Err(_) => reply,
    }
}

/// Marks a response as depending on the `Accept` header.
pub(super) fn vary_on_accept(page: &AuthorizedPage, reply: HttpResponse) -> HttpResponse {
    let vary = if page.is_protected() { "accept, accept-encoding, cookie" } else { "accept, accept-encoding" };
    reply.with(VARY, HeaderValue::from_static(vary))
}

/// Builds the response with the API reference, which is the same for everybody until the service is updated.
pub(super) fn reference(document: &CompressedDocument, base_url: &str, headers: &HeaderMap) -> HttpResponse {
    let reply = with_security_headers(tagged_response(document, headers))
        .with(CACHE_CONTROL, HeaderValue::from_static(REFERENCE));
    match HeaderValue::try_from(format!("<{base_url}/api/v1/openapi.json>; rel=\"service-desc\"")) {
        Ok(link) => reply.with(LINK, link),
        Err(_) => reply,
    }
}

/// Adds a page's security headers.
fn with_security_headers(reply: HttpResponse) -> HttpResponse {
    reply
        .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
        .with(HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS))
}

/// Adds the headers of a protected page: uncacheable and not indexed.
pub(super) fn uncacheable(reply: HttpResponse) -> HttpResponse {
    reply
        .with(CACHE_CONTROL, HeaderValue::from_static("private, no-store"))
        .with(VARY, HeaderValue::from_static("accept-encoding, cookie"))
        .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
}

/// Allows cross-origin reads if everybody may see the page.
pub(super) fn allow_cross_origin(page: &AuthorizedPage, reply: HttpResponse) -> HttpResponse {
    if page.is_protected() {
        return reply;
    }
    // A sandboxed frame needs to know the age of a copy.
    reply
        .with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))
        .with(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("age, date"))
}

/// Sets the cache lifetime if everybody may see the page.
pub(super) fn with_cache_lifetime(
    page: &AuthorizedPage,
    reply: HttpResponse,
    cache_control: HeaderValue,
) -> HttpResponse {
    if page.is_protected() { reply } else { reply.with(CACHE_CONTROL, cache_control) }
}

/// Builds the response with the document and its tag, or a 304 without decompressing if the client has the
/// document.
pub(super) fn tagged_response(document: &CompressedDocument, headers: &HeaderMap) -> HttpResponse {
    let reply = if matches_if_none_match(&document.tag, headers) {
        vary_on_encoding(HttpResponse::bytes(document.media, Bytes::new()).not_modified())
    } else {
        encoded_response(document, headers)
    };
    match HeaderValue::try_from(document.tag.as_str()) {
        Ok(tag) => reply.with(ETAG, tag),
        Err(_) => reply,
    }
}

fn encoded_response(document: &CompressedDocument, headers: &HeaderMap) -> HttpResponse {
    let (body, encoding) = match encoding(header_values(headers, &ACCEPT_ENCODING)) {
        Encoding::Brotli => (document.brotli.clone(), Some("br")),
        Encoding::Gzip => (document.gzip.clone(), Some("gzip")),
        Encoding::Plain => (document.decompressed(), None),
    };
    let reply = vary_on_encoding(HttpResponse::bytes(document.media, body)).shared();
    match encoding {
        Some(encoding) => reply.with(CONTENT_ENCODING, HeaderValue::from_static(encoding)),
        None => reply,
    }
}

fn vary_on_encoding(reply: HttpResponse) -> HttpResponse {
    reply.with(VARY, HeaderValue::from_static("accept-encoding"))
}
