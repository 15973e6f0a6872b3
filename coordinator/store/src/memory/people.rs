//! Persons in memory, with their accounts, sessions and one-time links in maps.

use std::collections::BTreeMap;

use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::id::{AccountId, PersonId};
use parallax_core::login_session::{LoginSession, LoginSessionId};
use parallax_core::one_time_link::{LinkId, LinkOwner, OneTimeLink};
use parallax_core::person::{AccountMember, Person};

use super::{MemoryStore, Records};
use crate::{Op, PeopleRead, Result, VersionedValue};

#[derive(Debug, Default)]
pub(super) struct MemoryPeople {
    pub(super) persons: Records<PersonId, Person>,
    pub(super) emails: BTreeMap<String, PersonId>,
    pub(super) members: Records<(AccountId, PersonId), AccountMember>,
    pub(super) companies: Records<AccountId, CompanySignIn>,
    pub(super) sessions: Records<LoginSessionId, LoginSession>,
    pub(super) links: Records<LinkId, OneTimeLink>,
}

impl MemoryPeople {
    /// Applies an operation if it concerns persons; ignores all others.
    pub(super) fn apply(&mut self, op: &Op, revision: u64) {
        fn put<K: Ord, T: Clone>(records: &mut Records<K, T>, revision: u64, key: K, value: &T) {
            records.insert(key, VersionedValue { revision, value: value.clone() });
        }
        match op {
            Op::PutPerson(person) => {
                let old = self.persons.get(&person.id).map(|old| old.value.email.clone());
                if let Some(old) = old.filter(|old| self.emails.get(old) == Some(&person.id)) {
                    self.emails.remove(&old);
                }
                self.emails.insert(person.email.clone(), person.id);
                put(&mut self.persons, revision, person.id, person);
            }
            Op::PutAccountMember(it) => put(&mut self.members, revision, (it.account, it.person), it),
            Op::DeleteAccountMember(account, person) => drop(self.members.remove(&(*account, *person))),
            Op::PutCompanySignIn(it) => put(&mut self.companies, revision, it.account, it),
            Op::DeleteCompanySignIn(account) => drop(self.companies.remove(account)),
            Op::PutLoginSession(it) => put(&mut self.sessions, revision, it.id, it),
            Op::DeleteLoginSession(id) => drop(self.sessions.remove(id)),
            Op::PutOneTimeLink(it) => put(&mut self.links, revision, it.id, it),
            Op::DeleteOneTimeLink(id) => drop(self.links.remove(id)),
            _ => {}
        }
    }
}

impl MemoryPeople {
    /// Returns the company sign-in of the account that proved the email domain.
    pub(super) fn company_of_domain(&self, domain: &str) -> Option<&VersionedValue<CompanySignIn>> {
        self.companies.values().find(|it| it.value.proved_domains().any(|proved| proved == domain))
    }
}

impl PeopleRead for MemoryStore {
    fn person(&self, id: PersonId) -> Result<Option<VersionedValue<Person>>> {
        Ok(self.read().people.persons.get(&id).cloned())
    }

    fn person_by_email(&self, email: &str) -> Result<Option<VersionedValue<Person>>> {
        let state = self.read();
        Ok(state.people.emails.get(email).and_then(|id| state.people.persons.get(id)).cloned())
    }

    fn account_member(&self, account: AccountId, person: PersonId) -> Result<Option<VersionedValue<AccountMember>>> {
        Ok(self.read().people.members.get(&(account, person)).cloned())
    }

    fn members_of(&self, account: AccountId) -> Result<Vec<VersionedValue<AccountMember>>> {
        let state = self.read();
        Ok(state.people.members.values().filter(|it| it.value.account == account).cloned().collect())
    }

    fn memberships_of(&self, person: PersonId) -> Result<Vec<VersionedValue<AccountMember>>> {
        let state = self.read();
        Ok(state.people.members.values().filter(|it| it.value.person == person).cloned().collect())
    }

    fn company_sign_in(&self, account: AccountId) -> Result<Option<VersionedValue<CompanySignIn>>> {
        Ok(self.read().people.companies.get(&account).cloned())
    }

    fn company_of_domain(&self, domain: &str) -> Result<Option<VersionedValue<CompanySignIn>>> {
        Ok(self.read().people.company_of_domain(domain).cloned())
    }

    fn login_session(&self, id: LoginSessionId) -> Result<Option<VersionedValue<LoginSession>>> {
        Ok(self.read().people.sessions.get(&id).cloned())
    }

    fn login_sessions_of(&self, person: PersonId) -> Result<Vec<VersionedValue<LoginSession>>> {
        let state = self.read();
        Ok(state.people.sessions.values().filter(|it| it.value.person == person).cloned().collect())
    }

    fn login_session_ids(&self, limit: usize) -> Result<Vec<LoginSessionId>> {
        Ok(self.read().people.sessions.keys().take(limit).copied().collect())
    }

    fn one_time_link(&self, id: LinkId) -> Result<Option<VersionedValue<OneTimeLink>>> {
        Ok(self.read().people.links.get(&id).cloned())
    }

    fn one_time_links_of(&self, owner: LinkOwner) -> Result<Vec<VersionedValue<OneTimeLink>>> {
        let state = self.read();
        Ok(state.people.links.values().filter(|it| it.value.kind.owner() == owner).cloned().collect())
    }

    fn one_time_link_ids(&self, limit: usize) -> Result<Vec<LinkId>> {
        Ok(self.read().people.links.keys().take(limit).copied().collect())
    }
}
