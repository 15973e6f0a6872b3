//! Sign-ins whose password or mailed link was right, and whose code is asked for.
//!
//! They are in memory: a restart asks for the password again, and an attacker with a right password makes no writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use parallax_core::id::{AccountId, PersonId};
use parallax_core::login_session::LoginSessionId;
use parallax_core::time::{MINUTE, Timestamp};

use super::super::SessionToken;
use super::super::company::CompanyProof;
use super::super::counted_try::CountedTry;

/// Time that a person has for the code, in milliseconds.
pub(super) const PENDING_LIFE: i64 = 10 * MINUTE;
/// Pending sign-ins of one person, at most: a further one ends the oldest.
const MAX_PER_PERSON: usize = 5;
/// Pending sign-ins of all persons, at most: a further one ends the oldest.
const MAX_PENDING: usize = 2_000;

/// A sign-in that waits for its code.
#[derive(Clone)]
pub(super) struct PendingSignIn {
    pub(super) person: PersonId,
    /// Hash of the password at that time: another one ends it.
    pub(super) password_hash: Option<String>,
    pub(super) target: SignInTarget,
    /// True with "Keep me signed in".
    pub(super) is_kept: bool,
    pub(super) began_at: Timestamp,
    /// The try of the password, which counts as failed until the code is right; none without one.
    pub(super) password_try: Option<CountedTry>,
}

/// Account in which a person is signed in once their code was right.
#[derive(Clone)]
pub(in crate::people) struct SignInTarget {
    /// The account.
    pub(in crate::people) account: AccountId,
    /// Token of the invitation that makes them its member; none for a member.
    pub(in crate::people) invitation: Option<String>,
    /// The company's provider, if it proved them.
    pub(in crate::people) company: Option<CompanyProof>,
}

impl From<AccountId> for SignInTarget {
    fn from(account: AccountId) -> Self {
        Self { account, invitation: None, company: None }
    }
}

impl PendingSignIn {
    fn is_valid(&self, now: Timestamp) -> bool {
        (0..PENDING_LIFE).contains(&now.since(self.began_at))
    }
}

/// Pending sign-ins by the hash of the secret in the browser's cookie.
#[derive(Default)]
pub(in crate::people) struct PendingSignIns(Mutex<BTreeMap<LoginSessionId, PendingSignIn>>);

impl PendingSignIns {
    /// Adds one, and returns the secret for the browser's cookie.
    pub(super) fn add(&self, pending: PendingSignIn) -> SessionToken {
        let (token, now, mut all) = (SessionToken::random(), pending.began_at, self.lock());
        all.retain(|_, it| it.is_valid(now));
        let of_person = |it: &&PendingSignIn| it.person == pending.person;
        if all.values().filter(of_person).count() >= MAX_PER_PERSON {
            remove_oldest(&mut all, |it| it.person == pending.person);
        }
        if all.len() >= MAX_PENDING {
            remove_oldest(&mut all, |_| true);
        }
        all.insert(token.id(), pending);
        token
    }

    /// Returns the one of a cookie; none if it has ended, or never was.
    pub(super) fn get(&self, token: &SessionToken, now: Timestamp) -> Option<PendingSignIn> {
        self.lock().get(&token.id()).filter(|it| it.is_valid(now)).cloned()
    }

    /// Adds the try of the password that began one.
    pub(in crate::people) fn add_try(&self, token: &SessionToken, counted: &CountedTry) {
        if let Some(pending) = self.lock().get_mut(&token.id()) {
            pending.password_try = Some(counted.clone());
        }
    }

    /// Ends the one of a cookie.
    pub(super) fn end(&self, token: &SessionToken) {
        self.lock().remove(&token.id());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LoginSessionId, PendingSignIn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PendingSignIns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingSignIns").field("count", &self.lock().len()).finish()
    }
}

fn remove_oldest(all: &mut BTreeMap<LoginSessionId, PendingSignIn>, is_match: impl Fn(&PendingSignIn) -> bool) {
    let oldest = all.iter().filter(|(_, it)| is_match(it)).min_by_key(|(_, it)| it.began_at);
    if let Some(id) = oldest.map(|(id, _)| *id) {
        all.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(person: u128, at: i64) -> PendingSignIn {
        PendingSignIn {
            person: PersonId::from_u128(person),
            password_hash: None,
            target: AccountId::from_u128(1).into(),
            is_kept: false,
            began_at: Timestamp::from_millis(at),
            password_try: None,
        }
    }

    #[test]
    fn one_waits_ten_minutes() {
        let all = PendingSignIns::default();
        let token = all.add(pending(1, 0));
        let is_there = |at| all.get(&token, Timestamp::from_millis(at)).is_some();
        assert!(is_there(0) && is_there(PENDING_LIFE - 1));
        assert!(!is_there(PENDING_LIFE) && !is_there(-1));
        assert!(all.get(&SessionToken::random(), Timestamp::from_millis(0)).is_none());
        all.end(&token);
        assert!(!is_there(0));
    }

    #[test]
    fn a_person_and_all_of_them_have_so_many() {
        let all = PendingSignIns::default();
        let now = Timestamp::from_millis(100);
        let first: Vec<_> = (0..=MAX_PER_PERSON).map(|number| all.add(pending(1, number as i64))).collect();
        assert_eq!(first.iter().filter(|token| all.get(token, now).is_some()).count(), MAX_PER_PERSON);
        assert!(all.get(&first[0], now).is_none(), "the oldest ended");
        for person in 2..2 + MAX_PENDING as u128 {
            all.add(pending(person, 50));
        }
        assert_eq!(all.lock().len(), MAX_PENDING);
        assert!(first.iter().all(|token| all.get(token, now).is_none()), "the oldest ended");
        all.add(pending(1, PENDING_LIFE + 50));
        assert_eq!(all.lock().len(), 1, "those that have ended make room");
    }
}
