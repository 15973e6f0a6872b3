//! Tests of the modern protocol version, of mismatched versions and headers, and of event streams.

use super::*;

#[tokio::test]
async fn a_modern_client_needs_no_initialization() {
    let client = TestClient::new().await;
    let discovery = modern(&client, "server/discover", json!({})).await;
    let result = &discovery.body["result"];
    assert_eq!((discovery.status, &result["resultType"]), (200, &json!("complete")));
    assert_eq!(result["supportedVersions"], json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]));
    let list = modern(&client, "tools/list", json!({})).await.body;
    assert_eq!((&list["result"]["cacheScope"], list["result"]["ttlMs"].is_u64()), (&json!("private"), true));
    let called = modern(&client, "tools/call", json!({ "name": "get_key", "arguments": {} })).await.body;
    assert_eq!(called["result"]["structuredContent"]["key"]["access"], "write");
    assert_eq!(called["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "parallax");
    let unknown = modern(&client, "ping", json!({})).await;
    assert_eq!((unknown.status, &unknown.body["error"]["code"], &unknown.body["id"]), (404, &json!(-32601), &json!(1)));
}

#[tokio::test]
async fn mismatched_versions_and_headers_are_refused_with_an_error_code() {
    let client = TestClient::new().await;
    let list = message(9, "tools/list", json!({}));
    let unknown = send_message(&client, &client.write_key, &[("mcp-protocol-version", "2099-01-01")], &list).await;
    assert_eq!((unknown.status, &unknown.body["error"]["code"]), (400, &json!(-32022)));
    assert_eq!(unknown.body["error"]["data"]["requested"], "2099-01-01");
    let meta = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": protocol_version::MODERN_VERSION, "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let headless = send_message(&client, &client.write_key, &[], &message(9, "tools/list", meta)).await;
    assert_eq!(
        (headless.status, &headless.body["error"]["code"], &headless.body["id"]),
        (400, &json!(-32020), &json!(9))
    );
}

#[tokio::test]
async fn a_header_of_an_unknown_version_is_refused_with_any_body() {
    let client = TestClient::new().await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for body in [note.clone(), json!([note]), message(1, "initialize", json!({}))] {
        let rejection = send_message(&client, &client.read_key, &[("mcp-protocol-version", "2099-01-01")], &body).await;
        assert_eq!((rejection.status, &rejection.body["error"]["code"]), (400, &json!(-32022)), "{body}");
        let accepted = send_message(&client, &client.read_key, &[("mcp-protocol-version", "2025-11-25")], &body).await;
        assert!(accepted.status < 300, "{accepted:?}");
    }
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": protocol_version::MODERN_VERSION } });
    let rejection = send_message(&client, &client.read_key, &[], &json!([message(1, "tools/list", meta)])).await;
    assert_eq!((rejection.status, &rejection.body["error"]["code"]), (400, &json!(-32600)));
}

#[tokio::test]
async fn a_complete_list_has_no_next_cursor() {
    let client = TestClient::new().await;
    let list = async |cursor: Value| {
        reply_to(&client, &client.read_key, message(1, "tools/list", json!({ "cursor": cursor }))).await
    };
    assert!(list(Value::Null).await["result"]["tools"].is_array());
    for cursor in [json!("x"), json!(""), json!(1)] {
        assert_eq!(list(cursor).await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn a_client_that_accepts_only_events_gets_events() {
    let client = TestClient::new().await;
    let events = [("accept", "text/event-stream")];
    let ping = message(1, "ping", json!({}));
    for (body, expected) in [
        (ping.clone(), "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n".to_owned()),
        (
            json!([ping, { "jsonrpc": "2.0", "method": "notifications/initialized" }, message(2, "ping", json!({}))]),
            [1, 2]
                .map(|id| format!("event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n\n"))
                .concat(),
        ),
    ] {
        let response = send_message(&client, &client.read_key, &events, &body).await;
        assert_eq!((response.status, &response.headers["content-type"]), (200, &"text/event-stream".parse().unwrap()));
        assert_eq!((response.text, &response.headers["cache-control"]), (expected, &"no-store".parse().unwrap()));
        assert!(response.headers.contains_key("ratelimit-remaining"));
    }
    let page = [("accept", "text/event-stream"), ("content-type", "application/json")];
    let public = client.send("POST", "/p/shop/mcp", &page, &message(1, "ping", json!({})).to_string()).await;
    assert_eq!(public.headers["content-type"], "text/event-stream");
    // No stream: if the client accepts both, if there is no response, or if the whole POST is rejected.
    let both = [("accept", "application/json, text/event-stream")];
    let response = send_message(&client, &client.read_key, &both, &message(1, "ping", json!({}))).await;
    assert_eq!(response.headers["content-type"], "application/json");
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send_message(&client, &client.read_key, &events, &note).await.status, 202);
    let rejection = send_message(&client, &client.read_key, &events, &json!(5)).await;
    assert_eq!((rejection.status, &rejection.body["error"]["code"]), (400, &json!(-32600)));
    // The server offers no event stream by GET.
    for (path, allowed) in [("/api/v1/mcp", "POST"), ("/p/shop/mcp", "POST, OPTIONS")] {
        let bearer = format!("Bearer {}", client.read_key);
        let headers = [("accept", "text/event-stream"), ("authorization", bearer.as_str())];
        let rejection = client.send("GET", path, &headers, "").await;
        assert_eq!((rejection.status, rejection.headers["allow"].to_str().unwrap()), (405, allowed));
    }
}
