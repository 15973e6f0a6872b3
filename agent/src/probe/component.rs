//! The component probe: state of a component, or of the whole page, on a vendor's status page.
//!
//! Monitors of one page share one reading of it: a page is fetched at most once in 20 s, with conditional
//! requests, for any number of monitors; a large one is fetched again when a component is requested for the
//! first time. Only the readings that monitors request are cached, within bounds. An unreadable page is no
//! verdict on the vendor.

mod page_cache;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use parallax_protocol::{
    check::WireComponentCheck,
    result::{ProbeReport, VendorReading, VendorState, WireFailure, WireOutcome, WireOwnFault},
    text::ShortText,
};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout_at},
};

use page_cache::{ReadingResult, VendorPageEntry};

use super::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts, bad_target},
    vendor::{self, NoReading},
};

/// Maximum number of cached pages; the least recently requested one is evicted.
const MAX_PAGES: usize = 512;
/// Maximum memory of all pages in bytes; the least recently requested ones are evicted first.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of requested components remembered for one page, and for how long: monitors request more
/// often than that.
const MAX_REQUESTED: usize = 1024;
/// Memory of one of them besides its name.
const ENTRY_BYTES: usize = 64;
const REQUEST_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Maximum number of characters of a missing component's name in a message.
const MAX_NAME: usize = 40;
/// Maximum number of requests in one check for detecting the kind of a page; the next check continues from
/// there.
const MAX_REQUESTS: usize = 4;

/// Reads the page for that account, or uses the recent reading of another check.
pub(super) async fn run(
    check: &WireComponentCheck,
    account: u32,
    pages: &VendorPageCache,
    context: &ProbeContext,
) -> ProbeReport {
    let mut facts = CheckFacts::default();
    let started = Instant::now();
    let result = read_component(check, account, pages, context, &mut facts).await;
    if result.is_ok() {
        facts.duration = Some(started.elapsed());
    }
    // The status code is that of the status page.
    facts.status = None;
    let (outcome, vendor) = judge(check.component.as_deref(), result);
    ProbeReport { vendor, ..facts.report(outcome) }
}

/// Cache of vendors' pages, shared by all checks.
#[derive(Debug)]
pub(super) struct VendorPageCache {
    /// Lifetime of a cached reading.
    lifetime: Duration,
    /// Maximum number of requests in one check for detecting the kind of a page.
    max_requests: usize,
    pages: Mutex<BTreeMap<String, CachedPage>>,
}

#[derive(Debug)]
struct CachedPage {
    last_requested: Instant,
    /// Lock of the fetch: one check fetches; the others wait for it.
    slot: Arc<AsyncMutex<VendorPageEntry>>,
    /// The components that monitors request, by normalised name, with the time of the last request.
    requested: BTreeMap<Option<String>, Instant>,
    /// Memory in bytes, as last measured.
    weight: usize,
}

impl VendorPageCache {
    /// Default lifetime of a cached reading.
    pub(super) const LIFETIME: Duration = Duration::from_secs(20);

    /// Creates an empty cache.
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { lifetime, max_requests: MAX_REQUESTS, pages: Mutex::default() }
    }

    /// Creates an empty cache that detects a page's kind in one check, with any number of requests.
    pub(super) fn with_full_detection() -> Self {
        Self { max_requests: usize::MAX, ..Self::new(Self::LIFETIME) }
    }

    /// Returns the product detected on a page; `None` before the detection, and during a reading.
    pub(super) fn product(&self, address: &str) -> Option<&'static str> {
        let base = vendor::normalized_address(address)?;
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = pages.get(&base)?.slot.try_lock().ok()?;
        slot.product()
    }

    /// Returns the cache entry of a page, for a check of this component.
    fn entry(&self, base: &str, component: Option<&str>) -> Arc<AsyncMutex<VendorPageEntry>> {
        let now = Instant::now();
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if !pages.contains_key(base) && pages.len() >= MAX_PAGES {
            evict_oldest(&mut pages, base);
        }
        let page = pages.entry(base.to_owned()).or_insert_with(|| CachedPage {
            last_requested: now,
            slot: Arc::default(),
            requested: BTreeMap::new(),
            weight: 0,
        });
        page.last_requested = now;
        page.requested.insert(component.map(str::to_owned), now);
        if page.requested.len() > MAX_REQUESTED {
            let oldest = page.requested.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
            page.requested.remove(&oldest.unwrap_or_default());
        }
        Arc::clone(&page.slot)
    }

    /// Returns the components of a page that monitors request.
    fn requested(&self, base: &str) -> BTreeSet<Option<String>> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(page) = pages.get_mut(base) else { return BTreeSet::new() };
        page.requested.retain(|_, at| at.elapsed() < REQUEST_LIFETIME);
        page.requested.keys().cloned().collect()
    }

    /// Records a page's memory, and evicts others if the total exceeds the limit.
    fn record_size(&self, base: &str, bytes: usize) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get_mut(base) {
            let names = page.requested.keys().flatten().map(String::capacity).sum::<usize>();
            page.weight = bytes + names + page.requested.len() * ENTRY_BYTES;
        }
        while pages.values().map(|page| page.weight).sum::<usize>() > MAX_BYTES && evict_oldest(&mut pages, base) {}
    }
}

/// Evicts the least recently requested page other than `base`; returns false if there is no other.
fn evict_oldest(pages: &mut BTreeMap<String, CachedPage>, base: &str) -> bool {
    let others = pages.iter().filter(|(other, _)| *other != base);
    let oldest = others.min_by_key(|(_, page)| page.last_requested).map(|(oldest, _)| oldest.clone());
    oldest.is_some_and(|oldest| pages.remove(&oldest).is_some())
}

async fn read_component(
    check: &WireComponentCheck,
    account: u32,
    pages: &VendorPageCache,
    context: &ProbeContext,
    facts: &mut CheckFacts,
) -> Result<ReadingResult, CheckError> {
    let deadline = context.deadline();
    let base = vendor::normalized_address(&check.vendor_url)
        .ok_or_else(|| bad_target("the status page's address must be an http or https URL"))?;
    let component = vendor::normalized_component(check.component.as_deref());
    let component = component.as_deref();
    let slot = pages.entry(&base, component);
    let Ok(mut slot) = timeout_at(deadline, slot.lock()).await else {
        return Err(unreadable("another check is still waiting for it"));
    };
    if let Some(last) = slot.last(pages.lifetime, component) {
        return last.map_err(unreadable);
    }
    let mut requested = pages.requested(&base);
    requested.insert(component.map(str::to_owned));
    let read = slot.read(&base, &requested, pages.max_requests, (account, context), deadline, facts).await;
    slot.cache(&read);
    pages.record_size(&base, slot.size());
    read.map(|()| slot.reading_of(component))
}

fn unreadable(why: impl AsRef<str>) -> CheckError {
    CheckError::Own(WireOwnFault::VendorUnreadable { detail: ShortText::new(why.as_ref()) })
}

/// Describes a missing component, or a page without an overall status.
fn missing_text(component: Option<&str>) -> String {
    match component.map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => format!("no component \"{}\"", name.chars().take(MAX_NAME).collect::<String>()),
        None => "no overall status".to_owned(),
    }
}

/// Judges a reading. Only the vendor's known words for an outage fail. Degraded passes; the reading contains
/// it.
fn judge(component: Option<&str>, result: Result<ReadingResult, CheckError>) -> (WireOutcome, Option<VendorReading>) {
    let reading = match result {
        Ok(reading) => reading,
        Err(error) => return (error.into(), None),
    };
    match reading {
        Ok(reading) => {
            let outcome = match reading.state {
                VendorState::Operational | VendorState::Maintenance | VendorState::Degraded => WireOutcome::Passed,
                VendorState::PartialOutage | VendorState::MajorOutage => WireOutcome::Failed(WireFailure::VendorOutage),
            };
            (outcome, Some(reading))
        }
        Err(NoReading::Missing(names)) => (unreadable(format!("{}; {names}", missing_text(component))).into(), None),
        Err(NoReading::Empty) => (unreadable("it lists no components").into(), None),
        Err(NoReading::Unreadable(why)) => {
            (unreadable(format!("{} in the part that can be read ({why})", missing_text(component))).into(), None)
        }
        Err(NoReading::Unknown(text)) => {
            let vendor_text = ShortText::new(&text);
            (WireOutcome::Inconclusive(WireOwnFault::VendorStateUnknown { vendor_text }), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_page_is_inconclusive() {
        let (outcome, reading) = judge(None, Err(unreadable("status 500")));
        assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::VendorUnreadable { .. })));
        assert_eq!(reading, None);
        // A page without any content.
        let (outcome, _) = judge(None, Ok(Err(NoReading::Empty)));
        assert_eq!(outcome, WireOutcome::from(unreadable("it lists no components")));
    }

    #[tokio::test]
    async fn the_least_recently_requested_page_is_evicted() {
        let pages = VendorPageCache::new(VendorPageCache::LIFETIME);
        for n in 0..MAX_PAGES + 10 {
            pages.entry(&format!("https://{n}.example"), None);
        }
        assert_eq!(pages.pages.lock().unwrap().len(), MAX_PAGES);
    }

    #[test]
    fn pages_over_the_memory_limit_are_evicted_oldest_first() {
        let pages = VendorPageCache::new(VendorPageCache::LIFETIME);
        let name = |n: usize| format!("https://{n}.example");
        for n in 0..40 {
            pages.entry(&name(n), None);
            pages.record_size(&name(n), 2 << 20);
        }
        let known = || pages.pages.lock().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(known(), (9..40).map(name).collect());
        // A page that exceeds the limit alone stays until another is requested.
        pages.record_size(&name(39), 100 << 20);
        assert_eq!(known(), [name(39)].into());
    }

    #[test]
    fn requested_components_are_bounded_and_the_newest_stay() {
        let pages = VendorPageCache::new(VendorPageCache::LIFETIME);
        for n in 0..MAX_REQUESTED + 10 {
            pages.entry("https://a.example", Some(&format!("{n}")));
        }
        let wanted = pages.requested("https://a.example");
        assert_eq!(wanted.len(), MAX_REQUESTED);
        assert!(!wanted.contains(&Some("9".to_owned())) && wanted.contains(&Some("10".to_owned())));
    }
}
