//! Tests of edits and queries: a query that waits for an edit reflects it.

use super::*;

#[tokio::test]
async fn a_query_after_an_edit_reflects_the_edit() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    clock.set(START + 60_000);
    driver.result(0, ROUND, passed()).await;
    let status_after = async |change: fn(&mut Monitor)| {
        let last_event = edit_monitor(&store, change).await;
        driver.view_after(last_event).await.unwrap().status
    };
    assert_eq!(
        status_after(|it| it.slow_threshold_ms = Some(39)).await,
        MonitorStatus::Slow,
        "its newest reading is of 40 ms"
    );
    assert_eq!(status_after(|it| it.slow_threshold_ms = Some(40)).await, MonitorStatus::Up);
    assert_eq!(
        status_after(|it| it.latency_regions = Some(parallax_core::vantage::RegionSet::ALL)).await,
        MonitorStatus::Up
    );
    assert_eq!(status_after(|it| it.paused = true).await, MonitorStatus::Unknown);
    assert_eq!(status_after(|it| it.paused = false).await, MonitorStatus::Unknown, "no reading since");
    driver.stop().await;
}

#[tokio::test]
async fn a_query_without_receiver_is_dropped_and_blocks_no_other() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    let (reply, views) = oneshot::channel();
    drop(views);
    let query = MachineQuery { monitors: vec![MONITOR], after_event: u64::MAX, reply };
    driver.queries.send(query.into()).await.unwrap();
    assert!(driver.view().await.is_some());
    driver.stop().await;
}
