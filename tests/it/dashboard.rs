//! The dashboard in Chromium: every screen in both widths and themes, its scripts in use, jobs with their clicks counted,
//! an account without pages and monitors, a viewer, and passkeys.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use parallax_core::id::{AccountId, PersonId};
use parallax_core::person::{AccountMember, Person};
use parallax_core::role::Role;
use parallax_store::disk::DiskOptions;
use parallax_store::{Batch, Store};
use parallax_tests::api_client::http_client_builder;
use parallax_tests::free_ports::free_port;
use parallax_tests::installation::CoordinatorProcess;
use reqwest::header::{CONTENT_TYPE, HeaderName};
use reqwest::redirect::Policy;
use serde_json::{Value, json};

use crate::browser_visits::{screenshot_folder, shows_every_state, tools, visit, within_one_day};

/// Email address of the viewer, whose password is the owner's.
const VIEWER: &str = "viewer@example.com";
const OWNER: &str = "owner@example.com";
const PASSWORD: &str = "correct horse battery";
/// Longest answer to a form that hashes a password.
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_is_whole_and_each_job_takes_few_clicks() {
    const TEST: &str = "the_dashboard_is_whole_and_each_job_takes_few_clicks";
    let Some(tools) = tools(TEST) else { return };
    within_one_day().await;
    let mut demo = CoordinatorProcess::up(&["--demo"]).await;
    let key = demo.ready.api_key.clone().expect("the first start makes a key");
    let page = demo.ready.page_id.clone().expect("the first start makes a page");
    let account = set_up(&demo).await;
    demo.process.kill();
    add_viewer(demo.data().join("store"), account).await;
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
    let told = json!({
        "base": base(&coordinator),
        "page": base(&coordinator),
        "setup": set_up_link(&coordinator).1,
        "site": "https://first.example",
        "email": OWNER,
        "password": PASSWORD,
        "shots": screenshot_folder(),
        "modules": tools.modules(),
    });
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
    let told = json!({
        "base": base(&coordinator),
        "page": base(&coordinator),
        "setup": set_up_link(&coordinator).1,
        "site": "https://first.example",
        "email": OWNER,
        "password": PASSWORD,
        "shots": screenshot_folder(),
        "modules": tools.modules(),
    });
    visit(&tools, "page/passkeys.mjs", &told).await;
}

fn base(coordinator: &CoordinatorProcess) -> &str {
    coordinator.ready.base_url.trim_end_matches('/')
}

fn run(coordinator: &CoordinatorProcess, words: &[&str]) -> Value {
    coordinator.run_command(words).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Prints a set-up link; returns its account and the link.
fn set_up_link(coordinator: &CoordinatorProcess) -> (AccountId, String) {
    let link = run(coordinator, &["account", "link"]);
    let text = |name: &str| link[name].as_str().unwrap_or_default().to_owned();
    (text("account").parse().expect("an id"), text("setUpUrl"))
}

/// Gives the only account an owner with a password, who operates the installation; returns the account.
async fn set_up(coordinator: &CoordinatorProcess) -> AccountId {
    let (account, link) = set_up_link(coordinator);
    let form = format!("email={OWNER}&name=Olga&password={}", PASSWORD.replace(' ', "+"));
    let client = http_client_builder(LIMIT).redirect(Policy::none()).build().expect("a client");
    let request = client.post(link).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
    let own = (HeaderName::from_static("sec-fetch-site"), "same-origin");
    let response = request.header(own.0, own.1).send().await.expect("an answer");
    assert_eq!(response.status(), 303, "{}", response.text().await.unwrap_or_default());
    run(coordinator, &["account", "operator", "--email", OWNER, "on"]);
    account
}

/// Adds a viewer to an account, as an invitation would.
async fn add_viewer(folder: PathBuf, account: AccountId) {
    let open = move || Store::on_disk(&folder, DiskOptions::default());
    let store = tokio::task::spawn_blocking(open).await.expect("no panic").expect("the store opens");
    let owner = store.reader().person_by_email(OWNER).expect("a read").expect("the owner is stored").value;
    let joined_at = owner.created_at;
    let viewer = Person {
        id: PersonId::new(joined_at, [7; 10]),
        email: VIEWER.to_owned(),
        name: Some("Vera".to_owned()),
        is_operator: false,
        ..owner
    };
    let mut batch = Batch::new();
    batch.write(AccountMember::new((account, viewer.id), Role::Viewer, joined_at)).write(viewer);
    store.commit(batch).await.expect("a commit");
    store.close().await;
}
