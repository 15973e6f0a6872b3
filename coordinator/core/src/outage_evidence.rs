//! Evidence of one outage, as shown to anyone who has its link.

use std::collections::BTreeMap;

use crate::acknowledgement::Acknowledgement;
use crate::event::RoundReport;
use crate::machine::MachineView;
use crate::monitor::Monitor;
use crate::observation::Failure;
use crate::page::Page;
use crate::time::Timestamp;
use crate::vantage::{RegionSet, VantageNo};

/// Evidence of an outage, with its present state.
#[derive(Debug, Clone)]
pub struct OutageEvidence {
    /// The page of the monitor.
    pub page: Page,
    /// The monitor, as it is now.
    pub monitor: Monitor,
    /// Start of the outage.
    pub started_at: Timestamp,
    /// Reason of the outage, if known.
    pub reason: Option<Failure>,
    /// Regions it was down in at its start, while others saw it up; none if it was down everywhere.
    pub down_from: Option<RegionSet>,
    /// Rounds that led to it; none if their event is no longer stored.
    pub rounds: Vec<RoundReport>,
    /// Labels of the networks of the vantages in the rounds; vantages that no longer exist are missing.
    pub networks: BTreeMap<VantageNo, String>,
    /// Progress of the outage: lasting or over, and since when.
    pub progress: OutageProgress,
    /// Time of the reading.
    pub now: Timestamp,
    /// Time from which on the link is invalid.
    pub expires_at: Timestamp,
}

impl OutageEvidence {
    /// Returns the acknowledgement of this outage, if it is the newest acknowledged one.
    pub fn acknowledgement(&self) -> Option<&Acknowledgement> {
        self.monitor.acknowledgement_of(self.started_at)
    }
}

/// Progress of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageProgress {
    /// It lasts.
    Lasting,
    /// It is over, since that time; none if it ended without a recovery, by a pause.
    Over(Option<Timestamp>),
    /// The monitor's state can't be read at the moment.
    Unknown,
}

impl OutageProgress {
    /// Decides the progress of the outage that began at `started_at`, by its recovery in the journal, if there is one,
    /// and by the monitor's state.
    pub fn new(started_at: Timestamp, recovered_at: Option<Timestamp>, view: &MachineView) -> Self {
        match (recovered_at, view.outage_since, view.since) {
            (Some(at), ..) => Self::Over(Some(at)),
            (None, Some(since), _) if since == started_at => Self::Lasting,
            // The driver did not answer, or has just started.
            (None, None, None) => Self::Unknown,
            (None, ..) => Self::Over(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_over_by_its_recovery_or_by_the_state_of_the_monitor() {
        let at = Timestamp::from_millis;
        let view = |outage_since, since| MachineView { outage_since, since, ..MachineView::default() };
        let lasting = view(Some(at(10)), Some(at(10)));
        for (recovered_at, view, expected) in [
            (None, lasting.clone(), OutageProgress::Lasting),
            // An unknown status does not end it.
            (None, view(Some(at(10)), Some(at(15))), OutageProgress::Lasting),
            (Some(at(20)), lasting, OutageProgress::Over(Some(at(20)))),
            (Some(at(20)), MachineView::default(), OutageProgress::Over(Some(at(20)))),
            (None, view(Some(at(30)), Some(at(30))), OutageProgress::Over(None)),
            (None, view(None, Some(at(20))), OutageProgress::Over(None)),
            (None, MachineView::default(), OutageProgress::Unknown),
        ] {
            assert_eq!(OutageProgress::new(at(10), recovered_at, &view), expected, "{view:?}");
        }
    }
}
