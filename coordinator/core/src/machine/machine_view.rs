//! View of a monitor for users: status, since when, affected regions, and the last check.

use serde::{Deserialize, Serialize};

use crate::downtime::Downtime;
use crate::event::MonitorStatus;
use crate::flapping::Flapping;
use crate::observation::{Failure, Measurements, Observation, ProbeOutcome};
use crate::time::Timestamp;
use crate::uptime::TimeSpan;
use crate::vantage::{Mesh, RegionSet};

/// State of a monitor as shown by the API and the pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineView {
    /// Current status.
    pub status: MonitorStatus,
    /// Start of the status; none before the first change.
    pub since: Option<Timestamp>,
    /// Regions it is down in, while others see it up.
    pub down_from: Option<RegionSet>,
    /// Reason it is down: how the first failed round of the outage ended. None while it is not down.
    pub down_reason: Option<Failure>,
    /// Regions it is slow in, while other counted regions are not.
    pub slow_from: Option<RegionSet>,
    /// Start of the open outage. An unknown status does not end an outage.
    pub outage_since: Option<Timestamp>,
    /// Regions that see it up by recent rounds, whether they count or not.
    pub seen_up: RegionSet,
    /// Regions that see it down by recent rounds; without those whose rounds are out of date.
    pub seen_down: RegionSet,
    /// Newest finished scheduled round of a counted region; for a heartbeat the last ping.
    pub last_check: Option<LastCheck>,
    /// Certificate and domain: expiry date from the newest check.
    pub expires_at: Option<Timestamp>,
    /// Heartbeat: time of the last ping.
    pub last_ping_at: Option<Timestamp>,
    /// Heartbeat: duration of the newest measured run, in milliseconds.
    pub last_run_ms: Option<u64>,
    /// Heartbeat and component: downtime, from which its uptime is computed.
    pub downtime: Option<Downtime>,
    /// Pauses as far as they are known, oldest first.
    pub pauses: Vec<TimeSpan>,
    /// Set if the newest round could not be judged, for an external reason that the last check gives.
    pub unjudged: bool,
    /// Set if no second network can confirm this monitor's failures.
    pub unconfirmable: bool,
    /// Changes so far, while it flaps.
    pub flapping: Option<Flapping>,
    /// Counted regions whose newest round failed unconfirmed, for want of a second network: that does not make it
    /// down.
    pub unconfirmed_from: RegionSet,
    /// Time since which a counted region's rounds have all been disputed; none under five minutes.
    pub disputed_since: Option<Timestamp>,
}

impl MachineView {
    /// Compares an observation of a quarantined vantage with the status: true if they agree; none if that cannot be
    /// decided.
    pub fn agrees(&self, seen: &Observation, mesh: &Mesh) -> Option<bool> {
        let down = match self.status {
            MonitorStatus::Unknown => return None,
            MonitorStatus::Up | MonitorStatus::Slow => false,
            MonitorStatus::Down if self.down_from.is_none_or(|from| from.contains(seen.region)) => true,
            // If no other vantage checks from its region, that region is up only by its own outcome.
            MonitorStatus::Down if mesh.available().all(|vantage| vantage.region != seen.region) => return None,
            MonitorStatus::Down => false,
        };
        match seen.outcome {
            ProbeOutcome::Passed(_) => Some(!down),
            ProbeOutcome::Failed(..) => Some(down),
            ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => None,
        }
    }
}

/// Newest finished check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCheck {
    /// End of the check.
    pub at: Timestamp,
    /// Set if it passed.
    pub ok: bool,
    /// Measurements; without the latency of a disputed round.
    pub facts: Measurements,
    /// Reason of the failure, if it failed.
    pub error: Option<Failure>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use crate::vantage::{NetworkNo, Region, Vantage, VantageNo};

    fn seen(region: Region, outcome: ProbeOutcome) -> Observation {
        let at = Timestamp::from_millis(0);
        let (vantage, network) = (VantageNo(1), NetworkNo(1));
        Observation { revision: 1, region, vantage, network, round: Some(1), started: at, ended: at, outcome }
    }

    #[test]
    fn a_quarantined_vantage_does_not_agree_with_its_own_outcome() {
        let vantage = |no, region| {
            let (no, network) = (VantageNo(no), NetworkNo(no));
            Vantage { no, region, network, connected: true, quarantined: no == VantageNo(1), unfit: false }
        };
        let passed = seen(Region::Asia, ProbeOutcome::Passed(Measurements::default()));
        let failed = seen(Region::Asia, ProbeOutcome::Failed(Measurements::default(), Failure::Refused));
        let alone = Mesh::new([vantage(1, Region::Asia), vantage(2, Region::Europe)]);
        let beside = Mesh::new([vantage(1, Region::Asia), vantage(2, Region::Asia)]);
        let view = |from: &[Region]| {
            let down_from = (!from.is_empty()).then(|| from.iter().copied().collect());
            MachineView { status: MonitorStatus::Down, down_from, ..MachineView::default() }
        };
        // Up in Asia by its own outcome only, since no other vantage checks from there.
        assert_eq!(view(&[Region::Europe]).agrees(&passed, &alone), None);
        assert_eq!(view(&[Region::Europe]).agrees(&passed, &beside), Some(true));
        for down in [view(&[]), view(&[Region::Asia])] {
            assert_eq!((down.agrees(&passed, &alone), down.agrees(&failed, &alone)), (Some(false), Some(true)));
        }
        let up = MachineView { status: MonitorStatus::Up, ..MachineView::default() };
        assert_eq!((up.agrees(&passed, &alone), up.agrees(&failed, &alone)), (Some(true), Some(false)));
        assert_eq!(MachineView::default().agrees(&passed, &alone), None);
    }
}
