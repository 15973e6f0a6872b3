//! Confirmation requests to alert mailboxes: sent only while they are current.

use parallax_core::destination::DeliveryHealth;

use super::*;

#[tokio::test]
async fn a_mailbox_that_is_asked_gets_the_question_of_that_moment_and_no_alert() {
    let world = DeliveryWorld::new().await;
    let (id, asked) = (DestinationId::from_u128(1), |at| DeliveryHealth {
        disabled: Some((at, DisableReason::Unconfirmed)),
        ..DeliveryHealth::default()
    });
    world.put(Destination { health: asked(BEGAN), ..samples::destination(1, 1) }).await;
    let letter =
        || DeliveryMessage::Mail(MailMessage { subject: String::new(), text: String::new(), html: String::new() });
    let send = async |to: Recipient| {
        let delivery = Delivery { message: letter(), monitor: None, ..world.delivery(to, 0, "x") };
        let id = delivery.id;
        world.put(delivery).await;
        id
    };
    let alert = send(Recipient::Destination(id)).await;
    world.wait_for_stage(alert, dropped).await;
    let question = send(Recipient::UnconfirmedDestination(id)).await;
    world.wait_for_stage(question, |stage| matches!(stage, DeliveryState::Delivered(_))).await;
    world.put(Destination { health: asked(BEGAN + 1), ..samples::destination(1, 1) }).await;
    let late = send(Recipient::UnconfirmedDestination(id)).await;
    world.wait_for_stage(late, dropped).await;
    world.put(samples::destination(1, 1)).await;
    let needless = send(Recipient::UnconfirmedDestination(id)).await;
    world.wait_for_stage(needless, dropped).await;
    assert_eq!(world.mails.mails.lock().unwrap().len(), 1);
}
