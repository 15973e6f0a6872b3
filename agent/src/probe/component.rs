//! The component probe: what a vendor's status page says of one of its components, or of all.
//!
//! Whoever follows a page shares one reading of it: a page is fetched at most once in 20 s, with conditional
//! requests, however many monitors ask. A page that can't be read says nothing about the vendor.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parallax_protocol::{
    check::ComponentCheck,
    result::{Failure, Outcome, OwnFault, Report, VendorReading, VendorState},
    text::Detail,
};
use tokio::{
    sync::Mutex as Turn,
    time::{Instant, timeout_at},
};

use super::{
    facts::{Facts, Trouble, bad_target},
    http::fetch::{Want, fetch},
    net::Net,
    vendor::{self, Document, Format, NoReading, Page},
};

/// Pages that are remembered; the one that was asked for longest ago is forgotten for another.
const MAX_PAGES: usize = 512;
/// Bytes of a document that are read; the longest known, with years of incidents, has half as many.
const MAX_DOCUMENT: usize = 8 * 1024 * 1024;
/// After so many failed readings in a row a page is looked at as if for the first time.
const FAILURES: u32 = 3;

/// Reads the page, or what another check has just read of it.
pub(super) async fn run(check: &ComponentCheck, net: &Net) -> Report {
    let mut facts = Facts::default();
    let started = Instant::now();
    let page = look(check, net, &mut facts).await;
    if page.is_ok() {
        facts.took = Some(started.elapsed());
    }
    // The status is the status page's.
    facts.status = None;
    let (outcome, vendor) = judge(check.component.as_deref(), page);
    Report { vendor, ..facts.report(outcome) }
}

/// The pages that were read, shared by all checks.
#[derive(Debug)]
pub(super) struct Pages {
    /// How long a reading serves others.
    fresh: Duration,
    known: Mutex<BTreeMap<String, Known>>,
}

#[derive(Debug)]
struct Known {
    asked_at: Instant,
    /// One check fetches; the others wait for it.
    slot: Arc<Turn<Slot>>,
}

/// What is known of a page.
#[derive(Debug, Default)]
struct Slot {
    format: Option<&'static Format>,
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

impl Pages {
    /// How long a reading serves others unless told otherwise.
    pub(super) const FRESH: Duration = Duration::from_secs(20);

    /// None is read yet.
    pub(super) fn new(fresh: Duration) -> Self {
        Self { fresh, known: Mutex::default() }
    }

    fn slot(&self, base: &str) -> Arc<Turn<Slot>> {
        let now = Instant::now();
        let mut pages = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !pages.contains_key(base) && pages.len() >= MAX_PAGES {
            let oldest = pages.iter().min_by_key(|(_, known)| known.asked_at).map(|(base, _)| base.clone());
            pages.remove(&oldest.unwrap_or_default());
        }
        let known =
            pages.entry(base.to_owned()).or_insert_with(|| Known { asked_at: now, slot: Arc::default() });
        known.asked_at = now;
        Arc::clone(&known.slot)
    }
}

async fn look(check: &ComponentCheck, net: &Net, facts: &mut Facts) -> Result<Arc<Page>, Trouble> {
    let deadline = net.deadline();
    let base = vendor::base(&check.vendor_url)
        .ok_or_else(|| bad_target("the status page's address is an http or https URL"))?;
    let slot = net.pages().slot(&base);
    let Ok(mut slot) = timeout_at(deadline, slot.lock()).await else {
        return Err(unreadable("another check still waits for it"));
    };
    if let Some((at, last)) = &slot.last
        && at.elapsed() < net.pages().fresh
    {
        return last.clone().map_err(unreadable);
    }
    let read = slot.read(&base, net, deadline, facts).await;
    match &read {
        Ok(page) => {
            slot.failures = 0;
            slot.last = Some((Instant::now(), Ok(Arc::clone(page))));
        }
        Err(Trouble::Own(OwnFault::VendorUnreadable { detail })) => {
            slot.last = Some((Instant::now(), Err(detail.to_string())));
            slot.failures += 1;
            if slot.failures >= FAILURES {
                (slot.format, slot.failures) = (None, 0);
                slot.documents.clear();
            }
        }
        // A trouble of this host's is no news of the page.
        Err(_) => slot.last = None,
    }
    read
}

impl Slot {
    async fn read(
        &mut self,
        base: &str,
        net: &Net,
        deadline: Instant,
        facts: &mut Facts,
    ) -> Result<Arc<Page>, Trouble> {
        let formats = self.format.map_or_else(|| vendor::candidates(base), |format| vec![format]);
        let mut trouble = unreadable("no known kind of status page");
        for format in formats {
            match self.read_as(format, base, net, deadline, facts).await {
                Ok(page) => {
                    self.format = Some(format);
                    return Ok(page);
                }
                // Nobody there: nothing lies at the other places either.
                Err(Miss::Trouble(away)) => return Err(away),
                Err(Miss::Document(why)) => {
                    if self.format.is_some() {
                        trouble = unreadable(why);
                    }
                }
            }
        }
        Err(trouble)
    }

    async fn read_as(
        &mut self,
        format: &Format,
        base: &str,
        net: &Net,
        deadline: Instant,
        facts: &mut Facts,
    ) -> Result<Arc<Page>, Miss> {
        let mut documents = Vec::new();
        for (place, document) in format.documents.iter().enumerate() {
            match self.document(document, base, net, deadline, facts).await {
                Ok(page) => documents.push(page),
                Err(Miss::Document(_)) if place > 0 => {}
                Err(miss) => return Err(miss),
            }
        }
        let mut documents = documents.into_iter();
        let first = documents.next().unwrap_or_default();
        Ok(documents.fold(first, |mut page, other| {
            Arc::make_mut(&mut page).merge(&other);
            page
        }))
    }

    /// The document, from where it lay before or else from the first of its places that has it.
    async fn document(
        &mut self,
        document: &Document,
        base: &str,
        net: &Net,
        deadline: Instant,
        facts: &mut Facts,
    ) -> Result<Arc<Page>, Miss> {
        let mut places: Vec<String> = document.paths.iter().map(|path| format!("{base}{path}")).collect();
        places.sort_by_key(|place| !self.documents.contains_key(place));
        let mut miss = Miss::Document("not there".to_owned());
        for url in places {
            match self.get(document, &url, net, deadline, facts).await {
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
        net: &Net,
        deadline: Instant,
        facts: &mut Facts,
    ) -> Result<Arc<Page>, Miss> {
        let kept = self.documents.get(url);
        let mut headers = vec![(header::ACCEPT, HeaderValue::from_static("application/json"))];
        headers.extend(kept.iter().flat_map(|kept| kept.validators.iter().cloned()));
        let want = Want { url, headers, most: MAX_DOCUMENT };
        let answer = match fetch(want, net, deadline, facts).await {
            Ok(answer) => answer,
            // What lies at this place is no document; another place may have one.
            Err(Trouble::Target(
                failure @ (Failure::BodyTooLarge
                | Failure::BodyUndecodable
                | Failure::HeadTooLarge
                | Failure::TooManyRedirects
                | Failure::BadRedirect),
            )) => return Err(Miss::Document(failure.to_string())),
            Err(Trouble::Target(failure)) => return Err(Miss::Trouble(unreadable(failure.to_string()))),
            Err(own @ Trouble::Own(_)) => return Err(Miss::Trouble(own)),
        };
        match (answer.status, kept) {
            (304, Some(kept)) => return Ok(Arc::clone(&kept.page)),
            (200, _) => {}
            // The server's own trouble, or ours with it, tells nothing of what lies where.
            (status @ (429 | 500..), _) => return Err(Miss::Trouble(unreadable(format!("status {status}")))),
            (status, _) => return Err(Miss::Document(format!("status {status}"))),
        }
        let Some(page) = (document.read)(&answer.body).map(Arc::new) else {
            self.documents.remove(url);
            return Err(Miss::Document("its document can't be read".to_owned()));
        };
        let kept = Kept { validators: validators(&answer.headers), page: Arc::clone(&page) };
        self.documents.insert(url.to_owned(), kept);
        Ok(page)
    }
}

/// Why there is no document.
#[derive(Debug)]
enum Miss {
    /// It isn't there, or is another one.
    Document(String),
    /// The page as a whole can't be reached.
    Trouble(Trouble),
}

/// What an answer gives for asking again (RFC 9110, section 13).
fn validators(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    [(header::ETAG, header::IF_NONE_MATCH), (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE)]
        .into_iter()
        .filter_map(|(given, asked)| Some((asked, headers.get(given)?.clone())))
        .collect()
}

fn unreadable(why: impl AsRef<str>) -> Trouble {
    Trouble::Own(OwnFault::VendorUnreadable { detail: Detail::new(why.as_ref()) })
}

/// Only the vendor's known words for an outage fail. Degraded passes, and is told by the reading.
fn judge(component: Option<&str>, page: Result<Arc<Page>, Trouble>) -> (Outcome, Option<VendorReading>) {
    let page = match page {
        Ok(page) => page,
        Err(trouble) => return (trouble.into(), None),
    };
    match page.reading(component) {
        Ok(reading) => {
            let outcome = match reading.state {
                VendorState::Operational | VendorState::Maintenance | VendorState::Degraded => {
                    Outcome::Passed
                }
                VendorState::PartialOutage | VendorState::MajorOutage => {
                    Outcome::Failed(Failure::VendorOutage)
                }
            };
            (outcome, Some(reading))
        }
        Err(NoReading::Missing) => (Outcome::Inconclusive(OwnFault::VendorComponentMissing), None),
        Err(NoReading::Unknown(word)) => {
            let word = Detail::new(&word);
            (Outcome::Inconclusive(OwnFault::VendorWordUnknown { word }), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_can_not_be_read_accuses_nobody() {
        let (outcome, reading) = judge(None, Err(unreadable("status 500")));
        assert!(matches!(outcome, Outcome::Inconclusive(OwnFault::VendorUnreadable { .. })));
        assert_eq!(reading, None);
        // A page that says nothing at all.
        let (outcome, _) = judge(None, Ok(Arc::default()));
        assert_eq!(outcome, Outcome::Inconclusive(OwnFault::VendorComponentMissing));
    }

    #[tokio::test]
    async fn the_page_asked_for_longest_ago_is_forgotten() {
        let pages = Pages::new(Pages::FRESH);
        for n in 0..MAX_PAGES + 10 {
            pages.slot(&format!("https://{n}.example"));
        }
        assert_eq!(pages.known.lock().unwrap().len(), MAX_PAGES);
    }
}
