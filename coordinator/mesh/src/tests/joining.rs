//! Tests of invitations: each is valid once, for a limited time, with its secret, at its own installation.

use super::*;

fn refusal(response: Result<JoinResponse, ConnectionError>) -> CloseReason {
    match response.unwrap() {
        JoinResponse::Refused { reason } => reason,
        JoinResponse::Enrolled(_) => panic!("joined"),
    }
}

#[tokio::test]
async fn a_host_with_a_valid_token_joins_with_the_invitations_name_and_network() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let agent = test_mesh.connect(&member).await;
    assert_eq!(agent.welcome.name, "agent1");
    assert_eq!(agent.welcome.network, "AS64496");
    assert_eq!(agent.welcome.agent.0, member.id.to_u128());
    test_mesh.wait_connected(1, true).await;
    assert_eq!(test_mesh.mesh.counters().joined.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_used_expired_forged_or_unknown_token_is_refused_each_for_its_own_reason() {
    let test_mesh = TestMesh::start().await;
    let key = AgentKey::generate().unwrap();
    let used = test_mesh.invite(1).expose();
    assert!(matches!(test_mesh.join(&used, &key).await.unwrap(), JoinResponse::Enrolled(_)));
    assert_eq!(refusal(test_mesh.join(&used, &key).await), CloseReason::TokenUsed);
    test_mesh.invite(2);
    let forged = JoinToken::generate(JoinTokenId(2), test_mesh.key_hash).unwrap().expose();
    assert_eq!(refusal(test_mesh.join(&forged, &key).await), CloseReason::TokenForged);
    let unknown = JoinToken::generate(JoinTokenId(3), test_mesh.key_hash).unwrap().expose();
    assert_eq!(refusal(test_mesh.join(&unknown, &key).await), CloseReason::TokenUnknown);
    assert_eq!(refusal(test_mesh.join("no token at all", &key).await), CloseReason::TokenUnknown);
    let expired = test_mesh.invite(4).expose();
    test_mesh.clock.set(NOW + DAY);
    assert_eq!(refusal(test_mesh.join(&expired, &key).await), CloseReason::TokenExpired);
    assert_eq!(test_mesh.records.agents.lock().unwrap().len(), 1);
    assert_eq!(test_mesh.mesh.counters().joins_refused.load(Ordering::Relaxed), 5);
}

#[tokio::test]
async fn five_wrong_secrets_block_an_invitation() {
    let test_mesh = TestMesh::start().await;
    let key = AgentKey::generate().unwrap();
    let good = test_mesh.invite(1).expose();
    for _ in 0..5 {
        let forged = JoinToken::generate(JoinTokenId(1), test_mesh.key_hash).unwrap().expose();
        assert_eq!(refusal(test_mesh.join(&forged, &key).await), CloseReason::TokenForged);
    }
    assert_eq!(refusal(test_mesh.join(&good, &key).await), CloseReason::TokenForged);
    assert!(test_mesh.records.agents.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_source_with_ten_refusals_is_blocked_for_a_minute() {
    let test_mesh = TestMesh::start().await;
    let key = AgentKey::generate().unwrap();
    for _ in 0..10 {
        refusal(test_mesh.join("x", &key).await);
    }
    let good = test_mesh.invite(1).expose();
    assert_eq!(refusal(test_mesh.join(&good, &key).await), CloseReason::RateLimited);
    test_mesh.clock.set(NOW + 60 * SECOND);
    assert!(matches!(test_mesh.join(&good, &key).await.unwrap(), JoinResponse::Enrolled(_)));
}

#[tokio::test]
async fn of_concurrent_joins_with_one_token_exactly_one_succeeds() {
    let test_mesh = TestMesh::start().await;
    let token = test_mesh.invite(1).expose();
    let key = AgentKey::generate().unwrap();
    let responses = futures_util::future::join_all((0..20).map(|_| test_mesh.join(&token, &key))).await;
    let joined = responses.into_iter().filter(|response| matches!(response, Ok(JoinResponse::Enrolled(_)))).count();
    assert_eq!(joined, 1);
    assert_eq!(test_mesh.records.agents.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_token_of_another_installation_fails_in_the_handshake() {
    let (test_mesh, other) = (TestMesh::start().await, TestMesh::start().await);
    let config = join_config(other.key_hash, &[JOIN_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
    assert!(test_mesh.dial(config).await.is_err());
    assert_eq!(test_mesh.mesh.counters().connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_malformed_certificate_request_does_not_use_up_the_token() {
    let test_mesh = TestMesh::start().await;
    let token = test_mesh.invite(1);
    let config = join_config(test_mesh.key_hash, &[JOIN_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
    let connection = test_mesh.dial(config).await.unwrap();
    let (mut send, receive) = connection.open_bi().await.unwrap();
    let request = JoinRequest { token: SecretText::new(token.expose()), csr_der: vec![0x30, 0x00] };
    write(&mut send, &request, MAX_JOIN_FRAME).await.unwrap();
    let response: JoinResponse = FrameReceiver::new(receive, MAX_JOIN_FRAME).next().await.unwrap().unwrap();
    assert_eq!(response, JoinResponse::Refused { reason: CloseReason::BadRequest });
    assert!(test_mesh.records.invitations.lock().unwrap().values().all(|one| one.used_by.is_none()));
}

#[tokio::test]
async fn a_join_frame_too_long_or_undecodable_closes_with_its_reason() {
    let test_mesh = TestMesh::start().await;
    let cases = [
        (9_000_u32.to_le_bytes().to_vec(), CloseReason::FrameTooLong),
        ([1_u32.to_le_bytes().as_slice(), &[0xff]].concat(), CloseReason::Undecodable),
    ];
    for (bytes, reason) in cases {
        let config = join_config(test_mesh.key_hash, &[JOIN_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
        let connection = test_mesh.dial(config).await.unwrap();
        let (mut send, _receive) = connection.open_bi().await.unwrap();
        send.write_all(&bytes).await.unwrap();
        assert_eq!(closed(&connection).await, reason);
    }
}
