//! Tests of one change to many monitors: results in order, one batch, idempotency, and errors.

use serde_json::{Value, json};

use super::{TestClient, TestResponse, code};

impl TestClient {
    async fn bulk(&self, body: Value) -> TestResponse {
        self.call(&self.write_key, "POST", &self.shop_path("/monitors/bulk"), body).await
    }

    async fn bulk_once(&self, key: &str, body: &Value) -> TestResponse {
        let bearer = format!("Bearer {}", self.write_key);
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", key)];
        self.send("POST", &self.shop_path("/monitors/bulk"), &headers, &body.to_string()).await
    }

    /// Creates a monitor on the page and returns its id.
    async fn monitor_id(&self, body: Value) -> String {
        self.create_monitor(body).await["id"].as_str().unwrap().to_owned()
    }

    async fn monitors(&self) -> Vec<Value> {
        self.get(&self.shop_path("/monitors")).await.body["monitors"].as_array().unwrap().clone()
    }
}

fn statuses(response: &TestResponse) -> Vec<(&str, &str)> {
    assert_eq!(response.status, 200, "{response:?}");
    let results = response.body["results"].as_array().unwrap().iter();
    results.map(|one| (one["id"].as_str().unwrap(), one["status"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn each_monitor_has_a_result_and_a_refused_one_does_not_stop_the_others() {
    let client = TestClient::new().await;
    let front = client.monitor_id(json!({ "url": "a.example", "slowThresholdMs": 700 })).await;
    let job = client.monitor_id(json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 5 })).await;
    let blog = format!("/api/v1/pages/{}/monitors", client.world.blog.id);
    let other = client.call(&client.write_key, "POST", &blog, json!({ "url": "b.example" })).await;
    let other = other.body["monitor"]["id"].as_str().unwrap();
    let unknown = "mon_0000000000000000000000000a";
    let set =
        json!({ "groupName": "Shop", "slowThresholdMs": 900, "pinnedRegion": "asia", "latencyLocations": ["asia"] });
    let body = json!({ "monitorIds": [unknown, job, other, "nonsense", front], "set": set });
    let first = client.bulk(body.clone()).await;
    let expected = [unknown, job.as_str(), other, "nonsense", front.as_str()].into_iter();
    let refused = ["refused", "changed", "refused", "refused", "changed"];
    assert_eq!(statuses(&first), expected.clone().zip(refused).collect::<Vec<_>>());
    let error = json!({ "code": "not_found", "message": "not found, or not accessible with this key", "fields": null });
    assert_eq!((&first.body["results"][0]["error"], &first.body["results"][1]["error"]), (&error, &Value::Null));
    let [front_now, job_now] = &client.monitors().await[..] else { panic!() };
    for (field, expected) in [
        ("group", json!("Shop")),
        ("slowThresholdMs", json!(900)),
        ("pinnedRegion", json!("asia")),
        ("latencyLocations", json!(["asia"])),
    ] {
        assert_eq!(front_now[field], expected, "{field}");
        let on_job = if field == "group" { expected } else { Value::Null };
        assert_eq!(job_now[field], on_job, "{field} does not apply to heartbeats");
    }
    assert_eq!(client.get(&format!("{blog}/{other}")).await.body["monitor"]["group"], Value::Null);
    let before = client.world.service.last_edit();
    let again = client.bulk(body).await;
    let unchanged = ["refused", "unchanged", "refused", "refused", "unchanged"];
    assert_eq!(statuses(&again), expected.zip(unchanged).collect::<Vec<_>>());
    assert_eq!(client.world.service.last_edit(), before, "no event");
    let cleared =
        client.bulk(json!({ "monitorIds": [front], "set": { "groupName": null, "slowThresholdMs": null } })).await;
    assert_eq!(statuses(&cleared), [(front.as_str(), "changed")]);
    let front_now = &client.monitors().await[0];
    assert_eq!((&front_now["group"], &front_now["slowThresholdMs"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn monitors_are_paused_resumed_and_deleted_together() {
    let client = TestClient::new().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.monitor_id(json!({ "url": "a.example" })).await);
    }
    let paused = async || client.monitors().await.iter().map(|it| it["paused"] == true).collect::<Vec<_>>();
    let revision = client.world.revision().await;
    client.bulk(json!({ "monitorIds": ids[..2], "set": { "paused": true } })).await;
    assert_eq!(client.world.revision().await, revision + 2, "one commit for all of them");
    assert_eq!(paused().await, [true, true, false]);
    client.bulk(json!({ "monitorIds": ids, "set": { "paused": false } })).await;
    assert_eq!(paused().await, [false; 3]);
    let deleted = client.bulk(json!({ "monitorIds": [ids[2], ids[0]], "delete": true })).await;
    assert_eq!(statuses(&deleted), [(ids[2].as_str(), "changed"), (ids[0].as_str(), "changed")]);
    let remaining: Vec<Value> = client.monitors().await.iter().map(|it| it["id"].clone()).collect();
    assert_eq!(remaining, [json!(ids[1])]);
    let again = client.bulk(json!({ "monitorIds": [ids[0], ids[1]], "delete": true })).await;
    assert_eq!(statuses(&again), [(ids[0].as_str(), "refused"), (ids[1].as_str(), "changed")]);
}

#[tokio::test]
async fn a_repetition_gets_the_first_answer_and_changes_nothing() {
    let client = TestClient::new().await;
    let id = client.monitor_id(json!({ "url": "a.example" })).await;
    let send = async |body: Value| client.bulk_once("pause-all", &body).await;
    let body = json!({ "monitorIds": [id], "set": { "paused": true } });
    let first = send(body.clone()).await;
    assert_eq!(statuses(&first), [(id.as_str(), "changed")]);
    // Somebody else resumes it meanwhile.
    client.bulk(json!({ "monitorIds": [id], "set": { "paused": false } })).await;
    let again = send(body).await;
    assert_eq!((&again.text, &again.headers["idempotency-replayed"]), (&first.text, &"true".parse().unwrap()));
    assert_eq!(client.monitors().await[0]["paused"], false);
    let other = send(json!({ "monitorIds": [id], "delete": true })).await;
    assert_eq!((other.status, code(&other)), (422, "idempotency_key_reused"));
}

#[tokio::test]
async fn invalid_requests_change_nothing() {
    let client = TestClient::new().await;
    let id = client.monitor_id(json!({ "url": "a.example" })).await;
    let before = client.world.service.last_edit();
    let ids: Vec<String> = (0..501).map(|n| format!("mon_{n}")).collect();
    for (body, field, rule) in [
        (json!({ "monitorIds": [], "set": {} }), "monitorIds", "must be a list of 1 to 500 ids of monitors"),
        (json!({ "monitorIds": ids, "set": {} }), "monitorIds", "must be a list of at most 500 ids"),
        (json!({ "monitorIds": [id, id], "set": {} }), "monitorIds", "must name each monitor once"),
        (json!({ "monitorIds": id, "set": {} }), "monitorIds", "must be a list of at most 500 ids"),
        (json!({ "set": {} }), "monitorIds", "is required"),
        (json!({ "monitorIds": [id] }), "set", "is required unless delete is true"),
        (json!({ "monitorIds": [id], "set": {}, "delete": true }), "set", "must not be sent together with delete"),
        (json!({ "monitorIds": [id], "set": [] }), "set", "must be an object"),
        (json!({ "monitorIds": [id], "set": { "paused": 1 } }), "set.paused", "must be true or false"),
        (
            json!({ "monitorIds": [id], "set": { "slowThresholdMs": 0 } }),
            "set.slowThresholdMs",
            "must be a whole number from 1 to 9999",
        ),
        (json!({ "monitorIds": [id], "delete": "yes" }), "delete", "must be true or false"),
        (
            json!({ "monitorIds": [id], "set": { "name": "All" } }),
            "set.name",
            "can't be set for many monitors: these can, groupName, slowThresholdMs, slowThresholds, latencyLocations, \
             pinnedRegion, paused",
        ),
        (
            json!({ "monitorIds": [id], "set": { "paused": true, "url": null } }),
            "set.url",
            "can't be set for many monitors: these can, groupName, slowThresholdMs, slowThresholds, latencyLocations, \
             pinnedRegion, paused",
        ),
    ] {
        let refused = client.bulk(body.clone()).await;
        assert_eq!((refused.status, code(&refused)), (400, "bad_request"), "{body}");
        let fault = &refused.body["error"]["fields"][0];
        assert_eq!((fault["field"].as_str(), fault["rule"].as_str()), (Some(field), Some(rule)), "{body}");
    }
    let many: serde_json::Map<_, _> = (0..90).map(|n| (format!("{n}{}", "x".repeat(900)), json!(1))).collect();
    let ignored = client.bulk(json!({ "monitorIds": [id], "set": many })).await;
    assert_eq!((statuses(&ignored), &ignored.body["warnings"]), (vec![(id.as_str(), "unchanged")], &Value::Null));
    let set = json!({ "group": "A", "pausd": true, "colour": "red" });
    let warned = client.bulk(json!({ "monitorIds": [id], "set": set })).await;
    let warnings =
        json!(["set.group was ignored: send it as groupName", "set.pausd was ignored: did you mean paused?"]);
    assert_eq!((warned.status, &warned.body["warnings"]), (200, &warnings));
    assert_eq!(client.world.service.last_edit(), before);
    let warned = client.bulk(json!({ "monitorIds": [id], "set": {}, "notfy": true })).await;
    assert_eq!(warned.body["warnings"], json!(["notfy was ignored: did you mean notify?"]));
}

#[tokio::test]
async fn five_hundred_monitors_are_one_request_with_a_short_record() {
    let client = TestClient::new().await;
    let id = client.monitor_id(json!({ "url": "a.example" })).await;
    let ids: Vec<String> = (1..500).map(|n| format!("mon_{n}")).chain([id.clone()]).collect();
    let body = json!({ "checkpointIds": ids, "set": { "paused": true }, "notfy": true });
    let first = client.bulk_once("pause-all", &body).await;
    let expected = ids.iter().map(|it| (it.as_str(), if *it == id { "changed" } else { "refused" }));
    assert_eq!(statuses(&first), expected.collect::<Vec<_>>());
    assert!(first.text.len() > 50_000, "{}", first.text.len());
    client.bulk(json!({ "monitorIds": [id], "set": { "paused": false } })).await;
    let again = client.bulk_once("pause-all", &body).await;
    assert_eq!((again.status, &again.text), (200, &first.text), "the first answer, of a code for each monitor");
    assert!(again.headers.contains_key("idempotency-replayed") && !again.headers.contains_key("idempotency-answer"));
    assert_eq!(client.monitors().await[0]["paused"], false);
}
