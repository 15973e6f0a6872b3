//! Tests of pings without sockets: their syntax, their limits, and who sees the output of jobs.

use serde_json::{Value, json};

use super::*;

/// Creates a heartbeat; returns its id and the path of its pings.
async fn heartbeat(client: &TestClient) -> (String, String) {
    let body = json!({ "type": "heartbeat", "name": "Backup", "periodMinutes": 60, "graceMinutes": 5 });
    let created = client.create_monitor(body).await;
    let url = created["heartbeat"]["pingUrl"].as_str().unwrap().to_owned();
    let path = url.strip_prefix("https://status.example").unwrap().to_owned();
    (created["id"].as_str().unwrap().to_owned(), path)
}

async fn pings(client: &TestClient, key: &str, id: &str) -> Vec<Value> {
    let list = client.call(key, "GET", &client.shop_path(&format!("/monitors/{id}/pings")), Value::Null).await;
    assert_eq!(list.status, 200, "{list:?}");
    list.body["pings"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_ping_is_answered_as_its_clients_expect() {
    let client = TestClient::new().await;
    let (id, path) = heartbeat(&client).await;
    let rid = "0123abcd-0000-4000-8000-0000000000ff";
    for (method, rest, body) in
        [("GET", "/start", ""), ("HEAD", "", ""), ("POST", "/3", "disk is full"), ("POST", "/log", "half way")]
    {
        let path = format!("{path}{rest}?rid={rid}");
        let response = client.send(method, &path, &[("user-agent", "runitor")], body).await;
        assert_eq!(response.status, 200, "{method} {path}: {response:?}");
        let header = |name: &str| response.headers[name].to_str().unwrap().to_owned();
        assert_eq!((header("content-type"), header("ping-body-limit")), ("text/plain".into(), "10000".into()));
        assert_eq!((header("cache-control"), header("x-robots-tag")), ("no-store".into(), "noindex".into()));
    }
    let stored = pings(&client, &client.write_key, &id).await;
    let column = |field: &str| stored.iter().map(|ping| ping[field].clone()).collect::<Vec<_>>();
    assert_eq!(column("kind"), ["log", "fail", "success", "start"]);
    assert_eq!(column("exitCode"), [Value::Null, json!(3), Value::Null, Value::Null]);
    assert_eq!(column("body"), ["half way", "disk is full", "", ""]);
    assert_eq!((&stored[0]["runId"], &stored[0]["userAgent"]), (&json!(rid), &json!("runitor")));
    assert_eq!(stored[0]["address"], "192.0.2.1");
    // The output of a job is visible only with write access.
    assert_eq!(pings(&client, &client.read_key, &id).await[0]["body"], Value::Null);
}

#[tokio::test]
async fn invalid_pings_are_refused() {
    let client = TestClient::new().await;
    let (_, path) = heartbeat(&client).await;
    for (method, path, status) in [
        ("GET", format!("{path}/256"), 404),
        ("GET", format!("{path}/begin"), 404),
        ("GET", format!("{path}/start/1"), 404),
        ("GET", format!("{path}x"), 404),
        ("GET", format!("{path}?rid=1"), 400),
        ("PUT", path.clone(), 405),
    ] {
        let response = client.send(method, &path, &[], "").await;
        assert_eq!(response.status, status, "{method} {path}");
        let message = response.body["error"]["message"].as_str().unwrap();
        assert!(status != 404 || (message.contains("ping URL") && !message.contains("key")), "{message}");
    }
}

#[tokio::test]
async fn a_ping_with_a_trailing_slash_is_accepted() {
    let client = TestClient::new().await;
    let (id, path) = heartbeat(&client).await;
    for (method, rest) in [("GET", "/"), ("HEAD", "/start/"), ("POST", "/0/"), ("GET", "/3/?rid="), ("GET", "//")] {
        let status = if rest.contains("rid") { 400 } else { 200 };
        assert_eq!(client.send(method, &format!("{path}{rest}"), &[], "").await.status, status, "{rest}");
    }
    let stored = pings(&client, &client.write_key, &id).await;
    let kinds = stored.iter().map(|ping| ping["kind"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(kinds, ["success", "success", "start", "success"]);
}

#[tokio::test]
async fn a_push_that_reports_a_failure_is_no_success() {
    let client = TestClient::new().await;
    let (id, path) = heartbeat(&client).await;
    for (query, kind) in [
        ("status=down&msg=disk+is%20full&ping=1250", "fail"),
        ("status=up&msg=OK&ping=", "success"),
        ("state=run", "start"),
        ("state=fail", "fail"),
        ("state=complete", "success"),
    ] {
        assert_eq!(client.send("GET", &format!("{path}?{query}"), &[], "").await.status, 200, "{query}");
        assert_eq!(pings(&client, &client.write_key, &id).await[0]["kind"], kind, "{query}");
    }
    let stored = pings(&client, &client.write_key, &id).await;
    let (up, down) = (&stored[3], &stored[4]);
    assert_eq!((&down["body"], &down["durationMs"]), (&json!("disk is full"), &json!(1250)));
    assert_eq!((&up["body"], &up["durationMs"]), (&json!("OK"), &Value::Null));
    // A body takes precedence over the `msg` parameter.
    client.send("POST", &format!("{path}?status=0&msg=short"), &[], "the whole log").await;
    assert_eq!(pings(&client, &client.write_key, &id).await[0]["body"], "the whole log");
    for (query, field) in [("status=warn", "status"), ("state=", "state"), ("state=run&status=up", "status")] {
        let rejection = client.send("GET", &format!("{path}?{query}"), &[], "").await;
        let fault = &rejection.body["error"]["fields"][0];
        assert_eq!((rejection.status, fault["field"].as_str()), (400, Some(field)), "{query}: {rejection:?}");
        assert!(fault["rule"].as_str().is_some_and(|rule| rule.starts_with("must ")), "{rejection:?}");
    }
    assert_eq!(pings(&client, &client.write_key, &id).await.len(), 6, "rejected pings are not stored");
}

#[tokio::test]
async fn a_ping_has_the_address_that_the_proxy_forwards() {
    let mut client = TestClient::new().await;
    let (id, path) = heartbeat(&client).await;
    for (peer, forwarded, expected) in [
        ("127.0.0.1", Some("198.51.100.1, 203.0.113.7"), "203.0.113.7"),
        ("127.0.0.1", None, "127.0.0.1"),
        ("192.0.2.9", Some("203.0.113.7"), "192.0.2.9"),
    ] {
        client.peer = peer;
        let headers: Vec<_> = forwarded.map(|forwarded| ("x-forwarded-for", forwarded)).into_iter().collect();
        assert_eq!(client.send("GET", &path, &headers, "").await.status, 200);
        assert_eq!(pings(&client, &client.write_key, &id).await[0]["address"], expected);
    }
}

#[tokio::test]
async fn a_token_is_a_uuid_and_allows_a_hundred_pings_a_second() {
    let client = TestClient::new().await;
    let (_, path) = heartbeat(&client).await;
    let token = path.strip_prefix("/ping/").unwrap();
    let hyphens: Vec<usize> = token.match_indices('-').map(|(at, _)| at).collect();
    assert_eq!((token.len(), hyphens, token.as_bytes()[14]), (36, vec![8, 13, 18, 23], b'4'), "{token}");
    for _ in 0..100 {
        assert_eq!(client.send("GET", &path, &[], "").await.status, 200);
    }
    let rejection = client.send("GET", &path, &[], "").await;
    assert_eq!(
        (rejection.status, code(&rejection), &rejection.headers["retry-after"]),
        (429, "rate_limited", &"1".parse().unwrap())
    );
    client.world.clock.set(client.world.service.now() + 1000);
    assert_eq!(client.send("GET", &path, &[], "").await.status, 200);
}

#[tokio::test]
async fn a_body_is_cut_at_ten_thousand_bytes() {
    let client = TestClient::new().await;
    let (id, path) = heartbeat(&client).await;
    assert_eq!(client.send("POST", &path, &[], &"é".repeat(9000)).await.status, 200);
    let stored = pings(&client, &client.write_key, &id).await;
    assert_eq!(stored[0]["body"].as_str().unwrap(), "é".repeat(5000));
}
