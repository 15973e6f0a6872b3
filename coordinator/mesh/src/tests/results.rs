//! Tests of results: handed to the engine once, acknowledged when durable, and never lost between two connections.

use parallax_core::observation::ProbeOutcome;
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::id as wire_id;
use parallax_protocol::message::{DurabilityMark, ResultGap, TimeResponse};
use parallax_protocol::result::{self as wire_result, CheckResult, NumberedResult, ProbeReport};

use super::*;

fn passed(seq: u64, slot: u32) -> NumberedResult {
    let report = ProbeReport { latency_ms: Some(80), ..ProbeReport::outcome_only(wire_result::WireOutcome::Passed) };
    let result = CheckResult {
        monitor: wire_id::WireMonitorId(u128::from(slot) + 1_000),
        revision: 1,
        round: Some(seq),
        started_ms: NOW.as_millis() - 90,
        age_ms: 10,
        report,
    };
    NumberedResult { seq, result }
}

fn frame(results: &[NumberedResult]) -> ResultFrame {
    let slot = |monitor: wire_id::WireMonitorId| u32::try_from(monitor.0 - 1_000).ok();
    ResultFrame::Batch(ResultBatch::pack(BOOT, NOW.as_millis(), results, slot).unwrap())
}

async fn send(stream: &mut SendStream, results: &[NumberedResult]) {
    write(stream, &frame(results), MAX_FRAME).await.unwrap();
}

fn ack(through: u64) -> ToAgent {
    ToAgent::Ack(DurabilityMark { boot: BOOT, through })
}

#[tokio::test]
async fn a_result_is_acknowledged_only_after_the_engine_made_it_durable() {
    let mut test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1), monitor(2, 1)]);
    let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1), passed(2, 2)]).await;
    let batch = test_mesh.batch().await;
    assert_eq!(batch.vantage, VantageNo(1));
    let slots: Vec<u32> = batch.observations.iter().map(|(slot, _)| *slot).collect();
    assert_eq!(slots, [1, 2]);
    let (_, observation) = &batch.observations[0];
    assert!(matches!(&observation.outcome, ProbeOutcome::Passed(measurements) if measurements.latency_ms == Some(80)));
    assert_eq!((observation.ended, observation.round), (NOW - 10, Some(1)));
    // A time request and its response on the same stream arrive before any acknowledgement.
    agent.send(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    assert!(matches!(agent.next_reply().await, ToAgent::Time(_)));
    batch.on_durable.send(()).unwrap();
    assert_eq!(agent.next_reply().await, ack(2));
}

#[tokio::test]
async fn a_duplicate_result_is_forwarded_once_and_acknowledged_again() {
    let mut test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let member = test_mesh.member(1).await;
    let mut agent = test_mesh.connect(&member).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1), passed(2, 1)]).await;
    test_mesh.batch().await.on_durable.send(()).unwrap();
    assert_eq!(agent.next_reply().await, ack(2));
    let mut agent = test_mesh.connect(&member).await;
    assert_eq!(agent.welcome.watermarks, [DurabilityMark { boot: BOOT, through: 2 }]);
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(2, 1), passed(3, 1)]).await;
    let batch = test_mesh.batch().await;
    assert_eq!(batch.observations.len(), 1);
    batch.on_durable.send(()).unwrap();
    assert_eq!(agent.next_reply().await, ack(3));
    send(&mut results, &[passed(1, 1)]).await;
    assert_eq!(agent.next_reply().await, ack(3));
    assert_eq!(test_mesh.mesh.counters().duplicates.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn results_that_could_not_be_stored_are_not_acknowledged_and_may_be_resent() {
    let mut test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let member = test_mesh.member(1).await;
    let agent = test_mesh.connect(&member).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1)]).await;
    drop(test_mesh.batch().await);
    assert_eq!(closed(&agent.connection).await, CloseReason::Internal);
    let mut agent = test_mesh.connect(&member).await;
    assert_eq!(agent.welcome.watermarks, []);
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1)]).await;
    test_mesh.batch().await.on_durable.send(()).unwrap();
    assert_eq!(agent.next_reply().await, ack(1));
}

#[tokio::test]
async fn results_in_flight_when_a_connection_ended_are_acknowledged_on_the_next() {
    let mut test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let member = test_mesh.member(1).await;
    let agent = test_mesh.connect(&member).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1)]).await;
    let batch = test_mesh.batch().await;
    agent.connection.close(VarInt::from_u32(0), b"");
    test_mesh.wait_connected(1, false).await;
    let mut agent = test_mesh.connect(&member).await;
    batch.on_durable.send(()).unwrap();
    assert_eq!(agent.next_reply().await, ack(1));
}

#[tokio::test]
async fn results_of_deleted_monitors_are_acknowledged_and_dropped() {
    let mut test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 9)]).await;
    assert_eq!(agent.next_reply().await, ack(1));
    send(&mut results, &[passed(2, 9), passed(3, 1)]).await;
    let batch = test_mesh.batch().await;
    assert_eq!(batch.observations.len(), 1);
    batch.on_durable.send(()).unwrap();
    assert_eq!(agent.next_reply().await, ack(3));
}

#[tokio::test]
async fn a_reported_gap_does_not_hold_back_acknowledgements() {
    let mut test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1)]).await;
    test_mesh.batch().await.on_durable.send(()).unwrap();
    assert_eq!(agent.next_reply().await, ack(1));
    send(&mut results, &[passed(5, 1)]).await;
    test_mesh.batch().await.on_durable.send(()).unwrap();
    let gap = ResultGap { boot: BOOT, from: 2, through: 4, from_ms: 0, through_ms: 0 };
    agent.send(&ToCoordinator::Gap(gap)).await;
    let mut received = agent.next_reply().await;
    while received != ack(5) {
        received = agent.next_reply().await;
    }
    assert_eq!(test_mesh.mesh.counters().results_lost.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn results_of_a_boot_that_was_not_named_close_the_connection() {
    let test_mesh = TestMesh::start().await;
    let agent = test_mesh.connect(&test_mesh.member(1).await).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    let batch = ResultBatch::pack(BootId(1), NOW.as_millis(), &[passed(1, 1)], |_| None).unwrap();
    write(&mut results, &ResultFrame::Batch(batch), MAX_FRAME).await.unwrap();
    assert_eq!(closed(&agent.connection).await, CloseReason::OutOfOrder);
}

#[tokio::test]
async fn a_wall_clock_step_is_sent_at_once_and_earlier_results_are_corrected() {
    for rounds in [-1, 10] {
        let mut test_mesh = TestMesh::start().await;
        test_mesh.schedule([monitor(1, 1)]);
        let jump = rounds * i64::from(monitor(1, 1).interval_ms);
        let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
        let mut results = agent.connection.open_uni().await.unwrap();
        send(&mut results, &[passed(1, 1)]).await;
        test_mesh.batch().await.on_durable.send(()).unwrap();
        test_mesh.clock.step(jump);
        // By the old clock: the agent has not synchronized yet.
        send(&mut results, &[passed(2, 1)]).await;
        let batch = test_mesh.batch().await;
        let (_, observation) = &batch.observations[0];
        assert_eq!((observation.started, observation.ended), (NOW - 90 + jump, NOW - 10 + jump), "{rounds}");
        assert_eq!(observation.round.map(u64::cast_signed), Some((2 + rounds).max(0)), "{rounds}");
        batch.on_durable.send(()).unwrap();
        let is_unsolicited = |frame: &ToAgent| match frame {
            ToAgent::Time(time) => time.echo_us == TimeResponse::UNSOLICITED,
            _ => false,
        };
        while !is_unsolicited(&agent.next_reply().await) {}
    }
}
