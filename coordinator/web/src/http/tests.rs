//! Tests of the API without sockets: not-found hints, key errors, the order of errors, rate limits and pages.

mod account;
mod acknowledgement;
mod branding;
mod chart_ranges;
mod contract_precedence;
mod credentials;
mod dashboard_account;
mod dashboard_acknowledgement;
mod dashboard_alerts;
mod dashboard_audit;
mod dashboard_company;
mod dashboard_hostile_texts;
mod dashboard_incidents;
mod dashboard_members;
mod dashboard_monitor_forms;
mod dashboard_monitor_list;
mod dashboard_monitors;
mod dashboard_passkeys;
mod dashboard_route_table;
mod dashboard_routes;
mod dashboard_screens;
mod dashboard_second_factor;
mod dashboard_secrets;
mod dashboard_set_up;
mod dashboard_sign_in;
mod dashboard_undo;
mod dashboard_windows;
mod evidence;
mod fast_path;
mod feeds;
mod field_bounds;
mod heartbeats;
mod incidents;
mod installation;
mod large_pages;
mod latency;
mod legacy;
mod monitor_bulk;
mod monitor_order;
mod monitor_tests;
mod monitors;
mod notifications;
mod openapi_conformance;
mod outage_history;
mod page_documents;
mod page_events;
mod page_lifecycle;
mod page_settings;
mod pages;
mod protected_pages;
mod round_trips;
mod secrets;
mod signed_in_browser;
mod socket;
mod subscribe;
mod subscriber_transfer;
mod well_known;

use std::sync::Arc;

use ::http::{HeaderMap, Method};
use futures_util::StreamExt;
use parallax_core::key::KeyAccess;
use parallax_service::test_world::{World, world};
use serde_json::{Value, json};

pub(super) use self::signed_in_browser::SignedInBrowser;
use super::HttpContext;
use super::dispatch::{ParsedRequest, handle};
use super::response::HttpResponse;
use super::route::RouteTable;
use super::routes::routes;
use super::server::client_ip::PeerAddress;

/// Names and values of a request's headers.
type Headers<'a> = &'a [(&'static str, &'a str)];

/// Test client that calls the handlers directly, with one key of each kind.
pub(super) struct TestClient {
    pub(super) world: World,
    pub(super) context: Arc<HttpContext>,
    table: Arc<RouteTable>,
    pub(super) write_key: String,
    pub(super) read_key: String,
    pub(super) page_key: String,
    foreign_key: String,
    revoked_key: String,
    /// Address that its requests come from.
    pub(super) peer: &'static str,
}

/// Response, with its body parsed as JSON and as text.
#[derive(Debug)]
pub(super) struct TestResponse {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
    pub(super) text: String,
    /// The raw body.
    pub(super) bytes: bytes::Bytes,
}

impl TestClient {
    pub(super) async fn new() -> Self {
        let world = world().await;
        let reveal = |key: parallax_service::secret_text::ApiKeyText| key.reveal().to_owned();
        let write = reveal(world.key(KeyAccess::Write, None).await);
        let read = reveal(world.key(KeyAccess::Read, None).await);
        let bound = reveal(world.key(KeyAccess::Write, Some(&world.blog)).await);
        let foreign_key = reveal(world.stranger_key().await);
        let revoked = reveal(world.revoked_key().await);
        let context = Arc::new(HttpContext::new(world.service.clone(), 120));
        Self {
            world,
            context,
            table: Arc::new(RouteTable::new(routes())),
            write_key: write,
            read_key: read,
            page_key: bound,
            foreign_key,
            revoked_key: revoked,
            peer: "192.0.2.1",
        }
    }

    pub(super) async fn send(&self, method: &str, path: &str, headers: Headers<'_>, body: &str) -> TestResponse {
        self.send_bytes(method, path, headers, body.as_bytes().to_vec()).await
    }

    pub(super) async fn send_bytes(
        &self,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        body: Vec<u8>,
    ) -> TestResponse {
        let response = self.reply(method, path, headers, body).await.into_response();
        TestResponse {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: serde_json::from_slice(response.body()).unwrap_or(Value::Null),
            text: String::from_utf8_lossy(response.body()).into_owned(),
            bytes: response.into_body(),
        }
    }

    /// The reply as the server gets it, with the stream that may follow its body.
    async fn reply(&self, method: &str, path: &str, headers: Headers<'_>, body: Vec<u8>) -> HttpResponse {
        let part = Ok(bytes::Bytes::from(body));
        let request = ParsedRequest {
            method: method.parse().unwrap(),
            path: path.split('?').next().unwrap_or_default().to_owned(),
            query: path.split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default(),
            headers: headers
                .iter()
                .map(|(name, value)| (name.parse::<::http::HeaderName>().unwrap(), value.parse().unwrap()))
                .collect(),
            peer: Some(PeerAddress(self.peer.parse().unwrap())),
            body: futures_util::stream::iter([part]).boxed(),
        };
        handle(Arc::clone(&self.context), Arc::clone(&self.table), request).await
    }

    pub(super) async fn call(&self, key: &str, method: &str, path: &str, body: Value) -> TestResponse {
        let (bearer, text) = (format!("Bearer {key}"), body.to_string());
        let text = if body.is_null() { "" } else { &text };
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        self.send(method, path, &headers, text).await
    }

    pub(super) async fn get(&self, path: &str) -> TestResponse {
        self.call(&self.write_key, "GET", path, Value::Null).await
    }

    pub(super) fn shop_path(&self, rest: &str) -> String {
        format!("/api/v1/pages/{}{rest}", self.world.shop.id)
    }

    pub(super) async fn create_monitor(&self, body: Value) -> Value {
        let created = self.call(&self.write_key, "POST", &self.shop_path("/monitors"), body).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.body["monitor"].clone()
    }
}

fn code(response: &TestResponse) -> &str {
    response.body["error"]["code"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn missing_and_foreign_resources_get_the_same_response() {
    let client = TestClient::new().await;
    let absent = client.get("/api/v1/pages/pg_0000000000000000000000000a").await;
    let foreign_page = client.get(&format!("/api/v1/pages/{}", client.world.foreign.id)).await;
    assert_eq!((absent.status, &absent.body), (foreign_page.status, &foreign_page.body));
}

#[tokio::test]
async fn an_unknown_route_is_reported() {
    let client = TestClient::new().await;
    const NOTHING: &str = "no route matches this path";
    const SLASH: &str = "no route matches this path: it has an extra slash, try /api/v1/me";
    const BELOW: &str = "no route matches this path: API paths begin with /api/v1, try /api/v1/me";
    const HIDDEN: &str = "not found, or not public: programs read a protected page at its `privateFeedUrl`";
    for (path, message) in [
        ("/api/v1/nothing", NOTHING),
        ("/nothing", NOTHING),
        ("/p/none/nothing", NOTHING),
        ("/p/none", HIDDEN),
        ("/p/none/status.json", HIDDEN),
        ("/api/v1/me/", SLASH),
        ("/api/v1//me", SLASH),
        ("//api/v1/me", SLASH),
        ("/me", BELOW),
        ("/v1/me", BELOW),
        ("/api/me/", BELOW),
        ("/api/v1/api/v1/me", "no route matches this path: it contains /api/v1 twice, try /api/v1/me"),
        ("/API/V1/me", "no route matches this path: paths are lowercase"),
    ] {
        let response = client.get(path).await;
        let error = (response.status, code(&response), &response.body["error"]["message"]);
        assert_eq!(error, (404, "not_found", &json!(message)), "{path}");
    }
}

#[tokio::test]
async fn an_invalid_id_is_explained_without_revealing_other_pages() {
    let client = TestClient::new().await;
    let shop = client.world.shop.id.to_string();
    let expected = "the id of a page begins with pg_; GET /api/v1/pages lists them";
    for (path, message) in [
        ("/pages/shop".to_owned(), format!("shop is the slug of a page: its id is {shop}")),
        // The page of another account, and an unknown slug.
        ("/pages/other".to_owned(), expected.to_owned()),
        ("/pages/nobody/monitors".to_owned(), expected.to_owned()),
        (
            "/pages/mon_0000000000000000000000000a".to_owned(),
            "mon_… is the id of a monitor, but the id of a page is expected".to_owned(),
        ),
        (
            format!("/pages/{shop}/monitors/pg_0"),
            "pg_… is the id of a page, but the id of a monitor is expected".to_owned(),
        ),
        (
            format!("/pages/{shop}/incidents/inc_12"),
            "this id is cut off or mistyped: inc_ and 26 characters are expected; GET \
             /api/v1/pages/{pageId}/incidents lists them"
                .to_owned(),
        ),
        ("/pages/pg_0000000000000000000000000a".to_owned(), "not found, or not accessible with this key".to_owned()),
    ] {
        let response = client.get(&format!("/api/v1{path}")).await;
        let error = (response.status, code(&response), &response.body["error"]["message"]);
        assert_eq!(error, (404, "not_found", &json!(message)), "{path}");
    }
    let bound = client.call(&client.page_key, "GET", "/api/v1/pages/shop", Value::Null).await;
    assert_eq!(bound.body["error"]["message"], expected, "a key of another page gets no hint");
}

#[tokio::test]
async fn a_refused_key_gets_the_reason() {
    let client = TestClient::new().await;
    let cut = client.write_key.get(..40).unwrap().to_owned();
    for (headers, message) in [
        (vec![], "no API key: send the header `Authorization: Bearer plx_…`".to_owned()),
        (
            vec![("authorization", client.write_key.clone())],
            "Bearer is missing before the key: `Authorization: Bearer plx_…`".to_owned(),
        ),
        (
            vec![("authorization", format!("Bearer {cut}"))],
            "the key is cut off: it has 53 characters, and 40 were sent".to_owned(),
        ),
        (
            vec![("authorization", format!("Bearer {}", client.revoked_key))],
            "this key is unknown: it was revoked, or belongs to another installation".to_owned(),
        ),
    ] {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for path in ["/api/v1/me", "/api/v1/nothing", "/api/v1/mcp"] {
            let method = if path.ends_with("mcp") { "POST" } else { "GET" };
            let rejection = client.send(method, path, &headers, "").await;
            let error = (rejection.status, code(&rejection), &rejection.body["error"]["message"]);
            assert_eq!(error, (401, "unauthenticated", &json!(message)), "{path}");
            assert_eq!(rejection.headers["www-authenticate"], "Bearer");
        }
    }
}

#[tokio::test]
async fn errors_have_a_fixed_precedence() {
    let client = TestClient::new().await;
    let bearer = format!("Bearer {}", client.write_key);
    let json_headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let foreign_path = format!("/api/v1/pages/{}/monitors", client.world.foreign.id);
    assert_eq!(client.send("POST", &foreign_path, &json_headers, "{").await.status, 404);
    for (headers, body) in [
        (&json_headers[..], "{"),
        (&json_headers[..], "[]"),
        (&json_headers[..], ""),
        (&json_headers[..], r#"{"url": "a.example", "url": "b.example"}"#),
        (&json_headers[..1], r#"{"url": "a.example"}"#),
    ] {
        let rejection = client.send("POST", &client.shop_path("/monitors"), headers, body).await;
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"), "{body}");
    }
    let large = format!("{{\"name\": \"{}\"}}", "a".repeat(256 * 1024));
    let rejection = client.send("POST", &client.shop_path("/monitors"), &json_headers, &large).await;
    assert_eq!(rejection.body["error"]["message"], "the body must be at most 256 KiB");
}

#[tokio::test]
async fn a_known_route_with_another_method_says_what_is_allowed() {
    let client = TestClient::new().await;
    for (path, allowed) in [
        ("/api/v1/me", "GET, HEAD"),
        (&client.shop_path("/monitors"), "GET, HEAD, POST"),
        ("/p/shop/subscribe", "GET, HEAD, POST"),
        ("/p/shop/history", "GET, HEAD"),
    ] {
        let rejection = client.call(&client.write_key, "OPTIONS", path, Value::Null).await;
        assert_eq!(rejection.body["error"]["message"], format!("this route accepts {allowed}"), "{path}");
        assert_eq!((rejection.status, rejection.headers["allow"].to_str().unwrap()), (405, allowed));
    }
}

#[tokio::test]
async fn the_121st_request_of_a_minute_is_refused_with_the_seconds_left() {
    let client = TestClient::new().await;
    for remaining in (0..120).rev() {
        // Failed requests count too.
        let path = if remaining % 2 == 0 { "/api/v1/me" } else { "/api/v1/nothing" };
        let response = client.get(path).await;
        assert_ne!(response.status, 429);
        assert_eq!(response.headers["ratelimit-limit"], "120");
        assert_eq!(response.headers["ratelimit-remaining"], remaining.to_string());
    }
    client.world.clock.set(client.world.service.now() + 20_000);
    let rejection = client.get("/api/v1/me").await;
    assert_eq!((rejection.status, code(&rejection)), (429, "rate_limited"));
    assert_eq!(
        (&rejection.headers["retry-after"], &rejection.headers["ratelimit-reset"]),
        (&"40".parse().unwrap(), &"40".parse().unwrap())
    );
    // Another key has its own limit, and the next minute starts a new window.
    assert_eq!(client.call(&client.read_key, "GET", "/api/v1/me", Value::Null).await.status, 200);
    client.world.clock.set(client.world.service.now() + 40_000);
    assert_eq!(client.get("/api/v1/me").await.status, 200);
}

#[tokio::test]
async fn guessed_keys_are_limited_per_address_but_a_valid_key_works() {
    let client = TestClient::new().await;
    for _ in 0..600 {
        assert_eq!(client.call("plx_guess", "GET", "/api/v1/me", Value::Null).await.status, 401);
    }
    let rejection = client.call("plx_guess", "GET", "/api/v1/me", Value::Null).await;
    assert_eq!((rejection.status, rejection.headers.contains_key("retry-after")), (429, true));
    assert_eq!(client.get("/api/v1/me").await.status, 200);
}

#[tokio::test]
async fn a_page_shows_every_field_and_takes_edits() {
    let client = TestClient::new().await;
    let page = client.get(&client.shop_path("")).await.body["page"].clone();
    let expected = json!({
        "id": client.world.shop.id.to_string(), "name": "Shop", "slug": "shop",
        "url": "https://shop.pages.example", "customDomain": null, "description": null, "supportUrl": null,
        "timezone": "UTC", "uptimeTarget": null, "passwordProtected": false, "private": false, "privateFeedUrl": null,
        "showDeploys": false, "showLocations": false, "latencyLocations": null, "uptimeRegions": null,
        "createdAt": "2026-11-27T12:46:00.000Z", "customDomainProblem": null, "domainVerification": null, "allowedPeople": [],
        "allowedDomains": [], "noindex": false, "theme": "auto", "accentColor": null, "logo": null,
        "favicon": null, "language": "en",
    });
    assert_eq!(page, expected);
    let edit = json!({
        "name": " Store ", "description": "All of it", "supportUrl": "mailto:a@example.com", "uptimeTarget": 99.9,
        "timezone": "Europe/Berlin", "showDeploys": true, "showLocations": true, "latencyLocations": ["asia"],
        "uptimeRegions": ["africa", "europe"], "slug": "shop", "customDomain": null,
    });
    let changed = client.call(&client.write_key, "PATCH", &client.shop_path(""), edit).await;
    let page = &changed.body["page"];
    assert_eq!((&page["name"], &page["slug"], &page["customDomain"]), (&json!("Store"), &json!("shop"), &Value::Null));
    assert_eq!((&page["uptimeTarget"], &page["timezone"]), (&json!(99.9), &json!("Europe/Berlin")));
    assert_eq!(page["uptimeRegions"], json!(["europe", "africa"]));
    assert_eq!(client.get(&client.shop_path("")).await.body["page"], *page);
    let invalid = json!({ "name": "", "uptimeTarget": "high", "timezone": null, "showDeploys": 1 });
    let rejection = client.call(&client.write_key, "PATCH", &client.shop_path(""), invalid).await;
    assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"));
    let fields: Vec<_> = rejection.body["error"]["fields"].as_array().unwrap().iter().map(|it| &it["field"]).collect();
    assert_eq!(fields, ["name", "uptimeTarget", "timezone", "showDeploys"]);
    assert_eq!(client.get(&client.shop_path("")).await.body["page"], *page, "nothing was changed");
}
