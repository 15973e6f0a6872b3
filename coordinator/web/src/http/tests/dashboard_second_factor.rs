//! Second factors over HTTP: no session before the code, the set-up with its QR code, and the gate of an account that needs
//! one.

use parallax_core::role::Role;
use parallax_core::time::{DAY, SECOND};
use parallax_service::people::{NewPerson, NewSession, SessionToken};

use super::signed_in_browser::{between, location};
use super::{SignedInBrowser, TestClient, TestResponse};

const EMAIL: &str = "ann@example.com";
const FACTOR: &str = "/app/account/security/factor";
const SIGN_IN: &str = "email=ann@example.com&password=correct+horse&keep=on&next=%2Fapp%3Frange%3D7d";

/// A client whose owner's account has Ann, with a password and, if wanted, a second factor; and her browser.
async fn client(has_factor: bool) -> (TestClient, SignedInBrowser, Vec<String>) {
    let client = TestClient::new().await;
    let people = &client.world.service.people;
    let password = Some("correct horse".to_owned());
    let ann = NewPerson { email: EMAIL.to_owned(), name: "Ann".to_owned(), role: Role::Owner, password };
    let ann = people.add_as_operator(client.world.owner.id, &ann).await.unwrap();
    let mut session = people.test_session(client.world.owner.id, ann.id).await;
    let mut codes = Vec::new();
    if has_factor {
        (session, codes) = people.test_factor(&people.authenticate(&session.token).unwrap().unwrap()).await;
        wait(&client, 30);
    }
    let browser = SignedInBrowser::of(&client, &session);
    (client, browser, codes)
}

fn wait(client: &TestClient, seconds: i64) {
    client.world.clock.set(client.world.service.now() + seconds * SECOND);
}

/// The code that the app of the browser's person shows now.
fn code(client: &TestClient, browser: &SignedInBrowser) -> String {
    let people = &client.world.service.people;
    people.test_code(people.authenticate(&token(&browser.cookie)).unwrap().unwrap().person.id)
}

fn token(cookie: &str) -> SessionToken {
    SessionToken::parse(cookie.split_once('=').unwrap().1).unwrap()
}

/// Returns the cookie that a response sets, as the browser sends it back.
fn cookie_of(response: &TestResponse) -> String {
    response.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn no_session_begins_before_the_code() {
    let (client, ann, _) = client(true).await;
    // A session that an attacker put into the browser ends with the code, and none is taken over.
    let planted = client.sign_in(Role::Viewer).await;
    let asked = client.send_form("/sign-in", &[("cookie", &planted.cookie)], SIGN_IN).await;
    assert_eq!((asked.status, location(&asked)), (303, "/sign-in/code?next=%2Fapp%3Frange%3D7d"));
    let set = asked.headers["set-cookie"].to_str().unwrap();
    assert!(
        set.starts_with("__Host-plx-code=") && set.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure")
    );
    let pending = cookie_of(&asked);
    // Its secret is no session, under neither name.
    for cookie in [pending.clone(), format!("__Host-plx={}", token(&pending).reveal())] {
        assert_eq!(client.send("GET", "/app", &[("cookie", &cookie)], "").await.status, 303, "{cookie}");
    }
    let path = location(&asked);
    let form = client.send("GET", path, &[("cookie", &pending)], "").await;
    assert!(form.status == 200 && form.text.contains("autocomplete=\"one-time-code\""), "{}", form.text);
    assert!(form.text.contains("autofocus"), "{}", form.text);
    assert!(form.text.contains("inputmode=\"numeric\"") && form.text.contains("value=\"/app?range=7d\""));
    assert!(!form.headers.contains_key("set-cookie") && !form.text.contains("style="));
    let recovery = between(&form.text, "class=\"btn slim\" href=\"", "\"").replace("&#38;", "&").replace("&amp;", "&");
    let recovery = client.send("GET", &recovery, &[("cookie", &pending)], "").await;
    assert!(recovery.status == 200 && recovery.text.contains("Recovery code"), "{}", recovery.text);
    // Without the cookie nobody enters a code.
    let stranger = client.send("GET", path, &[], "").await;
    assert_eq!((stranger.status, location(&stranger)), (303, "/sign-in?next=%2Fapp%3Frange%3D7d"));
    let right = format!("code={}&next=%2Fapp%3Frange%3D7d", code(&client, &ann));
    let other = [("cookie", planted.cookie.as_str())];
    for headers in [&[][..], &other] {
        let refused = client.send_form("/sign-in/code", headers, &right).await;
        assert!(refused.status == 403 && refused.text.contains("Sign in again"), "{}", refused.text);
    }
    let both = format!("{pending}; {}", planted.cookie);
    let wrong = client.send_form("/sign-in/code", &[("cookie", &both)], "code=000000&next=%2Fapp%3Frange%3D7d").await;
    assert!(wrong.status == 403 && wrong.text.contains("The code is wrong or was used already."), "{}", wrong.text);
    assert!(wrong.text.contains("value=\"/app?range=7d\"") && !wrong.headers.contains_key("set-cookie"));
    let form_type = ("content-type", "application/x-www-form-urlencoded");
    for site in ["cross-site", "same-site"] {
        let headers = [form_type, ("cookie", both.as_str()), ("sec-fetch-site", site)];
        assert_eq!(client.send("POST", "/sign-in/code", &headers, &right).await.status, 403, "{site}");
    }
    assert_eq!(client.send("POST", "/sign-in/code", &[form_type, ("cookie", &both)], &right).await.status, 403);
    let done = client.send_form("/sign-in/code", &[("cookie", &both)], &right).await;
    assert_eq!((done.status, location(&done)), (303, "/app?range=7d"));
    let session = cookie_of(&done);
    assert!(session.starts_with("__Host-plx=") && token(&session).reveal() != token(&pending).reveal());
    assert!(
        session != planted.cookie && client.open(&planted, "/app").await.status == 303,
        "the planted one has ended"
    );
    assert_eq!(client.send("GET", "/app", &[("cookie", &session)], "").await.status, 200);
    assert_eq!(client.send_form("/sign-in/code", &[("cookie", &pending)], &right).await.status, 403, "it is complete");
    // Signing out ends it as any session.
    let browser = NewSession { token: token(&session), session: people_session(&client, &session) };
    let browser = SignedInBrowser::of(&client, &browser);
    assert_eq!(location(&client.submit(&browser, "/sign-out", &[]).await), "/sign-in");
    assert_eq!(client.send("GET", "/app", &[("cookie", &format!("{session}; {pending}"))], "").await.status, 303);
}

fn people_session(client: &TestClient, cookie: &str) -> parallax_core::login_session::LoginSession {
    client.world.service.people.authenticate(&token(cookie)).unwrap().unwrap().session
}

#[tokio::test]
async fn a_wrong_password_looks_the_same_with_and_without_a_second_factor() {
    let (client, ..) = client(true).await;
    let send = async |email: &str| {
        let answer = client.send_form("/sign-in", &[], &format!("email={email}&password=wrong")).await;
        (answer.status, answer.text.replace(email, "EMAIL"), answer.headers.contains_key("set-cookie"))
    };
    assert_eq!(send(EMAIL).await, send("bob@example.com").await);
    // Too many codes are said as too many passwords are.
    let pending = cookie_of(&client.send_form("/sign-in", &[], SIGN_IN).await);
    let mut last = None;
    for _ in 0..11 {
        last = Some(client.send_form("/sign-in/code", &[("cookie", &pending)], "code=000000").await);
    }
    let last = last.unwrap();
    assert_eq!((last.status, last.headers["retry-after"].to_str().unwrap()), (429, "30"));
    assert!(last.text.contains("Too many tries. Wait 30 seconds."), "{}", last.text);
}

#[tokio::test]
async fn an_app_is_set_up_with_a_qr_code_and_ten_recovery_codes() {
    let (client, ann, _) = client(false).await;
    let off = client.open(&ann, "/app/account/security").await;
    assert!(off.text.contains("a stolen password is not enough") && off.text.contains(">Turn on<"), "{}", off.text);
    let before = client.open(&ann, FACTOR).await;
    assert!(before.status == 200 && !before.text.contains("<figure"), "a GET makes no secret");
    assert_eq!(location(&client.submit(&ann, &format!("{FACTOR}/begin"), &[]).await), FACTOR);
    let shown = client.open(&ann, FACTOR).await;
    let image = between(&shown.text, "<figure", "</figure>");
    assert!(image.contains("<svg") && image.contains("<path") && !image.contains("<?xml"), "{image}");
    assert!(!shown.text.contains("style=") && shown.text.contains("autocomplete=\"one-time-code\""));
    assert!(!shown.text.contains("autofocus"), "the code comes after the secret");
    let secret = between(&shown.text, "<code>", "</code>");
    assert_eq!(secret.split(' ').map(str::len).collect::<Vec<_>>(), [4; 8], "{secret}");
    let wrong = client.submit(&ann, FACTOR, &[("code", "000000")]).await;
    assert!(wrong.status == 400 && wrong.text.contains("The code is wrong."), "{}", wrong.text);
    assert!(wrong.text.contains(secret), "the same secret");
    let done = client.submit(&ann, FACTOR, &[("code", &code(&client, &ann))]).await;
    let codes = between(&done.text, "<pre>", "</pre>").lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(done.status == 200 && codes.len() == 10 && codes.iter().all(|code| code.len() == 9), "{codes:?}");
    let cookie = cookie_of(&done);
    assert_eq!(client.open(&ann, "/app").await.status, 303, "the session has a new id");
    let session = NewSession { token: token(&cookie), session: people_session(&client, &cookie) };
    let ann = SignedInBrowser::of(&client, &session);
    assert!(done.text.contains(&ann.form_token), "the page's forms are the new session's");
    let on = client.open(&ann, "/app/account/security").await;
    assert!(on.text.contains("10 of 10 left") && !on.text.contains(&codes[0]), "{}", on.text);
    assert_eq!(location(&client.submit(&ann, FACTOR, &[("code", "000000")]).await), FACTOR, "nothing waits");
    // Recovery codes sign in; few of them are a reason for new ones.
    for (number, left) in [(0, 9), (1, 8), (2, 7), (3, 6), (4, 5), (5, 4), (6, 3), (7, 2)] {
        let pending = cookie_of(&client.send_form("/sign-in", &[], SIGN_IN).await);
        let form = format!("code={}&recovery=1&next=%2Fapp", codes[number]);
        let done = client.send_form("/sign-in/code", &[("cookie", &pending)], &form).await;
        let expected = format!("/app?done=recovery-code-used&count={left}");
        assert_eq!((done.status, location(&done)), (303, expected.as_str()));
        let open = async |path: &str| client.send("GET", path, &[("cookie", &cookie_of(&done))], "").await.text;
        assert!(open(location(&done)).await.contains(&format!("{left} recovery codes are left.")));
        let is_asked = open("/app/account/security").await.contains("Make new ones before they run out.");
        assert_eq!(is_asked, left == 2, "{left}");
    }
    let renewed = client.submit(&ann, &format!("{FACTOR}/codes"), &[]).await;
    assert!(renewed.text.contains("The older ones no longer work.") && !renewed.text.contains(&codes[9]));
    // Off: a question first.
    let question = client.open(&ann, &format!("{FACTOR}/off")).await;
    assert!(question.text.contains("Turn the second factor off?"), "{}", question.text);
    let off = client.submit(&ann, &format!("{FACTOR}/off"), &[]).await;
    assert_eq!(location(&off), "/app/account/security?done=factor-off&count=1");
    assert_ne!(cookie_of(&off), ann.cookie);
    assert_eq!(location(&client.send_form("/sign-in", &[], SIGN_IN).await), "/app?range=7d");
}

#[tokio::test]
async fn changes_ask_for_a_confirmation_first() {
    let (client, ann, codes) = client(true).await;
    wait(&client, 600);
    let confirm = |path: &str| format!("/confirm?next={}", path.replace('/', "%2F"));
    for (method, path, next) in [
        ("GET", FACTOR.to_owned(), FACTOR.to_owned()),
        ("POST", FACTOR.to_owned(), FACTOR.to_owned()),
        ("POST", format!("{FACTOR}/begin"), FACTOR.to_owned()),
        ("GET", format!("{FACTOR}/off"), format!("{FACTOR}/off")),
        ("POST", format!("{FACTOR}/off"), format!("{FACTOR}/off")),
        ("POST", format!("{FACTOR}/codes"), "/app/account/security".to_owned()),
        ("POST", "/app/account/members/second-factor".to_owned(), "/app/account/members".to_owned()),
    ] {
        let answer =
            if method == "GET" { client.open(&ann, &path).await } else { client.submit(&ann, &path, &[]).await };
        assert_eq!((answer.status, location(&answer)), (303, confirm(&next).as_str()), "{method} {path}");
    }
    let pending = cookie_of(&client.send_form("/sign-in", &[], SIGN_IN).await);
    let form = format!("code={}", codes[0]);
    assert_eq!(client.send_form("/sign-in/code", &[("cookie", &pending)], &form).await.status, 303, "nothing changed");
}

#[tokio::test]
async fn an_account_that_needs_a_second_factor_lets_members_set_it_up_and_nothing_else() {
    let (client, ann, _) = client(true).await;
    let need =
        async |needed: &str| client.submit(&ann, "/app/account/members/second-factor", &[("needed", needed)]).await;
    assert_eq!(location(&need("on").await), "/app/account/members?done=factor-needed&count=1");
    let members = client.open(&ann, "/app/account/members").await;
    assert!(members.text.contains("On. Members without one have 7 days"), "{}", members.text);
    let question = client.open(&ann, &format!("{FACTOR}/off")).await;
    assert!(question.text.contains("An account of yours needs one: without it you see only"), "{}", question.text);
    let bob = client.sign_in(Role::Editor).await;
    assert!(client.open(&ann, "/app/account/members").await.text.contains("no second factor"));
    let notice = "Members of this account need a second factor.";
    assert!(client.open(&bob, "/app").await.text.contains(notice));
    assert!(!client.open(&ann, "/app").await.text.contains(notice));
    client.world.clock.set(client.world.service.now() + 7 * DAY);
    assert_eq!(client.open(&ann, "/app").await.status, 200);
    for path in ["/app", "/app/account/security", &client.screen("/monitors"), "/app/live", "/app/search"] {
        let answer = client.open(&bob, path).await;
        assert_eq!((answer.status, location(&answer)), (303, FACTOR), "{path}");
    }
    let form = client.submit(&bob, &client.screen("/deploys"), &[("version", "1")]).await;
    assert_eq!((form.status, location(&form)), (303, FACTOR));
    assert!(client.open(&ann, &client.screen("/deploys")).await.text.contains("No deploys"), "nothing was done");
    // The ways out stay open. He confirms by signing in again, since he has no password.
    let switch = client.open(&bob, "/app/account/switch").await;
    assert!(switch.status == 200 && !switch.text.contains(&client.world.shop.name), "{}", switch.text);
    assert_eq!(location(&client.open(&bob, FACTOR).await), "/confirm?next=%2Fapp%2Faccount%2Fsecurity%2Ffactor");
    let person = people_session(&client, &bob.cookie).person;
    let again = client.world.service.people.test_session(client.world.owner.id, person).await;
    let bob = SignedInBrowser::of(&client, &again);
    let screen = client.open(&bob, FACTOR).await;
    assert!(screen.status == 200 && screen.text.contains("Set yours up to go on.") && screen.text.contains("Sign out"));
    client.submit(&bob, &format!("{FACTOR}/begin"), &[]).await;
    let done = client.submit(&bob, FACTOR, &[("code", &code(&client, &bob))]).await;
    assert!(done.status == 200 && !done.text.contains(notice), "{}", done.text);
    assert_eq!(client.send("GET", "/app", &[("cookie", &cookie_of(&done))], "").await.status, 200);
    // Off again, for owners alone.
    let carl = client.sign_in(Role::Editor).await;
    assert_eq!(client.submit(&carl, "/app/account/members/second-factor", &[("needed", "off")]).await.status, 403);
}
