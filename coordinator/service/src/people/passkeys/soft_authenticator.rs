//! An authenticator in software for tests: it makes passkeys and signs with them, rightly or as an attacker would.
#![allow(clippy::unwrap_used, reason = "for tests only")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::ceremonies::{PasskeyAnswer, PasskeyChallenge};

/// Bits of the authenticator data: present, verified, attested credential (Web Authentication, 6.1).
const PRESENT: u8 = 1;
const VERIFIED: u8 = 4;
const ATTESTED: u8 = 64;

/// A passkey with its private key, and what its device says when it is used.
#[derive(Debug)]
pub struct SoftPasskey {
    key: EcdsaKeyPair,
    /// Id of the credential.
    pub id: Vec<u8>,
    /// User handle that it was made for.
    pub handle: Vec<u8>,
    /// Uses so far, which each signature counts up; over its end to 0, as synced passkeys have it.
    pub counter: u32,
    /// Origin of the page that asks.
    pub origin: String,
    /// Host that is signed for.
    pub host: String,
    /// False if the device did not verify its owner.
    pub is_verified: bool,
    /// True if another origin's page holds the one that asks.
    pub is_framed: bool,
}

impl SoftPasskey {
    /// Makes a passkey for a dashboard at that origin.
    pub fn new(origin: &str) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
        let host = origin.split("://").nth(1).unwrap().split(':').next().unwrap().to_owned();
        let (id, origin) = (rand::random::<[u8; 32]>().to_vec(), origin.to_owned());
        Self { key, id, handle: Vec::new(), counter: 0, origin, host, is_verified: true, is_framed: false }
    }

    /// Answers the options of a registration.
    pub fn create(&mut self, challenge: &PasskeyChallenge) -> PasskeyAnswer {
        let options: Value = serde_json::from_str(&challenge.options).unwrap();
        assert_eq!(options["authenticatorSelection"]["residentKey"], "required");
        assert_eq!(options["authenticatorSelection"]["userVerification"], "required");
        self.handle = decode(&options["user"]["id"]);
        let public = self.key.public_key().as_ref();
        // COSE key (RFC 9053): EC2, ES256, P-256, with both coordinates as strings of 32 bytes.
        let key = [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32], &public[1..33], &[0x22, 0x58, 32], &public[33..]];
        let length = u16::try_from(self.id.len()).unwrap().to_be_bytes();
        let attested = [&[0; 16][..], &length, &self.id, &key.concat()].concat();
        let data = [self.authenticator_data(ATTESTED), attested].concat();
        let length = u16::try_from(data.len()).unwrap().to_be_bytes();
        // {"fmt": "none", "attStmt": {}, "authData": data}
        let object = [&b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59"[..], &length, &data].concat();
        let client_data = self.client_data("webauthn.create", &options);
        let response = json!({
            "attestationObject": encode(&object),
            "clientDataJSON": encode(client_data.as_bytes()),
            "transports": ["internal"],
        });
        self.answer(challenge, &response)
    }

    /// Answers the options of a proof.
    pub fn get(&mut self, challenge: &PasskeyChallenge) -> PasskeyAnswer {
        let options: Value = serde_json::from_str(&challenge.options).unwrap();
        assert_eq!(options["userVerification"], "required");
        self.counter = self.counter.wrapping_add(1);
        let (data, client_data) = (self.authenticator_data(0), self.client_data("webauthn.get", &options));
        let signed = [&data[..], &Sha256::digest(&client_data)].concat();
        let signature = self.key.sign(&SystemRandom::new(), &signed).unwrap();
        let response = json!({
            "authenticatorData": encode(&data),
            "clientDataJSON": encode(client_data.as_bytes()),
            "signature": encode(signature.as_ref()),
            "userHandle": encode(&self.handle),
        });
        self.answer(challenge, &response)
    }

    fn answer(&self, challenge: &PasskeyChallenge, response: &Value) -> PasskeyAnswer {
        let id = encode(&self.id);
        let credential = json!({
            "id": id, "rawId": id, "type": "public-key", "response": response, "clientExtensionResults": {},
        });
        PasskeyAnswer { ceremony: challenge.ceremony.clone(), credential: credential.to_string() }
    }

    fn authenticator_data(&self, flags: u8) -> Vec<u8> {
        let flags = flags | PRESENT | if self.is_verified { VERIFIED } else { 0 };
        [&Sha256::digest(&self.host)[..], &[flags], &self.counter.to_be_bytes()].concat()
    }

    fn client_data(&self, kind: &str, options: &Value) -> String {
        let (challenge, origin, is_framed) = (&options["challenge"], &self.origin, self.is_framed);
        json!({ "type": kind, "challenge": challenge, "origin": origin, "crossOrigin": is_framed }).to_string()
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(text: &Value) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap()
}
