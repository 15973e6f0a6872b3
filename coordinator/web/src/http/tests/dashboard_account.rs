//! Screens of the person's own account over HTTP: keys and sessions, by role and account.

use parallax_core::role::Role;
use parallax_core::time::MINUTE;
use parallax_service::people::NewPerson;

use super::signed_in_browser::{between, hidden, location};
use super::{SignedInBrowser, TestClient};

const PASSWORD: &str = "correct horse";

/// Signs in a new member with a password.
async fn with_password(client: &TestClient, role: Role) -> SignedInBrowser {
    let (email, password) = (format!("{}@example.com", role.name()), Some(PASSWORD.to_owned()));
    let people = &client.world.service.people;
    let new = NewPerson { email, name: "Ann <b>".to_owned(), role, password };
    let person = people.add_as_operator(client.world.owner.id, &new).await.unwrap();
    SignedInBrowser::of(client, &people.test_session(client.world.owner.id, person.id).await)
}

#[tokio::test]
async fn a_key_is_created_shown_once_and_revoked() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let form = client.open(&owner, "/app/account/keys/new").await;
    assert!(form.status == 200 && form.text.contains("All pages") && form.text.contains("Shop"), "{}", form.text);
    let once = hidden(&form, "idempotency_key");
    let submit = async |name: &str, page: &str| {
        let fields = [("idempotency_key", once.as_str()), ("name", name), ("access", "write"), ("page", page)];
        client.submit(&owner, "/app/account/keys/new", &fields).await
    };
    let shop = client.world.shop.id.to_string();
    for (name, page, fault) in [
        ("", shop.as_str(), "Must be 1 to 80 characters."),
        ("deploys", &client.world.foreign.id.to_string(), "Must be a page of this account."),
    ] {
        let refused = submit(name, page).await;
        assert!(refused.status == 400 && refused.text.contains(fault), "{}", refused.text);
        assert!(refused.text.contains(&once), "the form keeps its key");
    }
    let made = submit("deploys <b>", &shop).await;
    assert!(made.status == 201 && made.text.contains("it is shown only once"), "{}", made.text);
    assert!(!made.text.contains("<b>deploys <b>"), "{}", made.text);
    let key = between(&made.text, "<code>plx_", "</code>");
    let key = format!("plx_{key}");
    assert_eq!(client.call(&key, "GET", &format!("/api/v1/pages/{shop}"), serde_json::Value::Null).await.status, 200);
    let again = submit("deploys <b>", &shop).await;
    assert_eq!((again.status, location(&again)), (303, "/app/account/keys"), "a second click makes no second key");
    let list = client.open(&owner, "/app/account/keys").await;
    assert!(list.text.contains("deploys &#60;b&#62;") && !list.text.contains("plx_"), "{}", list.text);
    assert_eq!(list.text.matches("deploys &#60;b&#62;</b>").count(), 1);
    let row = list.text.split("<tr>").find(|row| row.contains("deploys &#60;")).unwrap();
    let path = between(row, "action=\"", "\"");
    let once = between(row, "name=\"idempotency_key\" value=\"", "\"");
    let revoked = client.submit(&owner, path, &[("idempotency_key", once)]).await;
    assert_eq!(revoked.status, 303);
    assert!(location(&revoked).starts_with("/app/account/keys?undo="), "{}", location(&revoked));
    assert!(location(&revoked).ends_with("&done=key-revoked&count=1"), "{}", location(&revoked));
    let shown = client.open(&owner, location(&revoked)).await.text;
    assert!(shown.contains("deploys &#60;b&#62; revoked. It was ") && shown.contains(">Undo</button>"), "{shown}");
    assert_eq!(client.call(&key, "GET", "/api/v1/me", serde_json::Value::Null).await.status, 401);
    let again = client.submit(&owner, path, &[("idempotency_key", once)]).await;
    assert_eq!((again.status, location(&again)), (303, location(&revoked)), "a second click");
    let without_key = client.submit(&owner, path, &[]).await;
    assert_eq!((without_key.status, location(&without_key)), (303, "/app/account/keys?done=key-revoked&count=1"));
}

#[tokio::test]
async fn a_new_key_needs_a_fresh_confirmation_of_the_password() {
    let client = TestClient::new().await;
    let owner = with_password(&client, Role::Owner).await;
    client.world.clock.set(client.world.service.now() + 11 * MINUTE);
    let asked = client.open(&owner, "/app/account/keys/new").await;
    assert_eq!((asked.status, location(&asked)), (303, "/confirm?next=%2Fapp%2Faccount%2Fkeys%2Fnew"));
    let fields = [("name", "deploys"), ("access", "read")];
    let refused = client.submit(&owner, "/app/account/keys/new", &fields).await;
    assert_eq!((refused.status, location(&refused)), (303, "/confirm?next=%2Fapp%2Faccount%2Fkeys%2Fnew"));
    let form = client.open(&owner, location(&asked)).await;
    assert!(form.status == 200 && form.text.contains("value=\"/app/account/keys/new\""), "{}", form.text);
    let confirm = async |password: &str| {
        client.submit(&owner, "/confirm", &[("next", "/app/account/keys/new"), ("current", password)]).await
    };
    let wrong = confirm("wrong password").await;
    assert!(wrong.status == 400 && wrong.text.contains("Is wrong."), "{}", wrong.text);
    let done = confirm(PASSWORD).await;
    assert_eq!((done.status, location(&done)), (303, "/app/account/keys/new"));
    assert_eq!(client.open(&owner, "/app/account/keys/new").await.status, 200);
}

#[tokio::test]
async fn only_owners_manage_keys_and_only_those_of_their_account() {
    let client = TestClient::new().await;
    let stranger = client.world.signed_in_at(&client.stranger_account().await, Role::Owner).await;
    let stranger = SignedInBrowser::of(&client, &stranger);
    let key = client.world.service.keys.list(client.world.owner.id).await.unwrap()[0].id;
    let revoke = format!("/app/account/keys/{key}/revoke");
    for role in [Role::Editor, Role::Viewer] {
        let member = client.sign_in(role).await;
        for path in ["/app/account/keys", "/app/account/keys/new"] {
            let refused = client.open(&member, path).await;
            let expected = format!("Your role ({}) may not do this.", role.name());
            assert!(refused.status == 403 && refused.text.contains(&expected), "{}", refused.text);
        }
        assert_eq!(client.submit(&member, "/app/account/keys/new", &[("name", "a")]).await.status, 403);
        assert_eq!(client.submit(&member, &revoke, &[]).await.status, 403);
        let security = client.open(&member, "/app/account/security").await;
        assert!(security.status == 200 && !security.text.contains("/app/account/keys\""), "{}", security.text);
    }
    let missing = client.submit(&stranger, "/app/account/keys/key_0000000000000000000000000a/revoke", &[]).await;
    let foreign = client.submit(&stranger, &revoke, &[]).await;
    assert_eq!((foreign.status, location(&foreign)), (303, location(&missing)), "a foreign key is answered like none");
    assert_eq!(client.world.service.keys.list(client.world.owner.id).await.unwrap()[0].id, key);
}

#[tokio::test]
async fn a_person_sees_and_ends_their_own_sessions_alone() {
    let client = TestClient::new().await;
    let viewer = with_password(&client, Role::Viewer).await;
    let headers = [("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/130.0")];
    let form = format!("email=viewer@example.com&password={}", PASSWORD.replace(' ', "+"));
    let second = client.send_form("/sign-in", &headers, &form).await;
    let second = second.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let other = client.sign_in(Role::Owner).await;
    let screen = client.open(&viewer, "/app/account/security").await;
    assert!(screen.text.contains("Firefox on Linux") && screen.text.contains("192.0.2.0/24"), "{}", screen.text);
    assert!(screen.text.contains("this one") && !screen.text.contains("Ann <b>"), "{}", screen.text);
    let row = screen.text.split("<li>").find(|row| row.contains("Firefox on Linux")).unwrap();
    let end = between(row, "action=\"", "\"").to_owned();
    assert!(end.ends_with("/end"), "{end}");
    client.submit(&other, &end, &[]).await;
    assert_eq!(client.send("GET", "/app/account/security", &[("cookie", &second)], "").await.status, 200, "not theirs");
    let ended = client.submit(&viewer, &end, &[]).await;
    let again = client.submit(&viewer, &end, &[]).await;
    assert_eq!((ended.status, location(&again)), (303, location(&ended)), "a second click");
    assert_eq!(client.send("GET", "/app/account/security", &[("cookie", &second)], "").await.status, 303);
    assert_eq!(client.open(&viewer, "/app/account/security").await.status, 200);
}

#[tokio::test]
async fn a_changed_password_ends_all_other_sessions() {
    let client = TestClient::new().await;
    let owner = with_password(&client, Role::Owner).await;
    let form = |password: &str| format!("email=owner@example.com&password={}", password.replace(' ', "+"));
    let sign_in = async |password: &str| client.send_form("/sign-in", &[], &form(password)).await;
    let second = sign_in(PASSWORD).await;
    let second = second.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let change = async |current: &str, password: &str| {
        let fields = [("current", current), ("password", password)];
        client.submit(&owner, "/app/account/security/password", &fields).await
    };
    for (current, password, fault) in
        [("wrong password", "another horse", "Is wrong."), (PASSWORD, "short", "Must be at least 10 characters.")]
    {
        let refused = change(current, password).await;
        assert!(refused.status == 400 && refused.text.contains(fault), "{}", refused.text);
    }
    let changed = change(PASSWORD, "another horse").await;
    assert_eq!((changed.status, location(&changed)), (303, "/app/account/security?done=saved&count=1"));
    let new = changed.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    for (cookie, expected) in [(&new, 200), (&owner.cookie, 303), (&second, 303)] {
        let status = client.send("GET", "/app/account/security", &[("cookie", cookie)], "").await.status;
        assert_eq!(status, expected);
    }
    assert_eq!((sign_in(PASSWORD).await.status, sign_in("another horse").await.status), (403, 303));
}
