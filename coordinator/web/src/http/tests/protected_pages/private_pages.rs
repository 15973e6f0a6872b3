//! Tests of private pages: a sign-in link by email to allowed people, valid once, for a limited time, in one browser.

use parallax_core::delivery::{Delivery, DeliveryMessage};
use parallax_core::page::Page;
use parallax_core::page::access::AllowedVisitors;
use parallax_service::page_access::sign_in::SignInRequest;

use super::*;

impl TestClient {
    /// Makes the page "shop" private, for these people and domains.
    async fn private(&self, people: &str, domains: &str) -> Page {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let page = Page {
            private: true,
            allowed_visitors: AllowedVisitors { people: list(people), domains: list(domains) },
            ..self.world.shop.clone()
        };
        self.world.put_page(page.clone()).await;
        page
    }

    /// Requests a sign-in link, one second after the previous request.
    async fn ask(&self, email: &str, cookie: Option<&str>) -> TestResponse {
        self.world.clock.set(self.world.service.now() + SECOND);
        let body = format!("to=%2Fhistory&email={}", email.replace('@', "%40").replace('+', "%2B"));
        self.post_form("/p/shop/sign-in", cookie, &body).await
    }

    /// Sign-in emails so far, oldest first.
    fn links(&self) -> Vec<Delivery> {
        self.world.sent("page.sign-in")
    }
}

/// Returns the token of the link in an email.
fn token(mail: &Delivery) -> String {
    let DeliveryMessage::Mail(mail) = &mail.message else { panic!("{mail:?}") };
    assert!(mail.text.contains("Shop"), "{mail:?}");
    let (_, rest) = mail.text.split_once("/sign-in/link?t=").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_link_signs_in_the_requesting_browser_once_and_redirects() {
    let client = TestClient::new().await;
    client.private("ann@example.com", "").await;
    let form = client.get_with_cookie("/p/shop/history", None).await;
    assert!(form.status == 403 && form.text.contains("action=\"/p/shop/sign-in\""), "{form:?}");
    let reply = client.ask("Ann@example.com", None).await;
    assert!(reply.status == 200 && reply.text.contains("Check your inbox"), "{reply:?}");
    let browser = cookie(&reply);
    assert!(browser.starts_with("__Host-plx-browser=") && is_sealed(&reply), "{browser}");
    let mails = client.links();
    let (mail, link) = (&mails[0], format!("/p/shop/sign-in/link?t={}", token(&mails[0])));
    let DeliveryMessage::Mail(letter) = &mail.message else { panic!("links are mailed") };
    assert!(letter.text.contains("https://status.example/p/shop/sign-in/link?t="), "{}", letter.text);
    let body = format!("t={}", token(mail));
    // Link scanners change nothing, and the link does not work in another browser.
    for _ in 0..3 {
        let response = client.get_with_cookie(&link, None).await;
        assert!(response.status == 403 && response.text.contains("another browser"), "{response:?}");
        let response = client.post_form("/p/shop/sign-in/link", None, &body).await;
        assert!(response.status == 403 && response.text.contains("another browser"), "{response:?}");
        let response = client.get_with_cookie(&link, Some(&browser)).await;
        assert!(response.status == 200 && response.text.contains("Click once more"), "{response:?}");
    }
    let other = cookie(&client.ask("bob@example.com", None).await);
    assert_eq!(client.post_form("/p/shop/sign-in/link", Some(&other), &body).await.status, 403);
    let arrived = client.post_form("/p/shop/sign-in/link", Some(&browser), &body).await;
    assert_eq!((arrived.status, arrived.headers["location"].to_str().unwrap()), (303, "/p/shop/history"));
    let pass = cookie(&arrived);
    assert_eq!(client.get_with_cookie("/p/shop/history", Some(&pass)).await.status, 200);
    let repeated = client.post_form("/p/shop/sign-in/link", Some(&browser), &body).await;
    assert!(repeated.status == 403 && repeated.text.contains("not valid"), "{repeated:?}");
    assert!(!repeated.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn a_link_expires_after_fifteen_minutes_or_with_the_permission() {
    let client = TestClient::new().await;
    client.private("ann@example.com", "").await;
    let browser = cookie(&client.ask("ann@example.com", None).await);
    let first = format!("t={}", token(&client.links()[0]));
    let requested_at = client.world.service.now();
    client.world.clock.set(requested_at + 15 * MINUTE);
    assert_eq!(client.post_form("/p/shop/sign-in/link", Some(&browser), &first).await.status, 403);
    client.ask("ann@example.com", Some(&browser)).await;
    let second = format!("t={}", token(&client.links()[1]));
    client.private("bob@example.com", "").await;
    assert_eq!(client.post_form("/p/shop/sign-in/link", Some(&browser), &second).await.status, 403);
    client.private("ann@example.com", "").await;
    // A link is valid only for the page that it was requested for.
    client.world.put_page(Page { private: true, ..client.world.blog.clone() }).await;
    assert_eq!(client.post_form("/p/journal/sign-in/link", Some(&browser), &second).await.status, 403);
    let pass = cookie(&client.post_form("/p/shop/sign-in/link", Some(&browser), &second).await);
    assert_eq!(client.get_with_cookie("/p/shop", Some(&pass)).await.status, 200);
    client.private("bob@example.com", "").await;
    assert_eq!(
        client.get_with_cookie("/p/shop", Some(&pass)).await.status,
        403,
        "a removed person loses access at once"
    );
}

#[tokio::test]
async fn only_allowed_mailboxes_get_mail_and_the_reply_reveals_nothing() {
    let client = TestClient::new().await;
    client.private("ann@example.com", "firm.example").await;
    let mut replies = Vec::new();
    let addresses = [
        ("ann@example.com", 1),
        ("bob@example.com", 0),
        ("eve@firm.example", 1),
        ("eve@FIRM.example", 1),
        ("eve@evil-firm.example", 0),
        ("eve@firm.example.evil", 0),
        ("eve@mail.firm.example", 0),
        ("ann+tag@example.com", 0),
    ];
    let browser = cookie(&client.ask("nobody@example.com", None).await);
    for (address, mails) in addresses {
        client.world.clock.set(client.world.service.now() + MINUTE);
        let before = client.links().len();
        let reply = client.ask(address, Some(&browser)).await;
        assert_eq!(client.links().len() - before, mails, "{address}");
        replies.push((reply.status, reply.headers, reply.text));
    }
    assert!(replies.iter().all(|one| *one == replies[0]), "{replies:?}");
    let response = client.ask("nobody", Some(&browser)).await;
    assert!(response.status == 400 && response.text.contains("Please enter a valid email address"), "{response:?}");
}

#[tokio::test]
async fn sign_in_mails_to_a_mailbox_are_limited() {
    let client = TestClient::new().await;
    client.private("ann@example.com", "").await;
    for n in 0..5 {
        client.world.clock.set(client.world.service.now() + MINUTE);
        assert_eq!(client.ask("ann@example.com", None).await.status, 200);
        assert_eq!(client.links().len(), (n + 1).min(3));
    }
    for _ in 0..4 {
        assert_eq!(client.ask("x@example.com", None).await.status, 200);
    }
    let rejection = client.ask("x@example.com", None).await;
    assert_eq!((rejection.status, rejection.headers.contains_key("retry-after")), (429, true));
    client.world.clock.set(client.world.service.now() + 60 * MINUTE);
    assert_eq!(client.ask("ann@example.com", None).await.status, 200);
    assert_eq!(client.links().len(), 4);
    // The content of the email is not shown to anyone, not even the page owner.
    let id = client.links()[0].id.to_string();
    let opened = client.get(&client.shop_path(&format!("/deliveries/{id}"))).await;
    assert!(opened.status == 200 && !opened.text.contains("sign-in/link"), "{opened:?}");
    let repeated = client
        .call(&client.write_key, "POST", &client.shop_path(&format!("/deliveries/{id}/redeliver")), json!({}))
        .await;
    assert_eq!(repeated.status, 400, "{repeated:?}");
}

#[tokio::test]
async fn strangers_of_one_network_do_not_use_up_sign_in_links() {
    let client = TestClient::new().await;
    client.private("ann@example.com", "").await;
    let ask = async |network: u128| {
        let (email, address) = ("ann@example.com".to_owned(), "https://status.example/p/shop".to_owned());
        let request = SignInRequest {
            email,
            page_url: address,
            browser: [1; 16],
            client_ip: Some(network),
            redirect_to: String::new(),
        };
        client.world.service.page_access.request_sign_in("shop", &request).await.unwrap();
        client.links().len()
    };
    let mut sent = Vec::new();
    for network in [1, 1, 1, 1, 1, 2, 3] {
        sent.push(ask(network).await);
    }
    assert_eq!(sent, [1, 2, 3, 3, 3, 4, 5]);
    for network in 4..30 {
        ask(network).await;
    }
    assert_eq!(ask(30).await, 12, "requests from many addresses do not flood a mailbox");
}

#[tokio::test]
async fn a_private_page_with_a_password_is_private() {
    let client = TestClient::new().await;
    let page = client.private("ann@example.com", "").await;
    let hash = parallax_service::page_access::password::hash("one").await.unwrap();
    client.world.put_page(Page { password_hash: Some(hash), ..page }).await;
    let response = client.try_password("one").await;
    assert!(response.status == 403 && response.text.contains("type=\"email\""), "{response:?}");
    assert!(!response.headers.contains_key("set-cookie"));
}
