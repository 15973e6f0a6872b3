//! The API from a customer's view: keys, pages, monitors, errors and rate limits.

use std::sync::Arc;
use std::time::Duration;

use parallax_tests::api_client::{ApiClient, ApiResponse};
use parallax_tests::eventually::{API_PERIOD, eventually_every};
use parallax_tests::installation::CoordinatorProcess;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Concurrent requests where many clients write one record: each waits until the earlier ones are durable.
const AT_ONCE: usize = 16;

/// A service with a page and a write key, as `up` creates them.
struct Service {
    client: ApiClient,
    page: String,
    coordinator: CoordinatorProcess,
}

async fn service() -> Service {
    let coordinator = CoordinatorProcess::up(&["--region", "europe"]).await;
    let key = coordinator.ready.api_key.clone().expect("the first start makes a key");
    let page = coordinator.ready.page_id.clone().expect("the first start makes a page");
    Service { client: coordinator.api().with_key(Some(&key)), page, coordinator }
}

impl Service {
    fn monitors(&self) -> String {
        format!("/pages/{}/monitors", self.page)
    }

    fn one(&self, monitor: &Value) -> String {
        format!("{}/{}", self.monitors(), monitor["id"].as_str().expect("a monitor has an id"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_says_what_it_is_and_none_is_refused() {
    let service = service().await;
    let key = service.client.get("/me").await.expect_status(200)["key"].take();
    assert_eq!((&key["access"], &key["pageId"]), (&json!("write"), &Value::Null), "{key}");
    assert!(key["id"].is_string() && key["name"].is_string() && key["createdAt"].is_string(), "{key}");
    for wrong in [None, Some("plx_wrong"), Some("")] {
        service.client.with_key(wrong).get("/me").await.expect_error(401, "unauthenticated");
    }
    service.client.with_key(None).get("/nowhere").await.expect_error(401, "unauthenticated");
    service.client.get("/nowhere").await.expect_error(404, "not_found");
    let answer = service.client.send(Method::DELETE, "/api/v1/me", None).await;
    assert!(answer.header("allow").is_some_and(|methods| methods.contains("GET")));
    answer.expect_error(405, "method_not_allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_read_changed_and_bounded() {
    let service = service().await;
    let path = format!("/pages/{}", service.page);
    let page = service.client.get(&path).await.expect_status(200)["page"].take();
    for field in ["id", "name", "slug", "url", "customDomain", "description", "supportUrl", "timezone", "createdAt"] {
        assert!(page.get(field).is_some(), "{field}: {page}");
    }
    let change = json!({"name": "  Näme ", "description": "One line", "uptimeTarget": 99.9,
        "timezone": "Europe/Berlin", "latencyLocations": ["asia"], "uptimeRegions": null, "showDeploys": true});
    let changed = service.client.patch(&path, &change).await.expect_status(200)["page"].take();
    assert_eq!(changed["name"], "Näme");
    assert_eq!((&changed["latencyLocations"], &changed["uptimeRegions"]), (&json!(["asia"]), &Value::Null));
    assert_eq!(service.client.get(&path).await.expect_status(200)["page"], changed);
    let cleared = service.client.patch(&path, &json!({"description": null})).await.expect_status(200)["page"].take();
    assert_eq!((&cleared["description"], &cleared["name"]), (&Value::Null, &json!("Näme")));

    let wrong = [
        ("name", json!("")),
        ("name", json!("x".repeat(81))),
        ("description", json!("x".repeat(201))),
        ("supportUrl", json!("ftp://example.com")),
        ("uptimeTarget", json!(89.9)),
        ("uptimeTarget", json!(100)),
        ("timezone", json!("Europe/Nowhere")),
        ("showDeploys", json!("yes")),
        ("password", json!("x".repeat(201))),
        ("allowedPeople", json!(["nobody"])),
        ("allowedDomains", json!(["localhost"])),
        ("theme", json!("blue")),
        ("accentColor", json!("red")),
        ("logo", json!("https://example.com/logo.png")),
        ("language", json!("xx")),
        ("latencyLocations", json!(["mars"])),
    ];
    for (field, value) in wrong {
        let message = service.client.patch(&path, &json!({field: value})).await.expect_error(400, "bad_request");
        assert!(message.contains(field), "the message names {field}: {message}");
    }
    assert_eq!(service.client.get(&path).await.expect_status(200)["page"], cleared, "nothing half done");
    service.client.get("/pages/page_of_nobody").await.expect_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_is_made_read_changed_and_deleted() {
    let service = service().await;
    let body = json!({"url": "example.com/health", "method": "POST", "headers": {"X-Token": "secret-header"},
        "body": "secret-body", "expectStatus": 204, "keyword": "ok", "keywordMode": "present",
        "groupName": "Site", "slowThresholdMs": 800, "slowThresholds": {"asia": 1500}, "pinnedRegion": ""});
    let answer = service.client.post(&service.monitors(), &body).await;
    assert!(!answer.text.contains("secret"), "headers and body are never returned: {}", answer.text);
    let made = answer.expect_status(201)["monitor"].take();
    for (field, value) in [
        ("name", json!("example.com")),
        ("type", json!("http")),
        ("url", json!("https://example.com/health")),
        ("group", json!("Site")),
        ("method", json!("POST")),
        ("expectStatus", json!(204)),
        ("slowThresholds", json!({"asia": 1500})),
        ("pinnedRegion", Value::Null),
        ("status", json!("unknown")),
        ("since", Value::Null),
        ("lastCheck", Value::Null),
        ("uptime24h", Value::Null),
        ("latencyMs24h", Value::Null),
        ("downFrom", Value::Null),
        ("pageId", json!(service.page)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    let tcp = json!({"type": "tcp", "host": "example.com", "port": 5432, "name": "db"});
    let tcp = service.client.create_monitor(&service.page, &tcp).await;
    assert_eq!((&tcp["host"], &tcp["port"], &tcp["url"]), (&json!("example.com"), &json!(5432), &Value::Null));

    let change = json!({"keyword": null, "slowThresholdMs": 900});
    let changed = service.client.patch(&service.one(&made), &change).await.expect_status(200)["monitor"].take();
    assert_eq!((&changed["keyword"], &changed["slowThresholdMs"]), (&Value::Null, &json!(900)));
    assert_eq!(changed["expectStatus"], 204, "a field left out keeps its value");
    service.client.patch(&service.one(&made), &json!({"type": "tcp"})).await.expect_error(400, "bad_request");

    let list = service.client.monitors(&service.page).await;
    assert_eq!(list.iter().map(|m| m["position"].clone()).collect::<Vec<_>>(), [json!(0), json!(1)]);
    let gone = service.client.delete(&service.one(&made)).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    service.client.get(&service.one(&made)).await.expect_error(404, "not_found");
    service.client.delete(&service.one(&made)).await.expect_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bound_of_a_monitor_is_kept_and_named() {
    let service = service().await;
    let wrong = [
        ("url", json!({})),
        ("url", json!({"url": "ftp://example.com"})),
        ("name", json!({"url": "example.com", "name": "x".repeat(81)})),
        ("name", json!({"type": "heartbeat", "periodMinutes": 5})),
        ("type", json!({"type": "carrier-pigeon"})),
        ("port", json!({"type": "tcp", "host": "example.com"})),
        ("port", json!({"type": "tcp", "host": "example.com", "port": 70000})),
        ("host", json!({"type": "tcp", "port": 1})),
        ("method", json!({"url": "example.com", "method": "BREW"})),
        ("headers", json!({"url": "example.com", "headers": {"a b": "x"}})),
        ("headers", json!({"url": "example.com", "headers": {"a": "x\r\ny"}})),
        ("headers", json!({"url": "example.com", "headers": {"a": "x".repeat(4001)}})),
        ("body", json!({"url": "example.com", "method": "POST", "body": "x".repeat(10_001)})),
        ("expectStatus", json!({"url": "example.com", "expectStatus": 99})),
        ("keyword", json!({"url": "example.com", "keyword": "x".repeat(201)})),
        ("keywordMode", json!({"url": "example.com", "keyword": "x", "keywordMode": "perhaps"})),
        ("groupName", json!({"url": "example.com", "groupName": "x".repeat(61)})),
        ("slowThresholdMs", json!({"url": "example.com", "slowThresholdMs": 10_000})),
        ("slowThresholds", json!({"url": "example.com", "slowThresholds": {"asia": 0}})),
        ("pinnedRegion", json!({"url": "example.com", "pinnedRegion": "mars"})),
        ("periodMinutes", json!({"type": "heartbeat", "name": "job", "periodMinutes": 44_641})),
        ("graceMinutes", json!({"type": "heartbeat", "name": "job", "periodMinutes": 1, "graceMinutes": 10_081})),
    ];
    for (field, body) in wrong {
        let message = service.client.post(&service.monitors(), &body).await.expect_error(400, "bad_request");
        assert!(message.contains(field), "{body}: the message names {field}: {message}");
    }
    for text in ["", "{", "[]", "null", "\"x\""] {
        let path = format!("/api/v1{}", service.monitors());
        service.client.send(Method::POST, &path, Some(text.to_owned())).await.expect_error(400, "bad_request");
    }
    let path = format!("/api/v1{}", service.monitors());
    // The request is rejected early, and the response is still received.
    for length in [300_000, 10 << 20] {
        let big = json!({"url": "example.com", "more": "x".repeat(length)}).to_string();
        answered(&service.client, &path, &big).await.expect_error(400, "bad_request");
        answered(&service.client.with_key(Some("nobody")), &path, &big).await.expect_error(401, "unauthenticated");
    }
    assert_eq!(service.client.monitors(&service.page).await.len(), 0, "nothing half done");
}

/// Returns the response to an oversized body. The service drains part of the body and then closes the connection,
/// which may lose the response; the request is then repeated.
async fn answered(client: &ApiClient, path: &str, body: &str) -> ApiResponse {
    for _ in 0..3 {
        if let Ok(answer) = client.try_send(Method::POST, path, Some(body.to_owned())).await {
            return answer;
        }
    }
    panic!("cut off three times");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_reaches_what_is_its_own_and_reads_only_when_it_may() {
    let service = service().await;
    let (one, other) = (service.coordinator.create_account("free"), service.coordinator.create_account("pro"));
    let monitor = one.client.create_monitor(&one.page, &json!({"url": "example.com"})).await;
    let id = monitor["id"].as_str().unwrap();
    let read = one.client.with_key(Some(&service.coordinator.create_key(&one.account, "read")));
    read.get(&format!("/pages/{}/monitors/{id}", one.page)).await.expect_status(200);
    for path in [format!("/pages/{}/monitors", one.page), "/pages/other/monitors".to_owned()] {
        read.post(&path, &json!({})).await.expect_error(403, "read_only");
    }
    // Another account's records are not found, neither by the page's path nor by one's own.
    for page in [&one.page, &other.page] {
        let path = format!("/pages/{page}/monitors/{id}");
        other.client.get(&path).await.expect_error(404, "not_found");
        other.client.patch(&path, &json!({"name": "mine"})).await.expect_error(404, "not_found");
        other.client.delete(&path).await.expect_error(404, "not_found");
    }
    other.client.get(&format!("/pages/{}/status", one.page)).await.expect_error(404, "not_found");
    // Free allows ten monitors.
    for _ in 1..10 {
        one.client.create_monitor(&one.page, &json!({"url": "example.com"})).await;
    }
    let full = one.client.post(&format!("/pages/{}/monitors", one.page), &json!({"url": "example.com"})).await;
    full.expect_error(422, "plan_limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_and_twenty_requests_a_minute_and_no_more() {
    let service = service().await;
    let mut granted = 0;
    // Twice the limit: the minute may roll over meanwhile.
    let refused = loop {
        let answer = service.client.get("/me").await;
        assert_eq!(answer.header("ratelimit-limit"), Some("120"));
        if answer.status == 429 {
            break answer;
        }
        granted += 1;
        assert!(granted <= 240, "no limit");
    };
    assert!(granted >= 120, "only {granted} were granted");
    let wait: u64 = refused.header("retry-after").and_then(|seconds| seconds.parse().ok()).expect("Retry-After");
    assert!((1..=60).contains(&wait), "{wait}");
    refused.expect_error(429, "rate_limited");
    // Another key has a separate limit.
    let other = service.coordinator.create_account("free");
    other.client.get("/me").await.expect_status(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_document_shows_states_and_no_secrets() {
    let service = service().await;
    let body = json!({"url": "http://127.0.0.1:9/hidden-path", "name": "refused", "headers": {"X": "secret-header"}});
    service.client.create_monitor(&service.page, &body).await;
    let path = format!("/pages/{}/status", service.page);
    eventually_every(API_PERIOD, "the monitor was checked", Duration::from_secs(20), async || {
        (!service.client.monitors(&service.page).await[0]["lastCheck"].is_null()).then_some(())
    })
    .await;
    let answer = service.client.get(&path).await;
    assert!(!answer.text.contains("hidden-path") && !answer.text.contains("secret"), "{}", answer.text);
    let document = answer.expect_status(200);
    for field in ["page", "status", "monitors", "incidents", "maintenance", "generatedAt"] {
        assert!(document.get(field).is_some(), "{field}: {document}");
    }
    assert!(document["generatedAt"].is_i64() && document["status"]["indicator"].is_string(), "{document}");
    assert_eq!(document["monitors"][0]["name"], "refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_clients_change_one_monitor_and_nothing_acknowledged_is_lost() {
    let service = service().await;
    let made = service.client.create_monitor(&service.page, &json!({ "url": "https://a.example" })).await;
    let path = service.one(&made);
    // Eight clients each own one field and write it repeatedly; the others write to two further fields. If a client
    // reads another value than it last wrote to its own field, somebody else's change has overwritten it.
    type Change = fn(u32) -> (&'static str, Value);
    let own: [Change; 8] = [
        |turn| ("slowThresholdMs", json!(100 + turn)),
        |turn| ("expectStatus", json!(200 + turn)),
        |turn| ("keyword", json!(format!("word {turn}"))),
        |turn| ("groupName", json!(format!("Group {turn}"))),
        |turn| ("url", json!(format!("https://a.example/{turn}"))),
        |turn| ("slowThresholds", json!({ "asia": 1000 + turn })),
        |turn| ("latencyLocations", json!([if turn % 2 == 0 { "asia" } else { "europe" }])),
        |turn| ("pinnedRegion", Value::from([None, Some("europe"), Some("asia")][turn as usize % 3])),
    ];
    let shown = |name: &str| if name == "groupName" { "group".to_owned() } else { name.to_owned() };
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let clients = (0..50_usize).map(|number| {
        let (client, path, own) = (service.client.clone(), path.clone(), own.get(number).copied());
        let places = Arc::clone(&places);
        tokio::spawn(async move {
            let mut last = None;
            // Within the limit of one minute per key.
            for turn in 0..if own.is_some() { 8_u32 } else { 1 } {
                let (name, value) = match own {
                    Some(own) => own(turn),
                    None if number % 2 == 0 => ("name", json!(format!("Shop {number}-{turn}"))),
                    None => ("method", Value::from(["GET", "HEAD", "POST"][(number + turn as usize) % 3])),
                };
                let _place = places.acquire().await.expect("it stays open");
                let answer =
                    client.patch(&path, &json!({ name: value.clone() })).await.expect_status(200)["monitor"].take();
                assert_eq!(answer[shown(name)], value, "each answer shows its own change");
                last = Some((name, value));
            }
            last
        })
    });
    let mut acknowledged = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        acknowledged.push(client.await.expect("it is answered").expect("it has written"));
    }
    let end = service.client.monitor(&service.page, &made).await;
    for (name, value) in &acknowledged[..own.len()] {
        assert_eq!(&end[shown(name)], value, "{name}: {end}");
    }
    for crowded in ["name", "method"] {
        let last: Vec<&Value> =
            acknowledged.iter().filter(|(name, _)| *name == crowded).map(|(_, value)| value).collect();
        assert!(last.contains(&&end[crowded]), "{crowded} is one client's last: {end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_clients_post_to_one_incident_and_every_update_is_there_in_order() {
    let service = service().await;
    let incidents = format!("/pages/{}/incidents", service.page);
    let opened = service.client.post(&incidents, &json!({ "title": "Slow" })).await.expect_status(201);
    let path = format!("{incidents}/{}", opened["incident"]["id"].as_str().expect("an id"));
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let posts = (0..50).map(|number| {
        let (client, path, places) = (service.client.clone(), format!("{path}/updates"), Arc::clone(&places));
        tokio::spawn(async move {
            let _place = places.acquire().await.expect("it stays open");
            client.post(&path, &json!({ "message": format!("word {number}") })).await.expect_status(201);
        })
    });
    for post in posts.collect::<Vec<_>>() {
        post.await.expect("it is answered");
    }
    let incident = service.client.get(&path).await.expect_status(200)["incident"].take();
    let updates = incident["updates"].as_array().expect("updates");
    let said = |update: &Value| update["body"].as_str().unwrap_or_default().to_owned();
    let mut words: Vec<String> = updates.iter().map(said).filter(|body| body.starts_with("word ")).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!((updates.len(), words.len()), (51, 50), "{incident}");
    let moments: Vec<&str> = updates.iter().filter_map(|update| update["createdAt"].as_str()).collect();
    assert!(moments.is_sorted_by(|newer, older| newer >= older), "newest first: {moments:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_hears_by_mail_and_a_webhook_is_made_tested_and_taken_out() {
    let service = service().await;
    let all = format!("/pages/{}/destinations", service.page);
    let destinations = service.client.get(&all).await.expect_status(200)["destinations"].take();
    assert_eq!((&destinations[0]["name"], &destinations[0]["type"]), (&json!("Owner"), &json!("email")));
    for (url, rule) in [
        ("http://127.0.0.1:9/", "url must not be a loopback address"),
        ("https://hooks.slack.com/services/T/B/x", "url is an address of Slack: use type slack"),
    ] {
        let body = json!({ "type": "webhook", "name": "x", "url": url });
        assert_eq!(service.client.post(&all, &body).await.expect_error(400, "bad_request"), rule);
    }
    // A hostname that does not resolve (RFC 2606): the response still describes the test's result.
    let body = json!({ "type": "webhook", "name": "Team", "url": "https://hooks.parallax.invalid/x" });
    let made = service.client.post(&all, &body).await.expect_status(201)["destination"].take();
    assert!(made["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{made}");
    let one = format!("{all}/{}", made["id"].as_str().expect("an id"));
    let tested = service.client.post(&format!("{one}/test"), &json!({})).await.expect_status(200)["delivery"].take();
    assert_eq!((&tested["status"], &tested["test"], &tested["tries"]), (&json!("failed"), &json!(true), &json!(1)));
    assert!(tested["lastError"].is_string(), "{tested}");
    let deliveries = format!("/pages/{}/deliveries?status=failed", service.page);
    let listed = service.client.get(&deliveries).await.expect_status(200)["deliveries"].take();
    assert_eq!(listed[0]["id"], tested["id"], "{listed}");
    service.client.delete(&one).await.expect_status(204);
    service.client.get(&one).await.expect_error(404, "not_found");
}
