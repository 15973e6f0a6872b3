//! Pings without sockets: the grammar, the limits, and who sees what jobs say.

use serde_json::{Value, json};

use super::*;

/// A heartbeat's id and the path of its pings.
async fn heartbeat(client: &Client) -> (String, String) {
    let body = json!({ "type": "heartbeat", "name": "Backup", "periodMinutes": 60, "graceMinutes": 5 });
    let made = client.make(body).await;
    let url = made["heartbeat"]["pingUrl"].as_str().unwrap().to_owned();
    let path = url.strip_prefix("https://status.example").unwrap().to_owned();
    (made["id"].as_str().unwrap().to_owned(), path)
}

async fn pings(client: &Client, key: &str, id: &str) -> Vec<Value> {
    let listed = client.call(key, "GET", &client.shop(&format!("/monitors/{id}/pings")), Value::Null).await;
    assert_eq!(listed.status, 200, "{listed:?}");
    listed.body["pings"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_ping_is_answered_as_its_clients_expect() {
    let client = Client::new().await;
    let (id, path) = heartbeat(&client).await;
    let rid = "0123abcd-0000-4000-8000-0000000000ff";
    for (method, rest, body) in [
        ("GET", "/start", ""),
        ("HEAD", "", ""),
        ("POST", "/3", "disk is full"),
        ("POST", "/log", "half way"),
    ] {
        let path = format!("{path}{rest}?rid={rid}");
        let answered = client.send(method, &path, &[("user-agent", "runitor")], body).await;
        assert_eq!(answered.status, 200, "{method} {path}: {answered:?}");
        let header = |name: &str| answered.headers[name].to_str().unwrap().to_owned();
        assert_eq!(
            (header("content-type"), header("ping-body-limit")),
            ("text/plain".into(), "10000".into())
        );
        assert_eq!((header("cache-control"), header("x-robots-tag")), ("no-store".into(), "noindex".into()));
    }
    let kept = pings(&client, &client.write, &id).await;
    let told = |field: &str| kept.iter().map(|ping| ping[field].clone()).collect::<Vec<_>>();
    assert_eq!(told("kind"), ["log", "fail", "success", "start"]);
    assert_eq!(told("exitCode"), [Value::Null, json!(3), Value::Null, Value::Null]);
    assert_eq!(told("body"), ["half way", "disk is full", "", ""]);
    assert_eq!((&kept[0]["runId"], &kept[0]["userAgent"]), (&json!(rid), &json!("runitor")));
    assert_eq!(kept[0]["address"], "192.0.2.1");
    // A job's output is for those who may write.
    assert_eq!(pings(&client, &client.read, &id).await[0]["body"], Value::Null);
}

#[tokio::test]
async fn what_is_no_ping_is_refused() {
    let client = Client::new().await;
    let (_, path) = heartbeat(&client).await;
    for (method, path, status) in [
        ("GET", format!("{path}/256"), 404),
        ("GET", format!("{path}/begin"), 404),
        ("GET", format!("{path}x"), 404),
        ("GET", format!("{path}?rid=1"), 400),
        ("PUT", path.clone(), 405),
    ] {
        assert_eq!(client.send(method, &path, &[], "").await.status, status, "{method} {path}");
    }
}

#[tokio::test]
async fn the_sixth_ping_of_a_second_is_told_to_come_later() {
    let client = Client::new().await;
    let (id, path) = heartbeat(&client).await;
    for _ in 0..5 {
        assert_eq!(client.send("GET", &path, &[], "").await.status, 200);
    }
    let refused = client.send("GET", &path, &[], "").await;
    assert_eq!(
        (refused.status, code(&refused), &refused.headers["retry-after"]),
        (429, "rate_limited", &"1".parse().unwrap())
    );
    client.world.clock.set(client.world.service.now() + 1000);
    assert_eq!(client.send("GET", &path, &[], "").await.status, 200);
    assert_eq!(pings(&client, &client.write, &id).await.len(), 6);
}

#[tokio::test]
async fn a_body_is_cut_at_ten_thousand_bytes() {
    let client = Client::new().await;
    let (id, path) = heartbeat(&client).await;
    assert_eq!(client.send("POST", &path, &[], &"é".repeat(9000)).await.status, 200);
    let kept = pings(&client, &client.write, &id).await;
    assert_eq!(kept[0]["body"].as_str().unwrap(), "é".repeat(5000));
}
