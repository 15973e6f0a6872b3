//! Members' records in a store: joining, revoking, and one spelling per network.

use parallax_core::id::{AgentId, InvitationId};
use parallax_core::member::{CertificateId, Invitation};
use parallax_core::time::{DAY, Timestamp};
use parallax_core::vantage::Region;

use super::*;
use crate::MemberRecords;

fn roll() -> MemberStore {
    roll_in(Store::in_memory().unwrap(), Clock::manual(Timestamp::from_millis(1_800_000_000_000)))
}

/// Records with an authority whose files are deleted at once.
pub(crate) fn roll_in(store: Store, clock: Clock) -> MemberStore {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    parallax_certs::files::ensure_private_folder(&data).unwrap();
    let authorities = AuthorityStore::open(&data, clock.now().as_millis() / 1_000).unwrap();
    MemberStore::new(store, clock, authorities)
}

fn certificate(number: u8) -> CertificateId {
    CertificateId { serial: vec![number], valid_from: i64::from(number) }
}

fn wish(name: &str, network: &str) -> InviteRequest {
    InviteRequest {
        name: name.to_owned(),
        region: Region::Europe,
        network: network.to_owned(),
        lifetime: INVITATION_LIFE,
    }
}

async fn join(roll: &MemberStore, invitation: InvitationId) -> Result<AgentRecord, EnrolError> {
    let now = roll.clock.now();
    let newcomer = NewAgent { id: AgentId::new(now, rand::random()), joined_at: now, certificate: certificate(1) };
    MemberRecords::enrol(roll, invitation, newcomer).await.unwrap()
}

async fn enrol(roll: &MemberStore, name: &str, network: &str) -> AgentRecord {
    let (invitation, _) = roll.invite(wish(name, network)).await.unwrap();
    join(roll, invitation.id).await.unwrap()
}

#[tokio::test]
async fn spellings_of_one_network_are_one_network() {
    let roll = roll();
    let first = enrol(&roll, "a", "AS24940").await;
    for (n, spelling) in ["as24940", " As 24940 ", "AS24940", " 24940"].into_iter().enumerate() {
        assert_eq!(enrol(&roll, &n.to_string(), spelling).await.network_no, first.network_no, "{spelling}");
    }
    let named = enrol(&roll, "b", "Example Networks").await;
    assert_ne!(named.network_no, first.network_no);
    assert_eq!(enrol(&roll, "c", "example  networks").await.network_no, named.network_no);
}

#[tokio::test]
async fn an_invitation_makes_one_agent_and_a_place_has_one_number() {
    let roll = roll();
    let (one, two) = tokio::join!(enrol(&roll, "a", "AS1"), enrol(&roll, "b", "AS2"));
    assert_ne!(one.vantage_no, two.vantage_no);
    let used = roll.invitations().await.unwrap().remove(0);
    assert_eq!(join(&roll, used.id).await, Err(EnrolError::Used));
}

#[tokio::test]
async fn a_name_that_several_bear_must_be_an_id() {
    let roll = roll();
    let agent = enrol(&roll, "fra1", "AS1").await;
    // Two agents of one name come from a version that allowed it.
    let twin = AgentRecord { id: AgentId::from_u128(9), vantage_no: VantageNo(9), ..agent.clone() };
    let mut batch = Batch::new();
    batch.write(twin);
    roll.store.commit(batch).await.unwrap();
    assert!(matches!(roll.revoke("fra1").await, Err(MemberError::Ambiguous(_))));
    assert!(matches!(roll.revoke("nobody").await, Err(MemberError::UnknownAgent(_))));
    let revoked = roll.remove(&agent.id.to_string()).await.unwrap();
    assert!(revoked.revoked_at.is_some());
    assert_eq!(roll.agents().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_agent_is_found_by_its_name_in_any_case() {
    let roll = roll();
    let agent = enrol(&roll, "fra1", "AS1").await;
    assert_eq!(roll.revoke("FRA 1").await.unwrap().id, agent.id);
    // Two names that differ only in case come from an older version: the exact name decides.
    let twin =
        AgentRecord { id: AgentId::from_u128(9), vantage_no: VantageNo(9), name: "Fra1".to_owned(), ..agent.clone() };
    let mut batch = Batch::new();
    batch.write(twin.clone());
    roll.store.commit(batch).await.unwrap();
    assert_eq!(roll.revoke("fra1").await.unwrap().id, agent.id);
    assert_eq!(roll.revoke("Fra1").await.unwrap().id, twin.id);
    assert!(matches!(roll.revoke("FRA1").await, Err(MemberError::Ambiguous(_))));
}

#[tokio::test]
async fn a_name_is_one_agents_or_one_open_invitations_until_it_is_free_again() {
    let roll = roll();
    let refused = async |name: &str| match roll.invite(wish(name, "AS1")).await {
        Err(MemberError::NameInUse { by, .. }) => by,
        other => panic!("{name}: {other:?}"),
    };
    let agent = enrol(&roll, "fra1", "AS1").await;
    for spelling in ["fra1", "FRA1", " fra 1 "] {
        let by = refused(spelling).await;
        assert!(by.contains(&format!("parallax agent forget {}", agent.id)), "{spelling}: {by}");
    }
    roll.revoke("fra1").await.unwrap();
    refused("fra1").await;
    roll.remove("fra1").await.unwrap();
    let (invitation, _) = roll.invite(wish("fra1", "AS1")).await.unwrap();
    let by = refused("Fra1").await;
    assert!(by.contains(&format!("revoke-invitation {}", invitation.id)), "{by}");
    roll.revoke_invitation("FRA1").await.unwrap();
    enrol(&roll, "fra1", "AS1").await;
}

#[tokio::test]
async fn a_revoked_invitation_makes_no_agent_and_a_used_one_is_not_revoked() {
    let roll = roll();
    let (one, _) = roll.invite(wish("one", "AS1")).await.unwrap();
    let (two, _) = roll.invite(wish("two", "AS1")).await.unwrap();
    assert!(roll.revoke_invitation(&one.id.to_string()).await.unwrap().revoked_at.is_some());
    assert_eq!(join(&roll, one.id).await, Err(EnrolError::Revoked));
    join(&roll, two.id).await.unwrap();
    let used = roll.revoke_invitation(&two.id.to_string()).await;
    assert!(matches!(used, Err(MemberError::InvitationUsed(_))), "{used:?}");
    let unknown = roll.revoke_invitation("three").await;
    assert!(matches!(unknown, Err(MemberError::UnknownInvitation(_))), "{unknown:?}");
}

#[tokio::test]
async fn an_agent_never_joins_under_a_name_that_another_got_meanwhile() {
    let roll = roll();
    let (late, _) = roll.invite(wish("fra1", "AS1")).await.unwrap();
    let other = AgentRecord { id: AgentId::from_u128(9), name: "FRA 1".to_owned(), ..enrol(&roll, "x", "AS1").await };
    let mut batch = Batch::new();
    batch.write(other);
    roll.store.commit(batch).await.unwrap();
    assert_eq!(join(&roll, late.id).await, Err(EnrolError::NameTaken));
}

#[tokio::test]
async fn invitations_are_bounded_and_forgotten_a_day_after_their_end() {
    let clock = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
    let roll = roll_in(Store::in_memory().unwrap(), clock.clone());
    let (first, _) = roll.invite(wish("first", "AS1")).await.unwrap();
    let mut batch = Batch::new();
    for n in 0..998 {
        let id = InvitationId::from_u128(n);
        batch.write(Invitation { id, name: format!("n{n}"), ..first.clone() });
    }
    roll.store.commit(batch).await.unwrap();
    roll.invite(wish("last", "AS1")).await.unwrap();
    let over = roll.invite(wish("over", "AS1")).await;
    assert!(matches!(over, Err(MemberError::TooManyInvitations)), "{over:?}");
    clock.set(first.expires_at);
    roll.invite(wish("first", "AS1")).await.unwrap();
    assert_eq!(roll.invitations().await.unwrap().len(), 1001, "an expired one is kept for a day");
    clock.set(first.expires_at + DAY);
    roll.remove_old_invitations().await.unwrap();
    assert_eq!(roll.invitations().await.unwrap().len(), 1);
}

#[tokio::test]
async fn agents_that_a_restore_brings_back_are_revoked_and_forgotten_again() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
    let open = |store: &Store| {
        let revocations = Revocations::open(folder.path()).unwrap();
        roll_in(store.clone(), clock.clone()).with_revocations(revocations)
    };
    let store = Store::in_memory().unwrap();
    let before = open(&store);
    let agents = [enrol(&before, "a", "AS1").await, enrol(&before, "b", "AS1").await, enrol(&before, "c", "AS1").await];
    before.revoke("a").await.unwrap();
    before.remove("b").await.unwrap();

    // As restored from an earlier snapshot.
    let restored = Store::in_memory().unwrap();
    for agent in &agents {
        let mut batch = Batch::new();
        batch.expect(Expect::Agent(agent.id, Presence::Absent)).write(agent.clone());
        restored.commit(batch).await.unwrap();
    }
    let after = open(&restored);
    assert_eq!(after.reapply_revocations().await.unwrap(), ["a", "b"]);
    let left = after.agents().await.unwrap();
    let left: Vec<_> = left.iter().map(|agent| (agent.name.as_str(), agent.revoked_at.is_some())).collect();
    assert_eq!(left, [("a", true), ("c", false)]);
    assert!(after.reapply_revocations().await.unwrap().is_empty(), "once");
    let mut removed = Vec::new();
    for agent in &agents {
        removed.push(MemberRecords::is_removed(&after, agent.id).await);
    }
    assert_eq!(removed, [true, true, false]);
    assert!(!MemberRecords::is_removed(&after, AgentId::from_u128(7)).await, "one that joined since then");
}

#[tokio::test]
async fn agents_revoked_before_there_was_a_file_are_noted_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let roll = roll();
    enrol(&roll, "a", "AS1").await;
    roll.revoke("a").await.unwrap();
    let roll = roll.with_revocations(Revocations::open(folder.path()).unwrap());
    assert!(roll.reapply_revocations().await.unwrap().is_empty());
    let text = std::fs::read_to_string(folder.path().join("revoked-agents")).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains(" revoked "), "{text}");
}

#[tokio::test]
async fn open_invitations_of_a_restored_store_have_ended() {
    let roll = roll();
    enrol(&roll, "used", "AS1").await;
    roll.invite(wish("open", "AS1")).await.unwrap();
    assert_eq!(roll.expire_invitations().await.unwrap(), 1);
    assert_eq!(roll.expire_invitations().await.unwrap(), 0);
    roll.invite(wish("later", "AS1")).await.unwrap();
    let now = roll.clock.now();
    let good: Vec<_> = roll.invitations().await.unwrap();
    let good: Vec<_> = good.iter().filter(|one| one.used_by.is_none() && one.expires_at > now).collect();
    assert_eq!(good.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["later"]);
}
