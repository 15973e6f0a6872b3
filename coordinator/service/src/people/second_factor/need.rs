//! The setting "Members need a second factor", and the time that members have for it.

use parallax_core::account::Account;
use parallax_core::id::AccountId;
use parallax_core::login_session::LoginSession;
use parallax_core::person::{AccountMember, Person};
use parallax_core::second_factor::factor_deadline;
use parallax_core::time::Timestamp;
use parallax_store::{Batch, Expect, Presence, VersionedValue};

use super::super::{CurrentSession, PeopleService};
use crate::{ServiceError, ServiceResult};

impl PeopleService {
    /// Sets if members of the account need a second factor. Those without one have seven days.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`].
    pub async fn set_factor_needed(&self, current: &CurrentSession, is_needed: bool) -> ServiceResult<()> {
        let account = self.begin_member_change(current)?;
        let now = self.context.now();
        let is_changed = self
            .context
            .commit_change(account.to_u128(), || async move {
                let stored = self.context.store().reader().account(account)?.ok_or(ServiceError::NotFound)?;
                let VersionedValue { revision, value } = stored;
                if value.factor_needed_since.is_some() == is_needed {
                    return Ok((false, None));
                }
                let mut batch = Batch::new();
                self.expect_owner(current, &mut batch)?;
                batch.expect(Expect::Account(account, Presence::At(revision)));
                batch.write(Account { factor_needed_since: is_needed.then_some(now), ..value });
                self.context.log_change(current.author(), &mut batch)?;
                Ok((true, Some(batch)))
            })
            .await?;
        if is_changed {
            let by = current.person.id;
            tracing::info!(%account, %by, is_needed, "the need of a second factor was changed");
        }
        Ok(())
    }

    /// Returns true if members of the session's account need a second factor.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn is_factor_needed(&self, current: &CurrentSession) -> ServiceResult<bool> {
        let account = self.context.store().reader().account(current.session.account)?;
        Ok(account.is_some_and(|account| account.value.factor_needed_since.is_some()))
    }

    /// Returns true if a right password or link is not enough to sign a person in: they have an app; or a passkey, and an
    /// account that needs a second factor, be it the one that they sign in to. Elsewhere a passkey is a way in of its own:
    /// who has it at one device only must not be locked out at others.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn needs_second_step(&self, person: &Person, target: AccountId) -> ServiceResult<bool> {
        if person.second_factor.is_active() {
            return Ok(true);
        }
        if !self.has_passkey(person) {
            return Ok(false);
        }
        let reader = self.context.store().reader();
        let memberships = reader.memberships_of(person.id)?.into_iter().map(|it| it.value.account);
        for account in memberships.chain([target]) {
            if reader.account(account)?.is_some_and(|account| account.value.factor_needed_since.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the time until which a member may go without a second factor; none if they have one or need none, or
    /// the company's provider asks for one.
    pub(in crate::people) fn factor_due(
        &self,
        session: &LoginSession,
        member: &AccountMember,
        person: &Person,
    ) -> ServiceResult<Option<Timestamp>> {
        if person.second_factor.is_active() || self.has_passkey(person) {
            return Ok(None);
        }
        if session.is_company && self.company(member.account)?.is_some_and(|company| company.covers_second_factor) {
            return Ok(None);
        }
        let account = self.context.store().reader().account(member.account)?;
        Ok(account.and_then(|account| factor_deadline(account.value.factor_needed_since, member.joined_at)))
    }
}
