//! Readings of finished rounds: the stored form, with the monitor's slot and the due time.

use parallax_core::assign;
use parallax_core::effective::{EffectiveSettings, regions_in_use};
use parallax_core::machine::FinishedRound;
use parallax_core::observation::Reading;
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::vantage::{Mesh, RegionSet};

/// Milliseconds that a round may begin off its due time.
const MAX_DRIFT: i64 = MINUTE;

/// Builds the reading of a finished round. A round that began far from its number's due time belongs to an earlier
/// schedule, before the monitor's domain, its pinned region or the mesh changed; its due time is its start.
pub(super) fn reading(
    slot: u32,
    finished: &FinishedRound,
    spread: u64,
    settings: &EffectiveSettings,
    mesh: &Mesh,
) -> Reading {
    let regions = if settings.kind.is_regional() {
        regions_in_use(settings.kind, settings.pinned, mesh)
    } else {
        RegionSet::NONE
    };
    let offset = assign::offset_ms(spread, settings.interval_ms, regions, finished.region);
    let due = Timestamp::from_millis(assign::due_ms(offset, settings.interval_ms, finished.round));
    Reading {
        slot,
        region: finished.region,
        vantage: finished.vantage,
        round: finished.round,
        due: if finished.started.since(due).abs() > MAX_DRIFT { finished.started } else { due },
        outcome: finished.outcome,
        latency_ms: finished.latency_ms,
    }
}
