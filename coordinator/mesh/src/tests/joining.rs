//! Tests of invitations: each is valid once, for a limited time, with its secret, at its own installation.

use super::*;

fn refusal(answer: Result<JoinResponse, ConnectionError>) -> CloseReason {
    match answer.unwrap() {
        JoinResponse::Refused { reason } => reason,
        JoinResponse::Enrolled(_) => panic!("joined"),
    }
}

#[tokio::test]
async fn a_host_with_a_good_token_joins_and_connects_as_what_it_was_invited_as() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let agent = world.connect(&member).await;
    assert_eq!(agent.welcome.name, "agent1");
    assert_eq!(agent.welcome.network, "AS64496");
    assert_eq!(agent.welcome.agent.0, member.id.to_u128());
    world.until_connected(1, true).await;
    assert_eq!(world.mesh.counters().joined.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_used_expired_forged_or_unknown_token_is_refused_each_for_its_own_reason() {
    let world = TestMesh::start().await;
    let key = AgentKey::generate().unwrap();
    let used = world.invite(1).expose();
    assert!(matches!(world.join(&used, &key).await.unwrap(), JoinResponse::Enrolled(_)));
    assert_eq!(refusal(world.join(&used, &key).await), CloseReason::TokenUsed);
    world.invite(2);
    let forged = JoinToken::generate(JoinTokenId(2), world.key_hash).unwrap().expose();
    assert_eq!(refusal(world.join(&forged, &key).await), CloseReason::TokenForged);
    let unknown = JoinToken::generate(JoinTokenId(3), world.key_hash).unwrap().expose();
    assert_eq!(refusal(world.join(&unknown, &key).await), CloseReason::TokenUnknown);
    assert_eq!(refusal(world.join("no token at all", &key).await), CloseReason::TokenUnknown);
    let late = world.invite(4).expose();
    world.clock.set(NOW + DAY);
    assert_eq!(refusal(world.join(&late, &key).await), CloseReason::TokenExpired);
    assert_eq!(world.records.agents.lock().unwrap().len(), 1);
    assert_eq!(world.mesh.counters().joins_refused.load(Ordering::Relaxed), 5);
}

#[tokio::test]
async fn five_forged_secrets_end_an_invitation() {
    let world = TestMesh::start().await;
    let key = AgentKey::generate().unwrap();
    let good = world.invite(1).expose();
    for _ in 0..5 {
        let forged = JoinToken::generate(JoinTokenId(1), world.key_hash).unwrap().expose();
        assert_eq!(refusal(world.join(&forged, &key).await), CloseReason::TokenForged);
    }
    assert_eq!(refusal(world.join(&good, &key).await), CloseReason::TokenForged);
    assert!(world.records.agents.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_source_that_only_fails_is_not_listened_to_for_a_while() {
    let world = TestMesh::start().await;
    let key = AgentKey::generate().unwrap();
    for _ in 0..10 {
        refusal(world.join("x", &key).await);
    }
    let good = world.invite(1).expose();
    assert_eq!(refusal(world.join(&good, &key).await), CloseReason::RateLimited);
    world.clock.set(NOW + 60 * SECOND);
    assert!(matches!(world.join(&good, &key).await.unwrap(), JoinResponse::Enrolled(_)));
}

#[tokio::test]
async fn of_many_that_use_one_token_at_once_exactly_one_joins() {
    let world = TestMesh::start().await;
    let token = world.invite(1).expose();
    let key = AgentKey::generate().unwrap();
    let answers = futures_util::future::join_all((0..20).map(|_| world.join(&token, &key))).await;
    let joined = answers.into_iter().filter(|answer| matches!(answer, Ok(JoinResponse::Enrolled(_)))).count();
    assert_eq!(joined, 1);
    assert_eq!(world.records.agents.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_token_of_another_installation_never_gets_as_far_as_a_request() {
    let (world, other) = (TestMesh::start().await, TestMesh::start().await);
    let config = join_config(other.key_hash, &[JOIN_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
    assert!(world.dial(config).await.is_err());
    assert_eq!(world.mesh.counters().connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_request_for_a_certificate_that_is_none_uses_no_token_up() {
    let world = TestMesh::start().await;
    let token = world.invite(1);
    let config = join_config(world.key_hash, &[JOIN_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
    let connection = world.dial(config).await.unwrap();
    let (mut send, receive) = connection.open_bi().await.unwrap();
    let request = JoinRequest { token: SecretText::new(token.expose()), csr_der: vec![0x30, 0x00] };
    write(&mut send, &request, MAX_JOIN_FRAME).await.unwrap();
    let answer: JoinResponse = FrameReceiver::new(receive, MAX_JOIN_FRAME).next().await.unwrap().unwrap();
    assert_eq!(answer, JoinResponse::Refused { reason: CloseReason::BadRequest });
    assert!(world.records.invitations.lock().unwrap().values().all(|one| one.used_by.is_none()));
}

#[tokio::test]
async fn a_join_frame_that_is_too_long_or_no_request_closes_with_its_reason() {
    let world = TestMesh::start().await;
    let cases = [
        (9_000_u32.to_le_bytes().to_vec(), CloseReason::FrameTooLong),
        ([1_u32.to_le_bytes().as_slice(), &[0xff]].concat(), CloseReason::Undecodable),
    ];
    for (bytes, reason) in cases {
        let config = join_config(world.key_hash, &[JOIN_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
        let connection = world.dial(config).await.unwrap();
        let (mut send, _receive) = connection.open_bi().await.unwrap();
        send.write_all(&bytes).await.unwrap();
        assert_eq!(closed(&connection).await, reason);
    }
}
