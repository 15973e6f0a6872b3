//! Renewal of the agent's certificate and its trusted authorities: requested in time, accepted only as the
//! response to an own request, and saved to disk before the coordinator is notified.

use super::SessionStop;
use super::outgoing::send_frame;
use crate::context::AgentContext;
use crate::data_folder::{Membership, validity_of};
use crate::join::parse_roots;
use parallax_certs::certificate_fields::BACKDATE;
use parallax_certs::csr::AgentKey;
use parallax_certs::identity::AgentIdentity;
use parallax_protocol::message::{RenewedCertificate, ToCoordinator, TrustReport, TrustedAuthorities};
use rustls_pki_types::CertificateDer;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// Shortest and longest time between two checks of the certificate's age.
const CHECK_INTERVAL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Shortest and longest wait before a refused or unanswered renewal is requested again.
const RETRY_INTERVAL: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3_600));

/// Time over which renewals are spread after a change of authorities, which reaches every agent at once.
const SPREAD_MS: u64 = 1_000;

/// Requests a new certificate after two thirds of the present one's validity, or when the coordinator demands
/// it.
pub(super) async fn request_when_due(
    shared: &AgentContext,
    to_coordinator: mpsc::Sender<ToCoordinator>,
) -> Result<(), SessionStop> {
    // A response to an earlier connection's request never arrives.
    *shared.pending_key() = None;
    let boot = shared.queue().boot().0;
    let mut request_from = Instant::now();
    let mut wait = Duration::ZERO;
    loop {
        let seconds = certificate_age(shared).map_or(0, |present| present.seconds);
        let part = |share: i64, (shortest, longest): (Duration, Duration)| {
            Duration::from_secs((seconds / share).unsigned_abs()).clamp(shortest, longest)
        };
        let is_wanted = tokio::select! {
            () = sleep(wait) => Instant::now() >= request_from && is_due(shared, boot),
            () = shared.renewal_wanted.notified() => {
                sleep(Duration::from_millis(boot % SPREAD_MS)).await;
                shared.pending_key().is_none()
            }
        };
        wait = part(60, CHECK_INTERVAL);
        if is_wanted && let Some(csr_der) = request(shared) {
            request_from = Instant::now() + part(30, RETRY_INTERVAL);
            send_frame(&to_coordinator, ToCoordinator::Renew { csr_der }).await?;
        }
    }
}

/// Replaces the trusted authorities; returns the report of the agent's certificate state.
pub(super) fn replace_authorities(shared: &AgentContext, trusted: TrustedAuthorities) -> Option<ToCoordinator> {
    let stored = parse_roots(trusted.authorities_der).and_then(|roots| {
        let mut membership = shared.membership();
        if membership.roots != roots {
            shared.data_folder.store_roots(&roots)?;
            tracing::info!(authorities = roots.certificates().len(), "trusted authorities changed");
            membership.roots = roots;
        }
        Ok(())
    });
    if let Err(error) = stored {
        tracing::error!(%error, "the new authorities are unusable; the present ones stay");
        return None;
    }
    if trusted.renew {
        shared.renewal_wanted.notify_one();
    }
    trust_report(shared)
}

/// Accepts a new certificate, only as the response to an own request and for its key; returns the report of
/// the agent's certificate state.
pub(super) fn accept_renewal(shared: &AgentContext, renewed: RenewedCertificate) -> Option<ToCoordinator> {
    let Some(key) = shared.pending_key().take() else {
        tracing::warn!("ignored a certificate that was not requested");
        return None;
    };
    let stored = accept_certificate(shared, &key, renewed).and_then(|membership| {
        shared.data_folder.store_membership(&membership)?;
        *shared.membership() = membership;
        Ok(())
    });
    match stored {
        Ok(()) => {
            tracing::info!("certificate renewed");
            trust_report(shared)
        }
        Err(error) => {
            tracing::error!(%error, "the new certificate is unusable; the present one stays");
            None
        }
    }
}

/// The age of the present certificate, in unix seconds.
struct CertificateAge {
    issued: i64,
    seconds: i64,
}

fn certificate_age(shared: &AgentContext) -> Option<CertificateAge> {
    let validity = validity_of(&shared.membership().credentials).ok()?;
    let issued = validity.not_before.saturating_add(BACKDATE);
    Some(CertificateAge { issued, seconds: validity.not_after.saturating_sub(issued).max(0) })
}

/// Returns true after two thirds of the certificate's validity and a part of a twelfth that differs from host
/// to host.
fn is_due(shared: &AgentContext, boot: u64) -> bool {
    let jitter = i64::try_from(boot % 1_000).unwrap_or(0);
    certificate_age(shared).is_some_and(|CertificateAge { issued, seconds }| {
        let from = issued.saturating_add(seconds / 3 * 2).saturating_add(seconds / 12 * jitter / 1_000);
        shared.clock.coordinator_ms() / 1_000 >= from
    })
}

fn request(shared: &AgentContext) -> Option<Vec<u8>> {
    match AgentKey::generate().and_then(|key| Ok((key.request()?, key))) {
        Ok((csr_der, key)) => {
            *shared.pending_key() = Some(key);
            Some(csr_der)
        }
        Err(error) => {
            tracing::error!(%error, "could not create a key for a new certificate");
            None
        }
    }
}

fn trust_report(shared: &AgentContext) -> Option<ToCoordinator> {
    let membership = shared.membership();
    let serial = AgentIdentity::of_agent(membership.credentials.chain().first()?).ok()?.serial;
    let authorities = membership.roots.key_hashes().ok()?;
    Some(ToCoordinator::TrustReport(TrustReport { authorities, serial: serial.as_bytes().to_vec() }))
}

fn accept_certificate(
    shared: &AgentContext,
    key: &AgentKey,
    renewed: RenewedCertificate,
) -> Result<Membership, crate::error::AgentError> {
    let leaf = renewed.certificates_der.into_iter().next().map(CertificateDer::from);
    let leaf = leaf.ok_or(parallax_certs::CertsError::Certificate("is missing in the response"))?;
    let credentials = key.with_certificate(leaf)?;
    validity_of(&credentials)?;
    let roots = parse_roots(renewed.authorities_der)?;
    Ok(Membership { credentials, roots, record: shared.membership().record.clone() })
}
