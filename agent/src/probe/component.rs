//! The component probe: state of a component, or of the whole page, on a vendor's status page.
//!
//! Monitors of one page share one reading of it: a page is fetched at most once in 20 s, with conditional
//! requests, for any number of monitors; a large one is fetched again when a component is requested for the
//! first time. Only the readings that monitors request are cached, within bounds. An unreadable page is no
//! verdict on the vendor.

mod slot;

use std::{
    collections::{BTreeMap, BTreeSet},
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

use slot::{Said, Slot};

use super::{
    facts::{Facts, Trouble, bad_target},
    net::Net,
    vendor::{self, NoReading},
};

/// Maximum number of cached pages; the least recently requested one is evicted.
const MAX_PAGES: usize = 512;
/// Maximum memory of all pages in bytes; the least recently requested ones are evicted first.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of requested components remembered for one page, and for how long: monitors request more
/// often than that.
const MAX_WANTED: usize = 1024;
/// Memory of one of them besides its name.
const ENTRY: usize = 64;
const WANTED_FOR: Duration = Duration::from_secs(60 * 60);
/// Maximum number of characters of a missing component's name in a message.
const MAX_NAME: usize = 40;
/// Maximum number of requests in one check for detecting the kind of a page; the next check continues from
/// there.
const MAX_TRIES: usize = 4;

/// Reads the page for that account, or uses the recent reading of another check.
pub(super) async fn run(check: &ComponentCheck, account: u32, net: &Net) -> Report {
    let mut facts = Facts::default();
    let started = Instant::now();
    let said = look(check, account, net, &mut facts).await;
    if said.is_ok() {
        facts.took = Some(started.elapsed());
    }
    // The status code is that of the status page.
    facts.status = None;
    let (outcome, vendor) = judge(check.component.as_deref(), said);
    Report { vendor, ..facts.report(outcome) }
}

/// Cache of vendors' pages, shared by all checks.
#[derive(Debug)]
pub(super) struct Pages {
    /// Lifetime of a cached reading.
    fresh: Duration,
    tries: usize,
    known: Mutex<BTreeMap<String, Known>>,
}

#[derive(Debug)]
struct Known {
    asked_at: Instant,
    /// Lock of the fetch: one check fetches; the others wait for it.
    slot: Arc<Turn<Slot>>,
    /// The components that monitors request, by normalised name, with the time of the last request.
    wanted: BTreeMap<Option<String>, Instant>,
    /// Memory in bytes, as last measured.
    weight: usize,
}

impl Pages {
    /// Default lifetime of a cached reading.
    pub(super) const FRESH: Duration = Duration::from_secs(20);

    /// Creates an empty cache.
    pub(super) fn new(fresh: Duration) -> Self {
        Self { fresh, tries: MAX_TRIES, known: Mutex::default() }
    }

    /// Creates an empty cache that detects a page's kind in one check, with any number of requests.
    pub(super) fn tried_at_once() -> Self {
        Self { tries: usize::MAX, ..Self::new(Self::FRESH) }
    }

    /// Returns the product detected on a page; `None` before the detection, and during a reading.
    pub(super) fn product(&self, address: &str) -> Option<&'static str> {
        let base = vendor::base(address)?;
        let pages = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = pages.get(&base)?.slot.try_lock().ok()?;
        slot.product()
    }

    /// Returns the cache entry of a page, for a check of this component.
    fn slot(&self, base: &str, component: Option<&str>) -> Arc<Turn<Slot>> {
        let now = Instant::now();
        let mut pages = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !pages.contains_key(base) && pages.len() >= MAX_PAGES {
            forget_oldest(&mut pages, base);
        }
        let known = pages.entry(base.to_owned()).or_insert_with(|| Known {
            asked_at: now,
            slot: Arc::default(),
            wanted: BTreeMap::new(),
            weight: 0,
        });
        known.asked_at = now;
        known.wanted.insert(component.map(str::to_owned), now);
        if known.wanted.len() > MAX_WANTED {
            let oldest = known.wanted.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
            known.wanted.remove(&oldest.unwrap_or_default());
        }
        Arc::clone(&known.slot)
    }

    /// Returns the components of a page that monitors request.
    fn wanted(&self, base: &str) -> BTreeSet<Option<String>> {
        let mut pages = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = pages.get_mut(base) else { return BTreeSet::new() };
        known.wanted.retain(|_, at| at.elapsed() < WANTED_FOR);
        known.wanted.keys().cloned().collect()
    }

    /// Records a page's memory, and evicts others if the total exceeds the limit.
    fn weigh(&self, base: &str, bytes: usize) {
        let mut pages = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pages.get_mut(base) {
            let wanted = known.wanted.keys().flatten().map(String::capacity).sum::<usize>();
            known.weight = bytes + wanted + known.wanted.len() * ENTRY;
        }
        while pages.values().map(|known| known.weight).sum::<usize>() > MAX_BYTES
            && forget_oldest(&mut pages, base)
        {}
    }
}

/// Evicts the least recently requested page other than `base`; returns false if there is no other.
fn forget_oldest(pages: &mut BTreeMap<String, Known>, base: &str) -> bool {
    let others = pages.iter().filter(|(other, _)| *other != base);
    let oldest = others.min_by_key(|(_, known)| known.asked_at).map(|(oldest, _)| oldest.clone());
    oldest.is_some_and(|oldest| pages.remove(&oldest).is_some())
}

async fn look(check: &ComponentCheck, account: u32, net: &Net, facts: &mut Facts) -> Result<Said, Trouble> {
    let deadline = net.deadline();
    let base = vendor::base(&check.vendor_url)
        .ok_or_else(|| bad_target("the status page's address must be an http or https URL"))?;
    let component = vendor::asked(check.component.as_deref());
    let component = component.as_deref();
    let slot = net.pages().slot(&base, component);
    let Ok(mut slot) = timeout_at(deadline, slot.lock()).await else {
        return Err(unreadable("another check is still waiting for it"));
    };
    if let Some(last) = slot.last(net.pages().fresh, component) {
        return last.map_err(unreadable);
    }
    let mut wanted = net.pages().wanted(&base);
    wanted.insert(component.map(str::to_owned));
    let read = slot.read(&base, &wanted, (account, net), deadline, facts).await;
    slot.note(&read);
    net.pages().weigh(&base, slot.weight());
    read.map(|()| slot.said_of(component))
}

fn unreadable(why: impl AsRef<str>) -> Trouble {
    Trouble::Own(OwnFault::VendorUnreadable { detail: Detail::new(why.as_ref()) })
}

/// Describes a missing component, or a page without an overall status.
fn no(component: Option<&str>) -> String {
    match component.map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => format!("no component \"{}\"", name.chars().take(MAX_NAME).collect::<String>()),
        None => "no overall status".to_owned(),
    }
}

/// Judges a reading. Only the vendor's known words for an outage fail. Degraded passes; the reading contains
/// it.
fn judge(component: Option<&str>, said: Result<Said, Trouble>) -> (Outcome, Option<VendorReading>) {
    let said = match said {
        Ok(said) => said,
        Err(trouble) => return (trouble.into(), None),
    };
    match said {
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
        Err(NoReading::Empty) => (unreadable("it lists no components").into(), None),
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
        // A page without any content.
        let (outcome, _) = judge(None, Ok(Err(NoReading::Empty)));
        assert_eq!(outcome, Outcome::from(unreadable("it lists no components")));
    }

    #[tokio::test]
    async fn the_page_asked_for_longest_ago_is_forgotten() {
        let pages = Pages::new(Pages::FRESH);
        for n in 0..MAX_PAGES + 10 {
            pages.slot(&format!("https://{n}.example"), None);
        }
        assert_eq!(pages.known.lock().unwrap().len(), MAX_PAGES);
    }

    #[test]
    fn pages_that_take_too_much_together_are_forgotten_oldest_first() {
        let pages = Pages::new(Pages::FRESH);
        let name = |n: usize| format!("https://{n}.example");
        for n in 0..40 {
            pages.slot(&name(n), None);
            pages.weigh(&name(n), 2 << 20);
        }
        let known = || pages.known.lock().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(known(), (9..40).map(name).collect());
        // A page that exceeds the limit alone stays until another is requested.
        pages.weigh(&name(39), 100 << 20);
        assert_eq!(known(), [name(39)].into());
    }

    #[test]
    fn so_many_components_of_a_page_are_remembered_and_the_newest_stay() {
        let pages = Pages::new(Pages::FRESH);
        for n in 0..MAX_WANTED + 10 {
            pages.slot("https://a.example", Some(&format!("{n}")));
        }
        let wanted = pages.wanted("https://a.example");
        assert_eq!(wanted.len(), MAX_WANTED);
        assert!(!wanted.contains(&Some("9".to_owned())) && wanted.contains(&Some("10".to_owned())));
    }
}
