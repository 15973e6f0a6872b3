//! Tests of public pages: host names and paths, headers, escaping, and redirects.

use parallax_core::page::Page;
use parallax_core::page::branding::Language;

use super::*;

#[tokio::test]
async fn a_page_is_found_by_subdomain_and_custom_domain() {
    let client = TestClient::new().await;
    let name = async |host: &str, path: &str| {
        let response = client.send("GET", path, &[("host", host)], "").await;
        (response.status, response.body["page"]["name"].clone())
    };
    for host in ["shop.pages.example", "SHOP.Pages.Example.:443"] {
        assert_eq!(name(host, "/status.json").await, (200, json!("Shop")), "{host}");
    }
    // The hosts of the service itself serve no page at the root.
    for host in ["status.example", "STATUS.example.:443", "localhost:8080", "[::1]:8080", "127.0.0.1:8080"] {
        assert_eq!(name(host, "/status.json").await.0, 404, "{host}");
        assert_eq!(name(host, "/p/shop/status.json").await, (200, json!("Shop")), "{host}");
    }
    for host in ["shop.elsewhere.example", "pages.example", "status.example.elsewhere.example", "a b", "[::1"] {
        for path in ["/status.json", "/p/shop/status.json", "/p/shop", "/api/v1/me", "/assets/page.css", "/", "/none"] {
            let response = client.send("GET", path, &[("host", host)], "").await;
            assert_eq!((response.status, response.text.as_str()), (421, ""), "{host}{path}");
        }
        let token = format!("/ping/{}", "a".repeat(32));
        assert_eq!(name(host, &token).await.0, 404, "pings are accepted on any host");
    }
    for host in ["none.pages.example", "a.shop.pages.example", ".pages.example"] {
        for path in ["/status.json", "/p/shop/status.json", "/api/v1/me", "/"] {
            assert_eq!(name(host, path).await.0, 404, "{host}{path}");
        }
    }
    let domain = Some("status.shop.example".to_owned());
    client.world.put_page(Page { custom_domain: domain, ..client.world.shop.clone() }).await;
    assert_eq!(name("Status.shop.example:8443", "/status.json").await, (200, json!("Shop")));
    assert_eq!(name("status.shop.example", "/p/journal/status.json").await.0, 404, "the page has another host");
    client.world.put_page(client.world.shop.clone()).await;
    assert_eq!(name("status.shop.example", "/status.json").await.0, 421, "the domain was removed from the page");
}

/// Returns the subscribe dialog of a page.
pub(super) fn dialog(page: &str) -> &str {
    let (_, after) = page.split_once("<div class=\"panel\">").unwrap_or_else(|| panic!("{page}"));
    after.split("</details>").next().unwrap_or_default()
}

/// Fetches a document as text.
pub(super) async fn document(client: &TestClient, path: &str) -> String {
    let response = client.send("GET", path, &[], "").await;
    assert_eq!(response.status, 200, "{path}: {response:?}");
    String::from_utf8(response.bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn a_page_is_compressed_and_tagged_and_loads_only_its_own_assets() {
    let client = TestClient::new().await;
    client.create_monitor(json!({ "url": "a.example" })).await;
    let plain = client.send("GET", "/p/shop", &[], "").await;
    let text = std::str::from_utf8(&plain.bytes).unwrap();
    let policy = plain.headers["content-security-policy"].to_str().unwrap();
    for part in ["default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(plain.headers["cache-control"].to_str().unwrap().starts_with("public, max-age=15"));
    for inline in [" style=", "<style", "<script>", " onclick", "javascript:", "http://", "//cdn"] {
        assert!(!text.contains(inline), "{inline}");
    }
    for (accepted, encoding) in [("gzip", "gzip"), ("gzip, br", "br")] {
        let small = client.send("GET", "/p/shop", &[("accept-encoding", accepted)], "").await;
        assert_eq!(small.headers["content-encoding"], encoding);
        assert_eq!(
            (&small.headers["etag"], &small.headers["vary"]),
            (&plain.headers["etag"], &"accept, accept-encoding".parse().unwrap())
        );
        assert!(small.bytes.len() * 3 < plain.bytes.len());
    }
    let tag = plain.headers["etag"].to_str().unwrap();
    let not_modified = client.send("GET", "/p/shop", &[("if-none-match", tag)], "").await;
    assert_eq!((not_modified.status, not_modified.bytes.len()), (304, 0));
    assert!(!policy.contains("data:"), "{policy}");
    let small = document(&client, "/p/shop/embed").await;
    for asset in crate::views::assets::all() {
        let path = format!("/assets/{}", asset.name);
        let is_of_a_page = !["reference-", "dashboard-", "passkeys-"].iter().any(|other| asset.name.starts_with(other));
        assert_eq!(text.contains(&path) || small.contains(&path), is_of_a_page, "{path}");
        let response = client.send("GET", &path, &[("host", "shop.pages.example")], "").await;
        assert_eq!(response.bytes, asset.text.as_bytes(), "{path}");
        assert!(response.headers["cache-control"].to_str().unwrap().contains("immutable"));
    }
}

#[tokio::test]
async fn a_change_is_visible_at_once_and_links_match_the_host() {
    let client = TestClient::new().await;
    assert!(document(&client, "/p/shop").await.contains("No data yet"));
    let body = json!({ "title": "Till is jammed", "impact": "partial", "message": "We *look*." });
    let opened = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), body).await;
    let id = opened.body["incident"]["id"].as_str().unwrap();
    let page = document(&client, "/p/shop").await;
    assert!(page.contains("<h2>Till is jammed</h2>") && page.contains("We <em>look</em>."), "{page}");
    assert!(page.contains(&format!("href=\"/p/shop/incidents/{id}\"")), "{page}");
    let own_host = client.send("GET", "/", &[("host", "shop.pages.example")], "").await;
    assert!(String::from_utf8_lossy(&own_host.bytes).contains(&format!("href=\"/incidents/{id}\"")));
    let update = json!({ "status": "resolved", "message": "Over." });
    client.call(&client.write_key, "POST", &client.shop_path(&format!("/incidents/{id}/updates")), update).await;
    let page = document(&client, "/p/shop").await;
    assert!(!page.contains("<h2>Till is jammed</h2>") && page.contains(">Till is jammed</a>"), "{page}");
    let status = client.send("GET", "/p/shop/status.json", &[], "").await;
    assert_eq!((status.status, &status.body["incidents"]), (200, &json!([])));
    assert_eq!(status.headers["access-control-allow-origin"], "*");
    assert!(document(&client, &format!("/p/shop/incidents/{id}")).await.contains("Over."));
    assert!(document(&client, "/p/shop/history").await.contains("Till is jammed"));
}

#[tokio::test]
async fn user_text_can_not_become_markup() {
    let client = TestClient::new().await;
    let payloads = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "</title><svg onload=alert(1)>",
        "{{ 7 * 7 }}<u>",
    ];
    for payload in payloads {
        let monitor = json!({ "name": payload, "group": payload, "url": "a.example" });
        let created = client.call(&client.write_key, "POST", &client.shop_path("/monitors"), monitor).await;
        let incident = json!({ "title": payload, "message": payload, "impact": "major", "postmortem": payload });
        let opened = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), incident).await;
        assert_eq!((created.status, opened.status), (201, 201), "{payload}");
        let edit = json!({ "name": payload, "description": payload, "supportUrl": null });
        assert_eq!(client.call(&client.write_key, "PATCH", &client.shop_path(""), edit).await.status, 200);
        let monitor = created.body["monitor"]["id"].as_str().unwrap().to_owned();
        let incident = opened.body["incident"]["id"].as_str().unwrap().to_owned();
        for path in [
            "/p/shop".to_owned(),
            "/p/shop/history".to_owned(),
            format!("/p/shop/monitors/{monitor}"),
            format!("/p/shop/incidents/{incident}"),
        ] {
            let text = document(&client, &path).await;
            assert!(text.contains("alert(1)") || text.contains("7 * 7"), "it is shown as text: {path}");
            for markup in ["<script>", "<img", "<svg onload", "<u>"] {
                assert!(!text.contains(markup), "{markup}: {path}");
            }
            // Between tags and in quoted values it is text; in a tag outside of quoted values it would be an attribute.
            let tags = text.split('<').filter_map(|part| part.split_once('>')).map(|(tag, _)| tag);
            let mut beside_values = tags.flat_map(|tag| tag.split('"').step_by(2));
            assert!(!beside_values.any(|it| it.contains("onmouse") || it.contains("onerror")), "{path}");
        }
        client.call(&client.write_key, "DELETE", &client.shop_path(&format!("/monitors/{monitor}")), Value::Null).await;
        client
            .call(&client.write_key, "DELETE", &client.shop_path(&format!("/incidents/{incident}")), Value::Null)
            .await;
    }
}

#[tokio::test]
async fn the_fast_path_answers_like_the_regular_path_until_an_edit() {
    let client = TestClient::new().await;
    let fast = |method: &str, host: &str, path: &str, extra_headers: &[(&'static str, &str)]| {
        let mut request = ::http::Request::builder().method(method).uri(path).header("host", host);
        for (name, value) in extra_headers {
            request = request.header(*name, *value);
        }
        let reply = client.context.response_index.respond(&request.body(()).unwrap());
        reply.map(|reply| reply.into_response())
    };
    let (shared_host, own_host) = ("status.example", "shop.pages.example");
    for (host, path) in [
        (shared_host, "/p/shop"),
        (own_host, "/"),
        (shared_host, "/p/shop?range=24h"),
        (own_host, "/history/2026-11"),
        (own_host, "/?range=7d"),
    ] {
        assert!(fast("GET", host, path, &[]).is_none(), "{host}{path}");
        for extra_headers in
            [&[][..], &[("accept-encoding", "gzip")], &[("accept-encoding", "br"), ("if-none-match", "*")]]
        {
            let headers = [&[("host", host)], extra_headers].concat();
            let regular = client.send("GET", path, &headers, "").await;
            let fast = fast("GET", host, path, extra_headers).unwrap_or_else(|| panic!("{host}{path}"));
            assert_eq!((fast.status().as_u16(), fast.headers()), (regular.status, &regular.headers), "{host}{path}");
            assert_eq!(fast.body(), &regular.bytes, "{host}{path}");
        }
    }
    for path in ["/p/shop?x=1", "/p/shop?range=1y", "/p/shop/status.json", "/p/shop/history"] {
        client.send("GET", path, &[("host", shared_host)], "").await;
        assert!(fast("GET", shared_host, path, &[]).is_none(), "{path} is not on the fast path");
    }
    for (method, host, path, extra_headers) in [
        ("POST", shared_host, "/p/shop", &[][..]),
        ("HEAD", shared_host, "/p/shop", &[]),
        ("GET", "other.example", "/p/shop", &[]),
        ("GET", "status.example:a", "/p/shop", &[]),
        ("GET", shared_host, "/", &[]),
        ("GET", shared_host, "/p/shop", &[("host", shared_host)]),
        ("GET", shared_host, "/p/shop", &[("content-length", "1")]),
        ("GET", shared_host, "http://status.example/p/shop", &[]),
    ] {
        assert!(fast(method, host, path, extra_headers).is_none(), "{method} {host} {path} {extra_headers:?}");
    }
    client.world.put_page(Page { private: true, ..client.world.shop.clone() }).await;
    for (host, path) in [(shared_host, "/p/shop"), (own_host, "/")] {
        assert!(fast("GET", host, path, &[]).is_none(), "{host}{path}");
        assert_eq!(client.send("GET", path, &[("host", host)], "").await.status, 403);
        assert!(fast("GET", host, path, &[]).is_none(), "{host}{path}");
    }
}

#[tokio::test]
async fn the_not_found_page_is_in_the_pages_language() {
    let client = TestClient::new().await;
    client.world.put_page(Page { language: Language::De, ..client.world.shop.clone() }).await;
    let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    for path in ["incidents/x", "incidents/inc_0000000000000000000000000z", "monitors/x", "history/1999-01"] {
        let path = format!("/p/shop/{path}");
        let reply = client.send("GET", &path, &[browser], "").await;
        assert_eq!((reply.status, reply.headers["cache-control"].to_str().unwrap()), (404, "no-store"), "{path}");
        assert!(
            reply.text.contains("<html lang=\"de\"") && reply.text.contains("Seite nicht gefunden"),
            "{}",
            reply.text
        );
        let program = client.send("GET", &path, &[("accept", "*/*")], "").await;
        assert_eq!((program.status, &program.body["error"]["code"]), (404, &json!("not_found")), "{path}");
    }
    for path in ["/p/none", "/p/none/incidents/x", "/p/shop/none", "/none"] {
        let none = client.send("GET", path, &[browser], "").await;
        assert_eq!(none.status, 404, "{path}");
        let plain = none.text.contains("<html lang=\"en\"") && none.text.contains("Page not found");
        assert!(plain && !none.text.contains("Shop"), "an unknown page has no language: {}", none.text);
        let program = client.send("GET", path, &[("accept", "*/*")], "").await;
        let reply = (program.status, &program.body["error"]["code"], &program.headers["vary"]);
        assert_eq!(reply.0, 404, "{path}");
        assert!(reply.1 == "not_found" && reply.2.to_str().unwrap().starts_with("accept"), "{path}: {reply:?}");
    }
    let api = client.send("GET", "/api/v1/none", &[browser], "").await;
    assert_eq!(api.body["error"]["code"], "unauthenticated", "{api:?}");
}

#[tokio::test]
async fn a_trailing_slash_is_redirected() {
    let client = TestClient::new().await;
    let domain = Some("status.shop.example".to_owned());
    client.world.put_page(Page { custom_domain: domain, ..client.world.shop.clone() }).await;
    let (base, label, own_host) = ("status.example", "shop.pages.example", "status.shop.example");
    for (host, from, to) in [
        (base, "/p/shop/", "/p/shop"),
        (base, "/p/shop/?range=7d", "/p/shop?range=7d"),
        (base, "/p/shop/history/", "/p/shop/history"),
        (base, "/p/shop/incidents/inc_0000000000000000000000000a/", "/p/shop/incidents/inc_0000000000000000000000000a"),
        (base, "/p/none/", "/p/none"),
        (label, "/history/", "/history"),
        (label, "/history/2026-11/", "/history/2026-11"),
        (own_host, "/history/", "/history"),
    ] {
        for method in ["GET", "HEAD"] {
            let redirect = client.send(method, from, &[("host", host), ("accept", "text/html")], "").await;
            assert_eq!(
                (redirect.status, redirect.headers["location"].to_str().unwrap()),
                (308, to),
                "{method} {host}{from}"
            );
        }
        let response = client.send("POST", from, &[("host", host)], "").await;
        assert_eq!(response.status, 404, "{host}{from}");
    }
    for (host, path) in [
        (base, "/p/shop//"),
        (base, "/p/shop/nothing/"),
        (base, "/p/"),
        (base, "/ping/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"),
        (label, "//elsewhere.example/"),
        (label, "//history/"),
        (label, "/\\elsewhere.example/"),
        (label, "/nothing/"),
    ] {
        let seen = client.send("GET", path, &[("host", host)], "").await;
        assert!(seen.status == 404 && !seen.headers.contains_key("location"), "{host}{path}: {seen:?}");
    }
    // The redirect does not reveal whether a page exists.
    let answer = async |path: &str| {
        let seen = client.send("GET", path, &[], "").await;
        (seen.status, seen.headers, seen.text)
    };
    let strip = |(status, mut headers, text): (u16, ::http::HeaderMap, String)| {
        headers.remove("location");
        (status, headers, text)
    };
    client.world.put_page(Page { private: true, ..client.world.shop.clone() }).await;
    assert_eq!(strip(answer("/p/shop/history/").await), strip(answer("/p/none/history/").await));
}

#[tokio::test]
async fn the_root_of_the_service_looks_like_the_rest_of_it() {
    let client = TestClient::new().await;
    let root = document(&client, "/").await;
    for path in root.split("\"/assets/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert_eq!(client.send("GET", &format!("/assets/{path}"), &[], "").await.status, 200, "{path}");
    }
    let policy = client.send("GET", "/", &[], "").await.headers["content-security-policy"].clone();
    let policy = policy.to_str().unwrap();
    assert!(policy.contains("style-src 'self'") && policy.contains("script-src 'self'"), "{policy}");
    assert!(root.contains("/api/v1/openapi.json") && !root.contains(" style="), "{root}");
}

#[tokio::test]
async fn embeddable_content_is_listed_behind_the_footers_link() {
    let client = TestClient::new().await;
    client.create_monitor(json!({ "url": "a.example", "name": "Till" })).await;
    assert!(document(&client, "/p/shop").await.contains("<a href=\"/p/shop/badges\">Badge</a>"));
    let response = client.send("GET", "/p/shop/badges", &[], "").await;
    let policy = response.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("frame-src 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    let text = document(&client, "/p/shop/badges").await;
    let sources = text.split(" src=\"/p/").skip(1).map(|rest| rest.split('"').next().unwrap());
    let sources: Vec<String> = sources.map(|path| format!("/p/{}", path.replace("&#38;", "&"))).collect();
    assert!(sources.len() >= 8, "{sources:?}");
    for path in sources {
        assert_eq!(client.send("GET", &path, &[], "").await.status, 200, "{path}");
    }
    assert!(document(&client, "/p/shop/llms.txt").await.contains("/badges)"));
}

#[tokio::test]
async fn visitors_see_a_page_by_its_slug_and_no_other() {
    let client = TestClient::new().await;
    client.create_monitor(json!({ "url": "a.example", "name": "<b>" })).await;
    let response = client.send("GET", "/p/shop", &[], "").await;
    assert_eq!(
        (response.status, response.headers["content-type"].to_str().unwrap()),
        (200, "text/html; charset=utf-8")
    );
    assert_eq!(client.send("GET", "/p/nothing", &[], "").await.status, 404);
    assert_eq!(client.send("GET", "/", &[], "").await.status, 200);
    assert_eq!(client.send("POST", "/p/shop", &[], "").await.status, 405);
}
