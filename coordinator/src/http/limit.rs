//! Who has used how much of a minute, in memory and bounded.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use parallax_core::quota::{Allowance, Minute};
use parallax_core::time::{SECOND, Timestamp};

use super::error::Refused;

/// How many users are remembered.
const MAX_USERS: usize = 100_000;

/// A limit of requests a minute for each user.
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

    /// The limit of a minute.
    pub(super) const fn limit(&self) -> u32 {
        self.limit
    }

    /// Counts a request. What the user has left is noted in `allowance`; too many are refused.
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

    /// What the user has left, without counting anything.
    pub(super) fn look(&self, user: U, now: Timestamp) -> Allowance {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.minutes.get(&user).copied().unwrap_or_else(|| Minute::new(now)).look(now, self.limit)
    }

    /// Takes back a request that was counted just now, and is not to count after all.
    pub(super) fn give_back(&self, user: U, now: Timestamp) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(minute) = users.minutes.get_mut(&user) {
            minute.give_back(now);
        }
    }

    /// Counts that many requests at once: what the user has left, or what the first of them found that is too many.
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
    /// Forgets minutes that are up, at most once a second; where that does not help, some other user's.
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
