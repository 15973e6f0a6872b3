//! Contract for trimming events: oldest first, in slices, and none that a consumer has not processed.

use crate::batch::MAX_TRIMMED_PER_OP;
use crate::samples::*;
use crate::{Batch, Op};

pub(super) fn events_are_dropped_in_slices_and_never_before_a_reader_saw_them(bench: &mut TestStore) {
    bench.write(account(1));
    bench.write(page(1, 1, "one"));
    bench.write(monitor(1, 1, 0));
    let total = MAX_TRIMMED_PER_OP as u64 + 20;
    for _ in 0..total / 4 {
        let mut batch = Batch::new();
        for n in 0..4 {
            batch.event(event(n, (n % 2 == 0).then_some(1)));
        }
        bench.commit(&batch).unwrap();
    }
    // A cursor that counts something else has a higher value than any event, and holds nothing back.
    bench.write(Op::SetCursor("clock".to_owned(), 1_700_000_000_000));
    bench.write(Op::SetCursor("slow".to_owned(), 7));
    bench.write(Op::SetCursor("quick".to_owned(), total));
    let first = |bench: &TestStore| bench.reader.events_after(0, 1).unwrap().first().map(|it| it.seq);
    let of_monitor = |bench: &TestStore| bench.reader.events_of(monitor_id(1), None, usize::MAX).unwrap();

    bench.write(Op::TrimEvents(3));
    assert_eq!(first(bench), Some(4));
    assert_eq!(of_monitor(bench).last().map(|it| it.seq), Some(5), "they are removed from the monitor's list too");
    bench.write(Op::TrimEvents(u64::MAX));
    assert_eq!(first(bench), Some(8), "the slow consumer has processed seven");
    bench.write(Op::TrimEvents(2));
    assert_eq!(first(bench), Some(8));

    bench.write(Op::SetCursor("slow".to_owned(), total));
    bench.write(Op::TrimEvents(u64::MAX));
    assert_eq!(first(bench), Some(8 + MAX_TRIMMED_PER_OP as u64), "no more than a slice at once");
    bench.write(Op::TrimEvents(u64::MAX));
    assert_eq!((first(bench), of_monitor(bench).len()), (None, 0));
    assert_eq!(bench.reader.last_event(), Ok(total), "numbers continue");
    let committed = bench.commit(Batch::new().event(event(1, Some(1)))).unwrap();
    assert_eq!(committed.last_event, total + 1);
    assert_eq!(first(bench), Some(total + 1));
    assert!(bench.reader.verify().is_ok());
}
