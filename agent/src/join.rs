//! Enrolment: creates a key on this host and exchanges a join token for a certificate.

use crate::clock::Clock;
use crate::config::{Config, checked_coordinator};
use crate::error::Error;
use crate::home::{Home, Membership, Record};
use crate::link::{Link, close_reason, dial};
use crate::wire::{Reader, Received, send};
use parallax_certs::authority::Roots;
use parallax_certs::csr::AgentKey;
use parallax_certs::tls;
use parallax_certs::token::Token;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_JOIN_FRAME;
use parallax_protocol::join::{JoinAnswer, JoinRequest, Joined};
use parallax_protocol::text::Secret;
use parallax_protocol::version::JOIN_V1;
use rustls_pki_types::CertificateDer;
use std::time::Duration;

/// Time limit for the coordinator's response to a join.
const ANSWER: Duration = Duration::from_secs(10);

/// Enrols this host with `token` and stores its identity in the data folder. The coordinator is verified
/// against the authority in the token before anything is sent; on any error nothing is stored.
///
/// # Errors
/// [`Error::AlreadyJoined`], [`Error::Setting`] for an invalid token, [`Error::Refused`] with the
/// coordinator's reason, [`Error::Unreachable`].
pub async fn join(config: &Config, coordinator: &str, token: &str) -> Result<Record, Error> {
    let setting = |field: &str, rule: String| Error::Setting { field: field.to_owned(), rule };
    let coordinator = checked_coordinator(coordinator).map_err(|rule| setting("--coordinator", rule))?;
    let token: Token =
        token.trim().parse().map_err(|error: parallax_certs::Error| setting("--token", error.to_string()))?;
    let home = Home::open(&config.data)?;
    let clock = Clock::new(0);
    // An expired certificate is worthless, so it may be replaced.
    let is_over = |membership: &Membership| {
        crate::home::life_of(&membership.credentials)
            .is_ok_and(|life| clock.wall_ms() / 1000 > life.not_after)
    };
    if home.is_member() && !home.membership().is_ok_and(|membership| is_over(&membership)) {
        return Err(Error::AlreadyJoined(config.data.clone()));
    }
    let key = AgentKey::generate()?;
    let tls = tls::join_config(token.authority, &[JOIN_V1], wall_seconds(&clock))?;
    let link = dial(&coordinator, config.source, tls, |_| {}).await?;
    let request = JoinRequest { token: Secret::new(token.expose()), csr_der: key.request()? };
    let asked = tokio::time::timeout(ANSWER, ask(&link, &request)).await;
    link.close(CloseReason::Done).await;
    let unreachable =
        |reason: &str| Error::Unreachable { address: coordinator.clone(), reason: reason.to_owned() };
    let answer = asked.map_err(|_| unreachable("no answer to the join"))??;
    let joined = match answer {
        JoinAnswer::Joined(joined) => joined,
        JoinAnswer::Refused { reason } => return Err(Error::Refused(reason)),
    };
    let membership = accept(&key, &token, joined, coordinator, &clock)?;
    home.keep(&membership)?;
    Ok(membership.record)
}

/// Returns the host's wall clock in unix seconds, for rustls.
pub(crate) fn wall_seconds(clock: &Clock) -> std::sync::Arc<dyn rustls::time_provider::TimeProvider> {
    let clock = clock.clone();
    tls::clock(move || clock.wall_ms() / 1000)
}

/// Parses one or two authorities from DER.
pub(crate) fn roots_of(authorities_der: Vec<Vec<u8>>) -> Result<Roots, Error> {
    Ok(Roots::new(authorities_der.into_iter().map(CertificateDer::from).collect())?)
}

async fn ask(link: &Link, request: &JoinRequest) -> Result<JoinAnswer, Error> {
    let lost = |error: quinn::ConnectionError| match close_reason(&error) {
        Some(reason) => Error::Refused(reason),
        None => Error::Unreachable {
            address: link.connection.remote_address().to_string(),
            reason: error.to_string(),
        },
    };
    let (mut sending, receiving) = link.connection.open_bi().await.map_err(lost)?;
    let sent = send(&mut sending, request, MAX_JOIN_FRAME).await;
    let finished = sending.finish();
    let mut reader = Reader::new(receiving, MAX_JOIN_FRAME);
    match reader.next::<JoinAnswer>().await {
        Ok(Received::Value(answer)) => Ok(answer),
        Ok(Received::End) | Err(crate::wire::WireError::Stream) => {
            // If the coordinator closed instead of responding, its reason is more informative than the
            // stream's end.
            let closed = tokio::time::timeout(Duration::from_secs(1), link.connection.closed()).await;
            let reason = closed.ok().as_ref().and_then(close_reason);
            tracing::debug!(sent = sent.is_ok(), finished = finished.is_ok(), "join ended without an answer");
            Err(Error::Refused(reason.unwrap_or(CloseReason::Internal)))
        }
        Err(crate::wire::WireError::Protocol(error)) => Err(error.into()),
    }
}

/// Accepts a response only if it is for this host's key and from the authority in the token.
fn accept(
    key: &AgentKey,
    token: &Token,
    joined: Joined,
    coordinator: String,
    clock: &Clock,
) -> Result<Membership, Error> {
    let leaf = joined.certificates_der.into_iter().next().map(CertificateDer::from);
    let leaf = leaf.ok_or(parallax_certs::Error::Certificate("is missing in the response"))?;
    let credentials = key.with_certificate(leaf)?;
    let sent: Vec<CertificateDer<'static>> =
        joined.authorities_der.iter().cloned().map(CertificateDer::from).collect();
    parallax_certs::verify::find_authority(&sent, &token.authority)?;
    let record = Record {
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
    Ok(Membership { credentials, roots: roots_of(joined.authorities_der)?, record })
}
