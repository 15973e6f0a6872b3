//! A certificate chain with its private key, parsed from PEM and checked to match.

use std::fmt;
use std::sync::Arc;

use parallax_core::time::{SECOND, Timestamp};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Limit of certificates in a chain.
const MAX_CHAIN: usize = 10;

/// Error in a certificate or its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The certificate chain is invalid.
    #[error("the certificate {0}")]
    Certificate(String),
    /// The key is invalid.
    #[error("the key {0}")]
    Key(String),
    /// The key is not the key of the certificate.
    #[error("certificate and key do not match: {0}")]
    Mismatch(String),
}

/// A certificate chain with its private key.
#[derive(Clone)]
pub struct CertificateAndKey {
    key: Arc<CertifiedKey>,
    /// Start of its validity.
    pub not_before: Timestamp,
    /// End of its validity.
    pub not_after: Timestamp,
}

impl CertificateAndKey {
    /// Parses a certificate chain (leaf first) and its key.
    ///
    /// # Errors
    /// [`CertificateError`] if the text is not PEM, there are more than ten certificates, or the key does not match.
    pub fn read(certificates: &str, key: &str) -> Result<Self, CertificateError> {
        let invalid = |error: &dyn fmt::Display| CertificateError::Certificate(format!("can't be read: {error}"));
        let chain = CertificateDer::pem_slice_iter(certificates.as_bytes())
            .take(MAX_CHAIN + 1)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(&error))?;
        let Some(leaf) = chain.first().filter(|_| chain.len() <= MAX_CHAIN) else {
            return Err(CertificateError::Certificate(format!("file must contain 1 to {MAX_CHAIN} certificates")));
        };
        let (_, parsed) = X509Certificate::from_der(leaf).map_err(|error| invalid(&error))?;
        let timestamp = |at: i64| Timestamp::from_millis(at.saturating_mul(SECOND));
        let validity = parsed.validity();
        let (not_before, not_after) =
            (timestamp(validity.not_before.timestamp()), timestamp(validity.not_after.timestamp()));
        // Must parse, or it could not be matched with a host name later.
        ParsedCertificate::try_from(leaf).map_err(|error| invalid(&error))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|error| CertificateError::Key(format!("can't be read: {error}")))?;
        let provider = rustls::crypto::ring::default_provider();
        let key = CertifiedKey::from_der(chain, key, &provider)
            .map_err(|error| CertificateError::Mismatch(error.to_string()))?;
        Ok(Self { key: Arc::new(key), not_before, not_after })
    }

    /// Returns true if the certificate is valid for a host, by its subject alternative names (RFC 6125, section 6.4).
    pub fn covers(&self, host: &str) -> bool {
        let parsed = self.key.end_entity_cert().ok().map(ParsedCertificate::try_from);
        match (parsed, ServerName::try_from(host)) {
            (Some(Ok(parsed)), Ok(name)) => verify_server_name(&parsed, &name).is_ok(),
            _ => false,
        }
    }

    /// Returns true if both come from the same read.
    pub(super) fn is_same_load(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.key, &other.key)
    }

    /// The chain and key as rustls needs them.
    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}

impl fmt::Debug for CertificateAndKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pair({} to {})", self.not_before, self.not_after)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    /// Creates a self-signed certificate, valid from 2020 until the given year, and its key.
    pub(crate) fn pem(names: &[&str], until: i32) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[test]
    fn a_certificate_covers_its_names_and_no_others() {
        let (certificate, key) = pem(&["status.example", "*.pages.example"], 2090);
        let certificate_and_key = CertificateAndKey::read(&certificate, &key).unwrap();
        assert!(certificate_and_key.covers("status.example") && certificate_and_key.covers("shop.pages.example"));
        for other in ["example", "pages.example", "a.b.pages.example", "status.example.org", ""] {
            assert!(!certificate_and_key.covers(other), "{other}");
        }
        assert_eq!(certificate_and_key.not_after, Timestamp::from_millis(3_786_912_000_000));
    }

    #[test]
    fn a_certificate_without_its_own_key_is_refused() {
        let (certificate, key) = pem(&["a.example"], 2090);
        let (_, other) = pem(&["a.example"], 2090);
        assert!(matches!(CertificateAndKey::read(&certificate, &other), Err(CertificateError::Mismatch(_))));
        assert!(matches!(CertificateAndKey::read("", &key), Err(CertificateError::Certificate(_))));
        assert!(matches!(
            CertificateAndKey::read(&certificate.repeat(11), &key),
            Err(CertificateError::Certificate(_))
        ));
        assert!(matches!(CertificateAndKey::read(&key, &key), Err(CertificateError::Certificate(_))));
        assert!(matches!(CertificateAndKey::read(&certificate, "x"), Err(CertificateError::Key(_))));
    }
}
