//! Maintenance windows on a running coordinator: automatic start and end, no alerts meanwhile, and the alerts
//! afterwards.

use std::time::Duration;

use parallax_core::time::Timestamp;
use parallax_tests::agent_pair;
use parallax_tests::eventually::{API_PERIOD, eventually_every, wall_clock};
use parallax_tests::test_target::{TargetMode, TestTarget};
use serde_json::{Value, json};

/// Rounds every ten seconds, so that a test sees several.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";

fn moment(at: Timestamp) -> Value {
    Value::from(at.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_runs_by_itself_also_while_the_coordinator_is_away() {
    let (mut coordinator, _agents, account) = agent_pair::start(CONFIG).await;
    let page = format!("/pages/{}", account.page);
    let mut target = TestTarget::start().await;
    let monitor = json!({"name": "shop", "url": target.url()});
    let monitor = account.client.create_monitor(&account.page, &monitor).await;
    let is = async |status: &str| {
        let what = format!("the monitor is {status}");
        eventually_every(API_PERIOD, &what, Duration::from_secs(60), async || {
            let now = account.client.monitor(&account.page, &monitor).await;
            (now["status"] == status).then_some(())
        })
        .await;
    };
    let indicator = async |wanted: &str| {
        let what = format!("the page's headline is {wanted}");
        eventually_every(API_PERIOD, &what, Duration::from_secs(30), async || {
            let document = account.client.get(&format!("{page}/status")).await.expect_status(200);
            (document["status"]["indicator"] == wanted).then_some(())
        })
        .await;
    };
    is("up").await;
    indicator("operational").await;

    let now = wall_clock();
    let window = json!({"kind": "maintenance", "title": "Patches", "startsAt": moment(now + 1000),
        "endsAt": moment(now + 3_600_000), "monitorIds": [monitor["id"]], "repeat": "weekly"});
    let window = account.client.post(&format!("{page}/incidents"), &window).await.expect_status(201)["incident"].take();
    let path = format!("{page}/incidents/{}", window["id"].as_str().unwrap());
    indicator("maintenance").await;

    // It goes down under maintenance: the status changes, the headline does not.
    target.set(TargetMode::Status(500)).await;
    is("down").await;
    indicator("maintenance").await;

    // The window ends while the coordinator is down; the next window is planned a week before its start, which is now.
    let end = wall_clock() + 1500;
    account.client.patch(&path, &json!({"endsAt": moment(end)})).await.expect_status(200);
    coordinator.process.kill();
    eventually_every(API_PERIOD, "the window's end has come", Duration::from_secs(10), async || {
        (wall_clock() > end).then_some(())
    })
    .await;
    coordinator.restart().await;
    let over = eventually_every(API_PERIOD, "the window is completed", Duration::from_secs(20), async || {
        let window = account.client.get(&path).await.expect_status(200)["incident"].take();
        (window["status"] == "completed").then_some(window)
    })
    .await;
    assert_eq!(over["resolvedAt"], moment(end), "it ended when it was to");
    indicator("major").await;
    let open = account.client.get(&format!("{page}/incidents?open=true")).await.expect_status(200);
    let next = &open["incidents"][0];
    assert_eq!((&next["status"], &next["repeat"]), (&json!("scheduled"), &window["repeat"]), "{open}");
    assert_eq!(next["startedAt"], moment(now + (1000 + 7 * 86_400_000)));
}
