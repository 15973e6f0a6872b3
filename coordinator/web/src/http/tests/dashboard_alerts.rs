//! Screens of alerts, subscribers and deploys over HTTP: forms, secrets, repetitions, and roles.

use parallax_core::role::Role;
use serde_json::{Value, json};

use super::signed_in_browser::{hidden, location};
use super::{SignedInBrowser, TestClient};

/// Text with everything that markup must not let through.
const HOSTILE: &str = "<script>alert(1)</script>\" onx='1'";
const HOOK: &str = "https://hooks.example.com/secret-path";

impl TestClient {
    pub(super) async fn list(&self, path: &str, name: &str) -> Vec<Value> {
        self.get(&self.shop_path(path)).await.body[name].as_array().unwrap().clone()
    }

    async fn add(&self, path: &str, name: &str, body: Value) -> String {
        let created = self.call(&self.write_key, "POST", &self.shop_path(path), body).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.body[name]["id"].as_str().unwrap().to_owned()
    }

    async fn webhook(&self) -> String {
        self.add("/destinations", "destination", json!({ "type": "webhook", "name": "Ops", "url": HOOK })).await
    }
}

async fn owner(client: &TestClient) -> SignedInBrowser {
    client.sign_in(Role::Owner).await
}

#[tokio::test]
async fn a_destination_is_created_once_with_the_fields_of_its_channel() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let path = client.screen("/destinations/new?type=telegram");
    let screen = client.open(&browser, &path).await;
    assert!(screen.text.contains("Bot token") && !screen.text.contains("Workflow URL"), "{}", screen.text);
    let refused =
        client.submit(&browser, &path, &[("type", "telegram"), ("name", ""), ("token", "x"), ("chat", "")]).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text.contains("fields need a change") && refused.text.contains("value=\"x\""), "{}", refused.text);
    let once = hidden(&screen, "idempotency_key");
    let path = client.screen("/destinations/new?type=webhook");
    let form = [
        ("idempotency_key", once.as_str()),
        ("type", "webhook"),
        ("name", "Ops"),
        ("url", HOOK),
        ("events", ""),
        ("events", "went-down"),
        ("monitorIds", ""),
    ];
    let before = client.list("/destinations", "destinations").await.len();
    let created = client.submit(&browser, &path, &form).await;
    assert_eq!(created.status, 303, "{}", created.text);
    assert_eq!(location(&client.submit(&browser, &path, &form).await), location(&created));
    let list = client.list("/destinations", "destinations").await;
    assert_eq!(list.len(), before + 1);
    let new = list.last().unwrap();
    assert_eq!((&new["events"], &new["monitorIds"]), (&json!(["went-down"]), &Value::Null));
    let shown = client.open(&browser, location(&created)).await.text;
    assert!(shown.contains("Send test") && shown.contains("whsec_") && shown.contains("Rotate secret"), "{shown}");
    let overview = client.open(&browser, &client.screen("/alerts")).await.text;
    assert!(overview.contains("Down; all monitors") && overview.contains("Ready"), "{overview}");
    assert!(!overview.contains("secret-path") && !overview.contains("whsec_"), "{overview}");
}

#[tokio::test]
async fn a_destination_is_changed_rotated_and_deleted() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let id = client.webhook().await;
    let own = client.screen(&format!("/destinations/{id}"));
    let destination =
        async || client.get(&client.shop_path(&format!("/destinations/{id}"))).await.body["destination"].clone();
    let before = destination().await;
    let screen = client.open(&browser, &own).await;
    let loaded = hidden(&screen, "loaded");
    let form = [
        ("loaded", loaded.as_str()),
        ("name", "On call"),
        ("url", HOOK),
        ("events", ""),
        ("monitorIds", ""),
        ("enabled", "false"),
    ];
    let saved = client.submit(&browser, &own, &form).await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    let after = destination().await;
    assert_eq!(
        (&after["name"], &after["enabled"], &after["secret"]),
        (&json!("On call"), &json!(false), &before["secret"])
    );
    // The form that was loaded earlier is about other values by now.
    let stale = [("loaded", loaded.as_str()), ("name", "Other"), ("url", HOOK), ("enabled", "false")];
    let conflict = client.submit(&browser, &own, &stale).await;
    assert!(
        conflict.status == 409 && conflict.text.contains("Someone else set this to “On call”"),
        "{}",
        conflict.text
    );
    assert_eq!(client.submit(&browser, &format!("{own}/enable"), &[]).await.status, 303);
    assert_eq!(destination().await["enabled"], true);
    let question = client.open(&browser, &format!("{own}/rotate-secret")).await;
    assert!(question.text.contains("Rotate the secret of “On call”?"), "{}", question.text);
    assert_eq!(destination().await["secretPending"], false, "a question changes nothing");
    let once = hidden(&question, "idempotency_key");
    for _ in 0..2 {
        let rotated = client.submit(&browser, &format!("{own}/rotate-secret"), &[("idempotency_key", &once)]).await;
        assert_eq!(rotated.status, 303, "{}", rotated.text);
    }
    let rotated = destination().await;
    assert!(rotated["secretPending"] == true && rotated["secret"] != before["secret"]);
    assert!(client.open(&browser, &own).await.text.contains("Use the new one only"));
    assert_eq!(client.submit(&browser, &format!("{own}/activate-secret"), &[]).await.status, 303);
    assert_eq!(destination().await["secretPending"], false);
    let once = hidden(&client.open(&browser, &own).await, "idempotency_key");
    for _ in 0..2 {
        let deleted = client.submit(&browser, &format!("{own}/delete"), &[("idempotency_key", &once)]).await;
        assert_eq!(deleted.status, 303, "{}", deleted.text);
    }
    assert_eq!(client.open(&browser, &own).await.status, 404);
}

#[tokio::test]
async fn settings_are_saved_and_faults_shown() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let path = client.screen("/alerts");
    let loaded = hidden(&client.open(&browser, &path).await, "loaded");
    let form = |minutes| [("loaded", loaded.as_str()), ("repeatMinutes", minutes), ("automaticIncidents", "false")];
    let refused = client.submit(&browser, &path, &form("4")).await;
    assert!(refused.status == 400 && refused.text.contains("Must be 5 to 1440, or null."), "{}", refused.text);
    assert_eq!(client.submit(&browser, &path, &form("45")).await.status, 303);
    let settings = client.get(&client.shop_path("/alerts")).await.body["alerts"].clone();
    assert_eq!(settings, json!({ "repeatMinutes": 45, "automaticIncidents": false }));
    assert!(client.open(&browser, &path).await.text.contains("value=\"45\" selected>Repeat every 45 min"));
    let off = [("repeatMinutes", ""), ("automaticIncidents", "true")];
    assert_eq!(client.submit(&browser, &path, &off).await.status, 303);
    assert_eq!(client.get(&client.shop_path("/alerts")).await.body["alerts"]["repeatMinutes"], Value::Null);
    for query in ["?status=lost", "?test=maybe", "?destination=x", "?before=x"] {
        assert_eq!(client.open(&browser, &client.screen(&format!("/alerts{query}"))).await.status, 400, "{query}");
    }
    let none = client.open(&browser, &client.screen("/alerts?status=failed&test=true")).await.text;
    assert!(none.contains("No delivery matches."), "{none}");
}

#[tokio::test]
async fn subscribers_are_asked_listed_searched_and_removed() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let path = client.screen("/subscribers");
    assert!(client.open(&browser, &path).await.text.contains("No subscribers yet."));
    let refused = client.submit(&browser, &path, &[("email", "nobody")]).await;
    assert!(refused.status == 400 && refused.text.contains("value=\"nobody\""), "{}", refused.text);
    let missing = client.submit(&browser, &path, &[("email", "")]).await;
    assert!(missing.status == 400 && missing.text.contains("Is required."), "{}", missing.text);
    let form = [("email", "ann@example.com"), ("monitorIds", ""), ("idempotency_key", "0a")];
    assert_eq!(client.submit(&browser, &path, &form).await.status, 303);
    assert_eq!(client.submit(&browser, &path, &form).await.status, 303);
    client.world.subscribed("bob@example.com").await;
    let list = client.open(&browser, &path).await.text;
    assert!(list.contains("2 subscribers") && list.contains("1 by email, 0 by webhook"), "{list}");
    assert!(list.contains("Asked, not confirmed") && list.contains("Confirmed 1"), "{list}");
    assert!(!list.contains("Ask again"), "it was asked today: {list}");
    let found = client.open(&browser, &client.screen("/subscribers?q=ANN")).await.text;
    assert!(found.contains("ann@example.com") && !found.contains("bob@example.com"), "{found}");
    let asked = client.open(&browser, &client.screen("/subscribers?state=confirmed")).await.text;
    assert!(!asked.contains("ann@example.com") && asked.contains("bob@example.com"), "{asked}");
    let none = client.open(&browser, &client.screen("/subscribers?q=zoe")).await.text;
    assert!(none.contains("No subscriber matches."), "{none}");
    // Viewers see masked addresses, and can't find out more by searching.
    let viewer = client.sign_in(Role::Viewer).await;
    let masked = client.open(&viewer, &client.screen("/subscribers?q=zoe")).await.text;
    assert!(masked.contains("a***@example.com") && !masked.contains("ann@example.com"), "{masked}");
    let bob = client.list("/subscribers", "subscribers").await.into_iter().find(|it| it["email"] == "bob@example.com");
    let removal = client.screen(&format!("/subscribers/{}/delete", bob.unwrap()["id"].as_str().unwrap()));
    assert!(list.contains(&format!("action=\"{removal}\"")) && !masked.contains(&removal), "{list}");
    assert_eq!(client.submit(&viewer, &removal, &[]).await.status, 403);
    assert_eq!(client.submit(&browser, &removal, &[("idempotency_key", "0b")]).await.status, 303);
    assert_eq!(client.submit(&browser, &removal, &[("idempotency_key", "0b")]).await.status, 303);
    assert_eq!(client.list("/subscribers", "subscribers").await.len(), 1);
}

#[tokio::test]
async fn a_subscriber_is_asked_again_for_the_same_monitors() {
    let client = TestClient::new().await;
    let path = client.screen("/subscribers");
    let monitor = client.create_monitor(json!({ "name": "Cart", "url": "a.example" })).await["id"].clone();
    let monitor = monitor.as_str().unwrap();
    client.add("/subscribers", "subscriber", json!({ "email": "ann@example.com", "monitorIds": [monitor] })).await;
    client.world.clock.set(client.world.service.now() + 1);
    client.add("/subscribers", "subscriber", json!({ "email": "bob@example.com" })).await;
    client.world.clock.set(client.world.service.now() + parallax_core::time::DAY);
    let browser = owner(&client).await;
    let list = client.open(&browser, &path).await.text;
    let forms: Vec<&str> = list.split("<form").filter(|form| form.contains("Ask again")).collect();
    let field = |form: &str, name: &str| {
        let value = form.split_once(&format!("name=\"{name}\" value=\""))?.1;
        value.split_once('"').map(|(value, _)| value.to_owned())
    };
    assert_eq!(
        forms.iter().map(|form| field(form, "email").unwrap()).collect::<Vec<_>>(),
        ["ann@example.com", "bob@example.com"]
    );
    let [ann, bob] = [0, 1].map(|n| field(forms[n], "idempotency_key").unwrap());
    assert_ne!(ann, bob, "each is a request of its own");
    assert_eq!([0, 1].map(|n| field(forms[n], "monitorIds")), [Some(monitor.to_owned()), None]);
    let ask = [("email", "ann@example.com"), ("monitorIds", monitor), ("idempotency_key", ann.as_str())];
    assert_eq!(client.submit(&browser, &path, &ask).await.status, 303);
    let asked = client.list("/subscribers", "subscribers").await;
    assert_eq!(asked[0]["monitorIds"], json!([monitor]));
    assert_eq!(client.list("/deliveries", "deliveries").await.len(), 3);
}

#[tokio::test]
async fn deploys_are_added_once_and_deleted() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let path = client.screen("/deploys");
    let empty = client.open(&browser, &path).await.text;
    assert!(empty.contains("No deploys yet.") && empty.contains("/deploys \\"), "{empty}");
    let refused = client.submit(&browser, &path, &[("version", ""), ("url", "javascript:alert(1)")]).await;
    assert!(refused.status == 400 && refused.text.contains("Is required."), "{}", refused.text);
    let form = [("version", HOSTILE), ("note", HOSTILE), ("at", "2026-11-26T10:00"), ("idempotency_key", "0a")];
    assert_eq!(client.submit(&browser, &path, &form).await.status, 303);
    assert_eq!(client.submit(&browser, &path, &form).await.status, 303);
    let deploys = client.list("/deploys", "deploys").await;
    assert_eq!((deploys.len(), &deploys[0]["at"]), (1, &json!("2026-11-26T10:00:00.000Z")));
    let own = client.screen(&format!("/deploys/{}/delete", deploys[0]["id"].as_str().unwrap()));
    let text = client.open(&browser, &path).await.text;
    assert!(!text.contains("<script>alert") && !text.contains("onx='1'"), "{text}");
    let viewer = client.sign_in(Role::Viewer).await;
    let shown = client.open(&viewer, &path).await.text;
    assert!(!shown.contains("Add a deploy") && !shown.contains("/delete\""), "{shown}");
    assert_eq!(client.submit(&viewer, &path, &form).await.status, 403);
    assert_eq!(client.submit(&viewer, &own, &[]).await.status, 403);
    assert_eq!(client.submit(&browser, &own, &[]).await.status, 303);
    assert!(client.list("/deploys", "deploys").await.is_empty());
}

#[tokio::test]
async fn editors_and_viewers_see_no_secret_and_change_no_destination() {
    let client = TestClient::new().await;
    let id = client.webhook().await;
    let own = client.screen(&format!("/destinations/{id}"));
    for role in [Role::Editor, Role::Viewer] {
        let browser = client.sign_in(role).await;
        for path in [client.screen("/alerts"), own.clone()] {
            let screen = client.open(&browser, &path).await;
            assert_eq!(screen.status, 200, "{path}");
            for absent in ["whsec_", "secret-path", "New destination", "Rotate secret", "/delete\"", "Save changes"] {
                assert!(!screen.text.contains(absent), "{role:?} {path}: {absent}");
            }
            assert_eq!(screen.text.contains("Send test"), role == Role::Editor, "{role:?} {path}");
        }
        for path in [client.screen("/destinations/new"), format!("{own}/rotate-secret")] {
            assert_eq!(client.open(&browser, &path).await.status, 403, "{role:?} {path}");
        }
        let form = [("type", "webhook"), ("name", "x"), ("url", HOOK), ("enabled", "false")];
        for rest in ["", "/enable", "/rotate-secret", "/activate-secret", "/delete"] {
            let refused = client.submit(&browser, &format!("{own}{rest}"), &form).await;
            assert_eq!(refused.status, 403, "{role:?} {rest}: {}", refused.text);
        }
        assert_eq!(client.submit(&browser, &client.screen("/destinations/new"), &form).await.status, 403);
    }
    let viewer = client.sign_in(Role::Viewer).await;
    assert_eq!(client.submit(&viewer, &format!("{own}/test"), &[]).await.status, 403);
    assert_eq!(client.submit(&viewer, &client.screen("/alerts"), &[("repeatMinutes", "30")]).await.status, 403);
    assert_eq!(client.submit(&viewer, &client.screen("/subscribers"), &[("email", "a@example.com")]).await.status, 403);
}

#[tokio::test]
async fn what_belongs_to_others_is_not_found() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let id = client.webhook().await;
    let (foreign, blog) = (client.world.foreign.id, client.world.blog.id);
    for path in [
        format!("/app/pages/{foreign}/alerts"),
        format!("/app/pages/{foreign}/destinations/new"),
        format!("/app/pages/{foreign}/destinations/{id}"),
        format!("/app/pages/{blog}/destinations/{id}"),
        format!("/app/pages/{foreign}/subscribers"),
        format!("/app/pages/{foreign}/deploys"),
        client.screen("/deliveries/del_nothing"),
    ] {
        let missing = client.open(&browser, &path).await;
        assert!(missing.status == 404 && missing.text.contains("Not found, or you have no access."), "{path}");
    }
    let form = [("name", "x"), ("email", "a@example.com"), ("version", "1"), ("repeatMinutes", "30")];
    for path in [
        format!("/app/pages/{foreign}/alerts"),
        format!("/app/pages/{foreign}/subscribers"),
        format!("/app/pages/{foreign}/deploys"),
        format!("/app/pages/{blog}/destinations/{id}"),
        format!("/app/pages/{blog}/destinations/{id}/test"),
        format!("/app/pages/{blog}/destinations/{id}/enable"),
        format!("/app/pages/{blog}/destinations/{id}/rotate-secret"),
        format!("/app/pages/{blog}/destinations/{id}/delete"),
        client.screen("/subscribers/sub_nothing/delete"),
        client.screen("/deploys/dep_nothing/delete"),
    ] {
        assert_eq!(client.submit(&browser, &path, &form).await.status, 404, "{path}");
    }
}
