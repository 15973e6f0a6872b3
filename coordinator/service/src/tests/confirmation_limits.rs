//! Confirmation requests to unconfirmed addresses: limits per page, account and owner.

use parallax_core::destination::Destination;
use parallax_core::destination::edit::DestinationEdit;
use parallax_core::incident::UpdatePost;
use parallax_core::incident::edit::IncidentEdit;
use parallax_core::patch::PatchField;
use parallax_core::plan::PlanLimitError;
use parallax_core::subscriber::Contact;
use parallax_core::subscriber::Subscriber;
use parallax_core::subscriber::confirmation_limit::{ConfirmationOrigin, MAX_UNCONFIRMED, PER_PAGE_MINUTE};
use parallax_core::subscriber::request::SubscriptionRequest;
use parallax_core::time::HOUR;

use super::*;
use crate::deliveries::ACCOUNT_TESTS;

fn ask(n: usize) -> SubscriptionRequest {
    SubscriptionRequest { email: Some(format!("a{n}@example.com")), ..SubscriptionRequest::default() }
}

impl World {
    async fn add_subscriber(&self, caller: &Caller, page: &Page, n: usize) -> ServiceResult<Subscriber> {
        match self.service.subscribers.add(caller, page.id, &ask(n), &each_time()).await? {
            RequestOutcome::Fresh(created) => Ok(created),
            RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => panic!("nothing was sent twice"),
        }
    }

    async fn create_destination(&self, caller: &Caller, n: usize) -> ServiceResult<Destination> {
        let edit = DestinationEdit {
            name: PatchField::Value("Ops".to_owned()),
            kind: PatchField::Value("email".to_owned()),
            ..mailbox_edit(n)
        };
        match self.service.destinations.create(caller, self.blog.id, &edit, &each_time()).await? {
            RequestOutcome::Fresh(created) => Ok(created),
            RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => panic!("nothing was sent twice"),
        }
    }

    async fn move_mailbox(&self, caller: &Caller, it: &Destination, n: usize) -> ServiceResult<()> {
        let outcome = self.service.destinations.edit(caller, self.blog.id, it.id, &mailbox_edit(n), &each_time()).await;
        outcome.map(drop)
    }
}

fn mailbox_edit(n: usize) -> DestinationEdit {
    DestinationEdit { to: PatchField::Value(format!("d{n}@example.com")), ..DestinationEdit::default() }
}

fn limit_error(limit: u32, seconds: u32) -> ServiceError {
    ServiceError::AccountConfirmationLimit { origin: ConfirmationOrigin::Owner, limit, seconds }
}

#[tokio::test]
async fn an_owner_sends_twenty_requests_an_hour_and_one_more_per_confirmed_address() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let started = world.service.now();
    for n in 0..10 {
        world.add_subscriber(&caller, &world.shop, n).await.unwrap();
    }
    let mut created = None;
    for n in 0..9 {
        created = Some(world.create_destination(&caller, n).await.unwrap());
    }
    let created = created.unwrap();
    world.move_mailbox(&caller, &created, 100).await.unwrap();
    // By any way of adding, and on any page.
    assert_eq!(world.add_subscriber(&caller, &world.blog, 50).await.unwrap_err(), limit_error(20, 3600));
    assert_eq!(world.create_destination(&caller, 50).await.unwrap_err(), limit_error(20, 3600));
    assert_eq!(world.move_mailbox(&caller, &created, 101).await.unwrap_err(), limit_error(20, 3600));
    let own_mailbox = DestinationEdit { to: PatchField::Value("owner@example.com".to_owned()), ..mailbox_edit(0) };
    let outcome = world.service.destinations.edit(&caller, world.blog.id, created.id, &own_mailbox, &each_time()).await;
    assert!(outcome.is_ok(), "the account's own mailbox needs no confirmation");
    assert_eq!(world.sent("subscription.confirmation").len(), 10);

    world.clock.set(started + HOUR);
    for subscriber in world.subscribers(&world.shop).iter().take(3) {
        world.service.subscribers.confirm(&world.shop, &subscriber.link_token(), None).await.unwrap();
    }
    for n in 100..120 {
        world.add_subscriber(&caller, &world.shop, n).await.unwrap();
    }
    assert_eq!(
        world.add_subscriber(&caller, &world.shop, 120).await.unwrap_err(),
        limit_error(20, 3600),
        "not within the day"
    );
    world.clock.set(world.service.now() + DAY);
    for n in 200..223 {
        world.add_subscriber(&caller, &world.shop, n).await.unwrap();
    }
    assert_eq!(world.add_subscriber(&caller, &world.shop, 300).await.unwrap_err(), limit_error(23, 3600));
    let refusal = limit_error(23, 7).to_string();
    assert_eq!(
        refusal,
        "an account can send 23 confirmation requests an hour (20, plus one for each address confirmed for a day, \
         up to 1000); try again in 7 seconds"
    );
}

#[tokio::test]
async fn confirmation_requests_of_visitors_and_owner_are_limited_separately() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    for n in 0..PER_PAGE_MINUTE as usize {
        world.service.subscribers.subscribe(&world.shop, &ask(n)).await.unwrap();
    }
    let full = ServiceError::PageConfirmationLimit { seconds: 60 };
    assert_eq!(world.service.subscribers.subscribe(&world.shop, &ask(90)).await.unwrap_err(), full);
    world.add_subscriber(&caller, &world.shop, 91).await.unwrap();
    world.service.subscribers.subscribe(&world.blog, &ask(92)).await.unwrap();
    world.clock.set(world.service.now() + MINUTE);
    world.service.subscribers.subscribe(&world.shop, &ask(93)).await.unwrap();
}

#[tokio::test]
async fn visitors_of_one_account_send_a_thousand_requests_an_hour() {
    let world = world().await;
    let mut count = 0;
    let refusal = loop {
        if count % 30 == 0 {
            world.clock.set(world.service.now() + MINUTE);
        }
        match world.service.subscribers.subscribe(&world.shop, &ask(count)).await {
            Ok(_) => count += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(count, 1_000);
    assert!(
        matches!(
            refusal,
            ServiceError::AccountConfirmationLimit { origin: ConfirmationOrigin::Visitor, limit: 1_000, .. }
        ),
        "{refusal:?}"
    );
    world.service.subscribers.subscribe(&world.foreign, &ask(4_000)).await.unwrap();
}

#[tokio::test]
async fn an_owner_has_two_hundred_unconfirmed_addresses_at_once() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let destination = world.create_destination(&caller, 0).await.unwrap();
    for n in 1..MAX_UNCONFIRMED {
        if n % 20 == 0 {
            world.clock.set(world.service.now() + HOUR);
        }
        world.add_subscriber(&caller, &world.shop, n).await.unwrap();
    }
    world.clock.set(world.service.now() + HOUR);
    let full = ServiceError::PlanLimit(PlanLimitError::UnconfirmedFull);
    assert_eq!(world.add_subscriber(&caller, &world.blog, 900).await.unwrap_err(), full);
    assert_eq!(world.create_destination(&caller, 901).await.unwrap_err(), full);
    world.service.subscribers.subscribe(&world.shop, &ask(902)).await.unwrap();
    // After a restart they are read from the store, without those that visitors added.
    world.service.subscribers.limits.unconfirmed().clear();
    assert_eq!(world.add_subscriber(&caller, &world.blog, 903).await.unwrap_err(), full);
    let one = world.subscribers(&world.shop).remove(0);
    let deleted = world.service.subscribers.delete(&caller, world.shop.id, one.id, &each_time()).await;
    deleted.unwrap();
    assert_eq!(
        world.add_subscriber(&caller, &world.blog, 904).await.unwrap_err(),
        full,
        "it got the mail all the same"
    );
    world.service.destinations.delete(&caller, world.blog.id, destination.id, &each_time()).await.unwrap();
    assert_eq!(world.add_subscriber(&caller, &world.blog, 905).await.unwrap_err(), full);
    let one = world.subscribers(&world.shop).remove(0);
    world.service.subscribers.confirm(&world.shop, &one.link_token(), None).await.unwrap();
    world.add_subscriber(&caller, &world.blog, 906).await.unwrap();
    assert_eq!(world.add_subscriber(&caller, &world.blog, 907).await.unwrap_err(), full);
    // A confirmed address needs no slot, however often it is added.
    let Contact::Email(mailbox) = &one.contact else { panic!("{one:?}") };
    let number = mailbox.trim_start_matches('a').split('@').next().unwrap().parse().unwrap();
    world.add_subscriber(&caller, &world.shop, number).await.unwrap();
    world.clock.set(world.service.now() + 2 * DAY);
    world.add_subscriber(&caller, &world.blog, 908).await.unwrap();
}

#[tokio::test]
async fn visitors_of_many_networks_lock_nobody_out() {
    let world = world().await;
    for network in 0..20_000 {
        world.service.subscribers.limits.admit_visitor(network).unwrap();
    }
    for n in 1..30 {
        world.service.subscribers.limits.admit_visitor(0).unwrap_or_else(|error| panic!("{n} {error}"));
    }
    assert!(world.service.subscribers.limits.admit_visitor(0).is_err(), "a known visitor is counted");
    world.service.subscribers.subscribe_from_ip(30_000, &world.shop, &ask(1)).await.unwrap();
    let invalid = SubscriptionRequest { email: Some("none".to_owned()), ..SubscriptionRequest::default() };
    assert!(matches!(
        world.service.subscribers.subscribe_from_ip(1, &world.shop, &invalid).await,
        Err(ServiceError::Invalid(_))
    ));
}

#[tokio::test]
async fn tests_of_an_accounts_destinations_are_limited_per_hour() {
    let world = world().await;
    let started = world.service.now();
    for n in 0..ACCOUNT_TESTS {
        if n % 5 == 0 {
            world.clock.set(world.service.now() + MINUTE);
        }
        world.service.deliveries.admit_test(if n % 2 == 0 { &world.shop } else { &world.blog }).unwrap();
    }
    world.clock.set(world.service.now() + MINUTE);
    let refusal = world.service.deliveries.admit_test(&world.blog).unwrap_err();
    assert!(matches!(refusal, ServiceError::AccountTestLimit { .. }), "{refusal:?}");
    world.service.deliveries.admit_test(&world.foreign).unwrap();
    world.clock.set(started + HOUR + MINUTE);
    world.service.deliveries.admit_test(&world.blog).unwrap();
}

#[tokio::test]
async fn above_sixty_notifications_an_hour_updates_are_posted_silently() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let edit = IncidentEdit { title: PatchField::Value("Broken".to_owned()), ..IncidentEdit::default() };
    let opened = world.service.incidents.open(&caller, world.shop.id, &edit, &each_time()).await.unwrap();
    let RequestOutcome::Fresh(opened) = opened else { panic!("nothing was sent twice") };
    let post = async |notify: bool| {
        let post = UpdatePost {
            status: PatchField::Absent,
            message: PatchField::Value("Still looking".to_owned()),
            notify: PatchField::Value(notify),
        };
        world
            .service
            .incidents
            .post_update(&caller, world.shop.id, opened.incident.id, &post, &each_time())
            .await
            .map(drop)
    };
    for _ in 0..70 {
        post(true).await.unwrap();
    }
    world.subscribed("ann@example.com").await;
    for _ in 0..60 {
        post(true).await.unwrap();
    }
    let refusal = post(true).await.unwrap_err();
    assert!(matches!(refusal, ServiceError::NotificationLimit { limit: 60, seconds: 3600, .. }), "{refusal:?}");
    post(false).await.unwrap();
    world.clock.set(world.service.now() + HOUR);
    post(true).await.unwrap();
}
