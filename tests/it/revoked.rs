//! Revoked, forgotten and expired agents, with the real binaries: they stop, nothing of a customer stays on their disk, and
//! no restore brings them back.

use std::path::Path;
use std::time::Duration;

use parallax_tests::eventually::{eventually, figure, holds};
use parallax_tests::installation::{Account, Agent, Coordinator};
use parallax_tests::targets::Target;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::identity::{coordinator, member};

/// Longest wait for what takes a moment.
const SOON: Duration = Duration::from_secs(60);
/// Nothing comes to a target for this long: some rounds.
const SILENCE: Duration = Duration::from_secs(16);
/// Exit code of an agent that is no longer a member.
const DEPARTED: i32 = 4;
/// Rounds every five seconds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 5\n";
/// A header of a customer that must not stay on an agent's disk.
const SECRET: &str = "hunter2-hunter2-hunter2";

/// A coordinator, an agent, and a monitor with a secret that it checks.
struct Scene {
    target: Target,
    monitor: Value,
    account: Account,
    agent: Agent,
    coordinator: Coordinator,
}

impl Scene {
    async fn set(config: &str) -> Self {
        let coordinator = coordinator(config).await;
        let agent = coordinator.agent("fra1", "europe", "AS64500", None);
        coordinator.connected(1).await;
        let account = coordinator.account("pro");
        let target = Target::start().await;
        let body = json!({"name": "shop", "url": target.url(), "headers": {"Authorization": format!("Bearer {SECRET}")}});
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

    /// Nothing of it is checked any more.
    async fn silent(&self) {
        let before = self.target.requests();
        holds(Duration::from_secs(1), SILENCE, async || match self.target.requests() - before {
            0 => Ok(()),
            more => Err(format!("{more} checks of an agent that is no member")),
        })
        .await;
    }

    /// The agent has ended by itself, says how to join again, and has left nothing.
    async fn departed(&mut self, word: &str) {
        let ended = self.agent.process().ended(2 * SOON).await;
        assert_eq!(ended.code(), Some(DEPARTED));
        let log = self.agent.process().log();
        let said = log.lines().rfind(|line| line.contains("parallax-agent join")).unwrap_or_default();
        assert!(said.contains(word), "it says why and how to join again: {said}");
        let data = self.agent.data();
        assert!(!holds_secret(&data));
        assert!(!data.join("schedule.bin").exists() && !data.join("spool").exists());
    }
}

/// True where any file of a folder holds the customer's secret.
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
    scene.coordinator.command(&["agent", "revoke", "fra1"]).unwrap();
    let begun = std::time::Instant::now();
    scene.departed("revoked").await;
    figure("a revoked agent has deleted everything", begun.elapsed(), Duration::from_secs(2));
    scene.silent().await;
    assert!(!scene.agent.data().join("credentials.pem").exists());
    // Started again it ends again; joined again it works.
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
        scene.coordinator.command(&["agent", command, "fra1"]).unwrap();
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
    let forgotten = scene.coordinator.agent("fra2", "europe", "AS64501", None);
    scene.coordinator.connected(2).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("backup");
    let file = file.to_str().unwrap();
    let token = scene.coordinator.invite("fra3", "europe", "AS64502", &[]).unwrap();
    scene.coordinator.command(&["backup", file]).unwrap();
    scene.agent.process().kill();
    drop(forgotten);
    scene.coordinator.command(&["agent", "revoke", "fra1"]).unwrap();
    scene.coordinator.command(&["agent", "forget", "fra2"]).unwrap();
    Agent::new("used", folder.path(), None).join(scene.coordinator.ready.mesh, &token).unwrap();
    scene.coordinator.process.kill();
    scene.coordinator.command(&["restore", file]).unwrap();
    // Commands on the store alone know it too.
    assert_eq!(member(&scene.coordinator, "fra1")["status"], "revoked");
    scene.coordinator.restart().await;
    let known = scene.coordinator.members();
    let is_there =
        |name: &str| known.iter().any(|member| member["name"] == name && member["status"] != "invited");
    assert!(is_there("fra1") && !is_there("fra2"), "{known:?}");
    assert_eq!(member(&scene.coordinator, "fra1")["status"], "revoked");
    let again = Agent::new("again", folder.path(), None).join(scene.coordinator.ready.mesh, &token);
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
    scene.departed("certificate has ended").await;
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
    scene.coordinator.connected(1).await;
    eventually("its secret is gone from the agent's disk", SOON, async || {
        (!holds_secret(&scene.agent.data())).then_some(())
    })
    .await;
    scene.silent().await;
}
