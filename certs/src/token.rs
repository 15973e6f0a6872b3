//! The join token: a one-time credential with which a new host becomes an agent.

use std::fmt;
use std::str::FromStr;

use hex::FromHex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::CertsError;

/// Maximum length of a token's text; a token is 130 characters.
const MAX_TEXT: usize = 256;

/// Number of the invitation that a token belongs to, printed as 32 hexadecimal digits; not secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JoinTokenId(pub u128);

impl fmt::Display for JoinTokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for JoinTokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenId({self})")
    }
}

impl FromStr for JoinTokenId {
    type Err = CertsError;

    fn from_str(text: &str) -> Result<Self, CertsError> {
        FromHex::from_hex(text)
            .map(|bytes| Self(u128::from_be_bytes(bytes)))
            .map_err(|_| CertsError::Token("its id must be 32 hexadecimal digits"))
    }
}

/// A token's secret, 16 random bytes; its `Debug` hides it.
#[derive(Clone)]
pub struct JoinTokenSecret([u8; 16]);

impl JoinTokenSecret {
    /// Wraps a secret received over the wire.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes. Send them only after the coordinator is verified.
    #[must_use]
    pub fn expose(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the hash that is stored instead of the secret. One SHA-256 suffices: 128 random bits cannot be
    /// guessed from it.
    #[must_use]
    pub fn hash(&self) -> JoinTokenSecretHash {
        let mut hasher = Sha256::new();
        hasher.update(b"parallax join token secret\0");
        hasher.update(self.0);
        JoinTokenSecretHash(hasher.finalize().into())
    }
}

impl fmt::Debug for JoinTokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The stored hash of a token's secret.
#[derive(Clone, Copy)]
pub struct JoinTokenSecretHash(pub [u8; 32]);

impl JoinTokenSecretHash {
    /// Returns true if `secret` matches, in constant time.
    #[must_use]
    pub fn matches(&self, secret: &JoinTokenSecret) -> bool {
        self.0.ct_eq(&secret.hash().0).into()
    }
}

impl fmt::Debug for JoinTokenSecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(..)")
    }
}

/// A join token: `id.secret.hash`, each in lower-case hexadecimal, the hash being the SHA-256 of the
/// authority's public key (SubjectPublicKeyInfo). Its `Debug` shows only the id.
#[derive(Clone)]
pub struct JoinToken {
    /// Invitation that it belongs to.
    pub id: JoinTokenId,
    /// Proof that the holder was invited.
    pub secret: JoinTokenSecret,
    /// SHA-256 of the authority's public key, with which the holder verifies the coordinator.
    pub authority: [u8; 32],
}

impl JoinToken {
    /// Creates a token with a new secret for that invitation, with the authority's key hash.
    ///
    /// # Errors
    /// [`CertsError::Random`] if the system returns no random bytes.
    pub fn generate(id: JoinTokenId, authority: [u8; 32]) -> Result<Self, CertsError> {
        let mut secret = [0; 16];
        crate::random::fill_random(&mut secret)?;
        Ok(Self { id, secret: JoinTokenSecret(secret), authority })
    }

    /// Returns the text to hand over, secret included: shown once, never stored.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{}.{}.{}", self.id, hex::encode(self.secret.0), hex::encode(self.authority))
    }
}

impl FromStr for JoinToken {
    type Err = CertsError;

    fn from_str(text: &str) -> Result<Self, CertsError> {
        let text = text.trim();
        if text.len() > MAX_TEXT {
            return Err(CertsError::Token("is too long"));
        }
        let mut parts = text.split('.');
        let (Some(id), Some(secret), Some(authority), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(CertsError::Token("must be three parts with dots between, as the invitation printed it"));
        };
        Ok(Self {
            id: id.parse()?,
            secret: JoinTokenSecret(
                FromHex::from_hex(secret).map_err(|_| CertsError::Token("its secret must be 32 hexadecimal digits"))?,
            ),
            authority: FromHex::from_hex(authority)
                .map_err(|_| CertsError::Token("its key hash must be 64 hexadecimal digits"))?,
        })
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinToken").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_as_it_was_printed() {
        let token = JoinToken::generate(JoinTokenId(5), [7; 32]).unwrap();
        let text = token.expose();
        assert_eq!(text.len(), 130);
        let read: JoinToken = format!(" {text}\n").parse().unwrap();
        assert_eq!((read.id, read.authority), (token.id, [7; 32]));
        assert!(token.secret.hash().matches(&read.secret));
    }

    #[test]
    fn a_wrong_secret_does_not_match() {
        let (first, second) = (
            JoinToken::generate(JoinTokenId(5), [7; 32]).unwrap(),
            JoinToken::generate(JoinTokenId(5), [7; 32]).unwrap(),
        );
        assert!(!first.secret.hash().matches(&second.secret));
    }

    #[test]
    fn a_token_tells_no_secret_when_printed_for_debugging() {
        let token = JoinToken::generate(JoinTokenId(5), [7; 32]).unwrap();
        let debug = format!("{token:?} {:?} {:?}", token.secret, token.secret.hash());
        assert!(!debug.contains(&hex::encode(token.secret.expose())));
        assert!(!debug.contains(&hex::encode(token.secret.hash().0)));
    }

    #[test]
    fn text_that_is_no_token_is_refused() {
        let good = JoinToken::generate(JoinTokenId(5), [7; 32]).unwrap().expose();
        for bad in
            ["", ".", "..", "a.b.c", "a.b", &good[1..], &good[..129], &format!("{good}.x"), &good.replace('.', ":")]
        {
            assert!(bad.parse::<JoinToken>().is_err(), "{bad}");
        }
        assert!("x".repeat(10_000).parse::<JoinToken>().is_err());
        assert!(format!("+{}", &good[1..]).parse::<JoinToken>().is_err());
    }
}
