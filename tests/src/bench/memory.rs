//! The coordinator's memory and start with many monitors and a long history.

use std::sync::Arc;
use std::time::Duration;

use parallax_coordinator::history::{self, DayRollups, History, HourRollups};
use parallax_coordinator::storage::{Batch, Block, Op, Rollup, Store};
use parallax_core::assign;
use parallax_core::block::{Sample, Tail};
use parallax_core::observation::{Reading, Word};
use parallax_core::place::{PlaceNo, Region, RegionSet};
use parallax_core::plan::Plan;
use parallax_core::rollup::Rules;
use parallax_core::time::{DAY, HOUR, MINUTE, Timestamp};

use super::coordinator::{self, AT_ONCE, Latencies, Made};
use super::{figure, gauge, now_ms};

const INTERVAL_MS: u32 = 60_000;
/// Minutes of readings that no block holds yet when the coordinator stops.
const OPEN_MINUTES: u64 = 40;

/// Hours that are written at once.
const STEP: usize = 8;

/// That many monitors in the first `regions` regions, with so many days of history behind them.
pub(super) fn memory(monitors: u32, regions: u32, days: u32) {
    let core = gauge::step_aside();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let regions = usize::try_from(regions.clamp(1, 6)).expect("six at most");
        let made = coordinator::make(monitors, regions, Plan::Hobby).await;
        fill(&made, regions, i64::from(days)).await;
        let results = u64::from(monitors) * regions as u64 * u64::from(days) * 24 * 60;
        #[allow(clippy::cast_precision_loss, reason = "a count")]
        figure("results", results as f64, "results", "-");
        let bound = if monitors > 10_000 { "<=5" } else { "<=1" };
        // The last one comes after a kill.
        for (start, bound) in [("first", bound), ("second", bound), ("killed", "<=3")] {
            let running = made.serve(core).await;
            figure(&format!("start_{start}_{monitors}"), running.took.as_secs_f64(), "s", bound);
            figure(&format!("start_{start}_{monitors}_cpu"), running.cpu, "s", "-");
            tokio::time::sleep(Duration::from_secs(5)).await;
            let resident = gauge::resident(running.process.id());
            #[allow(clippy::cast_precision_loss, reason = "bytes")]
            let each = resident as f64 / f64::from(monitors);
            figure(&format!("coordinator_resident_{monitors}"), each, "B/monitor", "<=4096");
            let mut running = running;
            if start == "second" {
                running.process.kill();
            } else {
                running.process.terminate();
                running.process.ended(Duration::from_secs(60)).await;
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "bytes")]
        let bytes = made.bytes() as f64;
        figure("store", bytes / f64::from(1 << 20), "MiB", "-");
        figure("load", gauge::load(), "-", "-");
    });
}

/// Writes blocks and roll-ups of whole days, and leaves the last minutes in open tails.
async fn fill(made: &Made, regions: usize, days: i64) {
    let store = made.store().await;
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
                    batch.write(Op::PutBlock(Block {
                        monitor: id,
                        slot,
                        region,
                        hour,
                        bytes: bytes.clone(),
                    }));
                }
            }
            for at in from..to {
                batch.write(Op::PutHour(Rollup { monitor: id, at, bytes: template.hour.clone() }));
            }
            for at in from * HOUR / DAY..=to * HOUR / DAY {
                batch.write(Op::PutDay(Rollup { monitor: id, at, bytes: template.day.clone() }));
            }
            // Each monitor has another hour for this, so the last hours of most are not folded yet.
            let unfolded = if to == end { i64::from(slot) % 4 } else { 0 };
            batch.write(Op::Fold(id, to - unfolded));
            if batch.ops.len() >= AT_ONCE {
                store.commit(std::mem::take(&mut batch)).await.expect("a commit");
            }
        }
    }
    store.commit(batch).await.expect("a commit");
    leave_open(made, &store, regions).await;
    store.close().await;
}

async fn leave_open(made: &Made, store: &Store, regions: usize) {
    let history = Arc::new(History::rebuild(coordinator::reader(store).as_ref()).expect("a history"));
    let used: RegionSet = Region::ALL.into_iter().take(regions).collect();
    let mut latencies = Latencies::new(9);
    let now = now_ms();
    for minute in (0..OPEN_MINUTES).rev() {
        let mut readings = Vec::new();
        for monitor in &made.monitors {
            for region in used.iter() {
                let offset = assign::offset_ms(assign::spread(monitor.id), INTERVAL_MS, used, region);
                let round = (now / MINUTE).unsigned_abs() - 1 - minute;
                let due = Timestamp::from_millis(assign::due_ms(offset, INTERVAL_MS, round));
                let latency_ms = Some(latencies.next(monitor.slot, region));
                let (slot, place) =
                    (monitor.slot, PlaceNo(u16::try_from(region.index()).expect("six regions")));
                readings.push(Reading { slot, region, place, round, due, word: Word::Passed, latency_ms });
            }
        }
        history.append(&readings, 0);
    }
    let windows = history::no_windows();
    while history.upkeep(store, Timestamp::from_millis(now), &windows).await.expect("upkeep") {}
}

/// One hour of a monitor, packed; every hour of every monitor is the same.
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
            let mut tail = Tail::new(hour);
            for minute in 0..60 {
                let due = Timestamp::from_millis(hour * HOUR + minute * MINUTE + 1_234);
                let round = (due.as_millis() / MINUTE).unsigned_abs();
                let place = PlaceNo(u16::try_from(region.index()).expect("six regions"));
                let latency_ms = Some(latencies.next(1, region));
                let sample = Sample { place, round, due, word: Word::Passed, latency_ms };
                tail.push(&sample).expect("a reading of that hour");
                of_hour.entry(region).or_default().add(&sample, Rules::default());
                of_day.entry(region).or_default().counts.add(&sample, Rules::default());
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
