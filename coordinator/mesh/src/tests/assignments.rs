//! Tests of a malicious agent with a valid certificate that reports rounds it was not assigned.

use parallax_core::assign::{due_ms, share};
use parallax_core::observation::Observation;
use parallax_core::time::MINUTE;
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::id as wire_id;
use parallax_protocol::result::{self as wire_result, CheckResult, NumberedResult, ProbeReport};

use super::*;

#[tokio::test]
async fn rounds_of_before_an_edit_are_no_fault_of_the_agent() {
    let mut world = TestMesh::start().await;
    world.schedule([monitor(1, 2)]);
    let member = world.member(1).await;
    let _other = world.connect(&world.member(2).await).await;
    let mut agent = world.connect(&member).await;
    let revision = loop {
        if let ToAgent::Schedule(change) = agent.hear_of_work().await
            && change.put.iter().any(|one| one.every == 2)
        {
            break change.revision;
        }
    };
    agent.say(&ToCoordinator::ScheduleApplied { slot_epoch: 5, revision }).await;
    agent.say(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    while !matches!(agent.hear().await, ToAgent::Time(_)) {}
    world.clock.set(NOW + MINUTE);
    let mesh = world.mesh.mesh().borrow().clone();
    let share = share(&monitor(1, 2), &mesh, VantageNo(1)).unwrap();
    let newest = (NOW.as_millis() + MINUTE - i64::from(share.offset_ms)).div_euclid(MINUTE).unsigned_abs();
    let (own, other) = if newest % 2 == u64::from(share.from) { (newest, newest + 1) } else { (newest - 1, newest) };
    // Of the previous revision, of another interval, and a correct one.
    let mut all = [claim(1, other), claim(2, own * 6 + 1), claim(3, own)];
    (all[1].result.revision, all[2].result.revision) = (2, 2);
    let slot = |_: wire_id::WireMonitorId| Some(1);
    let batch = ResultBatch::pack(BOOT, (NOW + MINUTE).as_millis(), &all, slot).unwrap();
    let mut results = agent.connection.open_uni().await.unwrap();
    write(&mut results, &ResultFrame::Batch(batch), MAX_FRAME).await.unwrap();
    let batch = world.batch().await;
    let taken: Vec<_> = batch.observations.iter().filter_map(|(_, seen)| seen.round).collect();
    assert_eq!(taken, [own]);
    assert_eq!(world.mesh.counters().rounds_refused.load(Ordering::Relaxed), 0);
}

fn claim(seq: u64, round: u64) -> NumberedResult {
    let result = CheckResult {
        monitor: wire_id::WireMonitorId(1_001),
        revision: 1,
        round: Some(round),
        started_ms: NOW.as_millis() + MINUTE - 90,
        age_ms: 10,
        report: ProbeReport::outcome_only(wire_result::WireOutcome::Passed),
    };
    NumberedResult { seq, result }
}

#[tokio::test]
async fn only_rounds_that_were_dealt_to_the_place_and_are_due_are_handed_on() {
    let mut world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let liar = world.member(1).await;
    let _other = world.connect(&world.member(2).await).await;
    let mut liar = world.connect(&liar).await;
    // Both agents are connected: every second round belongs to the liar, who claims to hold the schedule.
    let revision = loop {
        if let ToAgent::Schedule(change) = liar.hear_of_work().await
            && change.put.iter().any(|one| one.every == 2)
        {
            break change.revision;
        }
    };
    liar.say(&ToCoordinator::ScheduleApplied { slot_epoch: 5, revision }).await;
    // The response comes after the result was processed.
    liar.say(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    while !matches!(liar.hear().await, ToAgent::Time(_)) {}
    world.clock.set(NOW + MINUTE);
    let mesh = world.mesh.mesh().borrow().clone();
    let share = share(&monitor(1, 1), &mesh, VantageNo(1)).unwrap();
    let newest = (NOW.as_millis() + MINUTE - i64::from(share.offset_ms)).div_euclid(MINUTE).unsigned_abs();
    let is_own = |round: &u64| round % 2 == u64::from(share.from);
    let claims: Vec<u64> = (newest - 1..newest + 6).collect();
    let numbered: Vec<_> = (1..).zip(&claims).map(|(seq, round)| claim(seq, *round)).collect();
    let slot = |_: wire_id::WireMonitorId| Some(1);
    let batch = ResultBatch::pack(BOOT, (NOW + MINUTE).as_millis(), &numbered, slot).unwrap();
    let mut results = liar.connection.open_uni().await.unwrap();
    write(&mut results, &ResultFrame::Batch(batch), MAX_FRAME).await.unwrap();
    let batch = world.batch().await;
    let taken = batch.observations.iter().filter_map(|(_, seen): &(u32, Observation)| seen.round);
    let is_due = |round: &u64| due_ms(share.offset_ms, 60_000, *round) <= (NOW + MINUTE).as_millis() + 30_000;
    let own: Vec<u64> = claims.iter().copied().filter(is_own).filter(is_due).collect();
    assert_eq!(taken.collect::<Vec<_>>(), own);
    assert!(!own.is_empty());
    let refused = world.mesh.counters().rounds_refused.load(Ordering::Relaxed);
    assert_eq!(refused, (claims.len() - own.len()) as u64);
    // Everything is acknowledged: otherwise an agent would resend it forever.
    batch.on_durable.send(()).unwrap();
    assert!(matches!(liar.hear_more().await, ToAgent::Ack(mark) if mark.through == 7));
}
