//! Figures of the history equal those of a naive count, regardless of late readings, sealing and restarts.

mod folding;
mod past;
mod plans;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::check::{Check, TcpCheck};
use parallax_core::id::{AccountId, PageId};
use parallax_core::latency::{RegionLatencies, mean_ms};
use parallax_core::observation::RoundOutcome;
use parallax_core::page::Page;
use parallax_core::time::{DAY, HOUR, SECOND};
use parallax_core::uptime::{RoundTally, TimeSpan};
use parallax_core::vantage::{RegionSet, VantageNo};
use parallax_store::Op;
use proptest::prelude::*;

use super::*;

const START: i64 = 1_795_783_560_000;
const INTERVAL: i64 = 5 * MINUTE;
const SLOT: u32 = 70;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(START + millis)
}

fn monitor_no(slot: u32) -> MonitorId {
    MonitorId::from_u128(0x1234_5678 + u128::from(slot))
}

fn page() -> Page {
    Page {
        name: "Acme".to_owned(),
        timezone: chrono_tz::Asia::Kolkata,
        show_deploys: true,
        show_locations: true,
        ..Page::blank(PageId::from_u128(1), AccountId::from_u128(1), "acme".to_owned(), at(0))
    }
}

fn monitor(slot: u32) -> Monitor {
    Monitor {
        id: monitor_no(slot),
        page: page().id,
        slot,
        revision: 1,
        name: "Shop".to_owned(),
        group: None,
        check: Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 }),
        slow_threshold_ms: Some(200),
        slow_thresholds: None,
        latency_regions: None,
        pinned_region: None,
        position: 0,
        paused: false,
        created_at: at(0),
        acknowledgement: None,
    }
}

/// A reading of round `n` of [`SLOT`], counted from the start.
fn reading(region: Region, n: i64, vantage: u16, outcome: RoundOutcome, latency_ms: Option<u32>) -> Reading {
    let round = START / INTERVAL + n;
    let due = Timestamp::from_millis(round * INTERVAL + region.index() as i64 * 40 * SECOND);
    Reading { slot: SLOT, region, vantage: VantageNo(vantage), round: round as u64, due, outcome, latency_ms }
}

fn passed(region: Region, n: i64) -> Reading {
    reading(region, n, (n % 2) as u16, RoundOutcome::Passed, Some(100 + (n % 17) as u32))
}

/// A store with monitors, a history over it, and the readings appended so far.
struct Fixture {
    store: Store,
    history: Arc<History>,
    raw: BTreeMap<(Region, u64), Reading>,
    windows: WindowSource,
}

impl Fixture {
    async fn new() -> Self {
        Self::with_monitors(Store::in_memory().unwrap()).await
    }

    async fn with_monitors(store: Store) -> Self {
        let mut batch = Batch::new();
        batch.write(page()).write(monitor(SLOT)).write(monitor(SLOT + 1));
        store.commit(batch).await.unwrap();
        Self::over_existing(store)
    }

    /// A history over a store that has its monitors.
    fn over_existing(store: Store) -> Self {
        let history = Arc::new(History::rebuild(store.reader().as_ref()).unwrap());
        Self { store, history, raw: BTreeMap::new(), windows: no_windows() }
    }

    async fn append(&mut self, readings: &[Reading]) {
        let batch = Batch { readings: readings.to_vec(), ..Batch::new() };
        let committed = self.store.commit(batch).await.unwrap();
        self.history.append(readings, committed.readings.unwrap());
        for reading in readings {
            self.raw.entry((reading.region, reading.round)).or_insert(*reading);
        }
    }

    async fn upkeep(&self, now: Timestamp) {
        while self.history.upkeep(&self.store, now, &self.windows).await.unwrap() {}
    }

    fn restart(&mut self) {
        self.history = Arc::new(History::rebuild(self.store.reader().as_ref()).unwrap());
    }

    fn query(&self, now: Timestamp) -> FiguresQuery {
        FiguresQuery {
            monitor: monitor_no(SLOT),
            slot: SLOT,
            counted: [Region::Europe, Region::Asia].into_iter().collect(),
            latency: [Region::Europe, Region::Africa].into_iter().collect(),
            excluded: TimeSpans::default(),
            now,
        }
    }

    fn figures(&self, query: &FiguresQuery) -> MonitorFigures {
        self.history.figures(self.store.reader().as_ref(), query).unwrap()
    }

    /// The same figures, computed from raw readings alone.
    fn naive(&self, query: &FiguresQuery) -> MonitorFigures {
        let (mut tally, mut checked_regions) = (RoundTally::default(), RegionSet::NONE);
        let mut latencies: BTreeMap<Region, RegionLatencies> = BTreeMap::new();
        for reading in self.raw.values() {
            if reading.due <= query.now - DAY || reading.due > query.now {
                continue;
            }
            if reading.due.hour() > (query.now - DAY).hour() {
                checked_regions.insert(reading.region);
            }
            let excluded = query.excluded.as_slice().iter().any(|window| window.contains(reading.due));
            if query.counted.contains(reading.region) && !excluded {
                tally.add(reading.outcome);
            }
            if let (RoundOutcome::Passed, Some(latency), true) =
                (reading.outcome, reading.latency_ms, query.latency.contains(reading.region))
            {
                latencies.entry(reading.region).or_default().add(reading.vantage, latency);
            }
        }
        MonitorFigures { uptime_24h: tally.percent(), latency_ms_24h: mean_ms(latencies.values()), checked_regions }
    }

    fn check(&self, now: Timestamp) {
        let query = self.query(now);
        // Computed again, not read from the cache.
        let figures = figures::compute(&self.history, self.store.reader().as_ref(), &query).unwrap();
        assert_eq!(figures, self.naive(&query), "at {now}");
    }
}

#[tokio::test]
async fn sealed_readings_read_back_and_the_journal_is_trimmed_up_to_the_checkpoint() {
    let mut fixture = Fixture::new().await;
    let rounds: Vec<Reading> = (0..300).map(|n| passed(Region::Europe, n)).collect();
    for hour in rounds.chunks(12) {
        fixture.append(hour).await;
        fixture.upkeep(hour.last().unwrap().due).await;
    }
    let now = rounds.last().unwrap().due + 2 * HOUR;
    fixture.upkeep(now).await;

    let read = fixture.store.reader();
    let hours = at(0).hour()..now.hour();
    assert!(read.blocks(monitor_no(SLOT), Region::Europe, hours.clone()).unwrap().len() >= 25);
    let folded: u32 = read
        .hours(monitor_no(SLOT), hours)
        .unwrap()
        .iter()
        .map(|rollup| unpack_rollup::<HourRollups>(rollup)[&Region::Europe].counts.passed)
        .sum();
    assert_eq!(folded, 300);
    assert_eq!(fixture.history.open_hours(SLOT).len(), 0);
    assert_eq!(read.readings_after(0, 10).unwrap(), []);
    assert_eq!(read.checkpoints(0, 9).unwrap(), []);

    let all = fixture.history.readings(read.as_ref(), (SLOT, monitor_no(SLOT)), Region::Europe, at(-DAY), now).unwrap();
    assert_eq!(all, rounds.iter().map(BlockReading::from).collect::<Vec<_>>());
    fixture.check(now);
    fixture.check(now - 7 * HOUR - 123);
}

#[tokio::test]
async fn days_follow_the_time_zone_of_the_page() {
    let mut fixture = Fixture::new().await;
    let rounds: Vec<Reading> = (0..288).map(|n| passed(Region::Europe, n)).collect();
    fixture.append(&rounds).await;
    fixture.upkeep(at(2 * DAY)).await;
    let zone = page().timezone;
    let mut expected: BTreeMap<i64, u32> = BTreeMap::new();
    for reading in &rounds {
        let day = parallax_core::rollup::day_of(reading.due, zone).unwrap();
        *expected.entry(i64::from(day.to_epoch_days())).or_default() += 1;
    }
    let days = fixture.history.days(fixture.store.reader().as_ref(), monitor_no(SLOT), 0..i64::MAX).unwrap();
    assert_eq!(expected.len(), 2);
    assert_eq!(
        days.iter().map(|(day, rollups)| (*day, rollups[&Region::Europe].counts.passed)).collect::<BTreeMap<_, _>>(),
        expected
    );
}

#[tokio::test]
async fn a_late_reading_joins_its_sealed_block_and_counts_once() {
    let mut fixture = Fixture::new().await;
    let (late_readings, punctual_readings): (Vec<Reading>, Vec<Reading>) =
        (0..24).map(|n| passed(Region::Europe, n)).partition(|reading| reading.round % 5 == 0);
    fixture.append(&punctual_readings).await;
    fixture.upkeep(at(4 * HOUR)).await;
    fixture.append(&late_readings).await;
    fixture.check(at(4 * HOUR));
    fixture.upkeep(at(6 * HOUR)).await;
    // A second reading for rounds that are sealed changes nothing.
    let repeated_readings: Vec<Reading> = punctual_readings
        .iter()
        .map(|reading| Reading { outcome: RoundOutcome::Failed, latency_ms: None, ..*reading })
        .collect();
    fixture.append(&repeated_readings).await;
    fixture.check(at(6 * HOUR));
    fixture.upkeep(at(8 * HOUR)).await;
    fixture.check(at(8 * HOUR));
    let days = fixture.history.days(fixture.store.reader().as_ref(), monitor_no(SLOT), 0..i64::MAX).unwrap();
    let counts: Vec<_> = days.values().map(|rollups| rollups[&Region::Europe].counts).collect();
    assert_eq!(
        counts.iter().map(|counts| (counts.passed, counts.failed)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
        (24, 0)
    );
}

#[tokio::test]
async fn maintenance_windows_are_excluded_from_figures_and_roll_ups() {
    let mut fixture = Fixture::new().await;
    let window = TimeSpan { from: at(HOUR), to: at(HOUR + 17 * MINUTE) };
    fixture.windows = Arc::new(move |_, _, _| [window].into_iter().collect());
    let rounds: Vec<Reading> = (0..60)
        .map(|n| {
            let down = window.contains(passed(Region::Europe, n).due);
            if down { reading(Region::Europe, n, 1, RoundOutcome::Failed, None) } else { passed(Region::Europe, n) }
        })
        .collect();
    fixture.append(&rounds).await;
    let query = FiguresQuery { excluded: [window].into_iter().collect(), ..fixture.query(at(12 * HOUR)) };
    assert_eq!(fixture.figures(&query).uptime_24h, Some(100.0));
    fixture.upkeep(at(12 * HOUR)).await;
    let query = FiguresQuery { now: at(13 * HOUR), ..query };
    assert_eq!(fixture.figures(&query).uptime_24h, Some(100.0));
    // The window is deleted: rounds that were left out of the fold count again.
    fixture.windows = no_windows();
    fixture.check(at(13 * HOUR));
    let days = fixture.history.days(fixture.store.reader().as_ref(), monitor_no(SLOT), 0..i64::MAX).unwrap();
    let counts: Vec<_> = days.values().map(|rollups| rollups[&Region::Europe].counts).collect();
    assert_eq!(counts.iter().map(|counts| counts.failed).sum::<u32>(), 0);
    assert!(counts.iter().map(|counts| counts.excluded).sum::<u32>() >= 3);
}

#[tokio::test]
async fn a_deleted_monitor_leaves_nothing_behind() {
    let mut fixture = Fixture::new().await;
    fixture.append(&[passed(Region::Europe, 0)]).await;
    let mut batch = Batch::new();
    batch.write(Op::DeleteMonitor(monitor_no(SLOT)));
    fixture.store.commit(batch).await.unwrap();
    fixture.history.remove(SLOT);
    assert_eq!(fixture.history.append(&[passed(Region::Europe, 1)], 2), 1);
    fixture.upkeep(at(2 * HOUR)).await;
    assert_eq!(fixture.store.reader().blocks(monitor_no(SLOT), Region::Europe, 0..i64::MAX).unwrap(), []);
    fixture.restart();
    assert_eq!(fixture.history.open_hours(SLOT).len(), 0);
}

#[tokio::test]
async fn figures_are_cached_for_some_seconds_and_only_for_the_same_query() {
    let mut fixture = Fixture::new().await;
    fixture.append(&[passed(Region::Europe, 0)]).await;
    let query = fixture.query(at(MINUTE));
    let before = fixture.figures(&query);
    fixture.append(&[reading(Region::Asia, -1, 1, RoundOutcome::Failed, None)]).await;
    let soon = FiguresQuery { now: at(MINUTE + 4 * SECOND), ..query.clone() };
    assert_eq!(fixture.figures(&soon), before);
    let other = FiguresQuery { counted: RegionSet::ALL, ..soon };
    assert_eq!(fixture.figures(&other).uptime_24h, Some(50.0));
    let later = FiguresQuery { now: at(MINUTE + 20 * SECOND), ..query };
    assert_eq!(fixture.figures(&later), fixture.naive(&later));
}

/// A step of a scenario: readings that arrive now (some late, some duplicates), upkeep, or a restart.
#[derive(Debug, Clone)]
enum Step {
    Readings { minutes: i64, samples: Vec<(usize, i64, u16, u8, u32)> },
    Upkeep,
    Restart,
}

fn any_step() -> impl Strategy<Value = Step> {
    let round = (0_usize..3, prop_oneof![6 => 0_i64..6, 1 => 0_i64..90], 0_u16..4, 0_u8..12, 1_u32..400);
    prop_oneof![
        6 => (5_i64..200, proptest::collection::vec(round, 1..25))
            .prop_map(|(minutes, samples)| Step::Readings { minutes, samples }),
        3 => Just(Step::Upkeep),
        1 => Just(Step::Restart),
    ]
}

fn outcome_of(n: u8) -> RoundOutcome {
    match n {
        0 => RoundOutcome::Failed,
        1 => RoundOutcome::Disputed,
        2 => RoundOutcome::Unconfirmed,
        3 => RoundOutcome::Inconclusive,
        _ => RoundOutcome::Passed,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn figures_equal_those_of_a_naive_count(steps in proptest::collection::vec(any_step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut fixture = Fixture::new().await;
            let mut minutes = 0;
            for step in steps {
                match step {
                    Step::Readings { minutes: elapsed, samples } => {
                        minutes += elapsed;
                        let newest = minutes * MINUTE / INTERVAL;
                        let regions = [Region::Europe, Region::Asia, Region::Africa];
                        let readings: Vec<Reading> = samples
                            .into_iter()
                            .map(|(region, rounds_back, vantage, outcome, latency)| {
                                let outcome = outcome_of(outcome);
                                let has_latency = matches!(outcome, RoundOutcome::Passed | RoundOutcome::Disputed);
                                let latency = has_latency.then_some(latency);
                                reading(regions[region], newest - rounds_back, vantage, outcome, latency)
                            })
                            .collect();
                        fixture.append(&readings).await;
                    }
                    Step::Upkeep => fixture.upkeep(at(minutes * MINUTE)).await,
                    Step::Restart => {
                        let query = fixture.query(at(minutes * MINUTE));
                        let before = fixture.history.open_hours(SLOT);
                        fixture.restart();
                        // Sealed readings may be in tails again; none is missing.
                        let after = fixture.history.open_hours(SLOT);
                        for (hour, samples) in before {
                            let rounds: BTreeSet<u64> = after[&hour].iter().map(|sample| sample.round).collect();
                            assert!(samples.iter().all(|sample| rounds.contains(&sample.round)));
                        }
                        assert_eq!(fixture.figures(&query), fixture.naive(&query));
                    }
                }
                fixture.check(at(minutes * MINUTE));
            }
            for hours in [1, 5, 23, 24, 25] {
                fixture.check(at(minutes * MINUTE + hours * HOUR + 77_777));
            }
        });
    }
}
