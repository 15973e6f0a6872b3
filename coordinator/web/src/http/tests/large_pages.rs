//! Tests of large amounts of text: replayed requests, writes without changes, limits of open text, and pagination.

use parallax_core::incident::MAX_OPEN_BYTES;
use serde_json::{Value, json};

use super::{TestClient, TestResponse, code};

/// Makes a message of the maximum of 4,000 characters, of four bytes each.
fn long_text() -> String {
    "\u{1f525}".repeat(4000)
}

async fn send_once(client: &TestClient, key: &str, method: &str, path: &str, body: &Value) -> TestResponse {
    let bearer = format!("Bearer {}", client.write_key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", key)];
    client.send(method, path, &headers, &body.to_string()).await
}

#[tokio::test]
async fn an_unchanged_write_stores_only_its_idempotent_response() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let post = async |path: &str, body: Value| {
        let created = client.call(&client.write_key, "POST", &client.shop_path(path), body).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.body
    };
    let hook = json!({ "type": "webhook", "name": "Team", "url": "https://hooks.example/in" });
    let destination = post("/destinations", hook).await["destination"].clone();
    let incident = post("/incidents", json!({ "title": "x" })).await["incident"].clone();
    let child_path = |folder: &str, it: &Value| client.shop_path(&format!("/{folder}/{}", it["id"].as_str().unwrap()));
    for (key, path, same, other) in [
        ("page", client.shop_path(""), json!({ "name": "Shop" }), json!({ "name": "Other" })),
        ("alerts", client.shop_path("/alerts"), json!({}), json!({ "repeatMinutes": 30 })),
        ("monitor", child_path("monitors", &monitor), json!({ "name": monitor["name"] }), json!({ "name": "Other" })),
        ("destination", child_path("destinations", &destination), json!({}), json!({ "events": ["went-down"] })),
        ("incident", child_path("incidents", &incident), json!({ "title": "x" }), json!({ "title": "Other" })),
    ] {
        for body in [json!({}), same.clone()] {
            let before = client.world.revision().await;
            let response = client.call(&client.write_key, "PATCH", &path, body.clone()).await;
            assert_eq!(response.status, 200, "{path} {response:?}");
            assert_eq!(client.world.revision().await, before + 1, "{path} {body}");
        }
        // With an idempotency key it runs once, so that a repetition does not undo a change in between.
        let first = send_once(&client, key, "PATCH", &path, &same).await;
        assert_eq!((first.status, first.headers.contains_key("idempotency-replayed")), (200, false), "{path}");
        let changed = client.call(&client.write_key, "PATCH", &path, other.clone()).await;
        assert_eq!(changed.status, 200, "{path} {changed:?}");
        let before = client.world.revision().await;
        let repeated = send_once(&client, key, "PATCH", &path, &same).await;
        assert_eq!((repeated.status, &repeated.headers["idempotency-replayed"]), (200, &"true".parse().unwrap()));
        assert!(!repeated.headers.contains_key("idempotency-answer"), "short responses are stored");
        assert_eq!(repeated.body, first.body, "{path}");
        assert_eq!(client.world.revision().await, before + 1, "{path}");
        let reused = send_once(&client, key, "PATCH", &path, &other).await;
        assert_eq!((reused.status, code(&reused)), (422, "idempotency_key_reused"));
    }
}

#[tokio::test]
async fn a_long_response_is_rebuilt_and_nothing_is_created_twice() {
    let client = TestClient::new().await;
    let all = client.shop_path("/incidents");
    let new = json!({ "title": "First", "message": long_text() });
    let created = send_once(&client, "new", "POST", &all, &new).await;
    assert_eq!((created.status, created.headers.contains_key("idempotency-replayed")), (201, false));
    let id = created.body["incident"]["id"].as_str().unwrap().to_owned();
    let incident_path = client.shop_path(&format!("/incidents/{id}"));
    client.call(&client.write_key, "PATCH", &incident_path, json!({ "title": "Later" })).await;
    let repeated = send_once(&client, "new", "POST", &all, &new).await;
    assert_eq!((repeated.status, &repeated.body["incident"]["id"]), (201, &json!(id)));
    assert_eq!(repeated.body["incident"]["title"], "Later", "the current state");
    let headers = ["idempotency-replayed", "idempotency-answer"].map(|name| repeated.headers[name].to_str().unwrap());
    assert_eq!(
        (headers, repeated.headers["location"].to_str().unwrap()),
        (["true", "current"], incident_path.as_str())
    );
    assert_eq!(client.get(&all).await.body["incidents"].as_array().unwrap().len(), 1);
    // The same for updates, and for edits of them.
    let updates = format!("{incident_path}/updates");
    for (key, method, path, body, status) in [
        ("update", "POST", updates.as_str(), json!({ "message": "More" }), 201),
        ("change", "PATCH", incident_path.as_str(), json!({ "title": "Changed" }), 200),
    ] {
        let first = send_once(&client, key, method, path, &body).await;
        let repeated = send_once(&client, key, method, path, &body).await;
        assert_eq!((repeated.status, &repeated.body), (status, &first.body));
        assert_eq!(repeated.headers["idempotency-answer"], "current");
    }
    assert_eq!(client.get(&incident_path).await.body["incident"]["updates"].as_array().unwrap().len(), 2);
    // An incident deleted in between is not created again.
    client.call(&client.write_key, "DELETE", &incident_path, Value::Null).await;
    assert_eq!(send_once(&client, "new", "POST", &all, &new).await.status, 404);
    assert_eq!(client.get(&all).await.body["incidents"], json!([]));
}

#[tokio::test]
async fn open_text_of_a_page_is_bounded_and_ended_text_is_released() {
    let client = TestClient::new().await;
    let all = client.shop_path("/incidents");
    let post = async |path: &str, body: Value| client.call(&client.write_key, "POST", path, body).await;
    let mut ids = Vec::new();
    let mut now = client.world.service.now();
    let rejection = loop {
        // Move on the clock, so that no rate limit is reached.
        now = now + parallax_core::time::MINUTE;
        client.world.clock.set(now);
        let created = post(&all, json!({ "title": "x", "message": long_text() })).await;
        if created.status != 201 {
            break created;
        }
        ids.push(created.body["incident"]["id"].as_str().unwrap().to_owned());
        assert!(ids.len() <= MAX_OPEN_BYTES / 16_000);
    };
    assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"));
    assert_eq!(rejection.body["error"]["fields"][0]["field"], "message");
    let incident_path = client.shop_path(&format!("/incidents/{}", ids[0]));
    let updates = format!("{incident_path}/updates");
    let patch = async |body: Value| client.call(&client.write_key, "PATCH", &incident_path, body).await;
    let first_field = |response: &TestResponse| response.body["error"]["fields"][0]["field"].clone();
    let rejection = post(&updates, json!({ "message": long_text() })).await;
    assert_eq!((rejection.status, first_field(&rejection)), (400, json!("message")));
    let rejection = patch(json!({ "postmortem": long_text() })).await;
    assert_eq!((rejection.status, first_field(&rejection)), (400, json!("postmortem")));
    // Changes that add no text, and resolving the incident, are accepted.
    assert_eq!(patch(json!({ "title": "y" })).await.status, 200);
    assert_eq!(post(&updates, json!({ "status": "resolved", "message": long_text() })).await.status, 201);
    assert_eq!(post(&all, json!({ "title": "x", "message": "short" })).await.status, 201);
}

#[tokio::test]
async fn concurrent_requests_share_the_last_bytes_of_a_page_once() {
    let client = TestClient::new().await;
    let all = client.shop_path("/incidents");
    let post = async |path: &str, body: Value| client.call(&client.write_key, "POST", path, body).await;
    let mut now = client.world.service.now();
    let mut ids = Vec::new();
    loop {
        // Move on the clock, so that no rate limit is reached.
        now = now + parallax_core::time::MINUTE;
        client.world.clock.set(now);
        let created = post(&all, json!({ "title": "x", "message": long_text() })).await;
        if created.status != 201 {
            break;
        }
        ids.push(created.body["incident"]["id"].as_str().unwrap().to_owned());
    }
    let last = client.shop_path(&format!("/incidents/{}", ids.pop().unwrap()));
    assert_eq!(client.call(&client.write_key, "DELETE", &last, Value::Null).await.status, 204);
    client.world.clock.set(now + parallax_core::time::MINUTE);
    let paths: Vec<_> = ids.iter().take(10).map(|id| client.shop_path(&format!("/incidents/{id}/updates"))).collect();
    let responses = paths.iter().map(|path| post(path, json!({ "message": long_text() })));
    let responses = futures_util::future::join_all(responses).await;
    let accepted = responses.iter().filter(|response| response.status == 201).count();
    assert!(accepted <= 1, "{accepted} requests got the last space");
}

#[tokio::test]
async fn a_list_is_paginated_and_the_status_document_has_the_newest_updates() {
    let client = TestClient::new().await;
    let all = client.shop_path("/incidents");
    let mut ids = Vec::new();
    for n in 0..5 {
        // Resolved incidents, which do not count toward the limit of a page.
        let body = json!({
            "title": format!("{n}"), "message": long_text(),
            "startedAt": (client.world.service.now() - 9000 + n).to_string(),
            "resolvedAt": (client.world.service.now() - 1000).to_string(),
        });
        let created = client.call(&client.write_key, "POST", &all, body).await;
        assert_eq!(created.status, 201, "{created:?}");
        let id = created.body["incident"]["id"].as_str().unwrap().to_owned();
        // The maximum size: post-mortem and updates have separate limits.
        let fill = |incident: &mut parallax_core::incident::Incident| {
            incident.updates = vec![incident.updates[0].clone(); 30];
        };
        client.world.change_incident(id.parse().unwrap(), fill).await;
        ids.insert(0, id);
    }
    let (mut listed_ids, mut sizes, mut before) = (Vec::new(), Vec::new(), String::new());
    loop {
        let slice = client.get(&format!("{all}?limit=4{before}")).await;
        let list = slice.body["incidents"].as_array().unwrap();
        sizes.push(list.len());
        listed_ids.extend(list.iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        let Some(next) = slice.body["nextBefore"].as_str() else { break };
        before = format!("&before={next}");
    }
    assert_eq!((listed_ids, sizes), (ids.clone(), vec![2, 2, 1]));
    let exact = client.get(&format!("{all}?limit=1&before={}", ids[3])).await;
    assert_eq!(exact.body.get("nextBefore"), None, "it is the last page");

    let created = client.call(&client.write_key, "POST", &all, json!({ "title": "Open" })).await;
    let id = created.body["incident"]["id"].as_str().unwrap();
    for n in 1..13 {
        let path = format!("{all}/{id}/updates");
        client.call(&client.write_key, "POST", &path, json!({ "message": format!("{n}") })).await;
        let status = client.get(&client.shop_path("/status")).await;
        let incident = &status.body["incidents"][0];
        let omitted =
            (n >= 10).then(|| json!({ "count": n - 9, "url": format!("https://shop.pages.example/incidents/{id}") }));
        assert_eq!(incident.get("moreUpdates").cloned(), omitted);
        assert_eq!(incident["updates"].as_array().unwrap().len(), 10.min(n + 1));
        assert_eq!(incident["updates"][0]["body"], format!("{n}"), "newest first");
    }
}
