//! Joining the mesh: takes an invitation's token and issues a certificate. The only frame that a host without an
//! identity may send.

use std::time::Duration;

use parallax_certs::issue::IssuedCertificate;
use parallax_certs::random;
use parallax_certs::token::{JoinToken, JoinTokenSecretHash};
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::member::{AgentRecord, CertificateId, Invitation, InvitationState, MAX_WRONG_SECRETS};
use parallax_core::time::{SECOND, Timestamp};
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_JOIN_FRAME;
use parallax_protocol::id as wire_id;
use parallax_protocol::join::{Enrolment, JoinRequest, JoinResponse};
use quinn::{Connection, SendStream};
use tokio::time::timeout;
use tracing::{debug, error, info, warn};

use super::hub::Hub;
use super::wire::{self, FrameReceiver, SessionError};
use super::{EnrolError, MeshCounters, NewAgent, Trust, convert};

/// Time limit for receiving the request, and for sending the response.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Serves a joining host: one stream, one request, one response.
pub(super) async fn serve(hub: &Hub, connection: &Connection) {
    let reason = match timeout(TIME_LIMIT, request(connection)).await {
        Ok(Ok((send, request))) => decide(hub, connection, send, request).await,
        Ok(Err(fault)) => refuse(hub, connection, fault.reason()),
        Err(_) => refuse(hub, connection, CloseReason::TimedOut),
    };
    wire::close(connection, reason);
}

/// Issues a certificate for a signing request's key and that agent id, valid for `seconds`.
pub(super) fn issue_certificate(
    trust: &Trust,
    request: &[u8],
    agent: AgentId,
    now: Timestamp,
    seconds: i64,
) -> Result<IssuedCertificate, CloseReason> {
    let now = now.as_millis().div_euclid(SECOND);
    trust.signing.issue_agent(request, &agent.to_string(), now, seconds).map_err(|error| match error {
        parallax_certs::CertsError::Request(rule) => {
            debug!(rule, "signing request refused");
            CloseReason::BadRequest
        }
        other => {
            error!(error = %other, "a certificate could not be issued");
            CloseReason::Internal
        }
    })
}

fn refuse(hub: &Hub, connection: &Connection, reason: CloseReason) -> CloseReason {
    MeshCounters::add(&hub.counters.joins_refused);
    if let Some(omitted) = hub.logs.admit((None, "join refused")) {
        warn!(remote = %connection.remote_address(), %reason, omitted, "a join request was refused");
    }
    reason
}

async fn request(connection: &Connection) -> Result<(SendStream, JoinRequest), SessionError> {
    let (send, receive) = connection.accept_bi().await.map_err(|_| SessionError::Lost)?;
    let request = FrameReceiver::new(receive, MAX_JOIN_FRAME).next().await?;
    Ok((send, request.ok_or(SessionError::Close(CloseReason::OutOfOrder))?))
}

/// Decides a request and sends the response. The decision stands even if the host does not receive it.
async fn decide(hub: &Hub, connection: &Connection, mut send: SendStream, request: JoinRequest) -> CloseReason {
    let source = connection.remote_address().ip();
    // One at a time, so that a secret can't be guessed in parallel and a token is used only once.
    let mut attempts = hub.join_attempts.lock().await;
    let now = hub.clock.now();
    let outcome = if attempts.is_exhausted(source, now) {
        Err(CloseReason::RateLimited)
    } else {
        admit(hub, &request, now).await
    };
    if outcome.is_err() {
        attempts.record_refusal(source, now);
    }
    drop(attempts);
    let (reason, response) = match outcome {
        Ok(enrolment) => (CloseReason::Done, JoinResponse::Enrolled(enrolment)),
        Err(reason) if reason.is_code_only() => return refuse(hub, connection, reason),
        Err(reason) => (refuse(hub, connection, reason), JoinResponse::Refused { reason }),
    };
    if wire::write(&mut send, &response, MAX_JOIN_FRAME).await.is_ok() && send.finish().is_ok() {
        // Closing now could overtake the response.
        let _ = timeout(TIME_LIMIT, send.stopped()).await;
    }
    reason
}

async fn admit(hub: &Hub, request: &JoinRequest, now: Timestamp) -> Result<Enrolment, CloseReason> {
    let token: JoinToken = request.token.reveal().parse().map_err(|_| CloseReason::TokenUnknown)?;
    let id = InvitationId::from_u128(token.id.0);
    let invitation = hub.members.invitation(id).await.map_err(internal)?;
    if let Err(reason) = check_token(invitation.as_ref(), &token, now) {
        if reason == CloseReason::TokenForged {
            hub.members.count_wrong_secret(id).await.map_err(internal)?;
        }
        return Err(reason);
    }
    let mut random = [0; 10];
    random::fill_random(&mut random).map_err(internal)?;
    let agent = AgentId::new(now, random);
    let trust = hub.trust.load_full();
    let issued = issue_certificate(&trust, &request.csr_der, agent, now, hub.settings.certificate_life)?;
    let certificate =
        CertificateId { serial: issued.serial.as_bytes().to_vec(), valid_from: issued.validity.not_before };
    let new_agent = NewAgent { id: agent, joined_at: now, certificate };
    let agent = hub.members.enrol(id, new_agent).await.map_err(internal)?.map_err(|error| match error {
        EnrolError::Used => CloseReason::TokenUsed,
        EnrolError::Revoked => CloseReason::TokenRevoked,
        EnrolError::NameTaken => CloseReason::NameTaken,
    })?;
    MeshCounters::add(&hub.counters.joined);
    info!(agent = %agent.id, name = agent.name, region = %agent.region, network = agent.network, "agent joined");
    hub.reload().await;
    Ok(build_enrolment(hub, &trust, &agent, &issued))
}

/// Checks a token. A sender that does not know the secret learns nothing about the invitation's state.
fn check_token(invitation: Option<&Invitation>, token: &JoinToken, now: Timestamp) -> Result<(), CloseReason> {
    let invitation = invitation.ok_or(CloseReason::TokenUnknown)?;
    let secret_matches = JoinTokenSecretHash(invitation.secret_hash).matches(&token.secret);
    if !secret_matches || invitation.wrong_secrets >= MAX_WRONG_SECRETS {
        return Err(CloseReason::TokenForged);
    }
    match invitation.state(now) {
        InvitationState::Open => Ok(()),
        InvitationState::Used => Err(CloseReason::TokenUsed),
        InvitationState::Revoked => Err(CloseReason::TokenRevoked),
        InvitationState::Blocked => Err(CloseReason::TokenForged),
        InvitationState::Expired => Err(CloseReason::TokenExpired),
    }
}

fn build_enrolment(hub: &Hub, trust: &Trust, agent: &AgentRecord, issued: &IssuedCertificate) -> Enrolment {
    Enrolment {
        certificates_der: vec![issued.certificate.to_vec()],
        authorities_der: trust.authorities_der(),
        agent: wire_id::WireAgentId(agent.id.to_u128()),
        name: agent.name.clone(),
        region: convert::region(agent.region),
        network: agent.network.clone(),
        mesh: hub.settings.name.clone(),
        coordinator_ms: hub.clock.now().as_millis(),
    }
}

fn internal(fault: impl std::fmt::Display) -> CloseReason {
    error!(%fault, "a join request failed");
    CloseReason::Internal
}

#[cfg(test)]
mod tests {
    use parallax_certs::token::JoinTokenId;
    use parallax_core::time::MINUTE;
    use parallax_core::vantage::Region;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn invitation_and_token() -> (Invitation, JoinToken) {
        let token = JoinToken::generate(JoinTokenId(7), [1; 32]).unwrap();
        let invitation = Invitation {
            id: InvitationId::from_u128(7),
            secret_hash: token.secret.hash().0,
            name: "fra1".to_owned(),
            region: Region::Europe,
            network: "AS1".to_owned(),
            created_at: NOW,
            expires_at: NOW + MINUTE,
            wrong_secrets: 0,
            used_by: None,
            revoked_at: None,
        };
        (invitation, token)
    }

    #[test]
    fn each_kind_of_bad_token_has_its_own_reason() {
        let (good, token) = invitation_and_token();
        assert_eq!(check_token(Some(&good), &token, NOW), Ok(()));
        assert_eq!(check_token(None, &token, NOW), Err(CloseReason::TokenUnknown));
        assert_eq!(check_token(Some(&good), &token, NOW + MINUTE), Err(CloseReason::TokenExpired));
        let used = Invitation { used_by: Some(AgentId::from_u128(1)), ..good.clone() };
        assert_eq!(check_token(Some(&used), &token, NOW), Err(CloseReason::TokenUsed));
        let revoked = Invitation { revoked_at: Some(NOW), ..good.clone() };
        assert_eq!(check_token(Some(&revoked), &token, NOW), Err(CloseReason::TokenRevoked));
        let (_, forged) = invitation_and_token();
        assert_eq!(check_token(Some(&revoked), &forged, NOW), Err(CloseReason::TokenForged));
        assert_eq!(check_token(Some(&good), &forged, NOW), Err(CloseReason::TokenForged));
        assert_eq!(check_token(Some(&used), &forged, NOW + MINUTE), Err(CloseReason::TokenForged));
    }

    #[test]
    fn five_wrong_secrets_block_an_invitation_even_for_the_right_secret() {
        let (good, token) = invitation_and_token();
        let four = Invitation { wrong_secrets: 4, ..good.clone() };
        assert_eq!(check_token(Some(&four), &token, NOW), Ok(()));
        let five = Invitation { wrong_secrets: 5, ..good };
        assert_eq!(check_token(Some(&five), &token, NOW), Err(CloseReason::TokenForged));
    }
}
