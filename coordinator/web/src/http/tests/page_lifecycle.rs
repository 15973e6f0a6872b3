//! Tests beyond the contract: creating and deleting pages, ETags, repeated writes, paused monitors, and history.

use parallax_core::event::{Event, EventKind, MonitorStatus, StatusChange};
use serde_json::{Value, json};

use super::*;

#[tokio::test]
async fn a_page_is_created_and_deleted_with_its_content() {
    let client = TestClient::new().await;
    let new = json!({ "name": "Docs", "slug": "manual", "uptimeTarget": 99.5 });
    let created = client.call(&client.write_key, "POST", "/api/v1/pages", new).await;
    assert_eq!(created.status, 201, "{created:?}");
    let id = created.body["page"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/pages/{id}");
    assert_eq!(created.headers["location"].to_str().unwrap(), path);
    assert_eq!(created.body["page"]["uptimeTarget"], 99.5);
    let monitors = format!("{path}/monitors");
    let monitor = client.call(&client.write_key, "POST", &monitors, json!({ "url": "a.example" })).await;
    let at = monitor.headers["location"].to_str().unwrap().to_owned();
    assert_eq!(client.get(&at).await.status, 200);
    assert_eq!(client.call(&client.write_key, "DELETE", &path, Value::Null).await.status, 204);
    for path_of_deleted in [&path, &monitors, &at] {
        assert_eq!(client.get(path_of_deleted).await.status, 404, "{path_of_deleted}");
    }
    assert_eq!(client.send("GET", "/p/manual", &[], "").await.status, 404);
    // The slug is free again.
    let repeated = json!({ "name": "Docs", "slug": "manual" });
    assert_eq!(client.call(&client.write_key, "POST", "/api/v1/pages", repeated).await.status, 201);
    let invalid = client.call(&client.write_key, "POST", "/api/v1/pages", json!({ "uptimeTarget": 5 })).await;
    let fields: Vec<_> =
        invalid.body["error"]["fields"].as_array().unwrap().iter().map(|it| it["field"].clone()).collect();
    assert_eq!((invalid.status, fields), (400, vec![json!("slug"), json!("name"), json!("uptimeTarget")]));
}

#[tokio::test]
async fn a_key_for_one_page_is_deleted_with_it() {
    let client = TestClient::new().await;
    let path = format!("/api/v1/pages/{}", client.world.blog.id);
    assert_eq!(client.call(&client.write_key, "DELETE", &path, Value::Null).await.status, 204);
    assert_eq!(client.call(&client.page_key, "GET", "/api/v1/me", Value::Null).await.status, 401);
}

#[tokio::test]
async fn a_plan_limits_the_number_of_pages() {
    let client = TestClient::new().await;
    let make = async |n: usize| {
        let body = json!({ "name": "New", "slug": format!("new-{n}") });
        client.call(&client.foreign_key, "POST", "/api/v1/pages", body).await
    };
    for n in 1..5 {
        assert_eq!(make(n).await.status, 201);
    }
    let rejection = make(5).await;
    assert_eq!((rejection.status, code(&rejection)), (422, "plan_limit"));
}

#[tokio::test]
async fn an_unchanged_response_gives_304() {
    let client = TestClient::new().await;
    let bearer = format!("Bearer {}", client.write_key);
    let first = client.get(&client.shop_path("")).await;
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    for method in ["GET", "HEAD"] {
        let headers = [("authorization", bearer.as_str()), ("if-none-match", tag.as_str())];
        let not_modified = client.send(method, &client.shop_path(""), &headers, "").await;
        assert_eq!((not_modified.status, &not_modified.body), (304, &Value::Null));
        assert!(not_modified.headers.contains_key("ratelimit-remaining") && not_modified.headers.contains_key("etag"));
    }
    client.call(&client.write_key, "PATCH", &client.shop_path(""), json!({ "name": "Other" })).await;
    let headers = [("authorization", bearer.as_str()), ("if-none-match", tag.as_str())];
    assert_eq!(client.send("GET", &client.shop_path(""), &headers, "").await.status, 200);
    let missing = client.send("GET", "/api/v1/nothing", &headers, "").await;
    assert_eq!((missing.status, missing.headers.contains_key("etag")), (404, false));
}

#[tokio::test]
async fn a_repeated_write_is_marked_as_replayed() {
    let client = TestClient::new().await;
    let bearer = format!("Bearer {}", client.write_key);
    let headers =
        [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", "once")];
    let body = r#"{"name": "New", "slug": "new"}"#;
    let first = client.send("POST", "/api/v1/pages", &headers, body).await;
    let repeated = client.send("POST", "/api/v1/pages", &headers, body).await;
    assert_eq!((first.status, repeated.status, &first.body), (201, 201, &repeated.body));
    assert!(!first.headers.contains_key("idempotency-replayed"));
    assert_eq!(repeated.headers["idempotency-replayed"], "true");
    assert_eq!(first.headers["location"], repeated.headers["location"]);
    let other = client.send("POST", "/api/v1/pages", &headers, r#"{"name": "Other", "slug": "new"}"#).await;
    assert_eq!((other.status, code(&other)), (422, "idempotency_key_reused"));
    client.world.clock.set(client.world.service.now() + 24 * 3_600_000);
    let expired = client.send("POST", "/api/v1/pages", &headers, body).await;
    assert_eq!((expired.status, &expired.body["error"]["fields"][0]["field"]), (400, &json!("slug")));
}

#[tokio::test]
async fn an_invalid_body_is_reported_under_a_name_no_field_has() {
    let client = TestClient::new().await;
    for body in [json!([]), json!("text"), json!(1)] {
        let rejection = client.call(&client.write_key, "POST", &client.shop_path("/monitors"), body).await;
        assert_eq!(rejection.body["error"]["fields"][0]["field"], "$");
    }
}

#[tokio::test]
async fn a_monitor_is_paused_and_resumed() {
    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example", "paused": true })).await;
    assert_eq!(created["paused"], true);
    let path = client.shop_path(&format!("/monitors/{}", created["id"].as_str().unwrap()));
    let renamed = client.call(&client.write_key, "PATCH", &path, json!({ "name": "New" })).await;
    assert_eq!(renamed.body["monitor"]["paused"], true, "omitted fields keep their value");
    let resumed = client.call(&client.write_key, "PATCH", &path, json!({ "paused": false })).await;
    assert_eq!(resumed.body["monitor"]["paused"], false);
}

#[tokio::test]
async fn check_now_is_limited_and_refused_for_heartbeats() {
    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let path = client.shop_path(&format!("/monitors/{}/check", created["id"].as_str().unwrap()));
    let check_now = async || client.call(&client.write_key, "POST", &path, Value::Null).await;
    assert_eq!(check_now().await.status, 200);
    client.world.clock.set(client.world.service.now() + 9_000);
    let rejection = check_now().await;
    assert_eq!(
        (rejection.status, code(&rejection), &rejection.headers["retry-after"]),
        (429, "rate_limited", &"1".parse().unwrap())
    );
    client.world.clock.set(client.world.service.now() + 1_000);
    assert_eq!(check_now().await.status, 200);
    let heartbeat = client.create_monitor(json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 5 })).await;
    let path = client.shop_path(&format!("/monitors/{}/check", heartbeat["id"].as_str().unwrap()));
    assert_eq!(client.call(&client.write_key, "POST", &path, Value::Null).await.status, 400);
}

#[tokio::test]
async fn events_are_paginated() {
    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let (page, id) = (client.world.shop.id, created["id"].as_str().unwrap().parse().unwrap());
    for from in [MonitorStatus::Unknown, MonitorStatus::Up, MonitorStatus::Down] {
        let to = if from == MonitorStatus::Up { MonitorStatus::Down } else { MonitorStatus::Up };
        let at = client.world.service.now();
        let change = StatusChange {
            from,
            to,
            alert: None,
            since: at,
            down_since: None,
            reason: None,
            down_from: None,
            latency_ms: None,
            threshold_ms: None,
            duration_ms: None,
            evidence: Vec::new(),
            flapping: None,
        };
        let event_kind = EventKind::StatusChanged(change);
        client.world.happened(Event { at, page: Some(page), monitor: Some(id), kind: event_kind }).await;
    }
    let path = client.shop_path(&format!("/monitors/{id}/events"));
    let first = client.get(&format!("{path}?limit=2")).await.body;
    let froms = |body: &Value| -> Vec<Value> {
        body["events"].as_array().unwrap().iter().map(|event| event["from"].clone()).collect()
    };
    assert_eq!(froms(&first), ["down", "up"]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = client.get(&format!("{path}?limit=2&cursor={cursor}")).await.body;
    assert_eq!((froms(&second), &second["nextCursor"]), (vec![json!("unknown")], &Value::Null));
    for invalid in ["limit=0", "limit=201", "cursor=x"] {
        assert_eq!(client.get(&format!("{path}?{invalid}")).await.status, 400, "{invalid}");
    }
}

#[tokio::test]
async fn days_are_selected_by_date_within_400() {
    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let path = client.shop_path(&format!("/monitors/{}/uptime", created["id"].as_str().unwrap()));
    let days = client.get(&path).await.body["days"].as_array().unwrap().clone();
    assert_eq!((days.len(), &days[89]["date"], &days[89]["uptime"]), (90, &json!("2026-11-27"), &Value::Null));
    assert_eq!(client.get(&format!("{path}?from=2025-10-25&to=2026-11-28")).await.status, 200);
    for invalid in ["from=2025-10-24&to=2026-11-28", "from=2026-11-28&to=2026-11-27", "from=2026-2-1", "to=2026-02-30"]
    {
        let rejection = client.get(&format!("{path}?{invalid}")).await;
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"), "{invalid}");
    }
}

#[tokio::test]
async fn ids_of_keys_sort_by_creation_time() {
    let client = TestClient::new().await;
    let id = async |key: &str| {
        let me = client.call(key, "GET", "/api/v1/me", Value::Null).await.body;
        me["key"]["id"].as_str().unwrap().to_owned()
    };
    let early = id(&client.write_key).await;
    client.world.clock.set(client.world.service.now() + 5);
    let later = client.world.key(KeyAccess::Read, None).await;
    assert!(early < id(later.reveal()).await);
}
