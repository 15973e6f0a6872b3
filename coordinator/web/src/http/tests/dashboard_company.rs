//! Company sign-in over HTTP: set up by an owner, used by a newcomer, and refused in words.

use parallax_core::role::Role;
use parallax_core::time::{DAY, MINUTE};
use parallax_service::people::SessionToken;
use parallax_service::people::soft_authenticator::SoftPasskey;
use parallax_service::test_world::{FakeProvider, ProviderFault};
use url::form_urlencoded;

use super::signed_in_browser::{between, hidden, location};
use super::{SignedInBrowser, TestClient, TestResponse};

const COMPANY: &str = "/app/account/company";

/// Sets the provider of the owner's account, and proves shop.example. Returns the owner's browser.
async fn set_up(client: &TestClient, provider: &FakeProvider) -> SignedInBrowser {
    let owner = client.sign_in(Role::Owner).await;
    let empty = client.open(&owner, COMPANY).await;
    assert!(empty.status == 200 && !empty.text.contains("Email domains"), "{}", empty.text);
    let callback = format!("https://status.example/sign-in/oidc/{}/callback", client.world.owner.id);
    assert!(empty.text.contains(&callback), "the address to give the provider");
    let fields =
        [("issuer", provider.issuer.as_str()), ("clientId", "parallax"), ("clientSecret", "canary-client-secret")];
    let saved = client.submit(&owner, COMPANY, &fields).await;
    assert_eq!((saved.status, location(&saved)), (303, "/app/account/company?done=saved&count=1"));
    let tested = client.submit(&owner, "/app/account/company/test", &[]).await;
    assert_eq!(location(&tested), "/app/account/company?done=company-works&count=1", "{}", tested.text);
    let added = client.submit(&owner, "/app/account/company/domains", &[("domain", "shop.example")]).await;
    assert_eq!(added.status, 303, "{}", added.text);
    let screen = client.open(&owner, COMPANY).await;
    assert!(!screen.text.contains("canary-client-secret") && screen.text.contains("Not proved"), "{}", screen.text);
    let value = between(&screen.text, "<code>parallax-", "</code>");
    client.world.answer_texts(vec![format!("parallax-{value}")]);
    let checked = client.submit(&owner, "/app/account/company/domains/check", &[("host", "shop.example")]).await;
    assert_eq!(checked.status, 303, "{}", checked.text);
    assert!(client.open(&owner, COMPANY).await.text.contains("Proved"));
    owner
}

/// Sends the form with an email address; returns the reply, and the cookie of the browser.
async fn begin(client: &TestClient) -> (TestResponse, String) {
    let form = "email=ann%40shop.example&next=%2Fapp%2Fsearch&keep=on";
    let reply = client.send_form("/sign-in/company", &[], form).await;
    let cookie = reply.headers.get("set-cookie").map_or("", |it| it.to_str().unwrap());
    let cookie = cookie.split(';').next().unwrap().to_owned();
    (reply, cookie)
}

/// Signs the provider's person in, and returns the address that the browser comes back to.
fn back(client: &TestClient, provider: &FakeProvider, reply: &TestResponse) -> String {
    let url = between(&reply.text, "content=\"0; url=", "\"").replace("&#38;", "&").replace("&amp;", "&");
    let answer = provider.sign_in(&url);
    let query: String = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("code", &answer.code), ("state", &answer.state)])
        .finish();
    format!("/sign-in/oidc/{}/callback?{query}", client.world.owner.id)
}

/// Signs Ann in by company sign-in: her browser, and its other cookie.
async fn sign_ann_in(client: &TestClient, provider: &FakeProvider) -> (SignedInBrowser, String) {
    let (reply, cookie) = begin(client).await;
    let done = client.send("GET", &back(client, provider, &reply), &[("cookie", &cookie)], "").await;
    assert_eq!(done.status, 303, "{}", done.text);
    (browser(client, &done), cookie)
}

/// The browser that got a session.
fn browser(client: &TestClient, reply: &TestResponse) -> SignedInBrowser {
    let cookie = reply.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let token = SessionToken::parse(cookie.strip_prefix("__Host-plx=").unwrap()).unwrap();
    SignedInBrowser { form_token: client.world.service.people.form_token(token.id()), cookie }
}

#[tokio::test]
async fn what_counts_elsewhere_is_refused_with_the_reason() {
    let client = TestClient::new().await;
    let provider = FakeProvider::start(&client.world.clock).await;
    set_up(&client, &provider).await;
    let (ann, _) = sign_ann_in(&client, &provider).await;
    let people = &client.world.service.people;
    let members = people.members(client.world.owner.id).await.unwrap();
    let id = members.iter().find(|(person, _)| person.email == "ann@shop.example").unwrap().0.id;
    let passkey = people.test_passkey(id, &mut SoftPasskey::new("https://status.example")).await;
    let of_passkey = format!("/app/account/security/passkeys/{passkey}");
    let remove = format!("{of_passkey}/remove");
    let account = client.world.foreign.account.to_string();
    for (path, fields) in [
        ("/app/account/security/password", [("password", "correct horse")]),
        ("/app/account/security/factor/begin", [("", "")]),
        ("/app/account/security/factor/off", [("", "")]),
        ("/app/account/security/factor/codes", [("", "")]),
        ("/app/account/security/passkeys/new", [("name", "Mine")]),
        (of_passkey.as_str(), [("name", "Mine")]),
        (remove.as_str(), [("", "")]),
        ("/app/account/switch", [("account", account.as_str())]),
    ] {
        let refused = client.submit(&ann, path, &fields).await;
        let reason = "opens this account alone: sign in with your password, a passkey or a mailed link to change this";
        assert!(refused.status == 400 && refused.text.contains(reason), "{path}: {} {}", refused.status, refused.text);
    }
    for path in ["/app/account/security/passkeys/new", of_passkey.as_str(), &remove] {
        assert_eq!(location(&client.open(&ann, path).await), "/app/account/security", "{path}");
    }
    // She confirms at the provider alone.
    client.world.clock.set(client.world.service.now() + 11 * MINUTE);
    let confirm = client.open(&ann, "/confirm?next=%2Fapp").await;
    assert!(confirm.text.contains("Confirm by company sign-in"), "{}", confirm.text);
    assert!(!confirm.text.contains("passkey") && !confirm.text.contains("type=\"password\""), "{}", confirm.text);
    // Where members need a second factor, the screen says how to get one.
    let owner = client.world.signed_in(Role::Owner).await;
    let owner = people.authenticate(&owner.token).unwrap().unwrap();
    people.set_factor_needed(&owner, true).await.unwrap();
    client.world.clock.set(client.world.service.now() + 7 * DAY);
    people.remove_factor_as_operator("ann@shop.example").await.unwrap();
    let (ann, _) = sign_ann_in(&client, &provider).await;
    let factor = "/app/account/security/factor";
    assert_eq!(location(&client.open(&ann, "/app").await), factor);
    let screen = client.open(&ann, factor).await;
    assert!(screen.text.contains("Sign out, sign in with your password or a mailed link"), "{}", screen.text);
    assert!(!screen.text.contains("QR code") && !screen.text.contains("passkeys/new"), "{}", screen.text);
}

#[tokio::test]
async fn a_confirmation_keeps_what_the_browser_keeps() {
    let client = TestClient::new().await;
    let provider = FakeProvider::start(&client.world.clock).await;
    set_up(&client, &provider).await;
    let (ann, cookie) = sign_ann_in(&client, &provider).await;
    client.world.clock.set(client.world.service.now() + 11 * MINUTE);
    let confirm = client.open(&ann, "/confirm?next=%2Fapp").await;
    assert!(confirm.text.contains("name=\"keep\" value=\"on\""), "{}", confirm.text);
    let action = format!("/sign-in/oidc/{}", client.world.owner.id);
    let fields = "next=%2Fapp&confirm=on&keep=on";
    let asked = client.send_form(&action, &[("cookie", &cookie)], fields).await;
    let set = asked.headers["set-cookie"].to_str().unwrap();
    assert!(set.contains("Max-Age=900"), "the cookie is that of mailed links, which count longer: {set}");
    let path = back(&client, &provider, &asked);
    let done = client.send("GET", &path, &[("cookie", &cookie)], "").await;
    assert!(done.headers["set-cookie"].to_str().unwrap().contains("Max-Age"), "{:?}", done.headers);
}

#[tokio::test]
async fn company_sign_ins_have_a_limit_of_their_own() {
    let client = TestClient::new().await;
    let provider = FakeProvider::start(&client.world.clock).await;
    set_up(&client, &provider).await;
    for number in 0..30 {
        assert_eq!(begin(&client).await.0.status, 200, "{number}");
    }
    assert_eq!(begin(&client).await.0.status, 429);
    let link = client.send_form("/sign-in/link", &[], "email=ann%40shop.example").await;
    assert_eq!(link.status, 200, "{}", link.text);
}

#[tokio::test]
async fn a_stale_confirmation_loses_nothing_that_was_typed() {
    let client = TestClient::new().await;
    let provider = FakeProvider::start(&client.world.clock).await;
    let owner = set_up(&client, &provider).await;
    client.world.clock.set(client.world.service.now() + 11 * MINUTE);
    assert_eq!(location(&client.open(&owner, COMPANY).await), "/confirm?next=%2Fapp%2Faccount%2Fcompany");
    let fields = [("issuer", "https://typed.example"), ("clientId", "typed-id"), ("clientSecret", "typed-secret")];
    for (path, fields, typed) in [
        (COMPANY, &fields[..], "value=\"typed-id\""),
        ("/app/account/company/domains", &[("domain", "typed.example")], "value=\"typed.example\""),
        ("/app/account/company/options", &[("covers", "true")], "name=\"covers\" value=\"true\" checked"),
    ] {
        let again = client.submit(&owner, path, fields).await;
        assert!(again.status == 403 && again.text.contains(typed), "{path}: {} {}", again.status, again.text);
        assert!(again.text.contains("href=\"/confirm?next=/app\"") && !again.text.contains("typed-secret"), "{path}");
    }
    let test = client.submit(&owner, "/app/account/company/test", &[]).await;
    assert_eq!(location(&test), "/confirm?next=%2Fapp%2Faccount%2Fcompany");
}

#[tokio::test]
async fn an_owner_sets_it_up_and_a_newcomer_signs_in() {
    let client = TestClient::new().await;
    let provider = FakeProvider::start(&client.world.clock).await;
    set_up(&client, &provider).await;
    assert!(client.send("GET", "/sign-in", &[], "").await.text.contains("formaction=\"/sign-in/company\""));
    let (reply, cookie) = begin(&client).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert!(reply.headers["content-security-policy"].to_str().unwrap().contains("form-action 'self'"));
    assert!(cookie.starts_with("__Host-plx-browser="), "{cookie}");
    let path = back(&client, &provider, &reply);
    // In another browser it is refused, and still counts in this one.
    let other = client.send("GET", &path, &[], "").await;
    assert!(other.status == 403 && other.text.contains("Begin again"), "{}", other.text);
    let done = client.send("GET", &path, &[("cookie", &cookie)], "").await;
    assert_eq!((done.status, location(&done)), (303, "/app/search"), "{}", done.text);
    let set = done.headers["set-cookie"].to_str().unwrap();
    assert!(set.starts_with("__Host-plx=") && set.contains("HttpOnly; SameSite=Lax; Secure"), "{set}");
    let session = set.split(';').next().unwrap().to_owned();
    let again = client.send("GET", &path, &[("cookie", &cookie)], "").await;
    assert!(again.status == 403 && !again.headers.contains_key("set-cookie"), "it counts once");
    let security = client.send("GET", "/app/account/security", &[("cookie", &session)], "").await;
    assert!(security.text.contains("You signed in by company sign-in."), "{}", security.text);
    assert!(!security.text.contains("New password") && !security.text.contains("Authenticator app"));
    let ann = SignedInBrowser { form_token: hidden(&security, "form_token"), cookie: session };
    assert_eq!(client.open(&ann, COMPANY).await.status, 403, "a viewer does not see the settings");
    let fields = [("password", "correct horse")];
    let refused = client.submit(&ann, "/app/account/security/password", &fields).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    // She confirms at the provider, too.
    client.world.clock.set(client.world.service.now() + 11 * 60_000);
    let confirm = client.open(&ann, "/confirm?next=%2Fapp").await;
    assert!(confirm.text.contains("Confirm by company sign-in"), "{}", confirm.text);
    let action = format!("/sign-in/oidc/{}", client.world.owner.id);
    let asked = client.send_form(&action, &[("cookie", &cookie)], "next=%2Fapp&confirm=on").await;
    assert!(asked.text.contains("prompt=login"), "{}", asked.text);
}

#[tokio::test]
async fn a_sign_in_begins_by_a_form_of_the_dashboard_alone() {
    let client = TestClient::new().await;
    let provider = FakeProvider::start(&client.world.clock).await;
    set_up(&client, &provider).await;
    provider.take_requests();
    let action = format!("/sign-in/oidc/{}", client.world.owner.id);
    let button = client.send("GET", &format!("{action}?next=https%3A%2F%2Fevil.example"), &[], "").await;
    assert!(button.status == 200 && button.text.contains("Continue to 127.0.0.1"), "{}", button.text);
    assert!(button.text.contains("name=\"next\" value=\"/app\"") && !button.headers.contains_key("set-cookie"));
    let form_type = ("content-type", "application/x-www-form-urlencoded");
    for path in [action.as_str(), "/sign-in/company"] {
        for headers in [&[form_type][..], &[form_type, ("sec-fetch-site", "cross-site")]] {
            let refused = client.send("POST", path, headers, "email=ann%40shop.example").await;
            assert_eq!(refused.status, 403, "{path}");
        }
    }
    assert_eq!(provider.take_requests(), [""; 0], "nothing was asked of the provider");
    for unknown in ["acc_0000000000000000000000000a", "nobody"] {
        for path in [format!("/sign-in/oidc/{unknown}"), format!("/sign-in/oidc/{unknown}/callback?state=a&code=b")] {
            let none = client.send("GET", &path, &[], "").await;
            assert!(matches!(none.status, 403 | 404) && none.text.contains("<h1>"), "{path}: {}", none.text);
        }
    }
}

#[tokio::test]
async fn what_goes_wrong_is_said_with_the_next_step() {
    let client = TestClient::new().await;
    let provider = FakeProvider::start(&client.world.clock).await;
    set_up(&client, &provider).await;
    let unknown = client.send_form("/sign-in/company", &[], "email=ann%40other.example").await;
    assert!(unknown.status == 404 && unknown.text.contains("No account has company sign-in for other.example"));
    let empty = client.send_form("/sign-in/company", &[], "email=&next=%2Fapp").await;
    assert!(empty.status == 200 && empty.text.contains("Work email"), "{}", empty.text);
    // The provider is down, with documents that are no longer kept.
    client.world.clock.set(client.world.service.now() + 2 * 3_600_000);
    provider.fail(ProviderFault::NoJson);
    let (down, _) = begin(&client).await;
    assert!(down.status == 502 && down.text.contains("mailed link"), "{}", down.text);
    provider.fail(ProviderFault::None);
    // It is asked again after half a minute.
    client.world.clock.set(client.world.service.now() + MINUTE);
    let (reply, cookie) = begin(&client).await;
    let path = back(&client, &provider, &reply);
    let code = between(&path, "code=", "&").to_owned();
    let cancelled = path.replace(&format!("code={code}"), "error=access_denied");
    let cancelled = client.send("GET", &cancelled, &[("cookie", &cookie)], "").await;
    assert!(cancelled.status == 403 && cancelled.text.contains("Sign-in cancelled"), "{}", cancelled.text);
    // Settings that break a rule keep what was typed, but for the secret.
    let owner = SignedInBrowser::of(&client, &client.world.signed_in(Role::Owner).await);
    let fields = [("issuer", "id.example"), ("clientId", "typed-id"), ("clientSecret", "typed-secret")];
    let refused = client.submit(&owner, COMPANY, &fields).await;
    assert!(refused.status == 400 && refused.text.contains("Must be an https address"), "{}", refused.text);
    assert!(refused.text.contains("value=\"typed-id\"") && !refused.text.contains("typed-secret"));
    let last = client.submit(&owner, "/app/account/company/options", &[("required", "true")]).await;
    assert_eq!(last.status, 303, "{}", last.text);
    let kept = client.submit(&owner, "/app/account/company/domains/remove", &[("host", "shop.example")]).await;
    assert!(kept.status == 400 && kept.text.contains("Is the last one"), "{}", kept.text);
    let asked = client.open(&owner, "/app/account/company/remove").await;
    assert!(asked.text.contains("Remove company sign-in?"), "{}", asked.text);
    let removed = client.submit(&owner, "/app/account/company/remove", &[]).await;
    assert_eq!(location(&removed), "/app/account/company?done=company-removed&count=1");
}
