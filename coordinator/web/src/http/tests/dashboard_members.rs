//! Members, invitations, a new password and the choice of an account over HTTP, by role and account.

use parallax_core::delivery::DeliveryMessage;
use parallax_core::role::Role;
use parallax_core::time::MINUTE;
use parallax_service::people::NewPerson;

use super::signed_in_browser::{between, hidden, location};
use super::{SignedInBrowser, TestClient, TestResponse};

const PASSWORD: &str = "correct horse";
const MEMBERS: &str = "/app/account/members";
const INVITE: &str = "/app/account/members/invite";

/// Adds a member with that address, signed in.
async fn member(client: &TestClient, email: &str, role: Role) -> (String, SignedInBrowser) {
    let people = &client.world.service.people;
    let new = NewPerson { email: email.to_owned(), name: String::new(), role, password: Some(PASSWORD.to_owned()) };
    let person = people.add_as_operator(client.world.owner.id, &new).await.unwrap();
    let session = people.test_session(client.world.owner.id, person.id).await;
    (person.id.to_string(), SignedInBrowser::of(client, &session))
}

/// The owner of another account, signed in.
async fn stranger(client: &TestClient) -> SignedInBrowser {
    let session = client.world.signed_in_at(&client.stranger_account().await, Role::Owner).await;
    SignedInBrowser::of(client, &session)
}

/// Returns the path of the newest link of that kind that was mailed.
fn mailed(client: &TestClient, event: &str, path: &str) -> String {
    let newest = client.world.sent_of_no_page(event).pop().unwrap();
    let DeliveryMessage::Mail(mail) = newest.message else { panic!("links are mailed") };
    let (_, token) = mail.text.split_once(&format!("https://status.example{path}")).unwrap();
    format!("{path}{}", token.split_whitespace().next().unwrap())
}

async fn invite(client: &TestClient, owner: &SignedInBrowser, email: &str, role: &str) -> String {
    client.world.clock.set(client.world.service.now() + 1);
    let sent = client.submit(owner, INVITE, &[("email", email), ("role", role)]).await;
    assert_eq!((sent.status, location(&sent)), (303, "/app/account/members?done=invitation-sent&count=1"));
    mailed(client, "person.invitation", "/invite/")
}

/// Returns the browser that a reply signs in.
async fn browser_of(client: &TestClient, reply: &TestResponse) -> SignedInBrowser {
    let cookie = reply.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let form = client.send("GET", "/app/account/security", &[("cookie", &cookie)], "").await;
    SignedInBrowser { form_token: hidden(&form, "form_token"), cookie }
}

async fn sign_in(client: &TestClient, email: &str, password: &str) -> TestResponse {
    client.send_form("/sign-in", &[], &format!("email={email}&password={}", password.replace(' ', "+"))).await
}

#[tokio::test]
async fn owners_see_and_change_members_and_nobody_else_does() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let (ann, _) = member(&client, "ann@example.com", Role::Viewer).await;
    let role_path = format!("{MEMBERS}/{ann}/role");
    let remove_path = format!("{MEMBERS}/{ann}/remove");
    invite(&client, &owner, "bob@example.com", "viewer").await;
    let list = client.open(&owner, MEMBERS).await;
    for text in ["ann@example.com", "bob@example.com", "2 members", "Not signed in", ">you<", "/app/account/keys"] {
        assert_eq!(list.text.contains(text), text != "Not signed in", "{text}: {}", list.text);
    }
    let resend_path = between(&list.text, "action=\"/app/account/members/invitations/", "\"");
    let resend_path = format!("{MEMBERS}/invitations/{resend_path}");
    let revoke_path = resend_path.replace("/resend", "/revoke");
    let fields = [("role", "owner"), ("email", "eve@example.com")];
    for role in [Role::Editor, Role::Viewer] {
        let browser = client.sign_in(role).await;
        for path in [MEMBERS, INVITE, &remove_path] {
            let refused = client.open(&browser, path).await;
            let expected = format!("Your role ({}) may not do this.", role.name());
            assert!(refused.status == 403 && refused.text.contains(&expected), "{path} {}", refused.text);
        }
        for path in [INVITE, &role_path, &remove_path, &resend_path, &revoke_path] {
            assert_eq!(client.submit(&browser, path, &fields).await.status, 403, "{path}");
        }
        let security = client.open(&browser, "/app/account/security").await;
        assert!(!security.text.contains(MEMBERS), "{}", security.text);
    }
    // Another account's ids are answered like ids that don't exist.
    let stranger = stranger(&client).await;
    let unknown = "per_0000000000000000000000000a";
    for (path, missing) in [
        (&role_path, format!("{MEMBERS}/{unknown}/role")),
        (&remove_path, format!("{MEMBERS}/{unknown}/remove")),
        (&resend_path, format!("{MEMBERS}/invitations/0011223344556677/resend")),
        (&revoke_path, format!("{MEMBERS}/invitations/0011223344556677/revoke")),
    ] {
        let (foreign, missing) =
            (client.submit(&stranger, path, &fields).await, client.submit(&stranger, &missing, &fields).await);
        assert_eq!((foreign.status, &foreign.text), (404, &missing.text), "{path}");
    }
    assert_eq!(client.open(&stranger, &remove_path).await.status, 404);
    assert!(!client.open(&stranger, MEMBERS).await.text.contains("ann@example.com"));
    for path in [MEMBERS, INVITE] {
        assert_eq!(client.send("GET", path, &[], "").await.status, 303, "signed out: {path}");
    }
    // Nothing has changed.
    let list = client.open(&owner, MEMBERS).await;
    assert!(list.text.contains("bob@example.com") && list.text.contains("ann@example.com"), "{}", list.text);
}

#[tokio::test]
async fn a_role_is_changed_at_once_and_the_last_owner_stays() {
    let client = TestClient::new().await;
    let (me, owner) = member(&client, "olga@example.com", Role::Owner).await;
    let (ann, ann_browser) = member(&client, "ann@example.com", Role::Editor).await;
    let change = async |person: &str, role: &str| {
        client.submit(&owner, &format!("{MEMBERS}/{person}/role"), &[("role", role)]).await
    };
    let monitor = client.create_monitor(serde_json::json!({ "url": "https://shop.example/" })).await;
    let id = monitor["id"].as_str().unwrap();
    let lowered = change(&ann, "viewer").await;
    assert_eq!(location(&lowered), "/app/account/members?done=role-changed&count=1");
    assert!(client.open(&owner, location(&lowered)).await.text.contains("Role changed"));
    let pause = client.submit(&ann_browser, &client.screen("/monitors/bulk"), &[("do", "pause"), ("id", id)]).await;
    assert_eq!(pause.status, 403, "she is a viewer now");
    let raised = change(&ann, "editor").await;
    assert_eq!(location(&raised), "/app/account/members?done=role-raised&count=1");
    assert_eq!(client.open(&ann_browser, "/app").await.status, 303, "she signs in again");
    for role in ["viewer", "editor"] {
        let refused = change(&me, role).await;
        assert!(refused.status == 400 && refused.text.contains("Make someone else owner first."), "{}", refused.text);
    }
    let list = client.open(&owner, MEMBERS).await;
    assert!(list.text.contains(&format!("{ann}/role")) && !list.text.contains(&format!("{me}/role")), "{}", list.text);
    let refused = client.submit(&owner, &format!("{MEMBERS}/{me}/remove"), &[]).await;
    assert!(refused.status == 400 && refused.text.contains("Make someone else owner first."), "{}", refused.text);
    assert_eq!(change(&ann, "emperor").await.status, 400);
    change(&ann, "owner").await;
    let mine = change(&me, "viewer").await;
    let expected = "Ask another owner to change your own role.";
    assert!(mine.status == 400 && mine.text.contains(expected), "{}", mine.text);
    assert_eq!(client.open(&owner, MEMBERS).await.status, 200, "a form of one's own changes nothing");
}

#[tokio::test]
async fn a_second_click_on_a_form_of_the_members_gets_the_answer_of_the_first() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let (ann, _) = member(&client, "ann@example.com", Role::Viewer).await;
    invite(&client, &owner, "bob@example.com", "viewer").await;
    let twice = async |screen: &str, action: &str| {
        let form = client.open(&owner, screen).await;
        let (_, form) = form.text.split_once(action).unwrap_or_else(|| panic!("{action}: {}", form.text));
        let (path, form) = form.split_once('"').unwrap();
        let key = form.split_once("name=\"idempotency_key\" value=\"").unwrap().1.split_once('"').unwrap().0;
        let path = format!("{}{path}", action.trim_start_matches("action=\""));
        let mut places = Vec::new();
        for _ in 0..2 {
            let reply = client.submit(&owner, &path, &[("idempotency_key", key)]).await;
            places.push(format!("{} {}", reply.status, location(&reply)));
        }
        assert_eq!(places[0], places[1], "{path}");
        (path, places.remove(0))
    };
    let invitations = "action=\"/app/account/members/invitations/";
    let (resend, place) = twice(MEMBERS, invitations).await;
    assert_eq!(place, "303 /app/account/members?done=invitation-sent&count=1");
    assert_eq!(client.world.sent_of_no_page("person.invitation").len(), 2, "one by each form");
    let list = client.open(&owner, MEMBERS).await;
    let id = between(&list.text, "/members/invitations/", "/");
    let (revoke, place) = twice(MEMBERS, &format!("action=\"{MEMBERS}/invitations/{id}/revoke")).await;
    assert_eq!(place, "303 /app/account/members?done=invitation-revoked&count=1");
    let remove = format!("{MEMBERS}/{ann}/remove");
    let (_, place) = twice(&remove, &format!("action=\"{remove}")).await;
    assert_eq!(place, "303 /app/account/members?done=member-removed&count=1");
    // Another form from earlier gets the reason.
    for (path, reason) in [
        (&resend, "The invitation may have been used"),
        (&revoke, "The invitation may have been used"),
        (&remove, "The member may have left the account."),
    ] {
        let reply = client.submit(&owner, path, &[]).await;
        assert!(reply.status == 404 && reply.text.contains(reason), "{path} {}", reply.text);
    }
}

#[tokio::test]
async fn a_removed_member_is_sent_to_sign_in() {
    let client = TestClient::new().await;
    let (me, owner) = member(&client, "olga@example.com", Role::Owner).await;
    let (ann, ann_browser) = member(&client, "ann@example.com", Role::Owner).await;
    let path = format!("{MEMBERS}/{ann}/remove");
    let question = client.open(&owner, &path).await;
    assert!(
        question.text.contains("Remove ann@example.com?") && question.text.contains("API keys"),
        "{}",
        question.text
    );
    assert_eq!(client.open(&ann_browser, "/app").await.status, 200, "a question changes nothing");
    let removed = client.submit(&owner, &path, &[]).await;
    assert_eq!(location(&removed), "/app/account/members?done=member-removed&count=1");
    let next = client.open(&ann_browser, "/app").await;
    assert_eq!((next.status, location(&next)), (303, "/sign-in?next=%2Fapp"));
    assert_eq!(sign_in(&client, "ann@example.com", PASSWORD).await.status, 403, "they have no other account");
    // An owner leaves once there is another.
    let (_, second) = member(&client, "second@example.com", Role::Owner).await;
    let mine = format!("{MEMBERS}/{me}/remove");
    assert!(client.open(&owner, &mine).await.text.contains("Leave this account?"));
    let left = client.submit(&owner, &mine, &[]).await;
    assert_eq!((left.status, location(&left)), (303, "/sign-in"));
    assert!(!client.open(&second, MEMBERS).await.text.contains("olga@example.com"));
}

#[tokio::test]
async fn changes_of_members_need_a_fresh_confirmation() {
    let client = TestClient::new().await;
    let (me, owner) = member(&client, "olga@example.com", Role::Owner).await;
    let path = invite(&client, &owner, "bob@example.com", "viewer").await;
    let list = client.open(&owner, MEMBERS).await;
    let resend = format!("{MEMBERS}/invitations/{}", between(&list.text, "/members/invitations/", "\""));
    client.world.clock.set(client.world.service.now() + 11 * MINUTE);
    let to_list = "/confirm?next=%2Fapp%2Faccount%2Fmembers";
    let to_form = "/confirm?next=%2Fapp%2Faccount%2Fmembers%2Finvite";
    for (reply, expected) in [
        (client.open(&owner, INVITE).await, to_form),
        (client.submit(&owner, INVITE, &[("email", "eve@example.com"), ("role", "viewer")]).await, to_form),
        (client.submit(&owner, &format!("{MEMBERS}/{me}/role"), &[("role", "viewer")]).await, to_list),
        (client.open(&owner, &format!("{MEMBERS}/{me}/remove")).await, to_list),
        (client.submit(&owner, &format!("{MEMBERS}/{me}/remove"), &[]).await, to_list),
        (client.submit(&owner, &resend, &[]).await, to_list),
    ] {
        assert_eq!((reply.status, location(&reply)), (303, expected));
    }
    assert_eq!(client.send("GET", &path, &[], "").await.status, 200, "the old link still works");
    let confirmed = client.submit(&owner, "/confirm", &[("next", INVITE), ("current", PASSWORD)]).await;
    assert_eq!(client.open(&owner, location(&confirmed)).await.status, 200);
}

#[tokio::test]
async fn a_new_person_joins_by_their_invitation_once() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let form = client.open(&owner, INVITE).await;
    assert!(form.text.contains("Changes nothing.") && form.text.contains("50 open invitations"), "{}", form.text);
    let once = hidden(&form, "idempotency_key");
    let submit = async |email: &str| {
        let fields = [("idempotency_key", once.as_str()), ("email", email), ("role", "editor")];
        client.submit(&owner, INVITE, &fields).await
    };
    let refused = submit("nobody").await;
    assert!(refused.status == 400 && refused.text.contains("Must be an email address."), "{}", refused.text);
    assert!(refused.text.contains("value=\"nobody\"") && refused.text.contains(&once), "nothing typed is lost");
    for _ in 0..2 {
        assert_eq!(submit("bob@example.com").await.status, 303);
    }
    assert_eq!(client.world.sent_of_no_page("person.invitation").len(), 1, "a second click sends no second mail");
    let path = mailed(&client, "person.invitation", "/invite/");
    for _ in 0..3 {
        let opened = client.send("GET", &path, &[], "").await;
        assert!(opened.status == 200 && opened.text.contains("owner@example.com"), "{}", opened.text);
        assert!(opened.text.contains("as an editor") && opened.text.contains("Choose a password"), "{}", opened.text);
        assert!(!opened.headers.contains_key("set-cookie"));
    }
    let foreign = [("sec-fetch-site", "cross-site"), ("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(client.send("POST", &path, &foreign, "password=correct+horse").await.status, 403);
    let short = client.send_form(&path, &[], "password=short&name=Bob").await;
    assert!(short.status == 400 && short.text.contains("Must be at least 10 characters."), "{}", short.text);
    assert!(short.text.contains("value=\"Bob\""), "{}", short.text);
    let joined = client.send_form(&path, &[], "password=correct+horse&name=Bob").await;
    assert_eq!((joined.status, location(&joined)), (303, "/app"));
    let bob = browser_of(&client, &joined).await;
    assert!(client.open(&bob, "/app").await.text.contains("Bob, editor"));
    assert_eq!(client.open(&bob, MEMBERS).await.status, 403);
    assert!(client.open(&owner, MEMBERS).await.text.contains("bob@example.com"));
    let invented = format!("/invite/{}", "a".repeat(43));
    for link in [path.as_str(), invented.as_str(), "/invite/x"] {
        for reply in [client.send("GET", link, &[], "").await, client.send_form(link, &[], "password=a").await] {
            assert!(reply.status == 404 && reply.text.contains("This invitation does not work"), "{}", reply.text);
        }
    }
    let taken = client.submit(&owner, INVITE, &[("email", "bob@example.com"), ("role", "viewer")]).await;
    assert!(taken.status == 400 && taken.text.contains("Is already a member."), "{}", taken.text);
}

#[tokio::test]
async fn inviting_says_nothing_about_who_has_an_account() {
    let client = TestClient::new().await;
    let (owner, stranger) = (client.sign_in(Role::Owner).await, stranger(&client).await);
    let known = invite(&client, &owner, "ann@example.com", "viewer").await;
    client.send_form(&known, &[], "password=correct+horse").await;
    let mut replies = Vec::new();
    for email in ["ann@example.com", "nobody@example.com"] {
        let path = invite(&client, &stranger, email, "viewer").await;
        let id = client.open(&stranger, MEMBERS).await;
        assert!(id.text.contains(email) && path.len() == known.len());
        let newest = client.world.sent_of_no_page("person.invitation").pop().unwrap();
        let DeliveryMessage::Mail(mail) = newest.message else { panic!("links are mailed") };
        replies.push((mail.subject, mail.text.replace(&path, "LINK")));
    }
    assert_eq!(replies[0], replies[1]);
}

#[tokio::test]
async fn a_person_of_one_account_joins_another_and_switches() {
    let client = TestClient::new().await;
    let stranger = stranger(&client).await;
    let (_, ann) = member(&client, "ann@example.com", Role::Viewer).await;
    assert!(!client.open(&ann, "/app").await.text.contains("/app/account/switch"), "one account needs no choice");
    let path = invite(&client, &stranger, "ann@example.com", "editor").await;
    // Not signed in: by password.
    let form = client.send("GET", &path, &[], "").await;
    assert!(form.text.contains("Your password") && !form.text.contains("Choose a password"), "{}", form.text);
    let wrong = client.send_form(&path, &[], "password=wrong+password").await;
    assert!(wrong.status == 403 && wrong.text.contains("The password is wrong."), "{}", wrong.text);
    // Signed in as someone else: the form says so.
    let other = client.sign_in(Role::Owner).await;
    let form = client.open(&other, &path).await;
    assert!(form.text.contains("You are signed in as owner-") && form.text.contains("Your password"), "{}", form.text);
    assert_eq!(client.send_form(&path, &[("cookie", &other.cookie)], "").await.status, 403);
    // Signed in as that person: a button.
    let form = client.open(&ann, &path).await;
    assert!(form.text.contains("You are signed in as ann@example.com.") && !form.text.contains("name=\"password\""));
    let joined = client.send_form(&path, &[("cookie", &ann.cookie)], "").await;
    assert_eq!(joined.status, 303);
    assert_eq!(client.open(&ann, "/app").await.status, 303, "the session has a new id");
    let ann = browser_of(&client, &joined).await;
    let overview = client.open(&ann, "/app").await;
    assert!(overview.text.contains("Other") && overview.text.contains("/app/account/switch"), "{}", overview.text);
    assert_eq!(client.open(&ann, &client.screen("")).await.status, 404, "the shop is in the other account");
    let choice = client.open(&ann, "/app/account/switch").await;
    assert!(choice.text.contains("Viewer, Blog, Shop") && choice.text.contains("this one"), "{}", choice.text);
    let account = hidden(&choice, "account");
    let switched = client.submit(&ann, "/app/account/switch", &[("account", &account)]).await;
    assert_eq!((switched.status, location(&switched)), (303, "/app"));
    assert_eq!(client.open(&ann, "/app").await.status, 303);
    let ann = browser_of(&client, &switched).await;
    assert_eq!(client.open(&ann, &client.screen("")).await.status, 200);
    // Nobody opens an account of which they are no member.
    for account in [client.world.owner.id.to_string(), "x".to_owned()] {
        let refused = client.submit(&stranger, "/app/account/switch", &[("account", &account)]).await;
        assert_eq!(refused.status, 404, "{account}");
    }
}

#[tokio::test]
async fn a_forgotten_password_is_replaced_by_a_mailed_link_in_any_browser() {
    let client = TestClient::new().await;
    let (_, ann) = member(&client, "ann@example.com", Role::Viewer).await;
    let sign_in_form = client.send("GET", "/sign-in", &[], "").await;
    assert!(sign_in_form.text.contains("href=\"/reset\">Forgot your password?"), "{}", sign_in_form.text);
    assert!(client.send("GET", "/reset", &[], "").await.text.contains("action=\"/reset\""));
    let ask = async |email: &str| client.send_form("/reset", &[], &format!("email={email}")).await;
    let (known, unknown) = (ask("ann@example.com").await, ask("nobody@example.com").await);
    assert_eq!((known.status, unknown.status), (200, 200));
    assert_eq!(known.text.replace("ann@", "nobody@"), unknown.text, "it says nothing about who has an account");
    assert!(known.text.contains("If ann@example.com has an account, a link is on its way."), "{}", known.text);
    assert_eq!(client.world.sent_of_no_page("person.password-reset").len(), 1);
    assert_eq!(ask("nobody").await.status, 400);
    let forged = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "cross-site")];
    assert_eq!(client.send("POST", "/reset", &forged, "email=ann@example.com").await.status, 403);

    let path = mailed(&client, "person.password-reset", "/reset/");
    for _ in 0..3 {
        let opened = client.send("GET", &path, &[], "").await;
        assert!(opened.status == 200 && opened.text.contains("value=\"ann@example.com\""), "{}", opened.text);
        assert!(opened.text.contains("Passkeys are removed, too, unless an account of yours needs one"));
    }
    let short = client.send_form(&path, &[], "password=short").await;
    assert!(short.status == 400 && short.text.contains("Must be at least 10 characters."), "{}", short.text);
    assert_eq!(client.send("POST", &path, &forged, "password=another+horse").await.status, 403);
    assert_eq!(client.open(&ann, "/app").await.status, 200, "nothing has changed yet");
    let done = client.send_form(&path, &[], "password=another+horse").await;
    assert!(done.status == 200 && done.text.contains("You are signed out everywhere."), "{}", done.text);
    assert!(!done.headers.contains_key("set-cookie"), "it signs nobody in");
    assert_eq!(client.open(&ann, "/app").await.status, 303);
    for reply in
        [client.send("GET", &path, &[], "").await, client.send_form(&path, &[], "password=a+third+horse").await]
    {
        assert!(reply.status == 404 && reply.text.contains("This link does not work"), "{}", reply.text);
    }
    let sign_in = async |password: &str| sign_in(&client, "ann@example.com", password).await.status;
    assert_eq!((sign_in(PASSWORD).await, sign_in("another horse").await), (403, 303));
}
