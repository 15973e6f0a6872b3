//! Secrets as text: API keys, ping tokens, and tokens of sessions and one-time links.

use std::fmt;

use sha2::{Digest, Sha256};

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX: &str = "plx_";
/// Base-62 digits of 256 bits.
const SECRET: usize = 43;
/// Base-62 digits of a 32-bit checksum.
const CHECKSUM: usize = 6;

/// An API key as text: a prefix, 256 random bits and a checksum that distinguishes a typing error from an unknown
/// key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeyText(String);

impl ApiKeyText {
    /// Creates the key from 256 random bits.
    pub fn new(random: [u8; 32]) -> Self {
        let secret = base62(&random, SECRET);
        let checksum = base62(&crc32c::crc32c(secret.as_bytes()).to_be_bytes(), CHECKSUM);
        Self(format!("{PREFIX}{secret}{checksum}"))
    }

    /// Parses a key; `None` if the text can't be one.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let (secret, checksum) = digits.split_at_checked(SECRET)?;
        let expected = base62(&crc32c::crc32c(secret.as_bytes()).to_be_bytes(), CHECKSUM);
        (expected == checksum).then(|| Self(text.to_owned()))
    }

    /// Explains why a text is not a valid key, from the text alone.
    pub fn explain(text: &str) -> String {
        let length = PREFIX.len() + SECRET + CHECKSUM;
        let characters = text.chars().count();
        if !text.starts_with(PREFIX) {
            let quoted = text.trim_matches(['"', '\'', '<', '>', '`']);
            return if quoted.starts_with(PREFIX) {
                "the key must be sent without quotes or brackets around it".to_owned()
            } else {
                format!("this is not an API key: keys begin with {PREFIX}")
            };
        }
        if characters < length {
            return format!("the key is cut off: it has {length} characters, and {characters} were sent");
        }
        if characters > length {
            return format!("the key is too long: it has {length} characters, and {characters} were sent");
        }
        match Self::parse(text) {
            None => "the key is mistyped: its checksum does not match".to_owned(),
            Some(_) => "this key is unknown: it was revoked, or belongs to another installation".to_owned(),
        }
    }

    /// Returns the text, which is shown only once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// SHA-256 of the text: 256 random bits need no slow hash.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for ApiKeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(…)")
    }
}

/// Formats 256 random bits as a token of 43 letters and digits, for cookies and links.
pub(crate) fn random_token(random: [u8; 32]) -> String {
    base62(&random, SECRET)
}

/// Returns true for a text of the form of such a token.
pub(crate) fn is_token(text: &str) -> bool {
    text.len() == SECRET && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Creates the last part of a ping URL: a random UUID (RFC 9562, version 4; 122 random bits), which clients may
/// validate.
pub(crate) fn ping_token(random: [u8; 16]) -> String {
    uuid::Builder::from_random_bytes(random).into_uuid().to_string()
}

/// Formats a big-endian number in base 62, padded with zeros to the width.
fn base62(bytes: &[u8], width: usize) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::with_capacity(width);
    for _ in 0..width {
        let mut rest = 0_u32;
        for byte in &mut number {
            let value = (rest << 8) | u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            rest = value % 62;
        }
        digits.push(ALPHABET.get(rest as usize).copied().map_or('0', char::from));
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_base_62() {
        assert_eq!(base62(&[0, 61], 3), "00z");
        assert_eq!(base62(&[0, 62], 3), "010");
        assert_eq!(base62(&[0xff; 4], 6), "4gfFC3");
        assert_ne!(base62(&[0xff; 32], 43).chars().next(), Some('0'));
    }

    #[test]
    fn a_key_parses_and_a_typo_fails_its_checksum() {
        let key = ApiKeyText::new([7; 32]);
        assert_eq!(key.reveal().len(), 53);
        assert_eq!(ApiKeyText::parse(key.reveal()), Some(key.clone()));
        for at in 0..key.reveal().len() {
            let mut slip: Vec<u8> = key.reveal().bytes().collect();
            slip[at] = if slip[at] == b'a' { b'b' } else { b'a' };
            assert_eq!(ApiKeyText::parse(std::str::from_utf8(&slip).unwrap()), None, "{at}");
        }
        for text in ["", "plx_", "plx_é", "Bearer"] {
            assert_eq!(ApiKeyText::parse(text), None);
        }
        assert!(!format!("{key:?}").contains(key.reveal()));
    }

    #[test]
    fn the_fault_of_an_invalid_key_is_explained() {
        let key = ApiKeyText::new([7; 32]);
        let key = key.reveal();
        let mut slip = key.to_owned();
        slip.replace_range(9..10, if key.as_bytes()[9] == b'a' { "b" } else { "a" });
        for (text, expected) in [
            (&key[..52], "cut off: it has 53 characters, and 52 were sent"),
            ("plx_", "cut off: it has 53 characters, and 4 were sent"),
            (&format!("{key}x"), "too long: it has 53 characters, and 54 were sent"),
            (&format!("\"{key}\""), "without quotes"),
            ("sk_live_abc", "keys begin with plx_"),
            (&slip, "mistyped: its checksum does not match"),
            (key, "is unknown: it was revoked"),
        ] {
            let explanation = ApiKeyText::explain(text);
            assert!(explanation.contains(expected), "{text}: {explanation}");
        }
    }

    #[test]
    fn ping_tokens_are_random_uuids() {
        assert_eq!(ping_token([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(ping_token([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
