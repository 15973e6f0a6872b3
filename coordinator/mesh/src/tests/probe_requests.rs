//! Tests of probe requests: sent to the right agent, answered once, and ended without an outcome if no agent
//! responds.

use std::collections::BTreeSet;

use parallax_core::event::{ProbeReason, ProbeRequest, ProbeResponse};
use parallax_core::observation::ProbeOutcome;
use parallax_protocol::message::{CheckReason, WireCheckNow, WireCheckNowResponse};
use parallax_protocol::result::{self as wire_result, CheckResult, ProbeReport, WireFailure};

use super::super::roster::ConnectionInfo;
use super::*;

fn probe(number: u32, vantage: u16, ms: i64) -> ProbeDispatch {
    let request =
        ProbeRequest { number, vantage: VantageNo(vantage), reason: ProbeReason::Confirm, deadline: NOW + ms };
    let scheduled = monitor(1, 1);
    let account = scheduled.account;
    ProbeDispatch { slot: 1, monitor: scheduled.monitor, account, revision: 1, check: scheduled.check, request }
}

fn failed(request: &WireCheckNow) -> CheckResult {
    CheckResult {
        monitor: request.monitor,
        revision: request.revision,
        round: None,
        started_ms: NOW.as_millis(),
        age_ms: 0,
        report: ProbeReport::outcome_only(wire_result::WireOutcome::Failed(WireFailure::Refused)),
    }
}

async fn next_probe(agent: &TestAgent) -> (SendStream, WireCheckNow) {
    let (send, receive) = timeout(LIMIT, agent.connection.accept_bi()).await.expect("in time").unwrap();
    let request = FrameReceiver::new(receive, MAX_FRAME).next().await.unwrap().unwrap();
    (send, request)
}

impl TestMesh {
    async fn next_response(&mut self) -> (u32, ProbeResponse) {
        match self.arrival().await {
            Arrival::ProbeResponse { slot: 1, number, response } => (number, response),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_probe_request_returns_pending_and_then_the_outcome() {
    let mut test_mesh = TestMesh::start().await;
    let agent = test_mesh.connect(&test_mesh.member(1).await).await;
    test_mesh.probes.send(probe(7, 1, 10_000)).await.unwrap();
    let (mut send, request) = next_probe(&agent).await;
    assert_eq!((request.reason, request.deadline_ms, request.revision), (CheckReason::Confirm, 10_000, 1));
    write(&mut send, &WireCheckNowResponse::Pending, MAX_FRAME).await.unwrap();
    let (number, ProbeResponse::Observed(observation)) = test_mesh.next_response().await else { panic!("nothing") };
    assert_eq!((number, observation.outcome, observation.vantage), (7, ProbeOutcome::Pending, VantageNo(1)));
    write(&mut send, &WireCheckNowResponse::Done(Box::new(failed(&request))), MAX_FRAME).await.unwrap();
    let (number, ProbeResponse::Observed(observation)) = test_mesh.next_response().await else { panic!("nothing") };
    assert!(number == 7 && matches!(observation.outcome, ProbeOutcome::Failed(..)));
}

#[tokio::test]
async fn a_request_to_a_disconnected_vantage_ends_without_response_at_once() {
    let mut test_mesh = TestMesh::start().await;
    test_mesh.member(1).await;
    for vantage in [1, 9] {
        test_mesh.probes.send(probe(1, vantage, 10_000)).await.unwrap();
        assert_eq!(test_mesh.next_response().await, (1, ProbeResponse::NoResponse));
    }
}

#[tokio::test]
async fn a_request_not_answered_in_time_ends_without_response() {
    let mut test_mesh = TestMesh::start().await;
    let agent = test_mesh.connect(&test_mesh.member(1).await).await;
    test_mesh.probes.send(probe(3, 1, 2100)).await.unwrap();
    let (_send, _) = next_probe(&agent).await;
    assert_eq!(test_mesh.next_response().await, (3, ProbeResponse::NoResponse));
    assert!(agent.connection.close_reason().is_none());
}

#[tokio::test]
async fn a_request_without_time_for_a_response_is_not_sent() {
    let mut test_mesh = TestMesh::start().await;
    let _agent = test_mesh.connect(&test_mesh.member(1).await).await;
    test_mesh.probes.send(probe(3, 1, 1500)).await.unwrap();
    assert_eq!(test_mesh.next_response().await, (3, ProbeResponse::NoResponse));
    assert_eq!(test_mesh.mesh.counters().probes_sent.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_request_ends_without_response_when_the_agent_disconnects() {
    let mut test_mesh = TestMesh::start().await;
    let agent = test_mesh.connect(&test_mesh.member(1).await).await;
    test_mesh.probes.send(probe(3, 1, 60_000)).await.unwrap();
    let (_send, _) = next_probe(&agent).await;
    agent.connection.close(VarInt::from_u32(0), b"");
    assert_eq!(test_mesh.next_response().await, (3, ProbeResponse::NoResponse));
}

#[tokio::test]
async fn a_response_about_another_check_closes_the_connection() {
    let mut test_mesh = TestMesh::start().await;
    let agent = test_mesh.connect(&test_mesh.member(1).await).await;
    test_mesh.probes.send(probe(3, 1, 10_000)).await.unwrap();
    let (mut send, request) = next_probe(&agent).await;
    let other = CheckResult { revision: 2, ..failed(&request) };
    write(&mut send, &WireCheckNowResponse::Done(Box::new(other)), MAX_FRAME).await.unwrap();
    assert_eq!(test_mesh.next_response().await, (3, ProbeResponse::NoResponse));
    assert_eq!(closed(&agent.connection).await, CloseReason::Invalid);
}

#[tokio::test]
async fn many_requests_to_one_vantage_are_sent_in_order_and_all_answered() {
    let mut test_mesh = TestMesh::start().await;
    let agent = test_mesh.connect(&test_mesh.member(1).await).await;
    for number in 0..60 {
        test_mesh.probes.send(probe(number, 1, 60_000)).await.unwrap();
    }
    for number in 0..60 {
        let (mut send, request) = next_probe(&agent).await;
        assert_eq!(request.id & 0xffff_ffff, u64::from(number));
        write(&mut send, &WireCheckNowResponse::Done(Box::new(failed(&request))), MAX_FRAME).await.unwrap();
        let (received, ProbeResponse::Observed(_)) = test_mesh.next_response().await else { panic!("nothing") };
        assert_eq!(received, number);
    }
}

#[tokio::test]
async fn an_account_with_thousands_of_requests_does_not_block_another() {
    let mut test_mesh = TestMesh::start().await;
    let agent = test_mesh.connect(&test_mesh.member(1).await).await;
    // More than can be queued and in flight, and none of them is answered.
    for number in 0..1_500 {
        test_mesh.probes.send(probe(number, 1, 120_000)).await.unwrap();
    }
    let other = ProbeDispatch { account: AccountId::from_u128(2), ..probe(9_999, 1, 120_000) };
    test_mesh.probes.send(other).await.unwrap();
    let mut streams = Vec::new();
    loop {
        let (send, request) = next_probe(&agent).await;
        if request.id & 0xffff_ffff == 9_999 {
            break;
        }
        streams.push(send);
    }
    assert!(streams.len() < 240, "{} were asked before it", streams.len());
    // Those that were evicted are answered at once, and none of them is the other account's.
    let (evicted, response) = test_mesh.next_response().await;
    assert!(evicted < 1_500 && response == ProbeResponse::NoResponse, "{evicted}");
}

#[tokio::test]
async fn a_session_whose_probe_sender_has_stopped_is_closed() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let agent = test_mesh.records.agents.lock().unwrap()[&member.id].clone();
    let connection_info = ConnectionInfo {
        session: 0,
        at: NOW,
        remote: test_mesh.mesh.address(),
        software: String::new(),
        boot: BOOT,
        kinds: BTreeSet::new(),
        faults: Vec::new(),
    };
    let handle = test_mesh.mesh.hub.connect(&agent, connection_info).unwrap();
    assert!(test_mesh.mesh.hub.send_probe(probe(1, 1, 10_000)).is_ok());
    drop(handle.probes);
    assert!(test_mesh.mesh.hub.send_probe(probe(2, 1, 10_000)).is_err());
    assert_eq!(*handle.close.borrow(), Some(CloseReason::Internal));
}
