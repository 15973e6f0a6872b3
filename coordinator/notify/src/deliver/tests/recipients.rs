//! Recipients: subscribers get updates by the way that they chose, and deleted or disabled receivers get none.

use super::*;

#[tokio::test]
async fn what_is_for_a_receiver_that_was_deleted_or_disabled_is_dropped() {
    let world = DeliveryWorld::new().await;
    let receiver = TestReceiver::healthy().await;
    let to = world.hook(1, &receiver.url()).await;
    let disabled = Destination { enabled: false, ..world.store.reader().destination(to).unwrap().unwrap().value };
    world.put(disabled).await;
    let id = world.send(1, 1, 1, "went-down").await;
    world.wait_for_stage(id, dropped).await;
    let nobody = world.send(2, 1, 1, "went-down").await;
    world.wait_for_stage(nobody, dropped).await;
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn news_goes_to_subscribers_who_confirmed_by_the_way_they_chose() {
    let (world, receiver) = (DeliveryWorld::new().await, TestReceiver::healthy().await);
    let bulletin = samples::bulletin(5, 1, false);
    world.put(bulletin.clone()).await;
    let secret = SigningSecrets { newest: SECRET.to_owned(), previous: None };
    let hook = Contact::Webhook { url: receiver.url(), secret };
    let mut hooked = samples::subscriber(1, 1, 1);
    hooked.contact = hook;
    let mut unconfirmed = samples::subscriber(3, 1, 3);
    unconfirmed.confirmed_at = None;
    for subscriber in [hooked, samples::subscriber(2, 1, 2), unconfirmed] {
        world.put(subscriber).await;
    }
    let mut ids = Vec::new();
    for n in 1..=4 {
        let incident = Some(IncidentId::from_u128(1));
        let letter = DeliveryMessage::Bulletin(bulletin.id);
        let delivery = world.delivery(Recipient::Subscriber(SubscriberId::from_u128(n)), 3, &bulletin.event);
        let delivery = Delivery { monitor: None, incident, message: letter, ..delivery };
        ids.push(delivery.id);
        world.put(delivery).await;
    }
    world.wait_for_stage(ids[0], delivered).await;
    world.wait_for_stage(ids[1], delivered).await;
    world.wait_for_stage(ids[2], dropped).await;
    world.wait_for_stage(ids[3], dropped).await;
    let got = receiver.requests();
    assert_eq!((got.len(), got[0].header("X-Service-Event")), (1, Some("incident.created")));
    let body: serde_json::Value = serde_json::from_slice(&got[0].body).unwrap();
    let leave = samples::subscriber(1, 1, 1).unsubscribe_url("https://status.example/p/one");
    assert_eq!(body["unsubscribeUrl"], leave, "a webhook has its own unsubscribe URL");
    let mails = world.mails.mails.lock().unwrap().clone();
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, "2@example.com"));
    assert!(mails[0].unsubscribe_url.as_ref().is_some_and(|url| url.starts_with("https://status.example/")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_on_its_way_is_noted_before_it_stops() {
    let world = DeliveryWorld::new().await;
    let (let_go, hold) = std::sync::mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let receiver = TestReceiver::start(move |_, _| {
        tokio::task::block_in_place(|| hold.lock().unwrap().recv().unwrap());
        status_reply(200, "")
    });
    let receiver = receiver.await;
    world.hook(1, &receiver.url()).await;
    let id = world.send(1, 1, 1, "went-down").await;
    receiver.wait_for_requests(1).await;
    world.stop.send_replace(true);
    let store = world.store.clone();
    let_go.send(()).unwrap();
    timeout(PATIENCE, world.running).await.unwrap().unwrap();
    assert!(delivered(store.reader().delivery(id).unwrap().unwrap().value.state));
}
