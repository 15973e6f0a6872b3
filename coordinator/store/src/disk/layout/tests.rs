//! Tests of the key layout: keys sort like the values they encode.

use super::*;

#[test]
fn keys_of_times_before_and_after_the_epoch_sort_by_time() {
    let id = MonitorId::from_u128(7);
    let keys: Vec<_> = [i64::MIN, -2, -1, 0, 1, i64::MAX].into_iter().map(|at| hour(id, at)).collect();
    assert!(keys.is_sorted());
    assert_eq!(keys.iter().filter_map(|key| last_time(key)).collect::<Vec<_>>(), [i64::MIN, -2, -1, 0, 1, i64::MAX]);
}

#[test]
fn the_range_of_the_greatest_id_ends_before_the_next_prefix() {
    let range = prefix_range(&hours_of(MonitorId::from_u128(u128::MAX)));
    assert!(range.contains(&hour(MonitorId::from_u128(u128::MAX), i64::MAX)));
    assert_eq!(range.end, b"ri");
}
