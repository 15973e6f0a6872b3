//! Counts of subscribers by page, kept for 30 seconds: a page may have tens of thousands.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use parallax_core::id::PageId;
use parallax_core::time::{SECOND, Timestamp};

use super::SubscriberCounts;

/// Milliseconds for which counts are kept.
const KEPT_FOR: i64 = 30 * SECOND;
/// Maximum pages whose counts are kept.
const MAX_PAGES: usize = 1_000;

/// Counts with the time at which they were read.
#[derive(Debug, Default)]
pub(super) struct CountsCache(Mutex<BTreeMap<PageId, (Timestamp, SubscriberCounts)>>);

impl CountsCache {
    /// Returns a page's counts, if they are recent.
    pub(super) fn get(&self, page: PageId, now: Timestamp) -> Option<SubscriberCounts> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&page).copied();
        counts.filter(|(at, _)| is_recent(*at, now)).map(|(_, counts)| counts)
    }

    /// Keeps a page's counts.
    pub(super) fn put(&self, page: PageId, counts: SubscriberCounts, now: Timestamp) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() >= MAX_PAGES {
            pages.retain(|_, (at, _)| is_recent(*at, now));
        }
        if pages.len() < MAX_PAGES || pages.contains_key(&page) {
            pages.insert(page, (now, counts));
        }
    }

    /// Forgets a page's counts, after a change of its subscribers.
    pub(super) fn forget(&self, page: PageId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&page);
    }
}

const fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    let age = now.since(at);
    age >= 0 && age < KEPT_FOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_for_half_a_minute_and_of_1000_pages() {
        let (cache, page, start) = (CountsCache::default(), PageId::from_u128, Timestamp::from_millis(KEPT_FOR));
        let counts = SubscriberCounts { email: 3, ..SubscriberCounts::default() };
        (0..=MAX_PAGES as u128).for_each(|number| cache.put(page(number), counts, start));
        assert_eq!(cache.get(page(1), start + KEPT_FOR - 1), Some(counts));
        assert_eq!(cache.get(page(1), start + KEPT_FOR), None);
        assert_eq!(cache.get(page(1), start - 1), None, "the clock was set back");
        assert_eq!(cache.get(page(MAX_PAGES as u128), start), None);
        cache.put(page(5_000), counts, start + KEPT_FOR);
        assert_eq!(cache.get(page(5_000), start + KEPT_FOR), Some(counts), "old ones make space");
        cache.forget(page(5_000));
        assert_eq!(cache.get(page(5_000), start + KEPT_FOR), None);
    }
}
