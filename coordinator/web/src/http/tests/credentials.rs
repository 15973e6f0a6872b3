//! Tests of every route with every credential: status, error code and rate limit headers.

use serde_json::{Value, json};

use super::*;
use crate::http::dashboard;
use crate::http::route::HttpRoute;

#[tokio::test]
async fn every_route_answers_each_credential_as_it_must() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "example.com" })).await;
    let id = monitor["id"].as_str().unwrap();
    let unknown_id = "mon_0000000000000000000000000a";
    let foreign_page = client.world.foreign.id;
    let edit = json!({ "name": "New" });
    let monitor_path = |rest: &str| client.shop_path(&format!("/monitors/{id}/{rest}"));
    let unknown = |rest: &str| client.shop_path(&format!("/monitors/{unknown_id}/{rest}"));
    let created = async |kind: &str, body: Value| {
        let path = client.shop_path(&format!("/{kind}s"));
        let created = client.call(&client.write_key, "POST", &path, body).await.body;
        format!("{path}/{}", created[kind]["id"].as_str().unwrap())
    };
    let incident = created("incident", json!({ "title": "x" })).await;
    let deploy = created("deploy", json!({ "version": "x" })).await;
    client.world.receive();
    let mail = json!({ "type": "email", "name": "Ops", "to": "a@example.com" });
    let hook = json!({ "type": "webhook", "name": "Team", "url": "https://hooks.example.com/x" });
    let destination = created("destination", hook).await;
    let destination = |rest: &str| format!("{destination}{rest}");
    let tested = client.call(&client.write_key, "POST", &destination("/test"), Value::Null).await.body;
    let delivery = client.shop_path(&format!("/deliveries/{}", tested["delivery"]["id"].as_str().unwrap()));
    let reader = json!({ "email": "reader@example.com" });
    let subscriber = created("subscriber", reader).await;
    // Method, path, body, then the status for: no valid key, a read key, a write key, a key of another page, and a key
    // of another account.
    let table = [
        ("GET", "/api/v1/me".to_owned(), Value::Null, [401, 200, 200, 200, 200]),
        ("GET", "/api/v1/pages".to_owned(), Value::Null, [401, 200, 200, 200, 200]),
        ("POST", "/api/v1/pages".to_owned(), json!({ "name": "New" }), [401, 403, 201, 403, 201]),
        ("POST", "/api/v1/mcp".to_owned(), json!({}), [401, 400, 400, 400, 400]),
        ("GET", "/api/v1/mcp".to_owned(), Value::Null, [401, 405, 405, 405, 405]),
        ("DELETE", "/api/v1/mcp".to_owned(), Value::Null, [401, 405, 405, 405, 405]),
        ("GET", "/p/shop/history".to_owned(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", "/p/shop/history/2026-11".to_owned(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", "/p/shop/history/2026-12".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("GET", format!("/p/shop/incidents/{}", incident.rsplit('/').next().unwrap()), Value::Null, [200; 5]),
        ("GET", format!("/p/journal/incidents/{}", incident.rsplit('/').next().unwrap()), Value::Null, [404; 5]),
        ("GET", format!("/p/journal/monitors/{id}"), Value::Null, [404; 5]),
        ("GET", format!("/p/shop/monitors/{unknown_id}"), Value::Null, [404; 5]),
        ("GET", "/p/shop/monitors/nonsense".to_owned(), Value::Null, [404; 5]),
        ("GET", format!("/p/shop/logo/{}", "0".repeat(32)), Value::Null, [404; 5]),
        ("GET", format!("/p/shop/favicon/{}", "0".repeat(32)), Value::Null, [404; 5]),
        ("GET", "/p/shop/accent/1a7f4b".to_owned(), Value::Null, [404; 5]),
        ("GET", "/p/shop/events".to_owned(), Value::Null, [200; 5]),
        ("GET", format!("/assets/{}", crate::views::assets::style()), Value::Null, [200; 5]),
        ("GET", "/assets/site.css".to_owned(), Value::Null, [404; 5]),
        ("GET", "/p/shop/api/v2/summary.json".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/api/v2/status.json".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/api/v2/components.json".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/api/v2/incidents.json".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/api/v2/incidents/unresolved.json".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/api/v2/scheduled-maintenances.json".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/api/v2/scheduled-maintenances/upcoming.json".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/api/v2/scheduled-maintenances/active.json".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/feed.atom".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/history.atom".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/feed.rss".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/history.rss".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/feed/atom".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/feed/rss".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/feed".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/robots.txt".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/sitemap.xml".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/favicon.ico".to_owned(), Value::Null, [302; 5]),
        ("GET", "/p/shop/.well-known/api-catalog".to_owned(), Value::Null, [200; 5]),
        ("GET", "/robots.txt".to_owned(), Value::Null, [200; 5]),
        ("GET", "/favicon.ico".to_owned(), Value::Null, [302; 5]),
        ("GET", "/.well-known/api-catalog".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/maintenance.ics".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/badge.svg".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/badge.json".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/embed".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/badges".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/widget.js".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/index.md".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/history.md".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/llms.txt".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop.md".to_owned(), Value::Null, [200; 5]),
        ("GET", "/p/shop/history/2026-11.md".to_owned(), Value::Null, [200; 5]),
        ("GET", format!("/p/shop/incidents/{}.md", incident.rsplit('/').next().unwrap()), Value::Null, [200; 5]),
        ("GET", format!("/p/shop/monitors/{id}.md"), Value::Null, [200; 5]),
        ("GET", "/p/shop/og-0123456789ab.png".to_owned(), Value::Null, [200; 5]),
        ("GET", format!("/p/shop/monitors/{id}/badge.svg"), Value::Null, [200; 5]),
        ("GET", format!("/p/shop/monitors/{id}/badge.json"), Value::Null, [200; 5]),
        ("POST", "/p/shop/mcp".to_owned(), json!({}), [400, 400, 400, 400, 400]),
        ("OPTIONS", "/p/shop/mcp".to_owned(), Value::Null, [204; 5]),
        ("OPTIONS", "/p/nothing/mcp".to_owned(), Value::Null, [404; 5]),
        ("POST", "/p/nothing/mcp".to_owned(), json!({}), [404, 404, 404, 404, 404]),
        ("GET", "/api/v1/openapi.json".to_owned(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", "/api/v1/docs".to_owned(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", "/api/v1/regions".to_owned(), Value::Null, [401, 200, 200, 200, 200]),
        ("GET", client.shop_path(""), Value::Null, [401, 200, 200, 404, 404]),
        ("HEAD", client.shop_path(""), Value::Null, [401, 200, 200, 404, 404]),
        ("PATCH", client.shop_path(""), edit.clone(), [401, 403, 200, 404, 404]),
        ("POST", client.shop_path("/domain/check"), Value::Null, [401, 403, 400, 404, 404]),
        ("GET", client.shop_path("/status"), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", client.shop_path("/monitors"), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", client.shop_path("/checkpoints"), Value::Null, [401, 200, 200, 404, 404]),
        ("PATCH", client.shop_path("/monitors/order"), json!({ "monitorIds": [id] }), [401, 403, 200, 404, 404]),
        ("POST", client.shop_path("/monitors"), json!({ "url": "a.example" }), [401, 403, 201, 404, 404]),
        ("GET", client.shop_path(&format!("/monitors/{id}")), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", client.shop_path(&format!("/checkpoints/{id}")), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", client.shop_path(&format!("/monitors/{unknown_id}")), Value::Null, [401, 404, 404, 404, 404]),
        ("GET", client.shop_path("/monitors/%2e%2e"), Value::Null, [401, 404, 404, 404, 404]),
        ("PATCH", client.shop_path(&format!("/monitors/{id}")), edit.clone(), [401, 403, 200, 404, 404]),
        ("PATCH", client.shop_path(&format!("/monitors/{unknown_id}")), edit.clone(), [401, 403, 404, 404, 404]),
        (
            "POST",
            client.shop_path("/monitors/bulk"),
            json!({ "monitorIds": ["x"], "set": {} }),
            [401, 403, 200, 404, 404],
        ),
        ("POST", client.shop_path("/monitors/test"), json!({ "url": "a.example" }), [401, 403, 200, 404, 404]),
        ("POST", client.shop_path("/checkpoints/test"), json!({ "url": "a.example" }), [401, 403, 200, 404, 404]),
        ("GET", client.shop_path("/monitors/test"), Value::Null, [401, 405, 405, 405, 405]),
        ("POST", monitor_path("check"), Value::Null, [401, 403, 200, 404, 404]),
        ("POST", unknown("check"), Value::Null, [401, 403, 404, 404, 404]),
        ("GET", monitor_path("check"), Value::Null, [401, 405, 405, 405, 405]),
        ("POST", monitor_path("acknowledge"), Value::Null, [401, 403, 400, 404, 404]),
        ("POST", unknown("acknowledge"), Value::Null, [401, 403, 404, 404, 404]),
        ("DELETE", monitor_path("acknowledge"), Value::Null, [401, 403, 204, 404, 404]),
        ("DELETE", unknown("acknowledge"), Value::Null, [401, 403, 404, 404, 404]),
        ("GET", monitor_path("checks"), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", unknown("checks?limit=0"), Value::Null, [401, 404, 404, 404, 404]),
        ("GET", client.shop_path("/events"), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", monitor_path("events"), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", unknown("events"), Value::Null, [401, 404, 404, 404, 404]),
        ("GET", format!("/p/shop/monitors/{id}"), Value::Null, [200; 5]),
        ("GET", monitor_path("latency"), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", unknown("latency?range=x"), Value::Null, [401, 404, 404, 404, 404]),
        ("GET", monitor_path("uptime"), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", unknown("uptime"), Value::Null, [401, 404, 404, 404, 404]),
        ("DELETE", client.shop_path(&format!("/monitors/{unknown_id}")), Value::Null, [401, 403, 404, 404, 404]),
        ("DELETE", client.shop_path(&format!("/monitors/{id}")), Value::Null, [401, 403, 204, 404, 404]),
        ("GET", client.shop_path(&format!("/monitors/{unknown_id}/pings")), Value::Null, [401, 404, 404, 404, 404]),
        ("GET", client.shop_path("/incidents"), Value::Null, [401, 200, 200, 404, 404]),
        ("POST", client.shop_path("/incidents"), json!({ "title": "x" }), [401, 403, 201, 404, 404]),
        ("GET", incident.clone(), Value::Null, [401, 200, 200, 404, 404]),
        ("PATCH", incident.clone(), json!({ "title": "y" }), [401, 403, 200, 404, 404]),
        ("POST", format!("{incident}/updates"), json!({ "message": "x" }), [401, 403, 201, 404, 404]),
        ("DELETE", incident.clone(), Value::Null, [401, 403, 204, 404, 404]),
        ("GET", client.shop_path("/deploys"), Value::Null, [401, 200, 200, 404, 404]),
        ("POST", client.shop_path("/deploys"), json!({ "version": "x" }), [401, 403, 201, 404, 404]),
        ("DELETE", deploy, Value::Null, [401, 403, 204, 404, 404]),
        ("GET", client.shop_path("/destinations"), Value::Null, [401, 200, 200, 404, 404]),
        ("POST", client.shop_path("/destinations"), mail.clone(), [401, 403, 201, 404, 404]),
        ("GET", destination(""), Value::Null, [401, 200, 200, 404, 404]),
        ("PATCH", destination(""), edit.clone(), [401, 403, 200, 404, 404]),
        ("POST", destination("/test"), Value::Null, [401, 403, 200, 404, 404]),
        ("POST", destination("/rotate-secret"), Value::Null, [401, 403, 200, 404, 404]),
        ("POST", destination("/activate-secret"), Value::Null, [401, 403, 200, 404, 404]),
        ("GET", client.shop_path("/deliveries"), Value::Null, [401, 200, 200, 404, 404]),
        ("GET", delivery.clone(), Value::Null, [401, 200, 200, 404, 404]),
        ("POST", format!("{delivery}/redeliver"), Value::Null, [401, 403, 200, 404, 404]),
        ("DELETE", destination(""), Value::Null, [401, 403, 204, 404, 404]),
        ("GET", client.shop_path("/subscribers"), Value::Null, [401, 200, 200, 404, 404]),
        ("POST", client.shop_path("/subscribers"), json!({ "email": "b@example.com" }), [401, 403, 201, 404, 404]),
        ("POST", client.shop_path("/subscribers/import"), json!({ "csv": "c@example.com" }), [401, 403, 200, 404, 404]),
        ("GET", client.shop_path("/subscribers.csv"), Value::Null, [401, 200, 200, 404, 404]),
        ("DELETE", subscriber, Value::Null, [401, 403, 204, 404, 404]),
        ("PATCH", client.shop_path("/address"), json!({ "slug": "shop" }), [401, 403, 200, 404, 404]),
        ("GET", client.shop_path("/alerts"), Value::Null, [401, 200, 200, 404, 404]),
        ("PATCH", client.shop_path("/alerts"), json!({ "repeatMinutes": 5 }), [401, 403, 200, 404, 404]),
        ("GET", "/ping/none".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("POST", "/ping/none".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("GET", "/ping/none/start".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("POST", "/ping/none/7".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("GET", format!("/api/v1/pages/{foreign_page}"), Value::Null, [401, 404, 404, 404, 404]),
        ("PATCH", format!("/api/v1/pages/{foreign_page}"), json!({ "name": 5 }), [401, 403, 404, 404, 404]),
        ("DELETE", format!("/api/v1/pages/{foreign_page}"), Value::Null, [401, 403, 404, 403, 404]),
        ("GET", format!("/api/v1/pages/{foreign_page}/monitors"), Value::Null, [401, 404, 404, 404, 404]),
        ("GET", format!("/api/v1/pages/{foreign_page}/monitors/{id}"), Value::Null, [401, 404, 404, 404, 404]),
        (
            "GET",
            format!("/api/v1/pages/{}/monitors/{id}", client.world.blog.id),
            Value::Null,
            [401, 404, 404, 404, 404],
        ),
        ("GET", "/api/v1/nothing".to_owned(), Value::Null, [401, 404, 404, 404, 404]),
        ("GET", "/api/v1".to_owned(), Value::Null, [401, 404, 404, 404, 404]),
        ("GET", "/api/v1/me/".to_owned(), Value::Null, [401, 404, 404, 404, 404]),
        ("POST", "/api/v1/me".to_owned(), Value::Null, [401, 405, 405, 405, 405]),
        ("PUT", client.shop_path("/checkpoints"), Value::Null, [401, 405, 405, 405, 405]),
        ("GET", "/evidence/none".to_owned(), Value::Null, [404; 5]),
        ("GET", "/nothing".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("GET", "/".to_owned(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", "/p/shop".to_owned(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", "/p/shop/status.json".to_owned(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", "/p/shop/subscribe".to_owned(), Value::Null, [200, 200, 200, 200, 200]),
        ("POST", "/p/none/subscribe".to_owned(), json!({}), [404, 404, 404, 404, 404]),
        ("GET", "/p/none/confirm".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("POST", "/p/none/confirm".to_owned(), json!({}), [404, 404, 404, 404, 404]),
        ("GET", "/p/none/stop-alerts".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("POST", "/p/none/stop-alerts".to_owned(), json!({}), [404, 404, 404, 404, 404]),
        ("GET", "/p/none/confirm-alerts".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("POST", "/p/none/confirm-alerts".to_owned(), json!({}), [404, 404, 404, 404, 404]),
        ("GET", "/p/shop/unsubscribe".to_owned(), Value::Null, [200, 200, 200, 200, 200]),
        ("POST", "/p/none/unsubscribe".to_owned(), json!({}), [404, 404, 404, 404, 404]),
        ("GET", "/p/shop/password".to_owned(), Value::Null, [303; 5]),
        ("POST", "/p/none/password".to_owned(), json!({}), [400; 5]),
        ("GET", "/p/shop/sign-in".to_owned(), Value::Null, [303; 5]),
        ("POST", "/p/none/sign-in".to_owned(), json!({}), [400; 5]),
        ("GET", "/p/none/sign-in/link".to_owned(), Value::Null, [404; 5]),
        ("POST", "/p/none/sign-in/link".to_owned(), json!({}), [400; 5]),
        ("POST", "/p/none/sign-out".to_owned(), Value::Null, [404; 5]),
        ("GET", "/p/none".to_owned(), Value::Null, [404, 404, 404, 404, 404]),
        ("DELETE", client.shop_path(""), Value::Null, [401, 403, 204, 403, 404]),
    ];
    // Those of the dashboard take no key: see below.
    let is_of_dashboard = |path: &str| dashboard::rows().iter().any(|(pattern, _)| *pattern == path);
    let mut unseen: Vec<(&str, Method)> = routes()
        .into_iter()
        .filter(|(path, _)| !is_of_dashboard(path))
        .flat_map(|(path, it)| it.into_iter().map(move |(method, _)| (path, method)))
        .collect();
    let count = table.len();
    for (row, (method, path, body, expected)) in table.into_iter().enumerate() {
        unseen.retain(|(pattern, its)| its.as_str() != method || !is_of(pattern, &path));
        let keys = [
            Some("plx_wrong"),
            Some(""),
            None,
            Some(client.revoked_key.as_str()),
            Some(client.read_key.as_str()),
            Some(client.page_key.as_str()),
            Some(client.foreign_key.as_str()),
            Some(client.write_key.as_str()),
        ];
        for (index, (key, at)) in keys.into_iter().zip([0, 0, 0, 0, 1, 3, 4, 2]).enumerate() {
            // The foreign page belongs to the account of this key.
            if key == Some(&client.foreign_key) && path.contains(&foreign_page.to_string()) {
                continue;
            }
            let mut body = body.clone();
            if path == "/api/v1/pages" && method == "POST" {
                body["slug"] = json!(format!("new-{index}"));
            }
            let response = match key {
                Some(key) => client.call(key, method, &path, body).await,
                None => client.send(method, &path, &[], "").await,
            };
            assert_eq!(response.status, expected[at], "{method} {path} {at}: {response:?}");
            let expected = match response.status {
                401 => "unauthenticated",
                403 if key == Some(&client.page_key) => "one_page",
                403 => "read_only",
                404 => "not_found",
                405 => "method_not_allowed",
                400 if path.starts_with("/p/none/") || path.ends_with("/domain/check") => "bad_request",
                400 if path.ends_with("/acknowledge") => "bad_request",
                _ => "",
            };
            assert_eq!(code(&response), expected, "{method} {path}");
            if path.starts_with("/api/") && !matches!(path.as_str(), "/api/v1/openapi.json" | "/api/v1/docs") {
                for name in ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"] {
                    assert!(response.headers.contains_key(name), "{name}: {method} {path}");
                }
            }
        }
        // Move on the clock, so that no row hits the rate limit.
        let later = client.world.service.now() + 1000 * i64::try_from(row + count).unwrap_or(0);
        client.world.clock.set(later);
    }
    assert_eq!(unseen, [], "every route needs a row in this table");
}

#[tokio::test]
async fn every_screen_asks_a_stranger_to_sign_in() {
    let client = TestClient::new().await;
    let mut public = Vec::new();
    for (pattern, methods) in dashboard::rows() {
        let parts = pattern.split('/').map(|part| if part.starts_with('{') { "none" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        for (method, route) in methods {
            if !matches!(route, HttpRoute::SignedIn(_)) {
                public.push(format!("{method} {pattern}"));
                continue;
            }
            for key in [None, Some(client.write_key.as_str())] {
                let response = match key {
                    Some(key) => client.call(key, method.as_str(), &path, Value::Null).await,
                    None => client.send(method.as_str(), &path, &[], "").await,
                };
                let expected = if method == Method::GET { 303 } else { 403 };
                assert_eq!(response.status, expected, "{method} {path}: {}", response.text);
            }
        }
    }
    public.sort_unstable();
    let without_session = [
        "GET /invite/{token}",
        "GET /reset",
        "GET /reset/{token}",
        "GET /setup/{token}",
        "GET /sign-in",
        "GET /sign-in/code",
        "GET /sign-in/company",
        "GET /sign-in/link/{token}",
        "GET /sign-in/oidc/{account}",
        "GET /sign-in/oidc/{account}/callback",
        "POST /invite/{token}",
        "POST /reset",
        "POST /reset/{token}",
        "POST /setup/{token}",
        "POST /setup/{token}/test",
        "POST /sign-in",
        "POST /sign-in/code",
        "POST /sign-in/code/passkey",
        "POST /sign-in/code/passkey/options",
        "POST /sign-in/company",
        "POST /sign-in/link",
        "POST /sign-in/link/{token}",
        "POST /sign-in/oidc/{account}",
        "POST /sign-in/passkey",
        "POST /sign-in/passkey/options",
    ];
    assert_eq!(public, without_session, "a new screen needs a session, or a line here");
}

/// Returns true if a path matches the pattern.
fn is_of(pattern: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len()
        && pattern.iter().zip(path).all(|(expected, part)| {
            let Some((before, rest)) = expected.split_once('{') else { return *expected == part };
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            part.starts_with(before) && part.ends_with(after)
        })
}

#[tokio::test]
async fn a_page_without_monitors_has_an_empty_list() {
    let client = TestClient::new().await;
    assert_eq!(client.get(&client.shop_path("/monitors")).await.body["monitors"], json!([]));
    let status = client.get(&client.shop_path("/status")).await.body;
    assert_eq!((&status["monitors"], &status["incidents"]), (&json!([]), &json!([])));
}
