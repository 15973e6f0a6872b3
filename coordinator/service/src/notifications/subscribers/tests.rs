//! Subscription requests: who gets a message, and that a request reveals nothing about others.

mod import;

use parallax_core::delivery::{AttemptOutcome, DeliveryAttempt};
use parallax_core::destination::DisableReason;
use parallax_core::key::KeyAccess;
use parallax_core::subscriber::UNCONFIRMED_RETENTION;
use parallax_core::time::{DAY, HOUR};

use super::*;
use crate::idempotency::RequestOutcome;
use crate::test_world::{START, World, each_time, http, world};

fn mail(address: &str) -> SubscriptionRequest {
    SubscriptionRequest { email: Some(address.to_owned()), ..SubscriptionRequest::default() }
}

fn hook(url: &str) -> SubscriptionRequest {
    SubscriptionRequest { url: Some(url.to_owned()), ..SubscriptionRequest::default() }
}

impl World {
    fn confirmation_requests(&self, page: &Page) -> Vec<Delivery> {
        let deliveries = self.service.context.store().reader().deliveries_of(Some(page.id), None, 100).unwrap();
        deliveries.into_iter().map(|it| it.value).collect()
    }

    async fn store(&self, subscriber: Subscriber) {
        self.service.context.store().commit(Batch::new().write(subscriber).clone()).await.unwrap();
    }

    /// The receiver of the newest message about the page answers with that.
    async fn record_answer(&self, page: &Page, outcome: AttemptOutcome, answer: &str) {
        let mut delivery = self.confirmation_requests(page).remove(0);
        let now = self.service.now();
        let attempt =
            DeliveryAttempt { at: now, duration_ms: 1, status: None, error: None, response: answer.to_owned() };
        delivery.record_attempt(attempt, outcome, now, 0.0);
        self.service.context.store().commit(Batch::new().write(delivery).clone()).await.unwrap();
    }
}

#[tokio::test]
async fn every_subscriber_gets_the_same_reply_and_one_request_a_day() {
    let world = world().await;
    let (service, shop, blog) = (&world.service, &world.shop, &world.blog);
    for (page, address) in [
        (shop, "Ann@example.com"),
        (shop, "ann@EXAMPLE.com"),
        (shop, "ann+tag@example.com"),
        (blog, "ann@example.com"),
        (&world.foreign, "ANN+2@example.com"),
    ] {
        assert_eq!(
            service.subscribers.subscribe(page, &mail(address)).await,
            Ok(SubscribeResponse::MailSent),
            "{address}"
        );
    }
    let confirmation_requests = world.confirmation_requests(shop);
    let [confirmation_request] = &confirmation_requests[..] else { panic!("{confirmation_requests:?}") };
    assert_eq!((confirmation_request.event.as_str(), confirmation_request.is_single_attempt), (CONFIRMATION, false));
    let subscriber = world.subscribers(shop).remove(0);
    assert_eq!((subscriber.confirmed_at, confirmation_request.to), (None, Recipient::Subscriber(subscriber.id)));
    let DeliveryMessage::Mail(message) = &confirmation_request.message else { panic!("{confirmation_request:?}") };
    assert!(message.text.contains(&subscriber.confirm_url(&service.pages.url(shop))));
    assert!(world.subscribers(blog).is_empty() && world.confirmation_requests(blog).is_empty());

    world.clock.set(service.now() + CONFIRMATION_INTERVAL);
    service.subscribers.subscribe(shop, &mail("ann@example.com")).await.unwrap();
    assert_eq!((world.confirmation_requests(shop).len(), world.subscribers(shop).len()), (2, 1));
    assert_eq!(world.subscribers(shop)[0].link_token(), subscriber.link_token(), "both mails are valid");
}

#[tokio::test]
async fn a_confirmed_subscriber_may_subscribe_to_another_page_that_day() {
    let world = world().await;
    let service = &world.service;
    service.subscribers.subscribe(&world.shop, &mail("ann@example.com")).await.unwrap();
    let subscriber = world.subscribers(&world.shop).remove(0);
    service.subscribers.confirm(&world.shop, &subscriber.link_token(), None).await.unwrap();
    service.subscribers.subscribe(&world.blog, &mail("ann@example.com")).await.unwrap();
    service.subscribers.subscribe(&world.shop, &mail("ann@example.com")).await.unwrap();
    assert_eq!(
        (world.confirmation_requests(&world.blog).len(), world.confirmation_requests(&world.shop).len()),
        (1, 1)
    );
}

#[tokio::test]
async fn a_confirmation_request_depends_on_the_stored_subscriber() {
    let new_subscriber = NewSubscriber::new(START, false);
    let page = world().await.shop;
    let subscriber = |ask: SubscriptionRequest| {
        new_subscriber.subscriber(&page, &ask.validate(&BTreeSet::new(), &|_| None).unwrap(), START)
    };
    let (mailed, hooked) = (subscriber(mail("ann@example.com")), subscriber(hook("hooks.example")));
    let unsubscribed = |it: &Subscriber| {
        let health = DeliveryHealth { disabled: Some((START, DisableReason::Rejected)), ..DeliveryHealth::default() };
        Subscriber { health, ..it.clone() }
    };
    let confirmed = |it: &Subscriber| Subscriber { confirmed_at: Some(START), ..it.clone() };
    let cases = [
        (&mailed, None, true),
        (&hooked, None, true),
        (&mailed, Some(mailed.clone()), true),
        (&hooked, Some(hooked.clone()), false),
        (&mailed, Some(confirmed(&mailed)), true),
        (&hooked, Some(confirmed(&hooked)), false),
        (&mailed, Some(unsubscribed(&mailed)), false),
        (&mailed, Some(confirmed(&unsubscribed(&mailed))), false),
        (&hooked, Some(confirmed(&unsubscribed(&hooked))), false),
    ];
    for (new, before, is_asked) in cases {
        assert_eq!(subscriber_after_request(before.as_ref(), new.clone(), false).is_some(), is_asked, "{before:?}");
        assert_eq!(subscriber_after_request(before.as_ref(), new.clone(), true), None, "{before:?}");
        let after = subscriber_after_request(before.as_ref(), new.clone(), false);
        let keeps_confirmation =
            |it: &Subscriber| before.as_ref().is_none_or(|old| old.confirmed_at == it.confirmed_at);
        assert!(after.as_ref().is_none_or(keeps_confirmation), "a request confirms nobody and changes nobody");
    }
}

#[tokio::test]
async fn only_an_unexpired_link_of_this_page_confirms() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    let caller = service.keys.authenticate(world.key(KeyAccess::Write, None).await.reveal()).unwrap();
    let created = service.monitors.create(&caller, shop.id, &http("Cart"), &each_time()).await;
    let RequestOutcome::Fresh(created) = created.unwrap() else { panic!("it is new") };
    service.subscribers.subscribe(shop, &mail("ann@example.com")).await.unwrap();
    let subscriber = world.subscribers(shop).remove(0);
    let wrong_link = Subscriber { token: [0; 16], ..subscriber.clone() };
    for (page, link) in [
        (shop, wrong_link.link_token()),
        (&world.blog, subscriber.link_token()),
        (shop, String::new()),
        (shop, "x".repeat(58)),
    ] {
        assert_eq!(service.subscribers.subscription(page, &link), Err(ServiceError::NotFound));
        assert_eq!(service.subscribers.confirm(page, &link, None).await, Err(ServiceError::NotFound));
    }
    let none: &[String] = &[];
    assert!(matches!(
        service.subscribers.confirm(shop, &subscriber.link_token(), Some(none)).await,
        Err(ServiceError::Invalid(_))
    ));
    assert!(world.subscribers(shop)[0].confirmed_at.is_none());

    let monitors = [created.monitor.id.to_string()];
    let confirmed = service.subscribers.confirm(shop, &subscriber.link_token(), Some(&monitors)).await.unwrap();
    assert_eq!((confirmed.confirmed_at, confirmed.monitors), (Some(service.now()), Some(vec![created.monitor.id])));
    // The same link changes the choice later, and never the time of consent.
    world.clock.set(service.now() + 9 * DAY);
    let wider = service.subscribers.confirm(shop, &subscriber.link_token(), None).await.unwrap();
    assert_eq!((wider.confirmed_at, &wider.monitors), (confirmed.confirmed_at, &None));

    world.store(Subscriber { confirmed_at: None, ..wider }).await;
    world.clock.set(subscriber.confirmation_sent_at + UNCONFIRMED_RETENTION);
    assert_eq!(service.subscribers.confirm(shop, &subscriber.link_token(), None).await, Err(ServiceError::NotFound));
}

#[tokio::test]
async fn a_webhook_is_confirmed_only_by_its_response() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    let outcome = service.subscribers.subscribe(shop, &hook("https://hooks.example/a")).await.unwrap();
    let SubscribeResponse::ChallengeSent { secret, link } = outcome else { panic!("{outcome:?}") };
    let subscriber = world.subscribers(shop).remove(0);
    assert_eq!(link, subscriber.link_token());
    assert!(matches!(&subscriber.contact, Contact::Webhook { secret: kept, .. } if kept.newest == secret));
    assert_eq!(
        service.subscribers.confirm(shop, &link, None).await,
        Err(ServiceError::NotFound),
        "the requester has the link"
    );
    let confirmation_request = world.confirmation_requests(shop).remove(0);
    let DeliveryMessage::Json(body) = &confirmation_request.message else { panic!("{confirmation_request:?}") };
    let value: serde_json::Value = serde_json::from_slice(body).unwrap();
    let value = value["challenge"].as_str().unwrap().to_owned();
    assert!(confirmation_request.is_single_attempt && !link.contains(&value));

    let full_body = String::from_utf8(body.clone()).unwrap();
    let (nested, other) = (format!("{{\"challenge\":\"{value}\",\"a\":1}}"), format!("{value}0"));
    for wrong_answer in [full_body.as_str(), &nested, &other, "", "OK", &value[1..]] {
        world.record_answer(shop, AttemptOutcome::Accepted, wrong_answer).await;
        service.subscribers.await_answer(subscriber.id);
        service.subscribers.check_answers().await.unwrap();
        assert_eq!(world.subscribers(shop)[0].confirmed_at, None, "{wrong_answer}");
    }
    world.record_answer(shop, AttemptOutcome::Gone, &value).await;
    service.subscribers.await_answer(subscriber.id);
    service.subscribers.check_answers().await.unwrap();
    assert_eq!(world.subscribers(shop)[0].confirmed_at, None, "an error page may echo it");
    for valid in [format!("{{\"challenge\": \"{value}\"}}\n"), format!(" {value}\r\n"), format!("\"{value}\"")] {
        world.record_answer(shop, AttemptOutcome::Accepted, &valid).await;
        world.store(subscriber.clone()).await;
        // As after a restart: the sweep finds the pending ones.
        service.subscribers.sweep().await.unwrap();
        service.subscribers.check_answers().await.unwrap();
        assert_eq!(world.subscribers(shop)[0].confirmed_at, Some(service.now()), "{valid}");
    }
    assert!(service.subscribers.subscription(shop, &link).is_ok(), "now the link changes its choice");
}

#[tokio::test]
async fn challenges_are_limited_per_url_and_per_host() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    let mut links = BTreeSet::new();
    for n in 0..30 {
        let url = if n < 5 { "hooks.example/a".to_owned() } else { format!("hooks.example/{n}") };
        let Ok(SubscribeResponse::ChallengeSent { link, .. }) = service.subscribers.subscribe(shop, &hook(&url)).await
        else {
            panic!("the answer is the same")
        };
        links.insert(link);
    }
    assert_eq!((world.confirmation_requests(shop).len(), links.len()), (6, 30));
    for address in ["http://127.0.0.1/", "http://10.0.0.1/", "http://[::1]/", "http://localhost:8080"] {
        assert!(
            matches!(service.subscribers.subscribe(shop, &hook(address)).await, Err(ServiceError::Invalid(_))),
            "{address}"
        );
    }
    world.clock.set(service.now() + CONFIRMATION_INTERVAL);
    service.subscribers.subscribe(shop, &hook("hooks.example/a")).await.unwrap();
    assert_eq!(
        (world.confirmation_requests(shop).len(), world.subscribers(shop).len()),
        (7, 6),
        "the old request is replaced"
    );
}

#[tokio::test]
async fn unconfirmed_subscribers_expire_and_confirmed_ones_stay() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    for address in ["ann@example.com", "bob@example.com"] {
        service.subscribers.subscribe(shop, &mail(address)).await.unwrap();
    }
    let link = world.subscribers(shop)[0].link_token();
    service.subscribers.confirm(shop, &link, None).await.unwrap();
    world.clock.set(service.now() + UNCONFIRMED_RETENTION - HOUR);
    service.subscribers.sweep().await.unwrap();
    assert_eq!(world.subscribers(shop).len(), 2);
    world.clock.set(service.now() + HOUR);
    service.subscribers.sweep().await.unwrap();
    let remaining: Vec<String> = world.subscribers(shop).iter().map(Subscriber::link_token).collect();
    assert_eq!(remaining, [link]);
}

#[tokio::test]
async fn unsubscribing_needs_only_the_link_even_on_a_hidden_page() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    service.subscribers.subscribe(shop, &mail("ann@example.com")).await.unwrap();
    let subscriber = world.subscribers(shop).remove(0);
    let wrong_link = Subscriber { token: [1; 16], ..subscriber.clone() };
    assert_eq!(service.subscribers.unsubscribe(&wrong_link.link_token()).await, Ok(()), "it reveals nothing");
    assert_eq!(world.subscribers(shop).len(), 1);
    let hidden = Page { private: true, slug: "elsewhere".to_owned(), ..shop.clone() };
    service.context.store().commit(Batch::new().write(hidden).clone()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(service.subscribers.unsubscribe(&subscriber.link_token()).await, Ok(()));
        assert!(world.subscribers(shop).is_empty());
    }
    assert_eq!(service.subscribers.unsubscribe("x").await, Err(ServiceError::NotFound));
}
