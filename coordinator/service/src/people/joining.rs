//! Joining an account by an invitation: as a new person, or as one who has a password or is signed in.

use parallax_core::id::{AccountId, PersonId};
use parallax_core::one_time_link::{LinkKind, LinkOwner, OneTimeLink};
use parallax_core::person::{AccountMember, MAX_MEMBERS, MAX_MEMBERSHIPS, Person, check_password};
use parallax_core::plan::PlanLimitError;
use parallax_core::role::Role;
use parallax_core::text;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence, VersionedValue};

use super::invitations::is_to;
use super::members::MAX_NAME;
use super::second_factor::SignInTarget;
use super::{BrowserInfo, CurrentSession, NewSession, PeopleService, SignInStep};
use crate::audit::ChangeAuthor;
use crate::page_access::password;
use crate::{ServiceError, ServiceResult};

/// A valid invitation, as the invited person sees it. Only they have its link, so it may say who has the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinInvitation {
    /// The invited person's email address.
    pub email: String,
    /// Email address of the account.
    pub account: String,
    /// The role that they get.
    pub role: Role,
    /// How they prove their identity.
    pub person: InvitedPerson,
}

/// How an invited person proves their identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitedPerson {
    /// Nobody has the address yet: they choose a password.
    New,
    /// They enter their password.
    WithPassword,
    /// They have no password, and sign in by mailed link first.
    WithoutPassword,
    /// They are signed in at this browser.
    SignedIn,
}

/// Fields that an invited person enters.
#[derive(Clone, Default)]
pub struct JoinDetails {
    /// Name of a new person; may be empty.
    pub name: String,
    /// The password: a new one of a new person, else their own; not needed if they are signed in.
    pub password: String,
}

impl std::fmt::Debug for JoinDetails {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinDetails").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An invitation with its parts.
struct InvitationLink {
    link: VersionedValue<OneTimeLink>,
    account: AccountId,
    email: String,
    role: Role,
}

/// A person who joins, with the state that their identity was checked against.
enum JoiningPerson<'a> {
    New(Person),
    Known(Person),
    SignedIn(&'a CurrentSession),
}

impl JoiningPerson<'_> {
    const fn person(&self) -> &Person {
        match self {
            Self::New(person) | Self::Known(person) => person,
            Self::SignedIn(current) => &current.person,
        }
    }

    const fn id(&self) -> PersonId {
        self.person().id
    }
}

impl PeopleService {
    /// Returns the invitation of a link; none for one that was used or revoked, has ended, or never existed.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn invitation(&self, token: &str, current: Option<&CurrentSession>) -> ServiceResult<Option<JoinInvitation>> {
        let Some(InvitationLink { account, email, role, .. }) = self.invitation_link(token)? else { return Ok(None) };
        let reader = self.context.store().reader();
        let Some(account) = reader.account(account)?.map(|account| account.value.email) else { return Ok(None) };
        let current = own_session(current);
        let person = match reader.person_by_email(&email)?.map(|person| person.value) {
            None => InvitedPerson::New,
            Some(person) if current.is_some_and(|it| it.person.id == person.id) => InvitedPerson::SignedIn,
            Some(person) if person.password_hash.is_some() => InvitedPerson::WithPassword,
            Some(_) => InvitedPerson::WithoutPassword,
        };
        Ok(Some(JoinInvitation { email, account, role, person }))
    }

    /// Uses an invitation: its person becomes a member of the account, in which the browser is signed in then. A member
    /// keeps their role. Of a person with a second factor nothing is written before its code, unless the account needs
    /// company sign-in: they join, and get their session there.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an invalid link, which is checked first; [`ServiceError::Invalid`] for a field of
    /// a new person that breaks a rule, [`ServiceError::WrongCredentials`] for a wrong password and for a person without
    /// one, [`ServiceError::TooManyTries`], [`ServiceError::Busy`], [`ServiceError::PlanLimit`] if the account is full.
    pub async fn join(
        &self,
        token: &str,
        details: &JoinDetails,
        current: Option<&CurrentSession>,
        browser: &BrowserInfo,
    ) -> ServiceResult<SignInStep> {
        let current = own_session(current);
        let invitation = self.invitation(token, current)?.ok_or(ServiceError::NotFound)?;
        let email = &invitation.email;
        let (person, counted) = match (invitation.person, current) {
            (InvitedPerson::SignedIn, Some(current)) => (JoiningPerson::SignedIn(current), None),
            (InvitedPerson::New, _) => (JoiningPerson::New(self.new_person(email, details).await?), None),
            _ => {
                let (person, counted) = self.check_credentials((email, &details.password), browser).await?;
                (JoiningPerson::Known(person), Some(counted))
            }
        };
        let step = self.add_member(token, &person, browser).await?;
        if let Some(counted) = counted {
            self.settle_try(&counted, &step);
        }
        if let SignInStep::Complete(NewSession { session, .. }) = &step {
            tracing::info!(account = %session.account, person = %session.person, "an invitation was used");
        }
        Ok(step)
    }

    async fn new_person(&self, email: &str, details: &JoinDetails) -> ServiceResult<Person> {
        let mut faults = ValidationErrors::new();
        faults.record("password", check_password(&details.password));
        let name = faults.record("name", text::optional_line(&details.name, MAX_NAME)).flatten();
        if !faults.is_empty() {
            return Err(faults.into());
        }
        let (now, password_hash) = (self.context.now(), Some(password::hash(&details.password).await?));
        Ok(Person::new((PersonId::new(now, rand::random()), email.to_owned()), name, password_hash, now))
    }

    async fn add_member(
        &self,
        token: &str,
        joining: &JoiningPerson<'_>,
        browser: &BrowserInfo,
    ) -> ServiceResult<SignInStep> {
        let account = self.invitation_link(token)?.ok_or(ServiceError::NotFound)?.account;
        // One at a time, since an email address is taken once, and a person joins several accounts.
        let _making = self.context.create_lock.lock().await;
        self.context
            .commit_change(account.to_u128(), || async move {
                let mut batch = Batch::new();
                let known = self.context.store().reader().account_member(account, joining.id())?;
                let was_company_only = known.is_some_and(|it| it.value.is_company_only);
                self.use_invitation(token, joining.id(), &mut batch).await?;
                self.expect_person(joining, was_company_only, &mut batch).await?;
                let author = ChangeAuthor::person(account, joining.person(), browser.network.clone());
                self.context.log_change(author, &mut batch)?;
                let target = SignInTarget { account, invitation: Some(token.to_owned()), company: None };
                let step = match joining {
                    JoiningPerson::SignedIn(current)
                        if self.needs_company_after((account, current.person.id), &batch)? =>
                    {
                        SignInStep::Company(account)
                    }
                    JoiningPerson::SignedIn(current) => {
                        SignInStep::Complete(self.move_session(current, account, &mut batch)?)
                    }
                    JoiningPerson::New(person) => self.next_step(person, target, (false, browser), &mut batch).await?,
                    JoiningPerson::Known(person) => {
                        let stored = self.person(person.id)?.value;
                        self.next_step(&stored, target, (false, browser), &mut batch).await?
                    }
                };
                // A member who needs company sign-in joins, too, and has no session before it.
                let is_complete = matches!(step, SignInStep::Complete(_) | SignInStep::Company(_));
                Ok((step, is_complete.then_some(batch)))
            })
            .await
    }

    /// Writes what an invitation gives to a person, in a batch that uses it.
    pub(super) async fn use_invitation(&self, token: &str, person: PersonId, batch: &mut Batch) -> ServiceResult<()> {
        let invitation = self.invitation_link(token)?.ok_or(ServiceError::NotFound)?;
        let InvitationLink { link, account, email, role } = invitation;
        batch.expect(Expect::Account(account, Presence::Present));
        batch.expect(Expect::OneTimeLink(link.value.id, Presence::At(link.revision)));
        // Those that were sent meanwhile end with this one.
        self.end_links(LinkOwner::Account(account), |link| is_to(link, &email), batch).await?;
        self.write_member((account, person), role, batch).await
    }

    /// Writes the person: a new one, or a known one who is as their identity was checked.
    async fn expect_person(
        &self,
        joining: &JoiningPerson<'_>,
        was_company_only: bool,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        match joining {
            JoiningPerson::New(person) => {
                if self.context.store().reader().person_by_email(&person.email)?.is_some() {
                    return Err(ValidationErrors::single("password", "is needed again: you just joined").into());
                }
                batch.expect(Expect::Person(person.id, Presence::Absent)).write(person.clone());
            }
            JoiningPerson::Known(person) => {
                let stored = self.person(person.id)?;
                if stored.value.password_hash != person.password_hash {
                    return Err(ServiceError::WrongCredentials);
                }
                Self::touch_person(stored, batch);
            }
            // Their session is expected to exist.
            JoiningPerson::SignedIn(current) => {
                let mut stored = self.person(current.person.id)?;
                if was_company_only && stored.value.password_hash.is_none() {
                    // Their mailbox alone proves them, and someone who had it before may have a passkey or a session.
                    self.drop_passkeys(&mut stored.value)?;
                    self.end_sessions_of(stored.value.id, |it| it.id != current.session.id, batch).await?;
                }
                Self::touch_person(stored, batch);
            }
        }
        Ok(())
    }

    async fn write_member(
        &self,
        (account, person): (AccountId, PersonId),
        role: Role,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        if let Some(member) = self.context.store().reader().account_member(account, person)? {
            batch.expect(Expect::AccountMember(account, person, Presence::At(member.revision)));
            if member.value.is_company_only {
                // They have the mailbox as well as the password.
                batch.write(AccountMember { is_company_only: false, ..member.value });
            }
            return Ok(());
        }
        let members = self.context.store().read(move |store| store.members_of(account)).await?;
        let memberships = self.context.store().read(move |store| store.memberships_of(person)).await?;
        if members.len() >= MAX_MEMBERS || memberships.len() >= MAX_MEMBERSHIPS {
            return Err(PlanLimitError::MembersFull.into());
        }
        batch.expect(Expect::AccountMember(account, person, Presence::Absent));
        batch.write(AccountMember::new((account, person), role, self.context.now()));
        Ok(())
    }

    fn invitation_link(&self, token: &str) -> ServiceResult<Option<InvitationLink>> {
        let link = self.valid_link(token)?;
        Ok(link.and_then(|link| match link.value.kind.clone() {
            LinkKind::Invitation { account, email, role } => Some(InvitationLink { link, account, email, role }),
            _ => None,
        }))
    }
}

/// Returns a session that proves its person to any account: one by company sign-in is of its account alone.
fn own_session(current: Option<&CurrentSession>) -> Option<&CurrentSession> {
    current.filter(|it| !it.session.is_company)
}
