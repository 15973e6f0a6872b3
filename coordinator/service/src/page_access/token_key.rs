//! The HMAC key of access tokens, and of every other value that only this installation can compute.

use std::fmt;

use ring::hmac;

/// HMAC key of access tokens. It must be the same at each start, or all tokens become invalid.
#[derive(Clone)]
pub struct AccessTokenKey(hmac::Key);

impl AccessTokenKey {
    /// Creates the key from its bytes.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Computes the HMAC over these parts.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        context.sign()
    }
}

impl fmt::Debug for AccessTokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessTokenKey")
    }
}
