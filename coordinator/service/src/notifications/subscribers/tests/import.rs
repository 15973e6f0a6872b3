//! Imports: a preview that stores nothing, addresses that are asked as fast as the limits allow, and opt-outs that
//! stay.

use parallax_core::role::Role;
use parallax_core::subscriber::QUEUED_RETENTION;
use parallax_core::subscriber::import::RefusedLine;
use parallax_core::time::MINUTE;

use super::*;
use crate::idempotency::{IdempotencyKey, IdempotentRequest};
use crate::{ActorId, Caller};

impl World {
    async fn import(&self, caller: &Caller, text: &str) -> ImportReport {
        match self.service.subscribers.import(caller, self.shop.id, text, &each_time()).await {
            Ok(RequestOutcome::Fresh(report)) => report,
            other => panic!("{other:?}"),
        }
    }

    /// Addresses that were asked for the shop, sorted.
    fn asked(&self) -> Vec<String> {
        let asked = self.subscribers(&self.shop).into_iter().filter(|it| !it.is_queued());
        let mut asked: Vec<String> = asked.map(|it| address(&it)).collect();
        asked.sort();
        asked
    }
}

fn address(subscriber: &Subscriber) -> String {
    match &subscriber.contact {
        Contact::Email(email) => email.clone(),
        Contact::Webhook { url, .. } => url.clone(),
    }
}

fn lines(count: usize) -> String {
    (0..count).map(|n| format!("reader{n}@example.com\n")).collect()
}

#[tokio::test]
async fn a_preview_counts_and_an_import_stores_each_address_once() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    world.subscribed("known@example.com").await;
    let text = "email\nann@example.com\nKnown@example.com\nnonsense\nANN@example.com\nbob@example.com\n";
    let refused = vec![RefusedLine { line: 4, rule: "must be an email address".to_owned() }];
    let expected = ImportReport { added: 2, known: 1, repeated: 1, opted_out: 0, refused };
    let subscribers = &world.service.subscribers;
    assert_eq!(subscribers.preview_import(&caller, world.shop.id, text).await, Ok(expected.clone()));
    assert_eq!(world.subscribers(&world.shop).len(), 1, "a preview stores nothing");
    assert_eq!(world.import(&caller, text).await, expected);
    let counts = subscribers.counts(&caller, world.shop.id).await.unwrap();
    assert_eq!((counts.queued, counts.total()), (2, 3));
    assert_eq!(world.confirmation_requests(&world.shop).len(), 1, "nothing is sent by the import itself");
    let again = world.import(&caller, text).await;
    assert_eq!((again.added, again.known, world.subscribers(&world.shop).len()), (0, 3, 3));

    let key = || Some(IdempotencyKey::new(ActorId::Key(caller.key().unwrap().id), "once", &[b"import"]));
    let answer = |report: &ImportReport| report.added.to_string().into_bytes();
    for expected in [false, true] {
        let once = IdempotentRequest::new(key(), &answer);
        let outcome = subscribers.import(&caller, world.shop.id, "zoe@example.com", &once).await.unwrap();
        assert_eq!(matches!(outcome, RequestOutcome::Replayed(stored) if stored == b"1"), expected);
    }
}

#[tokio::test]
async fn imported_addresses_are_asked_within_the_limits_of_mails() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let subscribers = &world.service.subscribers;
    assert_eq!(world.import(&caller, &lines(60)).await.added, 60);
    subscribers.ask_queued().await.unwrap();
    // Of the 20 that an account without confirmed addresses may ask in an hour, five are left for single ones.
    assert_eq!((world.asked().len(), world.confirmation_requests(&world.shop).len()), (15, 15));
    subscribers.ask_queued().await.unwrap();
    assert_eq!(world.asked().len(), 15, "the hour is not over");
    for _ in 0..5 {
        subscribers.subscribe_by(ConfirmationOrigin::Owner, &world.shop, &mail("one@example.com"), None).await.unwrap();
    }
    world.clock.set(world.service.now() + HOUR + MINUTE);
    subscribers.ask_queued().await.unwrap();
    assert_eq!(world.asked().len(), 15 + 15 + 1);
    // A restart forgets the queue, and its first sweep finds the addresses.
    subscribers.import_queue.pages().clear();
    world.clock.set(world.service.now() + HOUR + MINUTE);
    subscribers.sweep().await.unwrap();
    subscribers.ask_queued().await.unwrap();
    assert_eq!(world.asked().len(), 15 + 15 + 15 + 1);
    world.clock.set(world.service.now() + HOUR + MINUTE);
    subscribers.ask_queued().await.unwrap();
    assert_eq!(world.asked().len(), 61);
    assert!(subscribers.import_queue.pages().is_empty(), "all are asked");
}

#[tokio::test]
async fn an_address_that_was_asked_today_is_asked_later() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let subscribers = &world.service.subscribers;
    subscribers.subscribe(&world.blog, &mail("ann@example.com")).await.unwrap();
    world.import(&caller, "ann@example.com\nbob@example.com").await;
    subscribers.ask_queued().await.unwrap();
    assert_eq!(world.asked(), ["bob@example.com"]);
    world.clock.set(world.service.now() + CONFIRMATION_INTERVAL);
    subscribers.sweep().await.unwrap();
    subscribers.ask_queued().await.unwrap();
    assert_eq!(world.asked(), ["ann@example.com", "bob@example.com"]);
}

#[tokio::test]
async fn an_import_undoes_no_opt_out() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let subscribers = &world.service.subscribers;
    let off = world.subscribed("off@example.com").await;
    let health = DeliveryHealth { disabled: Some((START, DisableReason::Rejected)), ..DeliveryHealth::default() };
    world.store(Subscriber { health, ..off.clone() }).await;
    let left = world.subscribed("left@example.com").await;
    subscribers.unsubscribe(&left.link_token()).await.unwrap();
    let text = "off@example.com\nleft@example.com\nLeft+tag@example.com\nnew@example.com";
    let report = world.import(&caller, text).await;
    assert_eq!((report.added, report.known, report.opted_out), (1, 1, 2));
    subscribers.ask_queued().await.unwrap();
    assert_eq!(world.asked(), ["new@example.com", "off@example.com"]);
    let stored = world.subscribers(&world.shop).into_iter().find(|it| it.id == off.id).unwrap();
    assert!(stored.health.disabled.is_some(), "it stays off");
    // Who subscribes again has changed their mind.
    let again = world.subscribed("left@example.com").await;
    subscribers.delete(&caller, world.shop.id, again.id, &each_time()).await.unwrap();
    assert_eq!(world.import(&caller, "left@example.com").await.added, 1);
}

#[tokio::test]
async fn an_imported_address_that_can_not_be_asked_expires() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    world.import(&caller, "ann@example.com").await;
    let imported = world.subscribers(&world.shop).remove(0);
    world.clock.set(world.service.now() + QUEUED_RETENTION - 1);
    world.service.subscribers.sweep().await.unwrap();
    assert_eq!(world.subscribers(&world.shop), [imported], "it waits longer than one that was asked");
    world.clock.set(world.service.now() + 1);
    world.service.subscribers.sweep().await.unwrap();
    assert!(world.subscribers(&world.shop).is_empty());
}

#[tokio::test]
async fn imports_and_exports_follow_the_table_of_roles() {
    let world = world().await;
    let subscribers = &world.service.subscribers;
    let (shop, foreign) = (world.shop.id, world.foreign.id);
    let person = async |role: Role| {
        let session = world.signed_in(role).await;
        world.service.people.authenticate(&session.token).unwrap().unwrap().caller()
    };
    for (role, may_import, may_export) in
        [(Role::Owner, true, true), (Role::Editor, true, false), (Role::Viewer, false, false)]
    {
        world.clock.set(world.service.now() + 1);
        let (caller, forbidden) = (person(role).await, ServiceError::RoleForbids { role });
        let text = format!("{}@example.com", role.name());
        let preview = subscribers.preview_import(&caller, shop, &text).await;
        assert_eq!(preview.err(), (!may_import).then(|| forbidden.clone()), "{role:?}");
        let imported = subscribers.import(&caller, shop, &text, &each_time()).await;
        assert_eq!(imported.err(), (!may_import).then(|| forbidden.clone()), "{role:?}");
        let exported = subscribers.export(&caller, shop, None).await;
        assert_eq!(exported.err(), (!may_export).then(|| forbidden.clone()), "{role:?}");
        assert_eq!(subscribers.import(&caller, foreign, &text, &each_time()).await.err(), Some(ServiceError::NotFound));
        assert_eq!(subscribers.export(&caller, foreign, None).await.err(), Some(ServiceError::NotFound));
    }
    let (write, read) = (world.caller(KeyAccess::Write).await, world.caller(KeyAccess::Read).await);
    let first = |slice: SubscriberSlice| address(&slice.subscribers[0]);
    assert_eq!(first(subscribers.export(&write, shop, None).await.unwrap()), "owner@example.com");
    assert_eq!(first(subscribers.export(&read, shop, None).await.unwrap()), "o***@example.com");
    let refused = subscribers.import(&read, shop, "a@example.com", &each_time()).await;
    assert_eq!(refused.err(), Some(ServiceError::ReadOnly));
}

#[tokio::test]
async fn a_page_has_a_bounded_queue() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    assert_eq!(world.import(&caller, &lines(MAX_QUEUED)).await.added, MAX_QUEUED);
    let more = world.service.subscribers.preview_import(&caller, world.shop.id, "one@example.com").await;
    let Err(ServiceError::Invalid(faults)) = more else { panic!("{more:?}") };
    assert!(faults.to_string().contains("5000 wait to be asked already"), "{faults}");
    let known = world.service.subscribers.preview_import(&caller, world.shop.id, "reader1@example.com").await;
    assert_eq!(known.map(|report| report.known), Ok(1), "nothing new");
}
