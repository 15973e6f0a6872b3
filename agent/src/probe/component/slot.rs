//! One vendor's page as the agent knows it: its kind, where its documents lie, and the last reading of the components
//! that monitors ask for.

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

/// After so many failed readings in a row a page is looked at as if for the first time.
const FAILURES: u32 = 3;
/// Sheets of one list that are read; a longer list can't be read, since a part of it can't say that all is well.
const MAX_SHEETS: usize = 20;
/// The words for a place without a document.
const NOT_THERE: &str = "it answers with status 404";

/// What is known of a page.
#[derive(Debug, Default)]
pub(super) struct Slot {
    format: Option<&'static Format>,
    /// The page's id, where its kind has one and a document had to tell it.
    id: Option<String>,
    /// The kind that is tried next, while none is known.
    next: usize,
    /// By address.
    documents: BTreeMap<String, Known>,
    /// Documents of the format that could not be read, by their place in it.
    lacks: BTreeSet<usize>,
    held: Option<Held>,
    last: Option<(Instant, Result<(), String>)>,
    failures: u32,
}

/// A document that was read: what to ask with whether it has changed, and whether another sheet follows it.
#[derive(Debug)]
struct Known {
    validators: Vec<(HeaderName, HeaderValue)>,
    goes_on: bool,
}

/// The result of asking for all documents.
enum Read {
    Page(Page),
    /// None has changed.
    Same,
    /// Some have changed: the others are needed too.
    Mixed,
}

/// A document that was asked for.
enum Got {
    Page(Page),
    /// It has not changed; whether another sheet follows.
    Same(bool),
}

impl Slot {
    /// The product it was recognised as.
    pub(super) fn product(&self) -> Option<&'static str> {
        self.format.map(|format| format.name)
    }

    /// The last reading of a component, or why there was none, if it is no older than `fresh`.
    pub(super) fn last(&self, fresh: Duration, component: Option<&str>) -> Option<Result<Said, String>> {
        let (_, last) = self.last.as_ref().filter(|(at, _)| at.elapsed() < fresh)?;
        match last {
            Ok(()) => self.held.as_ref()?.said_of(component).map(Ok),
            Err(why) => Some(Err(why.clone())),
        }
    }

    /// The reading of a component out of a page that was just read.
    pub(super) fn said_of(&self, component: Option<&str>) -> Said {
        self.held.as_ref().and_then(|held| held.said_of(component)).unwrap_or(Err(vendor::NoReading::Empty))
    }

    /// Keeps a reading for others.
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
            // A trouble of this host's is no news of the page.
            Err(_) => self.last = None,
        }
    }

    fn forget(&mut self) {
        self.documents.clear();
        self.lacks.clear();
        self.held = None;
    }

    /// Bytes of memory that it takes, about.
    pub(super) fn weight(&self) -> usize {
        let documents = self.documents.iter().map(|(url, known)| {
            let validators = known.validators.iter().map(|(_, value)| value.len() + size_of::<HeaderValue>());
            url.len() + size_of::<Known>() + validators.sum::<usize>()
        });
        size_of::<Self>() + documents.sum::<usize>() + self.held.as_ref().map_or(0, Held::weight)
    }

    /// Reads the page for those who want something of it. While its kind is unknown, a few kinds are tried; the next
    /// reading tries those that follow.
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
                // Nobody there: nothing lies at the other places either. But a server that fails at this place twice
                // is not asked for it for ever.
                Err(Miss::Trouble(away)) => {
                    self.next = (if at == first { at + 1 } else { at }) % formats.len();
                    return Err(away);
                }
                // What lies at one place says more than that nothing lies at another.
                Err(Miss::Document(miss)) => why = why.filter(|why| why != NOT_THERE).or(Some(miss)),
            }
        }
        self.next = 0;
        Err(unreadable(match why {
            // Its address tells what it is.
            Some(why) if formats.len() == 1 => why,
            Some(why) => format!("no known kind of status page ({why})"),
            None => "no known kind of status page".to_owned(),
        }))
    }

    async fn read_as(&mut self, format: &Format, way: &mut Way<'_>) -> Result<(), Miss> {
        if self.id.is_none() && !format.ids.is_empty() {
            self.id = Some(way.id(format).await?);
        }
        // All or nothing: what has changed can't be put together with what was not kept. A reading that ends in the middle
        // leaves nothing to compare with.
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

    /// Gets every document, and with `asks` only those that have changed.
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
                    // What the others say is enough to judge by; what they leave open stays unknown.
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
                    return Err(Miss::Document(format!("its list is longer than {MAX_SHEETS} sheets")));
                }
            }
        }
        Ok(match whole {
            Some(_) if same => Read::Mixed,
            None if same => Read::Same,
            whole => Read::Page(whole.unwrap_or_default()),
        })
    }

    /// The document, from where it lay before or else from the first of its places that has it.
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
        // Not asked whether it has changed, where it means something else by now without a change.
        let validators = if document.lasts() { validators_of(&answer.headers) } else { Vec::new() };
        self.documents.insert(url.to_owned(), Known { validators, goes_on: page.goes_on });
        Ok(Got::Page(page))
    }
}

/// Puts a document to those before it, within the bound of a page.
fn add(whole: &mut Option<Page>, page: Page) -> Result<(), Miss> {
    match whole {
        None => *whole = Some(page),
        Some(whole) => whole.merge(&page),
    }
    match whole {
        Some(whole) if whole.weight() > MAX_PAGE => {
            Err(Miss::Document("it is larger than is read".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Words for an answer that is not the document that was asked for.
fn what_else(body: &[u8]) -> &'static str {
    match String::from_utf8_lossy(body).trim_start_matches(['\u{feff}', ' ', '\r', '\n', '\t']).chars().next()
    {
        None => "its answer is empty",
        Some('<') => "HTML instead of JSON",
        Some('{' | '[') => "its JSON is of another form",
        Some(_) => "its answer is not JSON",
    }
}

/// What an answer gives for asking again (RFC 9110, section 13).
fn validators_of(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    [(header::ETAG, header::IF_NONE_MATCH), (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE)]
        .into_iter()
        .filter_map(|(given, asked)| Some((asked, headers.get(given)?.clone())))
        .collect()
}
