//! Index of responses for the fast path: a request that was answered before is found by host and path, and skips
//! routing and the access check until the next edit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use ::http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, IF_NONE_MATCH, TRANSFER_ENCODING};
use ::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::page_view::TimeRange;
use parallax_service::Services;
use parallax_service::page_access::authorize::{AuthorizedPage, PageAddress};

use super::response_memory::UNCOUNTED_BYTES;
use super::simple_request::SimpleRequest;
use crate::http::content_negotiation::{Encoding, encoding, prefers_markdown, values_prefer_markdown};
use crate::http::document_response::html_response;
use crate::http::response::{HttpResponse, etag_list_contains};
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::{CompressedDocument, DocumentKind, PageCache};

/// Indexed requests at most; one more clears the index.
const MAX_ENTRIES: usize = 4096;
/// Bytes of a host with its port: a name has at most 253, a port five.
const MAX_HOST: usize = 260;

/// Bytes of all cached response heads; a head beyond that is built for each request.
const MAX_HEAD_BYTES: usize = 4 << 20;

/// A rendered response, complete except for its length and date.
#[derive(Debug)]
pub(in crate::http) struct RenderedResponse {
    pub(super) status: StatusCode,
    /// Status line and headers, each with its line ending, except for those that each sending adds.
    pub(in crate::http) head: Bytes,
    pub(in crate::http) body: Bytes,
}

impl From<&HttpResponse> for RenderedResponse {
    fn from(reply: &HttpResponse) -> Self {
        Self { status: reply.status(), head: reply.head(), body: Bytes::copy_from_slice(reply.body()) }
    }
}

/// Result of a look-up in the cache of responses.
pub(in crate::http) enum FastPathLookup {
    /// The response is cached.
    Ready(RenderedResponse),
    /// The document must be rendered first. If the future returns true, another look-up may find it.
    Rendering(BoxFuture<'static, bool>),
}

/// Index of answered requests.
#[derive(Debug)]
pub(in crate::http) struct ResponseIndex {
    service: Arc<Services>,
    page_cache: PageCache,
    state: RwLock<IndexState>,
    /// Bytes of the cached response heads.
    head_bytes: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct IndexState {
    /// Number of the last edit when access was checked.
    last_edit: u64,
    /// Entries by host (normalized, without a port), then by path and query.
    hosts: BTreeMap<String, BTreeMap<String, Arc<IndexedResponse>>>,
    count: usize,
}

#[derive(Debug)]
struct IndexedResponse {
    page: AuthorizedPage,
    kind: DocumentKind,
    /// Response heads of the document that was sent last.
    heads: ArcSwapOption<ResponseHeads>,
}

/// Response heads for one document.
#[derive(Debug)]
struct ResponseHeads {
    /// The document's tag; documents with the same tag may differ in their time of writing and their length.
    tag: String,
    brotli: HeadPair,
    gzip: HeadPair,
    /// Bytes of these heads, which are released with them, and the total of all heads.
    own_bytes: AtomicUsize,
    total_bytes: Arc<AtomicUsize>,
}

impl ResponseHeads {
    fn new(tag: &str, total_bytes: &Arc<AtomicUsize>) -> Self {
        Self {
            tag: tag.to_owned(),
            brotli: HeadPair::default(),
            gzip: HeadPair::default(),
            own_bytes: AtomicUsize::new(0),
            total_bytes: Arc::clone(total_bytes),
        }
    }

    /// Reserves that many bytes; returns false if there are not enough.
    fn reserve(&self, bytes: usize) -> bool {
        let new_total =
            |total_bytes: usize| total_bytes.checked_add(bytes).filter(|total_bytes| *total_bytes <= MAX_HEAD_BYTES);
        let is_taken = self.total_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, new_total).is_ok();
        if is_taken {
            self.own_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        is_taken
    }
}

impl Drop for ResponseHeads {
    fn drop(&mut self) {
        self.total_bytes.fetch_sub(*self.own_bytes.get_mut(), Ordering::Relaxed);
    }
}

/// Status and head of the full response, and of the 304 response.
#[derive(Debug, Default)]
struct HeadPair {
    full: OnceLock<(StatusCode, Bytes)>,
    not_modified: OnceLock<(StatusCode, Bytes)>,
}

impl IndexedResponse {
    /// Returns the response with that document. Clients that accept no compression are not served from here, and
    /// long documents take the regular path, where they are counted.
    fn raw_response(
        &self,
        index: &ResponseIndex,
        document: &CompressedDocument,
        encoding: Encoding,
        is_unchanged: bool,
    ) -> Option<RenderedResponse> {
        let cached = self.heads.load_full().filter(|heads| heads.tag == document.tag);
        let heads = cached.unwrap_or_else(|| {
            let heads = Arc::new(ResponseHeads::new(&document.tag, &index.head_bytes));
            self.heads.store(Some(Arc::clone(&heads)));
            heads
        });
        let (head_pair, accepted, body) = match encoding {
            Encoding::Brotli => (&heads.brotli, "br", &document.brotli),
            Encoding::Gzip => (&heads.gzip, "gzip", &document.gzip),
            Encoding::Plain => return None,
        };
        if !is_unchanged && body.len() > UNCOUNTED_BYTES {
            return None;
        }
        let cached_head = if is_unchanged { &head_pair.not_modified } else { &head_pair.full };
        let (status, head) = cached_head.get().cloned().unwrap_or_else(|| {
            let mut request_headers = HeaderMap::new();
            request_headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            if is_unchanged {
                request_headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
            }
            let reply = html_response(index.service.base_url(), &self.page, document, &request_headers);
            let head_parts = (reply.status(), reply.head());
            if heads.reserve(head_parts.1.len()) {
                // A concurrent request may have set it; both are equal.
                let _ = cached_head.set(head_parts.clone());
            }
            head_parts
        });
        let body = if is_unchanged { Bytes::new() } else { body.clone() };
        Some(RenderedResponse { status, head, body })
    }
}

impl ResponseIndex {
    /// Creates an empty index of documents in that cache.
    pub(in crate::http) fn new(service: Arc<Services>, page_cache: PageCache) -> Self {
        Self { service, page_cache, state: RwLock::default(), head_bytes: Arc::default() }
    }

    /// Returns the response to an indexed request whose document is cached; all others take the regular path.
    pub(in crate::http) fn respond<B>(&self, request: &Request<B>) -> Option<HttpResponse> {
        let headers = request.headers();
        let is_plain = request.method() == Method::GET
            && request.uri().scheme().is_none()
            && [CONTENT_LENGTH, TRANSFER_ENCODING, EXPECT].iter().all(|name| !headers.contains_key(name));
        let path = request.uri().path_and_query().filter(|_| is_plain)?.as_str();
        let host = host(headers).filter(|_| !prefers_markdown(headers))?;
        let entry = self.find(host, path)?;
        let cached = self.page_cache.get_cached(&entry.page, &entry.kind)?;
        Some(html_response(self.service.base_url(), &entry.page, &cached, headers))
    }

    /// Returns the response to a request over HTTP/1.1, or the rendering of an indexed document that is not cached.
    pub(in crate::http) fn respond_raw(&self, question: &SimpleRequest<'_>) -> Option<FastPathLookup> {
        let mut hosts = question.header_values("host");
        let host = hosts.next().filter(|_| hosts.next().is_none()).and_then(normalized_host)?;
        if values_prefer_markdown(question.header_values("accept")) {
            return None;
        }
        let entry = self.find(host, question.path)?;
        let encoding = encoding(question.header_values("accept-encoding"));
        let Some(cached) = self.page_cache.get_cached(&entry.page, &entry.kind) else {
            let page_cache = self.page_cache.clone();
            let render = async move { page_cache.get(&entry.page, entry.kind.clone()).await.is_ok() };
            return Some(FastPathLookup::Rendering(render.boxed()));
        };
        let is_unchanged = question.header_values("if-none-match").any(|tags| etag_list_contains(tags, &cached.tag));
        entry.raw_response(self, &cached, encoding, is_unchanged).map(FastPathLookup::Ready)
    }

    /// Finds the entry of a host and path, if nothing was edited since.
    fn find(&self, host: &str, path: &str) -> Option<Arc<IndexedResponse>> {
        let index = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let is_current = index.last_edit == self.service.last_edit();
        index.hosts.get(host).filter(|_| is_current)?.get(path).map(Arc::clone)
    }

    /// Adds a request to the index if everybody may see its document.
    pub(in crate::http) fn insert(&self, call: &RoutedRequest<()>, page: &AuthorizedPage, kind: &DocumentKind) {
        let edit = self.service.last_edit();
        let (slug, address) = (&page.page().slug, page.address());
        // Custom hosts are known only as far as the journal has been read.
        if call.method != Method::GET || self.page_cache.is_behind() || !is_page_query(&call.query) {
            return;
        }
        let Some(host) = host(&call.headers) else { return };
        let own_slug = self.service.hosts.slug_of_host(host).ok().flatten();
        let is_own = own_slug.as_ref() == Some(slug);
        // Made-up hosts must not fill the memory.
        let is_known = is_own || (own_slug.is_none() && self.service.hosts.is_base_host(host));
        if is_own != (address == PageAddress::OwnHost) || !is_known {
            return;
        }
        // Access is checked again: the earlier check may predate the edit.
        let Ok(page) = self.service.page_access.authorize_anonymous(slug, address) else { return };
        if page.is_protected() {
            return;
        }
        let inner = call.path.as_str();
        let path = match address {
            PageAddress::BasePath => inner,
            PageAddress::OwnHost => match inner.strip_prefix("/p/").and_then(|rest| rest.strip_prefix(slug.as_str())) {
                Some("") => "/",
                Some(rest) => rest,
                None => return,
            },
        };
        let query = if call.query.is_empty() { String::new() } else { format!("?{}", call.query) };
        let entry = Arc::new(IndexedResponse { page, kind: kind.clone(), heads: ArcSwapOption::empty() });
        let mut index = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if index.last_edit > edit {
            return;
        }
        if index.last_edit < edit || index.count >= MAX_ENTRIES {
            *index = IndexState { last_edit: edit, ..IndexState::default() };
        }
        let paths = index.hosts.entry(host.to_owned()).or_default();
        if paths.insert(format!("{path}{query}"), entry).is_none() {
            index.count += 1;
        }
    }
}

/// Returns true for the queries that a page's links have. Made-up queries must not fill the memory.
fn is_page_query(query: &str) -> bool {
    query.is_empty() || query.strip_prefix("range=").is_some_and(|name| TimeRange::from_name(name).is_some())
}

/// Returns the request's host if there is exactly one and it is normalized. The port does not distinguish pages and
/// is left out.
fn host(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(HOST).iter();
    let host = values.next()?.to_str().ok().filter(|_| values.next().is_none())?;
    normalized_host(host)
}

fn normalized_host(host: &str) -> Option<&str> {
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let is_sound = host.len() <= MAX_HOST
        && !name.is_empty()
        && !name.ends_with('.')
        && name.bytes().all(is_plain)
        && port.bytes().all(|byte| byte.is_ascii_digit());
    is_sound.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_heads_are_limited_in_bytes_and_release_them() {
        let total_bytes = Arc::default();
        let [first, second] = ["a", "b"].map(|tag| ResponseHeads::new(tag, &total_bytes));
        assert!(first.reserve(MAX_HEAD_BYTES - 10) && second.reserve(10));
        assert!(!second.reserve(1) && !first.reserve(usize::MAX));
        drop(first);
        assert_eq!(total_bytes.load(Ordering::Relaxed), 10);
        assert!(second.reserve(MAX_HEAD_BYTES - 10));
        drop(second);
        assert_eq!(total_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_host_has_one_form_whatever_its_port() {
        for host in ["shop.example", "shop.example:", "shop.example:443", "shop.example:00443"] {
            assert_eq!(normalized_host(host), Some("shop.example"), "{host}");
        }
        let too_long = "a".repeat(MAX_HOST + 1);
        for other in
            ["", ":80", "Shop.example", "shop.example.", "shop.example:a", "a:1:2", "[::1]:80", "a b", &too_long]
        {
            assert_eq!(normalized_host(other), None, "{other}");
        }
    }
}
