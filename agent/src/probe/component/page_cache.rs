//! Cache entry of one vendor's page: its kind, the addresses of its documents, and the last reading of the
//! components that monitors request.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::size_of,
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parallax_protocol::result::WireOwnFault;
use tokio::time::Instant;

mod cached_reading;
mod document_fetch;

use cached_reading::CachedReading;
pub(super) use cached_reading::ReadingResult;
use document_fetch::{DocumentFetcher, DocumentMiss};

use super::unreadable;
use crate::clock::AgentClock;
use crate::probe::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts},
    vendor::{self, MAX_PAGE, VendorDocument, VendorFormat, VendorPage},
};

/// Consecutive failed readings after which a page is detected from scratch.
const MAX_FAILURES: u32 = 3;
/// Maximum number of pages of one list that are read; a longer list is unreadable, since a part of it can't
/// prove that all is well.
const MAX_LIST_PAGES: usize = 20;
/// Message for an address without a document.
const NOT_FOUND: &str = "it answers with status 404";

/// State of a page.
#[derive(Debug, Default)]
pub(super) struct VendorPageEntry {
    format: Option<&'static VendorFormat>,
    /// The page's id, if its kind has one that a document contains.
    id: Option<String>,
    /// The kind to try next, while none is detected.
    next: usize,
    /// Documents by address.
    documents: BTreeMap<String, DocumentState>,
    /// Unreadable documents of the format, by index.
    unreadable: BTreeSet<usize>,
    cached: Option<CachedReading>,
    last: Option<(Instant, Result<(), String>)>,
    failures: u32,
}

/// A document that was read: its validators for conditional requests, and whether another page of the list
/// follows.
#[derive(Debug)]
struct DocumentState {
    validators: Vec<(HeaderName, HeaderValue)>,
    has_next: bool,
}

/// Result of fetching all documents.
enum PageRead {
    Page(VendorPage),
    /// No document has changed.
    Same,
    /// Some have changed: the others are needed too.
    Mixed,
}

/// A fetched document.
enum FetchedDocument {
    Page(VendorPage),
    /// The document has not changed; true if another page of the list follows.
    Same(bool),
}

impl VendorPageEntry {
    /// Returns the detected product.
    pub(super) fn product(&self) -> Option<&'static str> {
        self.format.map(|format| format.name)
    }

    /// Returns the last reading of a component, or the reason why there is none, if it is no older than
    /// `fresh`.
    pub(super) fn last(&self, fresh: Duration, component: Option<&str>) -> Option<Result<ReadingResult, String>> {
        let (_, last) = self.last.as_ref().filter(|(at, _)| at.elapsed() < fresh)?;
        match last {
            Ok(()) => self.cached.as_ref()?.reading_of(component).map(Ok),
            Err(why) => Some(Err(why.clone())),
        }
    }

    /// Returns the reading of a component from a page that was just read.
    pub(super) fn reading_of(&self, component: Option<&str>) -> ReadingResult {
        self.cached.as_ref().and_then(|cached| cached.reading_of(component)).unwrap_or(Err(vendor::NoReading::Empty))
    }

    /// Caches a reading for other checks.
    pub(super) fn cache(&mut self, read: &Result<(), CheckError>) {
        match read {
            Ok(()) => {
                self.failures = 0;
                self.last = Some((Instant::now(), Ok(())));
            }
            Err(CheckError::Own(WireOwnFault::VendorUnreadable { detail })) => {
                self.last = Some((Instant::now(), Err(detail.to_string())));
                self.failures += 1;
                if self.format.is_some() && self.failures >= MAX_FAILURES {
                    (self.format, self.id, self.next, self.failures) = (None, None, 0, 0);
                    self.clear();
                }
            }
            // A fault on the agent's side is no information about the page.
            Err(_) => self.last = None,
        }
    }

    fn clear(&mut self) {
        self.documents.clear();
        self.unreadable.clear();
        self.cached = None;
    }

    /// Returns the approximate memory in bytes.
    pub(super) fn size(&self) -> usize {
        let documents = self.documents.iter().map(|(url, state)| {
            let validators = state.validators.iter().map(|(_, value)| value.len() + size_of::<HeaderValue>());
            url.len() + size_of::<DocumentState>() + validators.sum::<usize>()
        });
        size_of::<Self>() + documents.sum::<usize>() + self.cached.as_ref().map_or(0, CachedReading::size)
    }

    /// Reads the page for the requested components. While its kind is unknown, kinds are tried with at
    /// most `max_requests` requests, or those of one kind; the next reading tries the following ones.
    pub(super) async fn read(
        &mut self,
        base: &str,
        wanted: &BTreeSet<Option<String>>,
        max_requests: usize,
        (account, context): (u32, &ProbeContext),
        deadline: Instant,
        facts: &mut CheckFacts,
    ) -> Result<(), CheckError> {
        let mut fetcher =
            DocumentFetcher { base, context, account, deadline, facts, requested: wanted, remaining_bytes: 0 };
        if let Some(format) = self.format {
            return self.read_as(format, &mut fetcher).await.map_err(|miss| match miss {
                DocumentMiss::Document(why) => unreadable(why),
                DocumentMiss::Unreachable(error) => error,
            });
        }
        let formats = vendor::candidates(base);
        let first = self.next;
        let mut remaining_requests = max_requests;
        let mut why: Option<String> = None;
        for (at, format) in formats.iter().copied().enumerate().skip(first) {
            let requests = vendor::max_requests(format, base);
            if at > first && requests > remaining_requests {
                self.next = at;
                let why = why.map_or_else(String::new, |why| format!(" ({why})"));
                return Err(unreadable(format!(
                    "not recognised yet{why}; the next check tries more kinds of status page"
                )));
            }
            remaining_requests = remaining_requests.saturating_sub(requests);
            self.id = None;
            self.clear();
            match self.read_as(format, &mut fetcher).await {
                Ok(()) => {
                    (self.format, self.next) = (Some(format), 0);
                    return Ok(());
                }
                // The server is unreachable, so the other addresses are too. But a server that fails at this
                // address twice is not asked for it forever.
                Err(DocumentMiss::Unreachable(error)) => {
                    self.next = (if at == first { at + 1 } else { at }) % formats.len();
                    return Err(error);
                }
                // A document at one address is more informative than a missing one at another.
                Err(DocumentMiss::Document(miss)) => why = why.filter(|why| why != NOT_FOUND).or(Some(miss)),
            }
        }
        self.next = 0;
        Err(unreadable(match why {
            // The page's address determines its kind.
            Some(why) if formats.len() == 1 => why,
            Some(why) => format!("no known kind of status page ({why})"),
            None => "no known kind of status page".to_owned(),
        }))
    }

    async fn read_as(&mut self, format: &VendorFormat, fetcher: &mut DocumentFetcher<'_>) -> Result<(), DocumentMiss> {
        if self.id.is_none() && !format.ids.is_empty() {
            self.id = Some(fetcher.id(format).await?);
        }
        // All or nothing: changed documents can't be combined with ones that were not cached. An interrupted
        // reading leaves no validators.
        let previous = self.cached.take();
        let conditional = previous.as_ref().is_some_and(|cached| cached.has_all(fetcher.requested))
            && self.documents.values().all(|state| !state.validators.is_empty());
        let read = match self.read_all(format, conditional, fetcher).await? {
            PageRead::Mixed => self.read_all(format, false, fetcher).await?,
            read => read,
        };
        self.cached = match read {
            PageRead::Page(page) => Some(CachedReading::new(page, fetcher.requested)),
            PageRead::Same | PageRead::Mixed => previous,
        };
        Ok(())
    }

    /// Fetches every document; if `conditional`, only those that have changed.
    async fn read_all(
        &mut self,
        format: &VendorFormat,
        conditional: bool,
        fetcher: &mut DocumentFetcher<'_>,
    ) -> Result<PageRead, DocumentMiss> {
        fetcher.remaining_bytes = format.max_total_bytes();
        let (mut whole, mut same): (Option<VendorPage>, bool) = (None, false);
        let unreadable = std::mem::take(&mut self.unreadable);
        for (index, document) in format.documents.iter().enumerate() {
            let mut n = 1;
            loop {
                let continues = match self.document(document, n, conditional, fetcher).await {
                    Ok(FetchedDocument::Same(continues)) => {
                        same = true;
                        continues
                    }
                    Ok(FetchedDocument::Page(page)) => {
                        let continues = page.has_next;
                        add(&mut whole, page)?;
                        continues
                    }
                    // The other documents suffice for a verdict; states that they lack stay unknown.
                    Err(DocumentMiss::Document(why)) if index > 0 && n == 1 => {
                        self.unreadable.insert(index);
                        if !(conditional && unreadable.contains(&index)) {
                            add(&mut whole, VendorPage::unreadable(why))?;
                        }
                        false
                    }
                    Err(miss) => return Err(miss),
                };
                if !continues {
                    break;
                }
                n += 1;
                if n > MAX_LIST_PAGES {
                    return Err(DocumentMiss::Document(format!("its list has more than {MAX_LIST_PAGES} pages")));
                }
            }
        }
        Ok(match whole {
            Some(_) if same => PageRead::Mixed,
            None if same => PageRead::Same,
            whole => PageRead::Page(whole.unwrap_or_default()),
        })
    }

    /// Returns the document, from its previous address or else from the first address that has it.
    async fn document(
        &mut self,
        document: &VendorDocument,
        n: usize,
        conditional: bool,
        fetcher: &mut DocumentFetcher<'_>,
    ) -> Result<FetchedDocument, DocumentMiss> {
        let mut addresses = document.addresses(fetcher.base, self.id.as_deref(), n);
        addresses.sort_by_key(|url| !self.documents.contains_key(url));
        let mut miss = DocumentMiss::Document("not there".to_owned());
        for url in addresses {
            match self.get(document, &url, conditional, fetcher).await {
                Err(DocumentMiss::Document(why)) => miss = DocumentMiss::Document(why),
                result => return result,
            }
        }
        Err(miss)
    }

    async fn get(
        &mut self,
        document: &VendorDocument,
        url: &str,
        conditional: bool,
        fetcher: &mut DocumentFetcher<'_>,
    ) -> Result<FetchedDocument, DocumentMiss> {
        let previous = self.documents.get(url).filter(|_| conditional);
        let validators = previous.iter().flat_map(|state| state.validators.iter().cloned()).collect();
        let answer = fetcher.fetch(url, validators, document.max_bytes).await?;
        match (answer.status, previous) {
            (304, Some(state)) => return Ok(FetchedDocument::Same(state.has_next)),
            (200, _) => {}
            (404, _) => return Err(DocumentMiss::Document(NOT_FOUND.to_owned())),
            (status, _) => return Err(DocumentMiss::Document(format!("it answers with status {status}"))),
        }
        let now_ms = AgentClock::new(0).wall_ms();
        let Some(mut page) = document.read(&answer.body, now_ms) else {
            self.documents.remove(url);
            return Err(DocumentMiss::Document(describe_other(&answer.body).to_owned()));
        };
        page.truncate();
        // Contents that expire without a change are fetched unconditionally.
        let validators = if document.is_stable() { validators_of(&answer.headers) } else { Vec::new() };
        self.documents.insert(url.to_owned(), DocumentState { validators, has_next: page.has_next });
        Ok(FetchedDocument::Page(page))
    }
}

/// Merges a document with the previous ones, within the page's limit.
fn add(whole: &mut Option<VendorPage>, page: VendorPage) -> Result<(), DocumentMiss> {
    match whole {
        None => *whole = Some(page),
        Some(whole) => whole.merge(&page),
    }
    match whole {
        Some(whole) if whole.size() > MAX_PAGE => Err(DocumentMiss::Document("it is over the size limit".to_owned())),
        _ => Ok(()),
    }
}

/// Describes a response that is not the requested document.
fn describe_other(body: &[u8]) -> &'static str {
    match String::from_utf8_lossy(body).trim_start_matches(['\u{feff}', ' ', '\r', '\n', '\t']).chars().next() {
        None => "its answer is empty",
        Some('<') => "HTML instead of JSON",
        Some('{' | '[') => "its JSON is of another form",
        Some(_) => "its answer is not JSON",
    }
}

/// Returns a response's validators for conditional requests (RFC 9110, section 13).
fn validators_of(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    [(header::ETAG, header::IF_NONE_MATCH), (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE)]
        .into_iter()
        .filter_map(|(validator, condition)| Some((condition, headers.get(validator)?.clone())))
        .collect()
}
