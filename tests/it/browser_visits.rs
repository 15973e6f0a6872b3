//! The public page in Chromium: all states, keyboard, phone, dark mode, print, no script, hostile texts, subscribers,
//! and axe's findings.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parallax_core::time::{DAY, MINUTE};
use parallax_tests::eventually::{eventually_every, skip_test, wall_clock};
use parallax_tests::external_tools::{ExternalTools, run};
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::test_target::TestTarget;
use serde_json::{Value, json};

/// Longest wait until the demo shows every state.
const STATES: Duration = Duration::from_secs(120);
/// Generous upper bound of a visit, in milliseconds.
const LEFT: i64 = 5 * MINUTE;
/// Timeout of the visit.
const VISIT: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_in_chromium_finds_the_page_whole() {
    const TEST: &str = "a_visitor_in_chromium_finds_the_page_whole";
    let Some(tools) = tools(TEST) else { return };
    within_one_day().await;
    let demo = CoordinatorProcess::up(&["--demo"]).await;
    let key = demo.ready.api_key.clone().expect("the first start makes a key");
    let id = demo.ready.page_id.clone().expect("the first start makes a page");
    shows_every_state(&demo, &key, &id).await;
    let told = json!({
        "page": demo.ready.page_url.clone().expect("the page has an address"),
        "api": format!("{}/api/v1", demo.ready.base_url),
        "key": key,
        "id": id,
        "shots": screenshot_folder(),
        "modules": tools.modules(),
    });
    visit(&tools, "page/visit.mjs", &told).await;
    visit(&tools, "page/renewal.mjs", &told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_sees_what_is_known_and_nothing_that_is_not() {
    const TEST: &str = "a_visitor_sees_what_is_known_and_nothing_that_is_not";
    let Some(tools) = tools(TEST) else { return };
    within_one_day().await;
    let folder = tempfile::TempDir::new().expect("temporary folder");
    let mail = folder.path().join("mail");
    let config = format!(
        "[plans.pro]\ninterval_seconds = 10\n\n\
         [mail]\ntransport = \"folder\"\nfolder = {mail:?}\nfrom = \"status@example.com\"\n"
    );
    let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), &config).await;
    let account = coordinator.create_account("pro");
    let target = TestTarget::start().await;
    let mut agents = [("eu", "europe", "AS64501"), ("asia", "asia", "AS64502")]
        .map(|(name, region, network)| coordinator.start_agent(name, region, network, None));
    coordinator.wait_for_agents(agents.len()).await;
    let told = json!({
        "page": format!("{}/p/{}", coordinator.ready.base_url.trim_end_matches('/'), account.slug),
        "api": format!("{}/api/v1", coordinator.ready.base_url.trim_end_matches('/')),
        "key": account.key,
        "id": account.page,
        "target": target.url(),
        "mail": mail,
        "shots": screenshot_folder(),
        "modules": tools.modules(),
    });
    visit(&tools, "page/states.mjs", &told).await;
    // The two scripts are independent.
    tokio::join!(visit(&tools, "page/texts.mjs", &told), visit(&tools, "page/subscriber.mjs", &told));
    for agent in &mut agents {
        agent.process().kill();
    }
    visit(&tools, "page/stale.mjs", &told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_developer_in_chromium_reads_the_reference() {
    let Some(tools) = tools("a_developer_in_chromium_reads_the_reference") else { return };
    let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), "").await;
    let told = json!({
        "page": coordinator.ready.base_url.trim_end_matches('/'),
        "shots": screenshot_folder(),
        "modules": tools.modules(),
    });
    visit(&tools, "page/reference.mjs", &told).await;
}

/// Waits until the demo's page shows every state.
pub(crate) async fn shows_every_state(demo: &CoordinatorProcess, key: &str, page: &str) {
    let client = demo.api().with_key(Some(key));
    eventually_every(Duration::from_secs(2), "up, slow, down, and down from Asia alone", STATES, async || {
        let monitors = client.monitors(page).await;
        let shows =
            |status: &str, from: Value| monitors.iter().any(|it| it["status"] == status && it["downFrom"] == from);
        let all = shows("up", Value::Null)
            && shows("slow", Value::Null)
            && shows("down", Value::Null)
            && shows("down", json!(["asia"]));
        all.then_some(())
    })
    .await;
}

/// Waits for midnight if a visit would cross it: many assertions depend on the current day.
pub(crate) async fn within_one_day() {
    let is_long = async || {
        let left = DAY - wall_clock().as_millis().rem_euclid(DAY);
        (left > LEFT).then_some(())
    };
    eventually_every(Duration::from_secs(1), "a new day", VISIT, is_long).await;
}

/// Returns the external programs with Chromium; if one is missing, skips the test with the reason.
pub(crate) fn tools(test: &str) -> Option<ExternalTools> {
    let tools = ExternalTools::find(test)?;
    if !Path::new("/usr/bin/chromium").is_file() {
        skip_test(test, "no Chromium", "apt-get install chromium");
        return None;
    }
    Some(tools)
}

/// Returns the folder of the screenshots, which are for review by people.
pub(crate) fn screenshot_folder() -> PathBuf {
    std::env::var_os("PARALLAX_SHOTS")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("page"), PathBuf::from)
}

/// Runs a visitor script to its end.
pub(crate) async fn visit(tools: &ExternalTools, script: &str, told: &Value) {
    let mut command = tools.script(script);
    command.arg(told.to_string());
    let folder = tempfile::TempDir::new().expect("temporary folder");
    let ran = run("visit", command, folder.path(), VISIT).await;
    assert!(ran.success, "{}", ran.output);
}
