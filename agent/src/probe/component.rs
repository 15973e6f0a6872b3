//! The component probe: what a vendor's status page says of one of its components, or of all.
//!
//! Whoever follows a page shares one reading of it: a page is fetched at most once in 20 s, with conditional
//! requests, however many monitors ask. A page that can't be read says nothing about the vendor.

mod slot;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use parallax_protocol::{
    check::ComponentCheck,
    result::{Failure, Outcome, OwnFault, Report, VendorReading, VendorState},
    text::Detail,
};
use tokio::{
    sync::Mutex as Turn,
    time::{Instant, timeout_at},
};

use slot::Slot;

use super::{
    facts::{Facts, Trouble, bad_target},
    net::Net,
    vendor::{self, NoReading, Page},
};

/// Pages that are remembered; the one that was asked for longest ago is forgotten for another.
const MAX_PAGES: usize = 512;
/// Characters of a component's name that are repeated where the page has none of that name.
const MAX_NAME: usize = 40;
/// Requests a check makes at most to find out what kind of page it is; the next one goes on from there.
const MAX_TRIES: usize = 4;

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
    tries: usize,
    known: Mutex<BTreeMap<String, Known>>,
}

#[derive(Debug)]
struct Known {
    asked_at: Instant,
    /// One check fetches; the others wait for it.
    slot: Arc<Turn<Slot>>,
}

impl Pages {
    /// How long a reading serves others unless told otherwise.
    pub(super) const FRESH: Duration = Duration::from_secs(20);

    /// None is read yet.
    pub(super) fn new(fresh: Duration) -> Self {
        Self { fresh, tries: MAX_TRIES, known: Mutex::default() }
    }

    /// None is read yet, and a page is recognised in one check, however many requests that takes.
    pub(super) fn tried_at_once() -> Self {
        Self { tries: usize::MAX, ..Self::new(Self::FRESH) }
    }

    /// The product that a page was recognised as; `None` before, and while it is being read.
    pub(super) fn product(&self, address: &str) -> Option<&'static str> {
        let slot = self.slot(&vendor::base(address)?);
        let slot = slot.try_lock().ok()?;
        slot.product()
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
    if let Some(last) = slot.last(net.pages().fresh) {
        return last.map_err(unreadable);
    }
    let read = slot.read(&base, net, deadline, facts).await;
    slot.note(&read);
    read
}

fn unreadable(why: impl AsRef<str>) -> Trouble {
    Trouble::Own(OwnFault::VendorUnreadable { detail: Detail::new(why.as_ref()) })
}

/// Words for a component that is not there, or for a page without a word on the whole.
fn no(component: Option<&str>) -> String {
    match component.map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => format!("no component \"{}\"", name.chars().take(MAX_NAME).collect::<String>()),
        None => "no word on the whole".to_owned(),
    }
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
        Err(NoReading::Missing(names)) => (unreadable(format!("{}; {names}", no(component))).into(), None),
        Err(NoReading::Empty) => (unreadable("it names no components").into(), None),
        Err(NoReading::Unread(why)) => {
            (unreadable(format!("{} in the part that can be read ({why})", no(component))).into(), None)
        }
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
        assert_eq!(outcome, Outcome::from(unreadable("it names no components")));
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
