//! Retention of events: thirty days, or longer while a consumer has not read them.

use parallax_core::time::{DAY, Timestamp};
use parallax_store::batch::MAX_TRIMMED_PER_OP;
use parallax_store::{Batch, Op, Store};

use super::HistoryError;

/// Retention of events, in milliseconds.
pub(crate) const EVENT_RETENTION: i64 = 30 * DAY;

/// Deletes a batch of expired events. Returns true if more may be due at once. The store keeps those that a
/// consumer's cursor has not passed.
///
/// # Errors
/// If the store can't be read or written.
pub async fn trim_events(store: &Store, now: Timestamp) -> Result<bool, HistoryError> {
    let oldest = store.read(|read| read.events_after(0, MAX_TRIMMED_PER_OP)).await?;
    let expired = oldest.iter().take_while(|event| now.since(event.event.at) > EVENT_RETENTION);
    let Some(last) = expired.last().map(|event| event.seq) else { return Ok(false) };
    let mut batch = Batch::new();
    batch.write(Op::TrimEvents(last));
    store.commit(batch).await?;
    let first = store.read(|read| read.events_after(0, 1)).await?;
    // If a consumer holds events back, there is nothing more to do now.
    Ok(oldest.len() == MAX_TRIMMED_PER_OP && first.first().is_none_or(|first| first.seq > last))
}

#[cfg(test)]
mod tests {
    use parallax_core::event::{EditKind, Event, EventKind};

    use super::*;

    fn event(at: Timestamp) -> Event {
        Event { at, page: None, monitor: None, kind: EventKind::PageEdited(EditKind::Changed) }
    }

    #[tokio::test]
    async fn events_expire_after_thirty_days_but_not_before_a_consumer_read_them() {
        let store = Store::in_memory().unwrap();
        let now = Timestamp::from_millis(1_000 * DAY);
        let total = MAX_TRIMMED_PER_OP as u64 + 300;
        let mut batch = Batch::new();
        for _ in 0..total {
            batch.event(event(now + (-EVENT_RETENTION - 1)));
        }
        batch.event(event(now + (-EVENT_RETENTION)));
        batch.write(Op::SetCursor("reader".to_owned(), 2));
        store.commit(batch).await.unwrap();
        let first = || store.reader().events_after(0, 1).unwrap()[0].seq;

        assert_eq!(trim_events(&store, now).await, Ok(false), "a consumer holds the rest back");
        assert_eq!(first(), 3);
        store.commit(Batch::new().write(Op::SetCursor("reader".to_owned(), total)).clone()).await.unwrap();
        assert_eq!(trim_events(&store, now).await, Ok(true));
        assert_eq!(trim_events(&store, now).await, Ok(false));
        assert_eq!(first(), total + 1, "newer events are kept");
    }
}
