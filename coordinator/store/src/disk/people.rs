//! Persons on disk, with their accounts, sessions and one-time links, and the indexes that find them.

use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::id::{AccountId, PersonId};
use parallax_core::login_session::{LoginSession, LoginSessionId};
use parallax_core::one_time_link::{LinkId, LinkOwner, OneTimeLink};
use parallax_core::person::{AccountMember, Person};
use serde::de::DeserializeOwned;

use super::engine_error;
use super::layout::TreeKey;
use super::pending::PendingChanges;
use super::people_layout as layout;
use super::reader::DiskReader;
use super::record_read::{read_record, versioned};
use crate::{PeopleRead, Result, VersionedValue};

/// Stores a person, with their email address.
pub(super) fn put_person(pending: &mut PendingChanges<'_>, person: &Person) -> Result<()> {
    let old = pending.document::<Person>(&layout::person(person.id))?;
    if let Some((_, old)) = old.filter(|(_, old)| old.email != person.email) {
        let key = layout::email(&old.email);
        if pending.get::<PersonId>(&key)? == Some(person.id) {
            pending.delete(key)?;
        }
    }
    pending.put(layout::email(&person.email), &person.id)?;
    pending.put_document(layout::person(person.id), person)
}

/// Stores a person's membership of an account.
pub(super) fn put_member(pending: &mut PendingChanges<'_>, member: &AccountMember) -> Result<()> {
    pending.put(layout::membership_of(member.person, member.account), &())?;
    pending.put_document(layout::member(member.account, member.person), member)
}

/// Deletes a person's membership of an account.
pub(super) fn delete_member(pending: &mut PendingChanges<'_>, account: AccountId, person: PersonId) -> Result<()> {
    pending.delete(layout::membership_of(person, account))?;
    pending.delete(layout::member(account, person))
}

/// Stores an account's company sign-in, with its proved domains.
pub(super) fn put_company(pending: &mut PendingChanges<'_>, company: &CompanySignIn) -> Result<()> {
    delete_company(pending, company.account)?;
    for domain in company.proved_domains() {
        pending.put(layout::company_domain(domain), &company.account)?;
    }
    pending.put_document(layout::company_sign_in(company.account), company)
}

/// Deletes an account's company sign-in, which frees its domains.
pub(super) fn delete_company(pending: &mut PendingChanges<'_>, account: AccountId) -> Result<()> {
    let key = layout::company_sign_in(account);
    let Some((_, old)) = pending.document::<CompanySignIn>(&key)? else { return Ok(()) };
    for domain in old.proved_domains() {
        pending.delete(layout::company_domain(domain))?;
    }
    pending.delete(key)
}

/// Stores a signed-in browser.
pub(super) fn put_session(pending: &mut PendingChanges<'_>, session: &LoginSession) -> Result<()> {
    delete_session(pending, session.id)?;
    pending.put(layout::session_of(session.person, session.id), &())?;
    pending.put_document(layout::session(session.id), session)
}

/// Deletes a signed-in browser.
pub(super) fn delete_session(pending: &mut PendingChanges<'_>, id: LoginSessionId) -> Result<()> {
    let Some((_, old)) = pending.document::<LoginSession>(&layout::session(id))? else { return Ok(()) };
    pending.delete(layout::session_of(old.person, id))?;
    pending.delete(layout::session(id))
}

/// Stores a one-time link.
pub(super) fn put_link(pending: &mut PendingChanges<'_>, link: &OneTimeLink) -> Result<()> {
    delete_link(pending, link.id)?;
    pending.put(layout::link_of(link.kind.owner(), link.id), &())?;
    pending.put_document(layout::link(link.id), link)
}

/// Deletes a one-time link.
pub(super) fn delete_link(pending: &mut PendingChanges<'_>, id: LinkId) -> Result<()> {
    let Some((_, old)) = pending.document::<OneTimeLink>(&layout::link(id))? else { return Ok(()) };
    pending.delete(layout::link_of(old.kind.owner(), id))?;
    pending.delete(layout::link(id))
}

impl DiskReader {
    /// Returns the hashes that end the keys with a prefix, up to `limit`.
    fn hashes(&self, prefix: &[u8], limit: usize) -> Result<Vec<[u8; 32]>> {
        self.query(|tree| {
            let keys = tree.scan_prefix(prefix).keys().take(limit);
            keys.map(|key| Ok(key.map_err(engine_error)?.last_chunk().copied().unwrap_or_default())).collect()
        })
    }

    /// Returns the documents whose hashes end the keys of an index.
    fn by_hash<T: DeserializeOwned>(
        &self,
        index: &[u8],
        key: impl Fn([u8; 32]) -> TreeKey,
    ) -> Result<Vec<VersionedValue<T>>> {
        self.query(|tree| {
            let mut records = Vec::new();
            for item in tree.scan_prefix(index).keys() {
                let hash = item.map_err(engine_error)?.last_chunk().copied().unwrap_or_default();
                records.extend(read_record(tree, &key(hash))?.map(versioned));
            }
            Ok(records)
        })
    }
}

impl PeopleRead for DiskReader {
    fn person(&self, id: PersonId) -> Result<Option<VersionedValue<Person>>> {
        self.document(&layout::person(id))
    }

    fn person_by_email(&self, email: &str) -> Result<Option<VersionedValue<Person>>> {
        self.query(|tree| {
            let Some(id) = read_record(tree, &layout::email(email))? else { return Ok(None) };
            Ok(read_record(tree, &layout::person(id))?.map(versioned))
        })
    }

    fn account_member(&self, account: AccountId, person: PersonId) -> Result<Option<VersionedValue<AccountMember>>> {
        self.document(&layout::member(account, person))
    }

    fn members_of(&self, account: AccountId) -> Result<Vec<VersionedValue<AccountMember>>> {
        Ok(self.all(&layout::members_of(account))?.into_iter().map(|(_, document)| versioned(document)).collect())
    }

    fn memberships_of(&self, person: PersonId) -> Result<Vec<VersionedValue<AccountMember>>> {
        let key = |account| layout::member(AccountId::from_u128(account), person);
        self.indexed(&layout::memberships_of(person), key)
    }

    fn company_sign_in(&self, account: AccountId) -> Result<Option<VersionedValue<CompanySignIn>>> {
        self.document(&layout::company_sign_in(account))
    }

    fn company_of_domain(&self, domain: &str) -> Result<Option<VersionedValue<CompanySignIn>>> {
        self.query(|tree| {
            let Some(id) = read_record(tree, &layout::company_domain(domain))? else { return Ok(None) };
            Ok(read_record(tree, &layout::company_sign_in(id))?.map(versioned))
        })
    }

    fn login_session(&self, id: LoginSessionId) -> Result<Option<VersionedValue<LoginSession>>> {
        self.document(&layout::session(id))
    }

    fn login_sessions_of(&self, person: PersonId) -> Result<Vec<VersionedValue<LoginSession>>> {
        self.by_hash(&layout::sessions_of(person), |hash| layout::session(LoginSessionId(hash)))
    }

    fn login_session_ids(&self, limit: usize) -> Result<Vec<LoginSessionId>> {
        Ok(self.hashes(layout::SESSIONS, limit)?.into_iter().map(LoginSessionId).collect())
    }

    fn one_time_link(&self, id: LinkId) -> Result<Option<VersionedValue<OneTimeLink>>> {
        self.document(&layout::link(id))
    }

    fn one_time_links_of(&self, owner: LinkOwner) -> Result<Vec<VersionedValue<OneTimeLink>>> {
        self.by_hash(&layout::links_of(owner), |hash| layout::link(LinkId(hash)))
    }

    fn one_time_link_ids(&self, limit: usize) -> Result<Vec<LinkId>> {
        Ok(self.hashes(layout::LINKS, limit)?.into_iter().map(LinkId).collect())
    }
}
