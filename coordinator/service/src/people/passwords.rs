//! Sign-in by password, with delays after failures; and changes and confirmations of the password.

use std::sync::{Mutex, MutexGuard, PoisonError};

use parallax_core::id::{AccountId, PersonId};
use parallax_core::login_session::{LoginSession, LoginSessionId};
use parallax_core::one_time_link::LinkOwner;
use parallax_core::page::access::normalize_email;
use parallax_core::person::{Person, check_password};
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence, VersionedValue};
use sha2::{Digest, Sha256};

use super::counted_try::CountedTry;
use super::second_factor::CompleteProof;
use super::{BrowserInfo, CurrentSession, NewSession, PeopleService, SignInStep};
use crate::page_access::password;
use crate::{ServiceError, ServiceResult};

/// A person's attempt to sign in.
#[derive(Clone)]
pub struct PasswordSignIn {
    /// The email address entered.
    pub email: String,
    /// The password entered.
    pub password: String,
    /// True with "Keep me signed in".
    pub is_kept: bool,
}

impl std::fmt::Debug for PasswordSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PasswordSignIn").field("email", &self.email).finish_non_exhaustive()
    }
}

impl PeopleService {
    /// Signs a person in, or asks for their second factor. Unknown addresses and wrong passwords cost the same work.
    ///
    /// # Errors
    /// [`ServiceError::WrongCredentials`], [`ServiceError::TooManyTries`], [`ServiceError::Busy`].
    pub async fn sign_in(&self, ask: &PasswordSignIn, browser: &BrowserInfo) -> ServiceResult<SignInStep> {
        let (person, counted) = self.check_credentials((&ask.email, &ask.password), browser).await?;
        let step = self.start_session(&person, ask.is_kept, browser).await?;
        self.settle_try(&counted, &step);
        Ok(step)
    }

    /// Checks an email address with its password. The caller forgets the try once it was of use.
    ///
    /// # Errors
    /// As [`Self::sign_in`].
    pub(super) async fn check_credentials(
        &self,
        (email, text): (&str, &str),
        browser: &BrowserInfo,
    ) -> ServiceResult<(Person, CountedTry)> {
        let email = normalize_email(email).unwrap_or_else(|_| email.trim().to_ascii_lowercase());
        let person = self.context.store().reader().person_by_email(&email)?.map(|person| person.value);
        let person_id = person.as_ref().map_or(PersonId::from_u128(0), |person| person.id);
        let counted = self.begin_try(&email, person_id, browser).await?;
        let hash = person.as_ref().and_then(|person| person.password_hash.as_deref());
        let is_right = self.verify(text, hash, &counted).await?;
        if let Some(person) = person.as_ref().filter(|_| !is_right) {
            self.log_failed_try(person, browser)?;
        }
        Ok((person.filter(|_| is_right).ok_or(ServiceError::WrongCredentials)?, counted))
    }

    /// Logs a wrong password or code of a person, in the account that they joined first. Strangers can't fill its log,
    /// which has [limits](super::log_limits).
    pub(crate) fn log_failed_try(&self, person: &Person, browser: &BrowserInfo) -> ServiceResult<()> {
        if let Some(membership) = self.first_membership(person.id)? {
            self.log_failed_try_in(membership.account, person, browser);
        }
        Ok(())
    }

    /// The same in a given account.
    pub(super) fn log_failed_try_in(&self, account: AccountId, person: &Person, browser: &BrowserInfo) {
        if self.may_log_failure(account) {
            self.context.log_failed_sign_in(account, person, browser.network.clone());
        }
    }

    /// Counts a failed sign-in that an account would log, and returns false once it logged too many.
    pub(super) fn may_log_failure(&self, account: AccountId) -> bool {
        self.log_limits.admit_failure(account, self.context.now())
    }

    /// Changes the password, and ends every session and pending link of the person; the browser gets a new session.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] for a wrong current password or a new one that breaks a rule,
    /// [`ServiceError::TooManyTries`], [`ServiceError::Busy`]; [`ServiceError::ConfirmationRequired`] if the session or
    /// the password that proved their identity is no longer valid.
    pub async fn change_password(
        &self,
        current: &CurrentSession,
        (old_password, new_password): (&str, &str),
        browser: &BrowserInfo,
    ) -> ServiceResult<NewSession> {
        Self::require_own_sign_in(current)?;
        check_password(new_password).map_err(|rule| ValidationErrors::single("password", rule))?;
        self.check_current(current, old_password).await?;
        let hash = &password::hash(new_password).await?;
        let id = current.person.id;
        let (session, ended) = self
            .context
            .commit_change(id.to_u128(), || async move {
                let mut batch = Batch::new();
                let (person, ended) = self.replace_password(id, (hash, true), &mut batch).await?;
                // A password that was replaced since its check, as by a mailed link, changes nothing any more.
                if person.password_hash != current.person.password_hash || !ended.contains(&current.session.id) {
                    return Err(ServiceError::ConfirmationRequired);
                }
                let proof = CompleteProof::of_session(current);
                let session = self.add_session(&proof, current.session.is_kept, browser, &mut batch).await?;
                self.context.log_change(current.author(), &mut batch)?;
                Ok(((session, ended), Some(batch)))
            })
            .await?;
        ended.iter().for_each(|session| self.uses.remove(session));
        Ok(session)
    }

    /// Gives a person another password in a batch, which ends all their sessions and pending links. Those that are made
    /// at the same time end, too. Unless it is the person at a session, their passkeys are
    /// [dropped](Self::drop_passkeys). Returns the person as they were, and the ids of the sessions.
    pub(super) async fn replace_password(
        &self,
        id: PersonId,
        (hash, is_signed_in): (&str, bool),
        batch: &mut Batch,
    ) -> ServiceResult<(Person, Vec<LoginSessionId>)> {
        // Before its sessions and links are read: one that is added later writes the person.
        let VersionedValue { revision, value: person } = self.person(id)?;
        batch.expect(Expect::Person(id, Presence::At(revision)));
        let ended = self.end_sessions_of(id, |_| true, batch).await?;
        self.end_links(LinkOwner::Person(id), |_| true, batch).await?;
        let mut changed = Person { password_hash: Some(hash.to_owned()), ..person.clone() };
        changed.second_factor.forget_pending();
        if !is_signed_in {
            self.drop_passkeys(&mut changed)?;
        }
        batch.write(changed);
        Ok((person, ended))
    }

    /// Confirms that the person at the browser knows the password, which opens secrets for ten minutes. A person
    /// without a password confirms by signing in again, so nothing is written for them.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] for a wrong password, [`ServiceError::TooManyTries`], [`ServiceError::Busy`];
    /// [`ServiceError::ConfirmationRequired`] for a person without a password who signed in earlier. A session by company
    /// sign-in is confirmed there: it must guess no password of the person.
    pub async fn confirm(&self, current: &CurrentSession, text: &str) -> ServiceResult<()> {
        Self::require_own_sign_in(current)?;
        if current.person.password_hash.is_none() {
            return self.require_confirmed(current);
        }
        self.check_current(current, text).await?;
        self.context
            .commit_change(current.person.id.to_u128(), || async move {
                let mut batch = Batch::new();
                self.write_confirmation(current, &mut batch)?;
                Ok(((), Some(batch)))
            })
            .await
    }

    /// Writes a session whose person just confirmed their identity, in a batch.
    pub(super) fn write_confirmation(&self, current: &CurrentSession, batch: &mut Batch) -> ServiceResult<()> {
        let (id, now) = (current.session.id, self.context.now());
        let stored = self.context.store().reader().login_session(id)?.ok_or(ServiceError::NotFound)?;
        batch.expect(Expect::LoginSession(id, Presence::At(stored.revision)));
        batch.write(LoginSession { confirmed_at: now, ..stored.value });
        Ok(())
    }

    /// Checks that the person confirmed their identity within the last ten minutes.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`] if not.
    pub fn require_confirmed(&self, current: &CurrentSession) -> ServiceResult<()> {
        if current.session.is_confirmed(self.context.now()) { Ok(()) } else { Err(ServiceError::ConfirmationRequired) }
    }

    /// Checks the password of a signed-in person. Tries count for this person alone, apart from sign-ins: neither a
    /// neighbour's failures nor a stranger's delay them, and a stolen session can't be used to guess without delays.
    async fn check_current(&self, current: &CurrentSession, text: &str) -> ServiceResult<()> {
        let person = &current.person;
        if person.password_hash.is_none() {
            // Their identity is proved by a mailed link alone.
            return self.require_confirmed(current);
        }
        let counted = self.begin_confirmation(&person.email)?;
        if self.verify(text, person.password_hash.as_deref(), &counted).await? {
            self.forget_tries(&counted);
            return Ok(());
        }
        Err(ValidationErrors::single("current", "is wrong").into())
    }

    /// Starts a session of a person whose password was right, unless it changed meanwhile.
    async fn start_session(&self, person: &Person, is_kept: bool, browser: &BrowserInfo) -> ServiceResult<SignInStep> {
        let id = person.id;
        self.context
            .commit_change(id.to_u128(), || async move {
                let stored = self.person(id)?;
                if stored.value.password_hash != person.password_hash {
                    return Err(ServiceError::WrongCredentials);
                }
                let membership = self.sign_in_membership(id)?.ok_or(ServiceError::WrongCredentials)?;
                let mut batch = Batch::new();
                batch.expect(Expect::Person(id, Presence::At(stored.revision)));
                batch.expect(Expect::AccountMember(membership.account, id, Presence::Present));
                let (target, way) = (membership.account.into(), (is_kept, browser));
                let step = self.next_step(&stored.value, target, way, &mut batch).await?;
                Ok((step, Some(batch)))
            })
            .await
    }

    /// Counts a try of an email address, before its password is verified.
    ///
    /// A network from which the person is signed in does not wait for the failures of others: nobody can keep a person
    /// from signing in where they usually do.
    async fn begin_try(&self, email: &str, person: PersonId, browser: &BrowserInfo) -> ServiceResult<CountedTry> {
        let sessions = self.valid_sessions(person).await?;
        let is_familiar = browser.network.is_some() && sessions.iter().any(|it| it.network == browser.network);
        let counted = CountedTry { email: Sha256::digest(email).into(), network: browser.network_key };
        self.count_try(counted, is_familiar)
    }

    /// Counts a try, unless its email address or network has to wait. `is_familiar` ignores the delay of the address.
    pub(super) fn count_try(&self, counted: CountedTry, is_familiar: bool) -> ServiceResult<CountedTry> {
        let now = self.context.now();
        let (mut emails, mut networks) = (lock(&self.email_delays), lock(&self.network_delays));
        let of_email = if is_familiar { 0 } else { emails.wait_seconds(&counted.email, now) };
        let of_network = counted.network.map_or(0, |network| networks.wait_seconds(&network, now));
        let seconds = of_email.max(of_network);
        if seconds > 0 {
            return Err(ServiceError::TooManyTries { seconds });
        }
        emails.count(&counted.email, now);
        if let Some(network) = counted.network {
            networks.count(&network, now);
        }
        Ok(counted)
    }

    /// Verifies a password. A try that could not be verified does not count.
    async fn verify(&self, text: &str, hash: Option<&str>, counted: &CountedTry) -> ServiceResult<bool> {
        password::verify(text, hash).await.inspect_err(|_| self.take_back(counted))
    }

    /// Counts a code of a person's second factor, before it is verified. Only someone with their password or mailbox gets
    /// this far, so strangers can't delay it, and no network is exempt.
    pub(super) fn begin_code_try(&self, email: &str, browser: &BrowserInfo) -> ServiceResult<CountedTry> {
        self.count_try(CountedTry { email: code_key(email), network: browser.network_key }, false)
    }

    /// Counts a confirmation of a signed-in person, by password or passkey, before it is verified.
    pub(super) fn begin_confirmation(&self, email: &str) -> ServiceResult<CountedTry> {
        self.count_try(CountedTry { email: confirmation_key(email), network: None }, false)
    }

    /// Forgets a person's failures once they are signed in. Until the code of a second factor was right they stay, and
    /// this try is one of them.
    pub(super) fn settle_try(&self, counted: &CountedTry, step: &SignInStep) {
        match step {
            SignInStep::Complete(_) | SignInStep::Company(_) => self.forget_tries(counted),
            SignInStep::Code(token) => self.pending_sign_ins.add_try(token, counted),
        }
    }

    /// Takes one try back, and keeps the failures before it.
    pub(super) fn take_back(&self, counted: &CountedTry) {
        lock(&self.email_delays).refund(&counted.email);
        if let Some(network) = &counted.network {
            lock(&self.network_delays).refund(network);
        }
    }

    /// Forgets the failures of an address after a complete sign-in. Those of its network stay, but for this try.
    pub(super) fn forget_tries(&self, counted: &CountedTry) {
        lock(&self.email_delays).clear(&counted.email);
        if let Some(network) = &counted.network {
            lock(&self.network_delays).refund(network);
        }
    }

    /// Forgets the failures of a person whose password was replaced, wherever they came from.
    pub(super) fn forget_failures(&self, email: &str) {
        let mut delays = lock(&self.email_delays);
        delays.clear(&Sha256::digest(email).into());
        delays.clear(&confirmation_key(email));
    }
}

/// Returns the key by which failed confirmations of a signed-in person count.
fn confirmation_key(email: &str) -> [u8; 32] {
    Sha256::new().chain_update("current\0").chain_update(email).finalize().into()
}

/// Returns the key by which wrong codes of a person's second factor count.
fn code_key(email: &str) -> [u8; 32] {
    Sha256::new().chain_update("code\0").chain_update(email).finalize().into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
