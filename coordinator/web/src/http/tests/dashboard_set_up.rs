//! First run over HTTP: one form from the printed link to a monitored site, and what is next after it.

use parallax_core::id::AccountId;
use parallax_core::role::Role;
use tokio::time::Instant;

use super::signed_in_browser::{hidden, location};
use super::{TestClient, TestResponse};
use crate::http::server::request_timeout::REQUEST_TIMEOUT;

/// A new account, as the program's first start makes it, and the path of its set-up link.
async fn first_link(client: &TestClient) -> (AccountId, String) {
    let service = &client.world.service;
    let account = service.accounts.create("owner@example.invalid", None).await.unwrap().id;
    service.pages.create_as_operator(account, "My services", "main").await.unwrap();
    let link = service.people.create_set_up_link(account, true).await.unwrap();
    (account, link.strip_prefix("https://status.example").unwrap().to_owned())
}

fn cookie_of(response: &TestResponse) -> String {
    response.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_first_form_leads_to_a_monitored_site_with_three_typed_fields() {
    let client = TestClient::new().await;
    let (account, path) = first_link(&client).await;
    let form = client.send("GET", &path, &[], "").await.text;
    for words in ["Set up Parallax", "Address of your site", "Start monitoring", "name=\"slug\"", "name=\"pageName\""] {
        assert!(form.contains(words), "{words}: {form}");
    }
    let done =
        client.send_form(&path, &[], "url=www.northwind.example&email=ann%40example.com&password=correct+horse").await;
    assert_eq!((done.status, location(&done)), (303, "/app?done=set-up&count=1"), "{}", done.text);
    let cookie = cookie_of(&done);
    let overview = client.send("GET", location(&done), &[("cookie", &cookie)], "").await;
    assert_eq!(overview.status, 200);
    for words in ["Northwind", "www.northwind.example", "Set up. The first check runs now"] {
        assert!(overview.text.contains(words), "{words}: {}", overview.text);
    }
    let pages = client.world.service.pages.list_of_account(account).await.unwrap();
    assert_eq!(pages.iter().map(|page| page.slug.as_str()).collect::<Vec<_>>(), ["northwind"]);
    assert_eq!(client.send("GET", &path, &[], "").await.status, 404, "the link works once");
}

#[tokio::test]
async fn a_refused_first_form_keeps_what_was_typed_and_makes_nothing() {
    let client = TestClient::new().await;
    let (account, path) = first_link(&client).await;
    let submit = async |fields: &str| client.send_form(&path, &[], fields).await;
    let typed = "url=ftp%3A%2F%2F&pageName=North&slug=shop&email=ann%40example.com&password=short";
    let refused = submit(typed).await;
    assert_eq!(refused.status, 400);
    for words in [
        "value=\"ftp://\"",
        "value=\"North\"",
        "value=\"shop\"",
        "value=\"ann@example.com\"",
        "Must be at least 10 characters.",
        "id=\"url-fault\"",
    ] {
        assert!(refused.text.contains(words), "{words}: {}", refused.text);
    }
    let taken = submit("url=a.example&slug=shop&email=ann%40example.com&password=correct+horse").await;
    assert_eq!(taken.status, 400);
    assert!(taken.text.contains("Is taken. shop-status is free.") && taken.text.contains("Type it again."));
    let forged = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "cross-site")];
    let whole = "url=a.example&email=ann%40example.com&password=correct+horse";
    assert_eq!(client.send("POST", &path, &forged, whole).await.status, 403);
    assert!(client.world.service.people.members(account).await.unwrap().is_empty());
    let pages = client.world.service.pages.list_of_account(account).await.unwrap();
    assert_eq!(pages[0].slug, "main", "nothing was changed");
    assert_eq!(submit(whole).await.status, 303, "the link still works");
}

#[tokio::test]
async fn what_is_next_stays_on_the_overview_until_it_is_done_or_dismissed() {
    let client = TestClient::new().await;
    let (_, path) = first_link(&client).await;
    let done =
        client.send_form(&path, &[], "url=www.northwind.example&email=ann%40example.com&password=correct+horse").await;
    let cookie = cookie_of(&done);
    let overview = async || client.send("GET", "/app", &[("cookie", &cookie)], "").await;
    let shown = overview().await;
    // Its owner operates the installation.
    for words in
        ["Set-up: 1 of 5", "/app/mesh/agents/new", "Send a test alert", "/app/account/members", "settings/address"]
    {
        assert!(shown.text.contains(words), "{words}: {}", shown.text);
    }
    let token = hidden(&shown, "form_token");
    let dismiss = async |headers: &[(&'static str, &str)], token: &str| {
        client.send_form("/app/next-steps/dismiss", headers, &format!("form_token={token}")).await
    };
    assert_eq!(dismiss(&[("cookie", &cookie)], "").await.status, 403, "a forged form");
    assert!(overview().await.text.contains("Set-up: 1 of 5"));
    let gone = dismiss(&[("cookie", &cookie)], &token).await;
    assert_eq!((gone.status, location(&gone)), (303, "/app?done=steps-dismissed&count=1"));
    assert!(!overview().await.text.contains("Set-up:"));
}

#[tokio::test]
async fn only_owners_see_what_is_next_and_dismiss_it() {
    let client = TestClient::new().await;
    for (role, is_shown, status) in
        [(Role::Viewer, false, 403), (Role::Editor, false, 403), (Role::Owner, true, 303), (Role::Owner, false, 303)]
    {
        let browser = client.sign_in(role).await;
        let shown = client.open(&browser, "/app").await.text;
        assert_eq!(shown.contains("Set-up: "), is_shown, "{role:?}: {shown}");
        assert!(!shown.contains("Add a second agent"), "nobody here operates the installation");
        assert_eq!(client.submit(&browser, "/app/next-steps/dismiss", &[]).await.status, status, "{role:?}");
    }
}

#[tokio::test]
async fn the_test_of_the_first_site_may_take_as_long_as_a_check() {
    let client = TestClient::new().await;
    let (_, path) = first_link(&client).await;
    // Nothing is written from here on: the clock would run ahead of the store's thread.
    tokio::time::pause();
    let began = Instant::now();
    let tested = client.send_form(&format!("{path}/test"), &[], "url=slow.northwind.example").await;
    assert_eq!(tested.status, 200, "{}", tested.text);
    assert!(began.elapsed() > REQUEST_TIMEOUT && tested.text.contains("class=\"state down\""), "{}", tested.text);
}

#[tokio::test]
async fn the_address_of_the_first_site_is_tested_before_anybody_owns_the_account() {
    let client = TestClient::new().await;
    let (account, path) = first_link(&client).await;
    let path = &format!("{path}/test");
    let test = async |fields: &str| client.send_form(path, &[], fields).await;
    for (url, words) in [
        ("www.northwind.example", ["Answers: passed in 40 ms.", "Its certificate is valid for 61 days."]),
        ("http://www.northwind.example", ["Answers: passed in 40 ms.", "<span>Answers: passed in 40 ms.</span>"]),
        (
            "down.northwind.example",
            ["class=\"state down\"", "You can start anyway: it counts as down until it answers."],
        ),
    ] {
        let tested = test(&format!("url={url}&password=correct+horse")).await;
        assert_eq!(tested.status, 200, "{url}");
        for words in words {
            assert!(tested.text.contains(words), "{url}: {words}: {}", tested.text);
        }
        assert!(!tested.text.contains("correct horse"), "no page has a password");
    }
    let refused = test("url=ftp%3A%2F%2Fa.example").await;
    assert_eq!(refused.status, 400);
    assert!(refused.text.contains("id=\"url-fault\"") && !refused.text.contains("class=\"state"), "{}", refused.text);
    let forged = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "cross-site")];
    assert_eq!(client.send("POST", path, &forged, "url=a.example").await.status, 403);
    assert_eq!(client.send_form("/setup/none/test", &[], "url=a.example").await.status, 404);
    // Three tests so far, and as many more as members have in a minute.
    for number in 3..20 {
        assert_eq!(test("url=a.example").await.status, 200, "{number}");
    }
    let limited = test("url=a.example").await;
    assert_eq!(limited.status, 429);
    assert!(limited.text.contains("id=\"test\"") && limited.headers.contains_key("retry-after"), "{}", limited.text);
    assert!(client.world.service.people.members(account).await.unwrap().is_empty(), "nothing is used up");
    let pages = client.world.service.pages.list_of_account(account).await.unwrap();
    assert_eq!(pages[0].slug, "main", "nothing was changed");
}
