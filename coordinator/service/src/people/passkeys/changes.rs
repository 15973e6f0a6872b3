//! Changes of a person's passkeys. A new or removed one needs a confirmation before, and ends the person's other sessions,
//! as a second factor does.

#[cfg(any(test, feature = "test-world"))]
use parallax_core::id::PersonId;
use parallax_core::passkey::{PasskeyId, PersonPasskey, passkey_name};
use parallax_core::person::Person;
use parallax_core::validation::ValidationErrors;
use parallax_store::Batch;
#[cfg(any(test, feature = "test-world"))]
use parallax_store::{Expect, Presence, VersionedValue};
use serde_json::json;
use webauthn_rs::prelude::{CredentialID, Passkey, PasskeyRegistration, RegisterPublicKeyCredential, Uuid};

use super::super::{CurrentSession, NewSession, PeopleService};
use super::ceremonies::{CeremonyOwner, CeremonyState, PasskeyAnswer, PasskeyChallenge};
use super::proofs::{over, refused, unexpected, unreadable};
#[cfg(any(test, feature = "test-world"))]
use super::soft_authenticator::SoftPasskey;
use super::verification::{parse, passkey_id};
use crate::{ServiceError, ServiceResult};

impl PeopleService {
    /// Begins the registration of a new passkey at the browser.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`]; [`ServiceError::NotFound`] where there are no passkeys,
    /// [`ServiceError::TooManyTries`].
    pub fn begin_passkey_registration(&self, current: &CurrentSession) -> ServiceResult<PasskeyChallenge> {
        Self::require_own_sign_in(current)?;
        self.require_confirmed(current)?;
        let now = self.context.now();
        let network = current.network_key();
        self.admit_ceremony(network)?;
        let (options, state) = self.registration(&self.person(current.person.id)?.value)?;
        let owner = CeremonyOwner::Session(current.session.id);
        let ceremony = self.passkey_ceremonies.add(owner, network, CeremonyState::Registration(state), now);
        Ok(PasskeyChallenge { ceremony, options })
    }

    /// Adds the passkey that the browser made. Returns the browser's new session; the person's other sessions end.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`]; [`ServiceError::Invalid`] for a name that breaks a rule, too many passkeys,
    /// or an answer that is refused or came too late.
    pub async fn add_passkey(
        &self,
        current: &CurrentSession,
        answer: &PasskeyAnswer,
        name: &str,
    ) -> ServiceResult<NewSession> {
        Self::require_own_sign_in(current)?;
        self.require_confirmed(current)?;
        let name = passkey_name(name).map_err(|rule| ValidationErrors::single("name", rule))?;
        let owner = CeremonyOwner::Session(current.session.id);
        let taken = self.passkey_ceremonies.take(&answer.ceremony, owner, self.context.now());
        let Some(CeremonyState::Registration(state)) = taken else { return Err(over()) };
        let passkey = &self.made_passkey(&state, (&answer.credential, name))?;
        let add = |person: &mut Person| {
            let added = person.passkeys.add(passkey.clone());
            Ok(added.map_err(|rule| ValidationErrors::single("passkey", rule))?)
        };
        let session = self.change_person_and_session(current, add).await?;
        tracing::info!(person = %current.person.id, "a passkey was added");
        Ok(session)
    }

    /// Gives a passkey of the person another name.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] for a name that breaks a rule, [`ServiceError::NotFound`] if they have no such passkey.
    pub async fn rename_passkey(&self, current: &CurrentSession, id: &str, name: &str) -> ServiceResult<()> {
        Self::require_own_sign_in(current)?;
        let name = &passkey_name(name).map_err(|rule| ValidationErrors::single("name", rule))?;
        let person = current.person.id;
        self.context
            .commit_change(person.to_u128(), || async move {
                let mut batch = Batch::new();
                self.expect_session(current, &mut batch)?;
                let rename = |person: &mut Person| {
                    let id = named(person, id)?;
                    if person.passkeys.rename(id, name.clone()) { Ok(()) } else { Err(ServiceError::NotFound) }
                };
                self.write_changed(person, rename, &mut batch)?;
                self.context.log_change(current.author(), &mut batch)?;
                Ok(((), Some(batch)))
            })
            .await
    }

    /// Removes a passkey of the person. Returns the browser's new session; the person's other sessions end.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`], [`ServiceError::NotFound`] if they have no such passkey;
    /// [`ServiceError::Invalid`] if it is their only way to sign in: they have no password, and no mail is sent.
    pub async fn remove_passkey(&self, current: &CurrentSession, id: &str) -> ServiceResult<NewSession> {
        let remove = |person: &mut Person| {
            let id = named(person, id)?;
            let host = self.passkey_host().unwrap_or_default();
            if is_only_way_in(person, id, host, self.sends_mail()) {
                let rule = "is your only way to sign in: set a password first, or add another passkey";
                return Err(ValidationErrors::single("passkey", rule).into());
            }
            if person.passkeys.remove(id) { Ok(()) } else { Err(ServiceError::NotFound) }
        };
        let session = self.change_person_and_session(current, remove).await?;
        tracing::info!(person = %current.person.id, "a passkey was removed");
        Ok(session)
    }

    /// Makes the options of a new passkey of a person, and the state that verifies the answer.
    fn registration(&self, person: &Person) -> ServiceResult<(String, PasskeyRegistration)> {
        let party = self.party()?;
        let known = person.passkeys.of_host(party.host()).map(|it| credential_id(&it.credential));
        let known = known.collect::<ServiceResult<Vec<CredentialID>>>()?;
        let handle = Uuid::from_u128(person.id.to_u128());
        let (challenge, state) = party
            .webauthn
            .start_passkey_registration(handle, &person.email, person.display_name(), Some(known))
            .map_err(unexpected)?;
        let mut options = serde_json::to_value(challenge.public_key).map_err(unreadable)?;
        // The device must find it without being told whose it is: sign-in names nobody.
        options["authenticatorSelection"]["residentKey"] = json!("required");
        options["authenticatorSelection"]["requireResidentKey"] = json!(true);
        Ok((options.to_string(), state))
    }

    /// Verifies the answer to a registration.
    fn made_passkey(
        &self,
        state: &PasskeyRegistration,
        (credential, name): (&str, String),
    ) -> ServiceResult<PersonPasskey> {
        let party = self.party()?;
        let made: RegisterPublicKeyCredential = parse(credential).ok_or_else(refused)?;
        let made = party.webauthn.finish_passkey_registration(&made, state).map_err(|error| {
            tracing::debug!(%error, "a new passkey was refused");
            refused()
        })?;
        Ok(PersonPasskey {
            id: passkey_id(made.cred_id()),
            name,
            host: party.host().to_owned(),
            created_at: self.context.now(),
            last_used_at: None,
            credential: serde_json::to_string(&made).map_err(unreadable)?,
        })
    }
}

#[cfg(any(test, feature = "test-world"))]
#[allow(clippy::unwrap_used, reason = "for tests only")]
impl PeopleService {
    /// Gives a person a passkey, for tests: their sessions stay. Returns its id.
    pub async fn test_passkey(&self, id: PersonId, passkey: &mut SoftPasskey) -> String {
        let VersionedValue { revision, value: mut person } = self.person(id).unwrap();
        let (options, state) = self.registration(&person).unwrap();
        let answer = passkey.create(&PasskeyChallenge { ceremony: String::new(), options });
        let made = self.made_passkey(&state, (&answer.credential, "Key".to_owned())).unwrap();
        let (name, mut batch) = (made.id.to_string(), Batch::new());
        person.passkeys.add(made).unwrap();
        batch.expect(Expect::Person(id, Presence::At(revision))).write(person);
        self.context.store().commit(batch).await.unwrap();
        name
    }
}

/// Returns the id of the person's passkey that a text names.
fn named(person: &Person, text: &str) -> ServiceResult<PasskeyId> {
    let named = person.passkeys.all().iter().find(|passkey| passkey.id.to_string() == text);
    named.map(|passkey| passkey.id).ok_or(ServiceError::NotFound)
}

/// Returns true if a person without that passkey could not sign in any more: they have no password, no other passkey for
/// that host, and links can't be mailed.
fn is_only_way_in(person: &Person, id: PasskeyId, host: &str, sends_mail: bool) -> bool {
    let has_other = person.passkeys.of_host(host).any(|passkey| passkey.id != id);
    person.password_hash.is_none() && !has_other && !sends_mail
}

fn credential_id(credential: &str) -> ServiceResult<CredentialID> {
    let passkey: Passkey = serde_json::from_str(credential).map_err(unreadable)?;
    Ok(passkey.cred_id().clone())
}

#[cfg(test)]
mod tests {
    use parallax_store::samples::person;

    use super::*;

    #[test]
    fn the_last_way_in_is_kept() {
        // The sample has a password and a passkey.
        let with_both = person(2, 2);
        let id = with_both.passkeys.all()[0].id;
        let host = with_both.passkeys.all()[0].host.clone();
        let only = Person { password_hash: None, ..with_both.clone() };
        let mut two = only.clone();
        two.passkeys.add(PersonPasskey { id: PasskeyId([9; 16]), ..two.passkeys.all()[0].clone() }).unwrap();
        for (person, host, sends_mail, is_kept) in [
            (&with_both, host.as_str(), false, false),
            (&only, &host, true, false),
            (&only, &host, false, true),
            (&two, &host, false, false),
            // Both are for an address that the dashboard no longer has.
            (&two, "new.example.com", false, true),
        ] {
            assert_eq!(is_only_way_in(person, id, host, sends_mail), is_kept, "{person:?} {sends_mail}");
        }
    }
}
