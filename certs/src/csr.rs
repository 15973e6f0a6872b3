//! The agent's key, its certificate signing request, and the coordinator's validation of the request.

use std::fmt;

use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData, SubjectPublicKeyInfo,
};
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509CertificationRequest};

use crate::credentials::Credentials;
use crate::error::CertsError;

/// Maximum size of a signing request in bytes; regular ones have about 200.
pub const MAX_REQUEST: usize = 4_096;

/// An agent's private key (ECDSA P-256), created on its own host; its `Debug` hides it.
pub struct AgentKey(KeyPair);

impl AgentKey {
    /// Creates a new key.
    ///
    /// # Errors
    /// [`CertsError::Sign`] if the system returns no random bytes.
    pub fn generate() -> Result<Self, CertsError> {
        Ok(Self(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?))
    }

    /// Returns a signing request for this key (PKCS#10, DER) without a name: the coordinator decides names.
    ///
    /// # Errors
    /// [`CertsError::Sign`] if signing fails.
    pub fn request(&self) -> Result<Vec<u8>, CertsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        Ok(params.serialize_request(&self.0)?.der().to_vec())
    }

    /// Combines this key with the certificate issued for it.
    ///
    /// # Errors
    /// [`CertsError::Certificate`] if the certificate is for another key.
    pub fn with_certificate(&self, certificate: CertificateDer<'static>) -> Result<Credentials, CertsError> {
        let (_, parsed) =
            x509_parser::parse_x509_certificate(&certificate).map_err(|_| CertsError::Certificate("is not X.509"))?;
        if parsed.public_key().raw != self.0.subject_public_key_info() {
            return Err(CertsError::Certificate("is for another key"));
        }
        Credentials::new(vec![certificate], self.0.serialize_der())
    }
}

impl fmt::Debug for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentKey(..)")
    }
}

/// Returns the public key of a request whose signature proves that its sender has the private key.
pub(crate) fn verified_key(request: &[u8]) -> Result<SubjectPublicKeyInfo, CertsError> {
    if request.len() > MAX_REQUEST {
        return Err(CertsError::Request("is longer than 4096 bytes"));
    }
    let (rest, parsed) =
        X509CertificationRequest::from_der(request).map_err(|_| CertsError::Request("is not PKCS#10"))?;
    if !rest.is_empty() {
        return Err(CertsError::Request("has trailing bytes"));
    }
    let key = SubjectPublicKeyInfo::from_der(parsed.certification_request_info.subject_pki.raw)
        .map_err(|_| CertsError::Request("key is not ECDSA P-256"))?;
    if key.algorithm() != &PKCS_ECDSA_P256_SHA256 || key.der_bytes().len() != 65 {
        return Err(CertsError::Request("key is not ECDSA P-256"));
    }
    parsed.verify_signature().map_err(|_| CertsError::Request("is not signed by its own key"))?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_proves_its_key() {
        let key = AgentKey::generate().unwrap();
        let proven = verified_key(&key.request().unwrap()).unwrap();
        assert_eq!(proven.der_bytes(), key.0.der_bytes());
    }

    #[test]
    fn a_request_signed_by_another_key_is_refused() {
        let mut request = AgentKey::generate().unwrap().request().unwrap();
        let second = AgentKey::generate().unwrap();
        let start = request.windows(65).position(|part| part[0] == 4 && part.len() == 65 && part[1..3] != [0, 0]);
        assert!(start.is_some());
        let key_at = request.windows(2).position(|pair| pair == [0x00, 0x04]).unwrap() + 1;
        request[key_at..key_at + 65].copy_from_slice(second.0.der_bytes());
        assert!(matches!(verified_key(&request), Err(CertsError::Request("is not signed by its own key"))));
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let request = CertificateParams::default().serialize_request(&key).unwrap();
        assert!(matches!(verified_key(request.der()), Err(CertsError::Request("key is not ECDSA P-256"))));
    }

    #[test]
    fn garbage_cut_and_overlong_requests_are_refused() {
        let good = AgentKey::generate().unwrap().request().unwrap();
        assert!(verified_key(&[]).is_err());
        assert!(verified_key(&vec![0x30; 5_000]).is_err());
        for end in 0..good.len() {
            assert!(verified_key(&good[..end]).is_err(), "{end}");
        }
        let mut longer = good;
        longer.push(0);
        assert!(matches!(verified_key(&longer), Err(CertsError::Request("has trailing bytes"))));
    }
}
