//! Members' records over a store: joining, leaving, and one spelling for one network.

use parallax_core::id::AgentId;
use parallax_core::member::Certificate;

use super::*;
use crate::mesh::Members;

fn roll() -> Roll {
    roll_in(Store::in_memory().unwrap(), Clock::by_hand(Timestamp::from_millis(1_800_000_000_000)))
}

/// Records with an authority that no file holds for long.
pub(crate) fn roll_in(store: Store, clock: Clock) -> Roll {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    parallax_certs::files::private_folder(&data).unwrap();
    let authorities = Authorities::open(&data, clock.now().as_millis() / 1_000).unwrap();
    Roll::new(store, clock, authorities)
}

fn certificate(number: u8) -> Certificate {
    Certificate { serial: vec![number], valid_from: i64::from(number) }
}

async fn enrol(roll: &Roll, network: &str) -> Agent {
    enrol_in(roll, "fra1", network).await
}

async fn enrol_as(roll: &Roll, name: &str) -> Agent {
    enrol_in(roll, name, "AS1").await
}

async fn enrol_in(roll: &Roll, name: &str, network: &str) -> Agent {
    let wish = Wish {
        name: name.to_owned(),
        region: Region::Europe,
        network: network.to_owned(),
        life: INVITATION_LIFE,
    };
    let (invitation, _) = roll.invite(wish).await.unwrap();
    let now = roll.clock.now();
    let newcomer =
        Newcomer { id: AgentId::new(now, rand::random()), joined_at: now, certificate: certificate(1) };
    Members::enrol(roll, invitation.id, newcomer).await.unwrap().unwrap()
}

#[tokio::test]
async fn spellings_of_one_network_are_one_network() {
    let roll = roll();
    let first = enrol(&roll, "AS24940").await;
    for spelling in ["as24940", " As 24940 ", "AS24940", " 24940"] {
        assert_eq!(enrol(&roll, spelling).await.network_no, first.network_no, "{spelling}");
    }
    let named = enrol(&roll, "Example Networks").await;
    assert_ne!(named.network_no, first.network_no);
    assert_eq!(enrol(&roll, "example  networks").await.network_no, named.network_no);
}

#[tokio::test]
async fn an_invitation_makes_one_agent_and_a_place_has_one_number() {
    let roll = roll();
    let (one, two) = tokio::join!(enrol(&roll, "AS1"), enrol(&roll, "AS2"));
    assert_ne!(one.place, two.place);
    let used = roll.invitations().await.unwrap().remove(0);
    let newcomer = Newcomer { id: one.id, joined_at: roll.clock.now(), certificate: certificate(2) };
    assert_eq!(Members::enrol(&roll, used.id, newcomer).await, Ok(None));
}

#[tokio::test]
async fn a_name_that_several_bear_must_be_an_id() {
    let roll = roll();
    let agent = enrol(&roll, "AS1").await;
    enrol(&roll, "AS2").await;
    assert!(matches!(roll.revoke("fra1").await, Err(MemberError::Ambiguous(_))));
    assert!(matches!(roll.revoke("nobody").await, Err(MemberError::Unknown(_))));
    let revoked = roll.forget(&agent.id.to_string()).await.unwrap();
    assert!(revoked.revoked_at.is_some());
    assert_eq!(roll.agents().await.unwrap().len(), 1);
}

#[tokio::test]
async fn agents_that_a_restore_brings_back_are_revoked_and_forgotten_again() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::by_hand(Timestamp::from_millis(1_800_000_000_000));
    let open = |store: &Store| {
        let revocations = Revocations::open(folder.path()).unwrap();
        roll_in(store.clone(), clock.clone()).with_revocations(revocations)
    };
    let store = Store::in_memory().unwrap();
    let before = open(&store);
    let agents = [enrol_as(&before, "a").await, enrol_as(&before, "b").await, enrol_as(&before, "c").await];
    before.revoke("a").await.unwrap();
    before.forget("b").await.unwrap();

    // As a snapshot from before has it.
    let restored = Store::in_memory().unwrap();
    for agent in &agents {
        let mut batch = Batch::new();
        batch.expect(Expect::Agent(agent.id, Is::Absent)).write(agent.clone());
        restored.commit(batch).await.unwrap();
    }
    let after = open(&restored);
    assert_eq!(after.repeat_revocations().await.unwrap(), ["a", "b"]);
    let left = after.agents().await.unwrap();
    let left: Vec<_> = left.iter().map(|agent| (agent.name.as_str(), agent.revoked_at.is_some())).collect();
    assert_eq!(left, [("a", true), ("c", false)]);
    assert!(after.repeat_revocations().await.unwrap().is_empty(), "once");
}

#[tokio::test]
async fn agents_revoked_before_there_was_a_file_are_noted_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let roll = roll();
    enrol_as(&roll, "a").await;
    roll.revoke("a").await.unwrap();
    let roll = roll.with_revocations(Revocations::open(folder.path()).unwrap());
    assert!(roll.repeat_revocations().await.unwrap().is_empty());
    let text = std::fs::read_to_string(folder.path().join("revoked-agents")).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains(" revoked "), "{text}");
}

#[tokio::test]
async fn open_invitations_of_a_restored_store_have_ended() {
    let roll = roll();
    let wish = |name: &str| Wish {
        name: name.to_owned(),
        region: Region::Europe,
        network: "AS1".to_owned(),
        life: INVITATION_LIFE,
    };
    enrol_as(&roll, "used").await;
    roll.invite(wish("open")).await.unwrap();
    assert_eq!(roll.expire_invitations().await.unwrap(), 1);
    assert_eq!(roll.expire_invitations().await.unwrap(), 0);
    roll.invite(wish("later")).await.unwrap();
    let now = roll.clock.now();
    let good: Vec<_> = roll.invitations().await.unwrap();
    let good: Vec<_> = good.iter().filter(|one| one.used_by.is_none() && one.expires_at > now).collect();
    assert_eq!(good.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["later"]);
}
