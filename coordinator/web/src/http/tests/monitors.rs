//! Tests of monitors: every type and field, edits, idempotency, and the status document.

use parallax_core::event::MonitorStatus;
use parallax_core::machine::{LastCheck, MachineView};
use parallax_core::observation::{Failure, Measurements};
use parallax_core::time::HOUR;
use parallax_core::vantage::{Region, RegionSet};
use parallax_service::test_world::START;
use serde_json::{Value, json};

use super::{TestClient, code};

#[tokio::test]
async fn a_new_monitor_shows_every_field_of_the_contract() {
    let client = TestClient::new().await;
    let body = json!({
        "name": "Front", "url": "example.com/health", "groupName": "Web", "method": "POST",
        "headers": { "X-Token": "secret" }, "body": "{}", "expectStatus": 204, "keyword": "ok",
        "keywordMode": "absent", "slowThresholdMs": 800, "slowThresholds": { "asia": 1200 },
        "latencyLocations": ["asia", "europe"], "pinnedRegion": "asia",
        "port": "ignored", "periodMinutes": -1, "unknown": true,
    });
    let created = client.create_monitor(body).await;
    let id = created["id"].as_str().unwrap().to_owned();
    let expected = json!({
        "id": id, "pageId": client.world.shop.id.to_string(), "name": "Front", "type": "http",
        "target": "https://example.com/health", "url": "https://example.com/health", "host": null, "port": null,
        "dnsType": null, "dnsExpect": null, "warnDays": null, "expiresAt": null, "heartbeat": null, "group": "Web",
        "method": "POST", "expectStatus": 204, "keyword": "ok", "keywordMode": "absent", "slowThresholdMs": 800,
        "slowThresholds": { "asia": 1200 }, "latencyLocations": ["europe", "asia"], "pinnedRegion": "asia",
        "vendorUrl": null, "vendorComponent": null, "position": 0, "status": "unknown", "since": null,
        "downFrom": null, "downReason": null, "acknowledged": null, "lastCheck": null, "confirmable": true, "unconfirmedFrom": null, "disputedSince": null, "paused": false, "pausedBy": null, "flapping": null, "uptime24h": null,
        "latencyMs24h": null, "createdAt": "2026-11-27T12:46:01.000Z",
    });
    assert_eq!(created, expected);
    let reply = client.get(&client.shop_path(&format!("/monitors/{id}"))).await.body;
    assert_eq!((&reply["monitor"], &reply["checkpoint"]), (&expected, &expected));
    let list = client.get(&client.shop_path("/checkpoints")).await.body;
    assert_eq!((&list["monitors"], &list["checkpoints"]), (&json!([expected]), &json!([expected])));
}

#[tokio::test]
async fn every_type_is_created_with_its_defaults() {
    let client = TestClient::new().await;
    for (body, stored) in [
        (
            json!({ "url": "https://a.example" }),
            json!({ "type": "http", "method": "GET", "name": "a.example", "keywordMode": null }),
        ),
        (
            json!({ "type": "tcp", "host": "a.example", "port": 22 }),
            json!({ "host": "a.example", "port": 22, "target": "a.example:22", "method": null }),
        ),
        (
            json!({ "type": "dns", "host": "a.example" }),
            json!({ "dnsType": "A", "target": "A a.example", "port": null }),
        ),
        (json!({ "type": "ping", "host": "192.0.2.1" }), json!({ "host": "192.0.2.1", "name": "192.0.2.1" })),
        (
            json!({ "type": "certificate", "host": "a.example" }),
            json!({ "port": 443, "warnDays": 14, "expiresAt": null }),
        ),
        (json!({ "type": "domain", "host": "a.example", "warnDays": 5 }), json!({ "warnDays": 5, "port": null })),
        (
            json!({ "type": "component", "name": "V", "vendorUrl": "status.example" }),
            json!({ "vendorUrl": "https://status.example", "vendorComponent": null }),
        ),
    ] {
        let created = client.create_monitor(body).await;
        for (field, value) in stored.as_object().unwrap() {
            assert_eq!(&created[field], value, "{field} of {created}");
        }
    }
}

#[tokio::test]
async fn a_ping_url_needs_write_access() {
    let client = TestClient::new().await;
    let body = json!({ "type": "heartbeat", "name": "Backup", "periodMinutes": 60, "graceMinutes": 5 });
    let created = client.create_monitor(body).await;
    let heartbeat = &created["heartbeat"];
    assert_eq!(
        (&heartbeat["periodSeconds"], &heartbeat["graceSeconds"], &heartbeat["lastPingAt"]),
        (&json!(3600), &json!(300), &Value::Null)
    );
    assert!(heartbeat["pingUrl"].as_str().unwrap().starts_with("https://status.example/ping/"), "{heartbeat}");
    let path = client.shop_path(&format!("/monitors/{}", created["id"].as_str().unwrap()));
    let read = client.call(&client.read_key, "GET", &path, Value::Null).await.body;
    assert_eq!(read["monitor"]["heartbeat"]["pingUrl"], Value::Null);
    assert_eq!(client.get(&path).await.body["monitor"]["heartbeat"]["pingUrl"], heartbeat["pingUrl"]);
    let list = client.call(&client.read_key, "GET", &client.shop_path("/monitors"), Value::Null).await.body;
    assert_eq!(list["monitors"][0]["heartbeat"]["pingUrl"], Value::Null);
}

#[tokio::test]
async fn all_errors_of_a_body_are_reported_at_once() {
    let client = TestClient::new().await;
    let body =
        json!({ "type": "tcp", "host": "127.1", "port": 0, "groupName": "g".repeat(61), "slowThresholdMs": "fast" });
    let rejection = client.call(&client.write_key, "POST", &client.shop_path("/monitors"), body).await;
    assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"));
    let error = &rejection.body["error"];
    let fields: Vec<_> = error["fields"].as_array().unwrap().iter().map(|it| it["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["groupName", "host", "port", "slowThresholdMs"]);
    assert!(error["message"].as_str().unwrap().contains("port must be a whole number from 1 to 65535"));
}

#[tokio::test]
async fn an_edit_keeps_what_is_left_out_and_null_clears() {
    let client = TestClient::new().await;
    let created = client
        .create_monitor(json!({ "url": "a.example", "groupName": "Web", "keyword": "ok", "pinnedRegion": "asia" }))
        .await;
    let path = client.shop_path(&format!("/checkpoints/{}", created["id"].as_str().unwrap()));
    let edit = json!({ "name": "Renamed", "keyword": null, "pinnedRegion": "" });
    let changed = client.call(&client.write_key, "PATCH", &path, edit).await;
    assert_eq!(changed.status, 200);
    let monitor = &changed.body["monitor"];
    assert_eq!((&monitor["name"], &monitor["group"]), (&json!("Renamed"), &json!("Web")));
    assert_eq!((&monitor["keyword"], &monitor["pinnedRegion"]), (&Value::Null, &Value::Null));
    assert_eq!(changed.body["checkpoint"], *monitor);
    for edit in [json!({ "type": "tcp" }), json!({ "name": null }), json!({ "url": null }), json!({ "url": "ftp://a" })]
    {
        let rejection = client.call(&client.write_key, "PATCH", &path, edit.clone()).await;
        assert_eq!(rejection.status, 400, "{edit}");
    }
    assert_eq!(client.call(&client.write_key, "PATCH", &path, json!({})).await.body["monitor"], *monitor);
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_response() {
    let client = TestClient::new().await;
    let bearer = format!("Bearer {}", client.write_key);
    let headers =
        [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", "abc")];
    let body = r#"{"url": "a.example"}"#;
    let first = client.send("POST", &client.shop_path("/monitors"), &headers, body).await;
    let repeated = client.send("POST", &client.shop_path("/checkpoints"), &headers, body).await;
    assert_eq!((first.status, repeated.status), (201, 201));
    assert_eq!(first.body, repeated.body);
    let other = client.send("POST", &client.shop_path("/monitors"), &headers, r#"{"url": "b.example"}"#).await;
    assert_eq!((other.status, code(&other)), (422, "idempotency_key_reused"));
    assert_eq!(client.get(&client.shop_path("/monitors")).await.body["monitors"].as_array().unwrap().len(), 1);
    let path = client.shop_path(&format!("/monitors/{}", first.body["monitor"]["id"].as_str().unwrap()));
    let change =
        |value| [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", value)];
    let renamed = client.send("PATCH", &path, &change("edit"), r#"{"name": "New"}"#).await;
    assert_eq!(renamed.status, 200);
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "del")];
    for _ in 0..2 {
        assert_eq!(client.send("DELETE", &path, &headers, "").await.status, 204);
    }
    assert_eq!(client.call(&client.write_key, "DELETE", &path, Value::Null).await.status, 404);
    // The stored response is replayed although the monitor was deleted; any other request gets 404.
    let repeated = client.send("PATCH", &path, &change("edit"), r#"{"name": "New"}"#).await;
    assert_eq!((repeated.status, &repeated.body), (200, &renamed.body));
    assert_eq!(repeated.headers["idempotency-replayed"], "true");
    for (value, body) in [("edit", r#"{"name": "Newer"}"#), ("edit", "{"), ("other", r#"{"name": "New"}"#), ("", "{}")]
    {
        assert_eq!(client.send("PATCH", &path, &change(value), body).await.status, 404, "{value} {body}");
    }
}

#[tokio::test]
async fn the_current_state_is_that_of_the_driver() {
    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let id = created["id"].as_str().unwrap().to_owned();
    let view = MachineView {
        status: MonitorStatus::Down,
        since: Some(START),
        down_from: Some(RegionSet::only(Region::Asia)),
        down_reason: Some(Failure::UnexpectedStatus(503)),
        last_check: Some(LastCheck {
            at: START + 1,
            ok: false,
            facts: Measurements { status_code: Some(503), latency_ms: Some(12), ..Measurements::default() },
            error: Some(Failure::UnexpectedStatus(503)),
        }),
        ..MachineView::default()
    };
    client.world.views.lock().unwrap().insert(id.parse().unwrap(), view);
    let reply = client.get(&client.shop_path(&format!("/monitors/{id}"))).await.body["monitor"].clone();
    assert_eq!((&reply["status"], &reply["downFrom"]), (&json!("down"), &json!(["asia"])));
    assert_eq!(reply["since"], "2026-11-27T12:46:00.000Z");
    assert_eq!(reply["downReason"], "unexpected status 503 (from Asia)");
    let last = json!({
        "at": "2026-11-27T12:46:00.001Z", "ok": false, "statusCode": 503, "latencyMs": 12,
        "error": "unexpected status 503",
    });
    assert_eq!(reply["lastCheck"], last);
    client.world.mesh.set_in_service(&[Region::Europe, Region::Asia, Region::Africa]);
    client.world.mesh.set_checked(&[Region::Asia, Region::Europe, Region::Oceania]);
    let document = client.get(&client.shop_path("/status")).await.body;
    assert_eq!(document["status"]["indicator"], "major");
    assert_eq!((&document["stale"], &document["seenFrom"]), (&json!(false), &json!(["europe", "asia"])));
    assert_eq!(document["checkedAt"], "2026-11-27T12:46:00.001Z");
    assert_eq!(document["page"]["name"], "Shop");
    assert!(document["generatedAt"].is_i64() && document["incidents"] == json!([]));
    let public = document["monitors"][0].as_object().unwrap();
    let fields: Vec<&str> = public.keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        ["id", "name", "group", "type", "position", "status", "since", "downFrom", "uptime24h", "latencyMs24h",]
    );
    assert_eq!(document["checkpoints"], document["monitors"]);
}

#[tokio::test]
async fn a_list_is_filtered_by_status() {
    let client = TestClient::new().await;
    for (name, status) in [
        ("a", MonitorStatus::Up),
        ("b", MonitorStatus::Down),
        ("c", MonitorStatus::Slow),
        ("d", MonitorStatus::Unknown),
    ] {
        let created = client.create_monitor(json!({ "name": name, "url": "a.example" })).await;
        let view = MachineView { status, ..MachineView::default() };
        client.world.views.lock().unwrap().insert(created["id"].as_str().unwrap().parse().unwrap(), view);
    }
    for (query, expected) in
        [("", "abcd"), ("?status=down", "b"), ("?status=down,slow", "bc"), ("?status=slow,%20down,unknown", "bcd")]
    {
        let list = client.get(&client.shop_path(&format!("/monitors{query}"))).await;
        let names = list.body["monitors"].as_array().unwrap();
        let names: String = names.iter().map(|monitor| monitor["name"].as_str().unwrap()).collect();
        assert_eq!((list.status, names.as_str()), (200, expected), "{query}");
    }
    for invalid in ["?status=", "?status=broken", "?status=down,", "?status=Down"] {
        let rejection = client.get(&client.shop_path(&format!("/monitors{invalid}"))).await;
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"), "{invalid}");
    }
}

#[tokio::test]
async fn an_unreadable_domain_is_reported_on_saving_and_in_the_last_check() {
    let client = TestClient::new().await;
    let path = client.shop_path("/monitors");
    let german = json!({ "type": "domain", "host": "www.example.de" });
    let response = client.call(&client.write_key, "POST", &path, german).await.body;
    let warning = "the registry of .de publishes no expiry dates, so this monitor can't warn before the domain expires";
    assert_eq!(response["warnings"], json!([warning]));
    let other = json!({ "type": "domain", "host": "example.sk" });
    let response = client.call(&client.write_key, "POST", &path, other).await.body;
    assert_eq!(response.get("warnings"), None);

    let id = response["monitor"]["id"].as_str().unwrap().to_owned();
    let reason = "registry: its expiry date 0001-01-01 is not plausible";
    let view = MachineView {
        last_check: Some(LastCheck {
            at: START + 1,
            ok: false,
            facts: Measurements::default(),
            error: Some(Failure::Other(reason.to_owned())),
        }),
        unjudged: true,
        ..MachineView::default()
    };
    client.world.views.lock().unwrap().insert(id.parse().unwrap(), view);
    let path = format!("{path}/{id}");
    let response = client.call(&client.write_key, "PATCH", &path, json!({ "name": "Ours" })).await.body;
    assert_eq!(response["warnings"], json!([format!("the newest check could not be judged: {reason}")]));
    assert_eq!(response["monitor"]["status"], "unknown");
    let last = json!({
        "at": "2026-11-27T12:46:00.001Z", "ok": false, "statusCode": null, "latencyMs": null, "error": reason,
    });
    assert_eq!(response["monitor"]["lastCheck"], last);
}

#[tokio::test]
async fn a_full_plan_answers_422_after_the_body_was_validated() {
    let client = TestClient::new().await;
    let free = parallax_core::plan::Plan::Free;
    client.world.service.accounts.set_plan(client.world.owner.id, free).await.unwrap();
    for _ in 0..2 {
        client.create_monitor(json!({ "url": "a.example" })).await;
    }
    let path = client.shop_path("/monitors");
    let full = client.call(&client.write_key, "POST", &path, json!({ "url": "a.example" })).await;
    assert_eq!((full.status, code(&full)), (422, "plan_limit"));
    let response = client.call(&client.write_key, "POST", &path, json!({ "url": "" })).await;
    assert_eq!(response.status, 400);
    let vendor = json!({ "type": "component", "name": "V", "vendorUrl": "https://status.example" });
    assert_eq!(client.call(&client.write_key, "POST", &path, vendor).await.status, 422);
}

#[tokio::test]
async fn a_deleted_monitor_is_gone() {
    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let path = client.shop_path(&format!("/monitors/{}", created["id"].as_str().unwrap()));
    let deleted = client.call(&client.write_key, "DELETE", &path, Value::Null).await;
    assert_eq!((deleted.status, deleted.headers.contains_key("content-type")), (204, false));
    assert_eq!(client.get(&path).await.status, 404);
    assert_eq!(client.get(&client.shop_path("/monitors")).await.body["monitors"], json!([]));
}

#[tokio::test]
async fn without_agents_a_page_is_unknown_except_for_its_incidents() {
    let client = TestClient::new().await;
    let id = client.create_monitor(json!({ "url": "a.example" })).await["id"].as_str().unwrap().to_owned();
    let view = MachineView { status: MonitorStatus::Up, since: Some(START), ..MachineView::default() };
    client.world.views.lock().unwrap().insert(id.parse().unwrap(), view);
    let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "get_status" } });
    let json = [("content-type", "application/json")];
    let mut headlines = Vec::new();
    for regions in [&[Region::Asia][..], &[]] {
        // Much later, so that no cached document is served.
        client.world.clock.set(client.world.service.now() + HOUR);
        client.world.mesh.set_in_service(regions);
        let status = client.get("/p/shop/api/v2/status.json").await.body["status"].clone();
        for document in [
            client.get("/p/shop/status.json").await.body,
            client.get(&client.shop_path("/status")).await.body,
            client.send("POST", "/p/shop/mcp", &json, &ask.to_string()).await.body["result"]["structuredContent"]
                .clone(),
        ] {
            assert_eq!(document["stale"], regions.is_empty());
            assert_eq!(document["status"]["indicator"], status["parallax_indicator"]);
            headlines.push(document["status"]["headline"].as_str().unwrap().to_owned());
        }
        headlines.push(format!("{} {}", status["indicator"], status["description"]));
    }
    let (known, stale) = headlines.split_at(4);
    assert!(known[..3].iter().all(|headline| headline == "All systems operational"), "{headlines:?}");
    assert!(stale[..3].iter().all(|headline| headline == "Monitoring is currently unavailable"), "{headlines:?}");
    assert_eq!(stale[3], "\"minor\" \"Status unknown\"");
    let incident = json!({ "title": "A cable is cut", "impact": "partial" });
    client.call(&client.write_key, "POST", &client.shop_path("/incidents"), incident).await;
    let document = client.get("/p/shop/status.json").await.body;
    assert_eq!(document["status"], json!({ "indicator": "partial", "headline": "A cable is cut" }));
    assert_eq!(document["stale"], true);
}
