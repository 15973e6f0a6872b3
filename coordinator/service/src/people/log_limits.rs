//! Limits of entries in the audit log that no change bounds: nobody can fill a log, which would evict what it is for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use parallax_core::id::{AccountId, PersonId};
use parallax_core::rate_limit::FixedWindowLimit;
use parallax_core::time::{DAY, HOUR, Timestamp};

/// Failed sign-ins of one account that are logged in an hour, at most.
const FAILURES_PER_HOUR: u32 = 20;
/// The same in a day: so many fill the log's 20,000 entries no sooner than after the 400 days for which one is kept.
const FAILURES_PER_DAY: u32 = 40;
/// Switches of a person to one account that are logged in a day, at most.
const SWITCHES_PER_DAY: u32 = 1;
/// Persons in accounts whose switches are remembered. The oldest are forgotten: their next switch is logged again.
const MAX_SWITCHES: usize = 10_000;

/// Entries that were logged, by their kind.
#[derive(Debug)]
pub(super) struct LogLimits {
    failures_of_hour: Mutex<FixedWindowLimit<AccountId>>,
    failures_of_day: Mutex<FixedWindowLimit<AccountId>>,
    switches: Mutex<FixedWindowLimit<(AccountId, PersonId)>>,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            failures_of_hour: Mutex::new(FixedWindowLimit::new(HOUR)),
            failures_of_day: Mutex::new(FixedWindowLimit::new(DAY)),
            switches: Mutex::new(FixedWindowLimit::evicting(DAY, MAX_SWITCHES)),
        }
    }
}

impl LogLimits {
    /// Counts a failed sign-in that an account would log. Returns false once it logged too many.
    pub(super) fn admit_failure(&self, account: AccountId, now: Timestamp) -> bool {
        // Those that the hour refuses are not logged, so they don't use up the day.
        lock(&self.failures_of_hour).admit(FAILURES_PER_HOUR, &account, now).is_ok()
            && lock(&self.failures_of_day).admit(FAILURES_PER_DAY, &account, now).is_ok()
    }

    /// Returns true if a switch of a person to an account is logged; counts nothing.
    pub(super) fn admits_switch(&self, account: AccountId, person: PersonId, now: Timestamp) -> bool {
        lock(&self.switches).would_admit(SWITCHES_PER_DAY, &(account, person), now)
    }

    /// Counts a switch that was logged.
    pub(super) fn count_switch(&self, account: AccountId, person: PersonId, now: Timestamp) {
        lock(&self.switches).count(SWITCHES_PER_DAY, &(account, person), 1, now);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use parallax_core::audit::{AUDIT_RETENTION, MAX_AUDIT_ENTRIES};

    use super::*;

    #[test]
    fn failures_never_evict_what_is_kept() {
        let (limits, account) = (LogLimits::default(), AccountId::from_u128(1));
        let start = Timestamp::from_millis(0);
        let mut logged = 0;
        // Thirty an hour, for as long as an entry is kept.
        for hour in 0..AUDIT_RETENTION / HOUR {
            for _ in 0..30 {
                logged += u64::from(limits.admit_failure(account, start + hour * HOUR));
            }
            if hour == 0 {
                assert_eq!(logged, u64::from(FAILURES_PER_HOUR));
            }
        }
        assert_eq!(logged, 400 * u64::from(FAILURES_PER_DAY));
        assert!(logged < MAX_AUDIT_ENTRIES);
        assert!(limits.admit_failure(AccountId::from_u128(2), start), "another account has its own");
    }

    #[test]
    fn a_switch_is_logged_once_a_day_for_each_person_and_account() {
        let limits = LogLimits::default();
        let (account, other) = (AccountId::from_u128(1), AccountId::from_u128(2));
        let (ann, bob) = (PersonId::from_u128(1), PersonId::from_u128(2));
        let at = Timestamp::from_millis;
        assert!(limits.admits_switch(account, ann, at(0)) && limits.admits_switch(account, ann, at(0)));
        limits.count_switch(account, ann, at(0));
        assert!(!limits.admits_switch(account, ann, at(DAY - 1)));
        assert!(limits.admits_switch(account, bob, at(1)) && limits.admits_switch(other, ann, at(1)));
        assert!(limits.admits_switch(account, ann, at(DAY)));
    }
}
