//! Forms of a monitor over HTTP: faults, tests, conflicts, secrets, and the limits of the plan.

use parallax_core::check::Check;
use parallax_core::id::MonitorId;
use parallax_core::plan::Plan;
use parallax_core::role::Role;
use serde_json::json;

use super::signed_in_browser::{hidden, location};
use super::*;

#[tokio::test]
async fn a_monitor_is_made_once_however_often_the_form_is_sent() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let form = client.open(&browser, &client.app_path("/new")).await;
    assert_eq!(form.status, 200, "{}", form.text);
    assert!(form.text.contains("0 of 100 monitors. First check within 5 s."), "{}", form.text);
    let once = hidden(&form, "idempotency_key");
    let fields = [
        ("idempotency_key", once.as_str()),
        ("type", "http"),
        ("url", "shop.example/health"),
        ("name", ""),
        ("groupName", "Shop"),
        ("slowThresholdMs", "250"),
        ("latencyLocations", ""),
        ("latencyLocations", "oceania"),
        ("slowThresholds[oceania]", "400"),
        ("headers.key", "X-Key"),
        ("headers.value", "secret"),
    ];
    let made = client.submit(&browser, &client.app_path("/new"), &fields).await;
    assert_eq!(made.status, 303, "{}", made.text);
    let again = client.submit(&browser, &client.app_path("/new"), &fields).await;
    assert_eq!((again.status, location(&again)), (303, location(&made)));
    let all = client.get(&client.shop_path("/monitors")).await;
    assert_eq!(all.body["monitors"].as_array().unwrap().len(), 1, "{all:?}");
    let monitor = &all.body["monitors"][0];
    assert_eq!((&monitor["name"], &monitor["url"]), (&json!("shop.example"), &json!("https://shop.example/health")));
    assert_eq!((&monitor["slowThresholdMs"], &monitor["slowThresholds"]), (&json!(250), &json!({ "oceania": 400 })));
    assert_eq!((&monitor["latencyLocations"], &monitor["group"]), (&json!(["oceania"]), &json!("Shop")));
    let screen = client.open(&browser, location(&made)).await;
    assert_eq!(screen.status, 200);
    for words in ["Monitor created", "Not checked yet.", "1 header", "No outage yet"] {
        assert!(screen.text.contains(words), "{words}: {}", screen.text);
    }
    assert!(!screen.text.contains("secret"), "{}", screen.text);
}

#[tokio::test]
async fn an_address_pasted_on_an_empty_screen_fills_the_form() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    for screen in [client.app_path(""), format!("/app/pages/{}", client.world.shop.id)] {
        let empty = client.open(&browser, &screen).await.text;
        let (_, form) = empty.split_once("class=\"first\"").unwrap();
        let (_, action) = form.split_once("action=\"").unwrap();
        let (_, name) = form.split_once("<input id=\"first\" name=\"").unwrap();
        for (pasted, values) in [
            ("https://shop.example/health", &["https://shop.example/health"][..]),
            ("shop.example", &["https://shop.example"]),
            ("db.example:5432", &["db.example", "5432"]),
        ] {
            let query: String = url::form_urlencoded::byte_serialize(pasted.as_bytes()).collect();
            let (action, name) = (action.split('"').next().unwrap(), name.split('"').next().unwrap());
            let filled = client.open(&browser, &format!("{action}?{name}={query}")).await.text;
            for value in values {
                assert!(filled.contains(&format!("value=\"{value}\"")), "{pasted}: {filled}");
            }
        }
    }
}

#[tokio::test]
async fn a_refused_form_keeps_what_was_typed() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    let path = client.app_path("/new");
    let long = "x".repeat(81);
    let fields = [("type", "tcp"), ("host", "db.example"), ("port", "many"), ("name", long.as_str())];
    let refused = client.submit(&browser, &path, &fields).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    for words in ["value=\"db.example\"", "value=\"many\"", &long, "Must be a whole number.", "2 fields need a change"]
    {
        assert!(refused.text.contains(words), "{words}: {}", refused.text);
    }
    let missing = client.submit(&browser, &path, &[("type", "heartbeat"), ("period", ""), ("name", "Job")]).await;
    assert!(missing.status == 400 && missing.text.contains("Is required."), "{}", missing.text);
    // Another type keeps what both have.
    let fields = [("type", "http"), ("type", "dns"), ("name", "Records"), ("url", "https://a.example")];
    let redrawn = client.submit(&browser, &client.app_path("/new/type"), &fields).await;
    assert_eq!(redrawn.status, 200);
    assert!(
        redrawn.text.contains("value=\"Records\"") && redrawn.text.contains("name=\"dnsType\""),
        "{}",
        redrawn.text
    );
    assert_eq!(client.get(&client.shop_path("/monitors")).await.body["monitors"], json!([]), "nothing was saved");
}

#[tokio::test]
async fn a_test_shows_each_region_and_saves_nothing() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let fields = [("type", "http"), ("url", "https://shop.example"), ("name", "Shop")];
    let tested = client.submit(&browser, &client.app_path("/new/test"), &fields).await;
    assert_eq!(tested.status, 200, "{}", tested.text);
    for words in [
        "1 of 2 regions would be up",
        "40 ms",
        "No agent in this region is in service.",
        "Nothing is saved and no one is notified.",
        "value=\"https://shop.example\"",
        "Use 100 ms",
    ] {
        assert!(tested.text.contains(words), "{words}: {}", tested.text);
    }
    let used = [fields.as_slice(), &[("useThreshold", "100")]].concat();
    let used = client.submit(&browser, &client.app_path("/new/type"), &used).await;
    assert_eq!(hidden(&used, "type"), "http");
    assert!(used.text.contains("value=\"100\""), "{}", used.text);
    let bad = client.submit(&browser, &client.app_path("/new/test"), &[("type", "tcp"), ("host", "-")]).await;
    assert!(bad.status == 400 && bad.text.contains("Is required."), "{}", bad.text);
    assert_eq!(client.get(&client.shop_path("/monitors")).await.body["monitors"], json!([]));
}

#[tokio::test]
async fn a_change_that_crosses_another_shows_both_values() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let id = client.monitor("Payments").await;
    let path = client.app_path(&format!("/{id}/edit"));
    let form = client.open(&browser, &path).await;
    assert_eq!(form.status, 200);
    let loaded = hidden(&form, "loaded");
    assert!(!loaded.is_empty(), "{}", form.text);
    let other = json!({ "slowThresholdMs": 400 });
    let changed = client.call(&client.write_key, "PATCH", &client.shop_path(&format!("/monitors/{id}")), other).await;
    assert_eq!(changed.status, 200);
    let fields = |loaded: &str, name: &str, threshold: &str| {
        [("loaded", loaded), ("url", "https://shop.example/health"), ("name", name), ("slowThresholdMs", threshold)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let send = async |fields: [(String, String); 4]| {
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        client.submit(&browser, &path, &fields).await
    };
    // A field that only one of them changed is no conflict.
    let renamed = send(fields(&loaded, "Payments API", "250")).await;
    assert_eq!(renamed.status, 303, "{}", renamed.text);
    let stored = client.stored(&id).await;
    assert_eq!((&stored["name"], &stored["slowThresholdMs"]), (&json!("Payments API"), &json!(400)));
    let crossed = send(fields(&loaded, "Payments", "300")).await;
    assert_eq!(crossed.status, 409, "{}", crossed.text);
    let drawn = |name: &str| crossed.text.contains(&format!("name=\"name\" type=\"text\" value=\"{name}\""));
    assert!(
        drawn("Payments API") && !drawn("Payments"),
        "the name that was left alone is the newest: {}",
        crossed.text
    );
    assert!(crossed.text.contains("Someone else set this to 400 meanwhile."), "{}", crossed.text);
    assert!(crossed.text.contains("value=\"300\""), "{}", crossed.text);
    assert_eq!(client.stored(&id).await["slowThresholdMs"], 400, "nothing was saved");
    let kept = send(fields(&hidden(&crossed, "loaded"), "Payments API", "300")).await;
    assert_eq!(kept.status, 303, "{}", kept.text);
    let stored = client.stored(&id).await;
    assert_eq!((&stored["name"], &stored["slowThresholdMs"]), (&json!("Payments API"), &json!(300)));
}

#[tokio::test]
async fn an_edit_leaves_secrets_alone_unless_it_replaces_them() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    let body = json!({ "url": "https://shop.example/", "headers": { "X-Key": "hidden-value" } });
    let id = client.create_monitor(body).await["id"].as_str().unwrap().to_owned();
    let path = client.app_path(&format!("/{id}/edit"));
    let form = client.open(&browser, &path).await;
    assert!(form.text.contains("1 header stored, never shown") && !form.text.contains("hidden-value"), "{}", form.text);
    let loaded = hidden(&form, "loaded");
    let headers = async || {
        let id: MonitorId = id.parse().unwrap();
        let caller = client.world.caller(KeyAccess::Read).await;
        match client.world.service.monitors.get(&caller, client.world.shop.id, id).await.unwrap().monitor.check {
            Check::Http(check) => check.headers,
            other => panic!("{other:?}"),
        }
    };
    for (choice, expected) in [("keep", 1), ("remove", 0)] {
        let fields = [
            ("loaded", loaded.as_str()),
            ("url", "https://shop.example/"),
            ("name", "shop.example"),
            ("secrets", choice),
            ("headers.key", ""),
            ("headers.value", ""),
            ("body", ""),
        ];
        let saved = client.submit(&browser, &path, &fields).await;
        assert_eq!(saved.status, 303, "{}", saved.text);
        assert_eq!(headers().await.len(), expected, "{choice}");
    }
}

#[tokio::test]
async fn headers_that_were_typed_replace_those_of_a_colleague_when_they_are_kept() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    let body = json!({ "url": "https://shop.example/" });
    let id = client.create_monitor(body).await["id"].as_str().unwrap().to_owned();
    let path = client.app_path(&format!("/{id}/edit"));
    let loaded = hidden(&client.open(&browser, &path).await, "loaded");
    let other = json!({ "headers": { "X-Key": "theirs" } });
    let changed = client.call(&client.write_key, "PATCH", &client.shop_path(&format!("/monitors/{id}")), other).await;
    assert_eq!(changed.status, 200);
    let typed =
        [("url", "https://shop.example/"), ("name", "shop.example"), ("headers.key", "X-New"), ("headers.value", "1")];
    let send = async |more: &[(&str, &str)]| client.submit(&browser, &path, &[&typed[..], more].concat()).await;
    let crossed = send(&[("loaded", &*loaded), ("body", "")]).await;
    assert_eq!(crossed.status, 409, "{}", crossed.text);
    let chosen = crossed.text.split("<input").find(|it| it.contains("name=\"secrets\"") && it.contains("checked"));
    assert!(chosen.is_some_and(|it| it.contains("value=\"replace\"")), "{}", crossed.text);
    let loaded = hidden(&crossed, "loaded");
    let kept = send(&[("loaded", &*loaded), ("body", ""), ("secrets", "replace")]).await;
    assert_eq!(kept.status, 303, "{}", kept.text);
    let caller = client.world.caller(KeyAccess::Read).await;
    let stored = client.world.service.monitors.get(&caller, client.world.shop.id, id.parse().unwrap()).await.unwrap();
    let Check::Http(check) = stored.monitor.check else { panic!("an http monitor") };
    assert_eq!(check.headers, [("X-New".to_owned(), "1".to_owned())]);
}

#[tokio::test]
async fn the_limits_of_the_plan_are_said_before_and_at_the_form() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    client.world.service.accounts.set_plan(client.world.owner.id, Plan::Free).await.unwrap();
    let vendor = client.open(&browser, &client.app_path("/new?type=component")).await;
    assert!(vendor.text.contains("Component monitors need the pro plan"), "{}", vendor.text);
    client.monitor("One").await;
    client.monitor("Two").await;
    let full = client.open(&browser, &client.app_path("/new")).await;
    assert!(full.text.contains("The free plan has 2 monitors, and all are used."), "{}", full.text);
    let fields = [("type", "http"), ("url", "https://three.example"), ("name", "Three")];
    let refused = client.submit(&browser, &client.app_path("/new"), &fields).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert!(refused.text.contains("value=\"Three\""), "{}", refused.text);
    assert!(refused.text.contains("The free plan allows 2 monitors"), "{}", refused.text);
}
