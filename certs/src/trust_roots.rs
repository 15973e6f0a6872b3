//! The set of authorities that one side trusts.

use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::certificate_fields::Validity;
use crate::error::CertsError;
use crate::files;

/// The authorities that one side trusts: one, or two during a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRoots {
    certificates: Vec<CertificateDer<'static>>,
    validity: Validity,
}

impl TrustRoots {
    /// Trusts the given authorities.
    ///
    /// # Errors
    /// [`CertsError::TooManyRoots`] unless there are one or two, [`CertsError::Certificate`] if one is not an
    /// authority.
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Self, CertsError> {
        if certificates.is_empty() || certificates.len() > 2 {
            return Err(CertsError::TooManyRoots(certificates.len()));
        }
        let mut validity = Validity { not_before: i64::MAX, not_after: i64::MIN };
        for certificate in &certificates {
            let (authority, _) = read_authority(certificate)?;
            validity.not_before = validity.not_before.min(authority.not_before);
            validity.not_after = validity.not_after.max(authority.not_after);
        }
        Ok(Self { certificates, validity })
    }

    /// Parses the authorities' certificates from PEM text.
    ///
    /// # Errors
    /// [`CertsError::Pem`] if it is not PEM text, and those of [`Self::new`].
    pub fn from_pem(text: &str) -> Result<Self, CertsError> {
        Self::new(files::parse_certificates(text)?)
    }

    /// Returns the certificates as PEM text; not secret.
    #[must_use]
    pub fn to_pem(&self) -> String {
        files::certificates_to_pem(&self.certificates)
    }

    /// Returns the certificates, in the order given.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// Returns the period from the earliest start to the latest end of the authorities' validity.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Returns the SHA-256 of each authority's SubjectPublicKeyInfo, in the order given.
    ///
    /// # Errors
    /// [`CertsError::Certificate`], never for certificates that [`Self::new`] accepted.
    pub fn key_hashes(&self) -> Result<Vec<[u8; 32]>, CertsError> {
        self.certificates.iter().map(key_hash_of).collect()
    }

    /// Returns the [`key_hash_of`] the authority that a leaf names as its issuer; `None` if it is not one of
    /// these. The leaf must already be verified.
    #[must_use]
    pub fn issuer_of(&self, leaf: &CertificateDer<'_>) -> Option<[u8; 32]> {
        let (_, leaf) = X509Certificate::from_der(leaf).ok()?;
        let issued = |certificate: &&CertificateDer<'static>| {
            X509Certificate::from_der(certificate)
                .is_ok_and(|(_, authority)| authority.subject().as_raw() == leaf.issuer().as_raw())
        };
        self.certificates.iter().find(issued).and_then(|certificate| key_hash_of(certificate).ok())
    }

    /// Returns the trust anchors for rustls.
    ///
    /// # Errors
    /// [`CertsError::Tls`], never for certificates that [`Self::new`] accepted.
    pub fn cert_store(&self) -> Result<RootCertStore, CertsError> {
        let mut store = RootCertStore::empty();
        for certificate in &self.certificates {
            store.add(certificate.clone())?;
        }
        Ok(store)
    }
}

/// Returns the SHA-256 of the SubjectPublicKeyInfo of an authority's certificate after verifying its
/// self-signature: then the authority vouches for all its contents, including its validity period.
///
/// # Errors
/// [`CertsError::Certificate`] if it is not a self-signed authority.
pub fn key_hash_of(certificate: &CertificateDer<'_>) -> Result<[u8; 32], CertsError> {
    let (_, key_info) = read_authority(certificate)?;
    Ok(Sha256::digest(key_info).into())
}

/// Returns the validity period and SubjectPublicKeyInfo of a self-signed authority certificate.
pub(crate) fn read_authority(certificate: &CertificateDer<'_>) -> Result<(Validity, Vec<u8>), CertsError> {
    let (rest, parsed) = X509Certificate::from_der(certificate).map_err(|_| CertsError::Certificate("is not X.509"))?;
    if !rest.is_empty() {
        return Err(CertsError::Certificate("has trailing bytes"));
    }
    if !parsed.is_ca() {
        return Err(CertsError::Certificate("is not an authority's"));
    }
    parsed.verify_signature(None).map_err(|_| CertsError::Certificate("is not signed by its own key"))?;
    Ok((Validity::of(&parsed), parsed.public_key().raw.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::MeshAuthority;

    const NOW: i64 = 1_790_000_000;

    #[test]
    fn one_or_two_authorities_can_be_trusted_but_not_none_or_three() {
        let all: Vec<_> = (0..3).map(|_| MeshAuthority::generate(NOW).unwrap().certificate().clone()).collect();
        assert!(matches!(TrustRoots::new(Vec::new()), Err(CertsError::TooManyRoots(0))));
        assert!(matches!(TrustRoots::new(all.clone()), Err(CertsError::TooManyRoots(3))));
        let two = TrustRoots::new(all[..2].to_vec()).unwrap();
        assert_eq!(TrustRoots::from_pem(&two.to_pem()).unwrap(), two);
        assert_eq!(two.cert_store().unwrap().len(), 2);
    }
}
