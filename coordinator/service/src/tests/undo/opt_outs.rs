//! Undo of a removal against what the reader did meanwhile: nobody is subscribed or gets alerts against their will, and
//! nobody twice.

use parallax_core::subscriber::request::SubscriptionRequest;
use parallax_core::subscriber::{Contact, Subscriber};

use super::*;

/// Removes a subscriber, and returns the token.
async fn remove(world: &World, caller: &Caller, subscriber: &Subscriber) -> String {
    let (id, page) = (subscriber.id, world.shop.id);
    offered(|once| async move { world.service.subscribers.delete(caller, page, id, &once).await }).await.unwrap()
}

/// The reason for which an undo is refused.
async fn reason(world: &World, caller: &Caller, token: &str) -> String {
    match undo(world, caller, token).await {
        UndoOutcome::Refused(obstacles) => obstacles[0].to_string(),
        other => panic!("{other:?}"),
    }
}

/// The number of addresses that an import would ask.
async fn asked_by_import(world: &World, caller: &Caller, text: &str) -> usize {
    world.service.subscribers.preview_import(caller, world.shop.id, text).await.unwrap().added
}

#[tokio::test]
async fn a_removed_subscriber_comes_back_unless_they_unsubscribed() {
    let world = world().await;
    let (caller, service) = (&person(&world, Role::Editor).await, &world.service);
    let before = world.subscribed("ann@example.com").await;
    let token = remove(&world, caller, &before).await;
    assert!(world.subscribers(&world.shop).is_empty());
    assert!(matches!(undo(&world, caller, &token).await, UndoOutcome::Undone(_)));
    assert_eq!(world.subscribers(&world.shop), std::slice::from_ref(&before));
    let token = remove(&world, caller, &before).await;
    // The link leads to the page, even if that is not public any more.
    assert_eq!(service.subscribers.page_of_link(&before.link_token()).unwrap().unwrap().id, world.shop.id);
    let wrong = format!("{}0", &before.link_token()[..before.link_token().len() - 1]);
    assert_eq!(service.subscribers.page_of_link(&wrong).unwrap(), None);
    assert_eq!(asked_by_import(&world, caller, "ann@example.com").await, 1);
    service.subscribers.unsubscribe(&before.link_token()).await.unwrap();
    assert_eq!(reason(&world, caller, &token).await, "ann@example.com unsubscribed since.");
    assert!(world.subscribers(&world.shop).is_empty());
    assert_eq!(asked_by_import(&world, caller, "ann@example.com").await, 0, "nor does an import ask them");
}

#[tokio::test]
async fn a_removed_subscriber_who_subscribed_again_is_not_subscribed_twice() {
    let world = world().await;
    let (caller, service) = (&person(&world, Role::Editor).await, &world.service);
    let before = world.subscribed("bob@example.com").await;
    let token = remove(&world, caller, &before).await;
    world.clock.set(service.now() + 1000);
    let again = world.subscribed("bob@example.com").await;
    assert_eq!(reason(&world, caller, &token).await, "bob@example.com was added again since.");
    // By a link of the new subscription, of which the removed one knows nothing.
    service.subscribers.unsubscribe(&again.link_token()).await.unwrap();
    assert_eq!(reason(&world, caller, &token).await, "bob@example.com unsubscribed since.");
    assert!(world.subscribers(&world.shop).is_empty());
    // An earlier opt-out does not keep a later removal from being undone.
    world.clock.set(service.now() + 1000);
    let third = world.subscribed("bob@example.com").await;
    let token = remove(&world, caller, &third).await;
    assert!(matches!(undo(&world, caller, &token).await, UndoOutcome::Undone(_)));
    assert_eq!(world.subscribers(&world.shop), [third]);
}

#[tokio::test]
async fn a_removed_webhook_that_unsubscribed_its_new_subscription_stays_away() {
    let world = world().await;
    let (caller, service) = (&person(&world, Role::Editor).await, &world.service);
    let subscribe = async || {
        let ask = SubscriptionRequest { url: Some("https://hooks.example.com/x".to_owned()), ..Default::default() };
        service.subscribers.subscribe(&world.shop, &ask).await.unwrap();
        let subscriber = world.subscribers(&world.shop).remove(0);
        assert!(matches!(subscriber.contact, Contact::Webhook { .. }));
        subscriber
    };
    let first = subscribe().await;
    // One request a day.
    world.clock.set(service.now() + DAY);
    let token = remove(&world, caller, &first).await;
    let again = subscribe().await;
    assert_ne!(again.id, first.id);
    service.subscribers.unsubscribe(&again.link_token()).await.unwrap();
    assert_eq!(reason(&world, caller, &token).await, "hooks.example.com unsubscribed since.");
    assert!(world.subscribers(&world.shop).is_empty());
}

#[tokio::test]
async fn a_deleted_destination_stays_away_if_its_reader_stopped_the_alerts() {
    let world = world().await;
    let (caller, service, page) = (&person(&world, Role::Owner).await, &world.service, world.shop.id);
    let mailbox = DestinationEdit {
        name: text("Ops"),
        kind: text("email"),
        to: text("ann@example.com"),
        ..DestinationEdit::default()
    };
    let created = fresh(service.destinations.create(caller, page, &mailbox, &each_time()).await.unwrap());
    service.destinations.confirm(&world.mailbox_link()).await.unwrap();
    let url = service.destinations.stop_url(&created).unwrap();
    let link = url.split_once("/stop-alerts?t=").unwrap().1;
    let id = created.id;
    let delete = async || {
        offered(|once| async move { service.destinations.delete(caller, page, id, &once).await }).await.unwrap()
    };
    let token = delete().await;
    assert!(matches!(undo(&world, caller, &token).await, UndoOutcome::Undone(_)));
    assert_eq!(service.destinations.get(caller, page, id).unwrap().confirmation_sent_at(), None);
    let token = delete().await;
    let wrong = format!("{}{}", &link[..link.len() - 1], if link.ends_with('0') { '1' } else { '0' });
    assert_eq!(service.destinations.stop_alerts(&wrong).await.unwrap_err(), ServiceError::NotFound);
    let found = service.destinations.stoppable(link).unwrap();
    assert_eq!((found.mailbox.as_str(), found.page.id, found.is_confirmed), ("ann@example.com", page, true));
    for _ in 0..2 {
        assert!(!service.destinations.stop_alerts(link).await.unwrap().is_confirmed);
        assert!(!service.destinations.stoppable(link).unwrap().is_confirmed);
    }
    let expected = "The reader of ann@example.com stopped the alerts since.";
    assert_eq!(reason(&world, caller, &token).await, expected);
    assert!(service.destinations.get(caller, page, id).is_err());
    let again = service.destinations.create(caller, page, &mailbox, &each_time()).await;
    assert!(again.unwrap_err().to_string().contains("within the last day"), "nor are they asked again on that day");
    world.clock.set(service.now() + UNDO_WINDOW);
    assert_eq!(service.destinations.stop_alerts(link).await.unwrap_err(), ServiceError::NotFound);
}
