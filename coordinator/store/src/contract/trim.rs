//! Contract for trimming events: oldest first, in slices, and none that a consumer has not processed.

use crate::batch::MAX_TRIMMED_PER_OP;
use crate::samples::*;
use crate::{Batch, Op};

pub(super) fn events_are_trimmed_in_slices_and_not_before_every_consumer_read_them(store: &mut TestStore) {
    store.write(account(1));
    store.write(page(1, 1, "one"));
    store.write(monitor(1, 1, 0));
    let total = MAX_TRIMMED_PER_OP as u64 + 20;
    for _ in 0..total / 4 {
        let mut batch = Batch::new();
        for n in 0..4 {
            batch.event(event(n, (n % 2 == 0).then_some(1)));
        }
        store.commit(&batch).unwrap();
    }
    // A cursor that counts something else has a higher value than any event, and holds nothing back.
    store.write(Op::SetCursor("clock".to_owned(), 1_700_000_000_000));
    store.write(Op::SetCursor("slow".to_owned(), 7));
    store.write(Op::SetCursor("quick".to_owned(), total));
    let first = |store: &TestStore| store.reader.events_after(0, 1).unwrap().first().map(|it| it.seq);
    let monitor_events = |store: &TestStore| store.reader.events_of(monitor_id(1), None, usize::MAX).unwrap();

    store.write(Op::TrimEvents(3));
    assert_eq!(first(store), Some(4));
    assert_eq!(monitor_events(store).last().map(|it| it.seq), Some(5), "they are removed from the monitor's list too");
    store.write(Op::TrimEvents(u64::MAX));
    assert_eq!(first(store), Some(8), "the slow consumer has processed seven");
    store.write(Op::TrimEvents(2));
    assert_eq!(first(store), Some(8));

    store.write(Op::SetCursor("slow".to_owned(), total));
    store.write(Op::TrimEvents(u64::MAX));
    assert_eq!(first(store), Some(8 + MAX_TRIMMED_PER_OP as u64), "no more than a slice at once");
    store.write(Op::TrimEvents(u64::MAX));
    assert_eq!((first(store), monitor_events(store).len()), (None, 0));
    assert_eq!(store.reader.last_event(), Ok(total), "numbers continue");
    let committed = store.commit(Batch::new().event(event(1, Some(1)))).unwrap();
    assert_eq!(committed.last_event, total + 1);
    assert_eq!(first(store), Some(total + 1));
    assert!(store.reader.verify().is_ok());
}
