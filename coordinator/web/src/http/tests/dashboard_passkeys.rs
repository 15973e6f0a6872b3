//! Passkeys over HTTP: added, renamed and removed on the account's screen; used to sign in, as second step and to confirm.

use parallax_core::role::Role;
use parallax_core::time::{DAY, MINUTE};
use parallax_service::people::soft_authenticator::SoftPasskey;
use parallax_service::people::{NewPerson, PasskeyAnswer, PasskeyChallenge, SessionToken};
use url::form_urlencoded;

use super::signed_in_browser::location;
use super::{SignedInBrowser, TestClient, TestResponse};

const EMAIL: &str = "ann@example.com";
const ORIGIN: &str = "https://status.example";
const SECURITY: &str = "/app/account/security";
const NEW: &str = "/app/account/security/passkeys/new";
const OPTIONS: &str = "/app/account/security/passkeys/options";
const REFUSED: &str = "is not known here, or was removed.";

/// A client whose owner's account has Ann, with a password; and her browser.
async fn client() -> (TestClient, SignedInBrowser) {
    let client = TestClient::new().await;
    let people = &client.world.service.people;
    let password = Some("correct horse".to_owned());
    let ann = NewPerson { email: EMAIL.to_owned(), name: "Ann".to_owned(), role: Role::Owner, password };
    let ann = people.add_as_operator(client.world.owner.id, &ann).await.unwrap();
    let session = people.test_session(client.world.owner.id, ann.id).await;
    let browser = SignedInBrowser::of(&client, &session);
    (client, browser)
}

/// Reads the reply with the options.
fn challenge(reply: &TestResponse) -> PasskeyChallenge {
    assert_eq!((reply.status, reply.headers["content-type"].to_str().unwrap()), (200, "application/json"));
    assert_eq!(reply.headers["cache-control"].to_str().unwrap(), "no-store");
    let document: serde_json::Value = serde_json::from_str(&reply.text).unwrap();
    let ceremony = document["ceremony"].as_str().unwrap().to_owned();
    PasskeyChallenge { ceremony, options: document["options"].to_string() }
}

fn fields<'a>(answer: &'a PasskeyAnswer, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("ceremony", answer.ceremony.as_str()), ("credential", answer.credential.as_str())], more].concat()
}

/// Returns a cookie that a response sets, as the browser sends it back.
fn cookie_of(response: &TestResponse) -> String {
    response.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

fn browser(client: &TestClient, cookie: String) -> SignedInBrowser {
    let token = SessionToken::parse(cookie.strip_prefix("__Host-plx=").unwrap()).unwrap();
    SignedInBrowser { cookie, form_token: client.world.service.people.form_token(token.id()) }
}

/// Adds a passkey at a browser, which gets a new session.
async fn add(client: &TestClient, ann: &SignedInBrowser, passkey: &mut SoftPasskey, name: &str) -> SignedInBrowser {
    let answer = passkey.create(&challenge(&client.submit(ann, OPTIONS, &[]).await));
    let added = client.submit(ann, NEW, &fields(&answer, &[("name", name)])).await;
    assert_eq!((added.status, location(&added)), (303, "/app/account/security?done=passkey-added&count=1"));
    assert_eq!(client.open(ann, "/app").await.status, 303, "the old session has ended");
    browser(client, cookie_of(&added))
}

/// Address of the person's first passkey.
fn first_passkey(client: &TestClient, browser: &SignedInBrowser) -> String {
    let token = SessionToken::parse(browser.cookie.split_once('=').unwrap().1).unwrap();
    let person = client.world.service.people.authenticate(&token).unwrap().unwrap().person;
    format!("{SECURITY}/passkeys/{}", person.passkeys.all()[0].id)
}

/// Sends a form of a person who is not signed in.
async fn send(client: &TestClient, path: &str, cookie: &str, fields: &[(&str, &str)]) -> TestResponse {
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    client.send_form(path, &[("cookie", cookie)], &form).await
}

#[tokio::test]
async fn a_passkey_is_added_renamed_and_removed() {
    let (client, ann) = client().await;
    let empty = client.open(&ann, SECURITY).await;
    assert!(empty.text.contains(">Add passkey<") && empty.text.contains("fingerprint"), "{}", empty.text);
    let form = client.open(&ann, NEW).await;
    assert!(form.text.contains("data-passkey=\"create\"") && form.text.contains("/assets/passkeys-"), "{}", form.text);
    assert!(!form.text.contains("style="));
    let mut passkey = SoftPasskey::new(ORIGIN);
    let asked = client.submit(&ann, OPTIONS, &[]).await;
    let answer = passkey.create(&challenge(&asked));
    // A name that breaks a rule takes no ceremony; an answer that is none does.
    let junk = PasskeyAnswer { credential: "{}".to_owned(), ..answer.clone() };
    for (answer, name, text) in
        [(&answer, "", "characters."), (&junk, "Key", REFUSED), (&answer, "Key", "used already")]
    {
        let refused = client.submit(&ann, NEW, &fields(answer, &[("name", name)])).await;
        assert!(refused.status == 400 && refused.text.contains(text), "{text}: {}", refused.text);
    }
    let ann = add(&client, &ann, &mut passkey, "Phone").await;
    let shown = client.open(&ann, SECURITY).await;
    assert!(shown.text.contains("<b>Phone</b>") && shown.text.contains("not used yet"), "{}", shown.text);
    let path = first_passkey(&client, &ann);
    assert!(client.open(&ann, &path).await.text.contains("value=\"Phone\""));
    let refused = client.submit(&ann, &path, &[("name", "a\nb")]).await;
    assert!(refused.status == 400 && refused.text.contains("aria-invalid"), "{}", refused.text);
    let renamed = client.submit(&ann, &path, &[("name", "<b>Old</b>")]).await;
    assert_eq!(location(&renamed), "/app/account/security?done=saved&count=1");
    let question = client.open(&ann, &format!("{path}/remove")).await;
    assert!(question.text.contains("Remove the passkey “&#60;b&#62;Old&#60;/b&#62;”?"), "{}", question.text);
    // A confirmation of ten minutes ago is too old for either.
    client.world.clock.set(client.world.service.now() + 10 * MINUTE);
    for (path, method) in [(NEW, "GET"), (OPTIONS, "POST"), (NEW, "POST"), (&format!("{path}/remove"), "POST")] {
        let refused = match method {
            "GET" => client.open(&ann, path).await,
            _ => client.submit(&ann, path, &[("name", "Key")]).await,
        };
        assert!(location(&refused).starts_with("/confirm?next=%2Fapp%2Faccount%2Fsecurity%2Fpasskeys"), "{path}");
    }
    let answer = passkey.get(&challenge(&client.submit(&ann, "/confirm/passkey/options", &[]).await));
    let confirmed = client.submit(&ann, "/confirm/passkey", &fields(&answer, &[("next", SECURITY)])).await;
    assert_eq!((confirmed.status, location(&confirmed)), (303, SECURITY));
    let again = client.submit(&ann, "/confirm/passkey", &fields(&answer, &[])).await;
    assert!(again.status == 400 && again.text.contains("used already"), "{}", again.text);
    let removed = client.submit(&ann, &format!("{path}/remove"), &[]).await;
    assert_eq!(location(&removed), "/app/account/security?done=passkey-removed&count=1");
    let after = browser(&client, cookie_of(&removed));
    assert!(!client.open(&after, SECURITY).await.text.contains("not used yet"));
    assert_eq!(client.open(&after, &path).await.status, 404);
}

#[tokio::test]
async fn a_passkey_signs_in_at_the_browser_that_asked() {
    let (client, ann) = client().await;
    let mut passkey = SoftPasskey::new(ORIGIN);
    add(&client, &ann, &mut passkey, "Phone").await;
    let form = client.send("GET", "/sign-in?next=%2Fapp%3Frange%3D7d", &[], "").await;
    assert!(form.text.contains("autocomplete=\"username webauthn\"") && form.text.contains("data-offer"));
    assert!(!form.headers.contains_key("set-cookie") && !form.text.contains("challenge"), "a GET begins nothing");
    for site in ["cross-site", "same-site"] {
        for path in ["/sign-in/passkey/options", "/sign-in/passkey"] {
            let headers = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", site)];
            assert_eq!(client.send("POST", path, &headers, "").await.status, 403, "{site} {path}");
        }
    }
    let asked = send(&client, "/sign-in/passkey/options", "", &[]).await;
    let cookie = cookie_of(&asked);
    assert!(asked.headers["set-cookie"].to_str().unwrap().contains("HttpOnly; SameSite=Lax; Secure"));
    assert!(!asked.text.contains("allowCredentials\":[{"), "nobody is named");
    let answer = passkey.get(&challenge(&asked));
    let next = [("next", "/app?range=7d"), ("keep", "on")];
    let elsewhere = send(&client, "/sign-in/passkey", "", &fields(&answer, &next)).await;
    assert!(elsewhere.status == 400 && elsewhere.text.contains("used already"), "{}", elsewhere.text);
    let planted = client.sign_in(Role::Viewer).await;
    let both = format!("{cookie}; {}", planted.cookie);
    let done = send(&client, "/sign-in/passkey", &both, &fields(&answer, &next)).await;
    assert_eq!((done.status, location(&done)), (303, "/app?range=7d"));
    assert!(done.headers["set-cookie"].to_str().unwrap().contains("; Max-Age="), "it is kept");
    assert_eq!(client.open(&planted, "/app").await.status, 303, "a planted session has ended");
    let session = browser(&client, cookie_of(&done));
    assert!(client.open(&session, "/app").await.text.contains(EMAIL));
    let again = send(&client, "/sign-in/passkey", &cookie, &fields(&answer, &next)).await;
    assert!(again.status == 400 && again.text.contains("used already"), "{}", again.text);
    assert!(again.text.contains("value=\"/app?range=7d\"") && !again.headers.contains_key("set-cookie"));
    // Another site's page can't be the next one.
    let asked = send(&client, "/sign-in/passkey/options", &cookie, &[]).await;
    assert_eq!(cookie_of(&asked), cookie, "the browser keeps its name");
    let answer = passkey.get(&challenge(&asked));
    let done = send(&client, "/sign-in/passkey", &cookie, &fields(&answer, &[("next", "//evil.example")])).await;
    assert_eq!(location(&done), "/app");
    assert!(!done.headers["set-cookie"].to_str().unwrap().contains("Max-Age"), "not kept without the tick");
}

#[tokio::test]
async fn unknown_removed_and_wrong_passkeys_look_the_same() {
    let (client, ann) = client().await;
    let mut passkey = SoftPasskey::new(ORIGIN);
    add(&client, &ann, &mut passkey, "Phone").await;
    let handle = passkey.handle.clone();
    let mut shown = Vec::new();
    for attack in 0..4 {
        let asked = send(&client, "/sign-in/passkey/options", "", &[]).await;
        let mut device = if attack == 0 { SoftPasskey::new(ORIGIN) } else { SoftPasskey::new("https://evil.example") };
        match attack {
            0 => device.handle = vec![7; 16],
            1 => device.handle.clone_from(&handle),
            2 => device.handle = vec![7; 3],
            _ => (device.handle, device.id) = (handle.clone(), passkey.id.clone()),
        }
        let answer = device.get(&challenge(&asked));
        let refused = send(&client, "/sign-in/passkey", &cookie_of(&asked), &fields(&answer, &[])).await;
        assert!(refused.status == 400 && refused.text.contains(REFUSED), "{attack}: {}", refused.text);
        shown.push(refused.text);
    }
    shown.dedup();
    assert_eq!(shown.len(), 1);
}

#[tokio::test]
async fn a_passkey_is_the_second_step_where_one_is_needed() {
    let (client, ann) = client().await;
    let mut passkey = SoftPasskey::new(ORIGIN);
    let ann = add(&client, &ann, &mut passkey, "Phone").await;
    let consequences = "It is your only second factor, and an account of yours needs one";
    let remove = format!("{}/remove", first_passkey(&client, &ann));
    assert!(!client.open(&ann, &remove).await.text.contains(consequences));
    client.submit(&ann, "/app/account/members/second-factor", &[("needed", "on")]).await;
    let question = client.open(&ann, &remove).await;
    assert!(question.text.contains(consequences), "{}", question.text);
    client.world.clock.set(client.world.service.now() + 8 * DAY);
    let security = client.open(&ann, SECURITY).await;
    assert_eq!(security.status, 200, "a passkey is enough");
    assert!(security.text.contains("This passkey is your only second factor."), "{}", security.text);
    assert!(!security.text.contains("An account of yours needs a second factor."), "{}", security.text);
    let asked = client.send_form("/sign-in", &[], "email=ann@example.com&password=correct+horse&next=%2Fapp").await;
    assert_eq!((asked.status, location(&asked)), (303, "/sign-in/code?next=%2Fapp"));
    let pending = cookie_of(&asked);
    let form = client.send("GET", "/sign-in/code?next=%2Fapp", &[("cookie", &pending)], "").await;
    assert!(form.text.contains("<h1>Use your passkey</h1>") && !form.text.contains("one-time-code"), "{}", form.text);
    assert_eq!(send(&client, "/sign-in/code/passkey/options", "", &[]).await.status, 403);
    let options = challenge(&send(&client, "/sign-in/code/passkey/options", &pending, &[]).await);
    passkey.is_verified = false;
    let answer = passkey.get(&options);
    let refused = send(&client, "/sign-in/code/passkey", &pending, &fields(&answer, &[("next", "/app")])).await;
    assert!(refused.status == 400 && refused.text.contains(REFUSED), "{}", refused.text);
    passkey.is_verified = true;
    let answer = passkey.get(&challenge(&send(&client, "/sign-in/code/passkey/options", &pending, &[]).await));
    let stranger = send(&client, "/sign-in/code/passkey", "", &fields(&answer, &[])).await;
    assert!(stranger.status == 403 && stranger.text.contains("Sign in again"), "{}", stranger.text);
    let done = send(&client, "/sign-in/code/passkey", &pending, &fields(&answer, &[("next", "/app")])).await;
    assert_eq!((done.status, location(&done)), (303, "/app"));
    assert_eq!(client.open(&browser(&client, cookie_of(&done)), "/app").await.status, 200);
    // A member whose time for a second factor is over can make a passkey, and nothing else.
    let late = client.world.signed_in(Role::Viewer).await;
    client.world.clock.set(client.world.service.now() + 7 * DAY);
    // They sign in again.
    let late = client.world.service.people.test_session(client.world.owner.id, late.session.person).await;
    let late = SignedInBrowser::of(&client, &late);
    assert_eq!(location(&client.open(&late, "/app").await), "/app/account/security/factor");
    let factor = client.open(&late, "/app/account/security/factor").await;
    assert!(factor.text.contains("create a passkey"), "{}", factor.text);
    assert!(client.open(&late, NEW).await.text.contains("Create passkey"), "it is open");
}
