//! Rate limits per key in fixed windows of one minute, in bounded memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use parallax_core::quota::{Allowance, Minute};
use parallax_core::time::{SECOND, Timestamp};

use super::error::Refused;

/// Maximum number of keys tracked.
const MAX_USERS: usize = 100_000;

/// Limit of requests per minute for each key.
#[derive(Debug)]
pub(super) struct Limiter<U> {
    limit: u32,
    users: Mutex<Users<U>>,
}

#[derive(Debug)]
struct Users<U> {
    minutes: BTreeMap<U, Minute>,
    swept: Timestamp,
}

impl<U: Ord + Copy> Limiter<U> {
    pub(super) const fn new(limit: u32) -> Self {
        let users = Users { minutes: BTreeMap::new(), swept: Timestamp::from_millis(0) };
        Self { limit, users: Mutex::new(users) }
    }

    /// The number of requests allowed per minute.
    pub(super) const fn limit(&self) -> u32 {
        self.limit
    }

    /// Counts a request and writes what is left to `allowance`; refuses requests over the limit.
    pub(super) fn admit(
        &self,
        user: U,
        now: Timestamp,
        allowance: &mut Option<Allowance>,
    ) -> Result<(), Refused> {
        let admitted = self.admit_all(user, 1, now);
        let (Ok(found) | Err(found)) = admitted;
        *allowance = Some(found);
        admitted.map(drop).map_err(Refused::TooMany)
    }

    /// Returns what is left without counting a request.
    pub(super) fn look(&self, user: U, now: Timestamp) -> Allowance {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.minutes.get(&user).copied().unwrap_or_else(|| Minute::new(now)).look(now, self.limit)
    }

    /// Refunds a request that was counted at `now`.
    pub(super) fn give_back(&self, user: U, now: Timestamp) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(minute) = users.minutes.get_mut(&user) {
            minute.give_back(now);
        }
    }

    /// Counts several requests. Returns what is left, or the allowance at the first request over the limit.
    pub(super) fn admit_all(&self, user: U, requests: u32, now: Timestamp) -> Result<Allowance, Allowance> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.make_room(user, now);
        let minute = users.minutes.entry(user).or_insert_with(|| Minute::new(now));
        let mut found = minute.look(now, self.limit);
        for _ in 0..requests {
            found = minute.take(now, self.limit);
            if !found.allowed {
                return Err(found);
            }
        }
        Ok(found)
    }
}

impl<U: Ord + Copy> Users<U> {
    /// Makes room for a key: evicts expired windows, at most once a second, or else an arbitrary one.
    fn make_room(&mut self, user: U, now: Timestamp) {
        if self.minutes.len() < MAX_USERS || self.minutes.contains_key(&user) {
            return;
        }
        if now.since(self.swept).unsigned_abs() >= SECOND.unsigned_abs() {
            self.swept = now;
            self.minutes.retain(|_, minute| !minute.is_over(now));
        }
        if self.minutes.len() >= MAX_USERS {
            self.minutes.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_after_the_last_allowed_is_refused_until_the_minute_is_up() {
        let limiter = Limiter::new(2);
        let start = Timestamp::from_millis(0);
        let mut allowance = None;
        assert!(limiter.admit(1, start, &mut allowance).is_ok());
        assert!(limiter.admit(1, start, &mut allowance).is_ok());
        assert_eq!(allowance.map(|it| it.remaining), Some(0));
        assert!(limiter.admit(1, start + 59_999, &mut allowance).is_err());
        assert!(limiter.admit(2, start, &mut allowance).is_ok());
        assert!(limiter.admit(1, start + 60_000, &mut allowance).is_ok());
    }

    #[test]
    fn users_are_bounded() {
        let limiter = Limiter::new(1);
        let mut allowance = None;
        for user in 0..=MAX_USERS {
            assert!(limiter.admit(user, Timestamp::from_millis(5000), &mut allowance).is_ok());
        }
        assert_eq!(limiter.users.lock().unwrap().minutes.len(), MAX_USERS);
    }
}
