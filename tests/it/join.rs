//! Joining the mesh: each invalid attempt is refused with a specific reason, and nothing is stored.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use parallax_core::time::Timestamp;
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every, wall_clock};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use parallax_tests::untrusted_peer::{PresentedCertificate, attempt_handshake};
use serde_json::Value;
use tempfile::TempDir;

const MESH: &[u8] = b"parallax/1";

async fn coordinator() -> CoordinatorProcess {
    CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invited_agent_joins_and_is_what_the_invitation_says() {
    let coordinator = coordinator().await;
    let _agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    let members = coordinator.members();
    let fields = |member: &Value| ["name", "region", "network"].map(|field| member[field].clone());
    assert_eq!(members.iter().map(fields).collect::<Vec<_>>(), [["fra1", "europe", "AS64500"].map(Value::from)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused_each_with_its_own_reason_and_nothing_is_stored() {
    let coordinator = coordinator().await;
    let before = coordinator.members();
    let mut reasons = Vec::new();
    for shows in [PresentedCertificate::Absent, PresentedCertificate::SelfSigned, PresentedCertificate::OtherAuthority]
    {
        let refused =
            attempt_handshake(coordinator.ready.mesh, MESH, shows, "spiffe://parallax/agent/agt_stranger").await;
        let reason = refused.expect_err("a stranger is refused");
        eprintln!("{shows:?}: {reason}");
        reasons.push(reason);
    }
    assert!(reasons.iter().all(|reason| !reason.to_lowercase().contains("timed out")), "{reasons:?}");
    let wrong = attempt_handshake(coordinator.ready.mesh, b"something/9", PresentedCertificate::Absent, "urn:x").await;
    assert!(wrong.is_err_and(|reason| !reasons.contains(&reason)), "an unknown protocol has its own reason");
    assert_eq!(coordinator.members(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_once_and_where_it_was_made() {
    let (here, elsewhere) = (coordinator().await, coordinator().await);
    let folder = TempDir::new().unwrap();
    let token = here.invite("one", "europe", "AS64500", &[]).unwrap();
    AgentProcess::new("one", folder.path(), None).join(here.ready.mesh, &token).expect("a fresh token is good");
    let used = refusal(&here, folder.path(), "two", &token);
    assert!(used.contains("used"), "{used}");

    let foreign = elsewhere.invite("three", "asia", "AS64501", &[]).unwrap();
    let foreign = refusal(&here, folder.path(), "three", &foreign);
    let good = here.invite("four", "asia", "AS64501", &[]).unwrap();
    let forged = refusal(&here, folder.path(), "four", &with_another_secret(&good));
    let garbage = refusal(&here, folder.path(), "five", "not-a-token");
    let reasons = BTreeSet::from([used, foreign, forged, garbage]);
    assert_eq!(reasons.len(), 4, "each has a reason of its own: {reasons:?}");

    assert_eq!(names(&here), ["one"], "nobody else is a member");
    assert_eq!(names(&elsewhere), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_in_its_time() {
    let coordinator = coordinator().await;
    let folder = TempDir::new().unwrap();
    // A minute is the shortest lifetime of an invitation.
    let token = coordinator.invite("one", "asia", "AS64501", &["--valid-seconds", "60"]).unwrap();
    let end = wall_clock() + 61_000;
    eventually("the minute is over", Duration::from_secs(70), async || (wall_clock() > end).then_some(())).await;
    let expired = refusal(&coordinator, folder.path(), "one", &token);
    assert!(expired.contains("expired"), "{expired}");
    assert_eq!(names(&coordinator), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_is_good_for_an_hour_is_listed_and_taken_back() {
    let mut coordinator = coordinator().await;
    let folder = TempDir::new().unwrap();
    let token = coordinator.invite("one", "europe", "AS64500", &[]).unwrap();
    let other = coordinator.invite("two", "asia", "AS64501", &["--valid-seconds", "2592000"]).unwrap();
    let listed = |coordinator: &CoordinatorProcess| {
        let list = coordinator.run_command(&["agent", "invitations"]).unwrap();
        list.as_array().unwrap().clone()
    };
    let [one, two] = listed(&coordinator).try_into().unwrap();
    let fields = |it: &Value| ["name", "region", "network", "status"].map(|field| it[field].clone());
    assert_eq!(fields(&one), ["one", "europe", "AS64500", "open"].map(Value::from));
    assert_eq!((life(&one), life(&two)), (3_600, 2_592_000));
    assert!(!format!("{one}{two}").contains(&token), "a token is shown once");

    let id = one["id"].as_str().unwrap();
    let revoked = coordinator.run_command(&["agent", "revoke-invitation", id]).unwrap();
    assert_eq!(revoked["status"], "revoked");
    assert_eq!(listed(&coordinator)[0]["status"], "revoked");
    let refused = refusal(&coordinator, folder.path(), "one", &token);
    assert!(refused.contains("join token revoked"), "{refused}");
    assert_eq!(names(&coordinator), [""; 0]);

    AgentProcess::new("two", folder.path(), None).join(coordinator.ready.mesh, &other).expect("the other is good");
    assert_eq!(listed(&coordinator)[1]["status"], "used");
    let fault = coordinator.run_command(&["agent", "revoke-invitation", "two"]).unwrap_err();
    assert!(fault.contains("no invitation has the name or id"), "{fault}");

    // The same commands on the store of a stopped coordinator.
    coordinator.process.terminate();
    coordinator.process.wait_for_exit(Duration::from_secs(60)).await;
    coordinator.invite("three", "asia", "AS64501", &[]).unwrap();
    let revoked = coordinator.run_command(&["agent", "revoke-invitation", "three"]).unwrap();
    assert_eq!(revoked["status"], "revoked");
    assert_eq!(listed(&coordinator).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_never_have_one_name() {
    let coordinator = coordinator().await;
    let folder = TempDir::new().unwrap();
    let refused = |name: &str| coordinator.invite(name, "europe", "AS64500", &[]).unwrap_err();
    let token = coordinator.invite("fra1", "europe", "AS64500", &[]).unwrap();
    let fault = refused("FRA 1");
    assert!(fault.contains("in use by the open invitation inv_"), "{fault}");
    AgentProcess::new("one", folder.path(), None).join(coordinator.ready.mesh, &token).unwrap();
    let fault = refused("Fra1");
    assert!(fault.contains("in use by the agent agt_"), "{fault}");
    coordinator.run_command(&["agent", "revoke", "fra1"]).unwrap();
    assert!(refused("fra1").contains("parallax agent forget agt_"));
    coordinator.run_command(&["agent", "forget", "fra1"]).unwrap();
    let token = coordinator.invite("fra1", "europe", "AS64500", &[]).unwrap();
    AgentProcess::new("two", folder.path(), None).join(coordinator.ready.mesh, &token).expect("the name is free again");
    assert_eq!(names(&coordinator), ["fra1"]);
}

/// Returns the seconds from an invitation's creation to its expiry.
fn life(invitation: &Value) -> i64 {
    let moment = |field: &str| Timestamp::parse_iso(invitation[field].as_str().unwrap()).unwrap().as_millis();
    (moment("expiresAt") - moment("createdAt")) / 1000
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_agent_is_sent_away_and_stays_away() {
    let coordinator = coordinator().await;
    let mut agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    coordinator.run_command(&["agent", "revoke", "fra1"]).unwrap();
    agent.process().wait_for_log("revoked", Duration::from_secs(10)).await;
    eventually_every(API_PERIOD, "nobody is connected", Duration::from_secs(10), async || {
        coordinator.members().iter().all(|member| member["connected"] != true).then_some(())
    })
    .await;
}

/// Returns the last output line of an agent whose token is refused. The agent must store nothing of the attempt.
fn refusal(coordinator: &CoordinatorProcess, folder: &Path, name: &str, token: &str) -> String {
    let agent = AgentProcess::new(name, folder, None);
    let said = agent.join(coordinator.ready.mesh, token).expect_err("the token is refused").to_lowercase();
    let left = std::fs::read_dir(agent.data()).into_iter().flatten().flatten();
    let kept: Vec<String> = left.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    assert!(!kept.iter().any(|file| file.contains("cert") || file.contains("key")), "{name} kept {kept:?}");
    said.lines().next_back().unwrap_or_default().to_owned()
}

/// Returns the names of the agents, without open invitations.
fn names(coordinator: &CoordinatorProcess) -> Vec<String> {
    let members = coordinator.members();
    let joined = members.iter().filter(|member| member["status"] != "invited");
    joined.map(|member| member["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Returns the token with one character changed in its secret, the second of its three parts.
fn with_another_secret(token: &str) -> String {
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let last = parts[1].pop().unwrap();
    parts[1].push(if last == '0' { '1' } else { '0' });
    parts.join(".")
}
