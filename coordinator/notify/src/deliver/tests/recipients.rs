//! Recipients: subscribers get updates by the way that they chose, and deleted or disabled receivers get none.

use super::*;

#[tokio::test]
async fn deliveries_to_a_deleted_or_disabled_receiver_are_dropped() {
    let bench = DeliveryBench::new().await;
    let receiver = TestReceiver::healthy().await;
    let to = bench.add_webhook(1, &receiver.url()).await;
    let disabled = Destination { enabled: false, ..bench.store.reader().destination(to).unwrap().unwrap().value };
    bench.put(disabled).await;
    let id = bench.send(1, 1, 1, "went-down").await;
    bench.wait_for_state(id, is_dropped).await;
    let missing = bench.send(2, 1, 1, "went-down").await;
    bench.wait_for_state(missing, is_dropped).await;
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn confirmed_subscribers_get_bulletins_by_mail_or_webhook_as_chosen() {
    let (bench, receiver) = (DeliveryBench::new().await, TestReceiver::healthy().await);
    let bulletin = samples::bulletin(5, 1, false);
    bench.put(bulletin.clone()).await;
    let secret = SigningSecrets { newest: SECRET.to_owned(), previous: None };
    let contact = Contact::Webhook { url: receiver.url(), secret };
    let mut by_webhook = samples::subscriber(1, 1, 1);
    by_webhook.contact = contact;
    let mut unconfirmed = samples::subscriber(3, 1, 3);
    unconfirmed.confirmed_at = None;
    for subscriber in [by_webhook, samples::subscriber(2, 1, 2), unconfirmed] {
        bench.put(subscriber).await;
    }
    let mut ids = Vec::new();
    for n in 1..=4 {
        let incident = Some(IncidentId::from_u128(1));
        let message = DeliveryMessage::Bulletin(bulletin.id);
        let delivery = bench.delivery(Recipient::Subscriber(SubscriberId::from_u128(n)), 3, &bulletin.event);
        let delivery = Delivery { monitor: None, incident, message, ..delivery };
        ids.push(delivery.id);
        bench.put(delivery).await;
    }
    bench.wait_for_state(ids[0], is_delivered).await;
    bench.wait_for_state(ids[1], is_delivered).await;
    bench.wait_for_state(ids[2], is_dropped).await;
    bench.wait_for_state(ids[3], is_dropped).await;
    let requests = receiver.requests();
    assert_eq!((requests.len(), requests[0].header("X-Service-Event")), (1, Some("incident.created")));
    let body: serde_json::Value = serde_json::from_slice(&requests[0].body).unwrap();
    let unsubscribe_url = samples::subscriber(1, 1, 1).unsubscribe_url("https://status.example/p/one");
    assert_eq!(body["unsubscribeUrl"], unsubscribe_url, "a webhook has its own unsubscribe URL");
    let mails = bench.mails.mails.lock().unwrap().clone();
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, "2@example.com"));
    assert!(mails[0].unsubscribe_url.as_ref().is_some_and(|url| url.starts_with("https://status.example/")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_in_flight_are_recorded_before_the_deliverer_stops() {
    let bench = DeliveryBench::new().await;
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(released);
    let receiver = TestReceiver::start(move |_, _| {
        tokio::task::block_in_place(|| released.lock().unwrap().recv().unwrap());
        status_reply(200, "")
    });
    let receiver = receiver.await;
    bench.add_webhook(1, &receiver.url()).await;
    let id = bench.send(1, 1, 1, "went-down").await;
    receiver.wait_for_requests(1).await;
    bench.stop.send_replace(true);
    let store = bench.store.clone();
    release.send(()).unwrap();
    timeout(WAIT_LIMIT, bench.running).await.unwrap().unwrap();
    assert!(is_delivered(store.reader().delivery(id).unwrap().unwrap().value.state));
}
