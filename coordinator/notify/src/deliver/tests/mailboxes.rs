//! Mailboxes that refuse mail.

use super::*;

#[tokio::test]
async fn a_mailbox_that_refuses_for_good_three_times_is_switched_off() {
    let world = DeliveryWorld::with(RecordingMailer { refuses: true, ..RecordingMailer::default() }).await;
    world.put(samples::destination(1, 1)).await;
    for seq in 1..=4 {
        let letter =
            DeliveryMessage::Mail(MailMessage { subject: String::new(), text: String::new(), html: String::new() });
        let to = Recipient::Destination(DestinationId::from_u128(1));
        let delivery = Delivery { message: letter, ..world.delivery(to, seq, "went-down") };
        let id = delivery.id;
        world.put(delivery).await;
        let ends = |stage| if seq < 4 { matches!(stage, DeliveryState::Failed(_)) } else { dropped(stage) };
        world.wait_for_stage(id, ends).await;
    }
    let health = world.store.reader().destination(DestinationId::from_u128(1)).unwrap().unwrap().value.health;
    assert_eq!(health.disabled, Some((BEGAN, DisableReason::Rejected)));
}
