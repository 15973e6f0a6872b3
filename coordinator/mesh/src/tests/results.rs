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
async fn a_result_is_acknowledged_only_after_the_river_says_that_it_is_durable() {
    let mut world = TestMesh::start().await;
    world.schedule([monitor(1, 1), monitor(2, 1)]);
    let mut agent = world.connect(&world.member(1).await).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1), passed(2, 2)]).await;
    let batch = world.batch().await;
    assert_eq!(batch.vantage, VantageNo(1));
    let slots: Vec<u32> = batch.observations.iter().map(|(slot, _)| *slot).collect();
    assert_eq!(slots, [1, 2]);
    let (_, seen) = &batch.observations[0];
    assert!(matches!(&seen.outcome, ProbeOutcome::Passed(facts) if facts.latency_ms == Some(80)));
    assert_eq!((seen.ended, seen.round), (NOW - 10, Some(1)));
    // A time request and its response on the same stream arrive before any acknowledgement.
    agent.say(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    assert!(matches!(agent.hear_more().await, ToAgent::Time(_)));
    batch.on_durable.send(()).unwrap();
    assert_eq!(agent.hear_more().await, ack(2));
}

#[tokio::test]
async fn a_result_that_comes_twice_is_handed_on_once_and_acknowledged_again() {
    let mut world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let member = world.member(1).await;
    let mut agent = world.connect(&member).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1), passed(2, 1)]).await;
    world.batch().await.on_durable.send(()).unwrap();
    assert_eq!(agent.hear_more().await, ack(2));
    let mut agent = world.connect(&member).await;
    assert_eq!(agent.welcome.watermarks, [DurabilityMark { boot: BOOT, through: 2 }]);
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(2, 1), passed(3, 1)]).await;
    let batch = world.batch().await;
    assert_eq!(batch.observations.len(), 1);
    batch.on_durable.send(()).unwrap();
    assert_eq!(agent.hear_more().await, ack(3));
    send(&mut results, &[passed(1, 1)]).await;
    assert_eq!(agent.hear_more().await, ack(3));
    assert_eq!(world.mesh.counters().duplicates.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn results_that_could_not_be_kept_are_never_acknowledged_and_may_come_again() {
    let mut world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let member = world.member(1).await;
    let agent = world.connect(&member).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1)]).await;
    drop(world.batch().await);
    assert_eq!(closed(&agent.connection).await, CloseReason::Internal);
    let mut agent = world.connect(&member).await;
    assert_eq!(agent.welcome.watermarks, []);
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1)]).await;
    world.batch().await.on_durable.send(()).unwrap();
    assert_eq!(agent.hear_more().await, ack(1));
}

#[tokio::test]
async fn what_was_under_way_when_a_connection_ended_is_acknowledged_on_the_next() {
    let mut world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let member = world.member(1).await;
    let agent = world.connect(&member).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1)]).await;
    let batch = world.batch().await;
    agent.connection.close(VarInt::from_u32(0), b"");
    world.until_connected(1, false).await;
    let mut agent = world.connect(&member).await;
    batch.on_durable.send(()).unwrap();
    assert_eq!(agent.hear_more().await, ack(1));
}

#[tokio::test]
async fn results_of_monitors_that_are_gone_are_acknowledged_and_dropped() {
    let mut world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let mut agent = world.connect(&world.member(1).await).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 9)]).await;
    assert_eq!(agent.hear_more().await, ack(1));
    send(&mut results, &[passed(2, 9), passed(3, 1)]).await;
    let batch = world.batch().await;
    assert_eq!(batch.observations.len(), 1);
    batch.on_durable.send(()).unwrap();
    assert_eq!(agent.hear_more().await, ack(3));
}

#[tokio::test]
async fn a_gap_that_the_agent_reports_does_not_hold_acknowledgements_up() {
    let mut world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let mut agent = world.connect(&world.member(1).await).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    send(&mut results, &[passed(1, 1)]).await;
    world.batch().await.on_durable.send(()).unwrap();
    assert_eq!(agent.hear_more().await, ack(1));
    send(&mut results, &[passed(5, 1)]).await;
    world.batch().await.on_durable.send(()).unwrap();
    let gap = ResultGap { boot: BOOT, from: 2, through: 4, from_ms: 0, through_ms: 0 };
    agent.say(&ToCoordinator::Gap(gap)).await;
    let mut heard = agent.hear_more().await;
    while heard != ack(5) {
        heard = agent.hear_more().await;
    }
    assert_eq!(world.mesh.counters().results_lost.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn results_of_a_boot_that_was_not_named_close_the_connection() {
    let world = TestMesh::start().await;
    let agent = world.connect(&world.member(1).await).await;
    let mut results = agent.connection.open_uni().await.unwrap();
    let batch = ResultBatch::pack(BootId(1), NOW.as_millis(), &[passed(1, 1)], |_| None).unwrap();
    write(&mut results, &ResultFrame::Batch(batch), MAX_FRAME).await.unwrap();
    assert_eq!(closed(&agent.connection).await, CloseReason::OutOfOrder);
}

#[tokio::test]
async fn a_step_of_the_wall_clock_is_told_at_once_and_results_of_before_it_move_along() {
    for rounds in [-1, 10] {
        let mut world = TestMesh::start().await;
        world.schedule([monitor(1, 1)]);
        let jump = rounds * i64::from(monitor(1, 1).interval_ms);
        let mut agent = world.connect(&world.member(1).await).await;
        let mut results = agent.connection.open_uni().await.unwrap();
        send(&mut results, &[passed(1, 1)]).await;
        world.batch().await.on_durable.send(()).unwrap();
        world.clock.step(jump);
        // By the old clock: the agent has not synchronized yet.
        send(&mut results, &[passed(2, 1)]).await;
        let batch = world.batch().await;
        let (_, seen) = &batch.observations[0];
        assert_eq!((seen.started, seen.ended), (NOW - 90 + jump, NOW - 10 + jump), "{rounds}");
        assert_eq!(seen.round.map(u64::cast_signed), Some((2 + rounds).max(0)), "{rounds}");
        batch.on_durable.send(()).unwrap();
        let unasked = |frame: &ToAgent| match frame {
            ToAgent::Time(time) => time.echo_us == TimeResponse::UNSOLICITED,
            _ => false,
        };
        while !unasked(&agent.hear_more().await) {}
    }
}
