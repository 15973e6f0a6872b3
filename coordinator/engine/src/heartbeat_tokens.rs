//! Heartbeat tokens: look-up in memory, with a rate limit per token.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use parallax_core::check::Check;
use parallax_core::id::MonitorId;
use parallax_core::monitor::Monitor;
use parallax_core::rate_limit::{FixedWindow, WindowRule};
use parallax_core::time::{SECOND, Timestamp};

/// Pings per token and second, at most: a job that runs on many hosts ends on all of them at once.
pub const MAX_PINGS_PER_SECOND: u32 = 100;
/// The rule of [`MAX_PINGS_PER_SECOND`].
const PING_RULE: WindowRule = WindowRule { limit: MAX_PINGS_PER_SECOND, length: SECOND };

/// The tokens of all heartbeats, shared by the driver, which updates them from the journal, and the HTTP handler of
/// pings. Cheap to clone.
#[derive(Clone, Default)]
pub struct HeartbeatTokens(Arc<RwLock<TokenIndex>>);

#[derive(Default)]
struct TokenIndex {
    by_token: BTreeMap<String, Arc<HeartbeatEntry>>,
    by_monitor: BTreeMap<MonitorId, String>,
}

/// A heartbeat monitor, as found by its token.
#[derive(Debug)]
pub struct HeartbeatEntry {
    /// The monitor.
    pub monitor: MonitorId,
    /// Its slot.
    pub slot: u32,
    rate_window: Mutex<FixedWindow>,
}

impl HeartbeatTokens {
    /// Adds the monitor if it is a heartbeat. Adding it again changes nothing: a token is never replaced.
    pub fn put(&self, monitor: &Monitor) {
        let Check::Heartbeat(check) = &monitor.check else { return };
        let mut index = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if index.by_monitor.contains_key(&monitor.id) {
            return;
        }
        let rate_window = Mutex::new(FixedWindow::new(monitor.created_at));
        let entry = HeartbeatEntry { monitor: monitor.id, slot: monitor.slot, rate_window };
        index.by_token.insert(check.token.clone(), Arc::new(entry));
        index.by_monitor.insert(monitor.id, check.token.clone());
    }

    /// Removes a monitor.
    pub fn remove(&self, monitor: MonitorId) {
        let mut index = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = index.by_monitor.remove(&monitor) {
            index.by_token.remove(&token);
        }
    }

    /// Returns the heartbeat of a token.
    pub fn find(&self, token: &str) -> Option<Arc<HeartbeatEntry>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).by_token.get(token).cloned()
    }
}

impl HeartbeatEntry {
    /// Counts a ping at `now`. Returns false if the limit is reached for the second that began with its first ping.
    pub fn admit(&self, now: Timestamp) -> bool {
        let mut window = self.rate_window.lock().unwrap_or_else(PoisonError::into_inner);
        window.count(PING_RULE, now).allowed
    }
}

impl fmt::Debug for HeartbeatTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.read().unwrap_or_else(PoisonError::into_inner).by_token.len();
        write!(f, "Tokens({count})")
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::check::HeartbeatCheck;
    use parallax_core::id::PageId;

    use super::*;

    fn heartbeat(id: u128, token: &str) -> Monitor {
        Monitor {
            id: MonitorId::from_u128(id),
            page: PageId::from_u128(1),
            slot: 7,
            revision: 1,
            name: "Backup".to_owned(),
            group: None,
            check: Check::Heartbeat(HeartbeatCheck { period_seconds: 60, grace_seconds: 0, token: token.to_owned() }),
            slow_threshold_ms: None,
            slow_thresholds: None,
            latency_regions: None,
            pinned_region: None,
            position: 0,
            paused: false,
            created_at: Timestamp::from_millis(0),
            acknowledgement: None,
        }
    }

    #[test]
    fn a_token_finds_its_monitor_until_removed_and_is_not_in_debug_output() {
        let tokens = HeartbeatTokens::default();
        tokens.put(&heartbeat(1, "secret"));
        tokens.put(&heartbeat(2, "other"));
        assert_eq!(tokens.find("secret").unwrap().monitor, MonitorId::from_u128(1));
        assert!(tokens.find("secre").is_none() && tokens.find("").is_none());
        assert_eq!(format!("{tokens:?}"), "Tokens(2)");
        tokens.remove(MonitorId::from_u128(1));
        assert!(tokens.find("secret").is_none() && tokens.find("other").is_some());
    }

    #[test]
    fn pings_beyond_the_limit_per_second_are_refused_even_after_an_edit() {
        let tokens = HeartbeatTokens::default();
        tokens.put(&heartbeat(1, "secret"));
        let at = |millis: i64| Timestamp::from_millis(1_800_000_000_000 + millis);
        for ping in 0..MAX_PINGS_PER_SECOND {
            assert!(tokens.find("secret").unwrap().admit(at(if ping % 2 == 0 { 0 } else { 999 })));
        }
        tokens.put(&heartbeat(1, "secret"));
        assert!(!tokens.find("secret").unwrap().admit(at(999)));
        assert!(tokens.find("secret").unwrap().admit(at(1000)));
    }
}
