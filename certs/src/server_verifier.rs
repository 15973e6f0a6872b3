//! Verification of a coordinator by an agent: by the authorities it trusts, or by the one in a join token.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::client::verify_server_name;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, PeerIncompatible, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use subtle::ConstantTimeEq;

use crate::authority::{TrustRoots, Validity, key_hash_of};
use crate::error::CertsError;
use crate::identity::require_coordinator;
use crate::issue::COORDINATOR_NAME;

/// The coordinator's time as last received by an agent, in unix seconds; shared, and settable at any time.
#[derive(Debug)]
pub struct CoordinatorTime(AtomicI64);

impl CoordinatorTime {
    /// Starts with the time stored on disk, if any.
    #[must_use]
    pub fn new(last: Option<i64>) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(last.unwrap_or(i64::MIN))))
    }

    /// Sets the coordinator's time.
    pub fn set(&self, now: i64) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// Returns the last received time, if any.
    #[must_use]
    pub fn get(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&told| told != i64::MIN)
    }

    /// Returns the time for the validation of a certificate: the host's own if it is within the authorities'
    /// `life`, else the last received one, else the nearest end of that period, so that a host whose clock
    /// was never right can still join.
    #[must_use]
    pub fn validation_time(&self, own: i64, life: Validity) -> i64 {
        if life.contains(own) {
            return own;
        }
        self.get().unwrap_or_else(|| own.clamp(life.not_before, life.not_after))
    }
}

/// Verifies by the authorities that an agent trusts.
#[derive(Debug)]
pub(crate) struct RootsVerifier {
    pub(crate) roots: TrustRoots,
    /// Names of the trusted authorities, sent to the server.
    pub(crate) hints: Vec<DistinguishedName>,
    pub(crate) coordinator_time: Arc<CoordinatorTime>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

/// Verifies by the hash of an authority's public key; the server sends that authority's certificate.
#[derive(Debug)]
pub(crate) struct KeyHashVerifier {
    pub(crate) hash: [u8; 32],
    /// Names of the trusted authorities, sent to the server.
    pub(crate) hints: Vec<DistinguishedName>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

/// Finds, among the certificates after the server's leaf, the authority whose public key has this SHA-256.
///
/// # Errors
/// [`CertsError::Certificate`] if there is none: the server belongs to another installation.
pub fn find_authority(sent: &[CertificateDer<'_>], hash: &[u8; 32]) -> Result<TrustRoots, CertsError> {
    // A coordinator sends exactly one; more are not worth checking.
    for certificate in sent.iter().take(2) {
        if key_hash_of(certificate).is_ok_and(|found| bool::from(found.ct_eq(hash))) {
            return TrustRoots::new(vec![certificate.clone().into_owned()]);
        }
    }
    Err(CertsError::Certificate("is not from the authority in the join token"))
}

impl ServerCertVerifier for RootsVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _sent: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        verify_coordinator(leaf, &self.roots, &self.coordinator_time, now, self.algorithms)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _leaf: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Err(TlsError::PeerIncompatible(PeerIncompatible::Tls13RequiredForQuic))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, leaf, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        Some(&self.hints)
    }
}

impl ServerCertVerifier for KeyHashVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let roots = find_authority(sent, &self.hash)
            .map_err(|_| TlsError::InvalidCertificate(CertificateError::UnknownIssuer))?;
        verify_coordinator(leaf, &roots, &CoordinatorTime::new(None), now, self.algorithms)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _leaf: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Err(TlsError::PeerIncompatible(PeerIncompatible::Tls13RequiredForQuic))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, leaf, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        Some(&self.hints)
    }
}

/// Verifies chain, time, name and kind of a coordinator's leaf. Other certificates that the server sent are
/// ignored: authorities sign leaves directly.
fn verify_coordinator(
    leaf: &CertificateDer<'_>,
    roots: &TrustRoots,
    known: &CoordinatorTime,
    own: UnixTime,
    algorithms: WebPkiSupportedAlgorithms,
) -> Result<ServerCertVerified, TlsError> {
    let own = i64::try_from(own.as_secs()).unwrap_or(i64::MAX);
    let now = u64::try_from(known.validation_time(own, roots.validity())).unwrap_or(0);
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
    let store = roots.cert_store().map_err(|_| TlsError::InvalidCertificate(CertificateError::UnknownIssuer))?;
    let parsed = ParsedCertificate::try_from(leaf)?;
    verify_server_cert_signed_by_trust_anchor(&parsed, &store, &[], now, algorithms.all)?;
    let name = ServerName::try_from(COORDINATOR_NAME)
        .map_err(|_| TlsError::InvalidCertificate(CertificateError::NotValidForName))?;
    verify_server_name(&parsed, &name)?;
    require_coordinator(leaf)
        .map_err(|_| TlsError::InvalidCertificate(CertificateError::ApplicationVerificationFailure))?;
    Ok(ServerCertVerified::assertion())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Validity = Validity { not_before: 1_000, not_after: 2_000 };

    #[test]
    fn the_own_clock_rules_within_the_authoritys_life() {
        assert_eq!(CoordinatorTime::new(Some(1_900)).validation_time(1_500, LIFE), 1_500);
    }

    #[test]
    fn outside_of_it_the_coordinators_last_word_rules() {
        let known = CoordinatorTime::new(Some(1_900));
        assert_eq!(known.validation_time(0, LIFE), 1_900);
        known.set(1_950);
        assert_eq!(known.validation_time(9_999, LIFE), 1_950);
    }

    #[test]
    fn a_host_that_was_never_told_a_time_takes_the_nearest_end() {
        assert_eq!(CoordinatorTime::new(None).validation_time(0, LIFE), 1_000);
        assert_eq!(CoordinatorTime::new(None).validation_time(9_999, LIFE), 2_000);
    }
}
