//! Passkeys as proof of identity: at sign-in, as second step after a password or link, and at a confirmation.

use parallax_core::id::PersonId;
use parallax_core::person::Person;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence, VersionedValue};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use webauthn_rs::prelude::{DiscoverableAuthentication, Passkey, PublicKeyCredential, WebauthnError};

use super::super::counted_try::CountedTry;
use super::super::second_factor::CompleteProof;
use super::super::{BrowserInfo, CodeSignIn, CurrentSession, PeopleService, SessionToken, SignInStep};
use super::ceremonies::{CeremonyOwner, CeremonyState, PasskeyAnswer, PasskeyChallenge};
use super::relying_party::RelyingParty;
use super::verification::{Refusal, VerifiedPasskey, parse, verify};
use crate::page_access::sign_in::BrowserId;
use crate::{ServiceError, ServiceResult};

/// Rule that a passkey breaks which is unknown, was removed, or signed something else.
const REFUSED: &str = "is not known here, or was removed";
/// Rule that an answer breaks whose ceremony is over.
const OVER: &str = "was asked for more than 5 minutes ago, or was used already: try again";

/// An answer with the state of its ceremony.
struct OpenAnswer {
    state: DiscoverableAuthentication,
    credential: PublicKeyCredential,
}

impl PeopleService {
    /// Host that passkeys are made for; none where browsers have none: at an IP address, and over plain http except at
    /// localhost.
    pub fn passkey_host(&self) -> Option<&str> {
        self.relying_party.as_ref().map(RelyingParty::host)
    }

    /// Returns true if passkeys work at the dashboard's address.
    pub fn offers_passkeys(&self) -> bool {
        self.relying_party.is_some()
    }

    /// Returns true if the person has a passkey that works at the dashboard's address.
    pub fn has_passkey(&self, person: &Person) -> bool {
        self.passkey_host().is_some_and(|host| person.passkeys.of_host(host).next().is_some())
    }

    /// Begins a sign-in by passkey at a browser: its authenticator finds whose it is, so nobody is named.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] where there are no passkeys, [`ServiceError::TooManyTries`].
    pub fn begin_passkey_sign_in(
        &self,
        browser_id: &BrowserId,
        browser: &BrowserInfo,
    ) -> ServiceResult<PasskeyChallenge> {
        self.begin_proof(owner_of(browser_id), None, browser.network_key)
    }

    /// Signs a person in by a passkey, which is both factors.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] for a passkey that is refused or came too late, [`ServiceError::TooManyTries`];
    /// [`ServiceError::NotFound`] where there are no passkeys.
    pub async fn sign_in_by_passkey(
        &self,
        (browser_id, answer): (&BrowserId, &PasskeyAnswer),
        is_kept: bool,
        browser: &BrowserInfo,
    ) -> ServiceResult<SignInStep> {
        let open = &self.open_answer(owner_of(browser_id), answer)?;
        let key = Sha256::new().chain_update("passkey\0").chain_update(open.credential.get_credential_id()).finalize();
        let counted = self.count_try(CountedTry { email: key.into(), network: browser.network_key }, false)?;
        let handle = open.credential.get_user_unique_id().and_then(|handle| handle.try_into().ok());
        let person = handle.map(|handle| PersonId::from_u128(u128::from_be_bytes(handle)));
        let done = self.passkey_session((person, open), is_kept, browser).await;
        match &done {
            Ok(_) => self.forget_tries(&counted),
            Err(ServiceError::Invalid(_)) => self.log_refused_passkey(person, browser)?,
            Err(_) => self.take_back(&counted),
        }
        done
    }

    async fn passkey_session(
        &self,
        (person, open): (Option<PersonId>, &OpenAnswer),
        is_kept: bool,
        browser: &BrowserInfo,
    ) -> ServiceResult<SignInStep> {
        let id = person.ok_or_else(refused)?;
        self.context
            .commit_change(id.to_u128(), || async move {
                let stored = self.context.store().reader().person(id)?;
                let VersionedValue { revision, value: mut person } = stored.ok_or_else(refused)?;
                let verified = self.verify_passkey(&mut person, open)?;
                let member = self.sign_in_membership(id)?.ok_or_else(refused)?;
                let account = member.account;
                if self.needs_company(&member)? {
                    return Ok((SignInStep::Company(account), None));
                }
                let (mut batch, proof) = (Batch::new(), CompleteProof::of_passkey(account, &verified));
                batch.expect(Expect::Person(id, Presence::At(revision)));
                batch.expect(Expect::AccountMember(account, id, Presence::Present));
                self.context.log_sign_in(account, &person, browser.network.clone(), &mut batch);
                batch.write(person);
                let session = self.add_session(&proof, is_kept, browser, &mut batch).await?;
                Ok((SignInStep::Complete(session), Some(batch)))
            })
            .await
    }

    /// Begins the second step by passkey, of a sign-in that waits at the browser with that cookie.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if none waits, or the person has no passkey; [`ServiceError::TooManyTries`].
    pub fn begin_passkey_step(&self, token: &SessionToken, browser: &BrowserInfo) -> ServiceResult<PasskeyChallenge> {
        let person = self.pending_person(token)?;
        self.begin_proof(CeremonyOwner::PendingSignIn(token.id()), Some(&person), browser.network_key)
    }

    /// Completes a sign-in by a passkey in place of a code.
    ///
    /// # Errors
    /// As for a [code](Self::enter_code).
    pub async fn enter_passkey(
        &self,
        token: &SessionToken,
        answer: &PasskeyAnswer,
        browser: &BrowserInfo,
    ) -> ServiceResult<CodeSignIn> {
        let open = self.open_answer(CeremonyOwner::PendingSignIn(token.id()), answer)?;
        self.complete_pending(token, |person| self.verify_passkey(person, &open).map(|_| None), browser).await
    }

    /// Begins a confirmation by passkey.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if the person has no passkey, [`ServiceError::TooManyTries`]; [`ServiceError::Invalid`] at
    /// a session by company sign-in, which must not learn the person's passkeys.
    pub fn begin_passkey_confirmation(&self, current: &CurrentSession) -> ServiceResult<PasskeyChallenge> {
        Self::require_own_sign_in(current)?;
        let person = self.person(current.person.id)?.value;
        self.begin_proof(CeremonyOwner::Session(current.session.id), Some(&person), current.network_key())
    }

    /// Confirms by a passkey that the person is at the browser, which opens secrets for ten minutes.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] for a passkey that is refused or came too late, [`ServiceError::TooManyTries`].
    pub async fn confirm_by_passkey(&self, current: &CurrentSession, answer: &PasskeyAnswer) -> ServiceResult<()> {
        Self::require_own_sign_in(current)?;
        let open = &self.open_answer(CeremonyOwner::Session(current.session.id), answer)?;
        let (id, counted) = (current.person.id, self.begin_confirmation(&current.person.email)?);
        let done = self
            .context
            .commit_change(id.to_u128(), || async move {
                let mut batch = Batch::new();
                self.write_changed(id, |person| self.verify_passkey(person, open).map(|_| ()), &mut batch)?;
                self.write_confirmation(current, &mut batch)?;
                Ok(((), Some(batch)))
            })
            .await;
        match &done {
            Ok(()) => self.forget_tries(&counted),
            Err(ServiceError::Invalid(_)) => {}
            Err(_) => self.take_back(&counted),
        }
        done
    }

    /// Makes the challenge of a ceremony. Of a known person, the browser is told which passkeys may answer.
    fn begin_proof(
        &self,
        owner: CeremonyOwner,
        person: Option<&Person>,
        network: Option<u128>,
    ) -> ServiceResult<PasskeyChallenge> {
        let (party, now) = (self.party()?, self.context.now());
        self.admit_ceremony(network)?;
        let (challenge, state) = party.webauthn.start_discoverable_authentication().map_err(unexpected)?;
        let mut options = serde_json::to_value(challenge.public_key).map_err(unreadable)?;
        if let Some(person) = person {
            options["allowCredentials"] = allowed(party, person)?;
        }
        let ceremony = self.passkey_ceremonies.add(owner, network, CeremonyState::Authentication(state), now);
        Ok(PasskeyChallenge { ceremony, options: options.to_string() })
    }

    /// Counts the beginning of a ceremony.
    pub(super) fn admit_ceremony(&self, network: Option<u128>) -> ServiceResult<()> {
        let admitted = self.passkey_ceremonies.admit(network, self.context.now());
        admitted.map_err(|exceeded| ServiceError::TooManyTries { seconds: exceeded.seconds })
    }

    /// Takes the ceremony that an answer names, which then can't be answered again.
    fn open_answer(&self, owner: CeremonyOwner, answer: &PasskeyAnswer) -> ServiceResult<OpenAnswer> {
        self.party()?;
        let taken = self.passkey_ceremonies.take(&answer.ceremony, owner, self.context.now());
        let Some(CeremonyState::Authentication(state)) = taken else {
            return Err(over());
        };
        Ok(OpenAnswer { state, credential: parse(&answer.credential).ok_or_else(refused)? })
    }

    /// Verifies an answer with a passkey of the person, and records its use with them.
    fn verify_passkey(&self, person: &mut Person, open: &OpenAnswer) -> ServiceResult<VerifiedPasskey> {
        let answer = (&open.state, &open.credential);
        verify(self.party()?, person, answer, self.context.now()).map_err(|refusal| {
            if let Refusal::Invalid(WebauthnError::CredentialPossibleCompromise) = refusal {
                // Only who has the key gets this far.
                tracing::warn!(person = %person.id, "a passkey's counter went back: it may have been copied; remove it");
            } else {
                tracing::debug!(person = %person.id, ?refusal, "a passkey was refused");
            }
            refused()
        })
    }

    fn log_refused_passkey(&self, person: Option<PersonId>, browser: &BrowserInfo) -> ServiceResult<()> {
        let Some(person) = person else { return Ok(()) };
        match self.context.store().reader().person(person)? {
            Some(person) => self.log_failed_try(&person.value, browser),
            None => Ok(()),
        }
    }

    pub(super) fn party(&self) -> ServiceResult<&RelyingParty> {
        self.relying_party.as_ref().ok_or(ServiceError::NotFound)
    }
}

fn owner_of(browser: &BrowserId) -> CeremonyOwner {
    CeremonyOwner::Browser(Sha256::digest(browser).into())
}

/// Passkeys of the person as a browser reads them, with hints where their devices are.
fn allowed(party: &RelyingParty, person: &Person) -> ServiceResult<Value> {
    let read = |credential: &str| serde_json::from_str::<Passkey>(credential).map_err(unreadable);
    let stored = person.passkeys.of_host(party.host()).map(|it| read(&it.credential));
    let passkeys = stored.collect::<ServiceResult<Vec<Passkey>>>()?;
    if passkeys.is_empty() {
        return Err(ServiceError::NotFound);
    }
    let (challenge, _) = party.webauthn.start_passkey_authentication(&passkeys).map_err(unexpected)?;
    Ok(json!(challenge.public_key.allow_credentials))
}

pub(super) fn refused() -> ServiceError {
    ValidationErrors::single("passkey", REFUSED).into()
}

pub(super) fn over() -> ServiceError {
    ValidationErrors::single("passkey", OVER).into()
}

pub(super) fn unexpected(error: WebauthnError) -> ServiceError {
    ServiceError::Internal(format!("passkeys: {error}"))
}

pub(super) fn unreadable(error: serde_json::Error) -> ServiceError {
    ServiceError::Internal(format!("a stored passkey can't be read: {error}"))
}
