//! Members of accounts, and the operators of the installation.

use parallax_core::id::{AccountId, PersonId};
use parallax_core::page::access::normalize_email;
use parallax_core::person::{AccountMember, MAX_MEMBERS, Person, check_password};
use parallax_core::plan::PlanLimitError;
use parallax_core::role::Role;
use parallax_core::text;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence};

use super::PeopleService;
use crate::audit::ChangeAuthor;
use crate::page_access::password;
use crate::{ServiceError, ServiceResult};

/// Longest name of a person, in characters.
pub(super) const MAX_NAME: usize = 80;

/// A person to add to an account.
#[derive(Clone)]
pub struct NewPerson {
    /// Their email address.
    pub email: String,
    /// Their name; may be empty.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// Their password; none if they sign in by mailed link alone.
    pub password: Option<String>,
}

impl std::fmt::Debug for NewPerson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewPerson").field("email", &self.email).field("role", &self.role).finish_non_exhaustive()
    }
}

impl PeopleService {
    /// Adds a new person to an account; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an account that does not exist, [`ServiceError::Invalid`] for a field that breaks
    /// a rule or a taken email address, [`ServiceError::PlanLimit`] if the account is full.
    pub async fn add_as_operator(&self, account: AccountId, new: &NewPerson) -> ServiceResult<Person> {
        let mut faults = ValidationErrors::new();
        let email = faults.record("email", normalize_email(&new.email));
        let name = faults.record("name", text::optional_line(&new.name, MAX_NAME)).flatten();
        if let Some(password) = &new.password {
            faults.record("password", check_password(password));
        }
        let Some(email) = email.filter(|_| faults.is_empty()) else { return Err(faults.into()) };
        let password_hash = match &new.password {
            Some(text) => Some(password::hash(text).await?),
            None => None,
        };
        let now = self.context.now();
        let id = PersonId::new(now, rand::random());
        let person = &Person::new((id, email), name, password_hash, now);
        let member = AccountMember::new((account, id), new.role, now);
        // One at a time, since an email address is taken once.
        let _making = self.context.create_lock.lock().await;
        self.context
            .commit_change(account.to_u128(), || async move {
                let reader = self.context.store().reader();
                reader.account(account)?.ok_or(ServiceError::NotFound)?;
                if reader.person_by_email(&person.email)?.is_some() {
                    return Err(ValidationErrors::single("email", "is taken").into());
                }
                if self.context.store().read(move |store| store.members_of(account)).await?.len() >= MAX_MEMBERS {
                    return Err(PlanLimitError::MembersFull.into());
                }
                let mut batch = Batch::new();
                batch.expect(Expect::Account(account, Presence::Present)).expect(Expect::Person(id, Presence::Absent));
                batch.write(person.clone()).write(member);
                self.context.log_change(ChangeAuthor::operator(account), &mut batch)?;
                Ok((person.clone(), Some(batch)))
            })
            .await
    }

    /// Lists the members of an account with their persons, oldest first; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub async fn members(&self, account: AccountId) -> ServiceResult<Vec<(Person, Role)>> {
        let stored = self.context.store().read(move |store| store.members_of(account)).await?;
        let mut members: Vec<AccountMember> = stored.into_iter().map(|it| it.value).collect();
        members.sort_by_key(|it| (it.joined_at, it.person));
        let reader = self.context.store().reader();
        let mut persons = Vec::new();
        for member in members {
            persons.extend(reader.person(member.person)?.map(|person| (person.value, member.role)));
        }
        Ok(persons)
    }

    /// Makes a person an operator of the installation, or takes that back; called by the operator. A new operator signs in
    /// again: what a browser held before must not become more powerful.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if no person has the email address.
    pub async fn set_operator(&self, email: &str, is_operator: bool) -> ServiceResult<Person> {
        let email = normalize_email(email).map_err(|rule| ValidationErrors::single("email", rule))?;
        let id = self.context.store().reader().person_by_email(&email)?.ok_or(ServiceError::NotFound)?.value.id;
        self.context
            .commit_change(id.to_u128(), || async move {
                let stored = self.person(id)?;
                let mut batch = Batch::new();
                if is_operator && !stored.value.is_operator {
                    self.end_sessions_of(id, |_| true, &mut batch).await?;
                }
                let changed = Person { is_operator, ..stored.value };
                batch.expect(Expect::Person(id, Presence::At(stored.revision))).write(changed.clone());
                if let Some(membership) = self.first_membership(id)? {
                    self.context.log_change(ChangeAuthor::operator(membership.account), &mut batch)?;
                }
                Ok((changed, Some(batch)))
            })
            .await
    }
}
