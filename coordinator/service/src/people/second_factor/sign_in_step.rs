//! The next step of a sign-in: the session, or first the code of the person's second factor.
//!
//! A session needs a [`CompleteProof`], which is made here alone. So no way in can forget the code.

use parallax_core::id::{AccountId, PersonId};
use parallax_core::person::Person;
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence, VersionedValue};

use super::super::company::CompanyProof;
use super::super::passkeys::verification::VerifiedPasskey;
use super::super::{BrowserInfo, CurrentSession, NewSession, PeopleService, SessionToken};
use super::pending_sign_ins::{PendingSignIn, SignInTarget};
use super::{recovery_code, totp};
use crate::audit::ChangeAuthor;
use crate::{ServiceError, ServiceResult};

/// Longest code that is read, in bytes.
const MAX_CODE: usize = 64;

/// Next step after a right password, mailed link, invitation or set-up link. A passkey needs none.
#[derive(Debug, Clone)]
pub enum SignInStep {
    /// The person is signed in.
    Complete(NewSession),
    /// The person has a second factor: the browser gets this secret, and with it enters a code or uses a passkey.
    Code(SessionToken),
    /// The account needs company sign-in: the browser goes there.
    Company(AccountId),
}

impl SignInStep {
    /// Returns the session; none if something else is asked for first.
    pub fn session(self) -> Option<NewSession> {
        match self {
            Self::Complete(session) => Some(session),
            Self::Code(_) | Self::Company(_) => None,
        }
    }
}

/// Ways to complete a sign-in whose password or link was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecondSteps {
    /// A code of the authenticator app, or a recovery code.
    pub app: bool,
    /// A passkey.
    pub passkey: bool,
}

/// A sign-in that a code or passkey completed.
#[derive(Debug, Clone)]
pub struct CodeSignIn {
    /// The session.
    pub session: NewSession,
    /// Recovery codes left, if one was used.
    pub recovery_codes_left: Option<usize>,
}

/// Proof that a person may get a session of an account, by all factors that they have.
#[derive(Debug)]
pub(in crate::people) struct CompleteProof {
    account: AccountId,
    person: PersonId,
    /// The company's provider, if it proved the person.
    company: Option<CompanyProof>,
}

impl CompleteProof {
    /// Proof of a person who is signed in.
    pub(in crate::people) const fn of_session(current: &CurrentSession) -> Self {
        Self { account: current.session.account, person: current.person.id, company: None }
    }

    /// Proof by a passkey, which is both factors: the person's device verified them before it signed.
    pub(in crate::people) const fn of_passkey(account: AccountId, verified: &VerifiedPasskey) -> Self {
        Self { account, person: verified.person(), company: None }
    }

    /// Proof without any, for tests.
    #[cfg(any(test, feature = "test-world"))]
    pub(in crate::people) const fn for_tests((account, person): (AccountId, PersonId)) -> Self {
        Self { account, person, company: None }
    }

    /// Time at which the company's provider saw the person; none without one.
    pub(in crate::people) fn confirmed_at(&self) -> Option<Timestamp> {
        self.company.map(|company| company.confirmed_at)
    }

    /// Hash of who the company's provider proved the person to be, whose session is of the account alone; none without it.
    pub(in crate::people) fn company_subject(&self) -> Option<[u8; 32]> {
        self.company.map(|company| company.subject)
    }

    /// The account.
    pub(in crate::people) const fn account(&self) -> AccountId {
        self.account
    }

    /// The person.
    pub(in crate::people) const fn person(&self) -> PersonId {
        self.person
    }
}

impl PeopleService {
    /// Decides the next step of a person whose password or link was right, or whom their company's provider proved, as the
    /// batch expects them. Without a second factor their session is added to the batch.
    pub(in crate::people) async fn next_step(
        &self,
        person: &Person,
        target: SignInTarget,
        (is_kept, browser): (bool, &BrowserInfo),
        batch: &mut Batch,
    ) -> ServiceResult<SignInStep> {
        if target.company.is_none() && self.needs_company_after((target.account, person.id), batch)? {
            return Ok(SignInStep::Company(target.account));
        }
        let is_covered = target.company.is_some_and(|company| company.covers_second_factor);
        if !is_covered && self.factor_need(person, Some(target.account))?.asks_for_second_step() {
            let (id, password_hash, began_at) = (person.id, person.password_hash.clone(), self.context.now());
            let pending = PendingSignIn { person: id, password_hash, target, is_kept, began_at, password_try: None };
            return Ok(SignInStep::Code(self.pending_sign_ins.add(pending)));
        }
        let proof = CompleteProof { account: target.account, person: person.id, company: target.company };
        // Written unchanged: what ends all their sessions at the same time conflicts, and ends this one, too.
        batch.write(person.clone());
        self.log_complete(&proof, person, browser, batch);
        Ok(SignInStep::Complete(self.add_session(&proof, is_kept, browser, batch).await?))
    }

    /// Returns the ways to complete the sign-in that waits at the browser with that cookie; none if none waits, or the
    /// person has no second factor any more.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn second_steps(&self, token: &SessionToken) -> ServiceResult<Option<SecondSteps>> {
        let Some(pending) = self.pending_sign_ins.get(token, self.context.now()) else { return Ok(None) };
        let Some(person) = self.context.store().reader().person(pending.person)?.map(|person| person.value) else {
            return Ok(None);
        };
        let steps = SecondSteps { app: person.second_factor.is_active(), passkey: self.has_passkey(&person) };
        // The operator removed both meanwhile: the person signs in again.
        Ok((steps.app || steps.passkey).then_some(steps))
    }

    /// Returns the person whose sign-in waits at the browser with that cookie.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if none waits.
    pub(in crate::people) fn pending_person(&self, token: &SessionToken) -> ServiceResult<Person> {
        let pending = self.pending_sign_ins.get(token, self.context.now()).ok_or(ServiceError::NotFound)?;
        Ok(self.person(pending.person)?.value)
    }

    /// Completes a sign-in with a code of the app, or a recovery code, each of which counts once.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if no sign-in waits at this browser, or the person changed meanwhile: they sign in
    /// again. [`ServiceError::Invalid`] for a wrong or used code, [`ServiceError::TooManyTries`]; for an invitation also
    /// [`ServiceError::PlanLimit`] if the account is full.
    pub async fn enter_code(
        &self,
        token: &SessionToken,
        code: &str,
        browser: &BrowserInfo,
    ) -> ServiceResult<CodeSignIn> {
        let accept = |person: &mut Person| {
            // It was turned off meanwhile: the person signs in again.
            if !person.second_factor.is_active() {
                return Err(ServiceError::NotFound);
            }
            accept_code(person, code, self.context.now())
        };
        self.complete_pending(token, accept, browser).await
    }

    /// Completes the sign-in that waits at a browser, once `accept` finds its second step right. It returns the recovery
    /// codes left, if it used one; a wrong step is [`ServiceError::Invalid`], which counts as a failed try.
    pub(in crate::people) async fn complete_pending(
        &self,
        token: &SessionToken,
        accept: impl Fn(&mut Person) -> ServiceResult<Option<usize>>,
        browser: &BrowserInfo,
    ) -> ServiceResult<CodeSignIn> {
        let pending = &self.pending_sign_ins.get(token, self.context.now()).ok_or(ServiceError::NotFound)?;
        let person = self.person(pending.person)?.value;
        let counted = self.begin_code_try(&person.email, browser)?;
        let done = self.complete_sign_in(pending, &accept, browser).await;
        if matches!(done, Err(ServiceError::Invalid(_))) {
            match &pending.target {
                SignInTarget { account, company: Some(_), .. } => self.log_failed_try_in(*account, &person, browser),
                _ => self.log_failed_try(&person, browser)?,
            }
        }
        let done = done.inspect_err(|error| {
            if !matches!(error, ServiceError::Invalid(_)) {
                self.take_back(&counted);
            }
        })?;
        self.pending_sign_ins.end(token);
        self.forget_tries(&counted);
        if let Some(password_try) = &pending.password_try {
            self.forget_tries(password_try);
        }
        if let Some(left) = done.recovery_codes_left {
            tracing::info!(person = %pending.person, left, "a recovery code was used");
        }
        Ok(done)
    }

    async fn complete_sign_in(
        &self,
        pending: &PendingSignIn,
        accept: &impl Fn(&mut Person) -> ServiceResult<Option<usize>>,
        browser: &BrowserInfo,
    ) -> ServiceResult<CodeSignIn> {
        let decide = || self.completed_sign_in(pending, accept, browser);
        let SignInTarget { account, invitation, .. } = &pending.target;
        if invitation.is_some() {
            // As for every invitation: one at a time.
            let _making = self.context.create_lock.lock().await;
            return self.context.commit_change(account.to_u128(), decide).await;
        }
        self.context.commit_change(pending.person.to_u128(), decide).await
    }

    /// Adds the entry of a complete sign-in to the batch.
    fn log_complete(&self, proof: &CompleteProof, person: &Person, browser: &BrowserInfo, batch: &mut Batch) {
        let network = browser.network.clone();
        if proof.company.is_some() {
            self.context.log_company_sign_in(proof.account, person, network, batch);
        } else {
            self.context.log_sign_in(proof.account, person, network, batch);
        }
    }

    /// Checks the second step, and collects what a right one writes: two with the same code can't both be committed.
    async fn completed_sign_in(
        &self,
        pending: &PendingSignIn,
        accept: &impl Fn(&mut Person) -> ServiceResult<Option<usize>>,
        browser: &BrowserInfo,
    ) -> ServiceResult<(CodeSignIn, Option<Batch>)> {
        let VersionedValue { revision, value: mut person } = self.person(pending.person)?;
        if person.password_hash != pending.password_hash {
            return Err(ServiceError::NotFound);
        }
        let recovery_codes_left = accept(&mut person)?;
        let (id, account, mut batch) = (person.id, pending.target.account, Batch::new());
        batch.expect(Expect::Person(id, Presence::At(revision)));
        match &pending.target.invitation {
            Some(invitation) => self.use_invitation(invitation, id, &mut batch).await?,
            None => {
                let stored =
                    self.context.store().reader().account_member(account, id)?.ok_or(ServiceError::NotFound)?;
                let proved = pending.target.company.map(|company| company.subject);
                // The provider was replaced meanwhile.
                if proved.is_some() && proved != stored.value.company_subject {
                    return Err(ServiceError::NotFound);
                }
                batch.expect(Expect::AccountMember(account, id, Presence::At(stored.revision)));
            }
        }
        batch.write(person.clone());
        let author = ChangeAuthor::person(account, &person, browser.network.clone());
        self.context.log_change(author, &mut batch)?;
        let proof = CompleteProof { account, person: id, company: pending.target.company };
        self.log_complete(&proof, &person, browser, &mut batch);
        let session = self.add_session(&proof, pending.is_kept, browser, &mut batch).await?;
        Ok((CodeSignIn { session, recovery_codes_left }, Some(batch)))
    }
}

/// Uses a code of the app, or a recovery code. Returns the number of recovery codes left, if it was one.
fn accept_code(person: &mut Person, typed: &str, now: Timestamp) -> ServiceResult<Option<usize>> {
    let wrong = || ValidationErrors::single("code", "is wrong or was used already").into();
    if typed.len() > MAX_CODE {
        return Err(wrong());
    }
    let digits: String = typed.chars().filter(|sign| !sign.is_whitespace()).collect();
    let factor = &mut person.second_factor;
    let step = factor.active_secret().and_then(|secret| totp::matching_step(secret, &digits, now));
    if step.is_some_and(|step| factor.accept_step(step, now)) {
        return Ok(None);
    }
    let hash = recovery_code::hash_of(person.id, typed);
    hash.and_then(|hash| factor.use_recovery_code(hash)).map(Some).ok_or_else(wrong)
}
