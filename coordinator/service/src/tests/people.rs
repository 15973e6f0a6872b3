//! Persons as callers: their roles at every kind of change, the bounds of their sessions, and delays of sign-in.

use parallax_core::destination::edit::DestinationEdit;
use parallax_core::id::DestinationId;
use parallax_core::login_session::MAX_SESSIONS;
use parallax_core::page::access::PagePassword;
use parallax_core::page::edit::PageEdit;
use parallax_core::patch::PatchField;
use parallax_core::role::Role;
use parallax_core::time::MINUTE;

use crate::people::{BrowserInfo, NewPerson, PasswordSignIn};
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
    let caller = people.authenticate(&newest.token).unwrap().unwrap().caller();
    assert_eq!(people.sessions(&caller).await.unwrap().len(), MAX_SESSIONS);
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
        people.sign_in(&ask, browser).await.map(|new| new.session.network)
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
