//! Tests of page settings: every bound, images as visitors get them, slug and custom domain.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parallax_core::page::Page;

use super::*;

fn png(length: usize) -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.resize(length, 7);
    format!("data:image/png;base64,{}", STANDARD.encode(bytes))
}

fn names(count: usize, ending: &str) -> Value {
    (0..count).map(|n| format!("a{n}{ending}")).collect()
}

async fn patch(client: &TestClient, path: &str, body: Value) -> TestResponse {
    client.call(&client.write_key, "PATCH", &client.shop_path(path), body).await
}

#[tokio::test]
async fn branding_fields_are_checked_at_their_bounds() {
    let client = TestClient::new().await;
    let accepted = [
        ("password", json!("x")),
        ("password", json!("é".repeat(200))),
        ("private", json!(true)),
        ("allowedPeople", names(200, "@example.com")),
        ("allowedDomains", names(50, ".example")),
        ("allowedPeople", Value::Null),
        ("allowedDomains", json!([])),
        ("noindex", json!(true)),
        ("theme", json!("dark")),
        ("theme", Value::Null),
        ("accentColor", json!("#1A7f4B")),
        ("logo", json!(png(64 << 10))),
        ("favicon", json!(png(32 << 10))),
        ("language", json!("ja")),
        ("language", Value::Null),
    ];
    for (field, value) in accepted {
        let response = patch(&client, "", json!({ field: value })).await;
        assert_eq!(response.status, 200, "{field}: {}", response.text);
    }
    let rejected = [
        ("password", json!("")),
        ("password", json!("x".repeat(201))),
        ("private", Value::Null),
        ("allowedPeople", names(201, "@example.com")),
        ("allowedPeople", json!(["ann@localhost"])),
        ("allowedDomains", names(51, ".example")),
        ("allowedDomains", json!(["@example.com"])),
        ("noindex", json!("yes")),
        ("theme", json!("blue")),
        ("accentColor", json!("#12345")),
        ("logo", json!(png((64 << 10) + 1))),
        ("logo", json!("https://example.com/logo.png")),
        ("favicon", json!(png((32 << 10) + 1))),
        ("language", json!("EN")),
    ];
    let before = client.get(&client.shop_path("")).await.body;
    for (field, value) in rejected {
        let rejection = patch(&client, "", json!({ field: value, "name": "Other" })).await;
        assert_eq!(rejection.status, 400, "{field}: {}", rejection.text);
        let fields = &rejection.body["error"]["fields"];
        assert_eq!((&fields[0]["field"], &fields[1]), (&json!(field), &Value::Null), "{}", rejection.text);
    }
    let all = json!({ "theme": 1, "logo": "x", "private": null, "language": "xx" });
    let rejection = patch(&client, "", all).await;
    let fields = rejection.body["error"]["fields"].as_array().unwrap().len();
    assert_eq!(fields, 4, "all errors are reported: {}", rejection.text);
    assert_eq!(client.get(&client.shop_path("")).await.body, before, "nothing was changed");
}

#[tokio::test]
async fn a_password_is_stored_as_a_hash_and_revokes_access_tokens() {
    let client = TestClient::new().await;
    let set = patch(&client, "", json!({ "password": "open sesame" })).await;
    assert_eq!(set.body["page"]["passwordProtected"], true);
    assert!(!set.text.contains("sesame") && !set.text.contains("argon2"), "{}", set.text);
    let page = |client: &TestClient| client.world.page(client.world.shop.id);
    let stored = page(&client);
    assert!(stored.password_hash.as_ref().is_some_and(|hash| hash.starts_with("$argon2id$")));
    assert_eq!(stored.access_revision, 1);
    patch(&client, "", json!({ "description": "Other" })).await;
    assert_eq!(
        (page(&client).password_hash, page(&client).access_revision),
        (stored.password_hash, 1),
        "omitted fields keep their value"
    );
    let response = patch(&client, "", json!({ "password": null })).await;
    assert_eq!(response.body["page"]["passwordProtected"], false);
    assert_eq!((page(&client).password_hash, page(&client).access_revision), (None, 2));
}

#[tokio::test]
async fn pictures_are_served_with_access_to_the_page_and_are_inert() {
    let client = TestClient::new().await;
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
    let logo = format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg));
    let set =
        patch(&client, "", json!({ "logo": logo, "favicon": png(90), "accentColor": "#ffff00", "theme": "dark" }));
    let page = set.await.body["page"].take();
    let path = |field: &str| {
        let url = page[field].as_str().unwrap();
        url.strip_prefix("https://shop.pages.example").unwrap().to_owned()
    };
    let (logo, icon) = (path("logo"), path("favicon"));
    let picture = client.send("GET", &format!("/p/shop{logo}"), &[], "").await;
    assert_eq!((picture.status, &picture.bytes[..]), (200, svg.as_bytes()));
    assert_eq!(picture.headers["content-type"], "image/svg+xml");
    assert_eq!(picture.headers["x-content-type-options"], "nosniff");
    let policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
    assert_eq!(picture.headers["content-security-policy"], policy);
    assert!(picture.headers["cache-control"].to_str().unwrap().contains("immutable"));
    let own_host = client.send("GET", &icon, &[("host", "shop.pages.example")], "").await;
    assert_eq!((own_host.status, &own_host.headers["content-type"]), (200, &"image/png".parse().unwrap()));
    let sheet = client.send("GET", "/p/shop/accent/ffff00", &[], "").await;
    assert_eq!((sheet.status, sheet.headers["content-type"].to_str().unwrap()), (200, "text/css; charset=utf-8"));
    let html = client.send("GET", "/p/shop", &[], "").await;
    let html = String::from_utf8_lossy(&html.bytes).into_owned();
    for part in [
        " data-theme=\"dark\"",
        &format!("<img class=\"logo\" src=\"/p/shop{logo}\" alt=\"Shop\">"),
        &format!("<link rel=\"icon\" href=\"/p/shop{icon}\" type=\"image/png\">"),
        "<link rel=\"stylesheet\" href=\"/p/shop/accent/ffff00\">",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    for none in ["/p/shop/logo/00000000000000000000000000000000", "/p/shop/accent/ffff01", &format!("/p/journal{logo}")]
    {
        assert_eq!(client.send("GET", none, &[], "").await.status, 404, "{none}");
    }
    let hidden = client.world.page(client.world.shop.id);
    client.world.put_page(Page { private: true, ..hidden }).await;
    for path in [logo, icon, "/accent/ffff00".to_owned()] {
        assert_eq!(client.send("GET", &format!("/p/shop{path}"), &[], "").await.status, 404, "{path}");
    }
    let response = patch(&client, "", json!({ "logo": null, "favicon": null, "accentColor": null })).await;
    let page = &response.body["page"];
    assert_eq!((&page["logo"], &page["favicon"], &page["accentColor"]), (&Value::Null, &Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_noindex_page_says_so_in_header_and_document() {
    let client = TestClient::new().await;
    let robots = async |client: &TestClient| {
        let response = client.send("GET", "/p/shop", &[], "").await;
        let html = String::from_utf8_lossy(&response.bytes).into_owned();
        (response.headers.contains_key("x-robots-tag"), html.contains("<meta name=\"robots\" content=\"noindex\">"))
    };
    assert_eq!(robots(&client).await, (false, false));
    patch(&client, "", json!({ "noindex": true })).await;
    assert_eq!(robots(&client).await, (true, true));
}

#[tokio::test]
async fn an_address_is_changed_by_a_path_of_its_own() {
    let client = TestClient::new().await;
    let rejection = async |body: Value| {
        let rejection = patch(&client, "/address", body).await;
        (rejection.status, rejection.body["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    for (body, rule) in [
        (json!({ "slug": "" }), "slug must be 1 to 63 characters"),
        (json!({ "slug": "a".repeat(64) }), "slug must be 1 to 63 characters"),
        (json!({ "slug": "www" }), "slug is reserved"),
        (json!({ "slug": "journal" }), "slug is taken"),
        (json!({ "slug": null }), "slug must not be null"),
        (json!({ "customDomain": "localhost" }), "customDomain must be a hostname"),
        (json!({ "customDomain": "status.example" }), "customDomain must not be this service's own hostname"),
        (
            json!({ "customDomain": "a.pages.example" }),
            "customDomain must not be a subdomain of this service's own domain",
        ),
    ] {
        let (status, message) = rejection(body.clone()).await;
        assert!(status == 400 && message.contains(rule), "{body}: {message}");
    }
    let response =
        patch(&client, "/address", json!({ "slug": "b".repeat(63), "customDomain": "Status.Shop.example" })).await;
    let page = &response.body["page"];
    assert_eq!((response.status, &page["customDomain"]), (200, &Value::Null), "{}", response.text);
    assert_eq!(page["url"], format!("https://{}.pages.example", "b".repeat(63)));
    let proof = &page["domainVerification"];
    assert_eq!(
        (&proof["host"], &proof["recordName"], &proof["checkedAt"]),
        (&json!("status.shop.example"), &json!("_parallax-challenge.status.shop.example"), &Value::Null)
    );
    assert_eq!(proof["recordValue"].as_str().map(str::len), Some("parallax-domain-verification=".len() + 40));
    let repeated = patch(&client, "/address", json!({ "customDomain": "status.shop.example" })).await;
    assert_eq!(repeated.body["page"]["domainVerification"], *proof, "the verification is pending already");
    assert_eq!(client.send("GET", "/p/shop", &[], "").await.status, 404);
    assert_eq!(client.send("GET", &format!("/p/{}", "b".repeat(63)), &[], "").await.status, 200);
    // A domain in use by another page is refused, also for a while after it is released.
    let journal = client.world.blog.clone();
    let owned = Page { custom_domain: Some("status.shop.example".to_owned()), ..journal.clone() };
    client.world.put_page(owned).await;
    let after = patch(&client, "/address", json!({ "customDomain": null })).await;
    assert_eq!(after.body["page"]["domainVerification"], Value::Null);
    let (status, message) = rejection(json!({ "customDomain": "status.shop.example" })).await;
    assert!(status == 400 && message.contains("is another page's"), "{message}");
}
