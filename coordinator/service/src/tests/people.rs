//! Persons as callers: their roles at every kind of change, the bounds of their sessions, and delays of sign-in.

use parallax_core::delivery::{DeliveryMessage, DeliveryState};
use parallax_core::destination::edit::DestinationEdit;
use parallax_core::id::DestinationId;
use parallax_core::login_session::MAX_SESSIONS;
use parallax_core::one_time_link::LinkOwner;
use parallax_core::page::access::PagePassword;
use parallax_core::page::edit::PageEdit;
use parallax_core::patch::PatchField;
use parallax_core::role::Role;
use parallax_core::subscriber::Contact;
use parallax_core::time::MINUTE;

use crate::deliveries::DeliveryFilter;
use crate::monitors::CheckNowProgress;
use crate::page_access::sign_in::{BrowserId, LinkValidity};
use crate::people::{BrowserInfo, DashboardLinkRequest, NewPerson, NewSession, PasswordSignIn, SetUpDetails};
use crate::subscribers::SubscriberFilter;
use crate::test_world::{World, each_time, world};
use crate::{Caller, ServiceError};

const PASSWORD: &str = "correct horse";

async fn caller(world: &World, role: Role) -> Caller {
    let session = world.signed_in(role).await;
    world.service.people.authenticate(&session.token).unwrap().unwrap().caller()
}

fn value(text: &str) -> PatchField<String> {
    PatchField::Value(text.to_owned())
}

#[tokio::test]
async fn each_role_may_change_what_the_table_says() {
    let world = world().await;
    let (service, shop) = (&world.service, world.shop.id);
    let look = PageEdit { description: value("All our services"), ..PageEdit::default() };
    let address = PageEdit { slug: value("store"), ..PageEdit::default() };
    let access =
        PageEdit { password: PatchField::Value(PagePassword::new("open sesame".to_owned())), ..PageEdit::default() };
    // Outcome by role: may edit, may manage.
    for (role, may_edit, may_manage) in
        [(Role::Viewer, false, false), (Role::Editor, true, false), (Role::Owner, true, true)]
    {
        let caller = caller(&world, role).await;
        let forbidden = ServiceError::RoleForbids { role };
        let check = |name: &str, may: bool, error: Option<ServiceError>| {
            assert_eq!(error.as_ref() != Some(&forbidden), may, "{name} by {}: {error:?}", role.name());
        };
        assert_eq!(service.pages.get(&caller, shop).unwrap().id, shop, "everyone may look");
        let monitor = world.make(&caller, &format!("By {}", role.name())).await;
        check("monitor", may_edit, monitor.err());
        check("look", may_edit, service.pages.edit(&caller, shop, &look, &each_time()).await.err());
        let test = service.deliveries.send_test(&caller, shop, DestinationId::from_u128(1)).await;
        check("test alert", may_edit, test.err());
        check("address", may_manage, service.pages.edit(&caller, shop, &address, &each_time()).await.err());
        check("access", may_manage, service.pages.edit(&caller, shop, &access, &each_time()).await.err());
        let edit = DestinationEdit::default();
        let made = service.destinations.create(&caller, shop, &edit, &each_time()).await;
        check("destination", may_manage, made.err());
        let none = DestinationId::from_u128(1);
        let rotated = service.destinations.rotate_secret(&caller, shop, none, &each_time()).await;
        check("secret", may_manage, rotated.err());
        let deleted = service.destinations.delete(&caller, shop, none, &each_time()).await;
        check("deletion of a destination", may_manage, deleted.err());
        check("keys", may_manage, service.keys.list_as_member(&caller).await.err());
        let foreign = service.pages.get(&caller, world.foreign.id);
        assert_eq!(foreign.unwrap_err(), ServiceError::NotFound, "another account's page");
        // The last: an owner may delete the page.
        check("deletion", may_manage, service.pages.delete(&caller, world.blog.id, &each_time()).await.err());
    }
    let key = world.caller(parallax_core::key::KeyAccess::Write).await;
    assert_eq!(service.keys.list_as_member(&key).await.unwrap_err(), ServiceError::NotFound, "no key manages keys");
}

#[tokio::test]
async fn a_person_has_fifty_sessions_and_a_further_one_ends_the_oldest() {
    let world = world().await;
    let people = &world.service.people;
    let first = world.signed_in(Role::Viewer).await;
    let mut newest = first.clone();
    for number in 1..=MAX_SESSIONS {
        assert!(people.authenticate(&first.token).unwrap().is_some(), "after {number}");
        world.clock.set(world.service.now() + 1);
        newest = people.test_session(world.owner.id, first.session.person).await;
    }
    assert!(people.authenticate(&first.token).unwrap().is_none());
    let current = people.authenticate(&newest.token).unwrap().unwrap();
    assert_eq!(people.sessions(&current).await.unwrap().len(), MAX_SESSIONS);
}

#[tokio::test]
async fn failures_delay_a_sign_in_but_not_where_the_person_usually_signs_in() {
    let world = world().await;
    let people = &world.service.people;
    let (email, password) = ("ann@example.com".to_owned(), Some(PASSWORD.to_owned()));
    let ann = NewPerson { email: email.clone(), name: String::new(), role: Role::Owner, password };
    people.add_as_operator(world.owner.id, &ann).await.unwrap();
    let from = |address: &str| BrowserInfo::new(Some(address.parse().unwrap()), "", None);
    let sign_in = async |password: &str, browser: &BrowserInfo| {
        let ask = PasswordSignIn { email: email.clone(), password: password.to_owned(), is_kept: true };
        people.sign_in(&ask, browser).await.map(|step| step.session().unwrap().session.network)
    };
    let home = from("203.0.113.7");
    assert_eq!(sign_in(PASSWORD, &home).await.unwrap().as_deref(), Some("203.0.113.0/24"));
    for number in 0..10 {
        let refused = sign_in("wrong password", &from(&format!("198.51.{number}.1"))).await;
        assert_eq!(refused, Err(ServiceError::WrongCredentials), "{number}");
    }
    let elsewhere = from("192.0.2.1");
    assert_eq!(sign_in(PASSWORD, &elsewhere).await, Err(ServiceError::TooManyTries { seconds: 30 }));
    assert!(sign_in(PASSWORD, &home).await.is_ok(), "others' failures don't lock a person out");
    // The right password from a known network ended the delay for all.
    assert!(sign_in(PASSWORD, &elsewhere).await.is_ok());
    // One network that fails for many addresses waits, too.
    for number in 0..30 {
        let ask =
            PasswordSignIn { email: format!("p{number}@example.com"), password: "wrong".to_owned(), is_kept: false };
        assert_eq!(people.sign_in(&ask, &home).await.unwrap_err(), ServiceError::WrongCredentials);
    }
    assert_eq!(sign_in(PASSWORD, &home).await, Err(ServiceError::TooManyTries { seconds: 30 }));
    world.clock.set(world.service.now() + MINUTE);
    assert!(sign_in(PASSWORD, &home).await.is_ok());
}

/// A new owner with a password, signed in from that address.
async fn ann(world: &World) -> NewSession {
    let password = Some(PASSWORD.to_owned());
    let ann = NewPerson { email: "ann@example.com".to_owned(), name: String::new(), role: Role::Owner, password };
    world.service.people.add_as_operator(world.owner.id, &ann).await.unwrap();
    let ask = PasswordSignIn { email: ann.email, password: PASSWORD.to_owned(), is_kept: true };
    let home = BrowserInfo::new("203.0.113.7".parse().ok(), "", None);
    world.service.people.sign_in(&ask, &home).await.unwrap().session().unwrap()
}

/// Requests a sign-in link, and returns its token.
async fn mailed_link(world: &World, email: &str, browser: BrowserId) -> String {
    let (email, next) = (email.to_owned(), String::new());
    let request = DashboardLinkRequest { email, browser, network: None, next, is_kept: false };
    world.service.people.request_link(&request).await.unwrap();
    let DeliveryMessage::Mail(mail) = world.sent_of_no_page("person.sign-in").pop().unwrap().message else {
        panic!("links are mailed")
    };
    mail.text.split_once("/sign-in/link/").unwrap().1.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_set_up_and_a_new_password_end_all_pending_links() {
    let world = world().await;
    let people = &world.service.people;
    let set_up_link = async || {
        let link = people.create_set_up_link(world.owner.id, false).await.unwrap();
        link.split_once("/setup/").unwrap().1.to_owned()
    };
    let details = SetUpDetails { password: PASSWORD.to_owned(), ..SetUpDetails::default() };
    let (printed, used) = (set_up_link().await, set_up_link().await);
    let session = people.set_up(&used, &details, &BrowserInfo::default()).await.unwrap().session().unwrap();
    assert!(!session.session.is_kept, "nobody asked for it");
    for link in [&printed, &used] {
        assert_eq!(people.set_up_account(link).unwrap(), None, "another link of the account works no more");
    }
    let browser = [7; 16];
    let mailed = mailed_link(&world, "owner@example.com", browser).await;
    assert_eq!(people.link_validity(&mailed, Some(&browser)).unwrap(), LinkValidity::Valid);
    let current = people.authenticate(&session.token).unwrap().unwrap();
    let passwords = (PASSWORD, "another horse");
    people.change_password(&current, passwords, &BrowserInfo::default()).await.unwrap();
    assert_eq!(people.link_validity(&mailed, Some(&browser)).unwrap(), LinkValidity::Invalid);
    world.clock.set(world.service.now() + 1);
    let mailed = mailed_link(&world, "owner@example.com", browser).await;
    people.set_up(&set_up_link().await, &details, &BrowserInfo::default()).await.unwrap();
    assert_eq!(people.link_validity(&mailed, Some(&browser)).unwrap(), LinkValidity::Invalid);
}

#[tokio::test]
async fn a_person_without_a_password_can_not_extend_their_confirmation() {
    let world = world().await;
    let people = &world.service.people;
    let session = world.signed_in(Role::Owner).await;
    let current = || people.authenticate(&session.token).unwrap().unwrap();
    world.clock.set(world.service.now() + 9 * MINUTE);
    assert_eq!(people.confirm(&current(), "").await, Ok(()), "they signed in a moment ago");
    world.clock.set(world.service.now() + 2 * MINUTE);
    assert_eq!(people.require_confirmed(&current()), Err(ServiceError::ConfirmationRequired));
    assert_eq!(people.confirm(&current(), "").await, Err(ServiceError::ConfirmationRequired));
}

#[tokio::test]
async fn a_confirmation_waits_for_its_own_failures_alone() {
    let world = world().await;
    let people = &world.service.people;
    let session = ann(&world).await;
    let current = people.authenticate(&session.token).unwrap().unwrap();
    let home = BrowserInfo::new("203.0.113.7".parse().ok(), "", None);
    // Neighbours in her network, and strangers who try her address.
    for number in 0..30 {
        let ask =
            PasswordSignIn { email: format!("p{number}@example.com"), password: "wrong".to_owned(), is_kept: false };
        assert_eq!(people.sign_in(&ask, &home).await.unwrap_err(), ServiceError::WrongCredentials);
    }
    for number in 0..10 {
        let ask = PasswordSignIn { email: "ann@example.com".to_owned(), password: "wrong".to_owned(), is_kept: false };
        let stranger = BrowserInfo::new(format!("198.51.{number}.1").parse().ok(), "", None);
        assert_eq!(people.sign_in(&ask, &stranger).await.unwrap_err(), ServiceError::WrongCredentials);
    }
    assert_eq!(people.confirm(&current, PASSWORD).await, Ok(()));
    // A stolen session is no way to guess without delays.
    for number in 0..10 {
        assert!(matches!(people.confirm(&current, "wrong").await, Err(ServiceError::Invalid(_))), "{number}");
    }
    assert_eq!(people.confirm(&current, PASSWORD).await, Err(ServiceError::TooManyTries { seconds: 30 }));
}

#[tokio::test]
async fn a_person_checks_twenty_monitors_a_minute_and_a_key_as_many_as_its_requests() {
    let world = world().await;
    let (monitors, key) = (&world.service.monitors, world.caller(parallax_core::key::KeyAccess::Write).await);
    let (editor, other) = (caller(&world, Role::Editor).await, caller(&world, Role::Editor).await);
    let mut ids = Vec::new();
    for number in 0..21 {
        ids.push(world.make(&key, &format!("M{number}")).await.unwrap().monitor.id);
    }
    let check = async |caller: &Caller, number: usize| {
        monitors
            .check_now(caller, (world.shop.id, ids[number]), CheckNowProgress::default())
            .await
            .map(|report| report.outcomes.len())
    };
    for number in 0..20 {
        assert!(check(&editor, number).await.is_ok(), "{number}");
    }
    assert_eq!(check(&editor, 20).await, Err(ServiceError::CheckNowLimit { seconds: 60 }));
    assert_eq!(check(&editor, 0).await, Err(ServiceError::CheckNowTooSoon { seconds: 10 }));
    world.clock.set(world.service.now() + 10_000);
    assert!(check(&other, 20).await.is_ok(), "each person has their own limit");
    for number in 0..20 {
        assert!(check(&key, number).await.is_ok(), "{number}");
    }
    world.clock.set(world.service.now() + MINUTE);
    assert!(check(&editor, 20).await.is_ok());
}

#[tokio::test]
async fn viewers_see_no_bodies_and_search_no_addresses() {
    let world = world().await;
    world.receive();
    let (owner, viewer) = (caller(&world, Role::Owner).await, caller(&world, Role::Viewer).await);
    let editor = caller(&world, Role::Editor).await;
    let (service, shop) = (&world.service, world.shop.id);
    let destination = service.destinations.list(&owner, shop).await.unwrap().remove(0);
    let sent = service.deliveries.send_test(&owner, shop, destination.id).await.unwrap().delivery.id;
    let filter = DeliveryFilter { limit: 10, ..DeliveryFilter::default() };
    for (caller, answer) in [(&owner, "taken"), (&editor, "taken"), (&viewer, "")] {
        let read = service.deliveries.get(caller, shop, sent).unwrap();
        assert_eq!(read.delivery.attempt_log[0].response, answer);
        assert_eq!(read.body.is_some(), !answer.is_empty());
        let listed = service.deliveries.list(caller, shop, filter).await.unwrap().deliveries.remove(0);
        assert_eq!((listed.id, listed.attempt_log[0].response.as_str()), (sent, answer));
    }
    for email in ["ann@example.com", "bob@example.com"] {
        world.clock.set(world.service.now() + 1);
        world.subscribed(email).await;
    }
    for (caller, expected) in
        [(&editor, &["ann@example.com"][..]), (&viewer, &["a***@example.com", "b***@example.com"])]
    {
        let filter = SubscriberFilter { search: "ann@".to_owned(), limit: 10, ..SubscriberFilter::default() };
        let found = service.subscribers.search(caller, shop, filter).await.unwrap().subscribers;
        let found: Vec<_> = found.iter().map(|it| it.contact.clone()).collect();
        let expected: Vec<_> = expected.iter().map(|email| Contact::Email((*email).to_owned())).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn nothing_that_signs_in_is_stored_in_clear_text() {
    let world = world().await;
    let session = ann(&world).await;
    let mailed = mailed_link(&world, "ann@example.com", [7; 16]).await;
    let id = session.session.person;
    let reader = world.service.context.store().reader();
    let link = reader.one_time_links_of(LinkOwner::Person(id)).unwrap().remove(0).value;
    let stored = [
        postcard::to_stdvec(&reader.person(id).unwrap().unwrap().value).unwrap(),
        postcard::to_stdvec(&reader.login_session(session.session.id).unwrap().unwrap().value).unwrap(),
        postcard::to_stdvec(&link).unwrap(),
    ];
    for secret in [PASSWORD, session.token.reveal(), &mailed] {
        let is_in = |record: &Vec<u8>| record.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!stored.iter().any(is_in), "{secret}");
    }
    assert!(stored[0].windows(10).any(|part| part == b"$argon2id$"), "the hash of the password");
    // The mail holds its link until it is sent.
    let delivery = || world.sent_of_no_page("person.sign-in").remove(0);
    assert!(!format!("{:?}", delivery()).contains(&mailed), "debug output");
    world.receive();
    world.service.deliveries_due().notify_one();
    while matches!(delivery().state, DeliveryState::Waiting(_)) {
        tokio::task::yield_now().await;
    }
    let record = postcard::to_stdvec(&delivery()).unwrap();
    assert!(!record.windows(mailed.len()).any(|part| part == mailed.as_bytes()), "a delivered mail");
}

#[tokio::test]
async fn a_new_operator_signs_in_again() {
    let world = world().await;
    let people = &world.service.people;
    let session = ann(&world).await;
    let is_signed_in = || people.authenticate(&session.token).unwrap().is_some();
    assert!(!people.set_operator("ann@example.com", false).await.unwrap().is_operator && is_signed_in());
    assert!(people.set_operator("ann@example.com", true).await.unwrap().is_operator && !is_signed_in());
}
