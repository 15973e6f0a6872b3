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

    /// Addresses of all of the shop's subscribers.
    fn addresses(&self) -> Vec<String> {
        let all = self.service.context.store().reader().subscribers_of(self.shop.id, None, MAX_SUBSCRIBERS).unwrap();
        all.iter().map(|it| address(&it.value)).collect()
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
    let refused = vec![RefusedLine { line: 4, rule: "must be an email address".to_owned(), address: None }];
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
async fn spellings_of_one_mailbox_are_asked_once() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let subscribers = &world.service.subscribers;
    world.subscribed("ann@example.com").await;
    let text = "ANN+news@example.com\nbob@example.com\nbob+2@example.com\nzoe@example.com";
    let report = world.import(&caller, text).await;
    assert_eq!((report.added, report.known, report.repeated), (2, 1, 1));
    let again = world.import(&caller, "Bob+3@example.com").await;
    assert_eq!((again.added, again.known), (0, 1), "it waits to be asked already");
    // While an address waits, its reader subscribes by another spelling.
    world.subscribed("zoe+own@example.com").await;
    let mails = world.confirmation_requests(&world.shop).len();
    for _ in 0..2 {
        subscribers.ask_queued().await.unwrap();
        assert_eq!(world.asked(), ["ann@example.com", "bob@example.com", "zoe+own@example.com"]);
        assert_eq!(
            (world.subscribers(&world.shop).len(), world.confirmation_requests(&world.shop).len()),
            (3, mails + 1)
        );
        world.clock.set(world.service.now() + CONFIRMATION_INTERVAL);
        subscribers.sweep().await.unwrap();
    }
}

#[tokio::test]
async fn an_import_that_ends_early_is_repeated_for_the_rest() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    // Twenty parts: however busy the host is, the import doesn't store them all before the next look at the store.
    const ALL: usize = 5_000;
    let (subscribers, text) = (&world.service.subscribers, lines(ALL));
    let answer = |report: &ImportReport| report.added.to_string().into_bytes();
    let once = || {
        let key = IdempotencyKey::new(ActorId::Key(caller.key().unwrap().id), "once", &[b"import"]);
        IdempotentRequest::new(Some(key), &answer)
    };
    let stored_some = async {
        while world.subscribers(&world.shop).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        // Looks at the store before each step of the import, which waits for each part to be stored.
        biased;
        () = stored_some => {}
        outcome = async { subscribers.import(&caller, world.shop.id, &text, &once()).await } => panic!("{outcome:?}"),
    }
    subscribers.sweep().await.unwrap();
    subscribers.ask_queued().await.unwrap();
    // By now a commit that was on its way is in the store, too.
    let before = world.addresses().len();
    assert!((250..ALL).contains(&before), "{before}");
    assert_eq!(world.asked().len(), 15, "what was stored is asked");
    let RequestOutcome::Fresh(report) = subscribers.import(&caller, world.shop.id, &text, &once()).await.unwrap()
    else {
        panic!("the first had no answer")
    };
    assert_eq!((report.added, report.known), (ALL - before, before));
    let all = world.addresses();
    assert_eq!((all.len(), all.into_iter().collect::<BTreeSet<_>>().len()), (ALL, ALL));
    assert_eq!(world.confirmation_requests(&world.shop).len(), 15, "none is asked twice");
}

#[tokio::test]
async fn an_account_imports_a_bounded_number_an_hour() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let subscribers = &world.service.subscribers;
    subscribers.limits.admit_import(world.shop.account, 9_999).unwrap();
    for page in [world.shop.id, world.blog.id] {
        let refused = subscribers.preview_import(&caller, page, "a@example.com\nb@example.com").await;
        let Err(ServiceError::Invalid(faults)) = refused else { panic!("{refused:?}") };
        let rule = "csv has 2 new addresses: an account may import 10000 an hour, and 1 more in the next 60 minutes";
        assert_eq!(faults.to_string(), rule);
        let refused = subscribers.import(&caller, page, "a@example.com\nb@example.com", &each_time()).await;
        assert!(refused.is_err_and(|error| error == faults.into()));
    }
    assert_eq!(world.import(&caller, "a@example.com").await.added, 1);
    world.clock.set(world.service.now() + HOUR);
    assert_eq!(world.import(&caller, "a@example.com\nb@example.com\nc@example.com").await.added, 2);
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
        subscribers
            .subscribe_by((ConfirmationOrigin::Owner, None), &world.shop, &mail("one@example.com"), None)
            .await
            .unwrap();
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
    assert_eq!((report.added, report.known, report.repeated, report.opted_out), (1, 1, 1, 1));
    subscribers.ask_queued().await.unwrap();
    assert_eq!(world.asked(), ["new@example.com", "off@example.com"]);
    let stored = world.subscribers(&world.shop).into_iter().find(|it| it.id == off.id).unwrap();
    assert!(stored.health.disabled.is_some(), "it stays off");
    // Their opt-out stays when anyone enters the address again, and when the owner removes it.
    subscribers.subscribe(&world.shop, &mail("left+tag@example.com")).await.unwrap();
    let asked = world.subscribers(&world.shop).into_iter().find(|it| address(it) == "left+tag@example.com").unwrap();
    let refused = subscribers.add(&caller, world.shop.id, &mail("left@example.com"), &each_time()).await;
    let Err(ServiceError::Invalid(faults)) = refused else { panic!("{refused:?}") };
    assert!(faults.to_string().starts_with("email belongs to a reader who unsubscribed"), "{faults}");
    subscribers.delete(&caller, world.shop.id, asked.id, &each_time()).await.unwrap();
    assert_eq!(world.import(&caller, "left@example.com").await.opted_out, 1);
    world.clock.set(world.service.now() + CONFIRMATION_INTERVAL);
    // Who subscribes again has changed their mind.
    let again = world.subscribed("left@example.com").await;
    subscribers.delete(&caller, world.shop.id, again.id, &each_time()).await.unwrap();
    assert_eq!(world.import(&caller, "left@example.com").await.added, 1);
}

#[tokio::test]
async fn an_address_whose_reader_leaves_meanwhile_is_not_asked() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let subscribers = &world.service.subscribers;
    assert_eq!(world.import(&caller, "left@example.com\nnew@example.com").await.added, 2);
    let own = world.subscribed("left+own@example.com").await;
    subscribers.unsubscribe(&own.link_token()).await.unwrap();
    subscribers.ask_queued().await.unwrap();
    assert_eq!(world.addresses(), ["new@example.com"]);
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

#[tokio::test]
async fn two_imports_at_once_share_the_room_of_a_page() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let (half, other) = (lines(3_000), lines(3_000).replace("reader", "visitor"));
    let (shop, each) = (world.shop.id, each_time());
    let subscribers = &world.service.subscribers;
    let (one, two) =
        tokio::join!(subscribers.import(&caller, shop, &half, &each), subscribers.import(&caller, shop, &other, &each));
    assert_eq!([one.is_ok(), two.is_ok()], [true, false]);
    assert_eq!(world.addresses().len(), 3_000);
}
