//! What the API does beyond the contract, from outside: pages, looks on request, and looks back.

use std::time::{Duration, Instant};

use parallax_tests::eventually::{API_PERIOD, eventually_every};
use parallax_tests::installation::Coordinator;
use reqwest::Method;
use serde_json::{Value, json};

/// A scheduled round comes every thirty seconds on Pro.
const A_ROUND: Duration = Duration::from_secs(60);
/// A look takes the check's time and three seconds at most.
const A_LOOK: Duration = Duration::from_secs(14);

#[tokio::test(flavor = "multi_thread")]
async fn a_page_lives_from_its_making_to_its_end() {
    let coordinator = Coordinator::up(&["--region", "europe"]).await;
    let key = coordinator.ready.api_key.clone().expect("the first start makes a key");
    let client = coordinator.api().with_key(Some(&key));
    let made = client.post("/pages", &json!({ "name": "Docs", "slug": "manual" })).await;
    let place = made.header("location").expect("a page has an address").to_owned();
    let page = made.is(201)["page"]["id"].as_str().expect("a page has an id").to_owned();
    assert_eq!(place, format!("/api/v1/pages/{page}"));
    let monitor = client.create_monitor(&page, &json!({ "url": "http://127.0.0.1:9/" })).await;
    let path = format!("/pages/{page}/monitors/{}", monitor["id"].as_str().expect("a monitor has an id"));

    let regions = eventually_every(API_PERIOD, "a region is in service", A_ROUND, async || {
        let regions = client.get("/regions").await.is(200)["regions"].take();
        (!regions.as_array()?.is_empty()).then_some(regions)
    })
    .await;
    assert_eq!((&regions[0]["region"], &regions[0]["addresses"]), (&json!("europe"), &json!(["127.0.0.1"])));

    // The driver follows the new monitor within moments; a look before that finds nobody to ask.
    let begun = Instant::now();
    let seen = eventually_every(API_PERIOD, "a look finds a place", A_ROUND, async || {
        let answer = client.send(Method::POST, &format!("/api/v1{path}/check"), None).await;
        let answer = if answer.status == 429 { return None } else { answer.is(200) };
        answer["regions"].as_array()?.first().cloned()
    })
    .await;
    assert!(begun.elapsed() < A_ROUND && seen["region"] == "europe", "{seen}");
    assert_eq!(seen["seen"]["ok"], false, "loopback is not checked: {seen}");
    let again = Instant::now();
    client.send(Method::POST, &format!("/api/v1{path}/check"), None).await.refused(429, "rate_limited");
    assert!(again.elapsed() < A_LOOK);

    let check = eventually_every(API_PERIOD, "a round is in the history", A_ROUND, async || {
        let checks = client.get(&format!("{path}/checks")).await.is(200)["checks"].take();
        checks.as_array()?.first().cloned()
    })
    .await;
    assert_eq!(
        (&check["region"], &check["place"]["region"]),
        (&json!("europe"), &json!("europe")),
        "{check}"
    );
    assert_ne!(check["result"], "passed");
    assert_eq!(check["first"]["ok"], false, "both words of an odd round are kept: {check}");
    let days = client.get(&format!("{path}/uptime")).await.is(200)["days"].take();
    assert_eq!(days.as_array().map(Vec::len), Some(90));
    client.get(&format!("{path}/events")).await.is(200);
    for edge in ["checks?cursor=0-0", "uptime?from=1969-12-01&to=1970-02-01", "events?cursor=0"] {
        client.get(&format!("{path}/{edge}")).await.is(200);
    }
    let whole = client.get(&format!("{path}/checks?limit=1")).await.is(200);
    if let Some(cursor) = whole["nextCursor"].as_str() {
        let next = client.get(&format!("{path}/checks?limit=1&cursor={cursor}")).await.is(200);
        assert_ne!(next["checks"][0]["round"], whole["checks"][0]["round"]);
    }

    client.patch(&path, &json!({ "paused": true })).await.is(200);
    let paused = eventually_every(API_PERIOD, "a paused monitor is unknown", A_ROUND, async || {
        let monitor = client.get(&path).await.is(200)["monitor"].take();
        (monitor["status"] == "unknown").then_some(monitor)
    })
    .await;
    assert_eq!(paused["paused"], true);

    assert_eq!(client.delete(&format!("/pages/{page}")).await.status, 204);
    client.get(&path).await.refused(404, "not_found");
    let pages = client.get("/pages").await.is(200)["pages"].take();
    assert!(pages.as_array().is_some_and(|pages| pages.iter().all(|one: &Value| one["id"] != page.as_str())));
}
