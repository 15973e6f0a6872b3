//! Revoked, forgotten and expired agents, with the real binaries: they stop, no customer data stays on their disk, and
//! no restore reinstates them.

use std::path::Path;
use std::time::Duration;

use parallax_tests::eventually::{eventually, holds, print_figure};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::test_target::TestTarget;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent_identity::{coordinator, member};

/// Longest wait for quick operations.
const SOON: Duration = Duration::from_secs(60);
/// Period without requests to a target: several rounds.
const SILENCE: Duration = Duration::from_secs(16);
/// Exit code of an agent that is no longer a member.
const DEPARTED: i32 = 4;
/// Interval of five seconds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 5\n";
/// A customer's header that must not stay on an agent's disk.
const SECRET: &str = "hunter2-hunter2-hunter2";

/// A coordinator, an agent, and a monitor with a secret that it checks.
struct Scene {
    target: TestTarget,
    monitor: Value,
    account: TestAccount,
    agent: AgentProcess,
    coordinator: CoordinatorProcess,
}

impl Scene {
    async fn set(config: &str) -> Self {
        let coordinator = coordinator(config).await;
        let agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
        coordinator.wait_for_agents(1).await;
        let account = coordinator.create_account("pro");
        let target = TestTarget::start().await;
        let body =
            json!({"name": "shop", "url": target.url(), "headers": {"Authorization": format!("Bearer {SECRET}")}});
        let monitor = account.client.create_monitor(&account.page, &body).await;
        let scene = Self { target, monitor, account, agent, coordinator };
        scene.checked().await;
        eventually("its secret is in the agent's schedule", SOON, async || {
            holds_secret(&scene.agent.data()).then_some(())
        })
        .await;
        scene
    }

    /// Waits for some more rounds.
    async fn checked(&self) {
        let before = self.target.requests();
        eventually("it is checked", SOON, async || (self.target.requests() > before + 2).then_some(())).await;
    }

    /// Asserts that it is no longer checked.
    async fn silent(&self) {
        let before = self.target.requests();
        holds(Duration::from_secs(1), SILENCE, async || match self.target.requests() - before {
            0 => Ok(()),
            more => Err(format!("{more} checks of an agent that is no member")),
        })
        .await;
    }

    /// Asserts that the agent has exited, explains how to join again, and has left nothing on disk.
    async fn departed(&mut self, word: &str) {
        let ended = self.agent.process().wait_for_exit(2 * SOON).await;
        assert_eq!(ended.code(), Some(DEPARTED));
        let log = self.agent.process().log();
        let said = log.lines().rfind(|line| line.contains("parallax-agent join")).unwrap_or_default();
        assert!(said.contains(word), "it says why and how to join again: {said}");
        let data = self.agent.data();
        assert!(!holds_secret(&data));
        assert!(!data.join("schedule.bin").exists() && !data.join("spool").exists());
    }
}

/// Returns true if any file of a folder contains the customer's secret.
fn holds_secret(folder: &Path) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|file| {
        let path = file.path();
        let found = |bytes: Vec<u8>| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        if path.is_dir() { holds_secret(&path) } else { std::fs::read(path).is_ok_and(found) }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_agent_stops_checking_and_deletes_what_it_holds() {
    let mut scene = Scene::set(CONFIG).await;
    scene.coordinator.run_command(&["agent", "revoke", "fra1"]).unwrap();
    let begun = std::time::Instant::now();
    scene.departed("revoked").await;
    print_figure("a revoked agent has deleted everything", begun.elapsed(), Duration::from_secs(2));
    scene.silent().await;
    assert!(!scene.agent.data().join("credentials.pem").exists());
    // Restarted, it exits again; after another join it works.
    scene.agent.run();
    scene.departed("revoked").await;
    let token = scene.coordinator.invite("fra2", "europe", "AS64500", &[]).unwrap();
    scene.agent.join(scene.coordinator.ready.mesh, &token).unwrap();
    scene.agent.run();
    scene.checked().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_revoked_or_forgotten_while_it_is_away_is_told_when_it_comes_back() {
    for (command, word) in [("revoke", "revoked"), ("forget", "no such agent")] {
        let mut scene = Scene::set(CONFIG).await;
        scene.agent.process().kill();
        scene.coordinator.run_command(&["agent", command, "fra1"]).unwrap();
        scene.coordinator.process.kill();
        scene.coordinator.restart().await;
        scene.agent.run();
        scene.departed(word).await;
        scene.silent().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_of_an_older_backup_pardons_nobody() {
    let mut scene = Scene::set(CONFIG).await;
    let forgotten = scene.coordinator.start_agent("fra2", "europe", "AS64501", None);
    scene.coordinator.wait_for_agents(2).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("backup");
    let file = file.to_str().unwrap();
    let token = scene.coordinator.invite("fra3", "europe", "AS64502", &[]).unwrap();
    scene.coordinator.run_command(&["backup", file]).unwrap();
    scene.agent.process().kill();
    drop(forgotten);
    scene.coordinator.run_command(&["agent", "revoke", "fra1"]).unwrap();
    scene.coordinator.run_command(&["agent", "forget", "fra2"]).unwrap();
    AgentProcess::new("used", folder.path(), None).join(scene.coordinator.ready.mesh, &token).unwrap();
    scene.coordinator.process.kill();
    scene.coordinator.run_command(&["restore", file]).unwrap();
    // Offline commands on the store show it too.
    assert_eq!(member(&scene.coordinator, "fra1")["status"], "revoked");
    scene.coordinator.restart().await;
    let known = scene.coordinator.members();
    let is_there = |name: &str| known.iter().any(|member| member["name"] == name && member["status"] != "invited");
    assert!(is_there("fra1") && !is_there("fra2"), "{known:?}");
    assert_eq!(member(&scene.coordinator, "fra1")["status"], "revoked");
    let again = AgentProcess::new("again", folder.path(), None).join(scene.coordinator.ready.mesh, &token);
    assert!(again.unwrap_err().contains("expired"), "a token that was used since");
    scene.agent.run();
    scene.departed("revoked").await;
    scene.silent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_be_told_stops_when_its_certificate_ends() {
    let config = format!("{CONFIG}[mesh]\ncertificate_life_seconds = 90\n");
    let mut scene = Scene::set(&config).await;
    scene.coordinator.process.kill();
    scene.checked().await;
    scene.departed("certificate has expired").await;
    scene.silent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_that_was_deleted_while_its_agent_was_away_is_dropped_when_it_comes_back() {
    let mut scene = Scene::set(CONFIG).await;
    scene.agent.process().kill();
    let path = format!("/pages/{}/monitors/{}", scene.account.page, scene.monitor["id"].as_str().unwrap());
    let deleted = scene.account.client.delete(&path).await;
    assert!(deleted.status < 300, "{deleted:?}");
    scene.agent.run();
    scene.coordinator.wait_for_agents(1).await;
    eventually("its secret is gone from the agent's disk", SOON, async || {
        (!holds_secret(&scene.agent.data())).then_some(())
    })
    .await;
    scene.silent().await;
}
