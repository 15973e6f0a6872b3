//! What an agent knows of one vendor's page: its kind, its documents, and the last reading.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parallax_protocol::result::{Failure, OwnFault};
use tokio::time::Instant;

use super::unreadable;
use crate::clock::Clock;
use crate::probe::{
    facts::{Facts, Trouble},
    http::fetch::{self, Want, fetch},
    net::Net,
    vendor::{self, Document, Format, Id, Page},
};

/// After so many failed readings in a row a page is looked at as if for the first time.
const FAILURES: u32 = 3;
/// Sheets of one list that are read; a longer list can't be read, since a part of it can't say that all is well.
const MAX_SHEETS: usize = 20;
/// The words for a place without a document.
const NOT_THERE: &str = "it answers with status 404";
/// Bytes of a document that is read for a page's id.
const MAX_ID_DOCUMENT: usize = 1024 * 1024;

/// What is known of a page.
#[derive(Debug, Default)]
pub(super) struct Slot {
    format: Option<&'static Format>,
    /// The page's id, where its kind has one and a document had to tell it.
    id: Option<String>,
    /// The kind that is tried next, while none is known.
    next: usize,
    /// By address.
    documents: BTreeMap<String, Kept>,
    last: Option<(Instant, Result<Arc<Page>, String>)>,
    failures: u32,
}

/// A document that was read, and what to ask with whether it has changed.
#[derive(Debug)]
struct Kept {
    validators: Vec<(HeaderName, HeaderValue)>,
    page: Arc<Page>,
}

/// Why there is no document.
#[derive(Debug)]
enum Miss {
    /// It isn't there, or is another one.
    Document(String),
    /// The page as a whole can't be reached.
    Trouble(Trouble),
}

/// How to fetch: what every request of one reading shares.
struct Way<'a> {
    base: &'a str,
    net: &'a Net,
    deadline: Instant,
    facts: &'a mut Facts,
}

impl Slot {
    /// The product it was recognised as.
    pub(super) fn product(&self) -> Option<&'static str> {
        self.format.map(|format| format.name)
    }

    /// The last reading, or why there was none, if it is no older than `fresh`.
    pub(super) fn last(&self, fresh: Duration) -> Option<Result<Arc<Page>, String>> {
        self.last.as_ref().filter(|(at, _)| at.elapsed() < fresh).map(|(_, last)| last.clone())
    }

    /// Keeps a reading for others.
    pub(super) fn note(&mut self, read: &Result<Arc<Page>, Trouble>) {
        match read {
            Ok(page) => {
                self.failures = 0;
                self.last = Some((Instant::now(), Ok(Arc::clone(page))));
            }
            Err(Trouble::Own(OwnFault::VendorUnreadable { detail })) => {
                self.last = Some((Instant::now(), Err(detail.to_string())));
                self.failures += 1;
                if self.format.is_some() && self.failures >= FAILURES {
                    (self.format, self.id, self.next, self.failures) = (None, None, 0, 0);
                    self.documents.clear();
                }
            }
            // A trouble of this host's is no news of the page.
            Err(_) => self.last = None,
        }
    }

    /// Reads the page. While its kind is unknown, a few kinds are tried; the next reading tries those that follow.
    pub(super) async fn read(
        &mut self,
        base: &str,
        net: &Net,
        deadline: Instant,
        facts: &mut Facts,
    ) -> Result<Arc<Page>, Trouble> {
        let mut way = Way { base, net, deadline, facts };
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
            match self.read_as(format, &mut way).await {
                Ok(page) => {
                    (self.format, self.next) = (Some(format), 0);
                    return Ok(page);
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

    async fn read_as(&mut self, format: &Format, way: &mut Way<'_>) -> Result<Arc<Page>, Miss> {
        if self.id.is_none() && !format.ids.is_empty() {
            self.id = Some(way.id(format).await?);
        }
        let mut whole: Option<Arc<Page>> = None;
        for (place, document) in format.documents.iter().enumerate() {
            let mut n = 1;
            loop {
                let page = match self.document(document, n, way).await {
                    Ok(page) => page,
                    // What the others say is enough to judge by; what they leave open stays unknown.
                    Err(Miss::Document(why)) if place > 0 && n == 1 => {
                        Arc::make_mut(whole.get_or_insert_default()).merge(&Page::lacking(why));
                        break;
                    }
                    Err(miss) => return Err(miss),
                };
                let goes_on = page.goes_on;
                match &mut whole {
                    None => whole = Some(page),
                    Some(whole) => Arc::make_mut(whole).merge(&page),
                }
                if !goes_on {
                    break;
                }
                n += 1;
                if n > MAX_SHEETS {
                    return Err(Miss::Document(format!("its list is longer than {MAX_SHEETS} sheets")));
                }
            }
        }
        Ok(whole.unwrap_or_default())
    }

    /// The document, from where it lay before or else from the first of its places that has it.
    async fn document(
        &mut self,
        document: &Document,
        n: usize,
        way: &mut Way<'_>,
    ) -> Result<Arc<Page>, Miss> {
        let mut places = document.places(way.base, self.id.as_deref(), n);
        places.sort_by_key(|place| !self.documents.contains_key(place));
        let mut miss = Miss::Document("not there".to_owned());
        for url in places {
            match self.get(document, &url, way).await {
                Err(Miss::Document(why)) => miss = Miss::Document(why),
                done => return done,
            }
        }
        Err(miss)
    }

    async fn get(&mut self, document: &Document, url: &str, way: &mut Way<'_>) -> Result<Arc<Page>, Miss> {
        let kept = self.documents.get(url);
        let validators = kept.iter().flat_map(|kept| kept.validators.iter().cloned()).collect();
        let answer = way.fetch(url, validators, document.most).await?;
        match (answer.status, kept) {
            (304, Some(kept)) => return Ok(Arc::clone(&kept.page)),
            (200, _) => {}
            (404, _) => return Err(Miss::Document(NOT_THERE.to_owned())),
            (status, _) => return Err(Miss::Document(format!("it answers with status {status}"))),
        }
        let now_ms = Clock::new(0).wall_ms();
        let Some(page) = document.read(&answer.body, now_ms).map(Arc::new) else {
            self.documents.remove(url);
            return Err(Miss::Document(what_else(&answer.body).to_owned()));
        };
        // Not asked whether it has changed, where it means something else by now without a change.
        let validators = if document.lasts() { validators_of(&answer.headers) } else { Vec::new() };
        let kept = Kept { validators, page: Arc::clone(&page) };
        self.documents.insert(url.to_owned(), kept);
        Ok(page)
    }
}

impl Way<'_> {
    async fn id(&mut self, format: &Format) -> Result<String, Miss> {
        if let Some(id) = format.ids.iter().find_map(|id| id.of(self.base)) {
            return Ok(id);
        }
        for id in format.ids {
            let Id::In(path, read) = id else { continue };
            let Some(url) = vendor::place(path, self.base, None, 1) else { continue };
            let answer = match self.fetch(&url, Vec::new(), MAX_ID_DOCUMENT).await {
                Ok(answer) => answer,
                Err(Miss::Document(_)) => continue,
                Err(trouble) => return Err(trouble),
            };
            if let Some(id) = read(&answer.body).filter(|_| answer.status == 200) {
                return Ok(id);
            }
        }
        Err(Miss::Document("its id is not there".to_owned()))
    }

    async fn fetch(
        &mut self,
        url: &str,
        mut headers: Vec<(HeaderName, HeaderValue)>,
        most: usize,
    ) -> Result<fetch::Page, Miss> {
        headers.push((header::ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5")));
        match fetch(Want { url, headers, most }, self.net, self.deadline, self.facts).await {
            // The server's own trouble, or ours with it, tells nothing of what lies where.
            Ok(answer) if matches!(answer.status, 429 | 500..) => {
                Err(Miss::Trouble(unreadable(format!("it answers with status {}", answer.status))))
            }
            Ok(answer) => Ok(answer),
            // What lies at this place is no document; another place may have one.
            Err(Trouble::Target(
                failure @ (Failure::BodyTooLarge
                | Failure::BodyUndecodable
                | Failure::HeadTooLarge
                | Failure::TooManyRedirects
                | Failure::BadRedirect),
            )) => Err(Miss::Document(failure.to_string())),
            Err(Trouble::Target(failure)) => Err(Miss::Trouble(unreadable(failure.to_string()))),
            Err(own @ Trouble::Own(_)) => Err(Miss::Trouble(own)),
        }
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
