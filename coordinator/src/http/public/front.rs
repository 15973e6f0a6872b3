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
use parallax_core::board::Range;

use super::notes::{is_markdown_liked, likes_markdown};
use super::page::shown;
use super::served::{Encoding, encoding};
use crate::http::Context;
use crate::http::answers::SHORT;
use crate::http::reply::{Reply, names};
use crate::http::route::Call;
use crate::http::short::{Found, Question, Written};
use crate::publish::{Document, Paper};
use crate::service::gate::{Admitted, Door};

/// Indexed requests at most; one more clears the index.
const MOST: usize = 4096;
/// Bytes of a host with its port: a name has at most 253, a port five.
const MAX_HOST: usize = 260;

/// Bytes of all cached response heads; a head beyond that is built for each request.
const MOST_OF_HEADS: usize = 4 << 20;

/// Index of answered requests.
#[derive(Debug, Default)]
pub(in crate::http) struct Front {
    known: RwLock<Known>,
    /// Bytes of the cached response heads.
    taken: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Known {
    /// Number of the last edit when access was checked.
    edit: u64,
    /// Entries by host (normalized, without a port), then by path and query.
    hosts: BTreeMap<String, BTreeMap<String, Arc<Entry>>>,
    count: usize,
}

#[derive(Debug)]
struct Entry {
    page: Admitted,
    paper: Paper,
    /// Response heads of the document that was sent last.
    heads: ArcSwapOption<Heads>,
}

/// Response heads for one document.
#[derive(Debug)]
struct Heads {
    /// The document's tag.
    tag: String,
    /// Sizes of the bodies: documents with the same tag may differ in their time of writing.
    sizes: [usize; 2],
    brotli: Pair,
    gzip: Pair,
    /// Bytes of these heads, which are released with them, and the total of all heads.
    own: AtomicUsize,
    taken: Arc<AtomicUsize>,
}

impl Heads {
    fn new(tag: &str, sizes: [usize; 2], taken: &Arc<AtomicUsize>) -> Self {
        Self {
            tag: tag.to_owned(),
            sizes,
            brotli: Pair::default(),
            gzip: Pair::default(),
            own: AtomicUsize::new(0),
            taken: Arc::clone(taken),
        }
    }

    /// Reserves that many bytes; returns false if there are not enough.
    fn has_room(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= MOST_OF_HEADS);
        let is_taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if is_taken {
            self.own.fetch_add(bytes, Ordering::Relaxed);
        }
        is_taken
    }
}

impl Drop for Heads {
    fn drop(&mut self) {
        self.taken.fetch_sub(*self.own.get_mut(), Ordering::Relaxed);
    }
}

/// Status and head of the full response, and of the 304 response.
#[derive(Debug, Default)]
struct Pair {
    whole: OnceLock<(StatusCode, Bytes)>,
    unchanged: OnceLock<(StatusCode, Bytes)>,
}

impl Entry {
    /// Returns the response with that document. Clients that accept no compression are not served from here, and
    /// long documents take the regular path, where they are counted.
    fn written(
        &self,
        context: &Context,
        document: &Document,
        encoding: Encoding,
        is_unchanged: bool,
    ) -> Option<Written> {
        let sizes = [document.brotli.len(), document.gzip.len()];
        let held = self.heads.load_full().filter(|heads| heads.tag == document.tag && heads.sizes == sizes);
        let heads = held.unwrap_or_else(|| {
            let heads = Arc::new(Heads::new(&document.tag, sizes, &context.front.taken));
            self.heads.store(Some(Arc::clone(&heads)));
            heads
        });
        let (pair, accepted, body) = match encoding {
            Encoding::Brotli => (&heads.brotli, "br", &document.brotli),
            Encoding::Gzip => (&heads.gzip, "gzip", &document.gzip),
            Encoding::Plain => return None,
        };
        if !is_unchanged && body.len() > SHORT {
            return None;
        }
        let kept = if is_unchanged { &pair.unchanged } else { &pair.whole };
        let (status, head) = kept.get().cloned().unwrap_or_else(|| {
            let mut asked = HeaderMap::new();
            asked.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            if is_unchanged {
                asked.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
            }
            let reply = shown(context, &self.page, document, &asked);
            let made = (reply.status(), reply.head());
            if heads.has_room(made.1.len()) {
                // A concurrent request may have set it; both are equal.
                let _ = kept.set(made.clone());
            }
            made
        });
        let body = if is_unchanged { Bytes::new() } else { body.clone() };
        Some(Written { status, head, body })
    }
}

impl Front {
    /// Returns the response to an indexed request whose document is cached; all others take the regular path.
    pub(in crate::http) fn answer<B>(&self, context: &Context, request: &Request<B>) -> Option<Reply> {
        let headers = request.headers();
        let is_plain = request.method() == Method::GET
            && request.uri().scheme().is_none()
            && [CONTENT_LENGTH, TRANSFER_ENCODING, EXPECT].iter().all(|name| !headers.contains_key(name));
        let path = request.uri().path_and_query().filter(|_| is_plain)?.as_str();
        let host = host(headers).filter(|_| !likes_markdown(headers))?;
        let entry = self.known(context, host, path)?;
        let held = context.boards.at_hand(&entry.page, &entry.paper)?;
        Some(shown(context, &entry.page, &held, headers))
    }

    /// Returns the response to a request over HTTP/1.1, or the rendering of an indexed document that is not cached.
    pub(in crate::http) fn written(&self, context: &Context, question: &Question<'_>) -> Option<Found> {
        let mut hosts = question.values("host");
        let host = hosts.next().filter(|_| hosts.next().is_none()).and_then(in_one_form)?;
        if is_markdown_liked(question.values("accept")) {
            return None;
        }
        let entry = self.known(context, host, question.path)?;
        let encoding = encoding(question.values("accept-encoding"));
        let Some(held) = context.boards.at_hand(&entry.page, &entry.paper) else {
            let boards = context.boards.clone();
            let draw = async move { boards.get(&entry.page, entry.paper.clone()).await.is_ok() };
            return Some(Found::Drawing(draw.boxed()));
        };
        let is_unchanged = question.values("if-none-match").any(|tags| names(tags, &held.tag));
        entry.written(context, &held, encoding, is_unchanged).map(Found::Written)
    }

    /// Finds the entry of a host and path, if nothing was edited since.
    fn known(&self, context: &Context, host: &str, path: &str) -> Option<Arc<Entry>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let is_of_now = known.edit == context.service.last_edit();
        known.hosts.get(host).filter(|_| is_of_now)?.get(path).map(Arc::clone)
    }

    /// Adds a request to the index if everybody may see its document.
    pub(super) fn keep(&self, context: &Context, call: &Call<()>, page: &Admitted, paper: &Paper) {
        let edit = context.service.last_edit();
        let (slug, door) = (&page.page().slug, page.door());
        // Custom hosts are known only as far as the journal has been read.
        if call.method != Method::GET || context.boards.is_behind() || !is_usual(&call.query) {
            return;
        }
        let Some(host) = host(&call.headers) else { return };
        let own = context.service.page_at(host).ok().flatten();
        let is_own = own.as_ref() == Some(slug);
        // Made-up hosts must not fill the memory.
        let is_known = is_own || (own.is_none() && context.service.is_base_host(host));
        if is_own != (door == Door::Own) || !is_known {
            return;
        }
        // Access is checked again: the earlier check may predate the edit.
        let Ok(page) = context.service.admit(slug, door) else { return };
        if page.is_guarded() {
            return;
        }
        let inner = call.path.as_str();
        let path = match door {
            Door::Shared => inner,
            Door::Own => match inner.strip_prefix("/p/").and_then(|rest| rest.strip_prefix(slug.as_str())) {
                Some("") => "/",
                Some(rest) => rest,
                None => return,
            },
        };
        let query = if call.query.is_empty() { String::new() } else { format!("?{}", call.query) };
        let entry = Arc::new(Entry { page, paper: paper.clone(), heads: ArcSwapOption::empty() });
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.edit > edit {
            return;
        }
        if known.edit < edit || known.count >= MOST {
            *known = Known { edit, ..Known::default() };
        }
        let paths = known.hosts.entry(host.to_owned()).or_default();
        if paths.insert(format!("{path}{query}"), entry).is_none() {
            known.count += 1;
        }
    }
}

/// Returns true for the queries that a page's links have. Made-up queries must not fill the memory.
fn is_usual(query: &str) -> bool {
    query.is_empty() || query.strip_prefix("range=").is_some_and(|name| Range::named(name).is_some())
}

/// Returns the request's host if there is exactly one and it is normalized. The port does not distinguish pages and
/// is left out.
fn host(headers: &HeaderMap) -> Option<&str> {
    let mut named = headers.get_all(HOST).iter();
    let host = named.next()?.to_str().ok().filter(|_| named.next().is_none())?;
    in_one_form(host)
}

fn in_one_form(host: &str) -> Option<&str> {
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
    fn heads_take_no_more_room_than_there_is_and_give_it_back() {
        let taken = Arc::default();
        let [first, second] = ["a", "b"].map(|tag| Heads::new(tag, [0; 2], &taken));
        assert!(first.has_room(MOST_OF_HEADS - 10) && second.has_room(10));
        assert!(!second.has_room(1) && !first.has_room(usize::MAX));
        drop(first);
        assert_eq!(taken.load(Ordering::Relaxed), 10);
        assert!(second.has_room(MOST_OF_HEADS - 10));
        drop(second);
        assert_eq!(taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_host_has_one_form_whatever_its_port() {
        for host in ["shop.example", "shop.example:", "shop.example:443", "shop.example:00443"] {
            assert_eq!(in_one_form(host), Some("shop.example"), "{host}");
        }
        let long = "a".repeat(MAX_HOST + 1);
        for other in
            ["", ":80", "Shop.example", "shop.example.", "shop.example:a", "a:1:2", "[::1]:80", "a b", &long]
        {
            assert_eq!(in_one_form(other), None, "{other}");
        }
    }
}
