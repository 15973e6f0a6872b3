//! Tests of probe requests: sent to the right agent, answered once, and ended without an outcome if no agent
//! responds.

use std::collections::BTreeSet;

use parallax_core::event::{ProbeReason, ProbeRequest, ProbeResponse};
use parallax_core::observation::ProbeOutcome;
use parallax_protocol::message::{CheckReason, WireCheckNow, WireCheckNowResponse};
use parallax_protocol::result::{self as wire_result, CheckResult, ProbeReport, WireFailure};

use super::super::roster::ConnectionInfo;
use super::*;

fn question(number: u32, place: u16, ms: i64) -> ProbeDispatch {
    let ask = ProbeRequest { number, vantage: VantageNo(place), reason: ProbeReason::Confirm, deadline: NOW + ms };
    let asked = monitor(1, 1);
    let account = asked.account;
    ProbeDispatch { slot: 1, monitor: asked.monitor, account, revision: 1, check: asked.check, request: ask }
}

fn failed(asked: &WireCheckNow) -> CheckResult {
    CheckResult {
        monitor: asked.monitor,
        revision: asked.revision,
        round: None,
        started_ms: NOW.as_millis(),
        age_ms: 0,
        report: ProbeReport::outcome_only(wire_result::WireOutcome::Failed(WireFailure::Refused)),
    }
}

async fn asked(agent: &TestAgent) -> (SendStream, WireCheckNow) {
    let (send, receive) = timeout(LIMIT, agent.connection.accept_bi()).await.expect("in time").unwrap();
    let asked = FrameReceiver::new(receive, MAX_FRAME).next().await.unwrap().unwrap();
    (send, asked)
}

impl TestMesh {
    async fn answer(&mut self) -> (u32, ProbeResponse) {
        match self.arrival().await {
            Arrival::ProbeResponse { slot: 1, number, answer } => (number, answer),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_question_brings_back_pending_and_then_what_the_place_saw() {
    let mut world = TestMesh::start().await;
    let agent = world.connect(&world.member(1).await).await;
    world.questions.send(question(7, 1, 10_000)).await.unwrap();
    let (mut send, now) = asked(&agent).await;
    assert_eq!((now.reason, now.deadline_ms, now.revision), (CheckReason::Confirm, 10_000, 1));
    write(&mut send, &WireCheckNowResponse::Pending, MAX_FRAME).await.unwrap();
    let (number, ProbeResponse::Observed(seen)) = world.answer().await else { panic!("nothing") };
    assert_eq!((number, seen.outcome, seen.vantage), (7, ProbeOutcome::Pending, VantageNo(1)));
    write(&mut send, &WireCheckNowResponse::Done(Box::new(failed(&now))), MAX_FRAME).await.unwrap();
    let (number, ProbeResponse::Observed(seen)) = world.answer().await else { panic!("nothing") };
    assert!(number == 7 && matches!(seen.outcome, ProbeOutcome::Failed(..)));
}

#[tokio::test]
async fn a_place_that_is_not_there_gives_nothing_at_once() {
    let mut world = TestMesh::start().await;
    world.member(1).await;
    for place in [1, 9] {
        world.questions.send(question(1, place, 10_000)).await.unwrap();
        assert_eq!(world.answer().await, (1, ProbeResponse::NoResponse));
    }
}

#[tokio::test]
async fn a_place_that_does_not_answer_in_time_gives_nothing() {
    let mut world = TestMesh::start().await;
    let agent = world.connect(&world.member(1).await).await;
    world.questions.send(question(3, 1, 2100)).await.unwrap();
    let (_send, _) = asked(&agent).await;
    assert_eq!(world.answer().await, (3, ProbeResponse::NoResponse));
    assert!(agent.connection.close_reason().is_none());
}

#[tokio::test]
async fn a_question_without_time_for_an_answer_is_not_asked() {
    let mut world = TestMesh::start().await;
    let _agent = world.connect(&world.member(1).await).await;
    world.questions.send(question(3, 1, 1500)).await.unwrap();
    assert_eq!(world.answer().await, (3, ProbeResponse::NoResponse));
    assert_eq!(world.mesh.counters().probes_sent.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_place_that_goes_while_it_is_asked_gives_nothing() {
    let mut world = TestMesh::start().await;
    let agent = world.connect(&world.member(1).await).await;
    world.questions.send(question(3, 1, 60_000)).await.unwrap();
    let (_send, _) = asked(&agent).await;
    agent.connection.close(VarInt::from_u32(0), b"");
    assert_eq!(world.answer().await, (3, ProbeResponse::NoResponse));
}

#[tokio::test]
async fn an_answer_about_another_monitor_closes_the_connection() {
    let mut world = TestMesh::start().await;
    let agent = world.connect(&world.member(1).await).await;
    world.questions.send(question(3, 1, 10_000)).await.unwrap();
    let (mut send, now) = asked(&agent).await;
    let other = CheckResult { revision: 2, ..failed(&now) };
    write(&mut send, &WireCheckNowResponse::Done(Box::new(other)), MAX_FRAME).await.unwrap();
    assert_eq!(world.answer().await, (3, ProbeResponse::NoResponse));
    assert_eq!(closed(&agent.connection).await, CloseReason::Invalid);
}

#[tokio::test]
async fn many_questions_to_one_place_are_put_in_order_and_all_are_answered() {
    let mut world = TestMesh::start().await;
    let agent = world.connect(&world.member(1).await).await;
    for number in 0..60 {
        world.questions.send(question(number, 1, 60_000)).await.unwrap();
    }
    for number in 0..60 {
        let (mut send, now) = asked(&agent).await;
        assert_eq!(now.id & 0xffff_ffff, u64::from(number));
        write(&mut send, &WireCheckNowResponse::Done(Box::new(failed(&now))), MAX_FRAME).await.unwrap();
        let (answered, ProbeResponse::Observed(_)) = world.answer().await else { panic!("nothing") };
        assert_eq!(answered, number);
    }
}

#[tokio::test]
async fn an_account_that_asks_thousands_leaves_another_its_turn() {
    let mut world = TestMesh::start().await;
    let agent = world.connect(&world.member(1).await).await;
    // More than can be queued and in flight, and none of them is answered.
    for number in 0..1_500 {
        world.questions.send(question(number, 1, 120_000)).await.unwrap();
    }
    let other = ProbeDispatch { account: AccountId::from_u128(2), ..question(9_999, 1, 120_000) };
    world.questions.send(other).await.unwrap();
    let mut under_way = Vec::new();
    loop {
        let (send, now) = asked(&agent).await;
        if now.id & 0xffff_ffff == 9_999 {
            break;
        }
        under_way.push(send);
    }
    assert!(under_way.len() < 240, "{} were asked before it", under_way.len());
    // Those that were evicted are answered at once, and none of them is the other account's.
    let (evicted, answer) = world.answer().await;
    assert!(evicted < 1_500 && answer == ProbeResponse::NoResponse, "{evicted}");
}

#[tokio::test]
async fn a_session_whose_questions_nobody_carries_any_more_is_closed() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let agent = world.records.agents.lock().unwrap()[&member.id].clone();
    let arrived = ConnectionInfo {
        session: 0,
        at: NOW,
        remote: world.mesh.address(),
        software: String::new(),
        boot: BOOT,
        kinds: BTreeSet::new(),
        faults: Vec::new(),
    };
    let seat = world.mesh.hub.connect(&agent, arrived).unwrap();
    assert!(world.mesh.hub.send_probe(question(1, 1, 10_000)).is_ok());
    drop(seat.probes);
    assert!(world.mesh.hub.send_probe(question(2, 1, 10_000)).is_err());
    assert_eq!(*seat.close.borrow(), Some(CloseReason::Internal));
}
