//! Tests of wrong passwords: rate limits and response times.

use parallax_core::time::MINUTE;

use super::*;
use crate::http::server::client_ip::ClientIp;

#[tokio::test]
async fn wrong_passwords_are_counted_by_visitor_and_by_page() {
    let client = TestClient::new().await;
    client.protect_with_password("one").await;
    for n in 0..10 {
        assert_eq!(client.try_password("two").await.status, 403, "{n}");
    }
    let rejection = client.try_password("one").await;
    assert_eq!((rejection.status, rejection.headers["retry-after"].to_str().unwrap()), (429, "60"));
    assert!(rejection.text.contains("Too many attempts") && is_sealed(&rejection));
    let of_none = client.post_form("/p/none/password", None, "password=one").await;
    assert_eq!(of_none.status, 429, "the limit does not reveal which pages exist");
    client.world.clock.set(client.world.service.now() + MINUTE);
    assert_eq!(client.try_password("one").await.status, 303);
    // Correct passwords are not counted.
    for _ in 0..12 {
        assert_eq!(client.try_password("one").await.status, 303);
    }
    // After sixty wrong attempts from many addresses, those addresses have to wait, and others do not.
    let now = client.world.service.now();
    let slug = "shop";
    let number = {
        use std::hash::BuildHasher;
        u128::from(foldhash::quality::FixedState::default().hash_one(slug))
    };
    for n in 0..60 {
        let other_visitor = std::net::IpAddr::from([198, 51, n, 1]);
        client
            .context
            .login_throttle
            .begin(Some(ClientIp { address: other_visitor, is_forwarded: false }), number, now)
            .map(drop)
            .unwrap();
    }
    assert_eq!(client.try_password("one").await.status, 303, "other clients are not locked out");
    assert_eq!(client.try_password("two").await.status, 403);
    assert_eq!(client.try_password("one").await.status, 429);
}

#[tokio::test]
async fn clients_behind_a_local_proxy_are_limited_separately() {
    let mut client = TestClient::new().await;
    client.protect_with_password("one").await;
    client.peer = "127.0.0.1";
    let try_password = async |client: &TestClient, header: (&'static str, &str), password: &str| {
        let headers = [FORM, ("sec-fetch-site", "same-origin"), header];
        client.send("POST", "/p/shop/password", &headers, &format!("password={password}")).await.status
    };
    let (one, other) = (("x-forwarded-for", "192.0.2.7, 198.51.100.1"), ("forwarded", "for=203.0.113.1"));
    for _ in 0..10 {
        assert_eq!(try_password(&client, one, "two").await, 403);
    }
    assert_eq!(try_password(&client, one, "one").await, 429);
    assert_eq!(try_password(&client, other, "one").await, 303);
    // The headers of a client that is not a local proxy are ignored.
    client.peer = "198.51.100.1";
    assert_eq!(try_password(&client, other, "one").await, 429);
}

#[tokio::test]
async fn a_wrong_password_takes_as_long_for_a_missing_page() {
    let client = TestClient::new().await;
    client.protect_with_password("one").await;
    let paths = ["/p/shop/password", "/p/none/password", "/p/journal/password"];
    let mut fastest = [std::time::Duration::MAX; 3];
    for _ in 0..5 {
        for (path, shortest) in paths.iter().zip(&mut fastest) {
            let started = std::time::Instant::now();
            client.post_form(path, None, "password=two").await;
            // Other load on this machine makes it longer, but nothing makes it shorter.
            *shortest = started.elapsed().min(*shortest);
        }
    }
    // Every response includes the password hashing, which takes a hundred times as long as the rest.
    let (min, max) = (fastest.iter().min().unwrap(), fastest.iter().max().unwrap());
    assert!(*max < *min * 10, "{fastest:?}");
}
