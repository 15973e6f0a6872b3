//! Queries for maintenance windows are bounded, however many there are.

use parallax_core::incident::Incident;
use parallax_core::uptime::TimeSpan;
use parallax_store::samples;

use super::*;

const SHOP: u128 = 77;

/// A store with a page and its windows, from each of these times on for that long.
async fn store_with_windows(spans: impl IntoIterator<Item = (i64, i64)>) -> Store {
    let store = Store::in_memory().unwrap();
    let mut batch = Batch::new();
    batch.write(samples::page(SHOP, 1, "shop"));
    for (number, (from, length)) in (1..).zip(spans) {
        let end = Some(at(from + length));
        let window = samples::window(number, SHOP, 0, false);
        let affected = Vec::new();
        batch.write(Incident { started_at: at(from), ends_at: end, resolved_at: end, affected, ..window });
        if batch.ops.len() > 500 {
            store.commit(std::mem::take(&mut batch)).await.unwrap();
        }
    }
    store.commit(batch).await.unwrap();
    store
}

#[tokio::test]
async fn only_windows_that_may_overlap_the_range_are_read() {
    let store =
        store_with_windows([(-8 * DAY, 7 * DAY), (-6 * DAY, 7 * DAY), (-HOUR, MINUTE), (0, HOUR), (DAY, HOUR)]).await;
    let monitor = Monitor { page: samples::page_id(SHOP), ..monitor(SLOT) };
    let time = at(0)..at(DAY);
    let read = store.reader();
    let windows = windows_within(read.as_ref(), monitor.page, time.clone()).unwrap();
    let starts: Vec<_> = windows.iter().map(|window| window.span.from).collect();
    assert_eq!(starts, [at(-6 * DAY), at(-HOUR), at(0)]);
    let spans = stored_windows()(read.as_ref(), &monitor, time);
    assert_eq!(spans.as_slice(), [TimeSpan { from: at(-6 * DAY), to: at(DAY) }], "joined");
}

#[tokio::test]
async fn beyond_the_limit_only_the_newest_windows_count() {
    let many = i64::try_from(MAX_COUNTED_WINDOWS).unwrap();
    let store = store_with_windows((0..many + 50).map(|number| (number * SECOND, 500))).await;
    let windows = windows_within(store.reader().as_ref(), samples::page_id(SHOP), at(0)..at(DAY)).unwrap();
    assert_eq!(windows.len(), MAX_COUNTED_WINDOWS);
    assert_eq!(windows[0].span.from, at(50 * SECOND));
    assert!(windows.is_sorted_by_key(|window| window.span.from));
}
