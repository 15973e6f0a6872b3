//! Changes of a person's second factor: turned on with the first right code of an app, replaced, turned off; and new
//! recovery codes. Each needs a confirmation before, and a new or removed app ends the person's other sessions.

use parallax_core::id::PersonId;
use parallax_core::page::access::normalize_email;
use parallax_core::passkey::PersonPasskeys;
use parallax_core::person::Person;
use parallax_core::second_factor::{FactorSecret, SecondFactor};
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence, VersionedValue};

use super::super::{CurrentSession, NewSession, PeopleService};
use super::{recovery_code, totp};
use crate::audit::ChangeAuthor;
use crate::{ServiceError, ServiceResult};

/// A secret that waits for its first right code, as a person gives it to their app.
#[derive(Clone, PartialEq, Eq)]
pub struct FactorSetUp {
    /// The secret as text, in groups of four.
    pub secret: String,
    /// Address for a QR code.
    pub url: String,
}

impl std::fmt::Debug for FactorSetUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FactorSetUp(…)")
    }
}

impl PeopleService {
    /// Makes a secret for a new app. An active app stays until the first right code of the new one.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`].
    pub async fn begin_factor(&self, current: &CurrentSession) -> ServiceResult<()> {
        let secret = &FactorSecret(rand::random());
        let begin = |person: &mut Person| {
            person.second_factor.begin(secret.clone(), self.context.now());
            Ok(())
        };
        self.change_person(current, begin).await
    }

    /// Returns the secret that waits for its first right code; none if there is none.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`].
    pub fn factor_set_up(&self, current: &CurrentSession) -> ServiceResult<Option<FactorSetUp>> {
        self.require_confirmed(current)?;
        let person = self.person(current.person.id)?.value;
        let Some(secret) = person.second_factor.pending_secret(self.context.now()) else { return Ok(None) };
        let url = totp::otpauth_url(secret, &person.email)?;
        Ok(Some(FactorSetUp { secret: totp::secret_text(secret), url }))
    }

    /// Turns the new app on with its first right code. Returns the browser's new session and the recovery codes, which
    /// are stored as hashes alone; the person's other sessions end.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`], [`ServiceError::Invalid`] for a wrong code, [`ServiceError::NotFound`] if
    /// no secret waits.
    pub async fn confirm_factor(
        &self,
        current: &CurrentSession,
        code: &str,
    ) -> ServiceResult<(NewSession, Vec<String>)> {
        let (codes, hashes) = &recovery_code::new_codes(current.person.id);
        let digits: &String = &code.chars().filter(|sign| !sign.is_whitespace()).collect();
        let activate = |person: &mut Person| {
            let (factor, now) = (&mut person.second_factor, self.context.now());
            let secret = factor.pending_secret(now).ok_or(ServiceError::NotFound)?;
            let step = totp::matching_step(secret, digits, now);
            let step = step.ok_or_else(|| ValidationErrors::single("code", "is wrong"))?;
            if factor.activate(step, hashes.clone(), now) { Ok(()) } else { Err(ServiceError::NotFound) }
        };
        let session = self.change_person_and_session(current, activate).await?;
        tracing::info!(person = %current.person.id, "a second factor was turned on");
        Ok((session, codes.clone()))
    }

    /// Turns the second factor off. The person's other sessions end, and the browser gets a new one.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`], [`ServiceError::NotFound`] if it is off.
    pub async fn turn_factor_off(&self, current: &CurrentSession) -> ServiceResult<NewSession> {
        let session = self.change_person_and_session(current, |person| turn_off(&mut person.second_factor)).await?;
        tracing::info!(person = %current.person.id, "a second factor was turned off");
        Ok(session)
    }

    /// Replaces the recovery codes, and returns the new ones.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`], [`ServiceError::NotFound`] without a second factor.
    pub async fn renew_recovery_codes(&self, current: &CurrentSession) -> ServiceResult<Vec<String>> {
        let (codes, hashes) = &recovery_code::new_codes(current.person.id);
        let replace = |person: &mut Person| {
            let is_replaced = person.second_factor.replace_recovery_codes(hashes.clone());
            if is_replaced { Ok(()) } else { Err(ServiceError::NotFound) }
        };
        self.change_person(current, replace).await?;
        tracing::info!(person = %current.person.id, "recovery codes were replaced");
        Ok(codes.clone())
    }

    /// Removes the second factor of a person who lost it, and their passkeys, each of which is one, too; ends their
    /// sessions; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if no person has the email address, [`ServiceError::Invalid`] if they have no second
    /// factor and no passkey.
    pub async fn remove_factor_as_operator(&self, email: &str) -> ServiceResult<Person> {
        let email = normalize_email(email).map_err(|rule| ValidationErrors::single("email", rule))?;
        let id = self.context.store().reader().person_by_email(&email)?.ok_or(ServiceError::NotFound)?.value.id;
        let (person, ended) = self
            .context
            .commit_change(id.to_u128(), || async move {
                let VersionedValue { revision, value: mut person } = self.person(id)?;
                if !person.second_factor.is_active() && person.passkeys.all().is_empty() {
                    let rule = "belongs to a person without a second factor and passkeys";
                    return Err(ValidationErrors::single("email", rule).into());
                }
                (person.second_factor, person.passkeys) = (SecondFactor::default(), PersonPasskeys::default());
                let mut batch = Batch::new();
                let ended = self.end_sessions_of(id, |_| true, &mut batch).await?;
                batch.expect(Expect::Person(id, Presence::At(revision))).write(person.clone());
                if let Some(membership) = self.first_membership(id)? {
                    self.context.log_change(ChangeAuthor::operator(membership.account), &mut batch)?;
                }
                Ok(((person, ended), Some(batch)))
            })
            .await?;
        ended.iter().for_each(|session| self.uses.remove(session));
        tracing::warn!(person = %id, "the operator removed a second factor");
        Ok(person)
    }

    /// Changes the person at the browser, who must have confirmed.
    async fn change_person(
        &self,
        current: &CurrentSession,
        change: impl Fn(&mut Person) -> ServiceResult<()>,
    ) -> ServiceResult<()> {
        Self::require_own_sign_in(current)?;
        self.require_confirmed(current)?;
        let (id, change) = (current.person.id, &change);
        self.context
            .commit_change(id.to_u128(), || async move {
                let mut batch = Batch::new();
                self.expect_session(current, &mut batch)?;
                self.write_changed(id, change, &mut batch)?;
                self.context.log_change(current.author(), &mut batch)?;
                Ok(((), Some(batch)))
            })
            .await
    }

    /// Does the same, ends all sessions of the person, and gives the browser a new one.
    pub(in crate::people) async fn change_person_and_session(
        &self,
        current: &CurrentSession,
        change: impl Fn(&mut Person) -> ServiceResult<()>,
    ) -> ServiceResult<NewSession> {
        Self::require_own_sign_in(current)?;
        self.require_confirmed(current)?;
        let (id, change) = (current.person.id, &change);
        let (session, ended) = self
            .context
            .commit_change(id.to_u128(), || async move {
                let mut batch = Batch::new();
                self.write_changed(id, change, &mut batch)?;
                self.context.log_change(current.author(), &mut batch)?;
                let ended = self.end_sessions_of(id, |_| true, &mut batch).await?;
                let session = self.move_session(current, current.session.account, &mut batch)?;
                Ok(((session, ended), Some(batch)))
            })
            .await?;
        ended.iter().for_each(|session| self.uses.remove(session));
        Ok(session)
    }

    /// Writes the person with a change, in a batch.
    pub(in crate::people) fn write_changed(
        &self,
        id: PersonId,
        change: impl Fn(&mut Person) -> ServiceResult<()>,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        let VersionedValue { revision, value: mut person } = self.person(id)?;
        change(&mut person)?;
        batch.expect(Expect::Person(id, Presence::At(revision))).write(person);
        Ok(())
    }
}

fn turn_off(factor: &mut SecondFactor) -> ServiceResult<()> {
    if !factor.is_active() {
        return Err(ServiceError::NotFound);
    }
    *factor = SecondFactor::default();
    Ok(())
}

#[cfg(any(test, feature = "test-world"))]
#[allow(clippy::unwrap_used, reason = "for tests only")]
impl PeopleService {
    /// Returns the code that a person's app shows now, for tests: the new app's while its first code is waited for.
    pub fn test_code(&self, id: PersonId) -> String {
        let (factor, now) = (self.person(id).unwrap().value.second_factor, self.context.now());
        totp::code_at(factor.pending_secret(now).or(factor.active_secret()).unwrap(), now)
    }

    /// Turns a second factor on for a person who confirmed, for tests. Returns their new session and recovery codes.
    pub async fn test_factor(&self, current: &CurrentSession) -> (NewSession, Vec<String>) {
        self.begin_factor(current).await.unwrap();
        self.confirm_factor(current, &self.test_code(current.person.id)).await.unwrap()
    }
}
