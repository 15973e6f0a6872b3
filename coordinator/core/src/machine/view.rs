//! What a person sees of a machine: status, since when, from where, and the last check.

use serde::{Deserialize, Serialize};

use crate::downtime::Downtime;
use crate::event::Status;
use crate::flapping::Flapping;
use crate::observation::{Facts, Failure, Observation, Outcome};
use crate::place::{Mesh, RegionSet};
use crate::time::Timestamp;
use crate::uptime::Span;

/// A monitor's state as the API and the pages show it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Its status.
    pub status: Status,
    /// Since when; none before the first change.
    pub since: Option<Timestamp>,
    /// Regions it is down from while others see it up.
    pub down_from: Option<RegionSet>,
    /// Why it is down: how the first failed round of the outage ended. None while it is not down.
    pub down_reason: Option<Failure>,
    /// Regions it is slow from while others whose response times count are not.
    pub slow_from: Option<RegionSet>,
    /// When the outage began that is on: nobody may see it at present, which does not end it.
    pub outage_since: Option<Timestamp>,
    /// Regions that see it up, by what they saw lately, whether they count or not.
    pub seen_up: RegionSet,
    /// Regions that see it down; none of those that it is only remembered to be down from.
    pub seen_down: RegionSet,
    /// The newest finished scheduled round of a counted region; heartbeat: the last ping.
    pub last_check: Option<LastCheck>,
    /// Certificate and domain: the expiry that the newest check read.
    pub expires_at: Option<Timestamp>,
    /// Heartbeat: when the last ping came.
    pub last_ping_at: Option<Timestamp>,
    /// Heartbeat: how long the newest measured run took, in milliseconds.
    pub last_run_ms: Option<u64>,
    /// Heartbeat and component: when it was down, which its uptime is worked out from.
    pub downtime: Option<Downtime>,
    /// When it was paused, as far as that is known, oldest first.
    pub pauses: Vec<Span>,
    /// The newest round could not be judged, for a reason on the other side, which the last check gives.
    pub unjudged: bool,
    /// No second network can confirm this monitor's failures.
    pub unconfirmable: bool,
    /// Its changes to and fro, while it flaps.
    pub flapping: Option<Flapping>,
    /// Counted regions whose newest round failed without a second network to confirm it: it is not called down for that.
    pub unconfirmed_from: RegionSet,
    /// Since when a counted region's rounds have all been disputed; none under five minutes.
    pub disputed_since: Option<Timestamp>,
}

impl View {
    /// Compares what a place in quarantine saw with what the others say: true where it agrees, none where that can't be
    /// told.
    pub fn agrees(&self, seen: &Observation, mesh: &Mesh) -> Option<bool> {
        let down = match self.status {
            Status::Unknown => return None,
            Status::Up | Status::Slow => false,
            Status::Down if self.down_from.is_none_or(|from| from.contains(seen.region)) => true,
            // Where nobody else looks from its region, that region is up by its own word.
            Status::Down if mesh.fit().all(|place| place.region != seen.region) => return None,
            Status::Down => false,
        };
        match seen.outcome {
            Outcome::Passed(_) => Some(!down),
            Outcome::Failed(..) => Some(down),
            Outcome::Inconclusive(_) | Outcome::Pending => None,
        }
    }
}

/// The newest finished check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCheck {
    /// When it ended.
    pub at: Timestamp,
    /// Whether it passed.
    pub ok: bool,
    /// What was measured; the latency of a disputed round is left out.
    pub facts: Facts,
    /// Why it failed, when it did.
    pub error: Option<Failure>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{NetworkNo, Place, PlaceNo, Region};
    use crate::time::Timestamp;

    fn seen(region: Region, outcome: Outcome) -> Observation {
        let at = Timestamp::from_millis(0);
        let (place, network) = (PlaceNo(1), NetworkNo(1));
        Observation { revision: 1, region, place, network, round: Some(1), started: at, ended: at, outcome }
    }

    #[test]
    fn a_place_in_quarantine_does_not_agree_with_its_own_word() {
        let place = |no, region| {
            let (no, network) = (PlaceNo(no), NetworkNo(no));
            Place { no, region, network, connected: true, quarantined: no == PlaceNo(1), unfit: false }
        };
        let passed = seen(Region::Asia, Outcome::Passed(Facts::default()));
        let failed = seen(Region::Asia, Outcome::Failed(Facts::default(), Failure::Refused));
        let alone = Mesh::new([place(1, Region::Asia), place(2, Region::Europe)]);
        let beside = Mesh::new([place(1, Region::Asia), place(2, Region::Asia)]);
        let view = |from: &[Region]| {
            let down_from = (!from.is_empty()).then(|| from.iter().copied().collect());
            View { status: Status::Down, down_from, ..View::default() }
        };
        // Up from Asia by its own word, since nobody else looks from there.
        assert_eq!(view(&[Region::Europe]).agrees(&passed, &alone), None);
        assert_eq!(view(&[Region::Europe]).agrees(&passed, &beside), Some(true));
        for down in [view(&[]), view(&[Region::Asia])] {
            assert_eq!(
                (down.agrees(&passed, &alone), down.agrees(&failed, &alone)),
                (Some(false), Some(true))
            );
        }
        let up = View { status: Status::Up, ..View::default() };
        assert_eq!((up.agrees(&passed, &alone), up.agrees(&failed, &alone)), (Some(true), Some(false)));
        assert_eq!(View::default().agrees(&passed, &alone), None);
    }
}
