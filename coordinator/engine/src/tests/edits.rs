//! Tests of edits and queries: a query that waits for an edit reflects it.

use super::*;

async fn edited(store: &Store, change: impl FnOnce(&mut Monitor)) -> u64 {
    let mut edited = store.reader().monitor(MONITOR).unwrap().unwrap().value;
    change(&mut edited);
    let mut batch = storage::Batch::new();
    batch.write(edited).event(Event {
        at: START,
        page: Some(PAGE),
        monitor: Some(MONITOR),
        kind: EventKind::MonitorEdited(EditKind::Changed),
    });
    store.commit(batch).await.unwrap().last_event
}

#[tokio::test]
async fn a_look_after_an_edit_shows_the_status_by_the_edit() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut stream = TestDriver::start(&store, &clock).await;
    come_up(&mut stream).await;
    clock.set(START + 60_000);
    stream.result(0, ROUND, passed()).await;
    let after = async |change: fn(&mut Monitor)| {
        let after = edited(&store, change).await;
        let (answer, views) = oneshot::channel();
        let query = MachineQuery { monitors: vec![MONITOR], after_event: after, reply: answer };
        stream.queries.send(query.into()).await.unwrap();
        views.await.unwrap().remove(0).unwrap().status
    };
    assert_eq!(
        after(|it| it.slow_threshold_ms = Some(39)).await,
        MonitorStatus::Slow,
        "its newest reading is of 40 ms"
    );
    assert_eq!(after(|it| it.slow_threshold_ms = Some(40)).await, MonitorStatus::Up);
    assert_eq!(after(|it| it.latency_regions = Some(parallax_core::vantage::RegionSet::ALL)).await, MonitorStatus::Up);
    assert_eq!(after(|it| it.paused = true).await, MonitorStatus::Unknown);
    assert_eq!(after(|it| it.paused = false).await, MonitorStatus::Unknown, "no reading since");
    stream.stop().await;
}

#[tokio::test]
async fn a_look_that_nobody_waits_for_any_longer_is_dropped_and_holds_up_no_other() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut stream = TestDriver::start(&store, &clock).await;
    come_up(&mut stream).await;
    let (answer, views) = oneshot::channel();
    drop(views);
    let query = MachineQuery { monitors: vec![MONITOR], after_event: u64::MAX, reply: answer };
    stream.queries.send(query.into()).await.unwrap();
    assert!(stream.view().await.is_some());
    stream.stop().await;
}
