//! A finished round as history keeps it: with its monitor's number, and the moment it was due.

use parallax_core::assign;
use parallax_core::machine::Finished;
use parallax_core::observation::Reading;
use parallax_core::place::{Mesh, RegionSet};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::watch::Watch;

/// Milliseconds that a round may begin off the moment it was due.
const OFF: i64 = MINUTE;

/// The reading of a finished round. A round that began far from where its number stands in the schedule was of another
/// one, before the monitor's domain, its pin or the mesh changed: then it was due when it began.
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
