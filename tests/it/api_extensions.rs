//! API features beyond the contract: pages, check now, and history.

use std::time::{Duration, Instant};

use parallax_tests::eventually::{API_PERIOD, eventually_every};
use parallax_tests::installation::CoordinatorProcess;
use reqwest::Method;
use serde_json::{Value, json};

/// Longest wait for a scheduled round, which comes every thirty seconds on Pro.
const A_ROUND: Duration = Duration::from_secs(60);
/// Longest duration of "check now": the check's timeout and three seconds.
const A_LOOK: Duration = Duration::from_secs(14);

#[tokio::test(flavor = "multi_thread")]
async fn a_page_lives_from_its_making_to_its_end() {
    let coordinator = CoordinatorProcess::up(&["--region", "europe"]).await;
    let key = coordinator.ready.api_key.clone().expect("the first start makes a key");
    let client = coordinator.api().with_key(Some(&key));
    let made = client.post("/pages", &json!({ "name": "Docs", "slug": "manual" })).await;
    let place = made.header("location").expect("a page has an address").to_owned();
    let page = made.expect_status(201)["page"]["id"].as_str().expect("a page has an id").to_owned();
    assert_eq!(place, format!("/api/v1/pages/{page}"));
    let monitor = client.create_monitor(&page, &json!({ "url": "http://127.0.0.1:9/" })).await;
    let path = format!("/pages/{page}/monitors/{}", monitor["id"].as_str().expect("a monitor has an id"));

    let regions = eventually_every(API_PERIOD, "a region is in service", A_ROUND, async || {
        let regions = client.get("/regions").await.expect_status(200)["regions"].take();
        (!regions.as_array()?.is_empty()).then_some(regions)
    })
    .await;
    assert_eq!((&regions[0]["region"], &regions[0]["addresses"]), (&json!("europe"), &json!(["127.0.0.1"])));

    // The engine picks up a new monitor within moments; before that, "check now" finds no agent.
    let begun = Instant::now();
    let seen = eventually_every(API_PERIOD, "a look finds a place", A_ROUND, async || {
        let answer = client.send(Method::POST, &format!("/api/v1{path}/check"), None).await;
        let answer = if answer.status == 429 { return None } else { answer.expect_status(200) };
        answer["regions"].as_array()?.first().cloned()
    })
    .await;
    assert!(begun.elapsed() < A_ROUND && seen["region"] == "europe", "{seen}");
    assert_eq!(seen["seen"]["ok"], false, "loopback is not checked: {seen}");
    let again = Instant::now();
    client.send(Method::POST, &format!("/api/v1{path}/check"), None).await.expect_error(429, "rate_limited");
    assert!(again.elapsed() < A_LOOK);

    let check = eventually_every(API_PERIOD, "a round is in the history", A_ROUND, async || {
        let checks = client.get(&format!("{path}/checks")).await.expect_status(200)["checks"].take();
        checks.as_array()?.first().cloned()
    })
    .await;
    assert_eq!((&check["region"], &check["place"]["region"]), (&json!("europe"), &json!("europe")), "{check}");
    assert_ne!(check["result"], "passed");
    assert_eq!(check["first"]["ok"], false, "both outcomes of a disputed round are stored: {check}");
    let days = client.get(&format!("{path}/uptime")).await.expect_status(200)["days"].take();
    assert_eq!(days.as_array().map(Vec::len), Some(90));
    client.get(&format!("{path}/events")).await.expect_status(200);
    for edge in ["checks?cursor=0-0", "uptime?from=1969-12-01&to=1970-02-01", "events?cursor=0"] {
        client.get(&format!("{path}/{edge}")).await.expect_status(200);
    }
    let whole = client.get(&format!("{path}/checks?limit=1")).await.expect_status(200);
    if let Some(cursor) = whole["nextCursor"].as_str() {
        let next = client.get(&format!("{path}/checks?limit=1&cursor={cursor}")).await.expect_status(200);
        assert_ne!(next["checks"][0]["round"], whole["checks"][0]["round"]);
    }

    client.patch(&path, &json!({ "paused": true })).await.expect_status(200);
    let paused = eventually_every(API_PERIOD, "a paused monitor is unknown", A_ROUND, async || {
        let monitor = client.get(&path).await.expect_status(200)["monitor"].take();
        (monitor["status"] == "unknown").then_some(monitor)
    })
    .await;
    assert_eq!(paused["paused"], true);

    assert_eq!(client.delete(&format!("/pages/{page}")).await.status, 204);
    client.get(&path).await.expect_error(404, "not_found");
    let pages = client.get("/pages").await.expect_status(200)["pages"].take();
    assert!(pages.as_array().is_some_and(|pages| pages.iter().all(|one: &Value| one["id"] != page.as_str())));
}
