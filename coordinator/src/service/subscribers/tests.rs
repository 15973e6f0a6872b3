//! Subscription requests: who gets a message, and that a request reveals nothing about others.

use parallax_core::delivery::{Outcome, Try};
use parallax_core::destination::OffReason;
use parallax_core::key::Access;
use parallax_core::subscriber::UNCONFIRMED;
use parallax_core::time::{DAY, HOUR};

use super::*;
use crate::service::once::Done;
use crate::service::tests::{START, World, each_time, http, world};

fn mail(address: &str) -> Ask {
    Ask { email: Some(address.to_owned()), ..Ask::default() }
}

fn hook(url: &str) -> Ask {
    Ask { url: Some(url.to_owned()), ..Ask::default() }
}

impl World {
    fn asked(&self, page: &Page) -> Vec<Delivery> {
        let found = self.service.store().reader().deliveries_of(Some(page.id), None, 100).unwrap();
        found.into_iter().map(|it| it.value).collect()
    }

    /// A page's subscribers, confirmed or not.
    pub(crate) fn subscribers(&self, page: &Page) -> Vec<Subscriber> {
        let found = self.service.store().reader().subscribers_of(page.id, None, 100).unwrap();
        found.into_iter().map(|it| it.value).collect()
    }

    /// Subscribes an address to the shop.
    pub(crate) async fn subscribed(&self, address: &str) -> Subscriber {
        self.service.subscribe(&self.shop, &mail(address)).await.unwrap();
        let asked = self.subscribers(&self.shop).into_iter();
        let is_it = |it: &Subscriber| matches!(&it.contact, Contact::Email(email) if email == address);
        let link = asked.rev().find(is_it).unwrap().link();
        self.service.confirm(&self.shop, &link, None).await.unwrap()
    }

    pub(crate) async fn keep_page(&self, page: Page) {
        self.service.store().commit(Batch::new().write(page).clone()).await.unwrap();
    }

    async fn keep(&self, subscriber: Subscriber) {
        self.service.store().commit(Batch::new().write(subscriber).clone()).await.unwrap();
    }

    /// The receiver of the newest message about the page answers with that.
    async fn answers(&self, page: &Page, outcome: Outcome, answer: &str) {
        let mut delivery = self.asked(page).remove(0);
        let now = self.service.now();
        let tried = Try { at: now, took_ms: 1, status: None, error: None, answer: answer.to_owned() };
        delivery.note(tried, outcome, now, 0.0);
        self.service.store().commit(Batch::new().write(delivery).clone()).await.unwrap();
    }
}

#[tokio::test]
async fn whoever_asks_is_told_the_same_and_the_address_is_asked_once_a_day() {
    let world = world().await;
    let (service, shop, blog) = (&world.service, &world.shop, &world.blog);
    for (page, address) in [
        (shop, "Ann@example.com"),
        (shop, "ann@EXAMPLE.com"),
        (shop, "ann+tag@example.com"),
        (blog, "ann@example.com"),
        (&world.foreign, "ANN+2@example.com"),
    ] {
        assert_eq!(service.subscribe(page, &mail(address)).await, Ok(Subscribed::Mailed), "{address}");
    }
    let asked = world.asked(shop);
    let [asked] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((asked.event.as_str(), asked.once), (CONFIRMATION, false));
    let who = world.subscribers(shop).remove(0);
    assert_eq!((who.confirmed_at, asked.to), (None, Recipient::Subscriber(who.id)));
    let Letter::Mail(letter) = &asked.letter else { panic!("{asked:?}") };
    assert!(letter.text.contains(&who.confirm_url(&service.page_url(shop))));
    assert!(world.subscribers(blog).is_empty() && world.asked(blog).is_empty());

    world.clock.set(service.now() + ASKED_AGAIN);
    service.subscribe(shop, &mail("ann@example.com")).await.unwrap();
    assert_eq!((world.asked(shop).len(), world.subscribers(shop).len()), (2, 1));
    assert_eq!(world.subscribers(shop)[0].link(), who.link(), "both mails are valid");
}

#[tokio::test]
async fn one_who_has_confirmed_may_ask_for_another_page_on_the_same_day() {
    let world = world().await;
    let service = &world.service;
    service.subscribe(&world.shop, &mail("ann@example.com")).await.unwrap();
    let who = world.subscribers(&world.shop).remove(0);
    service.confirm(&world.shop, &who.link(), None).await.unwrap();
    service.subscribe(&world.blog, &mail("ann@example.com")).await.unwrap();
    service.subscribe(&world.shop, &mail("ann@example.com")).await.unwrap();
    assert_eq!((world.asked(&world.blog).len(), world.asked(&world.shop).len()), (1, 1));
}

#[tokio::test]
async fn who_is_asked_depends_on_what_stands() {
    let fresh = Fresh::new(START, false);
    let page = world().await.shop;
    let made = |ask: Ask| fresh.subscriber(&page, &ask.settle(&BTreeSet::new(), &|_| None).unwrap(), START);
    let (mailed, hooked) = (made(mail("ann@example.com")), made(hook("hooks.example")));
    let off = |it: &Subscriber| {
        let health = Health { off: Some((START, OffReason::Refused)), ..Health::default() };
        Subscriber { health, ..it.clone() }
    };
    let sure = |it: &Subscriber| Subscriber { confirmed_at: Some(START), ..it.clone() };
    let cases = [
        (&mailed, None, true),
        (&hooked, None, true),
        (&mailed, Some(mailed.clone()), true),
        (&hooked, Some(hooked.clone()), false),
        (&mailed, Some(sure(&mailed)), true),
        (&hooked, Some(sure(&hooked)), false),
        (&mailed, Some(off(&mailed)), false),
        (&mailed, Some(sure(&off(&mailed))), false),
        (&hooked, Some(sure(&off(&hooked))), false),
    ];
    for (new, before, is_asked) in cases {
        assert_eq!(asked_now(before.as_ref(), new.clone(), false).is_some(), is_asked, "{before:?}");
        assert_eq!(asked_now(before.as_ref(), new.clone(), true), None, "{before:?}");
        let after = asked_now(before.as_ref(), new.clone(), false);
        let keeps = |it: &Subscriber| before.as_ref().is_none_or(|old| old.confirmed_at == it.confirmed_at);
        assert!(after.as_ref().is_none_or(keeps), "a request confirms nobody and changes nobody");
    }
}

#[tokio::test]
async fn only_the_link_of_this_page_and_in_time_confirms() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    let caller = service.authenticate(world.key(Access::Write, None).await.reveal()).unwrap();
    let made = service.create_monitor(&caller, shop.id, &http("Cart"), &each_time()).await;
    let Done::Now(made) = made.unwrap() else { panic!("it is new") };
    service.subscribe(shop, &mail("ann@example.com")).await.unwrap();
    let who = world.subscribers(shop).remove(0);
    let wrong = Subscriber { token: [0; 16], ..who.clone() };
    for (page, link) in
        [(shop, wrong.link()), (&world.blog, who.link()), (shop, String::new()), (shop, "x".repeat(58))]
    {
        assert_eq!(service.subscription(page, &link), Err(Error::NotFound));
        assert_eq!(service.confirm(page, &link, None).await, Err(Error::NotFound));
    }
    let none: &[String] = &[];
    assert!(matches!(service.confirm(shop, &who.link(), Some(none)).await, Err(Error::Invalid(_))));
    assert!(world.subscribers(shop)[0].confirmed_at.is_none());

    let chosen = [made.monitor.id.to_string()];
    let sure = service.confirm(shop, &who.link(), Some(&chosen)).await.unwrap();
    assert_eq!((sure.confirmed_at, sure.monitors), (Some(service.now()), Some(vec![made.monitor.id])));
    // The same link changes the choice later, and never the time of consent.
    world.clock.set(service.now() + 9 * DAY);
    let wider = service.confirm(shop, &who.link(), None).await.unwrap();
    assert_eq!((wider.confirmed_at, &wider.monitors), (sure.confirmed_at, &None));

    world.keep(Subscriber { confirmed_at: None, ..wider }).await;
    world.clock.set(who.asked_at + UNCONFIRMED);
    assert_eq!(service.confirm(shop, &who.link(), None).await, Err(Error::NotFound));
}

#[tokio::test]
async fn a_webhook_is_confirmed_by_its_answer_alone() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    let told = service.subscribe(shop, &hook("https://hooks.example/a")).await.unwrap();
    let Subscribed::Challenged { secret, link } = told else { panic!("{told:?}") };
    let who = world.subscribers(shop).remove(0);
    assert_eq!(link, who.link());
    assert!(matches!(&who.contact, Contact::Webhook { secret: kept, .. } if kept.present == secret));
    assert_eq!(service.confirm(shop, &link, None).await, Err(Error::NotFound), "the requester has the link");
    let asked = world.asked(shop).remove(0);
    let Letter::Json(sent) = &asked.letter else { panic!("{asked:?}") };
    let value: serde_json::Value = serde_json::from_slice(sent).unwrap();
    let value = value["challenge"].as_str().unwrap().to_owned();
    assert!(asked.once && !link.contains(&value));

    let whole = String::from_utf8(sent.clone()).unwrap();
    let (nested, other) = (format!("{{\"challenge\":\"{value}\",\"a\":1}}"), format!("{value}0"));
    for wrong in [whole.as_str(), &nested, &other, "", "OK", &value[1..]] {
        world.answers(shop, Outcome::Taken, wrong).await;
        service.await_answer(who.id);
        service.hear_answers().await.unwrap();
        assert_eq!(world.subscribers(shop)[0].confirmed_at, None, "{wrong}");
    }
    world.answers(shop, Outcome::Gone, &value).await;
    service.await_answer(who.id);
    service.hear_answers().await.unwrap();
    assert_eq!(world.subscribers(shop)[0].confirmed_at, None, "an error page may echo it");
    for good in [format!("{{\"challenge\": \"{value}\"}}\n"), format!(" {value}\r\n"), format!("\"{value}\"")]
    {
        world.answers(shop, Outcome::Taken, &good).await;
        world.keep(who.clone()).await;
        // As after a restart: the sweep finds the pending ones.
        service.sweep_subscribers().await.unwrap();
        service.hear_answers().await.unwrap();
        assert_eq!(world.subscribers(shop)[0].confirmed_at, Some(service.now()), "{good}");
    }
    assert!(service.subscription(shop, &link).is_ok(), "now the link changes its choice");
}

#[tokio::test]
async fn a_stranger_has_a_url_asked_once_a_day_and_a_host_ten_times_an_hour() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    let mut links = BTreeSet::new();
    for n in 0..30 {
        let url = if n < 5 { "hooks.example/a".to_owned() } else { format!("hooks.example/{n}") };
        let Ok(Subscribed::Challenged { link, .. }) = service.subscribe(shop, &hook(&url)).await else {
            panic!("the answer is the same")
        };
        links.insert(link);
    }
    assert_eq!((world.asked(shop).len(), links.len()), (6, 30));
    for address in ["http://127.0.0.1/", "http://10.0.0.1/", "http://[::1]/", "http://localhost:8080"] {
        assert!(matches!(service.subscribe(shop, &hook(address)).await, Err(Error::Invalid(_))), "{address}");
    }
    world.clock.set(service.now() + ASKED_AGAIN);
    service.subscribe(shop, &hook("hooks.example/a")).await.unwrap();
    assert_eq!(
        (world.asked(shop).len(), world.subscribers(shop).len()),
        (7, 6),
        "the old request is replaced"
    );
}

#[tokio::test]
async fn what_nobody_confirms_is_dropped_and_the_rest_stays() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    for address in ["ann@example.com", "bob@example.com"] {
        service.subscribe(shop, &mail(address)).await.unwrap();
    }
    let link = world.subscribers(shop)[0].link();
    service.confirm(shop, &link, None).await.unwrap();
    world.clock.set(service.now() + UNCONFIRMED - HOUR);
    service.sweep_subscribers().await.unwrap();
    assert_eq!(world.subscribers(shop).len(), 2);
    world.clock.set(service.now() + HOUR);
    service.sweep_subscribers().await.unwrap();
    let left: Vec<String> = world.subscribers(shop).iter().map(Subscriber::link).collect();
    assert_eq!(left, [link]);
}

#[tokio::test]
async fn leaving_needs_the_link_alone_and_works_on_a_hidden_page() {
    let world = world().await;
    let (service, shop) = (&world.service, &world.shop);
    service.subscribe(shop, &mail("ann@example.com")).await.unwrap();
    let who = world.subscribers(shop).remove(0);
    let wrong = Subscriber { token: [1; 16], ..who.clone() };
    assert_eq!(service.unsubscribe(&wrong.link()).await, Ok(()), "it reveals nothing");
    assert_eq!(world.subscribers(shop).len(), 1);
    let hidden = Page { private: true, slug: "elsewhere".to_owned(), ..shop.clone() };
    service.store().commit(Batch::new().write(hidden).clone()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(service.unsubscribe(&who.link()).await, Ok(()));
        assert!(world.subscribers(shop).is_empty());
    }
    assert_eq!(service.unsubscribe("x").await, Err(Error::NotFound));
}
