//! Accounts that need company sign-in, and the sessions that they accept.
//!
//! Owners keep their own ways in: a provider that is down or set up wrongly must not shut everyone out.

use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::id::{AccountId, PersonId};
use parallax_core::login_session::LoginSession;
use parallax_core::person::AccountMember;
use parallax_core::role::Role;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Op};

use super::super::{CurrentSession, PeopleService};
use crate::{ServiceError, ServiceResult};

impl PeopleService {
    /// Returns the company sign-in of an account.
    pub(in crate::people) fn company(&self, account: AccountId) -> ServiceResult<Option<CompanySignIn>> {
        Ok(self.context.store().reader().company_sign_in(account)?.map(|it| it.value))
    }

    /// Returns true if a member may enter the account by company sign-in alone.
    pub(in crate::people) fn needs_company(&self, member: &AccountMember) -> ServiceResult<bool> {
        let is_required = |company: CompanySignIn| company.is_required;
        Ok(member.is_company_only
            || (member.role != Role::Owner && self.company(member.account)?.is_some_and(is_required)))
    }

    /// The same for a person with the membership that they have, or get in the batch.
    pub(in crate::people) fn needs_company_after(
        &self,
        (account, person): (AccountId, PersonId),
        batch: &Batch,
    ) -> ServiceResult<bool> {
        let new = batch.ops.iter().rev().find_map(|op| match op {
            Op::PutAccountMember(it) if (it.account, it.person) == (account, person) => Some(**it),
            _ => None,
        });
        let member = match new {
            Some(member) => Some(member),
            None => self.context.store().reader().account_member(account, person)?.map(|it| it.value),
        };
        member.map_or(Ok(false), |member| self.needs_company(&member))
    }

    /// Returns true if the account accepts a session of its member: one by company sign-in while the member is bound to who
    /// they were at the provider then, or any other unless company sign-in is required.
    pub(in crate::people) fn accepts_session(
        &self,
        session: &LoginSession,
        member: &AccountMember,
    ) -> ServiceResult<bool> {
        if session.is_company {
            return Ok(session.company_subject.is_some() && session.company_subject == member.company_subject);
        }
        Ok(!self.needs_company(member)?)
    }

    /// Returns the account in which a person is signed in by their own means: the first that they joined, of those that
    /// accept them.
    pub(in crate::people) fn sign_in_membership(&self, person: PersonId) -> ServiceResult<Option<AccountMember>> {
        let memberships = self.context.store().reader().memberships_of(person)?;
        let mut memberships: Vec<AccountMember> = memberships.into_iter().map(|it| it.value).collect();
        memberships.sort_by_key(|it| (it.joined_at, it.account));
        for member in &memberships {
            if !self.needs_company(member)? {
                return Ok(Some(*member));
            }
        }
        Ok(memberships.first().copied())
    }

    /// Returns true if a person with that address and role could get in: members of an account that requires company
    /// sign-in have addresses of its email domains.
    pub(in crate::people) fn can_get_in(&self, account: AccountId, (email, role): (&str, Role)) -> ServiceResult<bool> {
        let company = self.company(account)?.filter(|it| it.is_required && role != Role::Owner);
        Ok(company.is_none_or(|company| company.covers_email(email)))
    }

    /// Checks that a session may change what counts in all accounts of its person. A company's provider, which may name
    /// anyone, is trusted for its account alone.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] for a session by company sign-in.
    pub(in crate::people) fn require_own_sign_in(current: &CurrentSession) -> ServiceResult<()> {
        if current.session.is_company {
            let rule = "is by company sign-in, which opens this account alone: sign in with your password, a passkey or a \
                        mailed link to change this";
            return Err(ServiceError::from(ValidationErrors::single("session", rule)));
        }
        Ok(())
    }
}
