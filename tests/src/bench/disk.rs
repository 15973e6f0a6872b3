//! Benchmark of the history's size: results of a day or more through the real store, sealed as time passes.

use std::sync::Arc;
use std::time::Duration;

use parallax_core::assign;
use parallax_core::observation::{Reading, RoundOutcome};
use parallax_core::plan::Plan;
use parallax_core::time::{HOUR, SECOND, Timestamp};
use parallax_core::vantage::{Region, RegionSet, VantageNo};
use parallax_engine::history::{self, History};
use parallax_store::disk::DiskOptions;
use parallax_store::{Batch, Store};

use super::coordinator::{self, Latencies};
use super::{figure, process_usage};

const INTERVAL_MS: u32 = 60_000;
/// Simulated time that one commit covers, in ms.
const COMMIT_EVERY: i64 = 10 * SECOND;
/// Hours after the last result until everything is sealed.
const SETTLE_HOURS: i64 = 3;

/// Overhead of a block and of a roll-up after compaction, in bytes: three of its own, and its share of the key and
/// record of eight hours in six regions, or of a day.
const BLOCK_AROUND: usize = 3 + 1;
const ROLLUP_AROUND: usize = 3 + 2;

/// Writes results of `monitors` monitors in six regions, one a minute, for `hours` hours. The engine frees file space
/// by the clock, and a simulated day takes seconds: `pace_ms` is the pause after each commit.
pub(super) fn disk(monitors: u32, hours: u32, pace_ms: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let made = coordinator::create_installation(monitors, 6, Plan::Hobby).await;
        let folder = made.folder.path().join("data").join("store");
        let options = DiskOptions { ballast: 0, ..DiskOptions::default() };
        let store = tokio::task::spawn_blocking(move || Store::on_disk(&folder, options));
        let store = store.await.expect("no panic").expect("the store opens");
        let history = Arc::new(History::rebuild(coordinator::reader(&store).as_ref()).expect("a history"));
        let empty = made.store_bytes();
        let mut due: Vec<(u32, u32, Region)> = Vec::new();
        for monitor in &made.monitors {
            for region in Region::ALL {
                let offset = assign::offset_ms(assign::monitor_hash(monitor.id), INTERVAL_MS, RegionSet::ALL, region);
                due.push((offset, monitor.slot, region));
            }
        }
        due.sort_unstable();
        let mut latencies = Latencies::new(7);
        // 1 January 2026, on a full hour.
        let begin = 490_896 * HOUR;
        let end = begin + i64::from(hours) * HOUR;
        let windows = history::no_windows();
        let mut results = 0;
        let mut at = begin;
        while at < end + SETTLE_HOURS * HOUR {
            let slice = at.rem_euclid(i64::from(INTERVAL_MS));
            let falls = |offset: u32| (slice..slice + COMMIT_EVERY).contains(&i64::from(offset));
            let mut readings: Vec<Reading> = Vec::new();
            for &(offset, slot, region) in due.iter().filter(|(offset, ..)| at < end && falls(*offset)) {
                let latency_ms = Some(latencies.next(slot, region));
                let round = (at / i64::from(INTERVAL_MS)).unsigned_abs();
                let due = Timestamp::from_millis(assign::due_ms(offset, INTERVAL_MS, round));
                let place = VantageNo(u16::try_from(region.index()).expect("six regions"));
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
            results += readings.len();
            if !readings.is_empty() {
                let batch = Batch { readings: readings.clone(), ..Batch::new() };
                let entry = store.commit(batch).await.expect("a commit").readings.expect("an entry");
                assert_eq!(history.append(&readings, entry), 0, "every reading is taken in");
            }
            at += COMMIT_EVERY;
            let now = Timestamp::from_millis(at);
            while history.upkeep(&store, now, &windows).await.expect("upkeep") {}
            if pace_ms > 0 {
                tokio::time::sleep(Duration::from_millis(u64::from(pace_ms))).await;
            }
        }
        let (hours, mut packed, mut live) = (begin / HOUR..end / HOUR, 0, 0);
        for monitor in &made.monitors {
            for region in Region::ALL {
                let blocks = store.reader().blocks(monitor.id, region, hours.clone()).expect("blocks");
                packed += blocks.iter().map(|block| block.bytes.len()).sum::<usize>();
                live += blocks.len() * BLOCK_AROUND;
            }
            let of_hours = store.reader().hours(monitor.id, hours.clone()).expect("roll-ups");
            live += of_hours.iter().map(|rollup| rollup.bytes.len() + ROLLUP_AROUND).sum::<usize>();
        }
        store.close().await;
        let bytes = made.store_bytes().saturating_sub(empty);
        #[allow(clippy::cast_precision_loss, reason = "counts")]
        let (results, packed, live, bytes) = (results as f64, packed as f64, (packed + live) as f64, bytes as f64);
        figure("history_results", results, "results", "-");
        figure("history_packed", packed / results, "B/result", "<=1.1");
        figure("history_records", live / results, "B/result", "-");
        figure("history_disk_settled", bytes / results, "B/result", "<=3");
        figure("load", process_usage::load(), "-", "-");
    });
}
