//! `up --demo`: every state is visible within two minutes, through the API alone.

use std::time::Duration;

use parallax_tests::eventually::eventually_every;
use parallax_tests::installation::CoordinatorProcess;
use reqwest::Method;
use serde_json::{Value, json};

/// Promised time, measured from the ready file.
const LIMIT: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_shows_up_slow_down_and_down_from_asia_only() {
    let demo = CoordinatorProcess::up(&["--demo"]).await;
    let key = demo.ready.api_key.clone().expect("the first start makes a key");
    let page = demo.ready.page_id.clone().expect("the first start makes a page");
    let client = demo.api().with_key(Some(&key));
    let mut seen = Vec::new();
    eventually_every(Duration::from_secs(2), "up, slow, down, and down from Asia alone", LIMIT, async || {
        let monitors = client.monitors(&page).await;
        seen = monitors.iter().map(|m| json!([m["name"], m["status"], m["downFrom"]])).collect::<Vec<Value>>();
        let shows = |status: &str, from: Value| monitors.iter().any(|m| m["status"] == status && m["downFrom"] == from);
        let all = shows("up", Value::Null)
            && shows("slow", Value::Null)
            && shows("down", Value::Null)
            && shows("down", json!(["asia"]));
        if !all {
            eprintln!("so far: {}", Value::from(seen.clone()));
        }
        all.then_some(())
    })
    .await;
    let monitors = client.monitors(&page).await;
    let types: std::collections::BTreeSet<&str> = monitors.iter().filter_map(|m| m["type"].as_str()).collect();
    assert_eq!(types.len(), 8, "every type is shown: {types:?}");
    eventually_every(Duration::from_secs(2), "domain and component are up", LIMIT, async || {
        let monitors = client.monitors(&page).await;
        let is_up = |kind: &str| monitors.iter().any(|m| m["type"] == kind && m["status"] == "up");
        (is_up("domain") && is_up("component")).then_some(())
    })
    .await;
    // Alerts and updates reach the demo's receiver, and mails are readable files.
    let (mut taken, mut mails) = (Vec::new(), Vec::new());
    let folder = demo.data().join("mails");
    eventually_every(Duration::from_secs(2), "alerts are delivered by webhook and mail", LIMIT, async || {
        let path = format!("/pages/{page}/deliveries?status=delivered&limit=200");
        taken = client.get(&path).await.expect_status(200)["deliveries"].as_array().cloned().unwrap_or_default();
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        mails = files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect();
        let is_posted = |it: &Value| it["event"] == "went-down" && it["lastStatus"] == 200;
        let is_mailed = |it: &String| it.contains("Subject: Down: ") || it.contains("Subject: Confirm your");
        (taken.iter().any(is_posted) && mails.iter().any(is_mailed)).then_some(())
    })
    .await;
    let status = client.get(&format!("/pages/{page}/status")).await.expect_status(200);
    assert!(status["monitors"].as_array().is_some_and(|list| list.len() == seen.len()), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_has_a_past_whose_figures_incidents_and_events_agree() {
    let demo = CoordinatorProcess::up(&["--demo"]).await;
    let key = demo.ready.api_key.clone().expect("the first start makes a key");
    let page = demo.ready.page_id.clone().expect("the first start makes a page");
    let client = demo.api().with_key(Some(&key));
    let monitors = client.monitors(&page).await;
    let checkout = monitors.iter().find(|it| it["name"] == "Checkout").and_then(|it| it["id"].as_str());
    let of_checkout = format!("/pages/{page}/monitors/{}", checkout.expect("it is a monitor of the demo"));

    // The bar of that day has the outage,
    let days = client.get(&format!("{of_checkout}/uptime")).await.expect_status(200)["days"].take();
    let days = days.as_array().cloned().unwrap_or_default();
    assert!(days.len() == 90 && days.iter().all(|day| day["passed"].as_u64() > Some(0)), "{days:?}");
    let failed: Vec<&Value> = days.iter().filter(|day| day["failed"].as_u64() > Some(0)).collect();
    let [_, newest] = failed[..] else { panic!("two days with an outage: {failed:?}") };
    // which an incident explains,
    let incidents = client.get(&format!("/pages/{page}/incidents")).await.expect_status(200)["incidents"].take();
    let explains = |it: &&Value| it["title"] == "Checkout fails" && it["postmortem"].is_string();
    let incident = incidents.as_array().and_then(|all| all.iter().find(explains)).expect("it is listed").clone();
    let day = |time: &Value| time.as_str().and_then(|time| time.get(..10)).map(str::to_owned);
    assert_eq!(day(&incident["startedAt"]), newest["date"].as_str().map(str::to_owned));
    // and the events have it with its evidence.
    let events = client.get(&format!("{of_checkout}/events")).await.expect_status(200)["events"].take();
    let went_down = events.as_array().and_then(|all| all.iter().find(|it| it["to"] == "down")).cloned();
    let went_down = went_down.expect("it is listed");
    assert_eq!(day(&went_down["downSince"]), day(&incident["startedAt"]));
    let evidence = went_down["evidence"].as_array().cloned().unwrap_or_default();
    assert_eq!(evidence.len(), 12, "two rounds in each region");
    for round in evidence {
        // The agents of the past are those of today, in their regions.
        assert_eq!(round["first"]["place"]["region"], round["region"], "{round}");
    }

    let address = demo.ready.page_url.clone().expect("the page has an address");
    let path = address.strip_prefix(&demo.ready.base_url).expect("the page is below the base URL");
    for (path, text) in [
        (format!("{path}/incidents/{}", incident["id"].as_str().unwrap_or_default()), "before the migration"),
        (format!("{path}/feed.atom"), "Checkout fails"),
        (path.to_owned(), "Move of the database to new hosts"),
        (path.to_owned(), "are simulated, too"),
    ] {
        let response = client.send(Method::GET, &path, None).await;
        assert!(response.status == 200 && response.text.contains(text), "{path}: no {text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_up_serves_its_first_page_and_key_and_says_what_it_cannot_do() {
    let mut up = CoordinatorProcess::up(&["--region", "europe"]).await;
    let key = up.ready.api_key.clone().expect("the first start makes a key");
    let client = up.api().with_key(Some(&key));
    assert_eq!(client.get("/me").await.expect_status(200)["key"]["access"], "write");
    let pages = client.get("/pages").await.expect_status(200);
    assert_eq!(pages["pages"][0]["id"], Value::from(up.ready.page_id.clone()));
    // The output shows the key, the next steps, and that a single network can't confirm an outage.
    for words in [key.as_str(), "parallax agent invite", "on one network"] {
        up.process.wait_for_log(words, Duration::from_secs(10)).await;
    }

    up.process.terminate();
    assert_eq!(up.process.wait_for_exit(Duration::from_secs(20)).await.code(), Some(0));
    up.restart().await;
    assert_eq!(up.ready.api_key, None, "a key is shown once");
    client.get("/me").await.expect_status(200);
}
