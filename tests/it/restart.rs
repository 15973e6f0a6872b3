//! Kill and restart: monitors, states, keys and history persist, and nothing is reported twice.

use std::time::Duration;

use parallax_tests::agent_pair;
use parallax_tests::eventually::{API_PERIOD, eventually_every, holds};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::test_target::{TargetMode, TestTarget};
use serde_json::{Value, json};

/// Interval of ten seconds, so that a test sees several rounds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";

/// A coordinator, two agents on two networks, a monitor that is up and one that is down.
struct Scene {
    account: TestAccount,
    well: TestTarget,
    _ill: TestTarget,
    _agents: [AgentProcess; 2],
    coordinator: CoordinatorProcess,
}

impl Scene {
    async fn set() -> Self {
        let (coordinator, agents, account) = agent_pair::start(CONFIG).await;
        let well = TestTarget::start().await;
        let mut ill = TestTarget::start().await;
        ill.set(TargetMode::Status(500)).await;
        for (name, target) in [("well", &well), ("ill", &ill)] {
            account.client.create_monitor(&account.page, &json!({"name": name, "url": target.url()})).await;
        }
        let scene = Self { account, well, _ill: ill, _agents: agents, coordinator };
        scene.statuses("up", "down", Duration::from_secs(40)).await;
        scene.figures().await;
        scene
    }

    /// Waits until both monitors have statistics: only scheduled rounds create them.
    async fn figures(&self) {
        eventually_every(API_PERIOD, "both have figures", Duration::from_secs(40), async || {
            let monitors = self.account.client.monitors(&self.account.page).await;
            monitors.iter().all(|monitor| monitor["uptime24h"].is_number()).then_some(())
        })
        .await;
    }

    /// Waits for the statuses of the two monitors.
    async fn statuses(&self, well: &str, ill: &str, limit: Duration) -> Vec<Value> {
        eventually_every(API_PERIOD, &format!("well is {well}, ill is {ill}"), limit, async || {
            let monitors = self.account.client.monitors(&self.account.page).await;
            let is = |at: usize, status: &str| monitors.get(at).is_some_and(|monitor| monitor["status"] == status);
            (is(0, well) && is(1, ill)).then_some(monitors)
        })
        .await
    }
}

/// Returns the fields that must not change across a restart.
fn lasting(monitors: &[Value]) -> Vec<Value> {
    let fields = ["id", "name", "url", "status", "since", "createdAt", "downFrom", "position"];
    monitors.iter().map(|monitor| fields.iter().map(|field| monitor[field].clone()).collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_coordinator_comes_back_with_everything_and_repeats_nothing() {
    let mut scene = Scene::set().await;
    let read = scene.coordinator.create_key(&scene.account.account, "read");
    let client = scene.account.client.clone();
    let page = scene.account.page.clone();
    let gone = client.create_monitor(&page, &json!({"name": "gone", "url": scene.well.url()})).await;
    client.delete(&format!("/pages/{page}/monitors/{}", gone["id"].as_str().unwrap())).await.expect_status(204);
    client.patch(&format!("/pages/{page}"), &json!({"description": "kept"})).await.expect_status(200);
    let before = client.monitors(&page).await;
    assert!(before[1]["uptime24h"].as_f64().is_some_and(|share| share < 100.0), "{}", before[1]);

    scene.coordinator.process.kill();
    scene.coordinator.restart().await;

    // From the first response on, the states are the previous ones: never unknown, never reported again.
    let after = client.monitors(&page).await;
    assert_eq!(lasting(&after), lasting(&before));
    for (now, then) in after.iter().zip(&before) {
        assert!(now["uptime24h"].is_number() && then["uptime24h"].is_number(), "figures are there: {now}");
        assert!(!now["lastCheck"].is_null(), "the last check is there: {now}");
    }
    assert_eq!(client.get(&format!("/pages/{page}")).await.expect_status(200)["page"]["description"], "kept");
    client.with_key(Some(&read)).get("/me").await.expect_status(200);
    assert_eq!(scene.coordinator.members().len(), 2);

    // The agents reconnect by themselves, and their results change no status.
    scene.coordinator.wait_for_agents(2).await;
    let last = after[0]["lastCheck"]["at"].clone();
    eventually_every(API_PERIOD, "a new round arrives", Duration::from_secs(30), async || {
        (client.monitors(&page).await[0]["lastCheck"]["at"] != last).then_some(())
    })
    .await;
    holds(API_PERIOD, Duration::from_secs(15), async || {
        let now = client.monitors(&page).await;
        if lasting(&now) == lasting(&before) { Ok(()) } else { Err(format!("changed after the restart: {now:?}")) }
    })
    .await;

    // New outages are still detected.
    scene.well.set(TargetMode::Status(500)).await;
    scene.statuses("down", "down", Duration::from_secs(40)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_there_after_a_kill_at_any_moment() {
    let mut scene = Scene::set().await;
    let page = scene.account.page.clone();
    for turn in 0..3 {
        let mut made = Vec::new();
        for number in 0..5 {
            let body = json!({"name": format!("m{turn}-{number}"), "url": scene.well.url()});
            made.push(scene.account.client.create_monitor(&page, &body).await["id"].clone());
        }
        // Right after the last response.
        scene.coordinator.process.kill();
        scene.coordinator.restart().await;
        let there: Vec<Value> =
            scene.account.client.monitors(&page).await.iter().map(|monitor| monitor["id"].clone()).collect();
        assert!(made.iter().all(|id| there.contains(id)), "answered with 201 and lost: {made:?} of {there:?}");
        assert_eq!(there.len(), 2 + 5 * (turn + 1), "nothing is there twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_told_to_stop_ends_well() {
    let mut scene = Scene::set().await;
    scene.coordinator.process.terminate();
    let status = scene.coordinator.process.wait_for_exit(Duration::from_secs(20)).await;
    assert_eq!(status.code(), Some(0), "{}", scene.coordinator.process.log());
    scene.coordinator.restart().await;
    scene.statuses("up", "down", Duration::from_secs(30)).await;
}
