//! Company sign-ins that were begun, while their persons are at the provider.
//!
//! They are in memory: a restart asks to begin again, and strangers who begin many make no writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use parallax_core::id::AccountId;
use parallax_core::time::{MINUTE, Timestamp};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::page_access::sign_in::BrowserId;

/// Time that a person has at the provider, in milliseconds.
pub(super) const PENDING_LIFE: i64 = 10 * MINUTE;
/// Milliseconds by which the provider's clock may differ.
pub(super) const LEEWAY: i64 = MINUTE;
/// Begun sign-ins of one address block, at most: a further one ends its oldest.
const MAX_PER_NETWORK: usize = 300;
/// Begun sign-ins in all, at most: a further one ends the oldest.
const MAX_PENDING: usize = 10_000;

/// A begun sign-in.
#[derive(Clone)]
pub(super) struct PendingCompanySignIn {
    pub(super) account: AccountId,
    /// The provider and the client of that time: a sign-in ends when they change.
    pub(super) issuer: String,
    pub(super) client_id: String,
    /// Value that the provider's proof must contain.
    pub(super) nonce: String,
    /// Secret whose hash the provider got, and which it gets with the code (RFC 7636).
    pub(super) code_verifier: String,
    /// Hash of the browser's identifier.
    pub(super) browser: [u8; 32],
    /// Address block of the browser, if known.
    pub(super) network: Option<u128>,
    /// Path to go to afterwards.
    pub(super) next: String,
    /// True with "Keep me signed in".
    pub(super) is_kept: bool,
    /// True if the person is signed in already, and is to prove again that it is them.
    pub(super) is_confirmation: bool,
    pub(super) began_at: Timestamp,
}

impl PendingCompanySignIn {
    /// Earliest time at which the person can have proved their identity if the provider asked for it again. Its clock may
    /// be behind.
    pub(super) fn asked_since(&self) -> Timestamp {
        self.began_at - LEEWAY
    }

    fn is_valid(&self, now: Timestamp) -> bool {
        (0..PENDING_LIFE).contains(&now.since(self.began_at))
    }
}

/// Begun sign-ins by the hash of their `state`.
#[derive(Default)]
pub(super) struct PendingCompanySignIns(Mutex<BTreeMap<[u8; 32], PendingCompanySignIn>>);

impl PendingCompanySignIns {
    /// Adds one under its `state`.
    pub(super) fn add(&self, state: &str, pending: PendingCompanySignIn) {
        let (now, mut all) = (pending.began_at, self.lock());
        all.retain(|_, it| it.is_valid(now));
        let is_near = |it: &PendingCompanySignIn| it.network == pending.network;
        if all.values().filter(|it| is_near(it)).count() >= MAX_PER_NETWORK {
            remove_oldest(&mut all, is_near);
        }
        if all.len() >= MAX_PENDING {
            remove_oldest(&mut all, |_| true);
        }
        all.insert(key(state), pending);
    }

    /// Takes the one with that `state` out, once, for the browser that began it. Another browser ends nothing.
    pub(super) fn take(
        &self,
        (account, state): (AccountId, &str),
        browser: Option<&BrowserId>,
        now: Timestamp,
    ) -> Option<PendingCompanySignIn> {
        let (key, browser) = (key(state), browser_hash(browser?));
        let mut all = self.lock();
        let found = all.get(&key)?;
        let is_own = bool::from(found.browser.ct_eq(&browser)) && found.account == account && found.is_valid(now);
        if is_own { all.remove(&key) } else { None }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], PendingCompanySignIn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PendingCompanySignIns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingCompanySignIns").field("count", &self.lock().len()).finish()
    }
}

/// Returns the hash by which a browser is recognized.
pub(super) fn browser_hash(browser: &BrowserId) -> [u8; 32] {
    Sha256::digest(browser).into()
}

fn key(state: &str) -> [u8; 32] {
    Sha256::digest(state).into()
}

fn remove_oldest(all: &mut BTreeMap<[u8; 32], PendingCompanySignIn>, is_match: impl Fn(&PendingCompanySignIn) -> bool) {
    let oldest = all.iter().filter(|(_, it)| is_match(it)).min_by_key(|(_, it)| it.began_at);
    if let Some(key) = oldest.map(|(key, _)| *key) {
        all.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROWSER: BrowserId = [7; 16];

    fn pending(network: u128, at: i64) -> PendingCompanySignIn {
        PendingCompanySignIn {
            account: AccountId::from_u128(1),
            issuer: String::new(),
            client_id: String::new(),
            nonce: String::new(),
            code_verifier: String::new(),
            browser: browser_hash(&BROWSER),
            network: Some(network),
            next: String::new(),
            is_kept: false,
            is_confirmation: false,
            began_at: Timestamp::from_millis(at),
        }
    }

    #[test]
    fn one_counts_once_for_ten_minutes_in_its_browser_and_account() {
        let all = PendingCompanySignIns::default();
        all.add("state", pending(1, 0));
        let take = |account, state, browser: Option<&BrowserId>, at| {
            all.take((AccountId::from_u128(account), state), browser, Timestamp::from_millis(at)).is_some()
        };
        for (account, state, browser, at) in [
            (1, "state", None, 0),
            (1, "state", Some(&[8; 16]), 0),
            (2, "state", Some(&BROWSER), 0),
            (1, "other", Some(&BROWSER), 0),
            (1, "state", Some(&BROWSER), PENDING_LIFE),
            (1, "state", Some(&BROWSER), -1),
        ] {
            assert!(!take(account, state, browser, at), "{account} {state} {browser:?} {at}");
        }
        assert!(take(1, "state", Some(&BROWSER), PENDING_LIFE - 1), "none of those ended it");
        assert!(!take(1, "state", Some(&BROWSER), 0), "it counts once");
    }

    #[test]
    fn a_network_and_all_of_them_have_so_many() {
        let all = PendingCompanySignIns::default();
        all.add("first", pending(1, 0));
        for number in 0..MAX_PER_NETWORK {
            all.add(&format!("near {number}"), pending(2, 1));
        }
        all.add("one more", pending(2, 2));
        assert_eq!(all.lock().len(), 1 + MAX_PER_NETWORK, "only its own network makes room");
        let count = all.lock().len();
        for number in count..MAX_PENDING {
            all.lock().insert(key(&format!("far {number}")), pending(3 + number as u128, 3));
        }
        all.add("too many", pending(0, 3));
        assert_eq!(all.lock().len(), MAX_PENDING);
        assert!(!all.lock().contains_key(&key("first")), "the oldest makes room");
        all.add("later", pending(1, PENDING_LIFE + 3));
        assert_eq!(all.lock().len(), 1, "those that have ended make room");
    }
}
