//! Fields of the mesh's certificates: validity period, serial number and names.

use std::fmt;

use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;

use crate::error::CertsError;
use crate::random::fill_random;

/// The constant name in every coordinator's certificate; agents verify it whatever address they dial.
pub const COORDINATOR_NAME: &str = "coordinator.parallax.internal";

/// Prefix of the id in an agent's URI name.
pub(crate) const AGENT_PREFIX: &str = "spiffe://parallax/agent/";

/// Maximum length of an agent id in bytes.
pub const MAX_AGENT_ID: usize = 64;

/// Time by which a certificate's validity begins before its creation, in seconds: tolerance for clock skew.
pub const BACKDATE: i64 = 3_600;

/// Validity period of a certificate: first and last second, both inclusive, in unix seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// First valid second.
    pub not_before: i64,
    /// Last valid second.
    pub not_after: i64,
}

impl Validity {
    /// Returns true if `now` (unix seconds) lies within.
    #[must_use]
    pub fn contains(&self, now: i64) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }

    /// Returns the validity period of a parsed certificate.
    pub(crate) fn of(certificate: &X509Certificate<'_>) -> Self {
        let validity = certificate.validity();
        Self { not_before: validity.not_before.timestamp(), not_after: validity.not_after.timestamp() }
    }
}

/// A certificate's serial number: 16 bytes of which 126 bits are random, positive and of constant length in
/// DER (RFC 5280, 4.1.2.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateSerial([u8; 16]);

impl CertificateSerial {
    /// Creates a random serial.
    ///
    /// # Errors
    /// [`CertsError::Random`] if the system returns no random bytes.
    pub fn random() -> Result<Self, CertsError> {
        let mut bytes = [0; 16];
        fill_random(&mut bytes)?;
        if let Some(first) = bytes.first_mut() {
            *first = (*first & 0x3f) | 0x40;
        }
        Ok(Self(bytes))
    }

    /// Parses a serial from a certificate or a store.
    ///
    /// # Errors
    /// [`CertsError::Certificate`] unless it has exactly 16 bytes and is positive.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CertsError> {
        let bytes: [u8; 16] =
            bytes.try_into().map_err(|_| CertsError::Certificate("has a serial that is not 16 bytes long"))?;
        if bytes[0] & 0xc0 != 0x40 {
            return Err(CertsError::Certificate("has a serial that this authority never issues"));
        }
        Ok(Self(bytes))
    }

    /// Returns the 16 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for CertificateSerial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for CertificateSerial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Serial({self})")
    }
}

/// Returns the URI name of an agent.
///
/// # Errors
/// [`CertsError::AgentId`] unless `agent` is 1 to 64 ASCII letters, digits, `-` or `_`.
pub fn agent_uri(agent: &str) -> Result<String, CertsError> {
    let fits = (1..=MAX_AGENT_ID).contains(&agent.len())
        && agent.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if fits { Ok(format!("{AGENT_PREFIX}{agent}")) } else { Err(CertsError::AgentId) }
}

/// Converts `seconds` after the epoch for rcgen.
pub(crate) fn offset_date_time(seconds: i64) -> Result<OffsetDateTime, CertsError> {
    OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| CertsError::Time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serials_differ_and_are_read_back_whole() {
        let (first, second) = (CertificateSerial::random().unwrap(), CertificateSerial::random().unwrap());
        assert_ne!(first, second);
        assert_eq!(CertificateSerial::from_bytes(first.as_bytes()).unwrap(), first);
        assert!(CertificateSerial::from_bytes(&[0x40; 15]).is_err());
        assert!(CertificateSerial::from_bytes(&[0x80; 16]).is_err());
        assert_eq!(first.to_string().len(), 32);
    }
}
