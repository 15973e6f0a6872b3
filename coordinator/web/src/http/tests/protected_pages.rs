//! Tests of protected pages: access by password, its duration, and that no route reveals anything without access.

mod password_attempts;
mod private_pages;

use parallax_core::page::Page;
use parallax_core::time::{DAY, MINUTE, SECOND};

use super::*;
use crate::http::public;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
/// Name of a monitor, which must not be visible without access.
const CANARY: &str = "Canary in the coal mine";
/// Routes for people, which show the login form. All others are for programs.
const FOR_PEOPLE: [&str; 14] = [
    "/p/{slug}",
    "/p/{slug}/history",
    "/p/{slug}/history/{month}",
    "/p/{slug}/incidents/{incident}",
    "/p/{slug}/monitors/{monitor}",
    "/p/{slug}/badges",
    "/p/{slug}/subscribe",
    "/p/{slug}/confirm",
    "/p/{slug}/unsubscribe",
    "/p/{slug}/confirm-alerts",
    "/p/{slug}/stop-alerts",
    "/p/{slug}/password",
    "/p/{slug}/sign-in",
    "/p/{slug}/sign-in/link",
];

impl TestClient {
    async fn get_with_cookie(&self, path: &str, cookie: Option<&str>) -> TestResponse {
        let headers = cookie.map(|cookie| ("cookie", cookie));
        self.send("GET", path, headers.as_slice(), "").await
    }

    async fn post_form(&self, path: &str, cookie: Option<&str>, body: &str) -> TestResponse {
        let mut headers = vec![FORM, ("sec-fetch-site", "same-origin")];
        headers.extend(cookie.map(|cookie| ("cookie", cookie)));
        self.send("POST", path, &headers, body).await
    }

    /// Protects the page "shop" with a password.
    async fn protect_with_password(&self, password: &str) -> Page {
        let hash = parallax_service::page_access::password::hash(password).await.unwrap();
        let page = Page { password_hash: Some(hash), ..self.world.shop.clone() };
        self.world.put_page(page.clone()).await;
        page
    }

    async fn try_password(&self, password: &str) -> TestResponse {
        self.post_form("/p/shop/password", None, &format!("to=%2Fhistory&password={password}")).await
    }
}

/// Returns the cookie set by a response, as a browser sends it back.
fn cookie(response: &TestResponse) -> String {
    let set = response.headers["set-cookie"].to_str().unwrap();
    set.split(';').next().unwrap().to_owned()
}

/// Returns true if the response forbids caching and indexing.
fn is_sealed(response: &TestResponse) -> bool {
    let header = |name: &str| response.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    header("cache-control") == "private, no-store"
        && header("vary").contains("cookie")
        && header("x-robots-tag") == "noindex"
        && !response.headers.contains_key("etag")
        && !response.headers.contains_key("access-control-allow-origin")
}

/// Lists the routes of a page: pattern, method, and a path that exists on a public page.
fn page_routes(slug: &str, monitor: &str) -> Vec<(&'static str, Method, String)> {
    let rows = public::rows().into_iter().filter(|(path, _)| path.starts_with("/p/{slug}"));
    rows.flat_map(|(row, methods)| {
        let path = row
            .replace("{slug}", slug)
            .replace("{month}", "2026-11")
            .replace("{state}", "0123456789ab")
            .replace("{digest}", "00000000000000000000000000000000")
            .replace("{incident}", "inc_0000000000000000000000000a")
            .replace("{monitor}", monitor);
        assert!(!path.contains('{'), "{path}");
        methods.into_iter().map(move |(method, _)| (row, method, path.clone()))
    })
    .collect()
}

#[tokio::test]
async fn no_route_reveals_a_protected_page() {
    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example", "name": CANARY })).await;
    let monitor = created["id"].as_str().unwrap().to_owned();
    assert!(client.get_with_cookie("/p/shop", None).await.text.contains(CANARY), "it is visible on a public page");
    let shop = client.world.shop.clone();
    let password = Some("$argon2id$".to_owned());
    for (hidden, asks) in [
        (Page { private: true, ..shop.clone() }, "type=\"email\""),
        (Page { password_hash: password.clone(), ..shop.clone() }, "type=\"password\""),
        (Page { private: true, password_hash: password, ..shop.clone() }, "type=\"email\""),
    ] {
        client.world.put_page(hidden).await;
        let (routes, routes_of_missing) = (page_routes("shop", &monitor), page_routes("none", &monitor));
        assert!(routes.len() >= 20, "{routes:?}");
        for ((row, method, path), (_, _, of_none)) in routes.into_iter().zip(routes_of_missing) {
            for method in [method.as_str(), "HEAD", "DELETE"] {
                for headers in [
                    &[][..],
                    &[("if-none-match", "*")],
                    &[("x-forwarded-host", "status.example"), ("x-http-method-override", "GET")],
                    &[FORM],
                    &[("accept", "text/html,*/*;q=0.8")],
                ] {
                    for query in ["", "?password=open", "?t=x"] {
                        let (path, of_none) = (format!("{path}{query}"), format!("{of_none}{query}"));
                        let response = client.send(method, &path, headers, "").await;
                        let absent = client.send(method, &of_none, headers, "").await;
                        let case = format!("{method} {path} {headers:?}: {response:?}");
                        assert!(!response.text.contains(CANARY) && !response.text.contains("Shop"), "{case}");
                        if FOR_PEOPLE.contains(&row) && response.text.contains("<main") && response.status != 404 {
                            // 400 for an empty form.
                            assert!(is_sealed(&response) && matches!(response.status, 403 | 400), "{case}");
                            let is_form = response.text.contains(asks) || path.contains("/link");
                            assert!(is_form && !response.headers.contains_key("www-authenticate"), "{case}");
                            assert_eq!(absent.status, 404, "{case}");
                        } else if !row.ends_with("/sign-out") || method != "POST" {
                            assert_eq!(
                                (response.status, &response.headers, response.text.len()),
                                (absent.status, &absent.headers, absent.text.len()),
                                "{case}"
                            );
                            assert!(response.status != 404 || response.text == absent.text, "{case}");
                            assert!(matches!(response.status, 400 | 404 | 405 | 403 | 429), "{case}");
                        }
                        client.world.clock.set(client.world.service.now() + MINUTE);
                    }
                }
            }
        }
        let by_host = client.send("GET", "/", &[("host", "shop.pages.example")], "").await;
        assert!(by_host.status == 403 && by_host.text.contains(asks), "{by_host:?}");
        let by_host = client.send("GET", "/status.json", &[("host", "shop.pages.example")], "").await;
        assert_eq!((by_host.status, is_sealed(&by_host)), (404, true));
    }
}

#[tokio::test]
async fn the_password_opens_every_route_and_redirects_to_the_requested_one() {
    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example", "name": CANARY })).await;
    let monitor = created["id"].as_str().unwrap().to_owned();
    client.protect_with_password("open+sesame").await;
    let form = client.get_with_cookie("/p/shop/monitors/x?span=7", None).await;
    assert!(form.text.contains("action=\"/p/shop/password\""), "{}", form.text);
    assert!(form.text.contains("name=\"to\" value=\"/monitors/x?span=7\""), "{}", form.text);
    let response = client.try_password("sesame").await;
    assert_eq!((response.status, response.headers.contains_key("set-cookie")), (403, false));
    assert!(response.text.contains("Wrong password") && is_sealed(&response), "{response:?}");
    let right = client.try_password("open%2Bsesame").await;
    assert_eq!((right.status, right.headers["location"].to_str().unwrap()), (303, "/p/shop/history"));
    let set = right.headers["set-cookie"].to_str().unwrap();
    assert!(set.starts_with("__Host-plx-") && !set.contains("Domain"), "{set}");
    for part in ["; Path=/;", "; HttpOnly", "; Secure", "; SameSite=Lax", "; Max-Age=2592000"] {
        assert!(set.contains(part), "{set}");
    }
    let pass = cookie(&right);
    for (row, method, path) in page_routes("shop", &monitor).into_iter().filter(|(_, method, _)| method == Method::GET)
    {
        let page = client.send("GET", &path, &[("cookie", &pass), ("if-none-match", "*")], "").await;
        assert!(!matches!(page.status, 401 | 403), "{row}: {page:?}");
        assert!(is_sealed(&page), "{row} {method}: {page:?}");
    }
    assert!(client.get_with_cookie("/p/shop", Some(&pass)).await.text.contains(CANARY));
    let mcp_response = client.send("POST", "/p/shop/mcp", &[("cookie", &pass)], "{}").await;
    assert_eq!((mcp_response.status, is_sealed(&mcp_response)), (400, true));
    // With access, the login form redirects to the page, which has a sign-out button.
    assert_eq!(client.get_with_cookie("/p/shop/password", Some(&pass)).await.headers["location"], "/p/shop");
    assert!(client.get_with_cookie("/p/shop", Some(&pass)).await.text.contains("action=\"/p/shop/sign-out\""));
    let out = client.post_form("/p/shop/sign-out", Some(&pass), "").await;
    let set = out.headers["set-cookie"].to_str().unwrap();
    assert!(out.status == 303 && set.contains("=; ") && set.contains("Max-Age=0"), "{set}");
    let own_host = [("host", "shop.pages.example"), ("cookie", pass.as_str())];
    assert_eq!(
        client.send("GET", "/history", &own_host, "").await.status,
        200,
        "access is valid for the page on any host"
    );
}

#[tokio::test]
async fn the_dialog_of_a_protected_page_has_links_with_its_feed_token() {
    let client = TestClient::new().await;
    let _page = client.protect_with_password("one").await;
    let pass = cookie(&client.try_password("one").await);
    let page = client.get_with_cookie("/p/shop", Some(&pass)).await.text;
    let dialog = super::pages::dialog(&page);
    assert!(dialog.contains("href=\"/p/shop/subscribe#programs\"") && !dialog.contains("feed."), "{dialog}");
    let form = client.get_with_cookie("/p/shop/subscribe", Some(&pass)).await.text;
    let (_, programs) = form.split_once("id=\"programs\"").unwrap_or_else(|| panic!("{form}"));
    for file in ["feed.atom", "feed.rss", "maintenance.ics", "status.json"] {
        let (before, _) = programs.split_once(&format!("/{file}</code>")).unwrap_or_else(|| panic!("{file}: {form}"));
        let (_, token) = before.rsplit_once("/t/").unwrap();
        assert_eq!(client.fetch(&format!("/p/shop/t/{token}/{file}")).await.status, 200, "{file}");
    }
}

#[tokio::test]
async fn an_access_token_is_valid_for_its_page_and_protection_for_thirty_days() {
    let client = TestClient::new().await;
    let page = client.protect_with_password("one").await;
    let blog = Page { password_hash: page.password_hash.clone(), ..client.world.blog.clone() };
    client.world.put_page(blog).await;
    let pass = cookie(&client.try_password("one").await);
    let status = async |path: &str, pass: &str| client.get_with_cookie(path, Some(pass)).await.status;
    assert_eq!((status("/p/shop", &pass).await, status("/p/journal", &pass).await), (200, 403));
    // The token of one page in the cookie of another.
    let other = client.post_form("/p/journal/password", None, "password=one").await;
    let (other, (_, value)) = (cookie(&other), pass.split_once('=').unwrap());
    assert_eq!(status("/p/journal", &format!("{}={value}", other.split_once('=').unwrap().0)).await, 403);
    // Both cookies together work for both pages.
    let both = format!("{pass}; {other}");
    assert_eq!((status("/p/shop", &both).await, status("/p/journal", &both).await), (200, 200));
    for at in 0..pass.len() {
        let mut bytes = pass.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        assert_eq!(status("/p/shop", &changed).await, 403, "byte {at} of {pass}");
    }
    for rejected in ["", "1", ".", "9999999999.x", "-1.x", "99999999999999999999.x"] {
        let name = pass.split_once('=').unwrap().0;
        assert_eq!(status("/p/shop", &format!("{name}={rejected}")).await, 403, "{rejected}");
    }
    // Over HTTPS, a cookie without the `__Host-` prefix is ignored, since another host could have set it.
    assert_eq!(status("/p/shop", pass.trim_start_matches("__Host-")).await, 403);
    let start = client.world.service.now();
    client.world.clock.set(start + (30 * DAY - SECOND));
    assert_eq!(status("/p/shop", &pass).await, 200);
    client.world.clock.set(start + 30 * DAY);
    assert_eq!(status("/p/shop", &pass).await, 403);
    client.world.clock.set(start);
    // Setting the same password again revokes access: everyone has to log in again.
    client.protect_with_password("one").await;
    assert_eq!(status("/p/shop", &pass).await, 403);
    client.world.put_page(Page { private: true, ..page.clone() }).await;
    assert_eq!(status("/p/shop", &pass).await, 403);
    client.world.put_page(page).await;
    assert_eq!(status("/p/shop", &pass).await, 200);
}

#[tokio::test]
async fn a_form_of_another_site_is_refused() {
    let client = TestClient::new().await;
    client.protect_with_password("one").await;
    for path in ["/p/shop/password", "/p/shop/sign-in", "/p/shop/sign-in/link", "/p/shop/sign-out"] {
        for header in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example"), ("origin", "null")] {
            if path.ends_with("/sign-out") && header.1 == "null" {
                continue;
            }
            let host = ("host", "status.example");
            let rejection = client.send("POST", path, &[FORM, host, header], "password=one").await;
            assert_eq!((rejection.status, code(&rejection)), (403, "forbidden"), "{path} {header:?}");
            assert!(!rejection.headers.contains_key("set-cookie"));
        }
    }
}

#[tokio::test]
async fn a_feed_token_opens_only_machine_readable_documents() {
    let client = TestClient::new().await;
    client.create_monitor(json!({ "url": "a.example", "name": CANARY })).await;
    assert_eq!(client.world.service.page_access.feed_token(&client.world.shop), None, "a public page needs none");
    let page = client.protect_with_password("one").await;
    let token = client.world.service.page_access.feed_token(&page).unwrap();
    let at = |rest: &str| format!("/p/shop/t/{token}{rest}");
    let response = client.get_with_cookie(&at("/status.json"), None).await;
    assert!(response.status == 200 && response.text.contains(CANARY) && is_sealed(&response), "{response:?}");
    let own_host = client.send("GET", &format!("/t/{token}/status.json"), &[("host", "shop.pages.example")], "").await;
    assert_eq!(own_host.status, 200);
    let pass = cookie(&client.try_password("one").await);
    for (path, address) in [("feed.atom", format!("t/{token}/feed.atom")), ("feed/rss", format!("t/{token}/feed.rss"))]
    {
        let own_host = format!(
            "rel=\"self\" type=\"application/{}+xml\" href=\"https://shop.pages.example/{address}\"",
            &address[address.len() - 4..].replace('.', "")
        );
        let read = client.get_with_cookie(&at(&format!("/{path}")), None).await;
        assert!(read.text.contains(&own_host), "{own_host}: {}", read.text);
    }
    for rest in ["", "/", "/history", "/events", "/subscribe", "/password", "/t/x/status.json"] {
        for cookie in [None, Some(pass.as_str())] {
            let response = client.get_with_cookie(&at(rest), cookie).await;
            assert_eq!((response.status, response.text.contains(CANARY)), (404, false), "{rest}");
        }
    }
    assert_eq!(client.send("POST", &at("/mcp"), &[], "{}").await.status, 404);
    let none = client.get_with_cookie("/p/none/status.json", None).await;
    for rejected in ["x", &token[1..], &token.to_uppercase(), "%00"] {
        let response = client.get_with_cookie(&format!("/p/shop/t/{rejected}/status.json"), None).await;
        assert_eq!(
            (response.status, &response.text, &response.headers),
            (404, &none.text, &none.headers),
            "{rejected}"
        );
    }
    let form = client.get_with_cookie("/p/shop/subscribe", Some(&pass)).await;
    assert!(form.text.contains(&format!("https://shop.pages.example/t/{token}/status.json")), "{}", form.text);
    assert!(client.get_with_cookie("/p/shop/subscribe", None).await.status == 403);
    let list = client.get(&client.shop_path("")).await;
    let feed = &list.body["page"]["privateFeedUrl"];
    assert_eq!(*feed, json!(format!("https://shop.pages.example/t/{token}/feed.atom")));
    client.protect_with_password("one").await;
    assert_eq!(client.get_with_cookie(&at("/status.json"), None).await.status, 404, "it ends with the password");
}

#[tokio::test]
async fn an_open_stream_ends_when_its_access_ends() {
    let client = TestClient::new().await;
    client.protect_with_password("one").await;
    tokio::spawn(client.context.page_cache().clone().run());
    let pass = cookie(&client.try_password("one").await);
    let request = ParsedRequest {
        method: Method::GET,
        path: "/p/shop/events".to_owned(),
        query: String::new(),
        headers: [(::http::header::COOKIE, pass.parse().unwrap())].into_iter().collect(),
        peer: None,
        body: futures_util::stream::empty().boxed(),
    };
    let reply = handle(Arc::clone(&client.context), Arc::clone(&client.table), request).await.into_warp();
    assert_eq!(reply.headers()["cache-control"], "private, no-store");
    let mut body = reply.into_body();
    let mut next = async || http_body_util::BodyExt::frame(&mut body).await.map(|frame| frame.unwrap().into_data());
    assert!(next().await.is_some());
    let rename = async |name: &str| {
        client.call(&client.write_key, "PATCH", &client.shop_path(""), json!({ "name": name })).await
    };
    rename("Till").await;
    assert!(next().await.is_some(), "changes are sent to visitors with access");
    client.protect_with_password("two").await;
    rename("Counter").await;
    assert!(next().await.is_none(), "and to no one else");
}
