//! The installation's private certificate authority.

use std::fmt;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PublicKeyData, SerialNumber,
};
use rustls_pki_types::CertificateDer;
use sha2::{Digest, Sha256};

use crate::certificate_fields::{BACKDATE, CertificateSerial, Validity, offset_date_time};
use crate::error::CertsError;
use crate::files;
use crate::trust_roots::{TrustRoots, read_authority};

/// Validity of an authority in seconds: 20 years of 365 days.
pub const AUTHORITY_VALIDITY: i64 = 20 * 365 * 86_400;

/// A certificate authority: its certificate and the key that signs leaves (ECDSA P-256).
pub struct MeshAuthority {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    validity: Validity,
}

impl MeshAuthority {
    /// Creates an authority with a new key, valid from an hour before `now` for [`AUTHORITY_VALIDITY`].
    ///
    /// Two authorities never have the same name, so that both can be trusted at the same time.
    ///
    /// # Errors
    /// [`CertsError::Random`] without randomness, [`CertsError::Time`] for an out-of-range `now`.
    pub fn generate(now: i64) -> Result<Self, CertsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let serial = CertificateSerial::random()?;
        let validity =
            Validity { not_before: now.saturating_sub(BACKDATE), not_after: now.saturating_add(AUTHORITY_VALIDITY) };
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, format!("Parallax mesh authority {serial}"));
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        params.not_before = offset_date_time(validity.not_before)?;
        params.not_after = offset_date_time(validity.not_after)?;
        params.serial_number = Some(SerialNumber::from_slice(serial.as_bytes()));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key)?.der().clone();
        Ok(Self { certificate, key, validity })
    }

    /// Parses an authority from PEM text with its certificate and its key.
    ///
    /// # Errors
    /// [`CertsError::Pem`] or [`CertsError::Certificate`] if a part is missing or is not an authority,
    /// [`CertsError::KeyMismatch`] if the parts belong to two authorities.
    pub fn from_pem(text: &str) -> Result<Self, CertsError> {
        let certificate = files::parse_one_certificate(text)?;
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&files::parse_key(text)?.into(), &PKCS_ECDSA_P256_SHA256)?;
        let (validity, key_info) = read_authority(&certificate)?;
        if key_info != key.subject_public_key_info() {
            return Err(CertsError::KeyMismatch);
        }
        Ok(Self { certificate, key, validity })
    }

    /// Returns the certificate and the key as PEM text: a secret.
    #[must_use]
    pub fn to_pem(&self) -> String {
        let mut text = files::certificates_to_pem([&self.certificate]);
        text.push_str(&files::key_to_pem(self.key.serialized_der()));
        text
    }

    /// Reads the authority's file; if there is none, creates an authority and writes the file (mode 0600).
    ///
    /// Certificate and key are one file, written atomically: an interrupted start leaves all or nothing.
    ///
    /// # Errors
    /// The errors of [`files::read_secret`], [`Self::from_pem`] and [`Self::generate`].
    pub fn load_or_generate(path: &Path, now: i64) -> Result<Self, CertsError> {
        if let Some(text) = files::read_secret(path)? {
            return Self::from_pem(&text);
        }
        let authority = Self::generate(now)?;
        files::write_secret(path, &authority.to_pem())?;
        Ok(authority)
    }

    /// Returns the authority's certificate.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Returns the authority's validity period in unix seconds.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Returns the SHA-256 of the authority's SubjectPublicKeyInfo, as join tokens contain it.
    #[must_use]
    pub fn key_hash(&self) -> [u8; 32] {
        Sha256::digest(self.key.subject_public_key_info()).into()
    }

    /// Returns a trust store with this authority alone.
    ///
    /// # Errors
    /// [`CertsError::Certificate`], never for an authority created by this crate.
    pub fn roots(&self) -> Result<TrustRoots, CertsError> {
        TrustRoots::new(vec![self.certificate.clone()])
    }

    pub(crate) fn issuer(&self) -> Result<Issuer<'_, &KeyPair>, CertsError> {
        Ok(Issuer::from_ca_cert_der(&self.certificate, &self.key)?)
    }
}

impl fmt::Debug for MeshAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshAuthority").field("validity", &self.validity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust_roots::key_hash_of;

    const NOW: i64 = 1_790_000_000;

    #[test]
    fn an_authority_is_valid_for_over_ten_years_and_round_trips_as_pem() {
        let authority = MeshAuthority::generate(NOW).unwrap();
        assert!(authority.validity().contains(NOW - 3_600) && authority.validity().contains(NOW + 11 * 365 * 86_400));
        let read = MeshAuthority::from_pem(&authority.to_pem()).unwrap();
        assert_eq!(read.key_hash(), authority.key_hash());
        assert_eq!(read.validity(), authority.validity());
        assert_eq!(key_hash_of(authority.certificate()).unwrap(), authority.key_hash());
    }

    #[test]
    fn the_parts_of_two_authorities_are_refused() {
        let (first, second) = (MeshAuthority::generate(NOW).unwrap(), MeshAuthority::generate(NOW).unwrap());
        let mixed = files::certificates_to_pem([first.certificate()]) + &files::key_to_pem(second.key.serialized_der());
        assert!(matches!(MeshAuthority::from_pem(&mixed), Err(CertsError::KeyMismatch)));
    }

    #[test]
    fn a_second_start_reads_the_authority_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authority.pem");
        let first = MeshAuthority::load_or_generate(&path, NOW).unwrap();
        let second = MeshAuthority::load_or_generate(&path, NOW + 5).unwrap();
        assert_eq!(first.key_hash(), second.key_hash());
    }
}
