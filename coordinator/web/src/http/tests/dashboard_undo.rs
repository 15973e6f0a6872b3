//! Undo over HTTP: the toast's button, a second click, what others changed since, and who may.

use parallax_core::role::Role;
use parallax_core::time::MINUTE;
use serde_json::{Value, json};

use super::signed_in_browser::{between, hidden, location};
use super::{SignedInBrowser, TestClient};

/// The button of a screen's toast: address of its form, and its fields.
async fn button(client: &TestClient, browser: &SignedInBrowser, address: &str) -> (String, String, String) {
    let screen = client.open(browser, address).await;
    let toast = between(&screen.text, "data-toast>", "</form>");
    let field = |name: &str| between(toast, &format!("name=\"{name}\" value=\""), "\"").to_owned();
    assert_eq!(field("form_token"), browser.form_token);
    let action = between(toast, "action=\"", "\"").to_owned();
    assert!(action.starts_with("/app/undo/"), "{action}");
    (action, field("idempotency_key"), field("next"))
}

async fn paused(client: &TestClient, id: &str) -> Value {
    client.get(&client.shop_path(&format!("/monitors/{id}"))).await.body["monitor"]["paused"].clone()
}

#[tokio::test]
async fn a_pause_is_undone_by_the_button_of_its_toast_once() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let ids = [client.monitor("Website").await, client.monitor("Payments").await];
    let fields = [("id", ids[0].as_str()), ("id", ids[1].as_str()), ("do", "pause")];
    let done = client.submit(&browser, &client.screen("/monitors/bulk"), &fields).await;
    let (action, once, next) = button(&client, &browser, location(&done)).await;
    assert_eq!(next, client.screen("/monitors"));
    let fields = [("idempotency_key", once.as_str()), ("next", next.as_str())];
    let back = format!("{next}?done=undone&count=1");
    for click in ["first", "second"] {
        let undone = client.submit(&browser, &action, &fields).await;
        assert_eq!((undone.status, location(&undone)), (303, back.as_str()), "{click}: {}", undone.text);
        assert_eq!([paused(&client, &ids[0]).await, paused(&client, &ids[1]).await], [json!(false), json!(false)]);
    }
    let shown = client.open(&browser, &back).await.text;
    assert!(shown.contains("<span>Undone</span>") && !shown.contains(">Undo</button>"), "{shown}");
    // The toast's address has no button any more, and another form is refused in words.
    let stale = client.open(&browser, location(&done)).await.text;
    assert!(stale.contains("2 monitors paused, and undone since") && !stale.contains(">Undo</button>"), "{stale}");
    let again = client.submit(&browser, &action, &[("next", "https://evil.example/")]).await;
    assert!(again.status == 409 && again.text.contains("This change was undone already."), "{}", again.text);
    assert!(again.text.contains("href=\"/app\">Back</a>") && !again.text.contains("evil"), "{}", again.text);
    // One monitor's own screen.
    let path = client.screen(&format!("/monitors/{}", ids[0]));
    let done = client.submit(&browser, &format!("{path}/pause"), &[]).await;
    let (action, _, next) = button(&client, &browser, location(&done)).await;
    assert_eq!(next, path);
    assert_eq!(client.submit(&browser, &action, &[("next", &next)]).await.status, 303);
    assert_eq!(paused(&client, &ids[0]).await, false);
}

#[tokio::test]
async fn a_new_order_is_undone_by_the_button_of_its_toast() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let ids = [client.monitor("Website").await, client.monitor("Payments").await];
    let order = async || {
        let list = client.get(&client.shop_path("/monitors")).await.body["monitors"].clone();
        list.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let form = client.open(&browser, &client.screen("/monitors?order=edit")).await;
    let loaded = hidden(&form, "loaded");
    let fields = [("loaded", loaded.as_str()), ("id", &ids[0]), ("at.1", "2"), ("id", &ids[1]), ("at.2", "2")];
    let saved = client.submit(&browser, &client.screen("/monitors/order"), &fields).await;
    assert_eq!((saved.status, order().await), (303, vec![ids[1].clone(), ids[0].clone()]), "{}", saved.text);
    let (action, _, next) = button(&client, &browser, location(&saved)).await;
    assert_eq!(client.submit(&browser, &action, &[("next", &next)]).await.status, 303);
    assert_eq!(order().await, ids);
    let again = client.submit(&browser, &action, &[("next", &next)]).await;
    assert!(again.status == 409 && again.text.contains("This change was undone already."), "{}", again.text);
}

#[tokio::test]
async fn a_form_that_is_sent_again_after_its_undo_offers_no_undo() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let (id, gone) = (client.monitor("Website").await, client.monitor("Payments").await);
    client.call(&client.write_key, "DELETE", &client.shop_path(&format!("/monitors/{gone}")), Value::Null).await;
    // Partly done: the reply is the screen itself.
    let fields = [("id", id.as_str()), ("id", gone.as_str()), ("do", "pause"), ("idempotency_key", "0a")];
    let send = async || client.submit(&browser, &client.screen("/monitors/bulk"), &fields).await;
    for _ in 0..2 {
        let partly = send().await;
        assert!(partly.text.contains("1 of 2 changed") && partly.text.contains(">Undo</button>"), "{}", partly.text);
    }
    let action = between(&send().await.text, "data-toast>", "</form>").to_owned();
    let undone = client.submit(&browser, between(&action, "action=\"", "\""), &[]).await;
    assert_eq!((undone.status, paused(&client, &id).await), (303, json!(false)), "{}", undone.text);
    let again = send().await;
    assert!(again.text.contains("1 of 2 changed") && !again.text.contains(">Undo</button>"), "{}", again.text);
    assert!(again.text.contains("1 monitor paused, and undone since"), "{}", again.text);
    assert_eq!(paused(&client, &id).await, false);
}

#[tokio::test]
async fn the_keyboard_reaches_the_button_of_a_toast_first() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let id = client.monitor("Website").await;
    let done = client.submit(&browser, &client.screen("/monitors/bulk"), &[("pause", &id)]).await;
    let screen = client.open(&browser, location(&done)).await.text;
    let before = screen.split_once(">Undo</button>").unwrap().0;
    let reached: Vec<&str> = before.split("<body").nth(1).unwrap().split("<a ").skip(1).collect();
    assert!(reached.len() == 1 && reached[0].contains("class=\"skip\""), "{reached:?}");
}

#[tokio::test]
async fn an_undo_says_what_others_changed_since() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let id = client.monitor("Payments <b>").await;
    let done = client.submit(&browser, &client.screen("/monitors/bulk"), &[("pause", &id)]).await;
    let (action, _, next) = button(&client, &browser, location(&done)).await;
    let path = client.shop_path(&format!("/monitors/{id}"));
    client.call(&client.write_key, "PATCH", &path, json!({ "slowThresholdMs": 300 })).await;
    let refused = client.submit(&browser, &action, &[("next", &next)]).await;
    assert!(refused.status == 409 && refused.text.contains("Nothing was undone"), "{}", refused.text);
    let reason = "Payments &#60;b&#62; was changed since by Robot.";
    assert!(refused.text.contains(reason), "{}", refused.text);
    assert_eq!(paused(&client, &id).await, true);
}

#[tokio::test]
async fn only_who_made_a_change_can_undo_it() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let id = client.monitor("Payments").await;
    let done = client.submit(&browser, &client.screen("/monitors/bulk"), &[("pause", &id)]).await;
    let (action, _, _) = button(&client, &browser, location(&done)).await;
    let stranger = client.world.signed_in_at(&client.stranger_account().await, Role::Owner).await;
    let mut others = vec![SignedInBrowser::of(&client, &stranger)];
    for role in Role::ALL {
        others.push(client.sign_in(role).await);
    }
    for other in &others {
        let refused = client.submit(other, &action, &[]).await;
        let words = "A change can be undone for 10 minutes, by the person who made it.";
        assert!(refused.status == 404 && refused.text.contains(words), "{}", refused.text);
    }
    // The address alone gives nobody a button, and no form of another site undoes anything.
    let shown = client.open(&others[1], location(&done)).await.text;
    assert!(shown.contains("1 monitor paused") && !shown.contains(">Undo</button>"), "{shown}");
    let cookie = [("cookie", browser.cookie.as_str())];
    assert_eq!(client.send_form(&action, &cookie, "form_token=wrong").await.status, 403);
    assert_eq!(client.send("GET", &action, &cookie, "").await.status, 405);
    assert_eq!(paused(&client, &id).await, true);
    client.world.clock.set(client.world.service.now() + 10 * MINUTE);
    assert_eq!(client.submit(&browser, &action, &[]).await.status, 404);
    assert_eq!(paused(&client, &id).await, true);
}

#[tokio::test]
async fn what_was_deleted_comes_back_as_it_was() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    let list = async |path: &str| client.get(&client.shop_path(path)).await.body;
    let add = async |path: &str, name: &str, body: Value| {
        let created = client.call(&client.write_key, "POST", &client.shop_path(path), body).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.body[name]["id"].as_str().unwrap().to_owned()
    };
    let hook = json!({ "type": "webhook", "name": "Ops", "url": "https://hooks.example.com/x" });
    let destination = add("/destinations", "destination", hook).await;
    let deploy = add("/deploys", "deploy", json!({ "version": "v1" })).await;
    client.world.subscribed("ann@example.com").await;
    let subscriber = list("/subscribers").await["subscribers"][0]["id"].as_str().unwrap().to_owned();
    for (path, id, back) in [
        ("/destinations", &destination, "/alerts"),
        ("/deploys", &deploy, "/deploys"),
        ("/subscribers", &subscriber, "/subscribers"),
    ] {
        let before = list(path).await;
        let done = client.submit(&browser, &client.screen(&format!("{path}/{id}/delete")), &[]).await;
        assert!(location(&done).starts_with(&client.screen(&format!("{back}?undo="))), "{}", location(&done));
        assert_ne!(list(path).await, before, "{path}");
        let (action, _, next) = button(&client, &browser, location(&done)).await;
        let undone = client.submit(&browser, &action, &[("next", &next)]).await;
        assert_eq!(undone.status, 303, "{}", undone.text);
        assert_eq!(list(path).await, before, "{path}");
        let gone = client.open(&browser, &client.screen(&format!("{path}/{id}/delete"))).await;
        assert_eq!(gone.status, 405, "no question before what can be undone");
    }
}
