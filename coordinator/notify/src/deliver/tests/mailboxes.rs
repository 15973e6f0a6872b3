//! Mailboxes that refuse mail.

use super::*;

#[tokio::test]
async fn a_mailbox_is_switched_off_after_three_permanent_rejections() {
    let bench = DeliveryBench::with(RecordingMailer { refuses: true, ..RecordingMailer::default() }).await;
    bench.put(samples::destination(1, 1)).await;
    for seq in 1..=4 {
        let message =
            DeliveryMessage::Mail(MailMessage { subject: String::new(), text: String::new(), html: String::new() });
        let to = Recipient::Destination(DestinationId::from_u128(1));
        let delivery = Delivery { message, ..bench.delivery(to, seq, "went-down") };
        let id = delivery.id;
        bench.put(delivery).await;
        let is_ended = |state| if seq < 4 { matches!(state, DeliveryState::Failed(_)) } else { is_dropped(state) };
        bench.wait_for_state(id, is_ended).await;
    }
    let health = bench.store.reader().destination(DestinationId::from_u128(1)).unwrap().unwrap().value.health;
    assert_eq!(health.disabled, Some((START, DisableReason::Rejected)));
}
