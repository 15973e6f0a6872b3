//! Two hosts with one identity, with the real binaries: detected, excluded, reported once, and no result counted
//! twice.

use std::collections::BTreeSet;
use std::time::Duration;

use parallax_core::event::EventKind;
use parallax_tests::eventually::{eventually, holds, print_figure, print_note};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::test_target::TestTarget;
use serde_json::Value;
use tempfile::TempDir;

use crate::agent_identity::{STATUS_POLL, coordinator, member};

/// Copies an agent's disk for another host. Deleted with the folder.
fn copy_of(agent: &AgentProcess, folder: &TempDir) -> AgentProcess {
    let copy = AgentProcess::new("fra1", folder.path(), None);
    std::fs::create_dir(copy.data()).unwrap();
    let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(copy.data(), owner_only).unwrap();
    for file in ["credentials.pem", "authorities.pem", "agent.json"] {
        std::fs::copy(agent.data().join(file), copy.data().join(file)).unwrap();
    }
    copy
}

/// Waits until an agent's identity is reported as used by two hosts.
async fn found_shared(coordinator: &CoordinatorProcess) -> Value {
    let begun = std::time::Instant::now();
    let found = eventually("the pair is found", Duration::from_secs(120), async || {
        Some(member(coordinator, "fra1")).filter(|member| member["shared"] == true)
    })
    .await;
    print_figure("a copied agent is found", begun.elapsed(), Duration::from_secs(120));
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_agent_is_found_set_aside_and_told_of_once_also_over_a_restart() {
    let mut coordinator = coordinator("").await;
    let agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    let folder = TempDir::new().unwrap();
    let mut copy = copy_of(&agent, &folder);
    copy.run();
    let found = found_shared(&coordinator).await;
    assert_eq!(found["quarantined"], true);
    assert!(found["note"].as_str().is_some_and(|note| note.contains("two hosts")), "{found}");
    coordinator.process.wait_for_log("two hosts share one identity", Duration::from_secs(10)).await;
    let told = |log: String| log.matches("two hosts share one identity").count();
    assert_eq!(told(coordinator.process.log()), 1, "told once");
    // The finding is stored: after a restart it is still in effect, and is not reported again.
    copy.process().kill();
    coordinator.process.kill();
    coordinator.restart().await;
    let after = member(&coordinator, "fra1");
    assert_eq!((&after["shared"], &after["quarantined"]), (&Value::Bool(true), &Value::Bool(true)));
    // Once revoked, neither copy can connect.
    copy.run();
    coordinator.run_command(&["agent", "revoke", "fra1"]).unwrap();
    copy.process().wait_for_log("revoked", Duration::from_secs(40)).await;
    assert_eq!(member(&coordinator, "fra1")["connected"], false);
    coordinator.process.kill();
    let journal = StoredJournal::read(&coordinator.data()).await;
    let found = journal.events.iter().filter(|one| matches!(one.event.kind, EventKind::QuarantineChanged(_, true, _)));
    assert_eq!(found.count(), 1, "one event for the operator");
}

/// Two copies of one identity replace each other's connection for `span`, next to another agent of the region.
async fn a_pair_counts_nothing_twice(span: Duration) {
    let mut coordinator = coordinator("[plans.pro]\ninterval_seconds = 5\n").await;
    let agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    let _beside = coordinator.start_agent("fra2", "europe", "AS64501", None);
    coordinator.wait_for_agents(2).await;
    let account = coordinator.create_account("pro");
    let target = TestTarget::start().await;
    for number in 0..12 {
        let body = serde_json::json!({"name": format!("m{number}"), "url": target.url()});
        account.client.create_monitor(&account.page, &body).await;
    }
    let folder = TempDir::new().unwrap();
    let mut copy = copy_of(&agent, &folder);
    copy.run();
    found_shared(&coordinator).await;
    holds(STATUS_POLL, span, async || {
        let member = member(&coordinator, "fra1");
        // While the copies alternate, the agent stays excluded; for a moment neither may be connected.
        if member["shared"] == true { Ok(()) } else { Err(format!("let out: {member}")) }
    })
    .await;
    let newest = std::time::Instant::now();
    drop(agent);
    eventually("the one that is left has the place", Duration::from_secs(60), async || {
        (copy.status()?["connected"] == true && member(&coordinator, "fra1")["connected"] == true).then_some(())
    })
    .await;
    print_figure("the one that is left has the place", newest.elapsed(), Duration::from_secs(60));
    coordinator.process.kill();
    let journal = StoredJournal::read(&coordinator.data()).await;
    let found = journal.events.iter().filter(|one| matches!(one.event.kind, EventKind::QuarantineChanged(_, true, _)));
    assert_eq!(found.count(), 1, "one event for the operator");
    journal.check().unwrap();
    print_note(&format!("{} readings, none twice", count_unique_readings(&journal)));
}

/// Counts the readings, and checks that no round of a monitor in a region counts twice.
pub(crate) fn count_unique_readings(journal: &StoredJournal) -> usize {
    let mut rounds = BTreeSet::new();
    for reading in &journal.readings {
        assert!(rounds.insert((reading.slot, reading.region, reading.round)), "twice: {reading:?}");
    }
    assert!(!rounds.is_empty());
    rounds.len()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it ten_minutes -- --ignored`"]
async fn two_hosts_with_one_identity_for_ten_minutes_count_nothing_twice_and_are_told_of_once() {
    a_pair_counts_nothing_twice(Duration::from_secs(600)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_with_one_identity_count_nothing_twice() {
    a_pair_counts_nothing_twice(Duration::from_secs(20)).await;
}
