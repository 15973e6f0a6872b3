//! Secrets of destinations on the dashboard: shown for ten minutes after a confirmation, and never lost by a form that
//! was drawn without them.

use parallax_core::role::Role;
use parallax_core::time::{HOUR, MINUTE};
use serde_json::{Value, json};

use super::signed_in_browser::{between, hidden, location};
use super::{SignedInBrowser, TestClient, TestResponse};

const HOOK: &str = "https://hooks.example.com/secret-path";

impl TestClient {
    async fn add_destination(&self, body: Value) -> String {
        let created = self.call(&self.write_key, "POST", &self.shop_path("/destinations"), body).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.body["destination"]["id"].as_str().unwrap().to_owned()
    }

    async fn stored_destination(&self, id: &str) -> Value {
        self.get(&self.shop_path(&format!("/destinations/{id}"))).await.body["destination"].clone()
    }
}

/// An owner whose confirmation has expired.
async fn unconfirmed_owner(client: &TestClient) -> SignedInBrowser {
    let owner = client.sign_in(Role::Owner).await;
    client.world.clock.set(client.world.service.now() + 11 * MINUTE);
    owner
}

fn asks_to_confirm(response: &TestResponse, next: &str) -> bool {
    let next: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
    response.status == 303 && location(response) == format!("/confirm?next={next}")
}

#[tokio::test]
async fn secrets_of_a_destination_need_a_fresh_confirmation() {
    let client = TestClient::new().await;
    client.world.receive();
    let id = client.add_destination(json!({ "type": "webhook", "name": "Ops", "url": HOOK })).await;
    let own = client.screen(&format!("/destinations/{id}"));
    let confirmed = client.sign_in(Role::Owner).await;
    let shown = client.open(&confirmed, &own).await.text;
    assert!(shown.contains("whsec_") && shown.contains("secret-path") && !shown.contains("/confirm?"), "{shown}");
    let sent = client.submit(&confirmed, &format!("{own}/test"), &[]).await;
    let delivery = between(&format!("{}&", location(&sent)), "test=", "&").to_owned();
    let delivery = client.screen(&format!("/deliveries/{delivery}"));
    assert!(client.open(&confirmed, &delivery).await.text.contains("secret-path"), "as curl");
    let entries = || async { client.open(&confirmed, "/app/account/audit?action=secrets+shown").await.text };
    assert_eq!(entries().await.matches("Was shown the secrets of destination").count(), 1, "once an hour");
    client.world.clock.set(client.world.service.now() + HOUR);
    client.open(&confirmed, &own).await;
    assert_eq!(
        entries().await.matches("Was shown the secrets of destination").count(),
        1,
        "not without a confirmation"
    );

    let browser = unconfirmed_owner(&client).await;
    let before = client.stored_destination(&id).await;
    for path in [&own, &delivery] {
        let screen = client.open(&browser, path).await;
        assert_eq!(screen.status, 200);
        for secret in ["secret-path", before["secret"].as_str().unwrap()] {
            assert!(!screen.text.contains(secret), "{path}: {}", screen.text);
        }
        assert!(screen.text.contains("/confirm?next=%2Fapp%2Fpages%2F"), "{path}: {}", screen.text);
    }
    let rotate = format!("{own}/rotate-secret");
    assert!(asks_to_confirm(&client.open(&browser, &rotate).await, &rotate));
    assert!(asks_to_confirm(&client.submit(&browser, &rotate, &[]).await, &rotate));
    assert!(asks_to_confirm(&client.submit(&browser, &format!("{own}/activate-secret"), &[]).await, &own));
    assert_eq!(client.stored_destination(&id).await, before, "nothing was rotated");
}

#[tokio::test]
async fn a_form_without_its_secrets_keeps_them_unless_others_are_entered() {
    let client = TestClient::new().await;
    let id = client.add_destination(json!({ "type": "webhook", "name": "Ops", "url": HOOK })).await;
    let bot = json!({ "type": "telegram", "name": "Bot", "token": "123456:abcdefghijklmnop", "chat": "-100123" });
    let bot = client.add_destination(bot).await;
    let browser = unconfirmed_owner(&client).await;
    let own = client.screen(&format!("/destinations/{id}"));
    let screen = client.open(&browser, &own).await;
    assert!(screen.text.contains("Stored, never shown. Leave it empty to keep it."), "{}", screen.text);
    let loaded = hidden(&screen, "loaded");
    let form = |name, url| [("loaded", loaded.as_str()), ("name", name), ("url", url), ("enabled", "true")];
    assert_eq!(client.submit(&browser, &own, &form("On call", "")).await.status, 303);
    let after = client.stored_destination(&id).await;
    assert_eq!((&after["name"], &after["url"]), (&json!("On call"), &json!(HOOK)));
    // A form about values that someone changed meanwhile: the answer has no secret, either.
    let conflict = client.submit(&browser, &own, &form("Other", "")).await;
    assert!(conflict.status == 409 && !conflict.text.contains("secret-path"), "{}", conflict.text);
    let loaded = hidden(&conflict, "loaded");
    let other = "https://hooks.example.com/other-path";
    let form = [("loaded", loaded.as_str()), ("name", "On call"), ("url", other), ("enabled", "true")];
    assert_eq!(client.submit(&browser, &own, &form).await.status, 303);
    assert_eq!(client.stored_destination(&id).await["url"], other);

    let own = client.screen(&format!("/destinations/{bot}"));
    let screen = client.open(&browser, &own).await;
    assert!(screen.text.contains("-100123") && !screen.text.contains("abcdefghijklmnop"), "{}", screen.text);
    let loaded = hidden(&screen, "loaded");
    let form = [("loaded", loaded.as_str()), ("name", "Bot"), ("token", ""), ("chat", "-100456"), ("enabled", "true")];
    assert_eq!(client.submit(&browser, &own, &form).await.status, 303);
    let after = client.stored_destination(&bot).await;
    assert_eq!((&after["token"], &after["chat"]), (&json!("123456:abcdefghijklmnop"), &json!("-100456")));
}

#[tokio::test]
async fn a_refused_test_says_why_and_leaves_the_form_filled() {
    let client = TestClient::new().await;
    let id = client.add_destination(json!({ "type": "email", "name": "Duty", "to": "duty@example.org" })).await;
    let own = client.screen(&format!("/destinations/{id}"));
    let why = "mailbox has not been confirmed yet";
    let owner = client.sign_in(Role::Owner).await;
    let refused = client.submit(&owner, &format!("{own}/test"), &[]).await;
    assert!(refused.status == 400 && refused.text.contains(why), "{}", refused.text);
    for value in ["value=\"duty@example.org\"", "value=\"Duty\""] {
        assert!(refused.text.contains(value), "saving an empty form would clear it: {}", refused.text);
    }
    let loaded = hidden(&refused, "loaded");
    assert_eq!(loaded, hidden(&client.open(&owner, &own).await, "loaded"));
    let editor = client.sign_in(Role::Editor).await;
    let refused = client.submit(&editor, &format!("{own}/test"), &[]).await;
    assert!(refused.status == 400 && refused.text.contains(why), "{}", refused.text);
    assert!(!refused.text.contains("Save changes"), "{}", refused.text);
}

#[tokio::test]
async fn viewers_read_no_bodies_of_deliveries() {
    let client = TestClient::new().await;
    client.world.receive();
    let id = client.add_destination(json!({ "type": "webhook", "name": "Ops", "url": HOOK })).await;
    let own = client.screen(&format!("/destinations/{id}"));
    let editor = client.sign_in(Role::Editor).await;
    let result = location(&client.submit(&editor, &format!("{own}/test"), &[]).await).to_owned();
    let delivery = between(&format!("{result}&"), "test=", "&").to_owned();
    let delivery = client.screen(&format!("/deliveries/{delivery}"));
    let viewer = client.sign_in(Role::Viewer).await;
    for (path, shows_body) in [(&result, false), (&delivery, true)] {
        let read = client.open(&editor, path).await.text;
        assert!(read.contains("taken"), "{read}");
        assert_eq!(read.contains("went-down"), shows_body, "{read}");
        let hidden = client.open(&viewer, path).await.text;
        assert!(!hidden.contains("taken") && !hidden.contains("went-down"), "{hidden}");
    }
    let text = client.open(&viewer, &delivery).await.text;
    assert!(text.contains("Your role (viewer) does not show bodies."), "{text}");
    assert!(!text.contains("only its receiver may know"), "{text}");
}
