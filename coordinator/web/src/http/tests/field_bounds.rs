//! Tests of every bound of pages and monitors by its last valid and first invalid value, and of malicious bodies.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

/// Makes a text of two-byte characters, since bounds count characters.
fn text(length: usize) -> Value {
    json!("é".repeat(length))
}

fn letters(start: &str, length: usize) -> Value {
    json!(format!("{start}{}", "a".repeat(length - start.len())))
}

/// A field with valid and invalid values.
type Row = (&'static str, Vec<Value>, Vec<Value>);

async fn assert_bounds(client: &TestClient, method: &str, path: &str, base: Value, rows: Vec<Row>) {
    for (field, accepted, rejected) in rows {
        for (values, is_good) in [(accepted, true), (rejected, false)] {
            for value in values {
                let mut body = base.clone();
                body[field] = value.clone();
                let response = client.call(&client.write_key, method, path, body).await;
                let abbreviated: String = value.to_string().chars().take(60).collect();
                if is_good {
                    assert_eq!(response.status, 200, "{field} {abbreviated}: {response:?}");
                } else {
                    assert_eq!((response.status, code(&response)), (400, "bad_request"), "{field} {abbreviated}");
                    assert_eq!(response.body["error"]["fields"][0]["field"], field, "{abbreviated}");
                }
                client.world.clock.set(client.world.service.now() + 1000);
            }
        }
    }
}

#[tokio::test]
async fn a_pages_fields_keep_their_bounds() {
    let client = TestClient::new().await;
    let regions = || vec![Value::Null, json!(["asia"]), json!(["europe", "africa"])];
    let no_regions = || vec![json!(["mars"]), json!("asia"), json!([1]), json!({})];
    let rows = vec![
        ("name", vec![text(1), text(80)], vec![text(0), text(81), json!("  "), json!(5), Value::Null]),
        ("description", vec![text(0), text(200), Value::Null], vec![text(201), json!(5)]),
        (
            "supportUrl",
            vec![letters("https://", 300), json!("mailto:a@example.com"), json!("http://a"), Value::Null],
            vec![letters("https://", 301), json!("ftp://a"), json!("javascript:a"), json!(1)],
        ),
        (
            "uptimeTarget",
            vec![json!(90), json!(99.999), Value::Null],
            vec![json!(89.999), json!(99.9991), json!("99"), json!(100)],
        ),
        ("timezone", vec![json!("Europe/Berlin"), json!("UTC")], vec![json!("Mars"), json!(""), Value::Null]),
        ("showDeploys", vec![json!(true), json!(false)], vec![json!("true"), json!(1), Value::Null]),
        ("showLocations", vec![json!(true)], vec![json!(0), Value::Null]),
        ("latencyLocations", regions(), no_regions()),
        ("uptimeRegions", regions(), no_regions()),
    ];
    assert_bounds(&client, "PATCH", &client.shop_path(""), json!({}), rows).await;
}

#[tokio::test]
async fn a_destinations_fields_keep_their_bounds() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let id = &monitor["id"];
    let created = async |body: Value| {
        let created = client.call(&client.write_key, "POST", &client.shop_path("/destinations"), body).await;
        assert_eq!(created.status, 201, "{created:?}");
        client.shop_path(&format!("/destinations/{}", created.body["destination"]["id"].as_str().unwrap()))
    };
    let hook = created(json!({ "type": "webhook", "name": "x", "url": "https://a.example/x" })).await;
    let start = "https://a.example/";
    let rows: Vec<Row> = vec![
        (
            "name",
            vec![text(1), text(80)],
            vec![text(0), text(81), text(4000), json!("a\r\nBcc: b@c.example"), json!("a\0b"), json!(5)],
        ),
        ("type", vec![json!("webhook")], vec![json!("slack"), json!("none"), json!(1), Value::Null]),
        (
            "url",
            vec![letters(start, 2000), json!("http://b.example:8080/")],
            vec![
                letters(start, 2001),
                json!("ftp://a.example"),
                json!("https://u:p@a.example"),
                json!("http://127.0.0.1/"),
                json!("http://[::1]/"),
                json!("http://[::ffff:10.0.0.1]/"),
                json!("http://169.254.169.254/latest/meta-data"),
                json!("http://0177.0.0.1/"),
                json!("https://hooks.slack.com/services/T/B/x"),
                json!("https://a.example/***"),
                Value::Null,
            ],
        ),
        (
            "events",
            vec![json!(["went-down"]), json!(["recovered", "recovered"]), Value::Null],
            vec![json!([]), json!(["down"]), json!("went-down"), json!([1]), json!(vec!["went-down"; 65])],
        ),
        (
            "monitorIds",
            vec![json!([id]), Value::Null],
            vec![json!([]), json!(["mon_0000000000000000000000000a"]), json!(["x"]), json!({})],
        ),
        ("enabled", vec![json!(true), json!(false), Value::Null], vec![json!("yes"), json!(1)]),
    ];
    assert_bounds(&client, "PATCH", &hook, json!({}), rows).await;
    let mail = created(json!({ "type": "email", "name": "x", "to": "a@example.com" })).await;
    let long = |length: usize| json!(format!("{}@example.com", "a".repeat(length - 12)));
    let boxes: Row = (
        "to",
        vec![long(254), json!("a@b.example")],
        vec![long(255), json!("a"), json!("a@b\nBcc: c@d.example"), json!("a***@example.com"), Value::Null],
    );
    assert_bounds(&client, "PATCH", &mail, json!({}), vec![boxes]).await;
    let settings = client.shop_path("/alerts");
    let rows: Vec<Row> = vec![
        (
            "repeatMinutes",
            vec![json!(5), json!(1440), Value::Null],
            vec![json!(4), json!(1441), json!(5.5), json!("5")],
        ),
        ("automaticIncidents", vec![json!(true), json!(false), Value::Null], vec![json!(0), json!("no")]),
    ];
    assert_bounds(&client, "PATCH", &settings, json!({}), rows).await;
}

#[tokio::test]
async fn a_monitors_fields_keep_their_bounds() {
    let client = TestClient::new().await;
    let path = |created: &Value| client.shop_path(&format!("/monitors/{}", created["id"].as_str().unwrap()));
    let http = client.create_monitor(json!({ "url": "a.example" })).await;
    let rows: Vec<Row> = vec![
        ("name", vec![text(1), text(80)], vec![text(0), text(81), json!(5), Value::Null]),
        ("groupName", vec![text(60), Value::Null], vec![text(61), json!([])]),
        ("slowThresholdMs", vec![json!(1), json!(9999), Value::Null], vec![json!(0), json!(10_000), json!(1.5)]),
        (
            "slowThresholds",
            vec![json!({ "asia": 1 }), json!({ "asia": 9999 }), Value::Null],
            vec![json!({ "asia": 0 }), json!({ "asia": 10_000 }), json!({ "mars": 5 }), json!([])],
        ),
        ("latencyLocations", vec![json!(["asia"]), Value::Null], vec![json!(["mars"]), json!("asia")]),
        ("pinnedRegion", vec![json!("asia"), json!(""), Value::Null], vec![json!("mars"), json!(1)]),
        ("paused", vec![json!(true), json!(false), Value::Null], vec![json!("yes"), json!(1)]),
        ("method", vec![json!("PATCH"), Value::Null], vec![json!("TRACE"), json!("get"), json!(1)]),
        ("expectStatus", vec![json!(100), json!(599), Value::Null], vec![json!(99), json!(600), json!("200")]),
        ("keyword", vec![text(200), Value::Null], vec![text(201), json!(1)]),
        ("keywordMode", vec![json!("absent"), Value::Null], vec![json!("never"), json!(true)]),
        ("body", vec![text(10_000), Value::Null], vec![text(10_001), json!({})]),
        (
            "headers",
            vec![json!({ "a": "x".repeat(3999) }), json!({}), Value::Null],
            vec![json!({ "a": "x".repeat(4000) }), json!({ "a b": "x" }), json!({ "a": "\r\n" }), json!([])],
        ),
        ("type", vec![json!("http")], vec![json!("tcp"), json!("none"), json!(1)]),
        ("url", vec![json!("http://b.example")], vec![json!("ftp://a.example"), json!(""), json!(1)]),
    ];
    assert_bounds(&client, "PATCH", &path(&http), json!({}), rows).await;
    let tcp = client.create_monitor(json!({ "type": "tcp", "host": "a.example", "port": 1 })).await;
    let ports: Row = ("port", vec![json!(1), json!(65_535)], vec![json!(0), json!(65_536), json!("1")]);
    assert_bounds(&client, "PATCH", &path(&tcp), json!({}), vec![ports]).await;
    let dns = client.create_monitor(json!({ "type": "dns", "host": "a.example" })).await;
    let rows: Vec<Row> = vec![
        ("dnsExpect", vec![text(500), Value::Null], vec![text(501), json!(1)]),
        ("dnsType", vec![json!("NS"), Value::Null], vec![json!("SRV"), json!(1)]),
    ];
    assert_bounds(&client, "PATCH", &path(&dns), json!({}), rows).await;
    let heartbeat = client
        .create_monitor(json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 1, "graceMinutes": 0 }))
        .await;
    let rows: Vec<Row> = vec![
        ("periodMinutes", vec![json!(1), json!(44_640)], vec![json!(0), json!(44_641), json!(1.5)]),
        ("graceMinutes", vec![json!(0), json!(10_080)], vec![json!(-1), json!(10_081), json!("1")]),
    ];
    assert_bounds(&client, "PATCH", &path(&heartbeat), json!({}), rows).await;
}

#[tokio::test]
async fn a_slug_keeps_its_bounds_and_is_unique() {
    let client = TestClient::new().await;
    let make = async |slug: Value| {
        client.world.clock.set(client.world.service.now() + 1000);
        client.call(&client.write_key, "POST", "/api/v1/pages", json!({ "name": "New", "slug": slug })).await
    };
    for accepted in [json!("a"), letters("b", 63), json!("a-1")] {
        assert_eq!(make(accepted).await.status, 201);
    }
    for rejected in [
        json!(""),
        letters("b", 64),
        json!("-a"),
        json!("a-"),
        json!("A"),
        json!("é"),
        json!("a.b"),
        json!("www"),
        json!("api"),
        json!("xn--a"),
        json!("shop"),
        json!(5),
        Value::Null,
    ] {
        let rejection = make(rejected.clone()).await;
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"), "{rejected}");
        assert_eq!(rejection.body["error"]["fields"][0]["field"], "slug", "{rejected}");
    }
}

#[tokio::test]
async fn a_hostile_body_is_refused_fast_with_a_regular_error() {
    // The limit is 50 ms. Debug builds on a busy machine get 40 times that, which an attack would still exceed.
    const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2000 } else { 50 });
    let client = TestClient::new().await;
    let deep = |open: &str, close: &str| (open.repeat(100_000) + &close.repeat(100_000)).into_bytes();
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("deep lists", deep("[", "]")),
        ("deep objects", deep("{\"a\":", "}")),
        ("deep and unclosed", "[".repeat(200_000).into_bytes()),
        ("a duplicate name", br#"{"name": "a", "name": "b"}"#.to_vec()),
        ("a lone surrogate", br#"{"name": "\ud800"}"#.to_vec()),
        ("NUL", br#"{"name": "a\u0000b"}"#.to_vec()),
        ("a raw NUL", b"{\"name\": \"a\0b\"}".to_vec()),
        ("a number out of range", br#"{"uptimeTarget": 1e400}"#.to_vec()),
        ("no UTF-8", b"{\"name\": \"\xff\xfe\"}".to_vec()),
        ("ten megabytes", vec![b' '; 10 << 20]),
        (
            "many names",
            format!("{{{}}}", (0..20_000).map(|n| format!("\"{n}\":1")).collect::<Vec<_>>().join(",")).into_bytes(),
        ),
    ];
    let bearer = format!("Bearer {}", client.write_key);
    for (kind, bytes) in bodies {
        let mut fastest = Duration::MAX;
        for _ in 0..5 {
            let chunks: Vec<_> =
                bytes.chunks(64 * 1024).map(|chunk| Ok(bytes::Bytes::copy_from_slice(chunk))).collect();
            let request = ParsedRequest {
                method: Method::PATCH,
                path: client.shop_path(""),
                query: String::new(),
                headers: [("authorization", bearer.as_str()), ("content-type", "application/json")]
                    .iter()
                    .map(|(name, value)| (name.parse::<::http::HeaderName>().unwrap(), value.parse().unwrap()))
                    .collect(),
                peer: None,
                body: futures_util::stream::iter(chunks).boxed(),
            };
            let started = Instant::now();
            let response =
                handle(Arc::clone(&client.context), Arc::clone(&client.table), request).await.into_response();
            fastest = fastest.min(started.elapsed());
            if kind == "many names" {
                assert_eq!(response.status(), 200, "{kind}");
                continue;
            }
            assert_eq!(response.status(), 400, "{kind}");
            let body: Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(body["error"]["code"], "bad_request", "{kind}");
            assert!(body["error"]["message"].is_string() && body["error"]["fields"].is_array(), "{kind}");
        }
        assert!(fastest < LIMIT, "{kind}: {fastest:?}");
    }
}
