//! Keys of persons, with their accounts, sessions and one-time links.

use parallax_core::id::{AccountId, PersonId};
use parallax_core::login_session::LoginSessionId;
use parallax_core::one_time_link::{LinkId, LinkOwner};

use super::layout::{TreeKey, join};

pub(super) const SESSIONS: &[u8] = b"dl";
pub(super) const LINKS: &[u8] = b"dz";

pub(super) fn person(id: PersonId) -> TreeKey {
    join(b"de", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn email(email: &str) -> TreeKey {
    join(b"xa", &[email.as_bytes()])
}

pub(super) fn members_of(account: AccountId) -> TreeKey {
    join(b"dj", &[&account.to_u128().to_be_bytes()])
}

pub(super) fn member(account: AccountId, person: PersonId) -> TreeKey {
    join(&members_of(account), &[&person.to_u128().to_be_bytes()])
}

pub(super) fn memberships_of(person: PersonId) -> TreeKey {
    join(b"xy", &[&person.to_u128().to_be_bytes()])
}

pub(super) fn membership_of(person: PersonId, account: AccountId) -> TreeKey {
    join(&memberships_of(person), &[&account.to_u128().to_be_bytes()])
}

pub(super) fn company_sign_in(account: AccountId) -> TreeKey {
    join(b"dy", &[&account.to_u128().to_be_bytes()])
}

pub(super) fn company_domain(domain: &str) -> TreeKey {
    join(b"xg", &[domain.as_bytes()])
}

pub(super) fn session(id: LoginSessionId) -> TreeKey {
    join(SESSIONS, &[&id.0])
}

pub(super) fn sessions_of(person: PersonId) -> TreeKey {
    join(b"xq", &[&person.to_u128().to_be_bytes()])
}

pub(super) fn session_of(person: PersonId, id: LoginSessionId) -> TreeKey {
    join(&sessions_of(person), &[&id.0])
}

pub(super) fn link(id: LinkId) -> TreeKey {
    join(LINKS, &[&id.0])
}

pub(super) fn links_of(owner: LinkOwner) -> TreeKey {
    let (kind, id) = match owner {
        LinkOwner::Account(id) => (b"a".as_slice(), id.to_u128()),
        LinkOwner::Person(id) => (b"p".as_slice(), id.to_u128()),
    };
    join(b"xz", &[kind, &id.to_be_bytes()])
}

pub(super) fn link_of(owner: LinkOwner, id: LinkId) -> TreeKey {
    join(&links_of(owner), &[&id.0])
}
