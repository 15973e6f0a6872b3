//! Enrolment: creates a key on this host and exchanges a join token for a certificate.

use crate::clock::AgentClock;
use crate::config::{AgentConfig, parse_coordinator_address};
use crate::connection::{CoordinatorConnection, close_reason, dial};
use crate::data_folder::{DataFolder, IdentityRecord, Membership};
use crate::error::AgentError;
use crate::wire::{FrameStreamReader, StreamRead, send};
use parallax_certs::csr::AgentKey;
use parallax_certs::tls;
use parallax_certs::token::JoinToken;
use parallax_certs::trust_roots::TrustRoots;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_JOIN_FRAME;
use parallax_protocol::join::{Enrolment, JoinRequest, JoinResponse};
use parallax_protocol::text::SecretText;
use parallax_protocol::version::JOIN_V1;
use rustls_pki_types::CertificateDer;
use std::time::Duration;

/// Time limit for the coordinator's response to a join.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Enrols this host with `token` and stores its identity in the data folder. The coordinator is verified
/// against the authority in the token before anything is sent; on any error nothing is stored.
///
/// # Errors
/// [`AgentError::AlreadyJoined`], [`AgentError::Setting`] for an invalid token, [`AgentError::Refused`] with the
/// coordinator's reason, [`AgentError::Unreachable`].
pub async fn join(config: &AgentConfig, coordinator: &str, token: &str) -> Result<IdentityRecord, AgentError> {
    let setting = |field: &str, rule: String| AgentError::Setting { field: field.to_owned(), rule };
    let coordinator = parse_coordinator_address(coordinator).map_err(|rule| setting("--coordinator", rule))?;
    let token: JoinToken =
        token.trim().parse().map_err(|error: parallax_certs::CertsError| setting("--token", error.to_string()))?;
    let home = DataFolder::open(&config.data)?;
    let clock = AgentClock::new(0);
    // An expired certificate is worthless, so it may be replaced.
    let is_over = |membership: &Membership| {
        crate::data_folder::validity_of(&membership.credentials)
            .is_ok_and(|life| clock.wall_ms() / 1000 > life.not_after)
    };
    if home.is_member() && !home.membership().is_ok_and(|membership| is_over(&membership)) {
        return Err(AgentError::AlreadyJoined(config.data.clone()));
    }
    let key = AgentKey::generate()?;
    let tls = tls::join_config(token.authority, &[JOIN_V1], wall_clock(&clock))?;
    let link = dial(&coordinator, config.source, tls, |_| {}).await?;
    let request = JoinRequest { token: SecretText::new(token.expose()), csr_der: key.request()? };
    let response = tokio::time::timeout(RESPONSE_TIMEOUT, send_request(&link, &request)).await;
    link.close(CloseReason::Done).await;
    let unreachable =
        |reason: &str| AgentError::Unreachable { address: coordinator.clone(), reason: reason.to_owned() };
    let answer = response.map_err(|_| unreachable("no answer to the join"))??;
    let joined = match answer {
        JoinResponse::Enrolled(joined) => joined,
        JoinResponse::Refused { reason } => return Err(AgentError::Refused(reason)),
    };
    let membership = accept_response(&key, &token, joined, coordinator, &clock)?;
    home.store_membership(&membership)?;
    Ok(membership.record)
}

/// Returns the host's wall clock in unix seconds, for rustls.
pub(crate) fn wall_clock(clock: &AgentClock) -> std::sync::Arc<dyn rustls::time_provider::TimeProvider> {
    let clock = clock.clone();
    tls::clock(move || clock.wall_ms() / 1000)
}

/// Parses one or two authorities from DER.
pub(crate) fn parse_roots(authorities_der: Vec<Vec<u8>>) -> Result<TrustRoots, AgentError> {
    Ok(TrustRoots::new(authorities_der.into_iter().map(CertificateDer::from).collect())?)
}

async fn send_request(link: &CoordinatorConnection, request: &JoinRequest) -> Result<JoinResponse, AgentError> {
    let lost = |error: quinn::ConnectionError| match close_reason(&error) {
        Some(reason) => AgentError::Refused(reason),
        None => {
            AgentError::Unreachable { address: link.connection.remote_address().to_string(), reason: error.to_string() }
        }
    };
    let (mut sending, receiving) = link.connection.open_bi().await.map_err(lost)?;
    let sent = send(&mut sending, request, MAX_JOIN_FRAME).await;
    let finished = sending.finish();
    let mut reader = FrameStreamReader::new(receiving, MAX_JOIN_FRAME);
    match reader.next::<JoinResponse>().await {
        Ok(StreamRead::Value(answer)) => Ok(answer),
        Ok(StreamRead::End) | Err(crate::wire::FrameStreamError::Closed) => {
            // If the coordinator closed instead of responding, its reason is more informative than the
            // stream's end.
            let closed = tokio::time::timeout(Duration::from_secs(1), link.connection.closed()).await;
            let reason = closed.ok().as_ref().and_then(close_reason);
            tracing::debug!(sent = sent.is_ok(), finished = finished.is_ok(), "join ended without an answer");
            Err(AgentError::Refused(reason.unwrap_or(CloseReason::Internal)))
        }
        Err(crate::wire::FrameStreamError::Protocol(error)) => Err(error.into()),
    }
}

/// Accepts a response only if it is for this host's key and from the authority in the token.
fn accept_response(
    key: &AgentKey,
    token: &JoinToken,
    joined: Enrolment,
    coordinator: String,
    clock: &AgentClock,
) -> Result<Membership, AgentError> {
    let leaf = joined.certificates_der.into_iter().next().map(CertificateDer::from);
    let leaf = leaf.ok_or(parallax_certs::CertsError::Certificate("is missing in the response"))?;
    let credentials = key.with_certificate(leaf)?;
    let sent: Vec<CertificateDer<'static>> = joined.authorities_der.iter().cloned().map(CertificateDer::from).collect();
    parallax_certs::server_verifier::find_authority(&sent, &token.authority)?;
    let record = IdentityRecord {
        agent: joined.agent.to_string(),
        name: joined.name,
        region: joined.region.name().to_owned(),
        network: joined.network,
        mesh: joined.mesh,
        coordinator,
        coordinator_ms: joined.coordinator_ms,
        skew_ms: clock.wall_ms().saturating_sub(joined.coordinator_ms),
        seen_from: Vec::new(),
        coordinator_addresses: Vec::new(),
        seen_from_ms: Vec::new(),
        coordinator_addresses_ms: Vec::new(),
    };
    Ok(Membership { credentials, roots: parse_roots(joined.authorities_der)?, record })
}
