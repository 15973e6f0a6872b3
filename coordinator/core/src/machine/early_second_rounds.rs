//! Early second rounds: if a region's first round is still pending when second rounds begin, its second round starts
//! too, and counts only once the first has failed. A black hole then costs one timeout, not two.

use crate::event::ProbeReason;
use crate::observation::RoundOutcome;
use crate::time::Timestamp;
use crate::vantage::Region;
use crate::verdict::{MIN_DISTANCE_SECOND_ROUND, RegionStatus};

use super::state::{NotStored, OpenRound};
use super::{MachineStep, MonitorMachine, PENDING_AFTER};

impl MonitorMachine {
    /// Start of the round that opened the present suspicion: the first failed one, or the first pending one that may
    /// turn out to be it.
    pub(super) fn suspected_since(&self) -> Option<Timestamp> {
        let waiting = self.state.rounds.iter().filter(|round| round.has_swept).map(|round| round.started).min();
        self.state.suspicion.as_ref().map(|suspicion| suspicion.began).or(waiting)
    }

    /// Time at which the next early second round is due.
    pub(super) fn early_second_rounds_at(&self) -> Option<Timestamp> {
        self.early_second_rounds().map(|(.., at)| at).min()
    }

    /// Requests the early second rounds that are due, each confirmed from its start. If no vantage is available, the
    /// region's second round follows the outcome of its first.
    pub(super) fn request_early_second_rounds(&mut self, step: &mut MachineStep<'_>) {
        let due: Vec<(usize, Region)> = self
            .early_second_rounds()
            .filter(|(.., at)| step.now >= *at)
            .map(|(index, region, _)| (index, region))
            .collect();
        for (index, region) in due {
            if let Some(first) = self.state.rounds.get_mut(index) {
                first.second_round_requested = NotStored(Some(step.now));
            }
            // If it could not be confirmed, it would be inconclusive.
            let is_wanted = !self.has_second_round(region) && !step.mesh.has_one_network();
            if is_wanted && self.request_round(region, ProbeReason::Second, step) {
                if let Some(second) = self.state.rounds.last_mut() {
                    second.provisional_for = Some(region);
                }
                self.confirm_early(region, step);
            }
        }
    }

    /// Validates a region's early second round just before its first round ends. It counts only if the first failed,
    /// and if it was itself inconclusive by now, another is to be run.
    pub(super) fn validate_early_second_round(
        &mut self,
        region: Region,
        first: RoundOutcome,
        step: &mut MachineStep<'_>,
    ) {
        let is_void = |round: &OpenRound| {
            first != RoundOutcome::Failed
                || matches!(round.held_outcome, Some(RoundOutcome::Unconfirmed | RoundOutcome::Inconclusive))
        };
        let found = |machine: &Self| {
            let rounds = machine.state.rounds.iter();
            rounds
                .enumerate()
                .find(|(_, round)| machine.is_early_second_round(round, region) && is_void(round))
                .map(|(index, _)| index)
        };
        while let Some(index) = found(self) {
            let round = self.state.rounds.remove(index);
            if let Some(round_outcome) = round.held_outcome {
                self.report_only(round, round_outcome, step);
            }
        }
    }

    /// Makes a region's early second round count, with the outcome it may already have, because its first round has
    /// failed.
    pub(super) fn release_early_second_round(&mut self, region: Region, step: &mut MachineStep<'_>) {
        self.release_provisional(|machine, round| machine.is_early_second_round(round, region), step);
    }

    fn has_second_round(&self, region: Region) -> bool {
        let is_second =
            |round: &OpenRound| round.reason == ProbeReason::Second && self.state_region(round.region) == region;
        self.state.rounds.iter().any(is_second)
    }

    /// Returns true if this is the early second round of that region.
    fn is_early_second_round(&self, round: &OpenRound, region: Region) -> bool {
        round.reason == ProbeReason::Second
            && round.provisional_for == Some(region)
            && self.state_region(round.region) == region
    }

    /// Rounds that are pending as the second rounds begin, each with its region and the due time of its second round:
    /// the same instant in every region. If a round becomes pending later, its second round follows its outcome.
    fn early_second_rounds(&self) -> impl Iterator<Item = (usize, Region, Timestamp)> {
        let together = self.suspected_since().map(|since| since + self.second_round_delay());
        self.state.rounds.iter().enumerate().filter_map(move |(index, round)| {
            let together = together?;
            let region = self.state_region(round.region);
            let region_state = self.state.regions.get(region.index())?;
            let waits = round.pending
                && round.outcome.is_none()
                && round.retry_at.is_none()
                && round.reason != ProbeReason::Second
                && round.provisional_for.is_none()
                && round.second_round_requested.0.is_none()
                && round.started + PENDING_AFTER <= together;
            // If the region has newer rounds, this one is history.
            let is_open = region_state.status != RegionStatus::Down
                && region_state.first_failure().is_none()
                && region_state.newest_started.is_none_or(|newest| newest <= round.started);
            (waits && is_open && !self.has_second_round(region))
                .then(|| (index, region, together.max(round.started + MIN_DISTANCE_SECOND_ROUND)))
        })
    }
}
