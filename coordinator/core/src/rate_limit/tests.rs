//! Tables of actions and what each limit makes of them.

use std::time::Duration;

use super::*;
use crate::time::{HOUR, MINUTE, SECOND, Timestamp};

const SPAN: i64 = 10 * SECOND;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(HOUR + millis)
}

fn status(allowed: bool, limit: u32, remaining: u32, reset_seconds: u32) -> RateLimitStatus {
    RateLimitStatus { allowed, limit, remaining, reset_seconds }
}

#[test]
fn a_window_begins_with_its_first_action_and_counts_refused_ones() {
    let rule = WindowRule { limit: 3, length: MINUTE };
    let mut window = FixedWindow::new(at(0));
    for (millis, actions, expected) in [
        (10, 1, status(true, 3, 2, 60)),
        (10, 2, status(true, 3, 0, 60)),
        (59_001, 1, status(false, 3, 0, 1)),
        (MINUTE, 1, status(true, 3, 2, 60)),
        // Nothing of a refused group is left.
        (MINUTE, 3, status(false, 3, 0, 60)),
        (2 * MINUTE, 0, status(true, 3, 3, 60)),
        (2 * MINUTE, u32::MAX, status(false, 3, 0, 60)),
        // A clock that goes back locks nobody out.
        (-MINUTE, 1, status(true, 3, 2, 60)),
    ] {
        assert_eq!(window.count_many(rule, actions, at(millis)), expected, "{actions} at {millis}");
    }
}

#[test]
fn a_time_read_a_moment_before_the_window_began_is_counted_in_it() {
    let rule = WindowRule { limit: 2, length: MINUTE };
    let mut window = FixedWindow::new(at(2_000));
    for (millis, expected) in [
        (1_999, status(true, 2, 1, 60)),
        (1_000, status(true, 2, 0, 60)),
        (1_999, status(false, 2, 0, 60)),
        // More than a second: the clock went back.
        (999, status(true, 2, 1, 60)),
    ] {
        assert_eq!(window.count(rule, at(millis)), expected, "at {millis}");
    }
}

#[test]
fn a_refund_counts_within_its_window_only() {
    let rule = WindowRule { limit: 1, length: MINUTE };
    let mut window = FixedWindow::new(at(0));
    window.refund(MINUTE, at(0));
    assert!(window.count(rule, at(0)).allowed);
    window.refund(MINUTE, at(1));
    assert!(window.count(rule, at(1)).allowed);
    window.refund(MINUTE, at(MINUTE));
    assert!(!window.peek(rule, at(2)).allowed, "looking does not begin a new window");
}

#[test]
fn each_key_has_its_own_window() {
    let mut limit = FixedWindowLimit::<String>::new(SPAN);
    let refused = |seconds| Err(RateExceeded { seconds });
    for (key, moment, expected) in [
        ("a", 0, Ok(())),
        ("a", 5000, Ok(())),
        ("a", 5000, refused(5)),
        ("b", 5001, Ok(())),
        ("a", 9001, refused(1)),
        ("a", 9999, refused(1)),
        ("a", 10_000, Ok(())),
        ("b", 10_000, Ok(())),
        ("b", 10_000, refused(6)),
    ] {
        let room = limit.would_admit(2, key, at(moment));
        assert_eq!(limit.admit(2, key, at(moment)), expected, "{key} at {moment}");
        assert_eq!(room, expected.is_ok(), "{key} at {moment}");
        assert!(limit.is_tracked(key, at(moment)) && !limit.is_tracked(key, at(moment + SPAN)));
    }
}

#[test]
fn a_keyed_limit_survives_a_clock_that_goes_back() {
    let mut limit = FixedWindowLimit::<u32>::new(SPAN);
    assert_eq!(limit.admit(1, &1, at(60_000)), Ok(()));
    assert!(limit.would_admit(1, &1, at(0)));
    assert_eq!(limit.admit(1, &1, at(0)), Ok(()));
    assert_eq!(limit.admit(1, &1, at(1)), Err(RateExceeded { seconds: 10 }));
}

#[test]
fn a_time_read_a_moment_earlier_drops_no_window_of_a_key() {
    let mut limit = FixedWindowLimit::<u32>::new(SPAN);
    for (key, millis) in [(1, 2_000), (2, 2_001), (3, 1_001)] {
        assert_eq!(limit.admit(1, &key, at(millis)), Ok(()));
    }
    for (key, seconds) in [(1, 10), (2, 10), (3, 10)] {
        assert_eq!(limit.admit(1, &key, at(1_001)), Err(RateExceeded { seconds }), "{key}");
    }
    // More than a second before two of the three.
    assert_eq!(limit.admit(1, &3, at(999)), Err(RateExceeded { seconds: 10 }));
    assert_eq!(limit.key_count(), 1);
}

#[test]
fn a_full_limit_refuses_new_keys_until_the_oldest_window_is_over() {
    const KEYS: usize = 10_000;
    let mut limit = FixedWindowLimit::<usize>::new(SPAN);
    // The highest is the oldest, and the lowest the newest.
    for (moment, key) in (1..=KEYS).rev().enumerate() {
        assert_eq!(limit.admit(1, &key, at(moment as i64 / 2)), Ok(()));
    }
    assert!(limit.is_full(at(6000)));
    assert_eq!(limit.admit(1, &0, at(6000)), Err(RateExceeded { seconds: 4 }));
    for known in [1, KEYS] {
        assert!(limit.admit(1, &known, at(6000)).is_err(), "no key is evicted for it");
    }
    assert_eq!(limit.admit(1, &0, at(SPAN)), Ok(()));
    assert!(limit.would_admit(1, &KEYS, at(SPAN)) && !limit.would_admit(1, &1, at(SPAN)));
    assert!(limit.key_count() <= KEYS);
    assert_eq!(limit.admit(1, &0, at(3 * SPAN)), Ok(()));
    assert_eq!(limit.key_count(), 1, "expired windows are dropped");
}

#[test]
fn an_evicting_limit_forgets_the_oldest_key() {
    let mut limit = FixedWindowLimit::<u32>::evicting(SPAN, 3);
    for (moment, key) in [(0, 9), (1, 1), (2, 5), (3, 7)] {
        assert_eq!(limit.admit(1, &key, at(moment)), Ok(()));
    }
    assert_eq!(limit.key_count(), 3);
    assert!(!limit.is_tracked(&9, at(4)));
    for key in [1, 5, 7] {
        assert!(limit.admit(1, &key, at(4)).is_err(), "{key} is still counted");
    }
}

#[test]
fn requests_of_a_minute_are_refused_after_the_last_allowed_one_and_refunded() {
    let limit = KeyedRateLimit::new(2);
    assert_eq!(limit.admit_many(1, 1, at(0)), Ok(status(true, 2, 1, 60)));
    assert_eq!(limit.admit_many(1, 1, at(0)), Ok(status(true, 2, 0, 60)));
    assert_eq!(limit.admit_many(1, 1, at(59_999)), Err(status(false, 2, 0, 1)));
    assert_eq!(limit.admit_many(2, 3, at(0)), Err(status(false, 2, 0, 60)));
    assert_eq!(limit.admit_many(1, 1, at(MINUTE)), Ok(status(true, 2, 1, 60)));
    limit.refund(1, at(MINUTE));
    assert_eq!(limit.peek(1, at(MINUTE)), status(true, 2, 2, 60));
    assert_eq!(limit.peek(3, at(MINUTE)), status(true, 2, 2, 60));
}

#[test]
fn keys_of_requests_are_bounded_and_the_newest_are_admitted() {
    const KEYS: usize = 100_000;
    let limit = KeyedRateLimit::new(1);
    for key in 0..KEYS + 10 {
        assert!(limit.admit_many(key, 1, at(key as i64 / 10)).is_ok(), "{key}");
    }
    let now = at(KEYS as i64 / 10 + 1);
    assert_eq!(limit.windows().key_count(), KEYS);
    assert!((0..10).all(|evicted| limit.peek(evicted, now).allowed));
    assert!([10, KEYS, KEYS + 9].iter().all(|kept| !limit.peek(*kept, now).allowed));
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_bucket_gives_its_burst_and_then_its_rate() {
    let rate = TokenRate::per_second(8, 32);
    let mut bucket = TokenBucket::default();
    for (moment, taken) in [(0, 32), (124, 0), (125, 1), (1_125, 8), (60_000, 32), (60_000, 0)] {
        let moment = ms(moment);
        let got = (0..100).filter(|_| bucket.take(rate, moment)).count();
        assert_eq!(got, taken, "at {moment:?}");
        assert!(!bucket.has_token(rate, moment) && !bucket.is_full(moment));
    }
    assert!(bucket.is_full(ms(64_000)));
}

#[test]
fn a_reserved_token_comes_in_its_turn() {
    let rate = TokenRate { spacing: ms(5), burst: 21 };
    let mut bucket = TokenBucket::default();
    let mut waits = Vec::new();
    for _ in 0..621 {
        waits.push(bucket.ready_at(rate, ms(0)));
        bucket.reserve(rate, ms(0));
    }
    for (number, wait) in [(0, 0), (20, 0), (21, 5), (220, 1_000), (620, 3_000)] {
        assert_eq!(waits[number], ms(wait), "{number}");
    }
    let later = ms(60_000);
    let at_once = (0..100).filter(|_| bucket.take(rate, later)).count();
    assert_eq!(at_once, 21, "a quiet time gives the burst back and no more");
}

#[test]
fn buckets_are_bounded_and_full_ones_make_room() {
    let mut buckets = KeyedTokenBuckets::new(TokenRate { spacing: ms(100), burst: 2 }, 2);
    assert!(buckets.take('a', ms(0)) && buckets.take('b', ms(50)) && buckets.take('b', ms(50)));
    assert!(!buckets.take('b', ms(50)) && buckets.has_room(&'b', ms(50)));
    assert!(!buckets.has_room(&'c', ms(99)));
    assert!(buckets.has_room(&'c', ms(100)), "a is full again");
    assert_eq!(buckets.key_count(), 1);
}
