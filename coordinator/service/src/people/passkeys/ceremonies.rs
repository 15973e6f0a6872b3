//! Ceremonies that browsers began: the challenge of each is on the server, counts once, and only for the browser that asked.
//!
//! They are in memory: a restart begins them again, and strangers who open the sign-in form make no writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use parallax_core::login_session::LoginSessionId;
use parallax_core::rate_limit::{FixedWindowLimit, RateExceeded};
use parallax_core::time::{MINUTE, Timestamp};
use webauthn_rs::prelude::{DiscoverableAuthentication, PasskeyRegistration};

use super::super::SessionToken;

/// Time that a person has to answer their device, in milliseconds: that of the browser's own dialogue.
const LIFE: i64 = 5 * MINUTE;
/// Open ceremonies of one owner, such as tabs of a browser, at most: a further one ends the oldest.
const MAX_PER_OWNER: usize = 10;
/// Open ceremonies of one network, at most, likewise.
const MAX_PER_NETWORK: usize = 200;
/// Open ceremonies in all, at most, likewise. Each takes about 1 KiB.
const MAX_CEREMONIES: usize = 10_000;
/// Ceremonies that one network begins in a minute, at most.
const STARTS_PER_MINUTE: u32 = 120;

/// Options that a browser passes to its authenticator.
#[derive(Debug, Clone)]
pub struct PasskeyChallenge {
    /// Secret that names the ceremony in the answer.
    pub ceremony: String,
    /// Options for `navigator.credentials`, as JSON.
    pub options: String,
}

/// The answer of a browser's authenticator.
#[derive(Clone, Default)]
pub struct PasskeyAnswer {
    /// Secret of the ceremony.
    pub ceremony: String,
    /// The credential, as `PublicKeyCredential.toJSON()` writes it.
    pub credential: String,
}

impl std::fmt::Debug for PasskeyAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasskeyAnswer(…)")
    }
}

/// The one that may answer a ceremony.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::people) enum CeremonyOwner {
    /// A browser that nobody is signed in at, by the hash of its cookie.
    Browser([u8; 32]),
    /// A sign-in that waits for its second step.
    PendingSignIn(LoginSessionId),
    /// A session.
    Session(LoginSessionId),
}

/// State that verifies the answer.
#[derive(Debug)]
pub(super) enum CeremonyState {
    /// Of a new passkey.
    Registration(PasskeyRegistration),
    /// Of one that proves an identity.
    Authentication(DiscoverableAuthentication),
}

#[derive(Debug)]
struct Ceremony {
    owner: CeremonyOwner,
    network: Option<u128>,
    state: CeremonyState,
    began_at: Timestamp,
}

impl Ceremony {
    fn is_valid(&self, now: Timestamp) -> bool {
        (0..LIFE).contains(&now.since(self.began_at))
    }
}

/// Open ceremonies by the hash of their secret.
#[derive(Debug)]
pub(in crate::people) struct PasskeyCeremonies {
    open: Mutex<BTreeMap<LoginSessionId, Ceremony>>,
    starts: Mutex<FixedWindowLimit<u128>>,
}

impl Default for PasskeyCeremonies {
    fn default() -> Self {
        Self { open: Mutex::default(), starts: Mutex::new(FixedWindowLimit::new(MINUTE)) }
    }
}

impl PasskeyCeremonies {
    /// Counts the beginning of a ceremony, before its challenge is made.
    ///
    /// # Errors
    /// [`RateExceeded`] if the network began too many.
    pub(super) fn admit(&self, network: Option<u128>, now: Timestamp) -> Result<(), RateExceeded> {
        let Some(network) = network else { return Ok(()) };
        lock(&self.starts).admit(STARTS_PER_MINUTE, &network, now)
    }

    /// Adds a ceremony, and returns its secret.
    pub(super) fn add(
        &self,
        owner: CeremonyOwner,
        network: Option<u128>,
        state: CeremonyState,
        now: Timestamp,
    ) -> String {
        let (token, mut open) = (SessionToken::random(), lock(&self.open));
        open.retain(|_, it| it.is_valid(now));
        remove_oldest(&mut open, MAX_PER_OWNER, |it| it.owner == owner);
        if network.is_some() {
            remove_oldest(&mut open, MAX_PER_NETWORK, |it| it.network == network);
        }
        remove_oldest(&mut open, MAX_CEREMONIES, |_| true);
        open.insert(token.id(), Ceremony { owner, network, state, began_at: now });
        token.reveal().to_owned()
    }

    /// Takes the ceremony of a secret: of two at once, one gets it. None if it has ended, was taken, or is not the owner's.
    pub(super) fn take(&self, secret: &str, owner: CeremonyOwner, now: Timestamp) -> Option<CeremonyState> {
        let id = SessionToken::parse(secret)?.id();
        let mut open = lock(&self.open);
        // One with the secret from elsewhere doesn't end it for its owner.
        open.get(&id).filter(|it| it.owner == owner && it.is_valid(now))?;
        open.remove(&id).map(|it| it.state)
    }
}

/// Makes room for one more of those that match. Strangers can begin sign-ins without end: those end before what a person
/// began who is signed in, or whose password was right.
fn remove_oldest(open: &mut BTreeMap<LoginSessionId, Ceremony>, most: usize, is_match: impl Fn(&Ceremony) -> bool) {
    let matching = || open.iter().filter(|(_, it)| is_match(it));
    if matching().count() < most {
        return;
    }
    let is_known = |it: &Ceremony| !matches!(it.owner, CeremonyOwner::Browser(_));
    let oldest = matching().min_by_key(|(_, it)| (is_known(it), it.began_at)).map(|(id, _)| *id);
    if let Some(id) = oldest {
        open.remove(&id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::RelyingParty;
    use super::*;

    fn state() -> CeremonyState {
        let party = RelyingParty::of("https://status.example.com").unwrap();
        CeremonyState::Authentication(party.webauthn.start_discoverable_authentication().unwrap().1)
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    const OWNER: CeremonyOwner = CeremonyOwner::Browser([1; 32]);

    #[test]
    fn a_ceremony_counts_once_for_five_minutes_and_for_its_owner() {
        let all = PasskeyCeremonies::default();
        let add = || all.add(OWNER, None, state(), at(0));
        let secret = add();
        assert!(all.take(&secret, CeremonyOwner::Browser([2; 32]), at(0)).is_none());
        assert!(all.take(&secret, CeremonyOwner::Session(LoginSessionId([1; 32])), at(0)).is_none());
        assert!(all.take(&secret, OWNER, at(LIFE - 1)).is_some(), "others did not end it");
        assert!(all.take(&secret, OWNER, at(LIFE - 1)).is_none(), "taken");
        assert!(all.take(&add(), OWNER, at(LIFE)).is_none() && all.take(&add(), OWNER, at(-1)).is_none());
        for invalid in ["", "a", SessionToken::random().reveal()] {
            assert!(all.take(invalid, OWNER, at(0)).is_none(), "{invalid}");
        }
    }

    #[test]
    fn an_owner_a_network_and_all_of_them_have_so_many() {
        let all = PasskeyCeremonies::default();
        let count = || lock(&all.open).len();
        let first = all.add(OWNER, Some(1), state(), at(0));
        for number in 1..=MAX_PER_OWNER {
            all.add(OWNER, Some(1), state(), at(number as i64));
        }
        assert_eq!(count(), MAX_PER_OWNER);
        assert!(all.take(&first, OWNER, at(20)).is_none(), "the oldest ended");
        let owner = |number: usize| CeremonyOwner::PendingSignIn(LoginSessionId([number as u8; 32]));
        for number in 0..2 * MAX_PER_NETWORK {
            all.add(owner(number / MAX_PER_OWNER), Some(1), state(), at(100 + number as i64));
        }
        assert_eq!(count(), MAX_PER_NETWORK);
        let mut open = lock(&all.open);
        let templates: Vec<_> = open.keys().copied().collect();
        for number in 0..MAX_CEREMONIES as u32 {
            let mut id = templates[0];
            id.0[..4].copy_from_slice(&number.to_be_bytes());
            let (owner, began_at) = (CeremonyOwner::Session(id), at(1000));
            open.insert(id, Ceremony { owner, network: None, state: state(), began_at });
        }
        open.retain(|_, it| matches!(it.owner, CeremonyOwner::Session(_)));
        drop(open);
        all.add(OWNER, Some(2), state(), at(1001));
        assert_eq!(count(), MAX_CEREMONIES);
        all.add(OWNER, Some(2), state(), at(1001 + LIFE));
        assert_eq!(count(), 1, "those that have ended make room");
    }

    #[test]
    fn strangers_end_no_ceremony_of_someone_known() {
        let all = PasskeyCeremonies::default();
        let session = CeremonyOwner::Session(LoginSessionId([1; 32]));
        let pending = CeremonyOwner::PendingSignIn(LoginSessionId([2; 32]));
        let known = [session, pending].map(|owner| (owner, all.add(owner, Some(1), state(), at(0))));
        let mut newest = String::new();
        for number in 0..2 * MAX_PER_NETWORK {
            let owner = CeremonyOwner::Browser([(number / MAX_PER_OWNER) as u8; 32]);
            newest = all.add(owner, Some(1), state(), at(1 + number as i64));
        }
        assert_eq!(lock(&all.open).len(), MAX_PER_NETWORK);
        let now = at(1000);
        let last = CeremonyOwner::Browser([((2 * MAX_PER_NETWORK - 1) / MAX_PER_OWNER) as u8; 32]);
        assert!(all.take(&newest, last, now).is_some(), "the newest has room");
        assert!(known.into_iter().all(|(owner, secret)| all.take(&secret, owner, now).is_some()));
    }

    #[test]
    fn a_network_begins_so_many_a_minute() {
        let all = PasskeyCeremonies::default();
        for _ in 0..STARTS_PER_MINUTE {
            all.admit(Some(1), at(0)).unwrap();
        }
        assert!(matches!(all.admit(Some(1), at(0)), Err(RateExceeded { seconds: 1..=60 })));
        all.admit(Some(2), at(0)).unwrap();
        all.admit(Some(1), at(MINUTE)).unwrap();
    }
}
