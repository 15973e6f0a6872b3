//! `up --demo`: every state is visible within two minutes, through the API alone.

use std::time::Duration;

use parallax_tests::eventually::eventually_every;
use parallax_tests::installation::CoordinatorProcess;
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
