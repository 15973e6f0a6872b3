//! Queries for maintenance windows are bounded, however many there are.

use parallax_core::incident::Incident;
use parallax_core::uptime::TimeSpan;
use parallax_store::samples;

use super::*;

const SHOP: u128 = 77;

/// A store with a page and its windows, from each of these times on for that long.
async fn with(windows: impl IntoIterator<Item = (i64, i64)>) -> Store {
    let store = Store::in_memory().unwrap();
    let mut batch = Batch::new();
    batch.write(samples::page(SHOP, 1, "shop"));
    for (number, (from, length)) in (1..).zip(windows) {
        let over = Some(at(from + length));
        let window = samples::window(number, SHOP, 0, false);
        let affected = Vec::new();
        batch.write(Incident { started_at: at(from), ends_at: over, resolved_at: over, affected, ..window });
        if batch.ops.len() > 500 {
            store.commit(std::mem::take(&mut batch)).await.unwrap();
        }
    }
    store.commit(batch).await.unwrap();
    store
}

#[tokio::test]
async fn only_windows_that_may_reach_into_a_time_are_read() {
    let store = with([(-8 * DAY, 7 * DAY), (-6 * DAY, 7 * DAY), (-HOUR, MINUTE), (0, HOUR), (DAY, HOUR)]).await;
    let monitor = Monitor { page: samples::page_id(SHOP), ..monitor(SLOT) };
    let time = at(0)..at(DAY);
    let read = store.reader();
    let found = windows_within(read.as_ref(), monitor.page, time.clone()).unwrap();
    let starts: Vec<_> = found.iter().map(|window| window.span.from).collect();
    assert_eq!(starts, [at(-6 * DAY), at(-HOUR), at(0)]);
    let spans = stored_windows()(read.as_ref(), &monitor, time);
    assert_eq!(spans.as_slice(), [TimeSpan { from: at(-6 * DAY), to: at(DAY) }], "joined");
}

#[tokio::test]
async fn of_very_many_windows_the_newest_count() {
    let many = i64::try_from(MAX_COUNTED_WINDOWS).unwrap();
    let store = with((0..many + 50).map(|number| (number * SECOND, 500))).await;
    let found = windows_within(store.reader().as_ref(), samples::page_id(SHOP), at(0)..at(DAY)).unwrap();
    assert_eq!(found.len(), MAX_COUNTED_WINDOWS);
    assert_eq!(found[0].span.from, at(50 * SECOND));
    assert!(found.is_sorted_by_key(|window| window.span.from));
}
