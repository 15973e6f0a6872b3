//! Tests of a malicious agent with a valid certificate that reports rounds it was not assigned.

use parallax_core::assign::{due_ms, share};
use parallax_core::observation::Observation;
use parallax_core::time::MINUTE;
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::id as wire_id;
use parallax_protocol::result::{self as wire_result, CheckResult, NumberedResult, ProbeReport};

use super::*;

#[tokio::test]
async fn rounds_from_before_an_edit_are_not_counted_against_the_agent() {
    let mut test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 2)]);
    let member = test_mesh.member(1).await;
    let _other = test_mesh.connect(&test_mesh.member(2).await).await;
    let mut agent = test_mesh.connect(&member).await;
    let revision = loop {
        if let ToAgent::Schedule(change) = agent.next_work_frame().await
            && change.put.iter().any(|one| one.every == 2)
        {
            break change.revision;
        }
    };
    agent.send(&ToCoordinator::ScheduleApplied { slot_epoch: 5, revision }).await;
    agent.send(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    while !matches!(agent.next_frame().await, ToAgent::Time(_)) {}
    test_mesh.clock.set(NOW + MINUTE);
    let mesh = test_mesh.mesh.mesh().borrow().clone();
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
    let batch = test_mesh.batch().await;
    let accepted: Vec<_> = batch.observations.iter().filter_map(|(_, observation)| observation.round).collect();
    assert_eq!(accepted, [own]);
    assert_eq!(test_mesh.mesh.counters().rounds_refused.load(Ordering::Relaxed), 0);
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
async fn only_assigned_and_due_rounds_are_forwarded() {
    let mut test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let malicious = test_mesh.member(1).await;
    let _other = test_mesh.connect(&test_mesh.member(2).await).await;
    let mut malicious = test_mesh.connect(&malicious).await;
    // Both agents are connected: every second round belongs to the malicious one, which confirms the schedule.
    let revision = loop {
        if let ToAgent::Schedule(change) = malicious.next_work_frame().await
            && change.put.iter().any(|one| one.every == 2)
        {
            break change.revision;
        }
    };
    malicious.send(&ToCoordinator::ScheduleApplied { slot_epoch: 5, revision }).await;
    // The response arrives after the confirmation was processed.
    malicious.send(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    while !matches!(malicious.next_frame().await, ToAgent::Time(_)) {}
    test_mesh.clock.set(NOW + MINUTE);
    let mesh = test_mesh.mesh.mesh().borrow().clone();
    let share = share(&monitor(1, 1), &mesh, VantageNo(1)).unwrap();
    let newest = (NOW.as_millis() + MINUTE - i64::from(share.offset_ms)).div_euclid(MINUTE).unsigned_abs();
    let is_own = |round: &u64| round % 2 == u64::from(share.from);
    let claims: Vec<u64> = (newest - 1..newest + 6).collect();
    let numbered: Vec<_> = (1..).zip(&claims).map(|(seq, round)| claim(seq, *round)).collect();
    let slot = |_: wire_id::WireMonitorId| Some(1);
    let batch = ResultBatch::pack(BOOT, (NOW + MINUTE).as_millis(), &numbered, slot).unwrap();
    let mut results = malicious.connection.open_uni().await.unwrap();
    write(&mut results, &ResultFrame::Batch(batch), MAX_FRAME).await.unwrap();
    let batch = test_mesh.batch().await;
    let accepted = batch.observations.iter().filter_map(|(_, observation): &(u32, Observation)| observation.round);
    let is_due = |round: &u64| due_ms(share.offset_ms, 60_000, *round) <= (NOW + MINUTE).as_millis() + 30_000;
    let own: Vec<u64> = claims.iter().copied().filter(is_own).filter(is_due).collect();
    assert_eq!(accepted.collect::<Vec<_>>(), own);
    assert!(!own.is_empty());
    let refused = test_mesh.mesh.counters().rounds_refused.load(Ordering::Relaxed);
    assert_eq!(refused, (claims.len() - own.len()) as u64);
    // Everything is acknowledged: otherwise an agent would resend it forever.
    batch.on_durable.send(()).unwrap();
    assert!(matches!(malicious.next_reply().await, ToAgent::Ack(mark) if mark.through == 7));
}
