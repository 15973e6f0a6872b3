//! The public page in Chromium: every state, keys, phone, dark, paper, no script, hostile texts, subscribers, and what axe
//! says.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parallax_core::time::{DAY, MINUTE};
use parallax_tests::eventually::{eventually_every, leave_out, wall_clock};
use parallax_tests::installation::Coordinator;
use parallax_tests::targets::Target;
use parallax_tests::tools::{Tools, run};
use serde_json::{Value, json};

/// How long the demo may take to show every state.
const STATES: Duration = Duration::from_secs(120);
/// Milliseconds of a day that a visit takes at most, by far.
const LEFT: i64 = 5 * MINUTE;
/// How long the visit may take.
const VISIT: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_in_chromium_finds_the_page_whole() {
    const TEST: &str = "a_visitor_in_chromium_finds_the_page_whole";
    let Some(tools) = tools(TEST) else { return };
    within_one_day().await;
    let demo = Coordinator::up(&["--demo"]).await;
    let key = demo.ready.api_key.clone().expect("the first start makes a key");
    let id = demo.ready.page_id.clone().expect("the first start makes a page");
    let client = demo.api().with_key(Some(&key));
    eventually_every(
        Duration::from_secs(2),
        "up, slow, down, and down from Asia alone",
        STATES,
        async || {
            let monitors = client.monitors(&id).await;
            let shows = |status: &str, from: Value| {
                monitors.iter().any(|it| it["status"] == status && it["downFrom"] == from)
            };
            let all = shows("up", Value::Null)
                && shows("slow", Value::Null)
                && shows("down", Value::Null)
                && shows("down", json!(["asia"]));
            all.then_some(())
        },
    )
    .await;
    let told = json!({
        "page": demo.ready.page_url.clone().expect("the page has an address"),
        "api": format!("{}/api/v1", demo.ready.base_url),
        "key": key,
        "id": id,
        "shots": shots(),
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
    let coordinator = Coordinator::serve(SocketAddr::from(([127, 0, 0, 1], 0)), &config).await;
    let account = coordinator.account("pro");
    let target = Target::start().await;
    let mut agents = [("eu", "europe", "AS64501"), ("asia", "asia", "AS64502")]
        .map(|(name, region, network)| coordinator.agent(name, region, network, None));
    coordinator.connected(agents.len()).await;
    let told = json!({
        "page": format!("{}/p/{}", coordinator.ready.base_url.trim_end_matches('/'), account.slug),
        "api": format!("{}/api/v1", coordinator.ready.base_url.trim_end_matches('/')),
        "key": account.key,
        "id": account.page,
        "target": target.url(),
        "mail": mail,
        "shots": shots(),
        "modules": tools.modules(),
    });
    visit(&tools, "page/states.mjs", &told).await;
    // Neither minds what the other does.
    tokio::join!(visit(&tools, "page/texts.mjs", &told), visit(&tools, "page/subscriber.mjs", &told));
    for agent in &mut agents {
        agent.process().kill();
    }
    visit(&tools, "page/stale.mjs", &told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_developer_in_chromium_reads_the_reference() {
    let Some(tools) = tools("a_developer_in_chromium_reads_the_reference") else { return };
    let coordinator = Coordinator::serve(SocketAddr::from(([127, 0, 0, 1], 0)), "").await;
    let told = json!({
        "page": coordinator.ready.base_url.trim_end_matches('/'),
        "shots": shots(),
        "modules": tools.modules(),
    });
    visit(&tools, "page/reference.mjs", &told).await;
}

/// Waits for a new day where the present one ends amid a visit: which day is today is much of what is looked at.
async fn within_one_day() {
    let is_long = async || {
        let left = DAY - wall_clock().as_millis().rem_euclid(DAY);
        (left > LEFT).then_some(())
    };
    eventually_every(Duration::from_secs(1), "a new day", VISIT, is_long).await;
}

/// The programs from elsewhere, with Chromium; where something is missing the test is left out, and it is said why.
fn tools(test: &str) -> Option<Tools> {
    let tools = Tools::find(test)?;
    if !Path::new("/usr/bin/chromium").is_file() {
        leave_out(test, "no Chromium", "apt-get install chromium");
        return None;
    }
    Some(tools)
}

/// Where screenshots lie after a test, for whoever changes what they show to look at.
pub(crate) fn shots() -> PathBuf {
    std::env::var_os("PARALLAX_SHOTS")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("page"), PathBuf::from)
}

/// Runs a script of visitors to its end.
async fn visit(tools: &Tools, script: &str, told: &Value) {
    let mut command = tools.script(script);
    command.arg(told.to_string());
    let folder = tempfile::TempDir::new().expect("temporary folder");
    let ran = run("visit", command, folder.path(), VISIT).await;
    assert!(ran.ok, "{}", ran.said);
}
