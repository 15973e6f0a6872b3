//! Suspicion: other regions are checked at once, second rounds begin together, and recoveries are verified the same
//! way.

use crate::check::CheckKind;
use crate::confirm::PATIENCE;
use crate::event::Reason;
use crate::observation::Word;
use crate::place::{Region, RegionSet};
use crate::time::{HOUR, MINUTE, SECOND, Timestamp};
use crate::verdict::{APART_SECOND, Lane, Standing, Turn};

use super::resume::RETRY_EVERY;
use super::state::{Round, Suspicion};
use super::{Machine, Step};

/// Milliseconds from the first failed round of a suspicion to the second round.
const SECOND_AFTER: i64 = 5 * SECOND;
/// Milliseconds after a recovery during which the next one does not trigger a re-check of down regions.
const RECOVERY_QUIET: i64 = 10 * MINUTE;

impl Machine {
    /// Adds a region that saw a failed round to the suspicion, or opens one with a sweep.
    pub(super) fn suspect(&mut self, round: &Round, region: Region, step: &mut Step<'_>) {
        let counted = self.watch.counted(step.mesh).contains(region);
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
        let first = self.state.lanes.get(region.index()).and_then(Lane::first_failed);
        let starts_run = first.is_some_and(|first| first.started == round.started);
        if let Some(suspicion) = &mut self.state.suspicion {
            suspicion.failing.insert(region);
            if round.reason != Reason::Second || starts_run {
                suspicion.second_due.insert(region);
            }
        }
        if opens && round.reason != Reason::Sweep {
            self.sweep(region, false, step);
        }
        self.ask_second_rounds(step);
    }

    /// Removes a region from the suspicion because it passed, was disputed, or is down.
    pub(super) fn clear_suspicion(&mut self, region: Region, word: Word, turn: Turn) {
        let Some(suspicion) = &mut self.state.suspicion else { return };
        if matches!(word, Word::Passed | Word::Disputed) || turn == Turn::WentDown {
            suspicion.failing.remove(region);
            suspicion.second_due.remove(region);
        }
    }

    /// Removes a region from the suspicion because it has no status any more.
    pub(super) fn forget_suspect(&mut self, region: Region) {
        if let Some(suspicion) = &mut self.state.suspicion {
            suspicion.failing.remove(region);
            suspicion.second_due.remove(region);
        }
    }

    /// Closes a suspicion without regions and without running rounds.
    pub(super) fn close_suspicion(&mut self) {
        let running =
            self.state.rounds.iter().any(|round| matches!(round.reason, Reason::Sweep | Reason::Second));
        let over = self.state.suspicion.as_ref().is_some_and(|suspicion| suspicion.failing.is_empty());
        if over && !running {
            self.state.suspicion = None;
            self.changed = true;
        }
    }

    /// Sweep: requests a round from every other region now. A region is skipped if its running or newest round began
    /// no earlier than the suspected round: an older one may show the time before the outage. Outcomes of a
    /// provisional sweep count only once the round that triggered it has failed.
    pub(super) fn sweep(&mut self, seen_from: Region, provisional: bool, step: &mut Step<'_>) {
        if !self.watch.kind.is_regional() {
            return;
        }
        let since = self.suspected_since().unwrap_or(step.now);
        for region in self.watch.regions(step.mesh).iter().filter(|region| *region != seen_from) {
            let newest = self.state.lanes.get(region.index()).and_then(|lane| lane.newest);
            let has_looked = newest.is_some_and(|newest| newest >= since);
            let looks = |round: &Round| round.region == region && round.started >= since;
            if self.state.rounds.iter().any(looks) {
                if !provisional {
                    self.release(|_, round| round.reason == Reason::Sweep && round.region == region, step);
                }
            } else if !has_looked
                && self.ask_round(region, Reason::Sweep, step)
                && let Some(round) = self.state.rounds.last_mut()
            {
                round.provisional = provisional.then_some(seen_from);
            }
        }
    }

    /// Resolves a provisional sweep: if the round that triggered it failed, its outcomes count; otherwise they are
    /// only reported. If another pending round would have swept too, the sweep is assigned to that one.
    pub(super) fn resolve_sweep(&mut self, round: &Round, failed: bool, step: &mut Step<'_>) {
        if !round.swept {
            return;
        }
        let region = self.lane_region(round.region);
        let is_of_it = |round: &Round| round.provisional == Some(region) && round.reason == Reason::Sweep;
        if failed {
            self.release(|_, round| is_of_it(round), step);
            return;
        }
        let waiting = |other: &&Round| other.swept && other.outcome.is_none() && other.region != round.region;
        let heir = self.state.rounds.iter().find(waiting).map(|other| other.region);
        while let Some(index) = self.state.rounds.iter().position(is_of_it) {
            let Some(round) = self.state.rounds.get_mut(index) else { return };
            match heir.filter(|heir| *heir != round.region) {
                Some(heir) => round.provisional = Some(heir),
                None => {
                    let round = self.state.rounds.remove(index);
                    if let Some(word) = round.held {
                        self.tell_only(round, word, step);
                    }
                }
            }
        }
    }

    /// Makes provisional rounds count, with the outcome they may already have.
    pub(super) fn release(&mut self, which: impl Fn(&Self, &Round) -> bool, step: &mut Step<'_>) {
        let is_held = |machine: &Self, round: &Round| round.provisional.is_some() && which(machine, round);
        while let Some(index) = self.state.rounds.iter().position(|round| is_held(self, round)) {
            let Some(round) = self.state.rounds.get_mut(index) else { return };
            round.provisional = None;
            if let Some(word) = round.held.take() {
                self.conclude(index, word, step);
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
        step: &mut Step<'_>,
    ) {
        let quiet = self.state.last_recovered.is_some_and(|at| step.now.since(at) < RECOVERY_QUIET);
        let Some(outage) = &mut self.state.outage else { return };
        let swept = if was_down { &mut outage.recovery_swept } else { &mut outage.hint_swept };
        if std::mem::replace(swept, true) || quiet {
            return;
        }
        outage.passed = Some(began);
        for region in self.watch.regions(step.mesh).iter().filter(|region| *region != passed) {
            let is_down =
                self.state.lanes.get(region.index()).is_some_and(|lane| lane.standing == Standing::Down);
            if is_down && !self.is_looking(region) {
                self.ask_round(region, Reason::Sweep, step);
            }
        }
    }

    /// Checks a region again after a round that failed but had begun before the recovery was seen (usually a
    /// timeout): the region could not be part of the sweep, since a round was already running there.
    pub(super) fn look_again(&mut self, region: Region, began: Timestamp, step: &mut Step<'_>) {
        let passed = self.state.outage.as_ref().and_then(|outage| outage.passed);
        let is_down =
            self.state.lanes.get(region.index()).is_some_and(|lane| lane.standing == Standing::Down);
        if is_down && passed.is_some_and(|passed| began < passed) && !self.is_looking(region) {
            self.ask_round(region, Reason::Sweep, step);
        }
    }

    /// Requests the second rounds that are due: at the same instant in every region whose newest round failed. If no
    /// vantage is available (after a restart, for example), the request is retried for as long as a response would be
    /// useful.
    pub(super) fn ask_second_rounds(&mut self, step: &mut Step<'_>) {
        let due: Vec<(Region, Timestamp)> = self.second_rounds().filter(|(_, at)| step.now >= *at).collect();
        for (region, _) in due {
            let first = self.state.lanes.get(region.index()).and_then(Lane::first_failed);
            let began = self.state.suspicion.as_ref().map_or(step.now, |suspicion| suspicion.began);
            // A round that is already running (started early, for example) serves as the second one.
            let is_looking = self.is_looking(region);
            let asked = is_looking || self.ask_round(region, Reason::Second, step);
            let wanted_until = (began + self.second_after()).max(self.born) + PATIENCE;
            let Some(suspicion) = &mut self.state.suspicion else { return };
            self.changed = true;
            if asked || step.now >= wanted_until {
                suspicion.second_due.remove(region);
            } else {
                suspicion.second_not_before = Some(step.now + RETRY_EVERY);
            }
            if asked && !is_looking && first.is_some_and(|first| first.waited) {
                self.confirm_early(region, step);
            }
        }
    }

    /// Time at which the next second round is due.
    pub(super) fn second_rounds_at(&self) -> Option<Timestamp> {
        self.second_rounds().map(|(_, at)| at).min()
    }

    /// Requests a first round from every region, for a new or changed monitor.
    pub(super) fn ask_first_rounds(&mut self, step: &mut Step<'_>) {
        if self.watch.paused || self.watch.beat.is_some() {
            return;
        }
        for region in self.watch.regions(step.mesh).iter() {
            let heard = self.state.lanes.get(region.index()).is_some_and(|lane| lane.newest.is_some());
            if !heard && !self.is_looking(region) {
                self.ask_round(region, Reason::First, step);
            }
        }
    }

    /// Requests follow-up checks: certificates and domains are checked more often than their long interval while
    /// failing.
    pub(super) fn follow_up(&mut self, step: &mut Step<'_>) {
        let due: Vec<Region> =
            self.follow_ups().filter(|(_, at)| step.now >= *at).map(|(region, _)| region).collect();
        for region in due {
            if !self.ask_round(region, Reason::FollowUp, step) {
                self.state.follow_not_before = Some(step.now + MINUTE);
                self.changed = true;
            }
        }
    }

    /// Time at which the next follow-up check is due.
    pub(super) fn follow_up_at(&self) -> Option<Timestamp> {
        self.follow_ups().map(|(_, at)| at).min()
    }

    /// Returns true if a round of the region is running or waiting for confirmation.
    pub(super) fn is_looking(&self, region: Region) -> bool {
        self.state.rounds.iter().any(|round| self.lane_region(round.region) == region)
    }

    fn second_rounds(&self) -> impl Iterator<Item = (Region, Timestamp)> {
        let suspicion = self.state.suspicion.as_ref();
        let together = suspicion.map(|suspicion| {
            let at = suspicion.began + self.second_after();
            suspicion.second_not_before.map_or(at, |not_before| at.max(not_before))
        });
        suspicion.into_iter().flat_map(|suspicion| suspicion.second_due.iter()).filter_map(move |region| {
            let first = self.state.lanes.get(region.index())?.first_failed()?;
            // A region whose first round began later still keeps the distance that makes two rounds count as two.
            Some((region, together?.max(first.started + APART_SECOND)))
        })
    }

    fn follow_ups(&self) -> impl Iterator<Item = (Region, Timestamp)> {
        let (wrong, down) = match self.watch.kind {
            CheckKind::Certificate => (MINUTE, 5 * MINUTE),
            CheckKind::Domain => (MINUTE, HOUR),
            CheckKind::Http
            | CheckKind::Tcp
            | CheckKind::Dns
            | CheckKind::Ping
            | CheckKind::Heartbeat
            | CheckKind::Component => (0, 0),
        };
        let lanes = if wrong == 0 { &[] } else { self.state.lanes.as_slice() };
        lanes.iter().zip(Region::ALL).filter_map(move |(lane, region)| {
            let wait = match (lane.standing, lane.first_failed()) {
                (Standing::Down, _) => down,
                (Standing::Unknown | Standing::Up, Some(_)) => wrong,
                (Standing::Unknown | Standing::Up, None) => return None,
            };
            let at = lane.newest? + wait;
            let at = self.state.follow_not_before.map_or(at, |not_before| at.max(not_before));
            (!self.is_looking(region)).then_some((region, at))
        })
    }

    /// Milliseconds to the second round: a registry is queried again only after a minute.
    pub(super) const fn second_after(&self) -> i64 {
        match self.watch.kind {
            CheckKind::Domain => MINUTE,
            CheckKind::Http
            | CheckKind::Tcp
            | CheckKind::Dns
            | CheckKind::Ping
            | CheckKind::Certificate
            | CheckKind::Heartbeat
            | CheckKind::Component => SECOND_AFTER,
        }
    }
}
