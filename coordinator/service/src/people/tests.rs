//! Tests of what happens at the same time: a new password with sessions and links that begin meanwhile, and two clicks.

use parallax_core::delivery::DeliveryMessage;
use parallax_core::role::Role;
use parallax_store::{Batch, StoreError};

use super::*;
use crate::idempotency::IdempotencyKey;
use crate::test_world::{World, world};

const PASSWORD: &str = "correct horse";
const EMAIL: &str = "ann@example.com";
const BROWSER: [u8; 16] = [7; 16];

/// Ways in which a session or a link of a person begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    SignIn,
    MailedLink,
    JoinByPassword,
    JoinSignedIn,
    OtherAccount,
    SignInLink,
    ResetLink,
}

const BEGINNINGS: [Beginning; 7] = [
    Beginning::SignIn,
    Beginning::MailedLink,
    Beginning::JoinByPassword,
    Beginning::JoinSignedIn,
    Beginning::OtherAccount,
    Beginning::SignInLink,
    Beginning::ResetLink,
];

/// A member of both accounts, signed in, and the token of an invitation to the first.
struct Ann {
    current: CurrentSession,
    invitation: String,
}

fn current(world: &World, session: &NewSession) -> CurrentSession {
    world.service.people.authenticate(&session.token).unwrap().unwrap()
}

/// Token of the newest mail of that event.
fn mailed(world: &World, event: &str, path: &str) -> String {
    let DeliveryMessage::Mail(mail) = world.sent_of_no_page(event).pop().unwrap().message else {
        panic!("links are mailed")
    };
    mail.text.split_once(path).unwrap().1.split_whitespace().next().unwrap().to_owned()
}

async fn sign_in(world: &World, password: &str) -> ServiceResult<NewSession> {
    let ask = PasswordSignIn { email: EMAIL.to_owned(), password: password.to_owned(), is_kept: true };
    Ok(world.service.people.sign_in(&ask, &BrowserInfo::default()).await?.session().unwrap())
}

async fn request_link(world: &World) -> ServiceResult<()> {
    let email = EMAIL.to_owned();
    let request = DashboardLinkRequest { email, browser: BROWSER, network: None, next: String::new(), is_kept: false };
    world.service.people.request_link(&request).await
}

async fn ann(world: &World) -> Ann {
    let people = &world.service.people;
    let password = Some(PASSWORD.to_owned());
    let new = NewPerson { email: EMAIL.to_owned(), name: String::new(), role: Role::Viewer, password };
    people.add_as_operator(world.foreign.account, &new).await.unwrap();
    let current = current(world, &sign_in(world, PASSWORD).await.unwrap());
    let owner = self::current(world, &world.signed_in(Role::Owner).await);
    people.invite(&owner, (EMAIL, Role::Viewer), None).await.unwrap();
    Ann { current, invitation: mailed(world, "person.invitation", "/invite/") }
}

async fn begin(world: &World, ann: &Ann, beginning: Beginning) {
    let (people, browser) = (&world.service.people, BrowserInfo::default());
    let details = JoinDetails { name: String::new(), password: PASSWORD.to_owned() };
    match beginning {
        Beginning::SignIn => drop(sign_in(world, PASSWORD).await.unwrap()),
        Beginning::MailedLink => {
            let token = mailed(world, "person.sign-in", "/sign-in/link/");
            assert!(people.sign_in_by_link(&token, Some(&BROWSER), &browser).await.unwrap().is_ok());
        }
        Beginning::JoinByPassword => drop(people.join(&ann.invitation, &details, None, &browser).await.unwrap()),
        Beginning::JoinSignedIn => {
            drop(people.join(&ann.invitation, &details, Some(&ann.current), &browser).await.unwrap());
        }
        Beginning::OtherAccount => {
            drop(people.choose_account(&ann.current, world.foreign.account).await.unwrap());
        }
        Beginning::SignInLink => request_link(world).await.unwrap(),
        Beginning::ResetLink => people.request_password_reset(EMAIL, None).await.unwrap(),
    }
}

#[tokio::test]
async fn whatever_ends_all_sessions_and_links_misses_none_that_begins_meanwhile() {
    for beginning in BEGINNINGS {
        let world = world().await;
        let people = &world.service.people;
        let ann = ann(&world).await;
        if beginning == Beginning::MailedLink {
            request_link(&world).await.unwrap();
        }
        let person = ann.current.person.id;
        let (mut new_password, mut end_sessions) = (Batch::new(), Batch::new());
        people.replace_password(person, ("hash", false), &mut new_password).await.unwrap();
        people.end_sessions_of(person, |_| true, &mut end_sessions).await.unwrap();
        begin(&world, &ann, beginning).await;
        for decided_before in [new_password, end_sessions] {
            let result = world.service.context.store().commit(decided_before).await;
            assert!(matches!(result, Err(StoreError::Conflict(_))), "{beginning:?} {result:?}");
        }
    }
}

#[tokio::test]
async fn of_two_new_passwords_at_once_one_wins() {
    let world = world().await;
    let people = &world.service.people;
    let ann = ann(&world).await;
    let mut links = Vec::new();
    for _ in 0..2 {
        world.clock.set(world.service.now() + 1);
        people.request_password_reset(EMAIL, None).await.unwrap();
        links.push(mailed(&world, "person.password-reset", "/reset/"));
    }
    let browser = &BrowserInfo::default();
    let (first, second) = tokio::join!(
        people.reset_password(&links[0], "first horse", browser),
        people.reset_password(&links[1], "second horse", browser)
    );
    let (winner, loser) = if first.is_ok() { ("first horse", "second horse") } else { ("second horse", "first horse") };
    assert_eq!(first.and(second), Err(ServiceError::NotFound));
    assert!(sign_in(&world, winner).await.is_ok());
    for password in [loser, PASSWORD] {
        assert_eq!(sign_in(&world, password).await.unwrap_err(), ServiceError::WrongCredentials);
    }
    assert!(!people.is_signed_in(ann.current.session.id).unwrap());
}

#[tokio::test]
async fn an_old_password_changes_nothing_once_it_was_replaced() {
    let world = world().await;
    let people = &world.service.people;
    let ann = ann(&world).await;
    people.request_password_reset(EMAIL, None).await.unwrap();
    let link = mailed(&world, "person.password-reset", "/reset/");
    people.reset_password(&link, "another horse", &BrowserInfo::default()).await.unwrap();
    // A request from earlier that is answered only now: it found its session and the old password.
    let change = people.change_password(&ann.current, (PASSWORD, "a third horse"), &BrowserInfo::default()).await;
    assert_eq!(change.unwrap_err(), ServiceError::ConfirmationRequired);
    assert!(sign_in(&world, "another horse").await.is_ok());
    assert_eq!(sign_in(&world, "a third horse").await.unwrap_err(), ServiceError::WrongCredentials);
}

#[tokio::test]
async fn a_changed_password_ends_sessions_and_links_of_before() {
    let world = world().await;
    let people = &world.service.people;
    let ann = ann(&world).await;
    let elsewhere = sign_in(&world, PASSWORD).await.unwrap();
    people.request_password_reset(EMAIL, None).await.unwrap();
    let link = mailed(&world, "person.password-reset", "/reset/");
    let passwords = (PASSWORD, "another horse");
    let new = people.change_password(&ann.current, passwords, &BrowserInfo::default()).await.unwrap();
    assert!(
        people.authenticate(&new.token).unwrap().is_some() && people.authenticate(&elsewhere.token).unwrap().is_none()
    );
    assert_eq!(people.password_reset_email(&link).unwrap(), None);
    assert_eq!(
        people.reset_password(&link, "a third horse", &BrowserInfo::default()).await,
        Err(ServiceError::NotFound)
    );
}

#[tokio::test]
async fn a_request_from_before_its_session_ended_changes_no_member() {
    let world = world().await;
    let people = &world.service.people;
    let member = world.signed_in(Role::Viewer).await.session.person;
    let session = world.signed_in(Role::Owner).await;
    let late = current(&world, &session);
    // One that has read the session, and is committed after its end.
    let mut decided_before = Batch::new();
    people.expect_owner(&late, &mut decided_before).unwrap();
    decided_before.write(AccountMember::new((world.owner.id, member), Role::Owner, world.service.now()));
    people.sign_out(&session.token).await.unwrap();
    let result = world.service.context.store().commit(decided_before).await;
    assert!(matches!(result, Err(StoreError::Conflict(_))), "{result:?}");
    // Those that read it afterwards.
    let refused = ServiceError::ConfirmationRequired;
    assert_eq!(people.change_role(&late, member, Role::Owner).await, Err(refused.clone()));
    assert_eq!(people.remove_member(&late, member, None).await, Err(refused.clone()));
    assert_eq!(people.invite(&late, ("bob@example.com", Role::Viewer), None).await, Err(refused));
    assert_eq!(people.role_in(world.owner.id, member).unwrap(), Some(Role::Viewer));
}

#[tokio::test]
async fn a_second_click_on_members_does_nothing_and_is_answered_alike() {
    let world = world().await;
    let people = &world.service.people;
    let owner = current(&world, &world.signed_in(Role::Owner).await);
    let member = world.signed_in(Role::Viewer).await.session.person;
    let key = |name: &str| Some(IdempotencyKey::new(owner.caller().limit_id(), name, &[name.as_bytes()]));
    let sent = || world.sent_of_no_page("person.invitation").len();
    let new = ("ann@example.com", Role::Viewer);
    let clicks = tokio::join!(people.invite(&owner, new, key("invite")), people.invite(&owner, new, key("invite")));
    assert_eq!((clicks, sent()), ((Ok(()), Ok(())), 1));
    let id = people.invitations(&owner.caller()).await.unwrap().remove(0).id;
    let resend = || people.resend_invitation(&owner, &id, key("resend"));
    let clicks = tokio::join!(resend(), resend());
    assert_eq!((clicks, resend().await, sent()), ((Ok(()), Ok(())), Ok(()), 2));
    assert_eq!(people.resend_invitation(&owner, &id, None).await, Err(ServiceError::NotFound), "it has a new link");
    // Two clicks on buttons of the same list: the second finds no link of that id.
    let id = people.invitations(&owner.caller()).await.unwrap().remove(0).id;
    let clicks = tokio::join!(people.resend_invitation(&owner, &id, None), people.resend_invitation(&owner, &id, None));
    assert!(matches!(clicks, (Ok(()), Err(ServiceError::NotFound)) | (Err(ServiceError::NotFound), Ok(()))));
    // Three were sent to that mailbox; neither of the repetitions counts.
    assert_eq!(sent(), 3);
    let id = people.invitations(&owner.caller()).await.unwrap().remove(0).id;
    let caller = owner.caller();
    let revoke = || people.revoke_invitation(&caller, &id, key("revoke"));
    assert_eq!((revoke().await, revoke().await), (Ok(()), Ok(())));
    let other_form = people.revoke_invitation(&caller, &id, None).await;
    assert_eq!(other_form, Err(ServiceError::NotFound));
    let remove = || people.remove_member(&owner, member, key("remove"));
    assert_eq!((remove().await, remove().await), (Ok(()), Ok(())));
    assert_eq!(people.remove_member(&owner, member, None).await, Err(ServiceError::NotFound));
}
