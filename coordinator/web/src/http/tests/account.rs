//! Tests of the plan in the response to `GET /me`, and of the deprecation headers of old paths.

use parallax_core::plan::Plan;

use super::*;

#[tokio::test]
async fn a_key_shows_the_limits_and_the_usage_of_its_plan() {
    let client = TestClient::new().await;
    for body in [
        json!({ "url": "a.example" }),
        json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 5 }),
        json!({ "type": "component", "name": "Vendor", "vendorUrl": "https://www.githubstatus.com" }),
    ] {
        client.create_monitor(body).await;
    }
    let me = client.get("/api/v1/me").await.body;
    assert!(me["key"]["id"].is_string() && me["key"]["pageId"].is_null(), "{me}");
    let limits = *client.world.service.accounts.limits();
    let pages = client.get("/api/v1/pages").await.body["pages"].as_array().unwrap().len();
    let expected = json!({
        "name": "pro",
        "monitors": { "used": 2, "limit": limits.monitors(Plan::Pro) },
        "pages": { "used": pages, "limit": 100 },
        "requestsPerMinute": 120,
        "checkIntervalSeconds": limits.interval_ms[2] / 1000,
        "certificateIntervalSeconds": 3600,
        "domainIntervalSeconds": 21_600,
        "componentIntervalSeconds": 60,
        "features": { "email": true, "webhooks": true, "regions": true, "components": true },
    });
    assert_eq!(me["plan"], expected);
    client.world.service.accounts.set_plan(client.world.owner.id, Plan::Free).await.unwrap();
    let free = client.get("/api/v1/me").await.body["plan"].clone();
    assert_eq!((&free["name"], &free["componentIntervalSeconds"]), (&json!("free"), &Value::Null));
    assert_eq!(free["monitors"]["limit"], limits.monitors(Plan::Free));
    let none = json!({ "email": true, "webhooks": false, "regions": false, "components": false });
    assert_eq!(free["features"], none);
}

#[tokio::test]
async fn answers_on_old_paths_say_since_when_they_are_deprecated() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let id = monitor["id"].as_str().unwrap();
    let old = |rest: &str| client.shop_path(&format!("/checkpoints{rest}"));
    for path in [old(""), old(&format!("/{id}")), old("/nothing"), old(&format!("/{id}/checks"))] {
        let response = client.get(&path).await;
        assert_eq!(response.headers["deprecation"], "@1789344000", "{path}");
        let link = response.headers["link"].to_str().unwrap();
        assert_eq!(link, "<https://status.example/api/v1/docs#versions>; rel=\"deprecation\"; type=\"text/html\"");
        assert!(!response.headers.contains_key("sunset"), "no end date is set");
    }
    let unauthenticated = client.send("GET", &old(""), &[], "").await;
    assert_eq!(
        (unauthenticated.status, &unauthenticated.headers["deprecation"]),
        (401, &"@1789344000".parse().unwrap())
    );
    for path in [client.shop_path("/monitors"), client.shop_path(&format!("/monitors/{id}")), "/api/v1/me".to_owned()] {
        assert!(!client.get(&path).await.headers.contains_key("deprecation"), "{path}");
    }
}

#[tokio::test]
async fn me_returns_the_current_key() {
    let client = TestClient::new().await;
    let me = client.call(&client.page_key, "GET", "/api/v1/me", Value::Null).await.body;
    let key = &me["key"];
    assert_eq!((&key["name"], &key["access"]), (&json!("Robot"), &json!("write")));
    assert_eq!(key["pageId"], client.world.blog.id.to_string());
    assert_eq!(key["createdAt"], "2026-11-27T12:46:01.000Z");
    assert!(key["id"].as_str().unwrap().starts_with("key_"));
    assert_eq!(key.as_object().unwrap().len(), 5);
}

#[tokio::test]
async fn pages_are_listed_oldest_first_within_reach() {
    let client = TestClient::new().await;
    let slugs = |response: TestResponse| -> Vec<Value> {
        response.body["pages"].as_array().unwrap().iter().map(|page| page["slug"].clone()).collect()
    };
    assert_eq!(slugs(client.get("/api/v1/pages").await), ["shop", "journal"]);
    let bound = client.call(&client.page_key, "GET", "/api/v1/pages", Value::Null).await;
    assert_eq!(slugs(bound), ["journal"]);
}
