//! Guarded pages of a real service: by a password, by a link that a real mail server takes, and in Chromium.

use std::path::Path;
use std::time::Duration;

use parallax_tests::client::plain;
use parallax_tests::eventually::{eventually, leave_out};
use parallax_tests::installation::{Account, Coordinator};
use parallax_tests::tools::{Tools, run};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pages::shots;

const SOON: Duration = Duration::from_secs(30);
const VISIT: Duration = Duration::from_secs(120);
/// The name of a monitor, which nobody may read who is not let in.
const CANARY: &str = "Canary in the coal mine";

/// A browser without a script: it keeps its cookies and follows nothing by itself.
struct Visitor {
    client: reqwest::Client,
    cookies: Vec<(String, String)>,
}

/// What it was shown.
struct Shown {
    status: u16,
    location: Option<String>,
    text: String,
}

impl Visitor {
    fn new() -> Self {
        Self { client: plain(SOON).redirect(Policy::none()).build().unwrap(), cookies: Vec::new() }
    }

    async fn get(&mut self, url: &str) -> Shown {
        self.send(self.client.get(url)).await
    }

    async fn post(&mut self, url: &str, body: &str) -> Shown {
        let request = self.client.post(url).header("content-type", "application/x-www-form-urlencoded");
        let origin = url.split('/').take(3).collect::<Vec<_>>().join("/");
        self.send(request.header("origin", origin).body(body.to_owned())).await
    }

    async fn send(&mut self, request: reqwest::RequestBuilder) -> Shown {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = request.header("cookie", cookies.join("; ")).send().await.unwrap();
        for set in answer.headers().get_all("set-cookie") {
            let (name, value) = set.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
        Shown {
            status: answer.status().as_u16(),
            location: answer.headers().get("location").map(|it| it.to_str().unwrap().to_owned()),
            text: answer.text().await.unwrap(),
        }
    }
}

/// Changes who may see the page, as its owner does.
async fn guard(account: &Account, change: Value) {
    account.client.patch(&format!("/pages/{}", account.page), &change).await.is(200);
}

async fn with_password(account: &Account, password: &str) {
    guard(account, json!({ "password": password })).await;
}

async fn for_one(account: &Account, person: &str) {
    guard(account, json!({ "private": true, "allowedPeople": [person] })).await;
}

/// A service whose mails go into a folder, with a page that has a monitor.
async fn served(mails: &Path) -> (Coordinator, Account, String) {
    let config = format!(
        "[mail]\ntransport = \"folder\"\nfolder = {mails:?}\nfrom = \"status@example.com\"\n",
        mails = mails.display().to_string()
    );
    let coordinator = Coordinator::serve(([127, 0, 0, 1], 0).into(), &config).await;
    let account = coordinator.account("pro");
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
    let document = account.client.get(&format!("/pages/{}", account.page)).await.is(200);
    let feed = document["page"]["privateFeedUrl"].as_str().unwrap().replace("feed.atom", "status.json");
    let form = visitor.get(&format!("{page}/history")).await;
    assert!(form.status == 403 && !form.text.contains(CANARY), "{}", form.text);
    assert_eq!(visitor.get(&format!("{page}/status.json")).await.status, 404);
    assert_eq!(visitor.post(&format!("{page}/password"), "password=sesame").await.status, 403);
    let right = visitor.post(&format!("{page}/password"), "to=%2Fhistory&password=open+sesame").await;
    assert_eq!((right.status, right.location), (303, Some(format!("/p/{}/history", account.slug))));
    assert!(visitor.get(&page).await.text.contains(CANARY));
    assert!(Visitor::new().get(&feed).await.text.contains(CANARY), "a program reads by the token");
    // Whoever was let in stays so over a restart.
    coordinator.process.terminate();
    coordinator.process.ended(SOON).await;
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
    assert_eq!(visitor.post(at, body).await.status, 303, "who is in is led on");
    for_one(&account, "bob@example.com").await;
    assert_eq!(visitor.get(&page).await.status, 403);
    assert_eq!(visitor.post(at, body).await.status, 403, "once is once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_in_chromium_comes_in_by_password_and_out_by_the_button() {
    const TEST: &str = "a_visitor_in_chromium_comes_in_by_password_and_out_by_the_button";
    let Some(tools) = Tools::find(TEST) else { return };
    if !Path::new("/usr/bin/chromium").is_file() {
        leave_out(TEST, "no Chromium", "apt-get install chromium");
        return;
    }
    let mails = TempDir::new().unwrap();
    let (_coordinator, account, page) = served(mails.path()).await;
    with_password(&account, "open sesame").await;
    let told = json!({
        "page": page,
        "canary": CANARY,
        "shots": shots(),
        "modules": tools.modules(),
    });
    let mut visit = tools.script("guarded.mjs");
    visit.arg(told.to_string());
    let folder = TempDir::new().expect("temporary folder");
    let ran = run("visit", visit, folder.path(), VISIT).await;
    assert!(ran.ok, "{}", ran.said);
}
