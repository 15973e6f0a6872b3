//! Benchmark of the coordinator's memory and start time with many monitors and a long history.

use std::sync::Arc;
use std::time::Duration;

use parallax_core::assign;
use parallax_core::block::{BlockReading, OpenBlock};
use parallax_core::observation::{Reading, RoundOutcome};
use parallax_core::plan::Plan;
use parallax_core::rollup::RollupRules;
use parallax_core::time::{DAY, HOUR, MINUTE, Timestamp};
use parallax_core::vantage::{Region, RegionSet, VantageNo};
use parallax_engine::history::{self, DayRollups, History, HourRollups};
use parallax_store::{Batch, Block, Op, Rollup, Store};

use super::coordinator::{self, BenchInstallation, Latencies, WRITES_PER_COMMIT};
use super::{figure, now_ms, process_usage};

const INTERVAL_MS: u32 = 60_000;
/// Minutes of readings that are in no block yet when the coordinator stops.
const OPEN_MINUTES: u64 = 40;

/// Hours written per step.
const STEP: usize = 8;

/// Measures with `monitors` monitors in the first `regions` regions and `days` days of history.
pub(super) fn memory(monitors: u32, regions: u32, days: u32) {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let regions = usize::try_from(regions.clamp(1, 6)).expect("six at most");
        let made = coordinator::create_installation(monitors, regions, Plan::Hobby).await;
        fill(&made, regions, i64::from(days)).await;
        let results = u64::from(monitors) * regions as u64 * u64::from(days) * 24 * 60;
        #[allow(clippy::cast_precision_loss, reason = "a count")]
        figure("results", results as f64, "results", "-");
        let bound = if monitors > 10_000 { "<=5" } else { "<=1" };
        // The last start follows a kill.
        for (start, bound) in [("first", bound), ("second", bound), ("killed", "<=3")] {
            let running = made.serve(core).await;
            figure(&format!("start_{start}_{monitors}"), running.start_time.as_secs_f64(), "s", bound);
            figure(&format!("start_{start}_{monitors}_cpu"), running.start_cpu, "s", "-");
            tokio::time::sleep(Duration::from_secs(5)).await;
            let resident = process_usage::resident_bytes(running.process.id());
            #[allow(clippy::cast_precision_loss, reason = "bytes")]
            let each = resident as f64 / f64::from(monitors);
            figure(&format!("coordinator_resident_{monitors}"), each, "B/monitor", "<=4096");
            let mut running = running;
            if start == "second" {
                running.process.kill();
            } else {
                running.process.terminate();
                running.process.wait_for_exit(Duration::from_secs(60)).await;
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "bytes")]
        let bytes = made.store_bytes() as f64;
        figure("store", bytes / f64::from(1 << 20), "MiB", "-");
        figure("load", process_usage::load(), "-", "-");
    });
}

/// Writes blocks and roll-ups of whole days, and leaves the last minutes in open tails.
async fn fill(made: &BenchInstallation, regions: usize, days: i64) {
    let store = made.open_store().await;
    let this_hour = now_ms() / HOUR;
    let first = this_hour - 1 - days * 24;
    let template = Template::new(first, regions);
    let mut batch = Batch::new();
    let end = this_hour - 1;
    for from in (first..end).step_by(STEP) {
        let to = end.min(from + i64::try_from(STEP).expect("some hours"));
        for monitor in &made.monitors {
            let (id, slot) = (monitor.id, monitor.slot);
            for (region, bytes) in Region::ALL.into_iter().zip(&template.blocks) {
                for hour in from..to {
                    batch.write(Op::PutBlock(Block { monitor: id, slot, region, hour, bytes: bytes.clone() }));
                }
            }
            for at in from..to {
                batch.write(Op::PutHour(Rollup { monitor: id, at, bytes: template.hour.clone() }));
            }
            for at in from * HOUR / DAY..=to * HOUR / DAY {
                batch.write(Op::PutDay(Rollup { monitor: id, at, bytes: template.day.clone() }));
            }
            // The compaction hour differs by monitor, so the last hours of most monitors are not compacted yet.
            let unfolded = if to == end { i64::from(slot) % 4 } else { 0 };
            batch.write(Op::CompactHistory(id, to - unfolded));
            if batch.ops.len() >= WRITES_PER_COMMIT {
                store.commit(std::mem::take(&mut batch)).await.expect("a commit");
            }
        }
    }
    store.commit(batch).await.expect("a commit");
    leave_open(made, &store, regions).await;
    store.close().await;
}

async fn leave_open(made: &BenchInstallation, store: &Store, regions: usize) {
    let history = Arc::new(History::rebuild(coordinator::reader(store).as_ref()).expect("a history"));
    let used: RegionSet = Region::ALL.into_iter().take(regions).collect();
    let mut latencies = Latencies::new(9);
    let now = now_ms();
    for minute in (0..OPEN_MINUTES).rev() {
        let mut readings = Vec::new();
        for monitor in &made.monitors {
            for region in used.iter() {
                let offset = assign::offset_ms(assign::monitor_hash(monitor.id), INTERVAL_MS, used, region);
                let round = (now / MINUTE).unsigned_abs() - 1 - minute;
                let due = Timestamp::from_millis(assign::due_ms(offset, INTERVAL_MS, round));
                let latency_ms = Some(latencies.next(monitor.slot, region));
                let (slot, place) = (monitor.slot, VantageNo(u16::try_from(region.index()).expect("six regions")));
                readings.push(Reading {
                    slot,
                    region,
                    vantage: place,
                    round,
                    due,
                    outcome: RoundOutcome::Passed,
                    latency_ms,
                });
            }
        }
        history.append(&readings, 0);
    }
    let windows = history::no_windows();
    while history.upkeep(store, Timestamp::from_millis(now), &windows).await.expect("upkeep") {}
}

/// A packed hour, used for every hour of every monitor.
struct Template {
    blocks: Vec<Vec<u8>>,
    hour: Vec<u8>,
    day: Vec<u8>,
}

impl Template {
    fn new(hour: i64, regions: usize) -> Self {
        let mut latencies = Latencies::new(8);
        let (mut of_hour, mut of_day) = (HourRollups::new(), DayRollups::new());
        let mut blocks = Vec::new();
        for region in Region::ALL.into_iter().take(regions) {
            let mut tail = OpenBlock::new(hour);
            for minute in 0..60 {
                let due = Timestamp::from_millis(hour * HOUR + minute * MINUTE + 1_234);
                let round = (due.as_millis() / MINUTE).unsigned_abs();
                let place = VantageNo(u16::try_from(region.index()).expect("six regions"));
                let latency_ms = Some(latencies.next(1, region));
                let sample = BlockReading { vantage: place, round, due, outcome: RoundOutcome::Passed, latency_ms };
                tail.push(&sample).expect("a reading of that hour");
                of_hour.entry(region).or_default().add(&sample, RollupRules::default());
                of_day.entry(region).or_default().counts.add(&sample, RollupRules::default());
            }
            blocks.push(tail.seal());
        }
        let pack = "roll-ups pack";
        Self {
            blocks,
            hour: postcard::to_stdvec(&of_hour).expect(pack),
            day: postcard::to_stdvec(&of_day).expect(pack),
        }
    }
}
