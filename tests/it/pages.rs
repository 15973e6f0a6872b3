//! The public page in Chromium, over the demo's world: every state, keys, phone, dark, no script, and what axe says.

use std::path::Path;
use std::time::Duration;

use parallax_tests::eventually::{eventually_every, leave_out};
use parallax_tests::installation::Coordinator;
use parallax_tests::tools::{Tools, run};
use serde_json::{Value, json};

/// How long the demo may take to show every state.
const STATES: Duration = Duration::from_secs(120);
/// How long the visit may take.
const VISIT: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_in_chromium_finds_the_page_whole() {
    const TEST: &str = "a_visitor_in_chromium_finds_the_page_whole";
    let Some(tools) = Tools::find(TEST) else { return };
    if !Path::new("/usr/bin/chromium").is_file() {
        leave_out(TEST, "no Chromium", "apt-get install chromium");
        return;
    }
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
    // Kept after the test: whoever changes the page looks at them.
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    let told = json!({
        "page": demo.ready.page_url.clone().expect("the page has an address"),
        "api": format!("{}/api/v1", demo.ready.base_url),
        "key": key,
        "id": id,
        "shots": shots,
        "modules": tools.modules(),
    });
    let mut visit = tools.script("page.mjs");
    visit.arg(told.to_string());
    let folder = tempfile::TempDir::new().expect("temporary folder");
    let ran = run("visit", visit, folder.path(), VISIT).await;
    assert!(ran.ok, "{}", ran.said);
}
