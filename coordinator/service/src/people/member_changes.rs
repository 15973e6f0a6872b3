//! Members of an account, as its owners see and change them.
//!
//! A role is read at each request, so a lower one counts at once. A higher one ends the person's sessions in the
//! account: what a browser held before must not become more powerful.

use parallax_core::id::{AccountId, PersonId};
use parallax_core::person::AccountMember;
use parallax_core::role::{Permission, Role};
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use super::{CurrentSession, PeopleService};
use crate::idempotency::{IdempotencyKey, IdempotentRequest};
use crate::{Caller, ServiceError, ServiceResult};

/// A member of an account, as its owners see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberDetails {
    /// The person.
    pub person: PersonId,
    /// Their name, if they gave one.
    pub name: Option<String>,
    /// Their email address.
    pub email: String,
    /// Their role.
    pub role: Role,
    /// True if they have a second factor.
    pub has_factor: bool,
    /// Time at which they joined.
    pub joined_at: Timestamp,
    /// Time at which they last used the account, to the minute; none if no browser of theirs is signed in to it.
    pub last_seen_at: Option<Timestamp>,
}

impl PeopleService {
    /// Lists the members of the caller's account, oldest first.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`].
    pub async fn list_members(&self, caller: &Caller) -> ServiceResult<Vec<MemberDetails>> {
        caller.require(Permission::ManageAccount)?;
        let (account, now) = (caller.account, self.context.now());
        let host = self.passkey_host().map(str::to_owned);
        let mut members = self
            .context
            .store()
            .read(move |store| {
                let mut members = Vec::new();
                for member in store.members_of(account)? {
                    let AccountMember { person, role, joined_at, .. } = member.value;
                    let Some(stored) = store.person(person)? else { continue };
                    let sessions = store.login_sessions_of(person)?.into_iter().map(|it| it.value);
                    // Not those of other accounts, which are not this owner's affair.
                    let sessions = sessions.filter(|it| it.account == account && it.is_valid(now));
                    let last_seen_at = sessions.map(|it| it.last_used_at).max();
                    let has_passkey = |host: &String| stored.value.passkeys.of_host(host).next().is_some();
                    let has_factor = stored.value.second_factor.is_active() || host.as_ref().is_some_and(has_passkey);
                    let (name, email) = (stored.value.name, stored.value.email);
                    members.push(MemberDetails { person, name, email, role, has_factor, joined_at, last_seen_at });
                }
                Ok(members)
            })
            .await?;
        members.sort_by_key(|it| (it.joined_at, it.person));
        Ok(members)
    }

    /// Gives another member of the caller's account another role. Returns true if they have to sign in again.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`], [`ServiceError::NotFound`] for a person
    /// who is no member, [`ServiceError::Invalid`] for the caller themselves and the last owner.
    pub async fn change_role(&self, current: &CurrentSession, person: PersonId, role: Role) -> ServiceResult<bool> {
        let account = self.begin_member_change(current)?;
        let (was, ended) = self
            .context
            .commit_change(account.to_u128(), || async move {
                let mut batch = Batch::new();
                self.expect_owner(current, &mut batch)?;
                let VersionedValue { revision, value } = self.member(account, person)?;
                if value.role == role {
                    return Ok(((role, Vec::new()), None));
                }
                if value.role == Role::Owner {
                    self.require_other_owner(account, person).await?;
                    self.require_way_in(account, person, role)?;
                }
                if person == current.person.id {
                    return Err(ValidationErrors::single("role", "ask another owner to change your own role").into());
                }
                let mut ended = Vec::new();
                if role.outranks(value.role) {
                    ended = self.end_sessions_of(person, |it| it.account == account, &mut batch).await?;
                }
                batch.expect(Expect::AccountMember(account, person, Presence::At(revision)));
                batch.write(AccountMember { role, ..value });
                self.context.log_change(current.author(), &mut batch)?;
                Ok(((value.role, ended), Some(batch)))
            })
            .await?;
        ended.iter().for_each(|id| self.uses.remove(id));
        if was != role {
            let by = current.person.id;
            tracing::info!(%account, %person, %by, was = was.name(), role = role.name(), "a member's role was changed");
        }
        Ok(role.outranks(was))
    }

    /// Removes a member from the caller's account, and ends their sessions in it. Owners may remove themselves. A form
    /// that was sent before is answered alike.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`], [`ServiceError::NotFound`] for a person
    /// who is no member, [`ServiceError::Invalid`] for the last owner.
    pub async fn remove_member(
        &self,
        current: &CurrentSession,
        person: PersonId,
        once: Option<IdempotencyKey>,
    ) -> ServiceResult<()> {
        let account = self.begin_member_change(current)?;
        let once = &IdempotentRequest::new(once, &|(): &()| Vec::new());
        let ended = self
            .context
            .commit_change(account.to_u128(), || async move {
                if self.context.replayed_answer(once)?.is_some() {
                    return Ok((None, None));
                }
                let mut batch = Batch::new();
                self.expect_owner(current, &mut batch)?;
                let VersionedValue { revision, value } = self.member(account, person)?;
                if value.role == Role::Owner {
                    self.require_other_owner(account, person).await?;
                }
                let ended = self.end_sessions_of(person, |it| it.account == account, &mut batch).await?;
                batch.expect(Expect::AccountMember(account, person, Presence::At(revision)));
                batch.write(Op::DeleteAccountMember(account, person));
                self.context.log_change(current.author(), &mut batch)?;
                self.context.store_answer(once, &(), &mut batch)?;
                Ok((Some(ended), Some(batch)))
            })
            .await?;
        let Some(ended) = ended else { return Ok(()) };
        ended.iter().for_each(|id| self.uses.remove(id));
        tracing::info!(%account, %person, by = %current.person.id, "a member was removed");
        Ok(())
    }

    /// Returns a member of the caller's account by that id, for a question about them.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`], [`ServiceError::NotFound`].
    pub async fn member_to_change(&self, current: &CurrentSession, person: PersonId) -> ServiceResult<MemberDetails> {
        self.begin_member_change(current)?;
        let members = self.list_members(&current.caller()).await?;
        members.into_iter().find(|it| it.person == person).ok_or(ServiceError::NotFound)
    }

    /// Checks that the caller may invite, before they fill in a form.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`].
    pub fn check_may_invite(&self, current: &CurrentSession) -> ServiceResult<()> {
        self.begin_member_change(current).map(drop)
    }

    /// Checks that the caller may change members, and returns their account.
    pub(super) fn begin_member_change(&self, current: &CurrentSession) -> ServiceResult<AccountId> {
        current.caller().require(Permission::ManageAccount)?;
        self.require_confirmed(current)?;
        Ok(current.session.account)
    }

    /// Makes sure that the caller is still an owner when the batch is committed: another may be removing them.
    pub(super) fn expect_owner(&self, current: &CurrentSession, batch: &mut Batch) -> ServiceResult<()> {
        let (account, id) = (current.session.account, current.person.id);
        let VersionedValue { revision, value } = self.member(account, id)?;
        if !value.role.allows(Permission::ManageAccount) {
            return Err(ServiceError::RoleForbids { role: value.role });
        }
        batch.expect(Expect::AccountMember(account, id, Presence::At(revision)));
        self.expect_session(current, batch)
    }

    fn member(&self, account: AccountId, person: PersonId) -> ServiceResult<VersionedValue<AccountMember>> {
        self.context.store().reader().account_member(account, person)?.ok_or(ServiceError::NotFound)
    }

    /// Checks that an owner who gets that role could still get in.
    fn require_way_in(&self, account: AccountId, person: PersonId, role: Role) -> ServiceResult<()> {
        let email = self.person(person)?.value.email;
        if self.can_get_in(account, (&email, role))? {
            return Ok(());
        }
        let rule = "company sign-in is required for members, and their address is of no email domain of this account: leave \
                    them owner, or remove them";
        Err(ValidationErrors::single("role", rule).into())
    }

    /// Checks that the account has another owner, with a way in of their own: the provider may fail. Changes of members
    /// take turns, so two owners can't lower each other.
    async fn require_other_owner(&self, account: AccountId, person: PersonId) -> ServiceResult<()> {
        let members = self.context.store().read(move |store| store.members_of(account)).await?;
        let is_other = |it: &&VersionedValue<AccountMember>| it.value.role == Role::Owner && it.value.person != person;
        let mut others = members.iter().filter(is_other).map(|it| it.value);
        let rule = match others.next() {
            None => "make someone else owner first",
            Some(first) if first.is_company_only && others.all(|it| it.is_company_only) => {
                "the other owners enter by company sign-in alone: make someone owner first who has another way in"
            }
            Some(_) => return Ok(()),
        };
        Err(ValidationErrors::single("role", rule).into())
    }
}
