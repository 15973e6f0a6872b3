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

use crate::certificate_fields::{COORDINATOR_NAME, Validity};
use crate::error::CertsError;
use crate::identity::require_coordinator;
use crate::trust_roots::{TrustRoots, key_hash_of};

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
        Some(self.0.load(Ordering::Relaxed)).filter(|&seconds| seconds != i64::MIN)
    }

    /// Returns the time for the validation of a certificate: the host's own if it is within the authorities'
    /// `validity`, else the last received one, else the nearest end of that period, so that a host whose clock
    /// was never right can still join.
    #[must_use]
    pub fn validation_time(&self, own: i64, validity: Validity) -> i64 {
        if validity.contains(own) {
            return own;
        }
        self.get().unwrap_or_else(|| own.clamp(validity.not_before, validity.not_after))
    }
}

/// Verifies a coordinator's certificate in the handshake.
#[derive(Debug)]
pub(crate) struct CoordinatorVerifier {
    pub(crate) trust: TrustSource,
    /// Names of the trusted authorities, sent to the server.
    pub(crate) hints: Vec<DistinguishedName>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

/// Source of the trusted authorities.
#[derive(Debug)]
pub(crate) enum TrustSource {
    /// The authorities that an enrolled agent trusts.
    Roots { roots: TrustRoots, coordinator_time: Arc<CoordinatorTime> },
    /// SHA-256 of an authority's public key, from a join token; the server sends that authority's certificate.
    KeyHash([u8; 32]),
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

impl ServerCertVerifier for CoordinatorVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        match &self.trust {
            TrustSource::Roots { roots, coordinator_time } => {
                verify_coordinator(leaf, roots, coordinator_time, now, self.algorithms)
            }
            TrustSource::KeyHash(hash) => {
                let roots = find_authority(sent, hash)
                    .map_err(|_| TlsError::InvalidCertificate(CertificateError::UnknownIssuer))?;
                verify_coordinator(leaf, &roots, &CoordinatorTime::new(None), now, self.algorithms)
            }
        }
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
    coordinator_time: &CoordinatorTime,
    own: UnixTime,
    algorithms: WebPkiSupportedAlgorithms,
) -> Result<ServerCertVerified, TlsError> {
    let own = i64::try_from(own.as_secs()).unwrap_or(i64::MAX);
    let now = u64::try_from(coordinator_time.validation_time(own, roots.validity())).unwrap_or(0);
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

    const VALIDITY: Validity = Validity { not_before: 1_000, not_after: 2_000 };

    #[test]
    fn the_hosts_clock_is_used_within_the_authoritys_validity() {
        assert_eq!(CoordinatorTime::new(Some(1_900)).validation_time(1_500, VALIDITY), 1_500);
    }

    #[test]
    fn outside_of_it_the_coordinators_last_time_is_used() {
        let coordinator_time = CoordinatorTime::new(Some(1_900));
        assert_eq!(coordinator_time.validation_time(0, VALIDITY), 1_900);
        coordinator_time.set(1_950);
        assert_eq!(coordinator_time.validation_time(9_999, VALIDITY), 1_950);
    }

    #[test]
    fn without_a_received_time_the_nearest_end_is_used() {
        assert_eq!(CoordinatorTime::new(None).validation_time(0, VALIDITY), 1_000);
        assert_eq!(CoordinatorTime::new(None).validation_time(9_999, VALIDITY), 2_000);
    }
}
