//! Deliveries of an account whose plan no longer includes webhooks.

use parallax_core::plan::Plan;

use super::*;

#[tokio::test]
async fn what_waits_for_a_channel_that_the_plan_does_not_have_is_dropped() {
    let (world, receiver) = (DeliveryWorld::new().await, TestReceiver::healthy().await);
    world.hook(1, &receiver.url()).await;
    let plan = |plan| parallax_core::account::Account { plan, ..samples::account(1) };
    world.put(plan(Plan::Free)).await;
    let vain = world.send(1, 1, 1, "went-down").await;
    world.wait_for_stage(vain, dropped).await;
    world.put(plan(Plan::Hobby)).await;
    let taken = world.send(1, 1, 2, "recovered").await;
    world.wait_for_stage(taken, delivered).await;
    assert_eq!(receiver.requests().len(), 1);
}
