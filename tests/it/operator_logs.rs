//! Logs for operators: the events of a night in the coordinator's log, and an agent's log in a file.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use parallax_tests::agent_pair;
use parallax_tests::eventually::eventually;
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use parallax_tests::process::binary;
use parallax_tests::test_target::TestTarget;
use serde_json::{Value, json};

/// Longest wait until an outage is reported, and until it is over.
const SOON: Duration = Duration::from_secs(120);
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_in_the_log_by_lines_that_read_alone_and_hold_no_secret() {
    let config = "[plans.pro]\ninterval_seconds = 10\n[deliver]\nallow_private = true\n";
    let mut coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), config).await;
    let _agents = agent_pair::join(&coordinator).await;
    let account = coordinator.create_account("pro");
    let target = TestTarget::start().await;
    let monitor = account.client.create_monitor(&account.page, &json!({"name": "shop", "url": target.url()})).await;
    let destinations = format!("/pages/{}/destinations", account.page);
    let nobody = json!({"type": "webhook", "name": "hook", "url": "http://127.0.0.1:9/secret-path"});
    account.client.post(&destinations, &nobody).await.expect_status(201);
    let (id, page) = (monitor["id"].as_str().unwrap().to_owned(), account.page.clone());
    drop(target);
    coordinator.process.wait_for_log("monitor went down", SOON).await;
    coordinator.process.wait_for_log("incident opened", SOON).await;
    // The owner's mailbox is a destination too.
    coordinator.process.wait_for_log("kind=\"webhook\"", SOON).await;
    let log = coordinator.process.log();
    let line = |texts: [&str; 2]| {
        let holds = |line: &&str| texts.iter().all(|text| line.contains(text));
        log.lines().find(holds).unwrap_or_else(|| panic!("no line with {texts:?}")).to_owned()
    };
    let down = line(["monitor went down", "INFO"]);
    let failed = line(["alert failed; retrying", "kind=\"webhook\""]);
    for line in [&down, &failed] {
        assert!(line.contains(&format!("monitor={id}")) && line.contains(&format!("page={page}")), "{line}");
    }
    assert!(failed.contains("INFO") && failed.contains("event=\"went-down\""), "{failed}");
    assert!(!log.contains("secret-path"), "an address of a customer is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_log_has_no_colours_in_a_file_and_is_json_where_that_is_asked_for() {
    let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), "").await;
    let folder = tempfile::TempDir::new().unwrap();
    let token = coordinator.invite("fra1", "europe", "AS64500", &[]).unwrap();
    let agent = AgentProcess::new("fra1", folder.path(), None);
    agent.join(coordinator.ready.mesh, &token).unwrap();
    for format in ["text", "json"] {
        let path = folder.path().join(format);
        let mut command = Command::new(binary("parallax-agent"));
        command.args(["run", "--log-format", format, "--data"]).arg(agent.data()).env_remove("NO_COLOR");
        let mut running = command.stderr(File::create(&path).unwrap()).spawn().unwrap();
        let said = || fs::read_to_string(&path).unwrap_or_default();
        eventually("it logs", SOON, async || said().contains('\n').then_some(())).await;
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(!said().contains('\u{1b}'), "{}", said());
        let lines = said();
        // The last line may be incomplete.
        let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|line| line["level"].is_string());
        assert_eq!(lines.lines().next().is_some_and(is_json), format == "json", "{lines}");
    }
}
