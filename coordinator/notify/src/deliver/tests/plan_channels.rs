//! Deliveries of an account whose plan no longer includes webhooks.

use parallax_core::plan::Plan;

use super::*;

#[tokio::test]
async fn deliveries_for_a_channel_outside_the_plan_are_dropped() {
    let (bench, receiver) = (DeliveryBench::new().await, TestReceiver::healthy().await);
    bench.add_webhook(1, &receiver.url()).await;
    let plan = |plan| parallax_core::account::Account { plan, ..samples::account(1) };
    bench.put(plan(Plan::Free)).await;
    let excluded = bench.send(1, 1, 1, "went-down").await;
    bench.wait_for_state(excluded, is_dropped).await;
    bench.put(plan(Plan::Hobby)).await;
    let included = bench.send(1, 1, 2, "recovered").await;
    bench.wait_for_state(included, is_delivered).await;
    assert_eq!(receiver.requests().len(), 1);
}
