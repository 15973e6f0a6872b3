//! Verification of a passkey's signature, with what it changes in the person's list.

use parallax_core::id::PersonId;
use parallax_core::passkey::PasskeyId;
use parallax_core::person::Person;
use parallax_core::time::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use webauthn_rs::prelude::{DiscoverableAuthentication, Passkey, PublicKeyCredential, WebauthnError};

use super::relying_party::RelyingParty;

/// Longest answer that is read, in bytes.
const MAX_ANSWER: usize = 16 << 10;

/// Proof that the device of a person verified them and signed with a passkey of theirs: [`verify`] alone makes it.
#[derive(Debug)]
pub(in crate::people) struct VerifiedPasskey {
    person: PersonId,
}

impl VerifiedPasskey {
    /// The person.
    pub(in crate::people) const fn person(&self) -> PersonId {
        self.person
    }
}

/// Reason for refusing a passkey. People see the same for all.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The person has no such passkey for this host.
    Unknown,
    /// The answer came from a frame in a page of someone else.
    CrossOrigin,
    /// The answer names another person.
    OtherPerson,
    /// Signature, challenge, origin or counter is wrong.
    Invalid(WebauthnError),
    /// The stored credential can't be read or written.
    Damaged,
}

/// Parses an answer; none if it is none, or too long.
pub(super) fn parse<T: DeserializeOwned>(answer: &str) -> Option<T> {
    if answer.len() > MAX_ANSWER { None } else { serde_json::from_str(answer).ok() }
}

/// Returns the id of the passkey with that credential.
pub(super) fn passkey_id(credential: &[u8]) -> PasskeyId {
    let hash: [u8; 32] = Sha256::digest(credential).into();
    PasskeyId(hash.first_chunk().copied().unwrap_or_default())
}

/// Verifies an answer with a passkey of the person, and records its use with them.
///
/// A counter that went back is refused: the key may have been copied. Counters of a restored store are lower than those of
/// the devices, so a restore locks nobody out; what was signed before it names a challenge that is gone.
pub(super) fn verify(
    party: &RelyingParty,
    person: &mut Person,
    (state, answer): (&DiscoverableAuthentication, &PublicKeyCredential),
    now: Timestamp,
) -> Result<VerifiedPasskey, Refusal> {
    if answer.get_user_unique_id().is_some_and(|handle| handle != person.id.to_u128().to_be_bytes()) {
        return Err(Refusal::OtherPerson);
    }
    if is_cross_origin(&answer.response.client_data_json) {
        return Err(Refusal::CrossOrigin);
    }
    let id = passkey_id(answer.get_credential_id());
    let stored = person.passkeys.get(id).filter(|it| it.host == party.host()).ok_or(Refusal::Unknown)?;
    let mut passkey: Passkey = serde_json::from_str(&stored.credential).map_err(|_| Refusal::Damaged)?;
    let verified = party.webauthn.finish_discoverable_authentication_v2(answer, state.clone(), &passkey);
    let verified = verified.map_err(Refusal::Invalid)?;
    if !verified.user_verified() {
        return Err(Refusal::Invalid(WebauthnError::UserNotVerified));
    }
    passkey.update_credential(&verified);
    let credential = serde_json::to_string(&passkey).map_err(|_| Refusal::Damaged)?;
    person.passkeys.record_use(id, credential, now);
    Ok(VerifiedPasskey { person: person.id })
}

/// Returns true if the client data says that a page of another origin held the one that asked, or can't be read. The
/// library does not look at it for sign-ins.
fn is_cross_origin(client_data: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ClientData {
        #[serde(default)]
        cross_origin: bool,
    }
    serde_json::from_slice::<ClientData>(client_data).map_or(true, |data| data.cross_origin)
}
