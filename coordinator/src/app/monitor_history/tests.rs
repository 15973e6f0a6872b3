//! Reads of the past: when a monitor was watched, and response times of a recent one.

use std::sync::Arc;

use chrono::Days;
use parallax_core::check::{Check, TcpCheck};
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::observation::Reading;
use parallax_core::rollup::day_of;
use parallax_core::time::{MINUTE, SECOND};
use parallax_core::uptime::MonitoredTime;
use parallax_core::vantage::VantageNo;
use parallax_engine::history::no_windows;
use parallax_store::{Batch, Store};

use super::*;

/// A quarter to one, of a day in UTC.
const MADE: Timestamp = Timestamp::from_millis(1_795_783_560_000);
const SLOT: u32 = 7;
/// Milliseconds between two rounds.
const INTERVAL: i64 = 30 * SECOND;

fn page() -> Page {
    Page::blank(PageId::from_u128(1), AccountId::from_u128(1), "acme".to_owned(), MADE)
}

fn monitor() -> Monitor {
    Monitor {
        id: MonitorId::from_u128(1),
        page: page().id,
        slot: SLOT,
        revision: 1,
        name: "Shop".to_owned(),
        group: None,
        check: Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 }),
        slow_threshold_ms: None,
        slow_thresholds: None,
        latency_regions: None,
        pinned_region: None,
        position: 0,
        paused: false,
        created_at: MADE,
        acknowledgement: None,
    }
}

/// A store with a monitor's rounds at these milliseconds after its creation, each `true` if it passed.
async fn with_rounds(rounds: impl IntoIterator<Item = (i64, bool)>) -> (Store, Arc<History>) {
    let store = Store::in_memory().unwrap();
    let mut batch = Batch::new();
    batch.write(page()).write(monitor());
    store.commit(batch).await.unwrap();
    let history = Arc::new(History::rebuild(store.reader().as_ref()).unwrap());
    let reading = |(after, passed): (i64, bool)| Reading {
        slot: SLOT,
        region: Region::Europe,
        vantage: VantageNo(1),
        round: u64::try_from((MADE + after).as_millis() / SECOND).unwrap(),
        due: MADE + after,
        outcome: if passed { RoundOutcome::Passed } else { RoundOutcome::Failed },
        latency_ms: passed.then_some(80),
    };
    let readings: Vec<Reading> = rounds.into_iter().map(reading).collect();
    let batch = Batch { readings: readings.clone(), ..Batch::new() };
    let committed = store.commit(batch).await.unwrap();
    history.append(&readings, committed.readings.unwrap());
    (store, history)
}

/// Five minutes of rounds, of which the third failed.
fn five_minutes() -> impl Iterator<Item = (i64, bool)> {
    (0..10).map(|n| (n * INTERVAL, n != 2))
}

#[tokio::test]
async fn a_pause_does_not_change_the_length_of_an_outage() {
    let (store, history) = with_rounds(five_minutes()).await;
    let pause = [TimeSpan { from: MADE + 5 * MINUTE, to: Timestamp::from_millis(i64::MAX) }];
    for age in [6 * MINUTE, 90 * MINUTE, 2 * DAY, 20 * DAY] {
        let now = MADE + age;
        while history.upkeep(&store, now, &no_windows()).await.unwrap() {}
        let read = store.reader();
        let today = day_of(now, page().timezone).unwrap();
        let days = today.checked_sub_days(Days::new(29)).unwrap()..=today;
        let monitor = monitor();
        let day_counts =
            counts_by_day(&history, read.as_ref(), (&monitor, Plan::Pro), &page(), (now, RegionSet::ALL), &days);
        let day_counts = day_counts.unwrap();
        let watched_hours =
            watched_by_day(&history, read.as_ref(), (&monitor, INTERVAL), &page(), now, &day_counts).unwrap();
        let created = day_of(MADE, page().timezone).unwrap();
        assert_eq!(watched_hours.keys().copied().collect::<Vec<_>>(), [created], "{age}");
        let counts = day_counts[&Region::Europe][&created];
        let life = TimeSpan { from: MADE, to: now };
        let down = |pauses: &[TimeSpan]| {
            MonitoredTime::of_rounds(watched_hours[&created].watched_ms(life, pauses), counts.tally()).minutes_down()
        };
        assert_eq!(down(&pause), 0.5, "{age}");
        // Without a known pause, the hour with a check counts, and no later one.
        assert!(down(&[]) <= 6.0, "{age}: {}", down(&[]));
        if age == 90 * MINUTE {
            let spans = parallax_core::page_view::TimeRange::Day.slices(now, page().timezone);
            let outcomes = counts_by_slice(&history, read.as_ref(), (&monitor, Plan::Pro, INTERVAL), &spans).unwrap();
            let entire = TimeSpan { from: spans[0].from, to: now };
            assert_eq!(outcomes.watched.watched_ms(TimeSpan { from: MADE, ..entire }, &pause), 300_000);
            let hour = TimeSpan { from: Timestamp::from_millis(MADE.hour() * HOUR), ..entire };
            assert_eq!(outcomes.watched.watched_ms(hour, &[]), HOUR.unsigned_abs());
        }
    }
}

#[tokio::test]
async fn what_is_checked_every_six_hours_is_watched_in_between() {
    let every = 6 * HOUR;
    let second = day_of(MADE + DAY, page().timezone).unwrap();
    let day = TimeSpan {
        from: start_of_day(second, page().timezone).unwrap(),
        to: end_of_day(second, page().timezone).unwrap(),
    };
    // All four rounds of the day, and all but the third: from one hour after it was due, the monitor was not watched.
    for (lost_rounds, expected) in [(None, None), (Some(4), Some(19 * HOUR))] {
        let rounds = (0..8).filter(|n| Some(*n) != lost_rounds);
        let (store, history) = with_rounds(rounds.map(|n| (n * every, n != 3))).await;
        let now = MADE + 48 * HOUR;
        while history.upkeep(&store, now, &no_windows()).await.unwrap() {}
        let (read, monitor) = (store.reader(), monitor());
        let (days, all) = (second..=second, (now, RegionSet::ALL));
        let counts = counts_by_day(&history, read.as_ref(), (&monitor, Plan::Pro), &page(), all, &days).unwrap();
        let watched_hours = watched_by_day(&history, read.as_ref(), (&monitor, every), &page(), now, &counts).unwrap();
        let watched = watched_hours.get(&second).map(|watched_hours| watched_hours.watched_ms(day, &[]));
        assert_eq!(watched, expected.map(i64::unsigned_abs));
    }
}

#[tokio::test]
async fn for_a_fully_watched_day_no_samples_are_read() {
    // From the midnight after its creation.
    let first = DAY - MADE.as_millis().rem_euclid(DAY);
    let every = 5 * MINUTE;
    // Two days: a whole one, and one without its first six hours.
    let rounds = (0..2 * DAY / every).filter(|n| !(288..360).contains(n));
    let (store, history) = with_rounds(rounds.map(|n| (first + n * every, n % 288 != 100))).await;
    let now = MADE + 3 * DAY;
    while history.upkeep(&store, now, &no_windows()).await.unwrap() {}
    let (read, monitor) = (store.reader(), monitor());
    let today = day_of(now, page().timezone).unwrap();
    let days = today.checked_sub_days(Days::new(3)).unwrap()..=today;
    let all = (now, RegionSet::ALL);
    let counts = counts_by_day(&history, read.as_ref(), (&monitor, Plan::Pro), &page(), all, &days).unwrap();
    let watched_hours = watched_by_day(&history, read.as_ref(), (&monitor, every), &page(), now, &counts).unwrap();
    let second = day_of(MADE + 2 * DAY, page().timezone).unwrap();
    assert_eq!(watched_hours.keys().copied().collect::<Vec<_>>(), [second]);
    let day = TimeSpan {
        from: start_of_day(second, page().timezone).unwrap(),
        to: end_of_day(second, page().timezone).unwrap(),
    };
    assert_eq!(watched_hours[&second].watched_ms(day, &[]), (18 * HOUR).unsigned_abs());
}

#[test]
fn for_a_day_covered_by_roll_ups_no_readings_are_read() {
    assert_eq!(unsealed_regions(MADE, MADE + 1), Region::ALL);
    for since in [MADE, MADE + HOUR, MADE + 20 * DAY] {
        assert_eq!(unsealed_regions(since, MADE), []);
    }
}

#[tokio::test]
async fn a_chart_has_a_line_from_the_fifth_minute_on() {
    let (store, history) = with_rounds((0..10).map(|n| (n * INTERVAL, true))).await;
    let (now, monitor) = (MADE + 5 * MINUTE, monitor());
    let day = ChartRange { from: now - DAY, to: now, buckets: 48 };
    let counted = RegionSet::only(Region::Europe);
    let of = |range| chart(&history, store.reader().as_ref(), &monitor, counted, range).unwrap();
    let points = |chart: &LatencyChart| chart.mean().iter().flatten().count();
    assert_eq!(points(&of(day)), 1, "of half an hour each");
    let young = of(day.fitted_to(MADE, INTERVAL));
    assert_eq!((points(&young), young.buckets()), (5, 15));
    let mean = young.mean();
    let first = mean.iter().position(Option::is_some).unwrap();
    assert!(mean[first..].iter().all(Option::is_some), "one line: {mean:?}");
}

#[tokio::test]
async fn a_banded_chart_has_the_lowest_and_highest_of_each_bucket_around_its_median() {
    let (store, history) = with_rounds((0..10).map(|n| (n * INTERVAL, true))).await;
    let (now, monitor) = (MADE + 5 * MINUTE, monitor());
    let counted = RegionSet::only(Region::Europe);
    for range in [
        ChartRange { from: now - DAY, to: now, buckets: 48 },
        ChartRange { from: now - 7 * DAY, to: now, buckets: 168 },
    ] {
        let read = store.reader();
        let plain = chart(&history, read.as_ref(), &monitor, counted, range).unwrap();
        let period = ChartPeriod::new(range, now);
        let banded = banded_chart(&history, read.as_ref(), &monitor, counted, period).unwrap();
        assert!(plain.bands.is_empty() && plain.regions == banded.regions, "{banded:?}");
        let (medians, bands) = (&banded.regions[&Region::Europe], &banded.bands[&Region::Europe]);
        assert_eq!((medians.len(), bands.len()), (range.buckets, range.buckets));
        let mut measured = 0;
        for (median, band) in medians.iter().zip(bands) {
            assert_eq!(median.is_some(), band.is_some());
            if let (Some(median), Some(band)) = (median, band) {
                assert!(band.min <= *median && *median <= band.max, "{band:?} {median}");
                measured += 1;
            }
        }
        assert_eq!(measured, 1, "{range:?}");
    }
}

/// The chart of a period, zoomed to by someone at `now`, with the times of its buckets that have a value.
fn zoomed(
    (store, history): (&Store, &History),
    (from, to): (Timestamp, Timestamp),
    now: Timestamp,
) -> (LatencyChart, Vec<Timestamp>) {
    let period = ChartPeriod::fitted(ChartRange { from, to, buckets: 120 }, (MADE, INTERVAL), now);
    let read = store.reader();
    let chart = banded_chart(history, read.as_ref(), &monitor(), RegionSet::only(Region::Europe), period).unwrap();
    let width = period.range.width();
    let line = chart.regions.get(&Region::Europe).cloned().unwrap_or_default();
    let times = (0..).zip(line).filter(|(_, value)| value.is_some()).map(|(at, _)| chart.from + width * at);
    let times = times.collect();
    (chart, times)
}

#[tokio::test]
async fn a_zoomed_chart_has_its_readings_at_their_times() {
    for minutes in [5, 61, 90, 119, 120, 180] {
        let (first, last) = (MADE + MINUTE, MADE + minutes * MINUTE - MINUTE);
        let (store, history) = with_rounds([first, last].map(|at| (at.since(MADE), true))).await;
        let zoom = (MADE, MADE + minutes * MINUTE);
        let (chart, times) = zoomed((&store, &history), zoom, MADE + DAY);
        let width = chart.to.since(chart.from) / i64::try_from(chart.buckets()).unwrap();
        let is_in = |bucket: Timestamp, at: Timestamp| bucket <= at && at < bucket + width;
        assert!(matches!(times[..], [a, b] if is_in(a, first) && is_in(b, last)), "{minutes}: {times:?}");
    }
}

#[tokio::test]
async fn a_zoom_into_a_time_without_single_readings_is_drawn_from_hours() {
    let every = 5 * MINUTE;
    let (store, history) = with_rounds((0..4 * DAY / every).map(|n| (n * every, true))).await;
    let now = MADE + 42 * DAY;
    // Expired days are deleted every few hours.
    for hour in 0..4 {
        while history.upkeep(&store, now + hour * HOUR, &no_windows()).await.unwrap() {}
    }
    let id = (SLOT, monitor().id);
    let kept = history.readings(store.reader().as_ref(), id, Region::Europe, MADE, MADE + 3 * DAY).unwrap();
    assert!(kept.is_empty(), "{} readings", kept.len());
    for (from, length) in [(MADE + DAY, 2 * DAY), (MADE + DAY + 17 * MINUTE, 5 * HOUR), (MADE + DAY, HOUR)] {
        let (chart, times) = zoomed((&store, &history), (from, from + length), now);
        assert!(chart.to.since(chart.from) - length < HOUR, "{length}: {chart:?}");
        assert_eq!(i64::try_from(times.len()).unwrap(), length / HOUR, "one line: {times:?}");
        assert_eq!(times.len(), chart.buckets());
    }
}
