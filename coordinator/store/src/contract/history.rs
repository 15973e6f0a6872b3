//! Contract for blocks and roll-ups: found by range, the same whether compacted or not, deleted by days.

use parallax_core::vantage::Region;

use crate::batch::{MAX_COMPACTED_PER_OP, MAX_DAYS_PER_OP};
use crate::samples::*;
use crate::{Batch, Block, Checkpoint, Op, Rollup};

pub(super) fn history_is_found_by_range(store: &mut TestStore) {
    let mut batch = Batch::new();
    batch.write(monitor(1, 1, 0)).write(monitor(2, 1, 0));
    for hour in -2..3 {
        batch.write(Op::PutBlock(block(1, Region::Asia, hour, vec![hour as u8; 9])));
        batch.write(Op::PutHour(rollup(1, hour, vec![1]))).write(Op::PutDay(rollup(1, hour, vec![2])));
    }
    batch.write(Op::PutBlock(block(1, Region::Europe, 0, vec![7])));
    batch.write(Op::PutHour(rollup(2, 0, vec![8])));
    batch.write(Op::PutCheckpoint(Checkpoint { part: 1, through: 4, bytes: vec![1] }));
    batch.write(Op::PutCheckpoint(Checkpoint { part: 0, through: 5, bytes: vec![2] }));
    store.commit(&batch).unwrap();
    let (reader, id) = (&store.reader, monitor_id(1));
    let hours: Vec<_> = reader.blocks(id, Region::Asia, -1..2).unwrap().into_iter().map(|it| it.hour).collect();
    assert_eq!(hours, [-1, 0, 1]);
    assert_eq!(reader.blocks(id, Region::Europe, -9..9), Ok(vec![block(1, Region::Europe, 0, vec![7])]));
    assert_eq!(reader.hours(id, 1..9).unwrap().len(), 2);
    assert_eq!(reader.days(id, i64::MIN..0), Ok(vec![rollup(1, -2, vec![2]), rollup(1, -1, vec![2])]));
    let empty = std::ops::Range { start: 3, end: -3 };
    assert_eq!((reader.hours(id, empty.clone()), reader.days(id, 1..1)), (Ok(Vec::new()), Ok(Vec::new())));
    assert_eq!(reader.blocks(id, Region::Asia, empty), Ok(Vec::new()));
    let through = |part, limit| {
        let checkpoints = reader.checkpoints(part, limit).unwrap();
        checkpoints.iter().map(|it| it.through).collect::<Vec<_>>()
    };
    assert_eq!((through(0, 9), through(0, 1), through(1, 9), through(2, 9)), (vec![5, 4], vec![5], vec![4], vec![]));
    let mut batch = Batch::new();
    batch.write(Op::DeleteBlocks(id, 0)).write(Op::DeleteHours(id, 0));
    batch.write(Op::DeleteCheckpoint(1)).write(Op::PutHour(rollup(1, 2, vec![9])));
    store.commit(&batch).unwrap();
    assert_eq!(store.reader.blocks(id, Region::Asia, -9..9).unwrap().len(), 3);
    assert_eq!(store.reader.hours(id, -9..9).unwrap().len(), 3);
    assert_eq!(store.reader.hours(id, 2..9), Ok(vec![rollup(1, 2, vec![9])]));
    assert_eq!((store.reader.days(id, -9..9).unwrap().len(), store.reader.checkpoints(0, 9).unwrap().len()), (5, 1));
}

/// Returns a monitor's whole history.
fn all(store: &TestStore, n: u128) -> (Vec<Block>, Vec<Block>, Vec<Rollup>, Vec<Rollup>) {
    let (id, any_time) = (monitor_id(n), i64::MIN..i64::MAX);
    let blocks = |region| store.reader.blocks(id, region, any_time.clone()).unwrap();
    let rollups = (store.reader.hours(id, any_time.clone()).unwrap(), store.reader.days(id, any_time.clone()).unwrap());
    (blocks(Region::Asia), blocks(Region::Africa), rollups.0, rollups.1)
}

/// Writes blocks of two regions and roll-ups of those hours, and as many days.
fn fill(store: &mut TestStore, n: u128, hours: std::ops::Range<i64>) {
    let mut batch = Batch::new();
    batch.write(monitor(n, 1, 0));
    for hour in hours {
        batch.write(Op::PutBlock(block(n, Region::Asia, hour, vec![hour as u8; 90])));
        batch.write(Op::PutBlock(block(n, Region::Africa, hour, vec![!hour as u8; 2_000])));
        batch.write(Op::PutHour(rollup(n, hour, vec![hour as u8; 70])));
        batch.write(Op::PutDay(rollup(n, hour, vec![hour as u8; 40])));
    }
    store.commit(&batch).unwrap();
}

pub(super) fn compaction_changes_no_query_result(store: &mut TestStore) {
    let id = monitor_id(1);
    fill(store, 1, -30..100);
    fill(store, 2, 0..30);
    let (before, other) = (all(store, 1), all(store, 2));
    assert_eq!((before.0.len(), before.3.len()), (130, 130));
    store.write(Op::CompactHistory(id, 60));
    assert_eq!((all(store, 1), all(store, 2)), (before.clone(), other.clone()));
    store.write(Op::CompactHistory(id, 60));
    store.write(Op::CompactHistory(id, 99));
    store.write(Op::CompactHistory(monitor_id(7), 99));
    assert_eq!((all(store, 1), all(store, 2)), (before.clone(), other.clone()));
    for (range, hours) in [(20..30, 10), (-7..0, 7), (23..24, 1), (97..104, 3), (5..5, 0)] {
        let blocks = store.reader.blocks(id, Region::Africa, range.clone()).unwrap();
        assert_eq!(blocks.len(), hours, "{range:?}");
        assert_eq!(blocks, before.1.iter().filter(|it| range.contains(&it.hour)).cloned().collect::<Vec<_>>());
    }

    // A late block replaces the compacted one, and is compacted in turn.
    let mut late_batch = Batch::new();
    late_batch.write(Op::PutBlock(block(1, Region::Asia, 5, vec![77; 9]))).write(Op::PutHour(rollup(1, 5, vec![78])));
    late_batch.write(Op::PutBlock(block(1, Region::Europe, 5, vec![79]))).write(Op::PutDay(rollup(1, -3, vec![80])));
    store.commit(&late_batch).unwrap();
    let after = all(store, 1);
    assert_eq!(after.0[35], block(1, Region::Asia, 5, vec![77; 9]));
    assert_eq!((&after.2[35].bytes, &after.3[27].bytes), (&vec![78], &vec![80]));
    assert_eq!((after.0.len(), after.2.len(), after.3.len()), (130, 130, 130));
    let mut batch = Batch::new();
    batch
        .write(Op::CompactHistory(id, 60))
        .write(Op::PutHour(rollup(1, 6, vec![81])))
        .write(Op::CompactHistory(id, 60));
    store.commit(&batch).unwrap();
    assert_eq!((all(store, 1).0, all(store, 1).3), (after.0, after.3));
    assert_eq!(store.reader.hours(id, 6..7), Ok(vec![rollup(1, 6, vec![81])]));
    assert_eq!(store.reader.blocks(id, Region::Europe, 0..9), Ok(vec![block(1, Region::Europe, 5, vec![79])]));

    // More than one compaction covers.
    fill(store, 3, 0..MAX_COMPACTED_PER_OP as i64 + 40);
    let before = all(store, 3);
    for _ in 0..3 {
        store.write(Op::CompactHistory(monitor_id(3), i64::MAX));
        assert_eq!(all(store, 3), before);
    }
    store.write(Op::DeleteMonitor(id));
    store.tidy();
    assert_eq!(all(store, 1), (Vec::new(), Vec::new(), Vec::new(), Vec::new()));
    assert_eq!(all(store, 2), other);
    fill(store, 1, 0..1);
    assert_eq!(all(store, 1).0.len(), 1, "a recreated monitor inherits nothing");
    assert!(store.reader.verify().is_ok());
}

pub(super) fn old_days_are_deleted_oldest_first_and_few_at_a_time(store: &mut TestStore) {
    let id = monitor_id(1);
    fill(store, 1, -24..24 * 9);
    fill(store, 2, 0..30);
    let other = all(store, 2);
    store.write(Op::CompactHistory(id, 24 * 3 + 7));
    // A late block of a day that is compacted.
    store.write(Op::PutBlock(block(1, Region::Asia, 30, vec![1])));
    let first = |store: &TestStore| {
        let (asia, africa, hours, days) = all(store, 1);
        (asia[0].hour, africa[0].hour, hours[0].at, days[0].at)
    };
    store.write(Op::DeleteBlocks(id, -1));
    assert_eq!(first(store), (-24, -24, -24, -24));
    store.write(Op::DeleteBlocks(id, 1));
    assert_eq!(first(store), (24, 24, -24, -24));
    store.write(Op::DeleteBlocks(id, 100));
    let days = MAX_DAYS_PER_OP as i64;
    assert_eq!(first(store), (24 * (1 + days), 24 * (1 + days), -24, -24));
    store.write(Op::DeleteHours(id, 100));
    assert_eq!(first(store).2, 24 * (days - 1));
    store.write(Op::DeleteBlocks(id, 100));
    store.write(Op::DeleteBlocks(id, 100));
    assert_eq!((all(store, 1).0, all(store, 2)), (Vec::new(), other));
    assert!(store.reader.verify().is_ok());
}
