//! How often strangers have had each host asked, in memory and bounded.

use std::collections::BTreeMap;

use parallax_core::time::{HOUR, Timestamp};

/// Times that one host is asked within a while.
const TIMES: u32 = 10;
/// Milliseconds of that while, from the first time on.
const WHILE: i64 = HOUR;
/// Hosts that are remembered. Where there are more, none that is new is asked.
const MAX_HOSTS: usize = 10_000;

/// When each host was first asked in its present while, and how often since.
#[derive(Debug, Default)]
pub(in crate::service) struct Pace(BTreeMap<String, (Timestamp, u32)>);

impl Pace {
    /// Counts one more time, where the host may be asked.
    pub(super) fn admit(&mut self, host: &str, now: Timestamp) -> bool {
        self.admit_within(TIMES, host, now)
    }

    /// Whether it would be admitted once more; counts nothing.
    pub(in crate::service) fn has_room(&self, most: u32, host: &str, now: Timestamp) -> bool {
        let found = self.0.get(host).filter(|(began, _)| (0..WHILE).contains(&now.since(*began)));
        found.is_none_or(|(_, times)| *times < most)
    }

    /// The same with so many times in a while, of a host or whatever else is told apart by its name.
    pub(in crate::service) fn admit_within(&mut self, most: u32, host: &str, now: Timestamp) -> bool {
        let is_over = |began: Timestamp| !(0..WHILE).contains(&now.since(began));
        if self.0.len() >= MAX_HOSTS {
            self.0.retain(|_, (began, _)| !is_over(*began));
        }
        let is_full = self.0.len() >= MAX_HOSTS;
        match self.0.get_mut(host) {
            Some((began, times)) if !is_over(*began) => {
                *times = times.saturating_add(1);
                *times <= most
            }
            Some(over) => {
                *over = (now, 1);
                true
            }
            None if is_full => false,
            None => {
                self.0.insert(host.to_owned(), (now, 1));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_asked_so_often_in_an_hour_and_hosts_are_bounded() {
        let at = Timestamp::from_millis;
        let mut pace = Pace::default();
        assert!((0..TIMES).all(|_| pace.admit("a.example", at(0))));
        assert!(!pace.admit("a.example", at(HOUR - 1)));
        assert!(
            !pace.has_room(TIMES, "a.example", at(HOUR - 1)) && pace.has_room(TIMES, "a.example", at(HOUR))
        );
        assert!(pace.has_room(TIMES, "b.example", at(0)) && pace.admit("b.example", at(0)));
        assert!(pace.admit("a.example", at(HOUR)));
        for host in 0..MAX_HOSTS {
            pace.admit(&host.to_string(), at(HOUR));
        }
        assert!(pace.0.len() <= MAX_HOSTS && !pace.admit("c.example", at(HOUR)));
        assert!(pace.admit("c.example", at(3 * HOUR)));
    }
}
