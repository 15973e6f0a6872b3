//! Members' records in a store: joining, revoking, and one spelling per network.

use parallax_core::id::{AgentId, InvitationId};
use parallax_core::member::{CertificateId, Invitation};
use parallax_core::time::{DAY, Timestamp};
use parallax_core::vantage::Region;

use super::*;
use crate::MemberRecords;

fn member_store() -> MemberStore {
    member_store_over(Store::in_memory().unwrap(), Clock::manual(Timestamp::from_millis(1_800_000_000_000)))
}

/// Records with an authority whose files are deleted at once.
pub(crate) fn member_store_over(store: Store, clock: Clock) -> MemberStore {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    parallax_certs::files::ensure_private_folder(&data).unwrap();
    let authorities = AuthorityStore::open(&data, clock.now().as_millis() / 1_000).unwrap();
    MemberStore::new(store, clock, authorities)
}

fn certificate(number: u8) -> CertificateId {
    CertificateId { serial: vec![number], valid_from: i64::from(number) }
}

fn invite_request(name: &str, network: &str) -> InviteRequest {
    InviteRequest {
        name: name.to_owned(),
        region: Region::Europe,
        network: network.to_owned(),
        lifetime: INVITATION_LIFE,
    }
}

async fn join(members: &MemberStore, invitation: InvitationId) -> Result<AgentRecord, EnrolError> {
    let now = members.clock.now();
    let new_agent = NewAgent { id: AgentId::new(now, rand::random()), joined_at: now, certificate: certificate(1) };
    MemberRecords::enrol(members, invitation, new_agent).await.unwrap()
}

async fn enrol(members: &MemberStore, name: &str, network: &str) -> AgentRecord {
    let (invitation, _) = members.invite(invite_request(name, network)).await.unwrap();
    join(members, invitation.id).await.unwrap()
}

#[tokio::test]
async fn spellings_of_one_network_are_one_network() {
    let members = member_store();
    let first = enrol(&members, "a", "AS24940").await;
    for (n, spelling) in ["as24940", " As 24940 ", "AS24940", " 24940"].into_iter().enumerate() {
        assert_eq!(enrol(&members, &n.to_string(), spelling).await.network_no, first.network_no, "{spelling}");
    }
    let named = enrol(&members, "b", "Example Networks").await;
    assert_ne!(named.network_no, first.network_no);
    assert_eq!(enrol(&members, "c", "example  networks").await.network_no, named.network_no);
}

#[tokio::test]
async fn an_invitation_creates_one_agent_and_vantage_numbers_are_unique() {
    let members = member_store();
    let (one, two) = tokio::join!(enrol(&members, "a", "AS1"), enrol(&members, "b", "AS2"));
    assert_ne!(one.vantage_no, two.vantage_no);
    let used = members.invitations().await.unwrap().remove(0);
    assert_eq!(join(&members, used.id).await, Err(EnrolError::Used));
}

#[tokio::test]
async fn an_ambiguous_name_requires_an_id() {
    let members = member_store();
    let agent = enrol(&members, "fra1", "AS1").await;
    // Older versions allowed two agents with the same name.
    let duplicate = AgentRecord { id: AgentId::from_u128(9), vantage_no: VantageNo(9), ..agent.clone() };
    let mut batch = Batch::new();
    batch.write(duplicate);
    members.store.commit(batch).await.unwrap();
    assert!(matches!(members.revoke("fra1").await, Err(MemberError::Ambiguous(_))));
    assert!(matches!(members.revoke("nobody").await, Err(MemberError::UnknownAgent(_))));
    let revoked = members.remove(&agent.id.to_string()).await.unwrap();
    assert!(revoked.revoked_at.is_some());
    assert_eq!(members.agents().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_agent_is_found_by_its_name_in_any_case() {
    let members = member_store();
    let agent = enrol(&members, "fra1", "AS1").await;
    assert_eq!(members.revoke("FRA 1").await.unwrap().id, agent.id);
    // Older versions allowed names that differ only in case: the exact name decides.
    let duplicate =
        AgentRecord { id: AgentId::from_u128(9), vantage_no: VantageNo(9), name: "Fra1".to_owned(), ..agent.clone() };
    let mut batch = Batch::new();
    batch.write(duplicate.clone());
    members.store.commit(batch).await.unwrap();
    assert_eq!(members.revoke("fra1").await.unwrap().id, agent.id);
    assert_eq!(members.revoke("Fra1").await.unwrap().id, duplicate.id);
    assert!(matches!(members.revoke("FRA1").await, Err(MemberError::Ambiguous(_))));
}

#[tokio::test]
async fn a_name_is_unique_among_agents_and_open_invitations() {
    let members = member_store();
    let refused = async |name: &str| match members.invite(invite_request(name, "AS1")).await {
        Err(MemberError::NameInUse { by, .. }) => by,
        other => panic!("{name}: {other:?}"),
    };
    let agent = enrol(&members, "fra1", "AS1").await;
    for spelling in ["fra1", "FRA1", " fra 1 "] {
        let by = refused(spelling).await;
        assert!(by.contains(&format!("parallax agent forget {}", agent.id)), "{spelling}: {by}");
    }
    members.revoke("fra1").await.unwrap();
    refused("fra1").await;
    members.remove("fra1").await.unwrap();
    let (invitation, _) = members.invite(invite_request("fra1", "AS1")).await.unwrap();
    let by = refused("Fra1").await;
    assert!(by.contains(&format!("revoke-invitation {}", invitation.id)), "{by}");
    members.revoke_invitation("FRA1").await.unwrap();
    enrol(&members, "fra1", "AS1").await;
}

#[tokio::test]
async fn a_revoked_invitation_creates_no_agent_and_a_used_one_cannot_be_revoked() {
    let members = member_store();
    let (one, _) = members.invite(invite_request("one", "AS1")).await.unwrap();
    let (two, _) = members.invite(invite_request("two", "AS1")).await.unwrap();
    assert!(members.revoke_invitation(&one.id.to_string()).await.unwrap().revoked_at.is_some());
    assert_eq!(join(&members, one.id).await, Err(EnrolError::Revoked));
    join(&members, two.id).await.unwrap();
    let used = members.revoke_invitation(&two.id.to_string()).await;
    assert!(matches!(used, Err(MemberError::InvitationUsed(_))), "{used:?}");
    let unknown = members.revoke_invitation("three").await;
    assert!(matches!(unknown, Err(MemberError::UnknownInvitation(_))), "{unknown:?}");
}

#[tokio::test]
async fn an_agent_cannot_join_under_a_name_taken_meanwhile() {
    let members = member_store();
    let (invitation, _) = members.invite(invite_request("fra1", "AS1")).await.unwrap();
    let other =
        AgentRecord { id: AgentId::from_u128(9), name: "FRA 1".to_owned(), ..enrol(&members, "x", "AS1").await };
    let mut batch = Batch::new();
    batch.write(other);
    members.store.commit(batch).await.unwrap();
    assert_eq!(join(&members, invitation.id).await, Err(EnrolError::NameTaken));
}

#[tokio::test]
async fn invitations_are_bounded_and_deleted_a_day_after_expiry() {
    let clock = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
    let members = member_store_over(Store::in_memory().unwrap(), clock.clone());
    let (first, _) = members.invite(invite_request("first", "AS1")).await.unwrap();
    let mut batch = Batch::new();
    for n in 0..998 {
        let id = InvitationId::from_u128(n);
        batch.write(Invitation { id, name: format!("n{n}"), ..first.clone() });
    }
    members.store.commit(batch).await.unwrap();
    members.invite(invite_request("last", "AS1")).await.unwrap();
    let beyond_limit = members.invite(invite_request("over", "AS1")).await;
    assert!(matches!(beyond_limit, Err(MemberError::TooManyInvitations)), "{beyond_limit:?}");
    clock.set(first.expires_at);
    members.invite(invite_request("first", "AS1")).await.unwrap();
    assert_eq!(members.invitations().await.unwrap().len(), 1001, "an expired one is kept for a day");
    clock.set(first.expires_at + DAY);
    members.remove_old_invitations().await.unwrap();
    assert_eq!(members.invitations().await.unwrap().len(), 1);
}

#[tokio::test]
async fn agents_reinstated_by_a_restore_are_revoked_and_removed_again() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
    let open = |store: &Store| {
        let revocations = Revocations::open(folder.path()).unwrap();
        member_store_over(store.clone(), clock.clone()).with_revocations(revocations)
    };
    let store = Store::in_memory().unwrap();
    let original = open(&store);
    let agents =
        [enrol(&original, "a", "AS1").await, enrol(&original, "b", "AS1").await, enrol(&original, "c", "AS1").await];
    original.revoke("a").await.unwrap();
    original.remove("b").await.unwrap();

    // As restored from an earlier snapshot.
    let restored = Store::in_memory().unwrap();
    for agent in &agents {
        let mut batch = Batch::new();
        batch.expect(Expect::Agent(agent.id, Presence::Absent)).write(agent.clone());
        restored.commit(batch).await.unwrap();
    }
    let reopened = open(&restored);
    assert_eq!(reopened.reapply_revocations().await.unwrap(), ["a", "b"]);
    let remaining = reopened.agents().await.unwrap();
    let remaining: Vec<_> = remaining.iter().map(|agent| (agent.name.as_str(), agent.revoked_at.is_some())).collect();
    assert_eq!(remaining, [("a", true), ("c", false)]);
    assert!(reopened.reapply_revocations().await.unwrap().is_empty(), "once");
    let mut removed = Vec::new();
    for agent in &agents {
        removed.push(MemberRecords::is_removed(&reopened, agent.id).await);
    }
    assert_eq!(removed, [true, true, false]);
    assert!(!MemberRecords::is_removed(&reopened, AgentId::from_u128(7)).await, "one that joined since then");
}

#[tokio::test]
async fn agents_revoked_before_the_file_existed_are_recorded_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let members = member_store();
    enrol(&members, "a", "AS1").await;
    members.revoke("a").await.unwrap();
    let members = members.with_revocations(Revocations::open(folder.path()).unwrap());
    assert!(members.reapply_revocations().await.unwrap().is_empty());
    let text = std::fs::read_to_string(folder.path().join("revoked-agents")).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains(" revoked "), "{text}");
}

#[tokio::test]
async fn open_invitations_of_a_restored_store_are_expired() {
    let members = member_store();
    enrol(&members, "used", "AS1").await;
    members.invite(invite_request("open", "AS1")).await.unwrap();
    assert_eq!(members.expire_invitations().await.unwrap(), 1);
    assert_eq!(members.expire_invitations().await.unwrap(), 0);
    members.invite(invite_request("later", "AS1")).await.unwrap();
    let now = members.clock.now();
    let good: Vec<_> = members.invitations().await.unwrap();
    let good: Vec<_> = good.iter().filter(|one| one.used_by.is_none() && one.expires_at > now).collect();
    assert_eq!(good.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["later"]);
}
