//! Protected pages of a real service: by password, by a sign-in link from a real mail server, and in Chromium.

use std::path::Path;
use std::time::Duration;

use parallax_tests::api_client::http_client_builder;
use parallax_tests::eventually::{eventually, skip_test};
use parallax_tests::external_tools::{ExternalTools, run};
use parallax_tests::installation::{CoordinatorProcess, TestAccount};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::browser_visits::screenshot_folder;

const SOON: Duration = Duration::from_secs(30);
const VISIT: Duration = Duration::from_secs(120);
/// Name of a monitor that no visitor without access may read.
const CANARY: &str = "Canary in the coal mine";

/// A browser without scripts: it keeps cookies and follows no redirects.
struct Visitor {
    client: reqwest::Client,
    cookies: Vec<(String, String)>,
}

/// A response.
struct PageResponse {
    status: u16,
    location: Option<String>,
    text: String,
}

impl Visitor {
    fn new() -> Self {
        Self { client: http_client_builder(SOON).redirect(Policy::none()).build().unwrap(), cookies: Vec::new() }
    }

    async fn get(&mut self, url: &str) -> PageResponse {
        self.send(self.client.get(url)).await
    }

    async fn post(&mut self, url: &str, body: &str) -> PageResponse {
        let request = self.client.post(url).header("content-type", "application/x-www-form-urlencoded");
        let origin = url.split('/').take(3).collect::<Vec<_>>().join("/");
        self.send(request.header("origin", origin).body(body.to_owned())).await
    }

    async fn send(&mut self, request: reqwest::RequestBuilder) -> PageResponse {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = request.header("cookie", cookies.join("; ")).send().await.unwrap();
        for set in answer.headers().get_all("set-cookie") {
            let (name, value) = set.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
        PageResponse {
            status: answer.status().as_u16(),
            location: answer.headers().get("location").map(|it| it.to_str().unwrap().to_owned()),
            text: answer.text().await.unwrap(),
        }
    }
}

/// Changes the page's access settings, as its owner does.
async fn guard(account: &TestAccount, change: Value) {
    account.client.patch(&format!("/pages/{}", account.page), &change).await.expect_status(200);
}

async fn with_password(account: &TestAccount, password: &str) {
    guard(account, json!({ "password": password })).await;
}

async fn for_one(account: &TestAccount, person: &str) {
    guard(account, json!({ "private": true, "allowedPeople": [person] })).await;
}

/// Starts a service that writes its mails to a folder, with a page that has a monitor.
async fn served(mails: &Path) -> (CoordinatorProcess, TestAccount, String) {
    let config = format!(
        "[mail]\ntransport = \"folder\"\nfolder = {mails:?}\nfrom = \"status@example.com\"\n",
        mails = mails.display().to_string()
    );
    let coordinator = CoordinatorProcess::serve(([127, 0, 0, 1], 0).into(), &config).await;
    let account = coordinator.create_account("pro");
    account.client.create_monitor(&account.page, &json!({ "url": "a.example", "name": CANARY })).await;
    let page = format!("{}/p/{}", coordinator.ready.base_url, account.slug);
    (coordinator, account, page)
}

#[tokio::test]
async fn a_visitor_comes_in_by_the_password_until_it_is_another() {
    let mails = TempDir::new().unwrap();
    let (mut coordinator, account, page) = served(mails.path()).await;
    let mut visitor = Visitor::new();
    assert!(visitor.get(&page).await.text.contains(CANARY), "an open page");
    with_password(&account, "open sesame").await;
    let document = account.client.get(&format!("/pages/{}", account.page)).await.expect_status(200);
    let feed = document["page"]["privateFeedUrl"].as_str().unwrap().replace("feed.atom", "status.json");
    let form = visitor.get(&format!("{page}/history")).await;
    assert!(form.status == 403 && !form.text.contains(CANARY), "{}", form.text);
    assert_eq!(visitor.get(&format!("{page}/status.json")).await.status, 404);
    assert_eq!(visitor.post(&format!("{page}/password"), "password=sesame").await.status, 403);
    let right = visitor.post(&format!("{page}/password"), "to=%2Fhistory&password=open+sesame").await;
    assert_eq!((right.status, right.location), (303, Some(format!("/p/{}/history", account.slug))));
    assert!(visitor.get(&page).await.text.contains(CANARY));
    assert!(Visitor::new().get(&feed).await.text.contains(CANARY), "a program reads by the token");
    // Access tokens survive a restart.
    coordinator.process.terminate();
    coordinator.process.wait_for_exit(SOON).await;
    coordinator.restart().await;
    assert_eq!(visitor.get(&page).await.status, 200);
    assert_eq!(Visitor::new().get(&feed).await.status, 200);
    with_password(&account, "another").await;
    assert_eq!((visitor.get(&page).await.status, Visitor::new().get(&feed).await.status), (403, 404));
}

#[tokio::test]
async fn a_visitor_signs_in_by_the_link_in_a_mail_and_is_out_once_taken_out() {
    let mails = TempDir::new().unwrap();
    let (_coordinator, account, page) = served(mails.path()).await;
    for_one(&account, "ann@example.com").await;
    let mut visitor = Visitor::new();
    let form = visitor.get(&page).await;
    assert!(form.status == 403 && form.text.contains("type=\"email\""), "{}", form.text);
    for address in ["bob%40example.com", "ann%40example.com"] {
        let sent = visitor.post(&format!("{page}/sign-in"), &format!("to=%2Fhistory&email={address}")).await;
        assert!(sent.status == 200 && sent.text.contains("Check your inbox"), "{}", sent.text);
    }
    let mail = eventually("the mail is in the folder", SOON, async || {
        let files = std::fs::read_dir(mails.path()).unwrap();
        let texts: Vec<_> = files.filter_map(|it| std::fs::read_to_string(it.unwrap().path()).ok()).collect();
        texts.into_iter().find(|text| text.contains("Sign in to"))
    })
    .await;
    assert!(mail.contains("To: ann@example.com") && !mail.contains("bob@"), "{mail}");
    let plain = mail.replace("=\r\n", "").replace("=\n", "").replace("=3D", "=");
    let at = plain.find("/sign-in/link?t=").unwrap_or_else(|| panic!("{plain}"));
    let start = plain[..at].rfind("http").unwrap();
    let link = plain[start..].split([' ', '\r', '\n', '>', '"', '<']).next().unwrap().to_owned();
    assert!(link.starts_with(&page), "{link}");
    let seen = visitor.get(&link).await;
    assert!(seen.status == 200 && seen.text.contains("Click once more"), "{}", seen.text);
    let (at, body) = link.split_once('?').unwrap();
    assert_eq!(Visitor::new().post(at, body).await.status, 403, "in another browser");
    let arrived = visitor.post(at, body).await;
    assert_eq!((arrived.status, arrived.location), (303, Some(format!("/p/{}/history", account.slug))));
    assert!(visitor.get(&page).await.text.contains(CANARY));
    assert_eq!(visitor.post(at, body).await.status, 303, "a signed-in visitor is redirected");
    for_one(&account, "bob@example.com").await;
    assert_eq!(visitor.get(&page).await.status, 403);
    assert_eq!(visitor.post(at, body).await.status, 403, "once is once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_in_chromium_comes_in_by_password_and_out_by_the_button() {
    const TEST: &str = "a_visitor_in_chromium_comes_in_by_password_and_out_by_the_button";
    let Some(tools) = ExternalTools::find(TEST) else { return };
    if !Path::new("/usr/bin/chromium").is_file() {
        skip_test(TEST, "no Chromium", "apt-get install chromium");
        return;
    }
    let mails = TempDir::new().unwrap();
    let (_coordinator, account, page) = served(mails.path()).await;
    with_password(&account, "open sesame").await;
    let told = json!({
        "page": page,
        "canary": CANARY,
        "shots": screenshot_folder(),
        "modules": tools.modules(),
    });
    let mut visit = tools.script("guarded.mjs");
    visit.arg(told.to_string());
    let folder = TempDir::new().expect("temporary folder");
    let ran = run("visit", visit, folder.path(), VISIT).await;
    assert!(ran.success, "{}", ran.output);
}
