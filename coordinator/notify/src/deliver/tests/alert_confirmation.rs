//! Confirmation requests to alert mailboxes: sent only while they are current.

use parallax_core::destination::DeliveryHealth;

use super::*;

#[tokio::test]
async fn an_unconfirmed_mailbox_gets_only_the_current_confirmation_request() {
    let bench = DeliveryBench::new().await;
    let (id, unconfirmed) = (DestinationId::from_u128(1), |at| DeliveryHealth {
        disabled: Some((at, DisableReason::Unconfirmed)),
        ..DeliveryHealth::default()
    });
    bench.put(Destination { health: unconfirmed(START), ..samples::destination(1, 1) }).await;
    let message =
        || DeliveryMessage::Mail(MailMessage { subject: String::new(), text: String::new(), html: String::new() });
    let send = async |to: Recipient| {
        let delivery = Delivery { message: message(), monitor: None, ..bench.delivery(to, 0, "x") };
        let id = delivery.id;
        bench.put(delivery).await;
        id
    };
    let alert = send(Recipient::Destination(id)).await;
    bench.wait_for_state(alert, is_dropped).await;
    let request = send(Recipient::UnconfirmedDestination(id)).await;
    bench.wait_for_state(request, |state| matches!(state, DeliveryState::Delivered(_))).await;
    bench.put(Destination { health: unconfirmed(START + 1), ..samples::destination(1, 1) }).await;
    let outdated = send(Recipient::UnconfirmedDestination(id)).await;
    bench.wait_for_state(outdated, is_dropped).await;
    bench.put(samples::destination(1, 1)).await;
    let unneeded = send(Recipient::UnconfirmedDestination(id)).await;
    bench.wait_for_state(unneeded, is_dropped).await;
    assert_eq!(bench.mails.mails.lock().unwrap().len(), 1);
}
