//! Early second rounds: if a region's first round is still pending when second rounds begin, its second round starts
//! too, and counts only once the first has failed. A black hole then costs one timeout, not two.

use crate::event::Reason;
use crate::observation::Word;
use crate::place::Region;
use crate::time::Timestamp;
use crate::verdict::{APART_SECOND, Standing};

use super::state::{Round, Unkept};
use super::{Machine, PENDING_AFTER, Step};

impl Machine {
    /// Start of the round that opened the present suspicion: the first failed one, or the first pending one that may
    /// turn out to be it.
    pub(super) fn suspected_since(&self) -> Option<Timestamp> {
        let waiting = self.state.rounds.iter().filter(|round| round.swept).map(|round| round.started).min();
        self.state.suspicion.as_ref().map(|suspicion| suspicion.began).or(waiting)
    }

    /// Time at which the next early second round is due.
    pub(super) fn early_seconds_at(&self) -> Option<Timestamp> {
        self.early_seconds().map(|(.., at)| at).min()
    }

    /// Requests the early second rounds that are due, each confirmed from its start. If no vantage is available, the
    /// region's second round follows the outcome of its first.
    pub(super) fn ask_early_seconds(&mut self, step: &mut Step<'_>) {
        let due: Vec<(usize, Region)> = self
            .early_seconds()
            .filter(|(.., at)| step.now >= *at)
            .map(|(index, region, _)| (index, region))
            .collect();
        for (index, region) in due {
            if let Some(first) = self.state.rounds.get_mut(index) {
                first.seconded = Unkept(Some(step.now));
            }
            // If it could not be confirmed, it would be inconclusive.
            let is_wanted = !self.has_second_round(region) && !step.mesh.has_one_network();
            if is_wanted && self.ask_round(region, Reason::Second, step) {
                if let Some(second) = self.state.rounds.last_mut() {
                    second.provisional = Some(region);
                }
                self.confirm_early(region, step);
            }
        }
    }

    /// Validates a region's early second round just before its first round ends. It counts only if the first failed,
    /// and if it was itself inconclusive by now, another is to be run.
    pub(super) fn judge_early_second(&mut self, region: Region, first: Word, step: &mut Step<'_>) {
        let is_void = |round: &Round| {
            first != Word::Failed || matches!(round.held, Some(Word::Unconfirmed | Word::Inconclusive))
        };
        let found = |machine: &Self| {
            let rounds = machine.state.rounds.iter();
            rounds
                .enumerate()
                .find(|(_, round)| machine.is_early_second(round, region) && is_void(round))
                .map(|(index, _)| index)
        };
        while let Some(index) = found(self) {
            let round = self.state.rounds.remove(index);
            if let Some(word) = round.held {
                self.tell_only(round, word, step);
            }
        }
    }

    /// Makes a region's early second round count, with the outcome it may already have, because its first round has
    /// failed.
    pub(super) fn release_early_second(&mut self, region: Region, step: &mut Step<'_>) {
        self.release(|machine, round| machine.is_early_second(round, region), step);
    }

    fn has_second_round(&self, region: Region) -> bool {
        let is_second =
            |round: &Round| round.reason == Reason::Second && self.lane_region(round.region) == region;
        self.state.rounds.iter().any(is_second)
    }

    /// Returns true if this is the early second round of that region.
    fn is_early_second(&self, round: &Round, region: Region) -> bool {
        round.reason == Reason::Second
            && round.provisional == Some(region)
            && self.lane_region(round.region) == region
    }

    /// Rounds that are pending as the second rounds begin, each with its region and the due time of its second round:
    /// the same instant in every region. If a round becomes pending later, its second round follows its outcome.
    fn early_seconds(&self) -> impl Iterator<Item = (usize, Region, Timestamp)> {
        let together = self.suspected_since().map(|since| since + self.second_after());
        self.state.rounds.iter().enumerate().filter_map(move |(index, round)| {
            let together = together?;
            let region = self.lane_region(round.region);
            let lane = self.state.lanes.get(region.index())?;
            let waits = round.pending
                && round.outcome.is_none()
                && round.parked.is_none()
                && round.reason != Reason::Second
                && round.provisional.is_none()
                && round.seconded.0.is_none()
                && round.started + PENDING_AFTER <= together;
            // If the region has newer rounds, this one is history.
            let is_open = lane.standing != Standing::Down
                && lane.first_failed().is_none()
                && lane.newest.is_none_or(|newest| newest <= round.started);
            (waits && is_open && !self.has_second_round(region))
                .then(|| (index, region, together.max(round.started + APART_SECOND)))
        })
    }
}
