//! Tests of incidents, maintenance windows and deploys: every field and bound, old names, lists and life cycles.

use parallax_core::time::{DAY, HOUR, MINUTE};
use parallax_service::test_world::START;
use serde_json::{Value, json};

use super::{TestClient, TestResponse, code};

async fn open(client: &TestClient, body: Value) -> TestResponse {
    client.call(&client.write_key, "POST", &client.shop_path("/incidents"), body).await
}

async fn create_incident(client: &TestClient, body: Value) -> Value {
    let created = open(client, body).await;
    assert_eq!(created.status, 201, "{created:?}");
    created.body["incident"].clone()
}

fn at(millis: i64) -> String {
    (START + 1000 + millis).to_string()
}

fn path(client: &TestClient, incident: &Value, rest: &str) -> String {
    client.shop_path(&format!("/incidents/{}{rest}", incident["id"].as_str().unwrap()))
}

#[tokio::test]
async fn an_incident_shows_every_field_of_the_contract() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example", "name": "Front" })).await;
    let body = json!({
        "title": " Broken ", "status": "identified", "impact": "major", "message": "# What\n\n* a *cable*\n",
        "monitorIds": [monitor["id"]], "remind": ["1h", "2d"], "startedAt": at(-HOUR), "unknown": 5,
    });
    let created = create_incident(&client, body).await;
    let affected = json!([{ "id": monitor["id"], "name": "Front" }]);
    let expected = json!({
        "id": created["id"], "kind": "incident", "title": "Broken", "status": "identified", "impact": "major",
        "startedAt": at(-HOUR), "endsAt": null, "resolvedAt": null, "automatic": false, "remind": ["1h", "2d"],
        "repeat": null, "postmortem": null, "monitors": affected, "checkpoints": affected,
        "updates": [{
            "id": created["updates"][0]["id"], "status": "identified", "body": "# What\n\n* a *cable*\n",
            "createdAt": at(0),
        }],
    });
    assert_eq!(created, expected);
    assert!(created["id"].as_str().unwrap().starts_with("inc_"));
    assert!(created["updates"][0]["id"].as_str().unwrap().starts_with("upd_"));
    assert_eq!(client.get(&path(&client, &created, "")).await.body["incident"], expected);
    let list = client.get(&client.shop_path("/incidents")).await.body;
    assert_eq!(list["incidents"], json!([expected]));
    // A deleted monitor is no longer listed.
    let deleted = client.shop_path(&format!("/monitors/{}", monitor["id"].as_str().unwrap()));
    client.call(&client.write_key, "DELETE", &deleted, Value::Null).await;
    assert_eq!(client.get(&path(&client, &created, "")).await.body["incident"]["monitors"], json!([]));
}

#[tokio::test]
async fn old_names_are_accepted_and_both_lists_are_equal() {
    let client = TestClient::new().await;
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        ids.push(client.create_monitor(json!({ "url": "a.example", "name": name })).await["id"].clone());
    }
    for (body, names) in [
        (json!({ "checkpointIds": [ids[1]] }), vec!["two"]),
        (json!({ "checkpoints": [{ "id": ids[0] }] }), vec!["one"]),
        (json!({ "monitorIds": [ids[0]], "checkpointIds": ["nonsense"] }), vec!["one"]),
        (
            json!({ "monitors": [{ "id": ids[1], "impact": "degraded" }], "monitorIds": [ids[0], ids[1]] }),
            vec!["two", "one"],
        ),
        (json!({ "monitorIds": [] }), vec![]),
        (json!({ "monitorIds": null, "monitors": null }), vec![]),
    ] {
        let mut body = body;
        body["title"] = json!("x");
        let created = create_incident(&client, body).await;
        let list = created["monitors"].as_array().unwrap();
        assert_eq!(list.iter().map(|it| it["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
        assert_eq!(created["monitors"], created["checkpoints"]);
        if names.len() == 2 {
            assert_eq!((&list[0]["impact"], list[1].get("impact")), (&json!("degraded"), None));
        }
    }
    let unknown_monitor = "mon_0000000000000000000000000a";
    for body in [json!({ "monitorIds": [unknown_monitor] }), json!({ "checkpoints": [{ "id": unknown_monitor }] })] {
        let mut body = body;
        body["title"] = json!("x");
        let rejection = open(&client, body).await;
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"));
    }
}

#[tokio::test]
async fn each_field_is_checked_at_its_bounds() {
    let client = TestClient::new().await;
    let window = |field: &str, value: Value| {
        let mut body = json!({ "kind": "maintenance", "title": "x", "startsAt": at(HOUR), "endsAt": at(2 * HOUR) });
        body[field] = value;
        body
    };
    let incident = |field: &str, value: Value| {
        let mut body = json!({ "title": "x" });
        body[field] = value;
        body
    };
    let accepted = [
        incident("title", json!("ü".repeat(120))),
        incident("message", json!("ü".repeat(4000))),
        incident("message", Value::Null),
        incident("kind", Value::Null),
        incident("status", json!("monitoring")),
        incident("impact", json!("none")),
        incident("startedAt", json!(at(-365 * DAY))),
        incident("startedAt", json!(at(5 * MINUTE))),
        incident("resolvedAt", json!(at(0))),
        incident("remind", json!(["1m", "2m", "3m", "4m", "30d"])),
        incident("remind", json!([])),
        incident("notify", json!(false)),
        window("endsAt", json!(at(HOUR + 1))),
        window("endsAt", json!(at(HOUR + 7 * DAY))),
        window("repeat", json!("weekly")),
        window("repeat", Value::Null),
        // Fields of the other kind are ignored.
        window("status", json!("scheduled")),
        incident("startsAt", json!(at(0))),
        incident("endsAt", Value::Null),
    ];
    for body in accepted {
        let created = open(&client, body.clone()).await;
        assert_eq!(created.status, 201, "{body}: {created:?}");
    }
    let mut both = window("repeat", json!("monthly"));
    both["timezone"] = json!("Mars/Base");
    let rejected = [
        ("title", json!({})),
        ("title", incident("title", json!("ü".repeat(121)))),
        ("title", incident("title", json!(" "))),
        ("title", incident("title", Value::Null)),
        ("message", incident("message", json!("ü".repeat(4001)))),
        ("message", incident("message", json!("a\u{0}"))),
        ("kind", incident("kind", json!("accident"))),
        ("status", incident("status", json!("resolved"))),
        ("status", incident("status", json!(5))),
        ("impact", incident("impact", json!("huge"))),
        ("startedAt", incident("startedAt", json!(at(-366 * DAY)))),
        ("startedAt", incident("startedAt", json!(at(5 * MINUTE + 1)))),
        ("startedAt", incident("startedAt", json!("2026-11-27"))),
        ("resolvedAt", incident("resolvedAt", json!(at(-1)))),
        ("remind", incident("remind", json!(["1m", "2m", "3m", "4m", "5m", "6m"]))),
        ("remind", incident("remind", json!(["31d"]))),
        ("remind", incident("remind", json!("1h"))),
        ("notify", incident("notify", json!("no"))),
        ("monitors", incident("monitors", json!(["x"]))),
        ("monitorIds", incident("monitorIds", json!("x"))),
        ("endsAt", window("endsAt", json!(at(HOUR)))),
        ("endsAt", window("endsAt", json!(at(HOUR + 7 * DAY + 1)))),
        ("endsAt", window("endsAt", Value::Null)),
        ("startsAt", window("startsAt", json!("soon"))),
        ("repeat", window("repeat", json!("daily"))),
        ("timezone", both),
        ("status", window("status", json!("over"))),
        ("startsAt", incident("startsAt", json!("2024-01-01T12:99:00Z"))),
    ];
    for (field, body) in rejected {
        let rejection = open(&client, body.clone()).await;
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"), "{body}");
        let fields = rejection.body["error"]["fields"].as_array().unwrap();
        assert!(fields.iter().any(|fault| fault["field"] == field), "{field}: {rejection:?}");
    }
}

#[tokio::test]
async fn updates_lead_an_incident_to_its_end() {
    let client = TestClient::new().await;
    let created = create_incident(&client, json!({ "title": "x" })).await;
    let updates = path(&client, &created, "/updates");
    client.world.clock.set(START + 2000);
    let post = async |body: Value| client.call(&client.write_key, "POST", &updates, body).await;
    let updated = post(json!({ "status": "monitoring", "message": "Better", "notify": false })).await;
    assert_eq!(updated.status, 201, "{updated:?}");
    let incident = &updated.body["incident"];
    assert_eq!((&incident["status"], incident["updates"].as_array().unwrap().len()), (&json!("monitoring"), 2));
    assert_eq!(incident["updates"][0]["body"], "Better", "newest first");
    for invalid in [
        json!({ "status": "monitoring" }),
        json!({ "status": "completed", "message": "x" }),
        json!({ "status": "resolved", "message": "ü".repeat(4001) }),
        json!({ "message": 5 }),
    ] {
        assert_eq!(post(invalid).await.status, 400);
    }
    let result = post(json!({ "status": "resolved", "message": "ü".repeat(4000) })).await.body;
    assert_eq!(
        (&result["incident"]["status"], &result["incident"]["resolvedAt"]),
        (&json!("resolved"), &json!(at(1000)))
    );
    assert_eq!(post(json!({ "status": "monitoring", "message": "Again" })).await.status, 400, "it is closed");
    let edit = json!({ "postmortem": "## Why\n", "impact": "degraded", "title": "y" });
    let patched = client.call(&client.write_key, "PATCH", &path(&client, &created, ""), edit).await;
    assert_eq!(patched.status, 200, "{patched:?}");
    let incident = &patched.body["incident"];
    assert_eq!((&incident["postmortem"], &incident["impact"]), (&json!("## Why\n"), &json!("degraded")));
    assert_eq!(incident["updates"].as_array().unwrap().len(), 3, "an edit posts no update");
    let response =
        client.call(&client.write_key, "PATCH", &path(&client, &created, ""), json!({ "postmortem": null })).await;
    assert_eq!(
        (&response.body["incident"]["postmortem"], &response.body["incident"]["title"]),
        (&Value::Null, &json!("y"))
    );
    for (field, rejected) in [("postmortem", json!("x".repeat(20_001))), ("title", Value::Null), ("impact", json!("x"))]
    {
        let rejection =
            client.call(&client.write_key, "PATCH", &path(&client, &created, ""), json!({ field: rejected })).await;
        assert_eq!(rejection.status, 400, "{field}");
    }
    let deleted = client.call(&client.write_key, "DELETE", &path(&client, &created, ""), Value::Null).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(client.get(&path(&client, &created, "")).await.status, 404);
    assert_eq!(post(json!({ "status": "monitoring", "message": "x" })).await.status, 404);
}

#[tokio::test]
async fn an_incident_entered_afterwards_is_resolved() {
    let client = TestClient::new().await;
    let created =
        create_incident(&client, json!({ "title": "x", "startedAt": at(-HOUR), "resolvedAt": at(-MINUTE) })).await;
    assert_eq!((&created["status"], &created["resolvedAt"]), (&json!("resolved"), &json!(at(-MINUTE))));
    let past = json!({ "kind": "maintenance", "title": "x", "startsAt": at(-HOUR), "endsAt": at(-MINUTE) });
    let window = create_incident(&client, past).await;
    assert_eq!((&window["status"], &window["resolvedAt"]), (&json!("completed"), &json!(at(-MINUTE))));
    let list = client.get(&client.shop_path("/incidents?open=true")).await.body;
    assert_eq!(list["incidents"], json!([]));
}

#[tokio::test]
async fn a_repeating_window_is_planned_stopped_and_completed() {
    let client = TestClient::new().await;
    let body = json!({
        "kind": "maintenance", "title": "Patches", "startsAt": at(HOUR), "endsAt": at(2 * HOUR), "repeat": "monthly",
        "timezone": "Europe/Berlin", "remind": ["15m"],
    });
    let created = create_incident(&client, body).await;
    assert_eq!(
        (&created["status"], &created["impact"], &created["startedAt"]),
        (&json!("scheduled"), &json!("none"), &json!(at(HOUR)))
    );
    assert_eq!(created["endsAt"], json!(at(2 * HOUR)));
    let repeat = &created["repeat"];
    assert_eq!(
        (&repeat["every"], &repeat["timezone"], &repeat["stoppedAt"]),
        (&json!("monthly"), &json!("Europe/Berlin"), &Value::Null)
    );
    assert!(repeat["seriesId"].as_str().unwrap().starts_with("ser_"));
    let patch = async |body: Value| client.call(&client.write_key, "PATCH", &path(&client, &created, ""), body).await;
    assert_eq!(patch(json!({ "repeat": "weekly" })).await.status, 400);
    assert_eq!(patch(json!({ "repeat": "monthly" })).await.body["incident"]["repeat"]["stoppedAt"], Value::Null);
    let response = patch(json!({ "startsAt": at(3 * HOUR), "endsAt": at(4 * HOUR), "repeat": null })).await.body;
    assert_eq!(
        (&response["incident"]["startedAt"], &response["incident"]["repeat"]["stoppedAt"]),
        (&json!(at(3 * HOUR)), &json!(at(0)))
    );
    assert_eq!(patch(json!({ "endsAt": at(3 * HOUR) })).await.status, 400);
    let updates = path(&client, &created, "/updates");
    let early = client.call(&client.write_key, "POST", &updates, json!({ "status": "resolved", "message": "x" })).await;
    assert_eq!(early.status, 400, "{early:?}");
    let result = client.call(&client.write_key, "POST", &updates, json!({ "status": "completed" })).await;
    assert_eq!((result.status, &result.body["incident"]["status"]), (201, &json!("completed")));
    assert_eq!(result.body["incident"]["resolvedAt"], json!(at(0)));
    assert_eq!(patch(json!({ "endsAt": at(5 * HOUR) })).await.status, 400, "it is over");
}

#[tokio::test]
async fn lists_are_paginated_back_in_time() {
    let client = TestClient::new().await;
    let mut ids = Vec::new();
    for (n, started) in [-3, -1, -2].into_iter().enumerate() {
        let created =
            create_incident(&client, json!({ "title": format!("{n}"), "startedAt": at(started * HOUR) })).await;
        ids.push(created["id"].as_str().unwrap().to_owned());
    }
    let resolved = json!({ "title": "over", "startedAt": at(-9 * HOUR), "resolvedAt": at(-8 * HOUR) });
    create_incident(&client, resolved).await;
    let titles = async |query: &str| -> Vec<String> {
        let list = client.get(&client.shop_path(&format!("/incidents{query}"))).await;
        assert_eq!(list.status, 200, "{query}: {list:?}");
        let list = list.body["incidents"].as_array().unwrap().clone();
        list.iter().map(|it| it["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles("").await, ["1", "2", "0", "over"]);
    assert_eq!(titles("?open=true&limit=200").await, ["1", "2", "0"]);
    assert_eq!(titles("?limit=1").await, ["1"]);
    assert_eq!(titles(&format!("?limit=2&before={}", ids[1])).await, ["2", "0"]);
    assert_eq!(titles(&format!("?open=true&before={}", ids[2])).await, ["0"]);
    for invalid in
        ["limit=0", "limit=201", "limit=x", "limit=", "open=1", "before=x", "before=inc_0000000000000000000000000a"]
    {
        let rejection = client.get(&client.shop_path(&format!("/incidents?{invalid}"))).await;
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"), "{invalid}");
    }
}

#[tokio::test]
async fn the_status_document_has_incident_times_in_milliseconds() {
    let client = TestClient::new().await;
    client.create_monitor(json!({ "url": "a.example" })).await;
    let status = async || client.get(&client.shop_path("/status")).await.body;
    create_incident(&client, json!({ "title": "Quiet", "impact": "none" })).await;
    assert_eq!(status().await["status"]["indicator"], "unknown");
    create_incident(&client, json!({ "title": "Slow mail", "impact": "degraded" })).await;
    for (title, starts) in [("Soon", HOUR), ("Now", -HOUR), ("Later", 7 * DAY + 1)] {
        let window = json!({
            "kind": "maintenance", "title": title, "startsAt": at(starts), "endsAt": at(starts + 2 * HOUR),
        });
        create_incident(&client, window).await;
    }
    let document = status().await;
    assert_eq!(document["status"], json!({ "indicator": "degraded", "headline": "Slow mail" }));
    let incidents = document["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), 2);
    assert_eq!(incidents[0]["startedAt"], (START + 1000).as_millis());
    assert_eq!(incidents[0]["updates"][0]["createdAt"], (START + 1000).as_millis());
    let windows = document["maintenance"].as_array().unwrap();
    assert_eq!(windows.iter().map(|it| it["title"].as_str().unwrap()).collect::<Vec<_>>(), ["Now", "Soon"]);
    assert_eq!(windows[1]["endsAt"], (START + 1000 + 3 * HOUR).as_millis());
    for incident in incidents {
        let path = path(&client, incident, "");
        client.call(&client.write_key, "DELETE", &path, Value::Null).await;
    }
    assert_eq!(status().await["status"]["indicator"], "maintenance");
}

#[tokio::test]
async fn deploys_are_created_listed_and_deleted() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let path = client.shop_path("/deploys");
    let make = async |body: Value| client.call(&client.write_key, "POST", &path, body).await;
    let body = json!({
        "version": " v1.2 ", "url": "https://example.com/r", "note": "Näher", "at": at(-HOUR),
        "checkpointIds": [monitor["id"]],
    });
    let created = make(body).await;
    assert_eq!(created.status, 201, "{created:?}");
    let created = created.body["deploy"].clone();
    let expected = json!({
        "id": created["id"], "pageId": client.world.shop.id.to_string(), "version": "v1.2",
        "url": "https://example.com/r", "note": "Näher", "monitorIds": [monitor["id"]],
        "checkpointIds": [monitor["id"]], "at": at(-HOUR), "createdAt": at(0),
    });
    assert_eq!(created, expected);
    let bare = make(json!({ "version": "v2" })).await.body["deploy"].clone();
    assert_eq!((&bare["at"], &bare["monitorIds"], &bare["url"]), (&json!(at(0)), &Value::Null, &Value::Null));
    let list = client.get(&path).await.body;
    assert_eq!(list["deploys"], json!([bare, created]));
    for body in [
        json!({}),
        json!({ "version": "x".repeat(81) }),
        json!({ "version": "x", "url": "ftp://a.example" }),
        json!({ "version": "x", "note": "x".repeat(501) }),
        json!({ "version": "x", "at": at(5 * MINUTE + 1) }),
        json!({ "version": "x", "at": at(-366 * DAY) }),
        json!({ "version": "x", "monitorIds": ["mon_0000000000000000000000000a"] }),
    ] {
        let rejection = make(body.clone()).await;
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"), "{body}");
    }
    for n in 0..49 {
        make(json!({ "version": format!("n{n}") })).await;
    }
    let list = client.get(&path).await.body["deploys"].as_array().unwrap().clone();
    assert_eq!(list.len(), 50);
    assert!(!list.contains(&created), "the oldest of 51 is not in the list");
    let deploy_path = client.shop_path(&format!("/deploys/{}", bare["id"].as_str().unwrap()));
    assert_eq!(client.call(&client.write_key, "DELETE", &deploy_path, Value::Null).await.status, 204);
    assert_eq!(client.call(&client.write_key, "DELETE", &deploy_path, Value::Null).await.status, 404);
}
