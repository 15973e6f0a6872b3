//! Suspicion: other regions are checked at once, second rounds begin together, and recoveries are verified the same
//! way.

use crate::check::CheckKind;
use crate::confirmation::RESPONSE_TIMEOUT;
use crate::event::ProbeReason;
use crate::observation::RoundOutcome;
use crate::time::{HOUR, MINUTE, SECOND, Timestamp};
use crate::vantage::{Region, RegionSet};
use crate::verdict::{MIN_DISTANCE_SECOND_ROUND, RegionState, RegionStatus, RegionTransition};

use super::resume::RETRY_EVERY;
use super::state::{OpenRound, Suspicion};
use super::{MachineStep, MonitorMachine};

/// Milliseconds from the first failed round of a suspicion to the second round.
const SECOND_ROUND_DELAY: i64 = 5 * SECOND;
/// Milliseconds after a recovery during which the next one does not trigger a re-check of down regions.
const RECOVERY_SWEEP_PAUSE: i64 = 10 * MINUTE;

impl MonitorMachine {
    /// Adds a region that saw a failed round to the suspicion, or opens one with a sweep.
    pub(super) fn add_suspicion(&mut self, round: &OpenRound, region: Region, step: &mut MachineStep<'_>) {
        let counted = self.settings.counted_regions(step.mesh).contains(region);
        let opens = self.state.suspicion.is_none();
        if opens {
            if !counted {
                return;
            }
            let failing = RegionSet::NONE;
            self.state.suspicion = Some(Box::new(Suspicion {
                began: round.started,
                failing,
                second_due: failing,
                second_not_before: None,
            }));
        }
        let first = self.state.regions.get(region.index()).and_then(RegionState::first_failure);
        let starts_run = first.is_some_and(|first| first.started == round.started);
        if let Some(suspicion) = &mut self.state.suspicion {
            suspicion.failing.insert(region);
            if round.reason != ProbeReason::Second || starts_run {
                suspicion.second_due.insert(region);
            }
        }
        if opens && round.reason != ProbeReason::Sweep {
            self.sweep(region, false, step);
        }
        self.request_second_rounds(step);
    }

    /// Removes a region from the suspicion because it passed, was disputed, or is down.
    pub(super) fn clear_suspicion(&mut self, region: Region, round_outcome: RoundOutcome, turn: RegionTransition) {
        let Some(suspicion) = &mut self.state.suspicion else { return };
        if matches!(round_outcome, RoundOutcome::Passed | RoundOutcome::Disputed) || turn == RegionTransition::WentDown
        {
            suspicion.failing.remove(region);
            suspicion.second_due.remove(region);
        }
    }

    /// Removes a region from the suspicion because it has no status any more.
    pub(super) fn remove_from_suspicion(&mut self, region: Region) {
        if let Some(suspicion) = &mut self.state.suspicion {
            suspicion.failing.remove(region);
            suspicion.second_due.remove(region);
        }
    }

    /// Closes a suspicion without regions and without running rounds.
    pub(super) fn close_suspicion(&mut self) {
        let running =
            self.state.rounds.iter().any(|round| matches!(round.reason, ProbeReason::Sweep | ProbeReason::Second));
        let over = self.state.suspicion.as_ref().is_some_and(|suspicion| suspicion.failing.is_empty());
        if over && !running {
            self.state.suspicion = None;
            self.changed = true;
        }
    }

    /// Sweep: requests a round from every other region now. A region is skipped if its running or newest round began
    /// no earlier than the suspected round: an older one may show the time before the outage. Outcomes of a
    /// provisional sweep count only once the round that triggered it has failed.
    pub(super) fn sweep(&mut self, seen_from: Region, provisional: bool, step: &mut MachineStep<'_>) {
        if !self.settings.kind.is_regional() {
            return;
        }
        let since = self.suspected_since().unwrap_or(step.now);
        for region in self.settings.checked_regions(step.mesh).iter().filter(|region| *region != seen_from) {
            let newest = self.state.regions.get(region.index()).and_then(|state| state.newest_started);
            let has_looked = newest.is_some_and(|newest| newest >= since);
            let looks = |round: &OpenRound| round.region == region && round.started >= since;
            if self.state.rounds.iter().any(looks) {
                if !provisional {
                    self.release_provisional(
                        |_, round| round.reason == ProbeReason::Sweep && round.region == region,
                        step,
                    );
                }
            } else if !has_looked
                && self.request_round(region, ProbeReason::Sweep, step)
                && let Some(round) = self.state.rounds.last_mut()
            {
                round.provisional_for = provisional.then_some(seen_from);
            }
        }
    }

    /// Resolves a provisional sweep: if the round that triggered it failed, its outcomes count; otherwise they are
    /// only reported. If another pending round would have swept too, the sweep is assigned to that one.
    pub(super) fn resolve_sweep(&mut self, round: &OpenRound, failed: bool, step: &mut MachineStep<'_>) {
        if !round.has_swept {
            return;
        }
        let region = self.state_region(round.region);
        let is_of_it = |round: &OpenRound| round.provisional_for == Some(region) && round.reason == ProbeReason::Sweep;
        if failed {
            self.release_provisional(|_, round| is_of_it(round), step);
            return;
        }
        let waiting = |other: &&OpenRound| other.has_swept && other.outcome.is_none() && other.region != round.region;
        let heir = self.state.rounds.iter().find(waiting).map(|other| other.region);
        while let Some(index) = self.state.rounds.iter().position(is_of_it) {
            let Some(round) = self.state.rounds.get_mut(index) else { return };
            match heir.filter(|heir| *heir != round.region) {
                Some(heir) => round.provisional_for = Some(heir),
                None => {
                    let round = self.state.rounds.remove(index);
                    if let Some(round_outcome) = round.held_outcome {
                        self.report_only(round, round_outcome, step);
                    }
                }
            }
        }
    }

    /// Makes provisional rounds count, with the outcome they may already have.
    pub(super) fn release_provisional(
        &mut self,
        which: impl Fn(&Self, &OpenRound) -> bool,
        step: &mut MachineStep<'_>,
    ) {
        let is_held = |machine: &Self, round: &OpenRound| round.provisional_for.is_some() && which(machine, round);
        while let Some(index) = self.state.rounds.iter().position(|round| is_held(self, round)) {
            let Some(round) = self.state.rounds.get_mut(index) else { return };
            round.provisional_for = None;
            if let Some(round_outcome) = round.held_outcome.take() {
                self.conclude(index, round_outcome, step);
            }
        }
    }

    /// Sweep for recovery: when a region that was down passes for the first time, every other down region is checked
    /// again, once for each outage. A pass in a region that was only suspected is a hint of the same and also
    /// triggers one sweep, since otherwise the down regions would wait for their own next scheduled round.
    pub(super) fn sweep_for_recovery(
        &mut self,
        passed: Region,
        was_down: bool,
        began: Timestamp,
        step: &mut MachineStep<'_>,
    ) {
        let quiet = self.state.last_recovered.is_some_and(|at| step.now.since(at) < RECOVERY_SWEEP_PAUSE);
        let Some(outage) = &mut self.state.outage else { return };
        let swept = if was_down { &mut outage.recovery_swept } else { &mut outage.hint_swept };
        if std::mem::replace(swept, true) || quiet {
            return;
        }
        outage.recovery_started = Some(began);
        for region in self.settings.checked_regions(step.mesh).iter().filter(|region| *region != passed) {
            let is_down =
                self.state.regions.get(region.index()).is_some_and(|state| state.status == RegionStatus::Down);
            if is_down && !self.is_checking(region) {
                self.request_round(region, ProbeReason::Sweep, step);
            }
        }
    }

    /// Checks a region again after a round that failed but had begun before the recovery was seen (usually a
    /// timeout): the region could not be part of the sweep, since a round was already running there.
    pub(super) fn recheck(&mut self, region: Region, began: Timestamp, step: &mut MachineStep<'_>) {
        let passed = self.state.outage.as_ref().and_then(|outage| outage.recovery_started);
        let is_down = self.state.regions.get(region.index()).is_some_and(|state| state.status == RegionStatus::Down);
        if is_down && passed.is_some_and(|passed| began < passed) && !self.is_checking(region) {
            self.request_round(region, ProbeReason::Sweep, step);
        }
    }

    /// Requests the second rounds that are due: at the same instant in every region whose newest round failed. If no
    /// vantage is available (after a restart, for example), the request is retried for as long as a response would be
    /// useful.
    pub(super) fn request_second_rounds(&mut self, step: &mut MachineStep<'_>) {
        let due: Vec<(Region, Timestamp)> = self.second_rounds().filter(|(_, at)| step.now >= *at).collect();
        for (region, _) in due {
            let first = self.state.regions.get(region.index()).and_then(RegionState::first_failure);
            let began = self.state.suspicion.as_ref().map_or(step.now, |suspicion| suspicion.began);
            // A round that is already running (started early, for example) serves as the second one.
            let is_looking = self.is_checking(region);
            let is_requested = is_looking || self.request_round(region, ProbeReason::Second, step);
            let wanted_until = (began + self.second_round_delay()).max(self.taken_over_at) + RESPONSE_TIMEOUT;
            let Some(suspicion) = &mut self.state.suspicion else { return };
            self.changed = true;
            if is_requested || step.now >= wanted_until {
                suspicion.second_due.remove(region);
            } else {
                suspicion.second_not_before = Some(step.now + RETRY_EVERY);
            }
            if is_requested && !is_looking && first.is_some_and(|first| first.was_pending) {
                self.confirm_early(region, step);
            }
        }
    }

    /// Time at which the next second round is due.
    pub(super) fn second_rounds_at(&self) -> Option<Timestamp> {
        self.second_rounds().map(|(_, at)| at).min()
    }

    /// Requests a first round from every region, for a new or changed monitor.
    pub(super) fn request_first_rounds(&mut self, step: &mut MachineStep<'_>) {
        if self.settings.paused || self.settings.heartbeat.is_some() {
            return;
        }
        for region in self.settings.checked_regions(step.mesh).iter() {
            let has_rounds = self.state.regions.get(region.index()).is_some_and(|state| state.newest_started.is_some());
            if !has_rounds && !self.is_checking(region) {
                self.request_round(region, ProbeReason::First, step);
            }
        }
    }

    /// Requests follow-up checks: certificates and domains are checked more often than their long interval while
    /// failing.
    pub(super) fn request_follow_ups(&mut self, step: &mut MachineStep<'_>) {
        let due: Vec<Region> = self.follow_ups().filter(|(_, at)| step.now >= *at).map(|(region, _)| region).collect();
        for region in due {
            if !self.request_round(region, ProbeReason::FollowUp, step) {
                self.state.follow_up_not_before = Some(step.now + MINUTE);
                self.changed = true;
            }
        }
    }

    /// Time at which the next follow-up check is due.
    pub(super) fn follow_up_at(&self) -> Option<Timestamp> {
        self.follow_ups().map(|(_, at)| at).min()
    }

    /// Returns true if a round of the region is running or waiting for confirmation.
    pub(super) fn is_checking(&self, region: Region) -> bool {
        self.state.rounds.iter().any(|round| self.state_region(round.region) == region)
    }

    fn second_rounds(&self) -> impl Iterator<Item = (Region, Timestamp)> {
        let suspicion = self.state.suspicion.as_ref();
        let together = suspicion.map(|suspicion| {
            let at = suspicion.began + self.second_round_delay();
            suspicion.second_not_before.map_or(at, |not_before| at.max(not_before))
        });
        suspicion.into_iter().flat_map(|suspicion| suspicion.second_due.iter()).filter_map(move |region| {
            let first = self.state.regions.get(region.index())?.first_failure()?;
            // A region whose first round began later still keeps the distance that makes two rounds count as two.
            Some((region, together?.max(first.started + MIN_DISTANCE_SECOND_ROUND)))
        })
    }

    fn follow_ups(&self) -> impl Iterator<Item = (Region, Timestamp)> {
        let (wrong, down) = match self.settings.kind {
            CheckKind::Certificate => (MINUTE, 5 * MINUTE),
            CheckKind::Domain => (MINUTE, HOUR),
            CheckKind::Http
            | CheckKind::Tcp
            | CheckKind::Dns
            | CheckKind::Ping
            | CheckKind::Heartbeat
            | CheckKind::Component => (0, 0),
        };
        let region_states = if wrong == 0 { &[] } else { self.state.regions.as_slice() };
        region_states.iter().zip(Region::ALL).filter_map(move |(region_state, region)| {
            let wait = match (region_state.status, region_state.first_failure()) {
                (RegionStatus::Down, _) => down,
                (RegionStatus::Unknown | RegionStatus::Up, Some(_)) => wrong,
                (RegionStatus::Unknown | RegionStatus::Up, None) => return None,
            };
            let at = region_state.newest_started? + wait;
            let at = self.state.follow_up_not_before.map_or(at, |not_before| at.max(not_before));
            (!self.is_checking(region)).then_some((region, at))
        })
    }

    /// Milliseconds to the second round: a registry is queried again only after a minute.
    pub(super) const fn second_round_delay(&self) -> i64 {
        match self.settings.kind {
            CheckKind::Domain => MINUTE,
            CheckKind::Http
            | CheckKind::Tcp
            | CheckKind::Dns
            | CheckKind::Ping
            | CheckKind::Certificate
            | CheckKind::Heartbeat
            | CheckKind::Component => SECOND_ROUND_DELAY,
        }
    }
}
