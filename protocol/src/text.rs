//! Length-limited strings that decoding enforces, and secrets that never appear in logs.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// A text of at most 200 bytes: a vendor's word, a DNS answer, the tail of an error.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ShortText(String);

impl ShortText {
    /// Maximum length in bytes.
    pub const MAX: usize = 200;

    /// Truncates a text at a character boundary if it is too long; control characters become spaces.
    pub fn new(text: &str) -> Self {
        let mut short = String::new();
        for c in text.chars() {
            let c = if c.is_control() { ' ' } else { c };
            if short.len() + c.len_utf8() > Self::MAX {
                break;
            }
            short.push(c);
        }
        Self(short)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ShortText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        if text.len() > Self::MAX {
            return Err(serde::de::Error::custom("text too long"));
        }
        Ok(Self::new(&text))
    }
}

/// A secret of a customer or operator; `Debug` prints only its length.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret itself. Call it only where the value is used.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_truncated_at_a_character() {
        let detail = ShortText::new(&"ä".repeat(150));
        assert_eq!(detail.as_str().len(), 200);
        assert_eq!(ShortText::new("a\r\nb").as_str(), "a  b");
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", SecretText::new("hunter2")), "Secret(7 bytes)");
    }

    #[test]
    fn an_over_long_text_does_not_decode() {
        let bytes = postcard::to_allocvec(&"x".repeat(201)).unwrap();
        assert!(postcard::from_bytes::<ShortText>(&bytes).is_err());
    }
}
