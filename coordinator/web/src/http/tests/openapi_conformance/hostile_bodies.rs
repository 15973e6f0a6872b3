//! Tests of malicious and malformed bodies with every operation that takes one.

use super::*;

/// Bodies that every endpoint must reject, with names.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let deep = |open: &str, close: &str| (open.repeat(100_000) + &close.repeat(100_000)).into_bytes();
    let with_text = |text: &str| format!(r#"{{"name": {text}, "title": {text}, "version": {text}}}"#).into_bytes();
    vec![
        ("deep lists", deep("[", "]")),
        ("deep objects", deep("{\"name\":", "}")),
        ("deep below a field", [&b"{\"headers\":"[..], &deep("[", "]"), b"}"].concat()),
        ("deep and unclosed", b"{\"a\":".repeat(50_000)),
        ("a duplicate name", br#"{"name": "a", "name": "a"}"#.to_vec()),
        ("a duplicate name, once escaped", br#"{"name": "a", "n\u0061me": "a"}"#.to_vec()),
        ("a duplicate nested name", br#"{"headers": {"a": "b", "a": "b"}}"#.to_vec()),
        ("a lone surrogate", with_text(r#""\ud800""#)),
        ("surrogates in the wrong order", with_text(r#""\udc00\ud800""#)),
        ("a lone surrogate as a name", br#"{"\ud800": 1}"#.to_vec()),
        ("a raw NUL", with_text("\"a\0b\"")),
        ("a number out of range", br#"{"port": 1e400}"#.to_vec()),
        ("a nested number out of range", br#"{"more": [-1e400]}"#.to_vec()),
        ("invalid UTF-8", b"{\"name\": \"\xff\xfe\"}".to_vec()),
        ("overlong UTF-8", b"{\"name\": \"\xc0\xaf\"}".to_vec()),
        ("a surrogate in UTF-8", b"{\"name\": \"\xed\xa0\x80\"}".to_vec()),
        ("UTF-16", b"\xff\xfe{\0}\0".to_vec()),
        ("two byte order marks", b"\xef\xbb\xbf\xef\xbb\xbf{}".to_vec()),
        ("ten megabytes", vec![b' '; 10 << 20]),
        ("ten megabytes in a text", [&b"{\"name\": \""[..], &vec![b'a'; 10 << 20], b"\"}"].concat()),
        ("two documents", b"{} {}".to_vec()),
        ("a trailing comma", b"{\"name\": \"a\",}".to_vec()),
        ("NaN", br#"{"port": NaN}"#.to_vec()),
        ("an empty body", Vec::new()),
        ("a list", b"[[]]".to_vec()),
        ("null", b"null".to_vec()),
    ]
}

#[tokio::test]
async fn every_route_with_a_body_refuses_hostile_bodies() {
    let shop = ConformanceFixture::new().await;
    let client = &shop.client;
    let bearer = format!("Bearer {}", client.write_key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let (bodies, mut checked) = (bodies(), 0);
    for operation in operations().into_iter().filter(ApiOperation::writes) {
        checked += 1;
        for (name, body) in &bodies {
            let before = client.world.service.last_edit();
            let path = format!("/api/v1{}", ConformanceFixture::path(&operation, &shop.ids));
            // Operations that do not read a body would succeed.
            if operation.body.is_none() && operation.method != Method::POST {
                continue;
            }
            let response = client.send_bytes(operation.method.as_str(), &path, &headers, body.clone()).await;
            client.world.clock.set(shop.time_from_now(10_000));
            if operation.body.is_none() {
                assert!(response.status < 500, "{} {name} {response:?}", operation.id);
                continue;
            }
            assert!(is_refused(&response, 400, "bad_request"), "{} {name} {response:?}", operation.id);
            assert!(response.body["error"]["fields"].is_array(), "{} {name}", operation.id);
            assert!(response.bytes.len() < 1000, "{} {name}", operation.id);
            assert_eq!(client.world.service.last_edit(), before, "{} {name}", operation.id);
        }
    }
    assert!(checked > 15, "{checked}");
}

#[tokio::test]
async fn both_mcp_endpoints_refuse_hostile_bodies() {
    let shop = ConformanceFixture::new().await;
    let client = &shop.client;
    let bearer = format!("Bearer {}", client.write_key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let call = |arguments: &[u8]| {
        let start = br#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "create_monitor", "arguments": "#;
        [&start[..], arguments, b"}}"].concat()
    };
    for path in ["/api/v1/mcp", "/p/shop/mcp"] {
        for (name, body) in bodies() {
            for (name, body) in [(name, body.clone()), (name, call(&body))] {
                let response = client.send_bytes("POST", path, &headers, body).await;
                client.world.clock.set(shop.time_from_now(10_000));
                let rejection = &response.body;
                let rejection = if rejection.is_array() { &rejection[0] } else { rejection };
                assert!(response.status < 500, "{path} {name} {response:?}");
                assert_eq!(rejection["jsonrpc"], "2.0", "{path} {name} {response:?}");
                assert!(rejection["error"]["code"].is_i64() || rejection["result"]["isError"] == true, "{response:?}");
                assert!(response.bytes.len() < 1000, "{path} {name}");
            }
        }
    }
}
