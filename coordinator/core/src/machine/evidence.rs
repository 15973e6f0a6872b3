//! Evidence of an outage: for each region, the first failed round of its run of two and the newest failed one, for as
//! long as the region is down or may go down.
//!
//! A went-down alert can be sent long after its rounds (at the end of a window, or when more regions count), so they
//! are stored while the region is down. In a large outage every monitor stores them, so they are packed.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::boxed_if_set::BoxedIfSet;
use crate::event::{ProbeReason, RoundReport};
use crate::observation::ProbeOutcome;
use crate::vantage::{Region, RegionSet, VantageNo};
use crate::verdict::RegionStatus;

use super::{MachineStep, MonitorMachine};

/// Maximum number of rounds stored for one region.
const MAX_PER_REGION: usize = 2;

/// Reports of failed rounds, encoded as in the stored record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PackedReports(BoxedIfSet<Vec<u8>>);

impl PackedReports {
    /// Every report, in the order in which the rounds ended.
    pub(super) fn reports(&self) -> Vec<RoundReport> {
        if self.0.is_empty() { Vec::new() } else { postcard::from_bytes(&self.0).unwrap_or_default() }
    }

    fn pack(reports: &[RoundReport]) -> Self {
        if reports.is_empty() {
            return Self::default();
        }
        let mut bytes = postcard::to_allocvec(reports).unwrap_or_default();
        bytes.shrink_to_fit();
        Self(BoxedIfSet::from(bytes))
    }

    /// Adds a report; replaces the region's newest if it already has two.
    fn push(&mut self, report: RoundReport, is_of_its_region: impl Fn(&RoundReport) -> bool) {
        let mut reports = self.reports();
        if reports.iter().filter(|report| is_of_its_region(report)).count() >= MAX_PER_REGION
            && let Some(newest) = reports.iter().rposition(&is_of_its_region)
        {
            reports.remove(newest);
        }
        reports.push(report);
        *self = Self::pack(&reports);
    }

    fn remove(&mut self, which: impl Fn(&RoundReport) -> bool) {
        if self.0.is_empty() {
            return;
        }
        let mut reports = self.reports();
        reports.retain(|report| !which(report));
        *self = Self::pack(&reports);
    }
}

impl Serialize for PackedReports {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.reports().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PackedReports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|reports| Self::pack(&reports))
    }
}

impl MonitorMachine {
    /// Stores a failed round that may explain an outage. A round that begins a run of two replaces those stored for
    /// the region before.
    pub(super) fn store_evidence(&mut self, report: RoundReport, begins_run: bool) {
        let region = self.state_region(report.region);
        if begins_run {
            self.remove_evidence(region);
        }
        let regional = self.settings.kind.is_regional();
        self.state.evidence.push(report, |report| !regional || report.region == region);
    }

    /// Removes the evidence of a region that is no longer down or about to go down.
    pub(super) fn remove_evidence(&mut self, region: Region) {
        let regional = self.settings.kind.is_regional();
        self.state.evidence.remove(|report| !regional || report.region == region);
    }

    /// Vantages that saw the region's first round fail, or are waiting for its response: they run its second round,
    /// since a vantage that sees every site as up would end every suspicion. If there are only two networks, both
    /// take turns.
    pub(super) fn seen_failing_by(&self, region: Region, step: &MachineStep<'_>) -> Vec<VantageNo> {
        if !step.mesh.has_three_networks() {
            return Vec::new();
        }
        let of_region = |of: Region| self.state_region(of) == self.state_region(region);
        let waiting = self.state.rounds.iter().filter(|round| {
            of_region(round.region)
                && round.reason != ProbeReason::Second
                && round.vantage != VantageNo(0)
                && !round.has_passed()
        });
        let waiting = waiting.flat_map(|round| {
            let passed = round.contradicted_by();
            let others = round.confirmation.tried.iter().copied().filter(move |vantage| Some(*vantage) != passed);
            others.chain([round.vantage])
        });
        let reports = self.state.evidence.reports();
        let failed = reports.iter().filter(|report| of_region(report.region));
        let failed = failed.flat_map(|report| {
            let second = report.second.as_ref().filter(|(_, seen)| matches!(seen, ProbeOutcome::Failed(..)));
            second.map(|(vantage, _)| *vantage).into_iter().chain([report.first_vantage])
        });
        waiting.chain(failed).collect()
    }

    /// Rounds of the counted regions that are down or suspected.
    pub(super) fn evidence(&self, step: &MachineStep<'_>) -> Vec<RoundReport> {
        let counted = self.settings.counted_regions(step.mesh);
        let suspecting = self.state.suspicion.as_ref().map_or(RegionSet::NONE, |suspicion| suspicion.failing);
        let mut reports = self.state.evidence.reports();
        reports.retain(|report| {
            let region = self.state_region(report.region);
            let region_state = self.state.regions.get(region.index());
            counted.contains(region)
                && (suspecting.contains(region) || region_state.is_some_and(|state| state.status == RegionStatus::Down))
        });
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Failure, Measurements, RoundOutcome};
    use crate::time::Timestamp;

    fn report(region: Region, second: i64) -> RoundReport {
        RoundReport {
            region,
            reason: ProbeReason::Scheduled,
            round: Some(7),
            started: Timestamp::from_millis(second * 1_000),
            round_outcome: RoundOutcome::Failed,
            first_vantage: VantageNo(1),
            first_outcome: ProbeOutcome::Failed(Measurements::default(), Failure::Refused),
            second: None,
            third: None,
        }
    }

    #[test]
    fn a_region_keeps_its_first_and_its_newest() {
        let mut evidence = PackedReports::default();
        for second in 0..9 {
            for region in Region::ALL {
                evidence.push(report(region, second), |report| report.region == region);
            }
        }
        let of = |evidence: &PackedReports, region| {
            let reports = evidence.reports().into_iter().filter(|report| report.region == region);
            reports.map(|report| report.started.as_millis()).collect::<Vec<_>>()
        };
        assert!(Region::ALL.into_iter().all(|region| of(&evidence, region) == [0, 8_000]));
        evidence.remove(|report| report.region == Region::Asia);
        assert_eq!((of(&evidence, Region::Asia).len(), evidence.reports().len()), (0, 10));
        evidence.remove(|_| true);
        assert_eq!(evidence, PackedReports::default());
    }

    #[test]
    fn it_is_written_as_a_list_of_reports() {
        let mut evidence = PackedReports::default();
        evidence.push(report(Region::Asia, 1), |_| true);
        let written = postcard::to_allocvec(&evidence).unwrap();
        assert_eq!(written, postcard::to_allocvec(&[report(Region::Asia, 1)].as_slice()).unwrap());
        assert_eq!(postcard::from_bytes::<PackedReports>(&written).unwrap(), evidence);
    }
}
