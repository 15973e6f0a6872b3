//! Still-down alerts that wait while their outage is acknowledged.

use parallax_core::acknowledgement::{Acknowledgement, ActorName};
use parallax_core::monitor::Monitor;

use super::*;

#[tokio::test]
async fn a_waiting_still_down_alert_is_dropped_once_its_outage_is_acknowledged() {
    let bench = DeliveryBench::new().await;
    let receiver = TestReceiver::start(|number, _| status_reply(if number == 0 { 500 } else { 200 }, "")).await;
    bench.add_webhook(1, &receiver.url()).await;
    bench.put(samples::monitor(1, 1, 0)).await;
    let reminder = |seq, outage: Timestamp| {
        let to = Recipient::Destination(DestinationId::from_u128(1));
        let outage_start = Some(outage);
        Delivery { monitor: Some(samples::monitor_id(1)), outage_start, ..bench.delivery(to, seq, "still-down") }
    };
    let (outage, next_outage) = (START - 60 * SECOND, START + 60 * SECOND);
    let waiting = reminder(1, outage);
    bench.put(waiting.clone()).await;
    bench.wait_for_state(waiting.id, is_waiting).await;
    let acknowledgement = Acknowledgement { outage, by: ActorName::new("deploys"), at: START, note: None };
    bench.put(Monitor { acknowledgement: Some(Box::new(acknowledgement)), ..samples::monitor(1, 1, 0) }).await;
    bench.advance_clock(7 * SECOND).await;
    bench.wait_for_state(waiting.id, is_dropped).await;
    let next = reminder(2, next_outage);
    bench.put(next.clone()).await;
    bench.wait_for_state(next.id, is_delivered).await;
    assert_eq!(receiver.requests().len(), 2, "one failed attempt, and the next outage's reminder");
    bench.wait_for_counts(2, 1).await;
}
