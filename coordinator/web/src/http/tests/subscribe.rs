//! Tests of the subscription forms: GET requests change nothing, and responses do not reveal who is subscribed.

use parallax_core::page::Page;
use parallax_core::page::branding::Language;
use parallax_core::subscriber::{Contact, Subscriber};

use super::*;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

impl TestClient {
    async fn post(&self, path: &str, body: &str) -> TestResponse {
        self.send("POST", path, &[FORM], body).await
    }

    async fn get_page(&self, path: &str) -> TestResponse {
        self.send("GET", path, &[], "").await
    }

    fn subscribers(&self) -> Vec<Subscriber> {
        self.world.subscribers(&self.world.shop)
    }
}

#[tokio::test]
async fn a_visitor_subscribes_confirms_and_unsubscribes_without_a_script() {
    let client = TestClient::new().await;
    let [first, other] = [json!({ "url": "a.example", "name": "<i>One" }), json!({ "url": "b.example" })];
    let [first, _] = [client.create_monitor(first).await, client.create_monitor(other).await];
    let id = first["id"].as_str().unwrap();
    let form = client.get_page("/p/shop/subscribe").await;
    assert!(form.text.contains("&#60;i&#62;One") && !form.text.contains("<i>"), "{}", form.text);
    let subscribe = format!("email=ann%40example.com&monitors={id}");
    assert_eq!(client.post("/p/shop/subscribe", &subscribe).await.status, 200);
    let subscriber = client.subscribers().remove(0);
    assert_eq!((&subscriber.contact, subscriber.confirmed_at), (&Contact::Email("ann@example.com".to_owned()), None));
    let (confirm, leave) = (
        format!("/p/shop/confirm?t={}", subscriber.link_token()),
        format!("/p/shop/unsubscribe?t={}", subscriber.link_token()),
    );
    for path in [&confirm, &leave] {
        for method in ["GET", "HEAD"] {
            let page = client.send(method, path, &[], "").await;
            assert_eq!(page.status, 200, "{path}");
            for (name, value) in [
                ("cache-control", "no-store"),
                ("referrer-policy", "no-referrer"),
                ("x-robots-tag", "noindex"),
                ("x-content-type-options", "nosniff"),
            ] {
                assert_eq!(page.headers[name], value, "{path}");
            }
            let policy = page.headers["content-security-policy"].to_str().unwrap();
            for part in ["default-src 'none'", "script-src 'self'", "form-action 'self'"] {
                assert!(policy.contains(part), "{policy}");
            }
        }
        assert_eq!(client.subscribers(), std::slice::from_ref(&subscriber), "a GET request changes nothing");
    }
    let choice = client.get_page(&confirm).await.text;
    assert!(choice.contains(&format!("value=\"{id}\" checked")), "{choice}");

    let response = client.post("/p/shop/confirm", &format!("t={}", subscriber.link_token())).await;
    assert_eq!((response.status, client.subscribers()[0].monitors.clone()), (200, None));
    assert!(client.subscribers()[0].confirmed_at.is_some());
    let deleted = client.post("/p/shop/confirm", &format!("t={}&monitors=gone", subscriber.link_token())).await;
    assert_eq!((deleted.status, deleted.text.contains("Please choose at least one of these.")), (400, true));

    let unsubscribed = client.post("/p/shop/unsubscribe", &format!("t={}", subscriber.link_token())).await;
    assert_eq!((unsubscribed.status, client.subscribers().len()), (200, 0));
    assert_eq!(client.get_page(&confirm).await.status, 404);
}

#[tokio::test]
async fn a_mailbox_is_pending_until_its_owner_confirms_by_a_form() {
    let client = TestClient::new().await;
    let all = client.shop_path("/destinations");
    let body = json!({ "type": "email", "name": "Ops", "to": "ann@example.com" });
    let created = client.call(&client.write_key, "POST", &all, body).await;
    let created = &created.body["destination"];
    let destination_path = format!("{all}/{}", created["id"].as_str().unwrap());
    assert_eq!((&created["status"], &created["offReason"]), (&json!("pending"), &json!("unconfirmed")));
    let tested = client.call(&client.write_key, "POST", &format!("{destination_path}/test"), Value::Null).await;
    assert_eq!(tested.status, 400);
    client.world.put_page(Page { private: true, ..client.world.shop.clone() }).await;
    let path = format!("/p/shop/confirm-alerts?t={}", client.world.mailbox_link());
    for method in ["GET", "HEAD", "GET"] {
        let response = client.send(method, &path, &[], "").await;
        assert_eq!((response.status, &response.headers["cache-control"].to_str().unwrap()), (200, &"no-store"));
        let document = client.call(&client.write_key, "GET", &destination_path, Value::Null).await.body;
        assert_eq!(document["destination"]["status"], "pending", "a GET request changes nothing");
    }
    let form = client.get_page(&path).await.text;
    assert!(form.contains("ann@example.com") && form.contains("action=\"confirm-alerts\""), "{form}");
    // On a private page, an invalid link gives only the login form.
    for (path, body, status) in [("/p/shop/confirm-alerts", "t=x", 403), ("/p/nothing/confirm-alerts?t=x", "", 404)] {
        assert_eq!(client.post(path, body).await.status, status, "{path}");
    }
    let link = format!("t={}", client.world.mailbox_link());
    assert_eq!(client.post("/p/shop/confirm-alerts", &link).await.status, 200);
    assert!(client.get_page(&path).await.text.contains("<h2>Done</h2>"));
    let document = client.call(&client.write_key, "GET", &destination_path, Value::Null).await.body;
    let destination = &document["destination"];
    assert_eq!((&destination["status"], &destination["offReason"]), (&json!("active"), &Value::Null));
}

#[tokio::test]
async fn one_click_of_a_mail_program_unsubscribes_and_may_be_repeated() {
    let client = TestClient::new().await;
    for (kind, body) in [
        ("application/x-www-form-urlencoded", "List-Unsubscribe=One-Click"),
        (
            "multipart/form-data; boundary=b",
            "--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--",
        ),
    ] {
        let subscriber = client.world.subscribed("ann@example.com").await;
        // The page may have been renamed and made private in between.
        let hidden = Page { private: true, slug: "new".to_owned(), ..client.world.shop.clone() };
        client.world.put_page(hidden).await;
        let path = format!("/p/shop/unsubscribe?t={}", subscriber.link_token());
        let clicked = client.send("POST", &path, &[("content-type", kind)], body).await;
        assert_eq!((clicked.status, client.subscribers().len()), (200, 0), "{kind}");
        assert!(!clicked.headers.contains_key("location") && !clicked.headers.contains_key("set-cookie"));
        let page = client.world.shop.clone();
        client.world.put_page(page).await;
        assert_eq!(client.send("POST", &path, &[("content-type", kind)], body).await.status, 200);
    }
}

#[tokio::test]
async fn subscribing_reveals_nothing_of_other_subscribers() {
    let client = TestClient::new().await;
    client.world.subscribed("known@example.com").await;
    let mut responses = Vec::new();
    for address in ["known", "new", "new", "other"] {
        let body = format!("email={address}%40example.com");
        let reply = client.post("/p/shop/subscribe", &body).await;
        responses.push((reply.status, reply.headers, reply.text));
    }
    assert!(responses.iter().all(|reply| *reply == responses[0] && reply.0 == 200), "{responses:?}");
    assert_eq!(client.subscribers().len(), 3);
    let without_nonce = |response: TestResponse| {
        let digits = |text: &str| text.chars().filter(|sign| !sign.is_ascii_alphanumeric()).collect::<String>();
        (response.status, response.text.len(), digits(&response.text.replace(['+', '/', '='], "")))
    };
    let client = TestClient::new().await;
    let first = without_nonce(client.post("/p/shop/subscribe", "url=https%3A%2F%2Fhooks.example").await);
    let repeated = without_nonce(client.post("/p/shop/subscribe", "url=https%3A%2F%2Fhooks.example").await);
    assert_eq!((&first, client.subscribers().len()), (&repeated, 1));
}

#[tokio::test]
async fn invalid_input_is_returned_escaped_with_an_explanation() {
    let client = TestClient::new().await;
    for (body, rule) in [
        ("", "Please enter a valid email address."),
        ("email=%3Cscript%3E", "Please enter a valid email address."),
        (
            "url=http%3A%2F%2F127.0.0.1%2F%22%3E%3Cb%3E",
            "Please enter an http or https address that can be reached from the internet.",
        ),
        ("email=a%40b.example&monitors=x", "Please choose at least one of these."),
    ] {
        client.world.clock.set(client.world.service.now() + 60_000);
        let reply = client.post("/p/shop/subscribe", body).await;
        assert_eq!((reply.status, reply.text.contains(rule)), (400, true), "{body}: {}", reply.text);
        assert!(!reply.text.contains("<script>") && !reply.text.contains("\"><b>"), "{}", reply.text);
    }
    assert!(client.subscribers().is_empty());
    client.world.put_page(Page { language: Language::De, ..client.world.shop.clone() }).await;
    client.world.clock.set(client.world.service.now() + 60_000);
    let reply = client.post("/p/shop/subscribe", "email=x").await;
    assert!(reply.text.contains("Bitte geben Sie eine gültige E-Mail-Adresse an."), "{}", reply.text);
}

#[tokio::test]
async fn subscriptions_are_limited_per_address_and_page() {
    let client = TestClient::new().await;
    let subscribe = async |n: usize| client.post("/p/shop/subscribe", &format!("email=a{n}%40b.example")).await.status;
    for n in 0..5 {
        assert_eq!(subscribe(n).await, 200);
    }
    let rejection = client.post("/p/shop/subscribe", "email=b%40b.example").await;
    assert_eq!((rejection.status, rejection.headers["retry-after"].to_str().unwrap()), (429, "60"));
    assert_eq!((client.post("/p/journal/subscribe", "").await.status, client.subscribers().len()), (429, 5));
    client.world.clock.set(client.world.service.now() + 60_000);
    assert_eq!(subscribe(9).await, 200);
    for n in 10..35 {
        client.world.clock.set(client.world.service.now() + 60_000);
        assert_eq!(subscribe(n).await, if n < 34 { 200 } else { 429 }, "{n}: thirty per hour and address");
    }
}

#[tokio::test]
async fn a_private_page_shows_no_subscription_forms() {
    let client = TestClient::new().await;
    client.world.put_page(Page { private: true, ..client.world.shop.clone() }).await;
    for (method, path) in [
        ("GET", "subscribe"),
        ("POST", "subscribe"),
        ("GET", "confirm?t=x"),
        ("POST", "confirm?t=x"),
        ("GET", "unsubscribe?t=x"),
        ("POST", "unsubscribe?t=x"),
        ("POST", "unsubscribe"),
    ] {
        let hidden = client.send(method, &format!("/p/shop/{path}"), &[FORM], "").await;
        let none = client.send(method, &format!("/p/none/{path}"), &[FORM], "").await;
        assert_eq!((hidden.status, none.status), (403, 404), "{path}");
        assert!(!hidden.text.contains("Shop") && hidden.text.contains("/p/shop/sign-in\""), "{}", hidden.text);
    }
}
