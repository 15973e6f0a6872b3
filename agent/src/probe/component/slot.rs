//! Cache entry of one vendor's page: its kind, the addresses of its documents, and the last reading of the
//! components that monitors request.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::size_of,
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parallax_protocol::result::OwnFault;
use tokio::time::Instant;

mod held;
mod way;

use held::Held;
pub(super) use held::Said;
use way::{Miss, Way};

use super::unreadable;
use crate::clock::Clock;
use crate::probe::{
    facts::{Facts, Trouble},
    net::Net,
    vendor::{self, Document, Format, MAX_PAGE, Page},
};

/// Consecutive failed readings after which a page is detected from scratch.
const FAILURES: u32 = 3;
/// Maximum number of pages of one list that are read; a longer list is unreadable, since a part of it can't
/// prove that all is well.
const MAX_SHEETS: usize = 20;
/// Message for an address without a document.
const NOT_THERE: &str = "it answers with status 404";

/// State of a page.
#[derive(Debug, Default)]
pub(super) struct Slot {
    format: Option<&'static Format>,
    /// The page's id, if its kind has one that a document contains.
    id: Option<String>,
    /// The kind to try next, while none is detected.
    next: usize,
    /// Documents by address.
    documents: BTreeMap<String, Known>,
    /// Unreadable documents of the format, by index.
    lacks: BTreeSet<usize>,
    held: Option<Held>,
    last: Option<(Instant, Result<(), String>)>,
    failures: u32,
}

/// A document that was read: its validators for conditional requests, and whether another page of the list
/// follows.
#[derive(Debug)]
struct Known {
    validators: Vec<(HeaderName, HeaderValue)>,
    goes_on: bool,
}

/// Result of fetching all documents.
enum Read {
    Page(Page),
    /// No document has changed.
    Same,
    /// Some have changed: the others are needed too.
    Mixed,
}

/// A fetched document.
enum Got {
    Page(Page),
    /// The document has not changed; true if another page of the list follows.
    Same(bool),
}

impl Slot {
    /// Returns the detected product.
    pub(super) fn product(&self) -> Option<&'static str> {
        self.format.map(|format| format.name)
    }

    /// Returns the last reading of a component, or the reason why there is none, if it is no older than
    /// `fresh`.
    pub(super) fn last(&self, fresh: Duration, component: Option<&str>) -> Option<Result<Said, String>> {
        let (_, last) = self.last.as_ref().filter(|(at, _)| at.elapsed() < fresh)?;
        match last {
            Ok(()) => self.held.as_ref()?.said_of(component).map(Ok),
            Err(why) => Some(Err(why.clone())),
        }
    }

    /// Returns the reading of a component from a page that was just read.
    pub(super) fn said_of(&self, component: Option<&str>) -> Said {
        self.held.as_ref().and_then(|held| held.said_of(component)).unwrap_or(Err(vendor::NoReading::Empty))
    }

    /// Caches a reading for other checks.
    pub(super) fn note(&mut self, read: &Result<(), Trouble>) {
        match read {
            Ok(()) => {
                self.failures = 0;
                self.last = Some((Instant::now(), Ok(())));
            }
            Err(Trouble::Own(OwnFault::VendorUnreadable { detail })) => {
                self.last = Some((Instant::now(), Err(detail.to_string())));
                self.failures += 1;
                if self.format.is_some() && self.failures >= FAILURES {
                    (self.format, self.id, self.next, self.failures) = (None, None, 0, 0);
                    self.forget();
                }
            }
            // A fault on the agent's side is no information about the page.
            Err(_) => self.last = None,
        }
    }

    fn forget(&mut self) {
        self.documents.clear();
        self.lacks.clear();
        self.held = None;
    }

    /// Returns the approximate memory in bytes.
    pub(super) fn weight(&self) -> usize {
        let documents = self.documents.iter().map(|(url, known)| {
            let validators = known.validators.iter().map(|(_, value)| value.len() + size_of::<HeaderValue>());
            url.len() + size_of::<Known>() + validators.sum::<usize>()
        });
        size_of::<Self>() + documents.sum::<usize>() + self.held.as_ref().map_or(0, Held::weight)
    }

    /// Reads the page for the requested components. While its kind is unknown, a few kinds are tried; the
    /// next reading tries the following ones.
    pub(super) async fn read(
        &mut self,
        base: &str,
        wanted: &BTreeSet<Option<String>>,
        (account, net): (u32, &Net),
        deadline: Instant,
        facts: &mut Facts,
    ) -> Result<(), Trouble> {
        let mut way = Way { base, net, account, deadline, facts, wanted, left: 0 };
        if let Some(format) = self.format {
            return self.read_as(format, &mut way).await.map_err(|miss| match miss {
                Miss::Document(why) => unreadable(why),
                Miss::Trouble(trouble) => trouble,
            });
        }
        let formats = vendor::candidates(base);
        let first = self.next;
        let mut left = net.pages().tries;
        let mut why: Option<String> = None;
        for (at, format) in formats.iter().copied().enumerate().skip(first) {
            let tries = vendor::tries(format, base);
            if at > first && tries > left {
                self.next = at;
                let why = why.map_or_else(String::new, |why| format!(" ({why})"));
                return Err(unreadable(format!(
                    "not recognised yet{why}; the next check tries more kinds of status page"
                )));
            }
            left = left.saturating_sub(tries);
            self.id = None;
            self.forget();
            match self.read_as(format, &mut way).await {
                Ok(()) => {
                    (self.format, self.next) = (Some(format), 0);
                    return Ok(());
                }
                // The server is unreachable, so the other addresses are too. But a server that fails at this
                // address twice is not asked for it forever.
                Err(Miss::Trouble(away)) => {
                    self.next = (if at == first { at + 1 } else { at }) % formats.len();
                    return Err(away);
                }
                // A document at one address is more informative than a missing one at another.
                Err(Miss::Document(miss)) => why = why.filter(|why| why != NOT_THERE).or(Some(miss)),
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

    async fn read_as(&mut self, format: &Format, way: &mut Way<'_>) -> Result<(), Miss> {
        if self.id.is_none() && !format.ids.is_empty() {
            self.id = Some(way.id(format).await?);
        }
        // All or nothing: changed documents can't be combined with ones that were not cached. An interrupted
        // reading leaves no validators.
        let held = self.held.take();
        let asks = held.as_ref().is_some_and(|held| held.has_all(way.wanted))
            && self.documents.values().all(|known| !known.validators.is_empty());
        let read = match self.read_all(format, asks, way).await? {
            Read::Mixed => self.read_all(format, false, way).await?,
            read => read,
        };
        self.held = match read {
            Read::Page(page) => Some(Held::new(page, way.wanted)),
            Read::Same | Read::Mixed => held,
        };
        Ok(())
    }

    /// Fetches every document; with `asks`, only those that have changed.
    async fn read_all(&mut self, format: &Format, asks: bool, way: &mut Way<'_>) -> Result<Read, Miss> {
        way.left = format.most();
        let (mut whole, mut same): (Option<Page>, bool) = (None, false);
        let lacked = std::mem::take(&mut self.lacks);
        for (place, document) in format.documents.iter().enumerate() {
            let mut n = 1;
            loop {
                let goes_on = match self.document(document, n, asks, way).await {
                    Ok(Got::Same(goes_on)) => {
                        same = true;
                        goes_on
                    }
                    Ok(Got::Page(page)) => {
                        let goes_on = page.goes_on;
                        add(&mut whole, page)?;
                        goes_on
                    }
                    // The other documents suffice for a verdict; states that they lack stay unknown.
                    Err(Miss::Document(why)) if place > 0 && n == 1 => {
                        self.lacks.insert(place);
                        if !(asks && lacked.contains(&place)) {
                            add(&mut whole, Page::lacking(why))?;
                        }
                        false
                    }
                    Err(miss) => return Err(miss),
                };
                if !goes_on {
                    break;
                }
                n += 1;
                if n > MAX_SHEETS {
                    return Err(Miss::Document(format!("its list has more than {MAX_SHEETS} pages")));
                }
            }
        }
        Ok(match whole {
            Some(_) if same => Read::Mixed,
            None if same => Read::Same,
            whole => Read::Page(whole.unwrap_or_default()),
        })
    }

    /// Returns the document, from its previous address or else from the first address that has it.
    async fn document(
        &mut self,
        document: &Document,
        n: usize,
        asks: bool,
        way: &mut Way<'_>,
    ) -> Result<Got, Miss> {
        let mut places = document.places(way.base, self.id.as_deref(), n);
        places.sort_by_key(|place| !self.documents.contains_key(place));
        let mut miss = Miss::Document("not there".to_owned());
        for url in places {
            match self.get(document, &url, asks, way).await {
                Err(Miss::Document(why)) => miss = Miss::Document(why),
                done => return done,
            }
        }
        Err(miss)
    }

    async fn get(
        &mut self,
        document: &Document,
        url: &str,
        asks: bool,
        way: &mut Way<'_>,
    ) -> Result<Got, Miss> {
        let known = self.documents.get(url).filter(|_| asks);
        let validators = known.iter().flat_map(|known| known.validators.iter().cloned()).collect();
        let answer = way.fetch(url, validators, document.most).await?;
        match (answer.status, known) {
            (304, Some(known)) => return Ok(Got::Same(known.goes_on)),
            (200, _) => {}
            (404, _) => return Err(Miss::Document(NOT_THERE.to_owned())),
            (status, _) => return Err(Miss::Document(format!("it answers with status {status}"))),
        }
        let now_ms = Clock::new(0).wall_ms();
        let Some(mut page) = document.read(&answer.body, now_ms) else {
            self.documents.remove(url);
            return Err(Miss::Document(what_else(&answer.body).to_owned()));
        };
        page.cut();
        // Contents that expire without a change are fetched unconditionally.
        let validators = if document.lasts() { validators_of(&answer.headers) } else { Vec::new() };
        self.documents.insert(url.to_owned(), Known { validators, goes_on: page.goes_on });
        Ok(Got::Page(page))
    }
}

/// Merges a document with the previous ones, within the page's limit.
fn add(whole: &mut Option<Page>, page: Page) -> Result<(), Miss> {
    match whole {
        None => *whole = Some(page),
        Some(whole) => whole.merge(&page),
    }
    match whole {
        Some(whole) if whole.weight() > MAX_PAGE => {
            Err(Miss::Document("it is over the size limit".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Describes a response that is not the requested document.
fn what_else(body: &[u8]) -> &'static str {
    match String::from_utf8_lossy(body).trim_start_matches(['\u{feff}', ' ', '\r', '\n', '\t']).chars().next()
    {
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
        .filter_map(|(given, asked)| Some((asked, headers.get(given)?.clone())))
        .collect()
}
