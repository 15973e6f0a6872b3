//! `parallax debug monitor` on a running coordinator: state, reasons and deadlines, and errors that say what to do.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use parallax_tests::eventually::{API_PERIOD, eventually_every};
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::process::{binary, output};
use parallax_tests::test_target::TestTarget;
use serde_json::{Value, json};

/// Interval of ten seconds, so that a round is soon due.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Longest wait until the monitor is down.
const SOON: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_why_a_monitor_is_down_and_what_is_next() {
    let mut coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
    let _agents = [
        coordinator.start_agent("fra1", "europe", "AS64500", None),
        coordinator.start_agent("fra2", "europe", "AS64501", None),
    ];
    coordinator.wait_for_agents(2).await;
    let account = coordinator.create_account("pro");
    let target = TestTarget::start().await;
    let monitor = json!({"name": "Shop", "url": target.url()});
    let monitor = account.client.create_monitor(&account.page, &monitor).await;
    let id = monitor["id"].as_str().unwrap();
    let becomes = async |status: &str| {
        eventually_every(API_PERIOD, "the monitor changes its status", SOON, async || {
            (account.client.monitor(&account.page, &monitor).await["status"] == status).then_some(())
        })
        .await;
    };
    becomes("up").await;
    let debug = || coordinator.run_command(&["debug", "monitor", id]).unwrap_or_else(|fault| panic!("{fault}"));
    let state = debug();
    assert_eq!((&state["status"], &state["settings"]["intervalMs"]), (&json!("up"), &json!(10_000)));
    assert_eq!(state["regions"][0]["region"], "europe");
    let next = |state: &Value| state["regions"][0]["nextCheckAt"].as_str().map(str::to_owned);
    assert!(next(&state) > state["at"].as_str().map(str::to_owned), "{state:#}");
    let names: Vec<&str> = state["agents"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(names.len() == 2 && names.contains(&"fra1") && names.contains(&"fra2"), "{state:#}");

    drop(target);
    becomes("down").await;
    let state = debug();
    let why = state["why"].to_string();
    assert!(why.contains("Europe is down since") && why.contains("An outage is open since"), "{why}");
    // Once the region is down, its rounds need no confirmation.
    let is_confirmed = |round: &&Value| round["outcome"] == "failed" && !round["second"].is_null();
    let failed = state["recentRounds"].as_array().unwrap().iter().find(is_confirmed);
    let failed = failed.unwrap_or_else(|| panic!("{state:#}"));
    assert_eq!((&failed["first"]["outcome"], &failed["second"]["outcome"]), (&json!("failed"), &json!("failed")));
    assert_ne!(failed["first"]["network"], failed["second"]["network"]);

    // The text has the same facts, and fits a screen.
    let data = coordinator.data();
    let command = |id: &str| {
        let mut command = Command::new(binary("parallax"));
        command.args(["debug", "monitor", id, "--data"]).arg(&data);
        command
    };
    let text = output(command(id)).unwrap();
    for words in ["Shop (mon_", "Status: down since", "\nWhy\n", "\nNewest rounds\n", "fra1 (AS64500)", "\nSettings\n"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.lines().count() < 120, "{text}");

    for unknown in ["mon_00000000000000000000000000", "shop"] {
        let fault = output(command(unknown)).unwrap_err();
        assert!(fault.contains(unknown) && fault.contains("/monitors"), "{fault}");
    }
    coordinator.process.terminate();
    coordinator.process.wait_for_exit(Duration::from_secs(20)).await;
    let fault = output(command(id)).unwrap_err();
    assert!(fault.contains("no coordinator runs on"), "{fault}");
}
