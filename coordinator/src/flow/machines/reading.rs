//! Readings of finished rounds: the stored form, with the monitor's slot and the due time.

use parallax_core::assign;
use parallax_core::machine::Finished;
use parallax_core::observation::Reading;
use parallax_core::place::{Mesh, RegionSet};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::watch::Watch;

/// Milliseconds that a round may begin off its due time.
const OFF: i64 = MINUTE;

/// Builds the reading of a finished round. A round that began far from its number's due time belongs to an earlier
/// schedule, before the monitor's domain, its pinned region or the mesh changed; its due time is its start.
pub(super) fn reading(slot: u32, finished: &Finished, spread: u64, watch: &Watch, mesh: &Mesh) -> Reading {
    let regions = if watch.kind.is_regional() {
        assign::regions_in_use(watch.kind, watch.pinned, mesh)
    } else {
        RegionSet::NONE
    };
    let offset = assign::offset_ms(spread, watch.interval_ms, regions, finished.region);
    let due = Timestamp::from_millis(assign::due_ms(offset, watch.interval_ms, finished.round));
    Reading {
        slot,
        region: finished.region,
        place: finished.place,
        round: finished.round,
        due: if finished.started.since(due).abs() > OFF { finished.started } else { due },
        word: finished.word,
        latency_ms: finished.latency_ms,
    }
}
