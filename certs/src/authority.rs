//! The installation's private certificate authority, and the set of authorities that one side trusts.

use std::fmt;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PublicKeyData, SerialNumber,
};
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::CertsError;
use crate::files;
use crate::issue::{BACKDATE, CertificateSerial, offset_date_time};

/// Validity of an authority in seconds: 20 years of 365 days.
pub const AUTHORITY_VALIDITY: i64 = 20 * 365 * 86_400;

/// A certificate authority: its certificate and the key that signs leaves (ECDSA P-256).
pub struct MeshAuthority {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    validity: Validity,
}

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
        let life =
            Validity { not_before: now.saturating_sub(BACKDATE), not_after: now.saturating_add(AUTHORITY_VALIDITY) };
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, format!("Parallax mesh authority {serial}"));
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        params.not_before = offset_date_time(life.not_before)?;
        params.not_after = offset_date_time(life.not_after)?;
        params.serial_number = Some(SerialNumber::from_slice(serial.as_bytes()));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key)?.der().clone();
        Ok(Self { certificate, key, validity: life })
    }

    /// Parses an authority from PEM text with its certificate and its key.
    ///
    /// # Errors
    /// [`CertsError::Pem`] or [`CertsError::Certificate`] if a part is missing or is not an authority,
    /// [`CertsError::KeyMismatch`] if the parts belong to two authorities.
    pub fn from_pem(text: &str) -> Result<Self, CertsError> {
        let certificate = files::parse_one_certificate(text)?;
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&files::parse_key(text)?.into(), &PKCS_ECDSA_P256_SHA256)?;
        let (life, key_info) = read_authority(&certificate)?;
        if key_info != key.subject_public_key_info() {
            return Err(CertsError::KeyMismatch);
        }
        Ok(Self { certificate, key, validity: life })
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
        let made = Self::generate(now)?;
        files::write_secret(path, &made.to_pem())?;
        Ok(made)
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
        let mut life = Validity { not_before: i64::MAX, not_after: i64::MIN };
        for certificate in &certificates {
            let (one, _) = read_authority(certificate)?;
            life.not_before = life.not_before.min(one.not_before);
            life.not_after = life.not_after.max(one.not_after);
        }
        Ok(Self { certificates, validity: life })
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
fn read_authority(certificate: &CertificateDer<'_>) -> Result<(Validity, Vec<u8>), CertsError> {
    let (rest, parsed) = X509Certificate::from_der(certificate).map_err(|_| CertsError::Certificate("is not X.509"))?;
    if !rest.is_empty() {
        return Err(CertsError::Certificate("has trailing bytes"));
    }
    if !parsed.is_ca() {
        return Err(CertsError::Certificate("is not an authority's"));
    }
    parsed.verify_signature(None).map_err(|_| CertsError::Certificate("is not signed by its own key"))?;
    let life = Validity {
        not_before: parsed.validity().not_before.timestamp(),
        not_after: parsed.validity().not_after.timestamp(),
    };
    Ok((life, parsed.public_key().raw.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000;

    #[test]
    fn an_authority_lives_longer_than_ten_years_and_survives_pem() {
        let made = MeshAuthority::generate(NOW).unwrap();
        assert!(made.validity().contains(NOW - 3_600) && made.validity().contains(NOW + 11 * 365 * 86_400));
        let read = MeshAuthority::from_pem(&made.to_pem()).unwrap();
        assert_eq!(read.key_hash(), made.key_hash());
        assert_eq!(read.validity(), made.validity());
        assert_eq!(key_hash_of(made.certificate()).unwrap(), made.key_hash());
    }

    #[test]
    fn the_parts_of_two_authorities_are_refused() {
        let (one, two) = (MeshAuthority::generate(NOW).unwrap(), MeshAuthority::generate(NOW).unwrap());
        let mixed = files::certificates_to_pem([one.certificate()]) + &files::key_to_pem(two.key.serialized_der());
        assert!(matches!(MeshAuthority::from_pem(&mixed), Err(CertsError::KeyMismatch)));
    }

    #[test]
    fn a_second_start_reads_what_the_first_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authority.pem");
        let first = MeshAuthority::load_or_generate(&path, NOW).unwrap();
        let second = MeshAuthority::load_or_generate(&path, NOW + 5).unwrap();
        assert_eq!(first.key_hash(), second.key_hash());
    }

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
