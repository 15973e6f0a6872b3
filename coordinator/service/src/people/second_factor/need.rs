//! The setting "Members need a second factor", and the time that members have for it.

use parallax_core::account::Account;
use parallax_core::id::AccountId;
use parallax_core::login_session::LoginSession;
use parallax_core::passkey::PersonPasskeys;
use parallax_core::person::{AccountMember, Person};
use parallax_core::second_factor::factor_deadline;
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence, VersionedValue};

use super::super::company::shuts_members_out;
use super::super::{CurrentSession, PeopleService};
use crate::{ServiceError, ServiceResult};

/// Second factors of a person, and the need of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactorNeed {
    /// True if they have an authenticator app.
    pub has_app: bool,
    /// Number of their passkeys that work at the dashboard's address.
    pub passkeys: usize,
    /// True if an account of theirs needs a second factor.
    pub is_needed: bool,
}

impl FactorNeed {
    /// Returns true if a right password or link is not enough to sign in: they have an app; or a passkey, and an account
    /// that needs a second factor. Elsewhere a passkey is a way in of its own: who has it at one device only must not be
    /// locked out at others.
    pub const fn asks_for_second_step(self) -> bool {
        self.has_app || self.rests_on_passkeys()
    }

    /// Returns true if a second factor is needed, and passkeys are the only ones.
    pub const fn rests_on_passkeys(self) -> bool {
        self.is_needed && !self.has_app && self.passkeys > 0
    }

    /// Returns true if a second factor is needed, and one passkey is the only one.
    pub const fn rests_on_one_passkey(self) -> bool {
        self.rests_on_passkeys() && self.passkeys == 1
    }

    /// Returns true if a second factor is needed, and the app is the only one.
    pub const fn rests_on_app(self) -> bool {
        self.is_needed && self.has_app && self.passkeys == 0
    }

    /// Returns true if a second factor is needed, and the person has none.
    pub const fn is_missing(self) -> bool {
        self.is_needed && !self.has_app && self.passkeys == 0
    }
}

impl PeopleService {
    /// Sets if members of the account need a second factor. Those without one have seven days.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`]; [`ServiceError::Invalid`] if members could
    /// set none up, since they have to sign in by a provider that asks for none.
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
                let changed = Account { factor_needed_since: is_needed.then_some(now), ..value };
                // Another owner may be requiring company sign-in now.
                let company = self.context.store().reader().company_sign_in(account)?;
                let presence = company.as_ref().map_or(Presence::Absent, |it| Presence::At(it.revision));
                batch.expect(Expect::CompanySignIn(account, presence));
                if company.is_some_and(|company| shuts_members_out(&company.value, &changed)) {
                    let rule = "company sign-in is required for members, and sets no second factor up: tick \"The provider \
                                asks for a second factor\" there first";
                    return Err(ValidationErrors::single("needed", rule).into());
                }
                batch.write(changed);
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

    /// Returns the second factors of a person, and if an account of theirs needs one, be it the one that they sign in to.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn factor_need(&self, person: &Person, target: Option<AccountId>) -> ServiceResult<FactorNeed> {
        let reader = self.context.store().reader();
        let memberships = reader.memberships_of(person.id)?.into_iter().map(|it| it.value.account);
        let mut is_needed = false;
        for account in memberships.chain(target) {
            is_needed |= reader.account(account)?.is_some_and(|account| account.value.factor_needed_since.is_some());
        }
        let passkeys = self.passkey_host().map_or(0, |host| person.passkeys.of_host(host).count());
        Ok(FactorNeed { has_app: person.second_factor.is_active(), passkeys, is_needed })
    }

    /// Removes the passkeys of a person whose identity a mailed link or the operator proves: someone who had their address
    /// before may have added one. They stay where an account needs a second factor and the person has no other. Returns
    /// true if they stay.
    pub(in crate::people) fn drop_passkeys(&self, person: &mut Person) -> ServiceResult<bool> {
        let is_kept = self.factor_need(person, None)?.rests_on_passkeys();
        if !is_kept {
            person.passkeys = PersonPasskeys::default();
        }
        Ok(is_kept)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_need_rests_on_what_the_person_has() {
        // App, passkeys, needed: second step, rests on passkeys, on one, on the app, missing.
        for (has_app, passkeys, is_needed, expected) in [
            (false, 0, false, [false, false, false, false, false]),
            (false, 0, true, [false, false, false, false, true]),
            (false, 1, false, [false, false, false, false, false]),
            (false, 1, true, [true, true, true, false, false]),
            (false, 2, true, [true, true, false, false, false]),
            (true, 0, false, [true, false, false, false, false]),
            (true, 0, true, [true, false, false, true, false]),
            (true, 1, false, [true, false, false, false, false]),
            (true, 1, true, [true, false, false, false, false]),
            (true, 2, true, [true, false, false, false, false]),
        ] {
            let need = FactorNeed { has_app, passkeys, is_needed };
            let rests = (need.rests_on_passkeys(), need.rests_on_one_passkey(), need.rests_on_app());
            let seen = [need.asks_for_second_step(), rests.0, rests.1, rests.2, need.is_missing()];
            assert_eq!(seen, expected, "{need:?}");
        }
    }
}
