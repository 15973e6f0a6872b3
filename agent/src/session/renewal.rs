//! The agent's certificate and whom it trusts: asked for in time, taken only as the answer to an own request, and on
//! the disk before the coordinator is told.

use super::Stop;
use super::control::tell;
use crate::home::{Membership, life_of};
use crate::join::roots_of;
use crate::shared::Shared;
use parallax_certs::csr::AgentKey;
use parallax_certs::identity::Identity;
use parallax_certs::issue::BACKDATE;
use parallax_protocol::message::{Authorities, Holds, Renewed, ToCoordinator};
use rustls_pki_types::CertificateDer;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// Longest and shortest time between two looks at the certificate's age.
const LOOK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A renewal that was not granted or not answered is asked for again after this time, at the earliest and at the latest.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3_600));

/// A change of authorities reaches every agent at once; their requests are spread over this time.
const SPREAD_MS: u64 = 1_000;

/// Asks for a new certificate when two thirds of the present one's life are over, or when told to.
pub(super) async fn watch(shared: &Shared, to_coordinator: mpsc::Sender<ToCoordinator>) -> Result<(), Stop> {
    // An answer to an earlier connection's request never comes.
    *shared.awaited() = None;
    let boot = shared.queue().boot().0;
    let mut ask_from = Instant::now();
    let mut look = Duration::ZERO;
    loop {
        let life = present(shared).map_or(0, |present| present.seconds);
        let part = |share: i64, (shortest, longest): (Duration, Duration)| {
            Duration::from_secs((life / share).unsigned_abs()).clamp(shortest, longest)
        };
        let is_wanted = tokio::select! {
            () = sleep(look) => Instant::now() >= ask_from && is_due(shared, boot),
            () = shared.renewal_wanted.notified() => {
                sleep(Duration::from_millis(boot % SPREAD_MS)).await;
                shared.awaited().is_none()
            }
        };
        look = part(60, LOOK);
        if is_wanted && let Some(csr_der) = request(shared) {
            ask_from = Instant::now() + part(30, ASK_AGAIN);
            tell(&to_coordinator, ToCoordinator::Renew { csr_der }).await?;
        }
    }
}

/// Takes in whom to trust; what the agent holds then is the answer.
pub(super) fn trust(shared: &Shared, told: Authorities) -> Option<ToCoordinator> {
    let kept = roots_of(told.authorities_der).and_then(|roots| {
        let mut membership = shared.membership();
        if membership.roots != roots {
            shared.home.keep_roots(&roots)?;
            tracing::info!(authorities = roots.certificates().len(), "trusting other authorities");
            membership.roots = roots;
        }
        Ok(())
    });
    if let Err(error) = kept {
        tracing::error!(%error, "the authorities cannot be taken; the present ones stay");
        return None;
    }
    if told.renew {
        shared.renewal_wanted.notify_one();
    }
    holds(shared)
}

/// Takes a new certificate, only as the answer to an own request and for its key; what the agent holds then is the
/// answer.
pub(super) fn renew(shared: &Shared, renewed: Renewed) -> Option<ToCoordinator> {
    let Some(key) = shared.awaited().take() else {
        tracing::warn!("a certificate came that was not asked for; it is not used");
        return None;
    };
    let kept = accept(shared, &key, renewed).and_then(|membership| {
        shared.home.keep(&membership)?;
        *shared.membership() = membership;
        Ok(())
    });
    match kept {
        Ok(()) => {
            tracing::info!("certificate renewed");
            holds(shared)
        }
        Err(error) => {
            tracing::error!(%error, "the new certificate cannot be used; the present one stays");
            None
        }
    }
}

/// The age of the present certificate, in unix seconds.
struct Present {
    issued: i64,
    seconds: i64,
}

fn present(shared: &Shared) -> Option<Present> {
    let life = life_of(&shared.membership().credentials).ok()?;
    let issued = life.not_before.saturating_add(BACKDATE);
    Some(Present { issued, seconds: life.not_after.saturating_sub(issued).max(0) })
}

/// Whether two thirds of the certificate's life are over, and a part of a twelfth that differs from host to host.
fn is_due(shared: &Shared, boot: u64) -> bool {
    let jitter = i64::try_from(boot % 1_000).unwrap_or(0);
    present(shared).is_some_and(|Present { issued, seconds }| {
        let from = issued.saturating_add(seconds / 3 * 2).saturating_add(seconds / 12 * jitter / 1_000);
        shared.clock.coordinator_ms() / 1_000 >= from
    })
}

fn request(shared: &Shared) -> Option<Vec<u8>> {
    match AgentKey::generate().and_then(|key| Ok((key.request()?, key))) {
        Ok((csr_der, key)) => {
            *shared.awaited() = Some(key);
            Some(csr_der)
        }
        Err(error) => {
            tracing::error!(%error, "no key for a new certificate");
            None
        }
    }
}

fn holds(shared: &Shared) -> Option<ToCoordinator> {
    let membership = shared.membership();
    let serial = Identity::of_agent(membership.credentials.chain().first()?).ok()?.serial;
    let authorities = membership.roots.key_hashes().ok()?;
    Some(ToCoordinator::Holds(Holds { authorities, serial: serial.as_bytes().to_vec() }))
}

fn accept(shared: &Shared, key: &AgentKey, renewed: Renewed) -> Result<Membership, crate::error::Error> {
    let leaf = renewed.certificates_der.into_iter().next().map(CertificateDer::from);
    let leaf = leaf.ok_or(parallax_certs::Error::Certificate("is missing in the answer"))?;
    let credentials = key.with_certificate(leaf)?;
    life_of(&credentials)?;
    let roots = roots_of(renewed.authorities_der)?;
    Ok(Membership { credentials, roots, record: shared.membership().record.clone() })
}
