//! Tests of the contract where two rules meet: order of errors, null values, parsing of bodies and queries, and
//! idempotency keys.

use serde_json::{Value, json};

use super::*;

async fn incident(client: &TestClient, body: Value) -> (String, Value) {
    let created = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), body).await;
    assert_eq!(created.status, 201, "{created:?}");
    (created.headers["location"].to_str().unwrap().to_owned(), created.body["incident"].clone())
}

#[tokio::test]
async fn a_new_incident_and_a_changed_one_take_different_fields() {
    let client = TestClient::new().await;
    let (path, created) = incident(&client, json!({ "title": "x", "postmortem": 5, "seriesId": [] })).await;
    assert_eq!(created["postmortem"], Value::Null);
    let edit = json!({
        "message": [], "notify": "no", "title": "y", "postmortem": "# Why",
    });
    let changed = client.call(&client.write_key, "PATCH", &path, edit).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let mut expected = created;
    (expected["title"], expected["postmortem"]) = (json!("y"), json!("# Why"));
    assert_eq!(changed.body["incident"], expected);
    for (field, other) in [
        ("kind", json!(5)),
        ("status", json!("resolved")),
        ("startedAt", json!("soon")),
        ("resolvedAt", json!(1)),
        ("automatic", json!(5)),
    ] {
        let rejection = client.call(&client.write_key, "PATCH", &path, json!({ (field): other })).await;
        assert_eq!((rejection.status, &rejection.body["error"]["fields"][0]["field"]), (400, &json!(field)));
    }
    let schemas = client.get("/api/v1/openapi.json").await.body["components"]["schemas"].clone();
    let names = |name: &str| {
        let mut names: Vec<_> = schemas[name]["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let update = [
        "endsAt",
        "impact",
        "monitorIds",
        "monitors",
        "postmortem",
        "remind",
        "repeat",
        "startsAt",
        "timezone",
        "title",
    ];
    assert_eq!(names("IncidentUpdate"), update);
    let create = [
        "endsAt",
        "impact",
        "kind",
        "message",
        "monitorIds",
        "monitors",
        "notify",
        "remind",
        "repeat",
        "resolvedAt",
        "startedAt",
        "startsAt",
        "status",
        "timezone",
        "title",
    ];
    assert_eq!(names("IncidentCreate"), create);
    assert_eq!(schemas["IncidentCreate"]["required"], json!(["title"]));
    assert_eq!(schemas["IncidentUpdate"].get("required"), None);
}

#[tokio::test]
async fn null_changes_an_incident_only_where_it_may() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let body = json!({ "title": "x", "impact": "major", "remind": ["1h"], "monitorIds": [monitor["id"]] });
    let (path, created) = incident(&client, body).await;
    for field in ["title", "impact"] {
        let rejection = client.call(&client.write_key, "PATCH", &path, json!({ field: null })).await;
        let message = &rejection.body["error"]["message"];
        assert_eq!((rejection.status, message), (400, &json!(format!("{field} must not be null"))));
    }
    let unchanged = client.call(&client.write_key, "PATCH", &path, json!({})).await;
    assert_eq!(unchanged.body["incident"], created);
    let (window, planned) = incident(
        &client,
        json!({ "kind": "maintenance", "title": "x", "startsAt": "2026-11-28T00:00:00+00:00", "endsAt": "2026-11-28T02:00:00.5+01:00" }),
    )
    .await;
    assert_eq!(
        (&planned["startedAt"], &planned["endsAt"]),
        (&json!("2026-11-28T00:00:00.000Z"), &json!("2026-11-28T01:00:00.500Z"))
    );
    for field in ["startsAt", "endsAt"] {
        assert_eq!(
            client.call(&client.write_key, "PATCH", &window, json!({ field: null })).await.status,
            400,
            "{field}"
        );
    }
    let response = client.call(&client.write_key, "PATCH", &path, json!({ "remind": null, "monitors": null })).await;
    assert_eq!(
        (&response.body["incident"]["remind"], &response.body["incident"]["monitors"]),
        (&Value::Null, &json!([]))
    );
    assert_eq!(response.body["incident"]["impact"], "major");
}

#[tokio::test]
async fn integers_are_accepted_in_any_notation() {
    let client = TestClient::new().await;
    let bearer = format!("Bearer {}", client.write_key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    for (json, is_accepted) in [
        ("443.0", true),
        ("4.43e2", true),
        ("44300e-2", true),
        ("443.5", false),
        ("\"443\"", false),
        ("1e400", false),
        ("-0", false),
        ("true", false),
        ("[443]", false),
        ("65536", false),
        ("18446744073709551616", false),
    ] {
        let body = format!(r#"{{"type": "tcp", "host": "a.example", "port": {json}}}"#);
        let created = client.send("POST", &client.shop_path("/monitors"), &headers, &body).await;
        assert_eq!(created.status, if is_accepted { 201 } else { 400 }, "{json}: {created:?}");
        if is_accepted {
            assert_eq!(created.body["monitor"]["port"], 443);
        }
    }
    let target = client.send("PATCH", &client.shop_path(""), &headers, r#"{"uptimeTarget": 9.95e1}"#).await;
    assert_eq!(target.body["page"]["uptimeTarget"], 99.5);
}

#[tokio::test]
async fn without_access_a_bad_header_is_not_reported() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let (incident, _) = incident(&client, json!({ "title": "x" })).await;
    let monitor = client.shop_path(&format!("/monitors/{}", monitor["id"].as_str().unwrap()));
    let marked = client.call(&client.write_key, "POST", &client.shop_path("/deploys"), json!({ "version": "1" })).await;
    let deploy = marked.headers["location"].to_str().unwrap().to_owned();
    let delete = async |key: &str, path: &str| {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", "")];
        client.send("DELETE", path, &headers, "").await.status
    };
    for path in [&incident, &monitor, &deploy, &client.shop_path("")] {
        assert_eq!(delete(&client.foreign_key, path).await, 404, "{path}");
        assert_eq!(delete(&client.write_key, path).await, 400, "{path}");
    }
    for rest in ["/monitors/mon_0000000000000000000000000a", "/incidents/inc_0000000000000000000000000a"] {
        assert_eq!(delete(&client.write_key, &client.shop_path(rest)).await, 404, "{rest}");
    }
    assert_eq!(client.get(&monitor).await.status, 200);
}

#[tokio::test]
async fn a_query_is_decoded_like_a_form() {
    let client = TestClient::new().await;
    let status = async |rest: &str| client.get(&client.shop_path(rest)).await.status;
    for accepted in
        ["limit=1", "limit=%31", "limit=200&other=%zz", "limit=0&limit=5", "open=true", "open=%74rue", "limit=050"]
    {
        assert_eq!(status(&format!("/incidents?{accepted}")).await, 200, "{accepted}");
    }
    for rejected in [
        "limit=+5",
        "limit=%2B5",
        "limit=5%20",
        "limit=",
        "limit=5.0",
        "limit=%ff",
        "open=1",
        "open=TRUE",
        "open=",
        "before=",
    ] {
        assert_eq!(status(&format!("/incidents?{rejected}")).await, 400, "{rejected}");
    }
}

#[tokio::test]
async fn an_error_quotes_only_the_start_of_a_long_name() {
    let client = TestClient::new().await;
    let bearer = format!("Bearer {}", client.write_key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let name = "a".repeat(50_000);
    for body in [
        format!(r#"{{"{name}": 1, "{name}": 2}}"#),
        format!(r#"{{"url": "a.example", "headers": {{"{name}": "\u0000"}}}}"#),
        format!(r#"{{"url": "a.example", "headers": {{"{name}": "", "A{}": ""}}}}"#, &name[1..]),
        format!(r#"{{"url": "a.example", "headers": {{"proxy-{name}": ""}}}}"#),
    ] {
        let rejection = client.send("POST", &client.shop_path("/monitors"), &headers, &body).await;
        assert_eq!(rejection.status, 400);
        let length = rejection.body.to_string().len();
        assert!(length < 1000, "{length}");
    }
}

#[tokio::test]
async fn an_unchanged_status_document_keeps_its_tag() {
    let client = TestClient::new().await;
    client.create_monitor(json!({ "url": "a.example" })).await;
    let bearer = format!("Bearer {}", client.write_key);
    let first = client.get(&client.shop_path("/status")).await;
    let tag = first.headers["etag"].to_str().unwrap();
    assert_eq!(first.body["generatedAt"], client.world.service.now().as_millis());
    client.world.clock.set(client.world.service.now() + 1000);
    let headers = [("authorization", bearer.as_str()), ("if-none-match", tag)];
    assert_eq!(client.send("GET", &client.shop_path("/status"), &headers, "").await.status, 304);
    client.create_monitor(json!({ "url": "b.example" })).await;
    assert_eq!(client.send("GET", &client.shop_path("/status"), &headers, "").await.status, 200);
}

#[tokio::test]
async fn a_refused_request_may_be_corrected_with_the_same_idempotency_key() {
    let client = TestClient::new().await;
    let send = async |key: &str, path: &str, body: Value| {
        let bearer = format!("Bearer {key}");
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", "once")];
        client.send("POST", path, &headers, &body.to_string()).await
    };
    let (shop, body) = (client.shop_path("/incidents"), json!({ "title": "x" }));
    assert_eq!(send(&client.write_key, &shop, json!({ "title": "" })).await.status, 400);
    let all = futures_util::future::join_all((0..8).map(|_| send(&client.write_key, &shop, body.clone()))).await;
    assert!(all.iter().all(|one| one.status == 201 && one.body == all[0].body), "{all:?}");
    assert_eq!(all.iter().filter(|one| !one.headers.contains_key("idempotency-replayed")).count(), 1);
    assert_eq!(client.get(&shop).await.body["incidents"].as_array().unwrap().len(), 1);
    let other_page = format!("/api/v1/pages/{}/incidents", client.world.blog.id);
    let other = send(&client.write_key, &other_page, body.clone()).await;
    assert_eq!((other.status, code(&other)), (422, "idempotency_key_reused"));
    // Idempotency keys are separate for each API key.
    let bound = send(&client.page_key, &other_page, body.clone()).await;
    assert_eq!((bound.status, bound.headers.contains_key("idempotency-replayed")), (201, false));
    assert_eq!(send(&client.read_key, &shop, body.clone()).await.status, 403);
    assert_eq!(send(&client.foreign_key, &shop, body).await.status, 404);
}
