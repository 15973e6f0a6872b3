//! Tests of schedules: an agent is sent the whole share first, then only changes, and nothing that it already has.

use parallax_core::quarantine::{Contradictions, SuspectedVantages};
use parallax_protocol::assignment::ScheduleChange;
use parallax_protocol::version::MESH_V2;

use super::*;

async fn change(agent: &mut TestAgent) -> ScheduleChange {
    match agent.next_work_frame().await {
        ToAgent::Schedule(change) => change,
        other => panic!("{other:?}"),
    }
}

fn slots(change: &ScheduleChange) -> Vec<u32> {
    change.put.iter().map(|assignment| assignment.slot).collect()
}

#[tokio::test]
async fn an_agent_gets_its_whole_share_and_then_only_changes() {
    let test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1), monitor(2, 1)]);
    let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
    let first = change(&mut agent).await;
    assert_eq!((first.slot_epoch, first.base, slots(&first)), (5, None, vec![1, 2]));
    test_mesh.schedule([monitor(1, 1), monitor(2, 2), monitor(3, 1)]);
    let second = change(&mut agent).await;
    assert_eq!((second.base, slots(&second)), (Some(first.revision), vec![2, 3]));
    test_mesh.schedule([monitor(1, 1)]);
    let third = change(&mut agent).await;
    assert_eq!((third.base, third.put.len(), third.drop.len()), (Some(second.revision), 0, 2));
}

#[tokio::test]
async fn from_version_two_on_accounts_are_sent_as_numbers_only() {
    let test_mesh = TestMesh::start().await;
    let (first_account, second_account) = (AccountId::from_u128(1), AccountId::from_u128(2));
    let monitor_of = |slot, account| ScheduledMonitor { account, ..monitor(slot, 1) };
    test_mesh.schedule([monitor_of(1, first_account), monitor_of(2, second_account), monitor_of(3, first_account)]);
    let member = test_mesh.member(1).await;
    let now = clock(|| NOW.as_millis() / SECOND);
    let offered = [MESH_V2];
    let config =
        agent_config(&member.credentials, &test_mesh.roots, &offered, now, CoordinatorTime::new(None)).unwrap();
    let mut agent = TestAgent::open_session(test_mesh.dial(config).await.unwrap(), hello(None)).await;
    let ToAgent::ScheduleByAccount { change, accounts } = agent.next_work_frame().await else { panic!() };
    assert_eq!(slots(&change), [1, 2, 3]);
    assert!(accounts[0] == accounts[2] && accounts[0] != accounts[1] && !accounts.contains(&0));
    assert!(!accounts.contains(&1), "the number is no part of the id");
}

#[tokio::test]
async fn a_reconnecting_agent_with_the_current_schedule_is_sent_nothing() {
    let test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let member = test_mesh.member(1).await;
    let mut agent = test_mesh.connect(&member).await;
    let version = change(&mut agent).await;
    test_mesh.schedule([monitor(1, 1), monitor(2, 1)]);
    let version = ScheduleVersion { slot_epoch: version.slot_epoch, revision: change(&mut agent).await.revision };
    test_mesh.schedule([monitor(1, 1), monitor(2, 1), monitor(3, 1)]);
    let missed = change(&mut agent).await.revision;
    let mut stale = test_mesh.connect_with_schedule(&member, Some(version)).await;
    assert_eq!(change(&mut stale).await.base, None, "the changes it missed are no longer known");
    let newest = ScheduleVersion { slot_epoch: 5, revision: missed + 1 };
    let mut agent = test_mesh.connect_with_schedule(&member, Some(newest)).await;
    agent.send(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    assert!(matches!(agent.next_work_frame().await, ToAgent::Time(_)));
}

#[tokio::test]
async fn an_agent_that_lost_its_schedule_gets_all_of_it() {
    let test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
    change(&mut agent).await;
    agent.send(&ToCoordinator::ScheduleMismatch { current: None }).await;
    let snapshot = change(&mut agent).await;
    assert_eq!((snapshot.base, slots(&snapshot)), (None, vec![1]));
}

#[tokio::test]
async fn a_second_vantage_of_the_region_takes_every_other_round_and_returns_them() {
    let test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let (one, two) = (test_mesh.member(1).await, test_mesh.member(2).await);
    let mut first = test_mesh.connect(&one).await;
    assert_eq!(change(&mut first).await.put[0].every, 1);
    let mut second = test_mesh.connect(&two).await;
    assert_eq!(change(&mut second).await.put[0].every, 2);
    assert_eq!(change(&mut first).await.put[0].every, 2);
    second.connection.close(VarInt::from_u32(0), b"");
    assert_eq!(change(&mut first).await.put[0].every, 1);
}

#[tokio::test]
async fn a_quarantined_vantage_runs_one_round_in_ten() {
    let test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
    change(&mut agent).await;
    let quarantined = [(VantageNo(1), Contradictions::default())].into();
    test_mesh.mesh.set_suspects(&SuspectedVantages { quarantined, ..SuspectedVantages::default() });
    assert_eq!(change(&mut agent).await.put[0].every, 10);
}
