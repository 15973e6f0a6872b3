//! The dashboard in Chromium: every screen in both widths and themes, its scripts in use, jobs with their clicks counted,
//! an account without pages and monitors, a viewer, and passkeys.

use std::net::SocketAddr;

use parallax_core::role::Role;
use parallax_tests::dashboard_browser::{DashboardBrowser, add_member};
use parallax_tests::external_tools::ExternalTools;
use parallax_tests::free_ports::free_port;
use parallax_tests::installation::CoordinatorProcess;
use serde_json::{Value, json};

use crate::browser_visits::{screenshot_folder, shows_every_state, tools, visit, within_one_day};

/// Email address of the viewer, whose password is the owner's.
const VIEWER: &str = "viewer@example.com";
const OWNER: &str = "owner@example.com";
const PASSWORD: &str = "correct horse battery";

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_is_whole_and_each_job_takes_few_clicks() {
    const TEST: &str = "the_dashboard_is_whole_and_each_job_takes_few_clicks";
    let Some(tools) = tools(TEST) else { return };
    within_one_day().await;
    let mut demo = CoordinatorProcess::up(&["--demo"]).await;
    let key = demo.ready.api_key.clone().expect("the first start makes a key");
    let page = demo.ready.page_id.clone().expect("the first start makes a page");
    let (account, _) = DashboardBrowser::set_up(&demo, OWNER, PASSWORD).await;
    run(&demo, &["account", "operator", "--email", OWNER, "on"]);
    demo.process.kill();
    add_member(demo.data(), account, OWNER, (VIEWER, "Vera", Role::Viewer)).await;
    demo.restart().await;
    shows_every_state(&demo, &key, &page).await;
    let told = |email: &str| {
        json!({
            "base": base(&demo),
            "page": format!("{}/p/demo", base(&demo)),
            "api": format!("{}/api/v1", base(&demo)),
            "key": key,
            "id": page,
            "email": email,
            "password": PASSWORD,
            "shots": screenshot_folder(),
            "modules": tools.modules(),
        })
    };
    visit(&tools, "page/dashboard_screens.mjs", &told(OWNER)).await;
    visit(&tools, "page/dashboard_viewer.mjs", &told(VIEWER)).await;
    visit(&tools, "page/dashboard_live.mjs", &told(OWNER)).await;
    visit(&tools, "page/dashboard_gestures.mjs", &told(OWNER)).await;
    visit(&tools, "page/dashboard_jobs.mjs", &told(OWNER)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_begins_with_nothing() {
    let Some(tools) = tools("an_account_begins_with_nothing") else { return };
    let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), "").await;
    run(&coordinator, &["account", "create", "--email", OWNER, "--plan", "pro"]);
    let told = told_of_new_account(&coordinator, &tools);
    visit(&tools, "page/dashboard_empty.mjs", &told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passkey_signs_in_confirms_and_is_removed() {
    let Some(tools) = tools("a_passkey_signs_in_confirms_and_is_removed") else { return };
    // An address has no passkeys; localhost has them without a certificate.
    let port = free_port();
    let config = format!("base_url = \"http://localhost:{port}\"\n");
    let coordinator = CoordinatorProcess::serve_at(SocketAddr::from(([127, 0, 0, 1], port)), &config).await;
    run(&coordinator, &["account", "create", "--email", OWNER, "--plan", "pro"]);
    let told = told_of_new_account(&coordinator, &tools);
    visit(&tools, "page/passkeys.mjs", &told).await;
}

fn base(coordinator: &CoordinatorProcess) -> &str {
    coordinator.ready.base_url.trim_end_matches('/')
}

fn run(coordinator: &CoordinatorProcess, words: &[&str]) -> Value {
    coordinator.run_command(words).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Returns a set-up link of the only account.
fn set_up_link(coordinator: &CoordinatorProcess) -> String {
    run(coordinator, &["account", "link"])["setUpUrl"].as_str().expect("a link").to_owned()
}

/// Arguments of a visit of an account without an owner.
fn told_of_new_account(coordinator: &CoordinatorProcess, tools: &ExternalTools) -> Value {
    json!({
        "base": base(coordinator),
        "page": base(coordinator),
        "setup": set_up_link(coordinator),
        "site": "https://first.example",
        "email": OWNER,
        "password": PASSWORD,
        "shots": screenshot_folder(),
        "modules": tools.modules(),
    })
}
