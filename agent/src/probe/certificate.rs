//! The certificate probe: a TLS handshake as a browser makes it, and the expiry of the server's leaf
//! certificate.
//!
//! The chain is verified by the same rules as in an https check: paths are built from the certificates sent
//! and the roots, so their order and superfluous ones do not matter. The leaf is recorded before the verdict,
//! so its expiry is known even if the chain is bad.

use std::sync::{Arc, Mutex, PoisonError};

use parallax_dial::Host;
use parallax_protocol::{
    check::WireCertificateCheck,
    result::{ProbeReport, WireFailure, WireOutcome},
    text::ShortText,
};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme,
    client::{
        Resumption, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::time::Instant;
use x509_parser::parse_x509_certificate;

use super::{
    facts::{CheckError, CheckFacts, bad_target, micros},
    net::ProbeContext,
    tls,
};

/// Maximum number of certificates that a server may send.
const MAX_CHAIN: usize = 10;
const DAY_S: i64 = 24 * 60 * 60;

/// Connects and performs a handshake; the latency includes both and name resolution.
pub(super) async fn run(check: &WireCertificateCheck, net: &ProbeContext) -> ProbeReport {
    let mut facts = CheckFacts::default();
    let started = Instant::now();
    let seen = handshake(check, net, &mut facts).await;
    let mut expires_ms = None;
    if let Ok(seen) = &seen {
        facts.duration = Some(started.elapsed());
        expires_ms = seen.expires_s.map(|seconds| seconds.saturating_mul(1000));
    }
    ProbeReport { expires_ms, ..facts.report(judge(check.warn_days, seen)) }
}

async fn handshake(
    check: &WireCertificateCheck,
    net: &ProbeContext,
    facts: &mut CheckFacts,
) -> Result<ChainObservation, CheckError> {
    let deadline = net.deadline();
    let host = Host::parse(&check.host).map_err(|error| bad_target(error.to_string()))?;
    if check.port == 0 {
        return Err(bad_target("the port must be 1 to 65535").into());
    }
    let (crypto, judge) = net.trust();
    let witness = Arc::new(RecordingVerifier { verifier: judge, observation: Mutex::new(None) });
    let mut config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .map_err(|error| tls::tls_failure(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::<RecordingVerifier>::clone(&witness))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    let admitted = net.admit(&host, check.port, deadline).await?;
    facts.record_resolution(&admitted);
    let connected = admitted.connect(deadline).await?;
    facts.record_connection(&connected);
    let started = Instant::now();
    let shaken = tls::handshake(connected, Arc::new(config), &host, deadline).await;
    let mut seen = witness.observation.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (&mut seen, shaken) {
        (None, Err(trouble)) => return Err(trouble),
        // A server that ends the handshake for another reason (it demands a client certificate) has sent its
        // own.
        (Some(seen), Err(trouble)) if seen.verdict.is_ok() && !seen.has_key_proof => {
            seen.verdict = Err(trouble);
        }
        (Some(_), Ok(_) | Err(_)) | (None, Ok(_)) => {}
    }
    facts.phases.tls_us = Some(micros(started.elapsed()));
    seen.ok_or_else(|| WireFailure::TlsOther { detail: ShortText::new("the server sends no certificate") }.into())
}

/// Certificate data of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChainObservation {
    /// Expiry of the leaf, epoch seconds; `None` if it can't be read.
    expires_s: Option<i64>,
    /// Time of the check, epoch seconds.
    now_s: i64,
    /// Verdict on the chain.
    verdict: Result<(), CheckError>,
    /// True if the server has proven that it has the leaf's key.
    has_key_proof: bool,
}

/// Records the certificates that the verifier receives, and its verdict.
#[derive(Debug)]
struct RecordingVerifier {
    verifier: Arc<WebPkiServerVerifier>,
    observation: Mutex<Option<ChainObservation>>,
}

impl RecordingVerifier {
    fn record_proof(
        &self,
        result: Result<HandshakeSignatureValid, TlsError>,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        if let Some(seen) = self.observation.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            seen.has_key_proof = result.is_ok();
        }
        result
    }
}

impl ServerCertVerifier for RecordingVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let result = if others.len() < MAX_CHAIN {
            self.verifier.verify_server_cert(leaf, others, name, ocsp, now)
        } else {
            Err(TlsError::General("the chain is too long".to_owned()))
        };
        let result = result.map_err(|error| tls::chain(error, leaf, others, name, now));
        let seen = ChainObservation {
            expires_s: expiry_of(leaf),
            now_s: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            verdict: result.as_ref().map(drop).map_err(|error| fault(error, leaf)),
            has_key_proof: false,
        };
        *self.observation.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        result
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let proof = self.verifier.verify_tls12_signature(message, leaf, signed);
        self.record_proof(proof.map_err(|error| tls::signature(error, leaf)))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let proof = self.verifier.verify_tls13_signature(message, leaf, signed);
        self.record_proof(proof.map_err(|error| tls::signature(error, leaf)))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

fn expiry_of(leaf: &CertificateDer<'_>) -> Option<i64> {
    let (_, leaf) = parse_x509_certificate(leaf).ok()?;
    Some(leaf.validity().not_after.timestamp())
}

fn fault(error: &TlsError, leaf: &CertificateDer<'_>) -> CheckError {
    match error {
        TlsError::General(detail) => WireFailure::TlsOther { detail: ShortText::new(detail) }.into(),
        _ => match tls::explained_error(error) {
            // A self-signed certificate is often an authority too, whose error would hide the one that
            // visitors see.
            CheckError::Target(WireFailure::TlsOther { .. }) if is_self_signed(leaf) => {
                WireFailure::TlsUnknownIssuer.into()
            }
            trouble => trouble,
        },
    }
}

/// Returns true if a certificate names itself as its issuer.
pub(super) fn is_self_signed(leaf: &CertificateDer<'_>) -> bool {
    parse_x509_certificate(leaf).is_ok_and(|(_, leaf)| leaf.issuer() == leaf.subject())
}

/// Judges the chain and the expiry. A bad chain fails with its own reason; a good one fails from `warn_days`
/// times 24 hours before its expiry, and so does one that this TLS library can't verify, since its expiry is
/// readable all the same.
fn judge(warn_days: u16, seen: Result<ChainObservation, CheckError>) -> WireOutcome {
    let seen = match seen {
        Ok(seen) => seen,
        Err(trouble) => return trouble.into(),
    };
    if let Err(CheckError::Target(failure)) = seen.verdict {
        return WireOutcome::Failed(failure);
    }
    let left_s = seen.expires_s.map(|ends_s| ends_s.saturating_sub(seen.now_s));
    match (left_s, seen.verdict) {
        (Some(left_s), _) if left_s < i64::from(warn_days) * DAY_S => {
            let days = u32::try_from(left_s / DAY_S).unwrap_or(0);
            WireOutcome::Failed(WireFailure::CertificateExpiring { days })
        }
        (_, Err(trouble)) => trouble.into(),
        (Some(_), Ok(())) => WireOutcome::Passed,
        (None, Ok(())) => {
            let detail = ShortText::new("the certificate can't be read");
            WireOutcome::Failed(WireFailure::TlsOther { detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::result::WireOwnFault;

    fn seen(left_s: i64, verdict: Result<(), CheckError>) -> Result<ChainObservation, CheckError> {
        let now_s = 1_800_000_000;
        Ok(ChainObservation { expires_s: Some(now_s + left_s), now_s, verdict, has_key_proof: true })
    }

    #[test]
    fn the_warning_begins_to_the_minute() {
        assert_eq!(judge(14, seen(14 * DAY_S, Ok(()))), WireOutcome::Passed);
        let expiring = |days| WireOutcome::Failed(WireFailure::CertificateExpiring { days });
        assert_eq!(judge(14, seen(14 * DAY_S - 60, Ok(()))), expiring(13));
        assert_eq!(judge(14, seen(60, Ok(()))), expiring(0));
        assert_eq!(judge(0, seen(60, Ok(()))), WireOutcome::Passed);
    }

    #[test]
    fn a_bad_chain_speaks_before_the_expiry() {
        let fault = WireFailure::TlsUnknownIssuer;
        assert_eq!(judge(14, seen(60, Err(fault.clone().into()))), WireOutcome::Failed(fault));
        assert_eq!(judge(14, Err(WireFailure::Refused.into())), WireOutcome::Failed(WireFailure::Refused));
    }

    #[test]
    fn a_chain_that_can_not_be_reckoned_with_still_has_an_end() {
        let fault = WireOwnFault::unsupported_tls(ShortText::new("a 1024-bit RSA key"));
        let lacking = || Err(CheckError::Own(fault.clone()));
        assert_eq!(judge(14, seen(30 * DAY_S, lacking())), WireOutcome::Inconclusive(fault.clone()));
        let expiring = WireOutcome::Failed(WireFailure::CertificateExpiring { days: 1 });
        assert_eq!(judge(14, seen(DAY_S, lacking())), expiring);
    }
}
