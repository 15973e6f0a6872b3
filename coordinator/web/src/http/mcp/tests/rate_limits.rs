//! Tests of rate limits: every POST counts, even an invalid one.

use super::*;

/// Headers, body, and the expected status.
type InvalidMessage = (Vec<(&'static str, &'static str)>, String, u16);

/// Invalid messages, and messages of forbidden origins. Public pages allow every origin.
fn invalid_messages(is_public: bool) -> Vec<InvalidMessage> {
    let json = ("content-type", "application/json");
    let ping = message(1, "ping", json!({}));
    let evil = if is_public { "5".to_owned() } else { ping.to_string() };
    let status = if is_public { 400 } else { 403 };
    vec![
        (vec![json], "{".to_owned(), 400),
        (vec![], ping.to_string(), 400),
        (vec![json], "[".repeat(100_000), 400),
        (vec![json], "5".to_owned(), 400),
        (vec![json], "[]".to_owned(), 400),
        (vec![json], json!(vec![ping.clone(); 21]).to_string(), 400),
        (vec![json, ("mcp-protocol-version", protocol_version::MODERN_VERSION)], json!([ping]).to_string(), 400),
        (vec![json, ("mcp-protocol-version", "2099-01-01")], json!([ping]).to_string(), 400),
        (vec![json, ("origin", "https://evil.example")], evil.clone(), status),
        (vec![json, ("origin", "null")], evil, status),
    ]
}

/// Sends invalid messages until the limit is reached, and then each once more.
async fn is_counted(client: &TestClient, path: &str, credentials: &[(&'static str, &str)]) {
    let send = async |headers: &[(&'static str, &'static str)], body: &str| {
        let headers: Vec<_> = credentials.iter().chain(headers).copied().collect();
        client.send("POST", path, &headers, body).await
    };
    let sent = invalid_messages(credentials.is_empty());
    for number in 0..120 {
        let (headers, body, status) = &sent[number % sent.len()];
        let rejection = send(headers, body).await;
        assert_eq!(
            (rejection.status, rejection.headers["ratelimit-remaining"].to_str().unwrap()),
            (*status, (119 - number).to_string().as_str()),
            "{number}"
        );
    }
    for (headers, body, _) in &sent {
        let rejection = send(headers, body).await;
        assert_eq!((rejection.status, &rejection.body["error"]["code"]), (429, &json!(429)), "{headers:?}");
        assert!(rejection.headers.contains_key("retry-after"));
    }
}

#[tokio::test]
async fn invalid_messages_count_against_the_keys_limit() {
    let client = TestClient::new().await;
    let bearer = format!("Bearer {}", client.read_key);
    is_counted(&client, "/api/v1/mcp", &[("authorization", &bearer)]).await;
    assert_eq!(client.call(&client.read_key, "GET", "/api/v1/me", Value::Null).await.status, 429);
}

#[tokio::test]
async fn invalid_messages_count_against_the_pages_limit() {
    let client = TestClient::new().await;
    is_counted(&client, "/p/shop/mcp", &[]).await;
    assert_eq!(client.get("/api/v1/me").await.status, 200, "it does not count against a key");
}

#[tokio::test]
async fn a_batch_over_the_rate_limit_runs_no_message() {
    let client = TestClient::new().await;
    let page = client.world.shop.id.to_string();
    let make = tool(1, "create_monitor", json!({ "pageId": page, "url": "https://a.example" }));
    for _ in 0..5 {
        let pings = json!(vec![message(1, "ping", json!({})); 20]);
        assert_eq!(send_message(&client, &client.write_key, &[], &pings).await.status, 200);
    }
    let ping = message(1, "ping", json!({}));
    assert_eq!(send_message(&client, &client.write_key, &[], &ping).await.status, 200);
    assert_eq!(send_message(&client, &client.write_key, &[], &json!(vec![make; 20])).await.status, 429);
    let list = reply_to(&client, &client.read_key, tool(2, "list_monitors", json!({ "pageId": page }))).await;
    assert_eq!(list["result"]["structuredContent"]["monitors"], json!([]));
}

#[tokio::test]
async fn get_and_delete_are_answered_with_the_allowed_methods() {
    let client = TestClient::new().await;
    for method in ["GET", "DELETE", "PUT"] {
        for (path, allowed) in [("/api/v1/mcp", "POST"), ("/p/shop/mcp", "POST, OPTIONS")] {
            let rejection = client.call(&client.read_key, method, path, Value::Null).await;
            assert_eq!((rejection.status, rejection.headers["allow"].to_str().unwrap()), (405, allowed));
        }
    }
    assert_eq!(client.send("GET", "/api/v1/mcp", &[], "").await.status, 401);
    let unknown = client.send("POST", "/api/v1/mcp", &[], "{}").await;
    assert_eq!((unknown.status, unknown.headers["www-authenticate"].to_str().unwrap()), (401, "Bearer"));
    for hidden in ["/p/nothing/mcp", "/p/shop/mcp/x"] {
        assert_eq!(client.send("POST", hidden, &[], "{}").await.status, 404);
    }
}
