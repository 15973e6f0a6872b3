//! Tests of the order of a page's monitors: one batch, refreshed documents, replays, and errors.

use serde_json::{Value, json};

use super::{TestClient, TestResponse, code};

impl TestClient {
    async fn order(&self, key: &str, body: Value) -> TestResponse {
        let (bearer, path) = (format!("Bearer {}", self.write_key), self.shop_path("/monitors/order"));
        let mut headers = vec![("authorization", bearer.as_str()), ("content-type", "application/json")];
        headers.extend((!key.is_empty()).then_some(("idempotency-key", key)));
        self.send("PATCH", &path, &headers, &body.to_string()).await
    }

    /// Creates monitors with these names and returns their ids.
    async fn named_monitors(&self, names: &[String]) -> Vec<String> {
        let mut ids = Vec::new();
        for name in names {
            let monitor = self.create_monitor(json!({ "name": name, "url": "a.example" })).await;
            ids.push(monitor["id"].as_str().unwrap().to_owned());
        }
        ids
    }

    /// Names and positions of the monitors, as listed.
    async fn listed(&self) -> Vec<(String, u64)> {
        let list = self.get(&self.shop_path("/monitors")).await.body["monitors"].clone();
        let one = |it: &Value| (it["name"].as_str().unwrap().to_owned(), it["position"].as_u64().unwrap());
        list.as_array().unwrap().iter().map(one).collect()
    }
}

fn letters(text: &str) -> Vec<String> {
    text.chars().map(String::from).collect()
}

#[tokio::test]
async fn a_new_order_is_one_commit_that_pages_show_at_once() {
    let client = TestClient::new().await;
    let ids = client.named_monitors(&letters("abcd")).await;
    client.call(&client.write_key, "DELETE", &client.shop_path(&format!("/monitors/{}", ids[1])), Value::Null).await;
    let [a, c, d] = [0, 2, 3].map(|at| ids[at].clone());
    let shown = async || {
        let status = client.get("/p/shop/status.json").await.body["monitors"].clone();
        let names = status.as_array().unwrap().iter().map(|monitor| monitor["name"].as_str().unwrap().to_owned());
        names.collect::<String>()
    };
    assert_eq!(shown().await, "acd");
    let (revision, edit) = (client.world.revision().await, client.world.service.last_edit());
    let reply = client.order("", json!({ "monitorIds": [d, a, c] })).await;
    assert_eq!((reply.status, &reply.body["monitorIds"]), (200, &json!([d, a, c])));
    assert_eq!(client.world.revision().await, revision + 2, "one commit");
    assert_eq!(client.world.service.last_edit(), edit + 1, "one event");
    let expected = [("d", 0), ("a", 1), ("c", 2)].map(|(name, at)| (name.to_owned(), at));
    assert_eq!((client.listed().await, shown().await), (expected.to_vec(), "dac".to_owned()));
    // Without a change nothing is written.
    for name in ["monitorIds", "checkpointIds"] {
        let same = client.order("", json!({ name: [d, a, c] })).await;
        assert_eq!((same.status, &same.body["monitorIds"]), (200, &json!([d, a, c])));
        assert_eq!(client.world.service.last_edit(), edit + 1);
    }
    client.named_monitors(&letters("e")).await;
    assert_eq!(shown().await, "dace", "a new one is the last");
}

#[tokio::test]
async fn an_order_that_is_not_complete_is_refused() {
    let client = TestClient::new().await;
    let ids = client.named_monitors(&letters("ab")).await;
    let blog = format!("/api/v1/pages/{}/monitors", client.world.blog.id);
    let other = client.call(&client.write_key, "POST", &blog, json!({ "url": "b.example" })).await;
    let other = other.body["monitor"]["id"].as_str().unwrap();
    const RULE: &str = "must name every monitor of the page once";
    let too_many: Vec<String> = (0..2001).map(|n| format!("mon_{n}")).collect();
    for (sent, rule) in [
        (json!([ids[1]]), RULE),
        (json!([ids[1], ids[0], ids[0]]), RULE),
        (json!([ids[1], ids[1]]), RULE),
        (json!([ids[1], other]), RULE),
        (json!([ids[1], ids[0], other]), RULE),
        (json!([]), RULE),
        (json!(null), "is required"),
        (json!(too_many), "must be a list of at most 2000 ids"),
    ] {
        let refused = client.order("", json!({ "monitorIds": sent })).await;
        assert_eq!((refused.status, code(&refused)), (400, "bad_request"));
        assert_eq!(refused.body["error"]["fields"], json!([{ "field": "monitorIds", "rule": rule }]));
    }
    assert_eq!(client.listed().await.into_iter().map(|(name, _)| name).collect::<String>(), "ab");
    let empty = client.order("", json!({})).await;
    assert_eq!((empty.status, code(&empty)), (400, "bad_request"));
    assert_eq!(empty.body["error"]["fields"], json!([{ "field": "monitorIds", "rule": "is required" }]));
}

#[tokio::test]
async fn a_repetition_does_not_undo_a_later_order() {
    let client = TestClient::new().await;
    let ids = client.named_monitors(&letters("ab")).await;
    let first = client.order("sort", json!({ "monitorIds": [ids[1], ids[0]] })).await;
    client.order("", json!({ "monitorIds": ids })).await;
    let again = client.order("sort", json!({ "monitorIds": [ids[1], ids[0]] })).await;
    assert_eq!((&again.text, &again.headers["idempotency-replayed"]), (&first.text, &"true".parse().unwrap()));
    assert_eq!(client.listed().await.into_iter().map(|(name, _)| name).collect::<String>(), "ab");
    let other = client.order("sort", json!({ "monitorIds": ids })).await;
    assert_eq!((other.status, code(&other)), (422, "idempotency_key_reused"));
}

#[tokio::test]
async fn a_long_order_is_replayed_as_it_is_now() {
    let client = TestClient::new().await;
    // Answers have each id twice, under the old name too: more than 8 KiB from about 130 monitors on.
    let names: Vec<String> = (0..100).map(|n| format!("n{n}")).collect();
    let mut ids = client.named_monitors(&names).await;
    for n in 0..40 {
        client.world.clock.set(client.world.service.now() + 60_000);
        let component =
            json!({ "type": "component", "name": format!("c{n}"), "vendorUrl": "https://www.githubstatus.com" });
        ids.push(client.create_monitor(component).await["id"].as_str().unwrap().to_owned());
    }
    let reversed: Vec<&String> = ids.iter().rev().collect();
    let first = client.order("sort", json!({ "monitorIds": reversed })).await;
    assert!((first.status, first.text.len() > 8192) == (200, true), "{first:?}");
    client.order("", json!({ "monitorIds": ids })).await;
    let again = client.order("sort", json!({ "monitorIds": reversed })).await;
    assert_eq!((again.status, &again.body["monitorIds"]), (200, &json!(ids)));
    assert_eq!(again.headers["idempotency-answer"], "current");
}
