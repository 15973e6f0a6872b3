//! Machine-readable forms of a page, read by their consumers: Parallax's own component monitor, feed and calendar
//! readers, and other sites.

use std::path::Path;
use std::time::Duration;

use parallax_core::time::HOUR;
use parallax_tests::agent_pair;
use parallax_tests::eventually::{API_PERIOD, eventually_every, skip_test, wall_clock};
use parallax_tests::external_tools::{ExternalTools, run};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::test_target::{TargetMode, TestTarget};
use serde_json::{Value, json};

use crate::browser_visits::screenshot_folder;

/// Interval of ten seconds, so that a test sees several rounds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n\n[plans]\ncomponent_interval_seconds = 10\n";
/// Longest wait for a status change: two rounds and their confirmation.
const A_CHANGE: Duration = Duration::from_secs(60);
/// Timeout of the external programs.
const A_VISIT: Duration = Duration::from_secs(300);

/// A coordinator, two agents on two networks, and a page.
struct Scene {
    account: TestAccount,
    _agents: [AgentProcess; 2],
    coordinator: CoordinatorProcess,
}

impl Scene {
    async fn set() -> Self {
        let (coordinator, agents, account) = agent_pair::start(CONFIG).await;
        Self { account, _agents: agents, coordinator }
    }

    /// Returns the page's URL.
    fn page(&self) -> String {
        format!("{}/p/{}", self.coordinator.ready.base_url.trim_end_matches('/'), self.account.slug)
    }

    async fn make(&self, kind: &str, body: Value) -> Value {
        self.account.client.post(&format!("/pages/{}/{kind}", self.account.page), &body).await.expect_status(201)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_monitor_follows_another_page_of_ours() {
    let scene = Scene::set().await;
    let client = &scene.account.client;
    let mut target = TestTarget::start().await;
    let followed = json!({ "name": "Payments, <all>", "group": "Shop", "url": target.url() });
    client.create_monitor(&scene.account.page, &followed).await;
    let other = scene.coordinator.create_account("pro");
    let follows = json!({
        "type": "component",
        "name": "Their payments",
        "vendorUrl": scene.page(),
        "vendorComponent": "Payments, <all>",
    });
    let monitor = other.client.create_monitor(&other.page, &follows).await;
    let is = async |status: &str| {
        eventually_every(API_PERIOD, &format!("the component is {status}"), A_CHANGE, async || {
            let seen = other.client.monitor(&other.page, &monitor).await;
            (seen["status"] == status).then_some(seen)
        })
        .await
    };
    is("up").await;
    target.set(TargetMode::Status(500)).await;
    let down = is("down").await;
    // The text comes from the widely used summary format, not from our own document.
    let error = &down["lastCheck"]["error"];
    assert!(error.to_string().contains("major_outage"), "{down}");
    target.set(TargetMode::Pass).await;
    is("up").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_feeds_and_calendars_read_ours() {
    let Some(tools) = ExternalTools::find("readers_of_feeds_and_calendars_read_ours") else { return };
    let scene = Scene::set().await;
    let (incident, window) =
        ("Errors & <b>delays</b> ]]> \"here\"", "Move, to; a \\ new 数据中心 🚀 and much further still");
    let said = "It takes a while & more";
    scene.make("incidents", json!({ "title": incident, "message": said, "impact": "partial" })).await;
    let at = |hours: i64| (wall_clock() + hours * HOUR).to_string();
    let planned = json!({ "kind": "maintenance", "title": window, "startsAt": at(48), "endsAt": at(49) });
    scene.make("incidents", planned).await;
    let told =
        json!({ "page": scene.page(), "incident": incident, "window": window, "said": "It takes a while &amp; more" });
    let mut read = tools.python("python");
    read.arg(ExternalTools::file("feeds.py")).arg(told.to_string());
    let folder = tempfile::TempDir::new().expect("temporary folder");
    let ran = run("feeds", read, folder.path(), A_VISIT).await;
    assert!(ran.success, "{}", ran.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_appears_in_another_sites_page_when_a_monitor_goes_down() {
    const TEST: &str = "a_notice_appears_in_another_sites_page_when_a_monitor_goes_down";
    let Some(tools) = ExternalTools::find(TEST) else { return };
    if !Path::new("/usr/bin/chromium").is_file() {
        skip_test(TEST, "no Chromium", "apt-get install chromium");
        return;
    }
    let scene = Scene::set().await;
    let told = json!({
        "page": scene.page(),
        "api": format!("{}/api/v1", scene.coordinator.ready.base_url.trim_end_matches('/')),
        "key": scene.account.key,
        "id": scene.account.page,
        "shots": screenshot_folder(),
        "modules": tools.modules(),
    });
    let mut visit = tools.script("embed.mjs");
    visit.arg(told.to_string());
    let folder = tempfile::TempDir::new().expect("temporary folder");
    let ran = run("embed", visit, folder.path(), A_VISIT).await;
    assert!(ran.success, "{}", ran.output);
}
