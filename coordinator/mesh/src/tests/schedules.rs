//! Tests of schedules: all at first, then only changes, and nothing that an agent holds already.

use parallax_core::quarantine::{Contradictions, SuspectedVantages};
use parallax_protocol::assignment::ScheduleChange;
use parallax_protocol::version::MESH_V2;

use super::*;

async fn change(agent: &mut TestAgent) -> ScheduleChange {
    match agent.hear_of_work().await {
        ToAgent::Schedule(change) => change,
        other => panic!("{other:?}"),
    }
}

fn slots(change: &ScheduleChange) -> Vec<u32> {
    change.put.iter().map(|one| one.slot).collect()
}

#[tokio::test]
async fn an_agent_gets_its_whole_share_and_then_what_changes() {
    let world = TestMesh::start().await;
    world.schedule([monitor(1, 1), monitor(2, 1)]);
    let mut agent = world.connect(&world.member(1).await).await;
    let first = change(&mut agent).await;
    assert_eq!((first.slot_epoch, first.base, slots(&first)), (5, None, vec![1, 2]));
    world.schedule([monitor(1, 1), monitor(2, 2), monitor(3, 1)]);
    let second = change(&mut agent).await;
    assert_eq!((second.base, slots(&second)), (Some(first.revision), vec![2, 3]));
    world.schedule([monitor(1, 1)]);
    let third = change(&mut agent).await;
    assert_eq!((third.base, third.put.len(), third.drop.len()), (Some(second.revision), 0, 2));
}

#[tokio::test]
async fn from_version_two_on_an_assignment_names_its_account_by_a_number_alone() {
    let world = TestMesh::start().await;
    let (one, two) = (AccountId::from_u128(1), AccountId::from_u128(2));
    let of = |slot, account| ScheduledMonitor { account, ..monitor(slot, 1) };
    world.schedule([of(1, one), of(2, two), of(3, one)]);
    let member = world.member(1).await;
    let now = clock(|| NOW.as_millis() / SECOND);
    let offered = [MESH_V2];
    let config = agent_config(&member.credentials, &world.roots, &offered, now, CoordinatorTime::new(None)).unwrap();
    let mut agent = TestAgent::greet(world.dial(config).await.unwrap(), hello(None)).await;
    let ToAgent::ScheduleByAccount { change, accounts } = agent.hear_of_work().await else { panic!() };
    assert_eq!(slots(&change), [1, 2, 3]);
    assert!(accounts[0] == accounts[2] && accounts[0] != accounts[1] && !accounts.contains(&0));
    assert!(!accounts.contains(&1), "the number is no part of the id");
}

#[tokio::test]
async fn an_agent_that_comes_back_with_its_schedule_is_sent_nothing_it_holds() {
    let world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let member = world.member(1).await;
    let mut agent = world.connect(&member).await;
    let held = change(&mut agent).await;
    world.schedule([monitor(1, 1), monitor(2, 1)]);
    let held = ScheduleVersion { slot_epoch: held.slot_epoch, revision: change(&mut agent).await.revision };
    world.schedule([monitor(1, 1), monitor(2, 1), monitor(3, 1)]);
    let missed = change(&mut agent).await.revision;
    let mut stale = world.connect_holding(&member, Some(held)).await;
    assert_eq!(change(&mut stale).await.base, None, "the changes it missed are no longer known");
    let newest = ScheduleVersion { slot_epoch: 5, revision: missed + 1 };
    let mut agent = world.connect_holding(&member, Some(newest)).await;
    agent.say(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    assert!(matches!(agent.hear_of_work().await, ToAgent::Time(_)));
}

#[tokio::test]
async fn an_agent_that_lost_its_schedule_gets_all_of_it() {
    let world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let mut agent = world.connect(&world.member(1).await).await;
    change(&mut agent).await;
    agent.say(&ToCoordinator::ScheduleMismatch { current: None }).await;
    let again = change(&mut agent).await;
    assert_eq!((again.base, slots(&again)), (None, vec![1]));
}

#[tokio::test]
async fn a_second_place_of_the_region_takes_every_other_round_and_gives_them_back() {
    let world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let (one, two) = (world.member(1).await, world.member(2).await);
    let mut first = world.connect(&one).await;
    assert_eq!(change(&mut first).await.put[0].every, 1);
    let mut second = world.connect(&two).await;
    assert_eq!(change(&mut second).await.put[0].every, 2);
    assert_eq!(change(&mut first).await.put[0].every, 2);
    second.connection.close(VarInt::from_u32(0), b"");
    assert_eq!(change(&mut first).await.put[0].every, 1);
}

#[tokio::test]
async fn a_quarantined_place_runs_one_round_in_ten() {
    let world = TestMesh::start().await;
    world.schedule([monitor(1, 1)]);
    let mut agent = world.connect(&world.member(1).await).await;
    change(&mut agent).await;
    let held = [(VantageNo(1), Contradictions::default())].into();
    world.mesh.set_suspects(&SuspectedVantages { quarantined: held, ..SuspectedVantages::default() });
    assert_eq!(change(&mut agent).await.put[0].every, 10);
}
