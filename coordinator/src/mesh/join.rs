//! Joining the mesh: takes an invitation's token and issues a certificate. The only frame that a host without an
//! identity may send.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parallax_certs::issue::Issued;
use parallax_certs::tls;
use parallax_certs::token::{SecretHash, Token};
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::member::{Agent, Certificate, Invitation, InvitationState, MAX_WRONG_TRIES};
use parallax_core::time::{MINUTE, SECOND, Timestamp};
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_JOIN_FRAME;
use parallax_protocol::id as wire_id;
use parallax_protocol::join::{JoinAnswer, JoinRequest, Joined};
use quinn::{Connection, SendStream};
use tokio::time::timeout;
use tracing::{debug, error, info, warn};

use super::hub::Hub;
use super::wire::{self, Fault, Frames};
use super::{Counters, EnrolRefusal, Newcomer, Trust, convert};

/// Time limit for receiving the request, and for sending the response.
const LIMIT: Duration = Duration::from_secs(5);

/// Refused attempts per source in [`SPAN_MS`], after which further ones are rejected.
const MOST_ATTEMPTS: u32 = 10;

/// Window in which a source's refused attempts count, in ms.
const SPAN_MS: i64 = MINUTE;

/// Sources tracked, at most.
const MOST_SOURCES: usize = 4_096;

/// Serves a joining host: one stream, one request, one response.
pub(super) async fn serve(hub: &Hub, connection: &Connection) {
    let reason = match timeout(LIMIT, request(connection)).await {
        Ok(Ok((send, request))) => answer(hub, connection, send, request).await,
        Ok(Err(fault)) => refuse(hub, connection, fault.reason()),
        Err(_) => refuse(hub, connection, CloseReason::TimedOut),
    };
    wire::close(connection, reason);
}

/// Issues a certificate for a signing request's key and that agent id, valid for `seconds`.
pub(super) fn certify(
    trust: &Trust,
    request: &[u8],
    agent: AgentId,
    now: Timestamp,
    seconds: i64,
) -> Result<Issued, CloseReason> {
    let now = now.as_millis().div_euclid(SECOND);
    trust.signing.issue_agent(request, &agent.to_string(), now, seconds).map_err(|error| match error {
        parallax_certs::Error::Request(rule) => {
            debug!(rule, "signing request refused");
            CloseReason::BadRequest
        }
        other => {
            error!(error = %other, "a certificate could not be issued");
            CloseReason::Internal
        }
    })
}

/// Recent refused attempts by source.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    sources: BTreeMap<IpAddr, (Timestamp, u32)>,
}

impl Attempts {
    /// Returns true if a source has used up its attempts.
    pub(super) fn is_spent(&self, source: IpAddr, now: Timestamp) -> bool {
        let recent = self.sources.get(&network(source)).filter(|(since, _)| is_recent(*since, now));
        recent.is_some_and(|(_, count)| *count >= MOST_ATTEMPTS)
    }

    /// Counts a refused attempt.
    pub(super) fn count(&mut self, source: IpAddr, now: Timestamp) {
        let source = network(source);
        if self.sources.len() >= MOST_SOURCES && !self.sources.contains_key(&source) {
            self.sources.retain(|_, (since, _)| is_recent(*since, now));
            let oldest = self.sources.iter().min_by_key(|(_, (since, _))| *since).map(|(source, _)| *source);
            if let Some(oldest) = oldest.filter(|_| self.sources.len() >= MOST_SOURCES) {
                self.sources.remove(&oldest);
            }
        }
        let entry = self.sources.entry(source).or_insert((now, 0));
        if !is_recent(entry.0, now) {
            *entry = (now, 0);
        }
        entry.1 += 1;
    }
}

fn is_recent(since: Timestamp, now: Timestamp) -> bool {
    (0..SPAN_MS).contains(&now.since(since))
}

/// Returns an IPv4 address as it is, or the /64 network of an IPv6 address, since a host can choose any address in
/// it.
pub(super) fn network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

fn refuse(hub: &Hub, connection: &Connection, reason: CloseReason) -> CloseReason {
    Counters::add(&hub.counters.joins_refused);
    if let Some(omitted) = hub.logs.admit((None, "join refused")) {
        warn!(remote = %connection.remote_address(), %reason, omitted, "a join request was refused");
    }
    reason
}

async fn request(connection: &Connection) -> Result<(SendStream, JoinRequest), Fault> {
    let (send, receive) = connection.accept_bi().await.map_err(|_| Fault::Lost)?;
    let request = Frames::new(receive, MAX_JOIN_FRAME).next().await?;
    Ok((send, request.ok_or(Fault::Close(CloseReason::OutOfOrder))?))
}

/// Decides a request and sends the response. The decision stands even if the host does not receive it.
async fn answer(
    hub: &Hub,
    connection: &Connection,
    mut send: SendStream,
    request: JoinRequest,
) -> CloseReason {
    let source = connection.remote_address().ip();
    // One at a time, so that a secret can't be guessed in parallel and a token is used only once.
    let mut attempts = hub.joining.lock().await;
    let now = hub.clock.now();
    let outcome = if attempts.is_spent(source, now) {
        Err(CloseReason::RateLimited)
    } else {
        admit(hub, &request, now).await
    };
    if outcome.is_err() {
        attempts.count(source, now);
    }
    drop(attempts);
    let (reason, answer) = match outcome {
        Ok(joined) => (CloseReason::Done, JoinAnswer::Joined(joined)),
        Err(reason) if reason.is_told_by_code() => return refuse(hub, connection, reason),
        Err(reason) => (refuse(hub, connection, reason), JoinAnswer::Refused { reason }),
    };
    if wire::write(&mut send, &answer, MAX_JOIN_FRAME).await.is_ok() && send.finish().is_ok() {
        // Closing now could overtake the response.
        let _ = timeout(LIMIT, send.stopped()).await;
    }
    reason
}

async fn admit(hub: &Hub, request: &JoinRequest, now: Timestamp) -> Result<Joined, CloseReason> {
    let token: Token = request.token.reveal().parse().map_err(|_| CloseReason::TokenUnknown)?;
    let id = InvitationId::from_u128(token.id.0);
    let invitation = hub.members.invitation(id).await.map_err(internal)?;
    if let Err(reason) = judge(invitation.as_ref(), &token, now) {
        if reason == CloseReason::TokenForged {
            hub.members.count_wrong_secret(id).await.map_err(internal)?;
        }
        return Err(reason);
    }
    let mut random = [0; 10];
    tls::random(&mut random).map_err(internal)?;
    let agent = AgentId::new(now, random);
    let trust = hub.trust.load_full();
    let issued = certify(&trust, &request.csr_der, agent, now, hub.settings.certificate_life)?;
    let certificate =
        Certificate { serial: issued.serial.as_bytes().to_vec(), valid_from: issued.life.not_before };
    let newcomer = Newcomer { id: agent, joined_at: now, certificate };
    let agent =
        hub.members.enrol(id, newcomer).await.map_err(internal)?.map_err(|refusal| match refusal {
            EnrolRefusal::Used => CloseReason::TokenUsed,
            EnrolRefusal::Revoked => CloseReason::TokenRevoked,
            EnrolRefusal::NameTaken => CloseReason::NameTaken,
        })?;
    Counters::add(&hub.counters.joined);
    info!(agent = %agent.id, name = agent.name, region = %agent.region, network = agent.network, "agent joined");
    hub.reload().await;
    Ok(joined(hub, &trust, &agent, &issued))
}

/// Checks a token. A sender that does not know the secret learns nothing about the invitation's state.
fn judge(invitation: Option<&Invitation>, token: &Token, now: Timestamp) -> Result<(), CloseReason> {
    let invitation = invitation.ok_or(CloseReason::TokenUnknown)?;
    let fits = SecretHash(invitation.secret_hash).matches(&token.secret);
    if !fits || invitation.wrong_tries >= MAX_WRONG_TRIES {
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

fn joined(hub: &Hub, trust: &Trust, agent: &Agent, issued: &Issued) -> Joined {
    Joined {
        certificates_der: vec![issued.certificate.to_vec()],
        authorities_der: trust.authorities_der(),
        agent: wire_id::AgentId(agent.id.to_u128()),
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
    use parallax_certs::token::TokenId;
    use parallax_core::place::Region;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn invited() -> (Invitation, Token) {
        let token = Token::generate(TokenId(7), [1; 32]).unwrap();
        let invitation = Invitation {
            id: InvitationId::from_u128(7),
            secret_hash: token.secret.hash().0,
            name: "fra1".to_owned(),
            region: Region::Europe,
            network: "AS1".to_owned(),
            created_at: NOW,
            expires_at: NOW + MINUTE,
            wrong_tries: 0,
            used_by: None,
            revoked_at: None,
        };
        (invitation, token)
    }

    #[test]
    fn each_kind_of_bad_token_has_its_own_reason() {
        let (good, token) = invited();
        assert_eq!(judge(Some(&good), &token, NOW), Ok(()));
        assert_eq!(judge(None, &token, NOW), Err(CloseReason::TokenUnknown));
        assert_eq!(judge(Some(&good), &token, NOW + MINUTE), Err(CloseReason::TokenExpired));
        let used = Invitation { used_by: Some(AgentId::from_u128(1)), ..good.clone() };
        assert_eq!(judge(Some(&used), &token, NOW), Err(CloseReason::TokenUsed));
        let revoked = Invitation { revoked_at: Some(NOW), ..good.clone() };
        assert_eq!(judge(Some(&revoked), &token, NOW), Err(CloseReason::TokenRevoked));
        let (_, forged) = invited();
        assert_eq!(judge(Some(&revoked), &forged, NOW), Err(CloseReason::TokenForged));
        assert_eq!(judge(Some(&good), &forged, NOW), Err(CloseReason::TokenForged));
        assert_eq!(judge(Some(&used), &forged, NOW + MINUTE), Err(CloseReason::TokenForged));
    }

    #[test]
    fn five_wrong_secrets_end_an_invitation_even_for_the_right_one() {
        let (good, token) = invited();
        let four = Invitation { wrong_tries: 4, ..good.clone() };
        assert_eq!(judge(Some(&four), &token, NOW), Ok(()));
        let five = Invitation { wrong_tries: 5, ..good };
        assert_eq!(judge(Some(&five), &token, NOW), Err(CloseReason::TokenForged));
    }

    #[test]
    fn a_source_is_not_listened_to_after_ten_refusals_until_a_minute_has_passed() {
        let mut attempts = Attempts::default();
        let (one, same_net, other): (IpAddr, IpAddr, IpAddr) =
            ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap(), "192.0.2.1".parse().unwrap());
        for _ in 0..10 {
            assert!(!attempts.is_spent(one, NOW));
            attempts.count(one, NOW);
        }
        assert!(attempts.is_spent(one, NOW) && attempts.is_spent(same_net, NOW));
        assert!(!attempts.is_spent(other, NOW));
        assert!(!attempts.is_spent(one, NOW + SPAN_MS));
        assert!(!attempts.is_spent(one, NOW - 1));
    }

    #[test]
    fn sources_are_bounded() {
        let mut attempts = Attempts::default();
        for n in 0..10_000_u32 {
            attempts.count(IpAddr::from(n.to_be_bytes()), NOW + i64::from(n) / 1_000);
        }
        assert_eq!(attempts.sources.len(), MOST_SOURCES);
    }
}
