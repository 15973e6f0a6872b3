//! Sign-in to the dashboard over HTTP: sessions, forged forms, mailed links, and what strangers can learn.

use parallax_core::delivery::DeliveryMessage;
use parallax_core::role::Role;
use parallax_service::people::{NewPerson, SessionToken};

use super::signed_in_browser::location;
use super::{SignedInBrowser, TestClient, TestResponse};

const EMAIL: &str = "ann@example.com";
const PASSWORD: &str = "correct horse";

/// A client whose owner's account has a member with a password.
async fn client() -> TestClient {
    let client = TestClient::new().await;
    let (email, password) = (EMAIL.to_owned(), Some(PASSWORD.to_owned()));
    let ann = NewPerson { email, name: "Ann".to_owned(), role: Role::Owner, password };
    client.world.service.people.add_as_operator(client.world.owner.id, &ann).await.unwrap();
    client
}

async fn sign_in(client: &TestClient, email: &str, password: &str, headers: &[(&'static str, &str)]) -> TestResponse {
    let form = format!("email={email}&password={}&keep=on&next=%2Fapp%3Frange%3D7d", password.replace(' ', "+"));
    client.send_form("/sign-in", headers, &form).await
}

/// Returns the cookie that a response sets, as the browser sends it back.
fn cookie_of(response: &TestResponse) -> String {
    response.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

/// Returns the path of the newest link that was mailed.
fn mailed_link(client: &TestClient) -> Option<String> {
    let newest = client.world.sent_of_no_page("person.sign-in").pop()?;
    let DeliveryMessage::Mail(mail) = newest.message else { return None };
    let (_, token) = mail.text.split_once("https://status.example/sign-in/link/")?;
    Some(format!("/sign-in/link/{}", token.split_whitespace().next()?))
}

#[tokio::test]
async fn a_stranger_is_sent_to_sign_in_and_back_to_the_same_address() {
    let client = client().await;
    let refused = client.send("GET", "/app?range=7d", &[], "").await;
    assert_eq!((refused.status, location(&refused)), (303, "/sign-in?next=%2Fapp%3Frange%3D7d"));
    let form = client.send("GET", location(&refused), &[], "").await;
    assert!(form.status == 200 && form.text.contains("value=\"/app?range=7d\""), "{}", form.text);
    let done = sign_in(&client, EMAIL, PASSWORD, &[]).await;
    assert_eq!((done.status, location(&done)), (303, "/app?range=7d"));
    let set = done.headers["set-cookie"].to_str().unwrap();
    assert!(set.starts_with("__Host-plx=") && set.contains("Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure"));
    let cookie = cookie_of(&done);
    let opened = client.send("GET", "/app", &[("cookie", &cookie)], "").await;
    assert_eq!(opened.status, 200, "{}", opened.text);
    assert_eq!(location(&client.send("GET", "/sign-in", &[("cookie", &cookie)], "").await), "/app");
    // A form that a stranger sends is no redirect: it would be lost.
    let form = client.send_form("/confirm", &[], "current=a").await;
    assert_eq!(form.status, 403, "{}", form.text);
    assert!(form.text.contains("You are signed out") && form.text.contains("/sign-in?next="), "{}", form.text);
}

#[tokio::test]
async fn every_answer_of_the_dashboard_has_its_headers() {
    let client = client().await;
    let viewer = client.sign_in(Role::Viewer).await;
    for answer in [
        client.open(&viewer, "/app").await,
        client.open(&viewer, "/app/missing").await,
        client.send("GET", "/app", &[], "").await,
        client.send("GET", "/sign-in", &[], "").await,
        client.send("GET", "/setup/none", &[], "").await,
        sign_in(&client, EMAIL, "wrong password", &[]).await,
    ] {
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
        for (name, value) in [
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-opener-policy", "same-origin"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(answer.headers[name], value, "{name}");
        }
        assert!(!answer.text.contains("<script>") && !answer.text.contains("style="), "{}", answer.text);
    }
    let missing = client.open(&viewer, "/app/missing").await;
    assert!(missing.status == 404 && missing.text.contains("Not found, or you have no access."), "{}", missing.text);
}

#[tokio::test]
async fn the_dashboard_answers_on_its_own_host_alone() {
    let client = client().await;
    let browser = client.sign_in(Role::Owner).await;
    let get = async |host: &str, path: &str| {
        client.send("GET", path, &[("host", host), ("cookie", &browser.cookie)], "").await.status
    };
    assert_eq!(get("status.example", "/app").await, 200);
    for (host, path) in [("shop.pages.example", "/app"), ("status.example", "/p/shop/app")] {
        assert_eq!(get(host, path).await, 404, "{host}{path}");
    }
    assert_eq!(get("evil.example", "/app").await, 421);
}

#[tokio::test]
async fn a_session_is_new_at_each_sign_in_and_the_old_one_ends() {
    let client = client().await;
    // A session that an attacker put into the browser, valid or not, is never taken over.
    let planted = client.sign_in(Role::Viewer).await;
    let done = sign_in(&client, EMAIL, PASSWORD, &[("cookie", &planted.cookie)]).await;
    let cookie = cookie_of(&done);
    assert_ne!(cookie, planted.cookie);
    assert_eq!(client.open(&planted, "/app").await.status, 303, "the planted session has ended");
    let unknown = format!("__Host-plx={}", "a".repeat(43));
    let done = sign_in(&client, EMAIL, PASSWORD, &[("cookie", &unknown)]).await;
    assert_ne!(cookie_of(&done), unknown);
    assert_eq!(client.send("GET", "/app", &[("cookie", &unknown)], "").await.status, 303);
    assert_eq!(client.send("GET", "/app", &[("cookie", &cookie)], "").await.status, 200, "another browser's stays");
}

#[tokio::test]
async fn a_form_needs_its_token_and_its_own_origin() {
    let client = client().await;
    let browser = client.sign_in(Role::Owner).await;
    let other = client.sign_in(Role::Owner).await;
    let token = format!("form_token={}", browser.form_token);
    let form = ("content-type", "application/x-www-form-urlencoded");
    let cookie = ("cookie", browser.cookie.as_str());
    let own = ("sec-fetch-site", "same-origin");
    let others_token = format!("form_token={}", other.form_token);
    for (headers, body) in [
        (vec![form, cookie, own], ""),
        (vec![form, cookie, own], "form_token="),
        (vec![form, cookie, own], &others_token),
        (vec![form, cookie], &token),
        (vec![form, cookie, ("sec-fetch-site", "cross-site")], &token),
        (vec![form, cookie, ("sec-fetch-site", "same-site")], &token),
        (vec![form, cookie, ("origin", "https://evil.example")], &token),
        (vec![form, cookie, ("origin", "null")], &token),
    ] {
        let answer = client.send("POST", "/sign-out", &headers, body).await;
        assert_eq!(answer.status, 403, "{headers:?} {body} {}", answer.text);
    }
    assert_eq!(client.open(&browser, "/sign-out").await.status, 405, "a GET changes nothing");
    assert_eq!(client.open(&browser, "/app").await.status, 200, "the session is untouched");
    let done = client.submit(&browser, "/sign-out", &[]).await;
    assert_eq!((done.status, location(&done)), (303, "/sign-in"));
    assert!(done.headers.contains_key("clear-site-data"));
    assert!(done.headers["set-cookie"].to_str().unwrap().starts_with("__Host-plx=; Path=/; Max-Age=0"));
    assert_eq!(client.open(&browser, "/app").await.status, 303);
    assert_eq!(client.open(&other, "/app").await.status, 200);
    // Signing in from another site is refused, too.
    let headers = [form, ("sec-fetch-site", "cross-site")];
    let forged = client.send("POST", "/sign-in", &headers, &format!("email={EMAIL}&password={PASSWORD}")).await;
    assert_eq!((forged.status, forged.headers.get("set-cookie")), (403, None));
}

#[tokio::test]
async fn nobody_learns_who_has_an_account() {
    let mut client = client().await;
    let comparable = |response: &TestResponse, email: &str| {
        let mut headers: Vec<_> = response.headers.keys().map(ToString::to_string).collect();
        headers.sort();
        (response.status, headers, response.text.replace(email, "EMAIL"))
    };
    let known = sign_in(&client, EMAIL, "wrong password", &[]).await;
    let unknown = sign_in(&client, "bob@example.com", "wrong password", &[]).await;
    assert_eq!(comparable(&known, EMAIL), comparable(&unknown, "bob@example.com"));
    assert!(known.status == 403 && known.text.contains("Email or password is wrong."), "{}", known.text);
    let ask = async |email: &str| client.send_form("/sign-in/link", &[], &format!("email={email}")).await;
    let (known, unknown) = (ask(EMAIL).await, ask("bob@example.com").await);
    assert_eq!(comparable(&known, EMAIL), comparable(&unknown, "bob@example.com"));
    assert!(known.text.contains("If ann@example.com has an account, a sign-in link is on its way."), "{}", known.text);
    // Both are delayed alike, wherever the tries come from.
    client.peer = "127.0.0.1";
    for email in [EMAIL, "bob@example.com"] {
        let mut last = None;
        for number in 0..12 {
            let address = format!("198.51.{number}.1");
            let headers = [("x-forwarded-for", address.as_str())];
            last = Some(sign_in(&client, email, "wrong password", &headers).await);
        }
        let last = last.unwrap();
        assert_eq!((last.status, last.headers["retry-after"].to_str().unwrap()), (429, "30"), "{email}");
        assert!(last.text.contains("Too many tries. Wait 30 seconds."), "{}", last.text);
    }
}

#[tokio::test]
async fn a_mailed_link_works_once_in_its_browser_and_opening_it_uses_nothing() {
    let client = client().await;
    let asked = client.send_form("/sign-in/link", &[], &format!("email={EMAIL}&next=%2Fapp%3Frange%3D7d")).await;
    let browser = cookie_of(&asked);
    let path = mailed_link(&client).unwrap();
    let cookie = [("cookie", browser.as_str())];
    for _ in 0..3 {
        let opened = client.send("GET", &path, &cookie, "").await;
        assert!(opened.status == 200 && opened.text.contains("<button"), "{}", opened.text);
        assert!(!opened.headers.contains_key("set-cookie"));
        assert_eq!(client.send("HEAD", &path, &[], "").await.status, 403, "a scanner is another browser");
    }
    assert_eq!(client.send_form(&path, &[], "").await.status, 403);
    let done = client.send_form(&path, &cookie, "").await;
    assert_eq!((done.status, location(&done)), (303, "/app?range=7d"));
    let session = cookie_of(&done);
    assert!(!done.headers["set-cookie"].to_str().unwrap().contains("Max-Age"), "without the tick until it is closed");
    assert_eq!(client.send("GET", "/app", &[("cookie", &session)], "").await.status, 200);
    let again = client.send_form(&path, &cookie, "").await;
    assert!(again.status == 403 && again.text.contains("This link does not work"), "{}", again.text);
    let other = client.send_form("/sign-in/link", &[], "email=bob@example.com").await;
    assert_eq!((other.status, mailed_link(&client)), (200, Some(path)), "nothing was sent to a stranger");
    client.world.clock.set(client.world.service.now() + 1);
    let asked = client.send_form("/sign-in/link", &[], &format!("email={EMAIL}&keep=on")).await;
    let path = mailed_link(&client).unwrap();
    let done = client.send_form(&path, &[("cookie", &cookie_of(&asked))], "").await;
    assert!(done.headers["set-cookie"].to_str().unwrap().contains("Max-Age=7776000"), "kept, as ticked");
}

#[tokio::test]
async fn an_account_is_set_up_by_its_link_once() {
    let client = TestClient::new().await;
    let link = client.world.service.people.create_set_up_link(client.world.owner.id, false).await.unwrap();
    let path = link.strip_prefix("https://status.example").unwrap();
    for _ in 0..2 {
        let form = client.send("GET", path, &[], "").await;
        assert!(form.status == 200 && form.text.contains("value=\"owner@example.com\""), "{}", form.text);
    }
    let short = client.send_form(path, &[], "password=short&name=Olga").await;
    assert_eq!(short.status, 400);
    assert!(short.text.contains("Must be at least 10 characters.") && short.text.contains("value=\"Olga\""));
    let done = client.send_form(path, &[], "password=correct+horse&name=Olga").await;
    assert_eq!((done.status, location(&done)), (303, "/app"));
    let cookie = cookie_of(&done);
    assert!(!done.headers["set-cookie"].to_str().unwrap().contains("Max-Age"), "nobody asked to be kept signed in");
    let opened = client.send("GET", "/app", &[("cookie", &cookie)], "").await;
    assert_eq!(opened.status, 200, "{}", opened.text);
    let owner = client.world.service.people.members(client.world.owner.id).await.unwrap().remove(0).0;
    assert_eq!((owner.display_name(), owner.is_operator), ("Olga", false));
    assert_eq!(client.send("GET", path, &[], "").await.status, 404);
    assert_eq!(client.send_form(path, &[], "password=another+horse").await.status, 404);
    assert_eq!(sign_in(&client, "OWNER@example.com", PASSWORD, &[]).await.status, 303);
    // Another link lets the owner choose another password, and ends their sessions.
    let link = client.world.service.people.create_set_up_link(client.world.owner.id, false).await.unwrap();
    let path = link.strip_prefix("https://status.example").unwrap();
    assert_eq!(client.send_form(path, &[], "password=another+horse").await.status, 303);
    assert_eq!(client.send("GET", "/app", &[("cookie", &cookie)], "").await.status, 303);
    assert_eq!(sign_in(&client, "owner@example.com", PASSWORD, &[]).await.status, 403);
    assert_eq!(client.world.service.people.members(client.world.owner.id).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_account_without_an_address_gets_its_owners() {
    let client = client().await;
    let people = &client.world.service.people;
    let account = client.world.service.accounts.create("owner@example.invalid", None).await.unwrap();
    let page = client.world.service.pages.create_as_operator(account.id, "Mine", "mine").await.unwrap();
    let link = people.create_set_up_link(account.id, true).await.unwrap();
    let path = link.strip_prefix("https://status.example").unwrap();
    let form = client.send("GET", path, &[], "").await;
    assert!(!form.text.contains("example.invalid") && !form.text.contains("readonly"), "{}", form.text);
    let submit =
        async |email: &str| client.send_form(path, &[], &format!("email={email}&password=correct+horse")).await;
    for (email, fault) in [("", "characters"), ("nobody", "Must be an email address."), (EMAIL, "Is taken.")] {
        let refused = submit(email).await;
        assert!(refused.status == 400 && refused.text.contains(fault), "{email} {}", refused.text);
    }
    assert_eq!(submit("eve@example.com").await.status, 303);
    let owners = people.members(account.id).await.unwrap();
    assert_eq!(
        owners.iter().map(|(it, _)| (it.email.as_str(), it.is_operator)).collect::<Vec<_>>(),
        [("eve@example.com", true)]
    );
    let accounts = client.world.service.accounts.list().await.unwrap();
    assert!(accounts.iter().any(|it| it.id == account.id && it.email == "eve@example.com"));
    let done = sign_in(&client, "eve@example.com", PASSWORD, &[]).await;
    let token = SessionToken::parse(cookie_of(&done).split_once('=').unwrap().1).unwrap();
    let caller = people.authenticate(&token).unwrap().unwrap().caller();
    let destinations = client.world.service.destinations.list(&caller, page.id).await.unwrap();
    assert_eq!(destinations[0].mailbox(), Some("eve@example.com"));
}

#[tokio::test]
async fn a_session_that_idles_or_whose_person_left_is_no_longer_valid() {
    let client = client().await;
    let leaver = client.world.signed_in(Role::Viewer).await;
    let left = SignedInBrowser::of(&client, &leaver);
    assert_eq!(client.open(&left, "/app").await.status, 200);
    client.world.remove_member(leaver.session.person).await;
    assert_eq!(client.open(&left, "/app").await.status, 303, "they left the account");
    assert_eq!(client.submit(&left, "/app/account/security/sessions/end-others", &[]).await.status, 403);
    assert!(!client.world.service.people.is_signed_in(leaver.session.id).unwrap());
    let browser = SignedInBrowser::of(&client, &client.world.signed_in(Role::Editor).await);
    assert_eq!(client.open(&browser, "/app").await.status, 200);
    client.world.clock.set(client.world.service.now() + 13 * parallax_core::time::DAY);
    assert_eq!(client.open(&browser, "/app").await.status, 200);
    client.world.clock.set(client.world.service.now() + 14 * parallax_core::time::DAY);
    assert_eq!(client.open(&browser, "/app").await.status, 303);
}
