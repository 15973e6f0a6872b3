//! Tests of the MCP server without sockets: protocol versions, tools by credential, rate limits, batches and origins.

mod protocol_versions;
mod rate_limits;
mod schemas;
mod tool_texts;

use parallax_core::page::Page;

use super::*;
use crate::http::tests::{TestClient, TestResponse};

const MODERN_META: [(&str, &str); 1] = [("io.modelcontextprotocol/protocolVersion", protocol_version::MODERN_VERSION)];

fn message(id: i64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn tool(id: i64, name: &str, arguments: Value) -> Value {
    message(id, "tools/call", json!({ "name": name, "arguments": arguments }))
}

async fn send_message(
    client: &TestClient,
    key: &str,
    extra_headers: &[(&'static str, &str)],
    body: &Value,
) -> TestResponse {
    let bearer = format!("Bearer {key}");
    let mut headers = vec![("authorization", bearer.as_str()), ("content-type", "application/json")];
    headers.extend(extra_headers);
    client.send("POST", "/api/v1/mcp", &headers, &body.to_string()).await
}

async fn reply_to(client: &TestClient, key: &str, body: Value) -> Value {
    let response = send_message(client, key, &[], &body).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}

/// Sends a request of the modern version, without `initialize`.
async fn modern(client: &TestClient, method: &str, mut params: Value) -> TestResponse {
    let mut meta = json!({ "io.modelcontextprotocol/clientCapabilities": {} });
    for (name, value) in MODERN_META {
        meta[name] = json!(value);
    }
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    params["_meta"] = meta;
    let mut headers = vec![("mcp-protocol-version", protocol_version::MODERN_VERSION), ("mcp-method", method)];
    if !name.is_empty() {
        headers.push(("mcp-name", &name));
    }
    send_message(client, &client.write_key, &headers, &message(1, method, params)).await
}

#[tokio::test]
async fn an_older_client_initializes_lists_and_calls_tools() {
    let client = TestClient::new().await;
    for (requested, negotiated) in
        [("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"), ("2020-01-01", "2025-11-25")]
    {
        let hello =
            reply_to(&client, &client.read_key, message(1, "initialize", json!({ "protocolVersion": requested })))
                .await;
        assert_eq!((&hello["id"], &hello["result"]["protocolVersion"]), (&json!(1), &json!(negotiated)));
        assert_eq!(hello["result"]["capabilities"], json!({ "tools": {} }));
    }
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let response = send_message(&client, &client.read_key, &[("mcp-protocol-version", "2025-06-18")], &note).await;
    assert_eq!((response.status, response.body), (202, Value::Null));
    assert_eq!(reply_to(&client, &client.read_key, message(2, "ping", json!({}))).await["result"], json!({}));
    let pages = reply_to(&client, &client.read_key, tool(3, "list_pages", json!({}))).await;
    let result = &pages["result"];
    assert_eq!((&result["isError"], &result["structuredContent"]["pages"][0]["slug"]), (&json!(false), &json!("shop")));
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
}

#[tokio::test]
async fn a_key_has_the_tools_that_its_access_allows() {
    let client = TestClient::new().await;
    let names = |list: Value| -> Vec<String> {
        let tools = list["result"]["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    };
    let all = names(reply_to(&client, &client.write_key, message(1, "tools/list", json!({}))).await);
    let read = names(reply_to(&client, &client.read_key, message(1, "tools/list", json!({}))).await);
    assert!(all.contains(&"create_monitor".to_owned()) && !read.contains(&"create_monitor".to_owned()));
    assert!(read.contains(&"list_monitors".to_owned()) && all.is_sorted());
    let page = client.world.shop.id.to_string();
    let arguments = json!({ "pageId": page, "url": "https://a.example" });
    let rejection = reply_to(&client, &client.read_key, tool(2, "create_monitor", arguments.clone())).await;
    assert_eq!(rejection["result"]["isError"], true);
    assert!(rejection["result"]["content"][0]["text"].as_str().unwrap().contains("only read"));
    let [(old_list, _), (old_create, _)] = crate::http::legacy::OLD_TOOLS;
    let result = reply_to(&client, &client.write_key, tool(3, old_create, arguments)).await;
    assert_eq!(result["result"]["structuredContent"]["monitor"]["url"], "https://a.example");
    let monitors = reply_to(&client, &client.read_key, tool(4, old_list, json!({ "pageId": page }))).await;
    assert_eq!(monitors["result"]["structuredContent"]["monitors"].as_array().unwrap().len(), 1);
    // A key of another page can't access the page, neither by tool nor by API.
    let foreign_page = reply_to(&client, &client.page_key, tool(5, "list_monitors", json!({ "pageId": page }))).await;
    assert!(foreign_page["result"]["content"][0]["text"].as_str().unwrap().starts_with("not_found"));
    let invalid = json!({ "pageId": page, "url": "ftp://a.example" });
    let invalid = reply_to(&client, &client.write_key, tool(6, "create_monitor", invalid)).await;
    assert_eq!(invalid["result"]["content"][0]["text"], "bad_request: url must be an http or https URL");
}

#[tokio::test]
async fn a_batch_answers_requests_and_counts_each_message() {
    let client = TestClient::new().await;
    let batch = json!([
        message(1, "ping", json!({})),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        message(2, "nothing", json!({})),
        5,
        message(3, "initialize", json!({})),
    ]);
    let response = send_message(&client, &client.read_key, &[], &batch).await;
    let ids: Vec<_> =
        response.body.as_array().unwrap().iter().map(|answer| (&answer["id"], &answer["error"]["code"])).collect();
    let expected = [
        (&json!(1), &Value::Null),
        (&json!(2), &json!(-32601)),
        (&Value::Null, &json!(-32600)),
        (&json!(3), &json!(-32600)),
    ];
    assert_eq!(ids, expected);
    assert_eq!(response.headers["ratelimit-remaining"], "115");
    let notification = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]);
    assert_eq!(send_message(&client, &client.read_key, &[], &notification).await.status, 202);
    for (invalid, headers) in [
        (json!([]), &[][..]),
        (json!(vec![message(1, "ping", json!({})); 21]), &[]),
        (json!([message(1, "ping", json!({}))]), &[("mcp-protocol-version", protocol_version::MODERN_VERSION)]),
    ] {
        let rejection = send_message(&client, &client.read_key, headers, &invalid).await;
        assert_eq!((rejection.status, &rejection.body["error"]["code"]), (400, &json!(-32600)));
    }
}

#[tokio::test]
async fn messages_above_the_keys_rate_limit_are_all_refused() {
    let client = TestClient::new().await;
    let batch = json!(vec![message(1, "ping", json!({})); 20]);
    for _ in 0..6 {
        assert_eq!(send_message(&client, &client.read_key, &[], &batch).await.status, 200);
    }
    let rejection = send_message(&client, &client.read_key, &[], &message(1, "ping", json!({}))).await;
    assert_eq!((rejection.status, &rejection.body["error"]["code"]), (429, &json!(429)));
    assert!(rejection.headers.contains_key("retry-after"));
    assert_eq!(
        client.call(&client.read_key, "GET", "/api/v1/me", Value::Null).await.status,
        429,
        "MCP and API share one limit"
    );
}

#[tokio::test]
async fn invalid_messages_are_answered_with_an_error_code() {
    let client = TestClient::new().await;
    let bearer = format!("Bearer {}", client.write_key);
    let json_headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let deep = "[".repeat(100_000);
    for (headers, body, code) in [
        (&json_headers[..], "{", -32700),
        (&json_headers[..], deep.as_str(), -32700),
        (&json_headers[..1], "{}", -32700),
        (&json_headers[..], "5", -32600),
        (&json_headers[..], r#"{"jsonrpc": "2.0", "id": 1}"#, -32600),
    ] {
        let rejection = client.send("POST", "/api/v1/mcp", headers, body).await;
        assert_eq!((rejection.status, &rejection.body["error"]["code"]), (400, &json!(code)), "{rejection:?}");
    }
    for (params, error_text) in [
        (json!({}), "name is required and must be a string"),
        (json!({ "name": "list_pages", "arguments": [] }), "arguments must be an object"),
        (json!({ "name": "drop_tables" }), "there is no tool drop_tables"),
    ] {
        let rejection = reply_to(&client, &client.write_key, message(1, "tools/call", params)).await;
        assert_eq!((&rejection["error"]["code"], &rejection["error"]["message"]), (&json!(-32602), &json!(error_text)));
    }
}

#[tokio::test]
async fn a_page_of_another_site_is_refused() {
    let client = TestClient::new().await;
    let ping = message(1, "ping", json!({}));
    let evil = send_message(&client, &client.write_key, &[("origin", "https://evil.example")], &ping).await;
    assert_eq!(evil.status, 403);
    let own_origin = send_message(&client, &client.write_key, &[("origin", "https://status.example")], &ping).await;
    assert_eq!(own_origin.status, 200);
}

#[tokio::test]
async fn a_public_pages_endpoint_is_open_to_every_site() {
    let client = TestClient::new().await;
    let domain = Some("status.shop.example".to_owned());
    client.world.put_page(Page { custom_domain: domain, ..client.world.shop.clone() }).await;
    let ping = message(1, "ping", json!({})).to_string();
    let sent_from = async |path: &str, host: &str, origin: Option<&str>| {
        let mut headers = vec![("content-type", "application/json"), ("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        client.send("POST", path, &headers, &ping).await
    };
    for (path, host) in
        [("/p/shop/mcp", "status.example"), ("/mcp", "shop.pages.example"), ("/mcp", "status.shop.example")]
    {
        for origin in [None, Some("https://status.shop.example"), Some("https://evil.example"), Some("null")] {
            let response = sent_from(path, host, origin).await;
            assert_eq!((response.status, &response.body["result"]), (200, &json!({})), "{host} {origin:?}");
            assert_eq!(response.headers["access-control-allow-origin"], "*");
            assert!(!response.headers.contains_key("access-control-allow-credentials"));
        }
        let headers = [("host", host), ("origin", "https://evil.example"), ("access-control-request-method", "POST")];
        let preflight = client.send("OPTIONS", path, &headers, "").await;
        assert_eq!((preflight.status, &preflight.headers["access-control-allow-origin"]), (204, &"*".parse().unwrap()));
        let allowed_headers = preflight.headers["access-control-allow-headers"].to_str().unwrap();
        for header in ["content-type", "mcp-protocol-version", "mcp-method", "mcp-name"] {
            assert!(allowed_headers.split(", ").any(|name| name == header), "{header}");
        }
        assert!(!allowed_headers.contains("authorization"));
    }
    let guarded = Page { private: true, ..client.world.shop.clone() };
    client.world.put_page(guarded).await;
    let preflight = client.send("OPTIONS", "/p/shop/mcp", &[("origin", "https://evil.example")], "").await;
    assert_eq!((preflight.status, preflight.headers.contains_key("access-control-allow-origin")), (404, false));
    let preflight = client.send("OPTIONS", "/api/v1/mcp", &[("origin", "https://evil.example")], "").await;
    assert_eq!((preflight.status, preflight.headers.contains_key("access-control-allow-origin")), (401, false));
    // The endpoint for keys allows only the origin of the base URL.
    let own_origin = [("origin", "https://shop.pages.example")];
    let rejection = send_message(&client, &client.write_key, &own_origin, &message(1, "ping", json!({}))).await;
    assert_eq!((rejection.status, &rejection.body["error"]["code"]), (403, &json!(-32600)));
}

#[tokio::test]
async fn a_public_page_has_read_only_tools_and_its_own_rate_limit() {
    let client = TestClient::new().await;
    client.create_monitor(json!({ "url": "https://secret.example/x", "name": "Checkout" })).await;
    let public = async |body: Value| {
        client.send("POST", "/p/shop/mcp", &[("content-type", "application/json")], &body.to_string()).await
    };
    let list = public(message(1, "tools/list", json!({}))).await.body;
    let names: Vec<_> = list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["get_status", "get_time", "list_incidents", "list_maintenance", "list_monitors"]);
    for tool in list["result"]["tools"].as_array().unwrap() {
        let result = public(message(2, "tools/call", json!({ "name": tool["name"] }))).await.body;
        assert_eq!(result["result"]["isError"], false, "{result}");
        assert!(!result.to_string().contains("secret.example"));
    }
    let list_result = public(tool(3, "list_monitors", json!({}))).await.body;
    assert_eq!(list_result["result"]["structuredContent"]["monitors"][0]["name"], "Checkout");
    assert_eq!(public(tool(4, "create_monitor", json!({}))).await.body["error"]["code"], -32602);
    let mut last = 200;
    for _ in 0..120 {
        last = public(message(5, "ping", json!({}))).await.status;
    }
    assert_eq!(last, 429);
}
