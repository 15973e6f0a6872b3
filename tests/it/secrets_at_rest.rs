//! Customers' secrets at rest: written through the API to every field that takes one, then searched for in every file
//! of the coordinator and an agent.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use parallax_tests::eventually::eventually;
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::process::{binary, output};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

/// Secrets that are written.
const HEADER: &str = "canaryheader7f3a";
const BODY: &str = "canarybody7f3a";
const CREDENTIALS: &str = "canaryurl7f3a";
const WEBHOOK: &str = "canaryhook7f3a";
const BOT: &str = "12345:canarybot7f3a";
const CHAT: &str = "canarychat7f3a";
const READER: &str = "canaryreader7f3a";
const PINGED: &str = "canaryping7f3a";
/// Secrets that are sent to an agent.
const TOLD: [&str; 3] = [HEADER, BODY, CREDENTIALS];

/// Longest wait until a snapshot is taken, and an agent has its schedule on disk.
const SOON: Duration = Duration::from_secs(60);

/// Writes all secrets; returns them together with those that responses showed once.
async fn plant(account: &TestAccount, base_url: &str) -> Vec<String> {
    let (client, page) = (&account.client, &account.page);
    let body = json!({
        "name": "shop", "method": "POST", "body": BODY, "headers": {"X-Token": HEADER},
        "url": format!("http://127.0.0.1:9/{CREDENTIALS}"),
    });
    client.create_monitor(page, &body).await;
    let job = client.create_monitor(page, &json!({"name": "job", "type": "heartbeat", "periodMinutes": 60})).await;
    let ping = job["heartbeat"]["pingUrl"].as_str().unwrap().strip_prefix(base_url).unwrap().to_owned();
    assert_eq!(client.send(Method::POST, &ping, Some(PINGED.to_owned())).await.status, 200);
    let mut secrets: Vec<String> =
        [HEADER, BODY, CREDENTIALS, WEBHOOK, BOT, CHAT, READER, PINGED].map(str::to_owned).to_vec();
    let destinations = format!("/pages/{page}/destinations");
    let chat = format!("https://hooks.slack.com/services/{CHAT}");
    for body in [
        json!({"type": "webhook", "name": "hook", "url": format!("https://hooks.example.com/{WEBHOOK}")}),
        json!({"type": "telegram", "name": "bot", "token": BOT, "chat": "@shop"}),
        json!({"type": "slack", "name": "chat", "url": chat}),
    ] {
        let made = client.post(&destinations, &body).await.expect_status(201);
        let shown = made["secret"].as_str().or_else(|| made["destination"]["secret"].as_str());
        secrets.extend(shown.map(str::to_owned));
    }
    let reader = json!({"email": format!("{READER}@example.com")});
    client.post(&format!("/pages/{page}/subscribers"), &reader).await.expect_status(201);
    secrets
}

/// Returns the secrets that occur in any file below a folder.
fn found<'a>(folder: &Path, secrets: &'a [String]) -> Vec<&'a str> {
    fn bytes_below(folder: &Path, all: &mut Vec<u8>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                bytes_below(&path, all);
            } else if path.is_file() {
                all.extend(fs::read(&path).unwrap());
            }
        }
    }
    let mut all = Vec::new();
    bytes_below(folder, &mut all);
    let holds = |secret: &&String| all.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
    secrets.iter().filter(holds).map(String::as_str).collect()
}

/// Runs a coordinator and an agent, with key files or without. Returns the secrets, and those found in the
/// coordinator's folder with a snapshot, in a backup, and in the agent's folder.
async fn leave(keys: bool) -> (Vec<String>, [Vec<String>; 3]) {
    let home = TempDir::new().unwrap();
    let (of_coordinator, of_agent) = (home.path().join("key"), home.path().join("agent-key"));
    let mut config = "[store]\nsnapshot_seconds = 1\n".to_owned();
    let settings = home.path().join("agent.toml");
    fs::write(&settings, "").unwrap();
    if keys {
        for file in [&of_coordinator, &of_agent] {
            let mut command = Command::new(binary("parallax"));
            command.arg("new-secrets-key").arg(file);
            output(command).unwrap();
        }
        config = format!("secrets_key_file = {of_coordinator:?}\n{config}");
        fs::write(&settings, format!("secrets_key_file = {of_agent:?}\n")).unwrap();
    }
    let mut coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), &config).await;
    let token = coordinator.invite("fra1", "europe", "AS64500", &[]).unwrap();
    let mut agent = AgentProcess::new("fra1", home.path(), None);
    agent.join(coordinator.ready.mesh, &token).unwrap();
    agent.run_with(&["--config", settings.to_str().unwrap()]);
    coordinator.wait_for_agents(1).await;
    let account = coordinator.create_account("pro");
    let secrets = plant(&account, &coordinator.ready.base_url).await;
    let snapshots = coordinator.data().join("snapshots");
    let count = || fs::read_dir(&snapshots).map_or(0, |all| all.count());
    let before = count();
    eventually("a snapshot is taken after that", SOON, async || (count() > before + 1).then_some(())).await;
    let schedule = agent.data().join("schedule.bin");
    let is_kept = || fs::metadata(&schedule).is_ok_and(|file| file.len() > 100);
    eventually("the agent keeps its schedule", SOON, async || is_kept().then_some(())).await;
    let backup = TempDir::new().unwrap();
    coordinator.run_command(&["backup", backup.path().join("file").to_str().unwrap()]).unwrap();
    // The files of a running coordinator, and of a killed one.
    coordinator.process.kill();
    agent.process().kill();
    let owned = |found: Vec<&str>| found.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let all = [
        owned(found(&coordinator.data(), &secrets)),
        owned(found(backup.path(), &secrets)),
        owned(found(&agent.data(), &secrets)),
    ];
    // It needs its key to start again.
    if keys {
        coordinator.restart().await;
        let shown = account.client.monitors(&account.page).await;
        assert!(shown.iter().any(|monitor| monitor["name"] == "shop"), "{shown:?}");
        coordinator.process.kill();
        fs::remove_file(&of_coordinator).unwrap();
        let refused = coordinator.try_restart().await.expect_err("the key file is gone");
        assert!(refused.output.contains("secrets_key_file can't be used"), "{refused:?}");
        parallax_certs::sealing::write_new_key(&of_coordinator, false).unwrap();
        let refused = coordinator.try_restart().await.expect_err("another key");
        assert!(refused.output.contains("sealed with the key"), "{refused:?}");
    }
    (secrets, all)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_customer_is_on_disk_where_there_is_a_key_file() {
    let (_, sealed) = leave(true).await;
    assert_eq!(sealed, [const { Vec::<String>::new() }; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_file_secrets_are_on_disk_so_that_the_search_means_something() {
    let (secrets, [data, backup, agent]) = leave(false).await;
    assert_eq!((&data, &backup), (&secrets, &secrets));
    assert_eq!(agent, TOLD);
}
