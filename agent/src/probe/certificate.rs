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
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::time::Instant;
use x509_parser::parse_x509_certificate;

use super::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts, bad_target, micros},
    tls::{self, WebVerifier},
};

/// Maximum number of certificates that a server may send.
const MAX_CHAIN: usize = 10;
const DAY_S: i64 = 24 * 60 * 60;

/// Connects and performs a handshake; the latency includes both and name resolution.
pub(super) async fn run(check: &WireCertificateCheck, context: &ProbeContext) -> ProbeReport {
    let mut facts = CheckFacts::default();
    let started = Instant::now();
    let observation = handshake(check, context, &mut facts).await;
    let mut expires_ms = None;
    if let Ok(observation) = &observation {
        facts.duration = Some(started.elapsed());
        expires_ms = observation.expires_s.map(|seconds| seconds.saturating_mul(1000));
    }
    ProbeReport { expires_ms, ..facts.report(judge(check.warn_days, observation)) }
}

async fn handshake(
    check: &WireCertificateCheck,
    context: &ProbeContext,
    facts: &mut CheckFacts,
) -> Result<ChainObservation, CheckError> {
    let deadline = context.deadline();
    let host = Host::parse(&check.host).map_err(|error| bad_target(error.to_string()))?;
    if check.port == 0 {
        return Err(bad_target("the port must be 1 to 65535").into());
    }
    let recorder = Arc::new(RecordingVerifier { verifier: context.verifier().clone(), observation: Mutex::new(None) });
    let mut config = ClientConfig::builder_with_provider(context.crypto())
        .with_safe_default_protocol_versions()
        .map_err(|error| tls::tls_failure(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::<RecordingVerifier>::clone(&recorder))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    let admitted = context.admit(&host, check.port, deadline).await?;
    facts.record_resolution(&admitted);
    let connected = admitted.connect(deadline).await?;
    facts.record_connection(&connected);
    let started = Instant::now();
    let handshake = tls::handshake(connected, Arc::new(config), &host, deadline).await;
    let mut observation = recorder.observation.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (&mut observation, handshake) {
        (None, Err(error)) => return Err(error),
        // A server that ends the handshake for another reason (it demands a client certificate) has sent its
        // own.
        (Some(observation), Err(error)) if observation.verdict.is_ok() && !observation.has_key_proof => {
            observation.verdict = Err(error);
        }
        (Some(_), Ok(_) | Err(_)) | (None, Ok(_)) => {}
    }
    facts.phases.tls_us = Some(micros(started.elapsed()));
    observation
        .ok_or_else(|| WireFailure::TlsOther { detail: ShortText::new("the server sends no certificate") }.into())
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
    verifier: WebVerifier,
    observation: Mutex<Option<ChainObservation>>,
}

impl RecordingVerifier {
    fn record_proof(
        &self,
        result: Result<HandshakeSignatureValid, TlsError>,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        if let Some(observation) = self.observation.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            observation.has_key_proof = result.is_ok();
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
        let observation = ChainObservation {
            expires_s: expiry_of(leaf),
            now_s: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            verdict: result.as_ref().map(drop).map_err(fault),
            has_key_proof: false,
        };
        *self.observation.lock().unwrap_or_else(PoisonError::into_inner) = Some(observation);
        result
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.record_proof(self.verifier.verify_tls12_signature(message, leaf, signed))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.record_proof(self.verifier.verify_tls13_signature(message, leaf, signed))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

fn expiry_of(leaf: &CertificateDer<'_>) -> Option<i64> {
    let (_, leaf) = parse_x509_certificate(leaf).ok()?;
    Some(leaf.validity().not_after.timestamp())
}

fn fault(error: &TlsError) -> CheckError {
    match error {
        TlsError::General(detail) => WireFailure::TlsOther { detail: ShortText::new(detail) }.into(),
        _ => tls::explained_error(error),
    }
}

/// Judges the chain and the expiry. A bad chain fails with its own reason; a good one fails from `warn_days`
/// times 24 hours before its expiry, and so does one that this TLS library can't verify, since its expiry is
/// readable all the same.
fn judge(warn_days: u16, observation: Result<ChainObservation, CheckError>) -> WireOutcome {
    let observation = match observation {
        Ok(observation) => observation,
        Err(error) => return error.into(),
    };
    if let Err(CheckError::Target(failure)) = observation.verdict {
        return WireOutcome::Failed(failure);
    }
    let left_s = observation.expires_s.map(|ends_s| ends_s.saturating_sub(observation.now_s));
    match (left_s, observation.verdict) {
        (Some(left_s), _) if left_s < i64::from(warn_days) * DAY_S => {
            let days = u32::try_from(left_s / DAY_S).unwrap_or(0);
            WireOutcome::Failed(WireFailure::CertificateExpiring { days })
        }
        (_, Err(error)) => error.into(),
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

    fn observation(left_s: i64, verdict: Result<(), CheckError>) -> Result<ChainObservation, CheckError> {
        let now_s = 1_800_000_000;
        Ok(ChainObservation { expires_s: Some(now_s + left_s), now_s, verdict, has_key_proof: true })
    }

    #[test]
    fn the_warning_begins_at_exactly_warn_days() {
        assert_eq!(judge(14, observation(14 * DAY_S, Ok(()))), WireOutcome::Passed);
        let expiring = |days| WireOutcome::Failed(WireFailure::CertificateExpiring { days });
        assert_eq!(judge(14, observation(14 * DAY_S - 60, Ok(()))), expiring(13));
        assert_eq!(judge(14, observation(60, Ok(()))), expiring(0));
        assert_eq!(judge(0, observation(60, Ok(()))), WireOutcome::Passed);
    }

    #[test]
    fn a_bad_chain_is_reported_before_the_expiry() {
        let fault = WireFailure::TlsUnknownIssuer;
        assert_eq!(judge(14, observation(60, Err(fault.clone().into()))), WireOutcome::Failed(fault));
        assert_eq!(judge(14, Err(WireFailure::Refused.into())), WireOutcome::Failed(WireFailure::Refused));
    }

    #[test]
    fn an_unverifiable_chain_still_has_an_expiry() {
        let fault = WireOwnFault::unsupported_tls(ShortText::new("a 1024-bit RSA key"));
        let unsupported = || Err(CheckError::Own(fault.clone()));
        assert_eq!(judge(14, observation(30 * DAY_S, unsupported())), WireOutcome::Inconclusive(fault.clone()));
        let expiring = WireOutcome::Failed(WireFailure::CertificateExpiring { days: 1 });
        assert_eq!(judge(14, observation(DAY_S, unsupported())), expiring);
    }
}
