//! A suspicion: other regions look at once, second rounds begin together, and a recovery is looked at the same way.

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

/// Milliseconds from the first failed round of a suspicion to its second.
const SECOND_AFTER: i64 = 5 * SECOND;
/// Milliseconds after a recovery in which the next does not make down regions look again.
const RECOVERY_QUIET: i64 = 10 * MINUTE;

impl Machine {
    /// A region that is not down saw a failed round: it joins the suspicion, or opens one with a sweep.
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

    /// A region passed, was disputed, or is down: it is no longer suspected. A suspicion without regions is over.
    pub(super) fn clear_suspicion(&mut self, region: Region, word: Word, turn: Turn) {
        let Some(suspicion) = &mut self.state.suspicion else { return };
        if matches!(word, Word::Passed | Word::Disputed) || turn == Turn::WentDown {
            suspicion.failing.remove(region);
            suspicion.second_due.remove(region);
        }
    }

    /// Takes a region out of the suspicion, because it says nothing any more.
    pub(super) fn forget_suspect(&mut self, region: Region) {
        if let Some(suspicion) = &mut self.state.suspicion {
            suspicion.failing.remove(region);
            suspicion.second_due.remove(region);
        }
    }

    /// Ends a suspicion in which no round runs any more and no region is left.
    pub(super) fn close_suspicion(&mut self) {
        let running =
            self.state.rounds.iter().any(|round| matches!(round.reason, Reason::Sweep | Reason::Second));
        let over = self.state.suspicion.as_ref().is_some_and(|suspicion| suspicion.failing.is_empty());
        if over && !running {
            self.state.suspicion = None;
            self.changed = true;
        }
    }

    /// Makes every other region run a round now. One whose running or newest round began no earlier than the round that
    /// is suspected gives that one: what began before it may be of the time before the outage. What a provisional sweep
    /// finds counts only once the round it is for has failed.
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

    /// The round for which a provisional sweep was made has failed, or not: what the sweep found counts, or is only
    /// told. Where another round waits that would have swept as well, the sweep is for that one from now on.
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

    /// Provisional rounds count from now on, with the word that they may have already.
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

    /// The first passed round of a region that was down: every other down region looks again, once an outage. One of a
    /// region that was only failing is a hint of the same, taken once too: else the down regions would wait for turns of
    /// theirs, while the turn that comes next is that region's.
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

    /// A round failed that had begun before the recovery was seen, a time-out most likely: its region could not be asked
    /// with the others, since it was looking already, and looks again now.
    pub(super) fn look_again(&mut self, region: Region, began: Timestamp, step: &mut Step<'_>) {
        let passed = self.state.outage.as_ref().and_then(|outage| outage.passed);
        let is_down =
            self.state.lanes.get(region.index()).is_some_and(|lane| lane.standing == Standing::Down);
        if is_down && passed.is_some_and(|passed| began < passed) && !self.is_looking(region) {
            self.ask_round(region, Reason::Sweep, step);
        }
    }

    /// Asks for the second rounds that are due: at the same instant in every region whose newest round failed. Where
    /// nobody is there to ask (after a restart, for one), it is tried again for as long as an answer would be waited for.
    pub(super) fn ask_second_rounds(&mut self, step: &mut Step<'_>) {
        let due: Vec<(Region, Timestamp)> = self.second_rounds().filter(|(_, at)| step.now >= *at).collect();
        for (region, _) in due {
            let first = self.state.lanes.get(region.index()).and_then(Lane::first_failed);
            let began = self.state.suspicion.as_ref().map_or(step.now, |suspicion| suspicion.began);
            // A round that runs already (begun early, for one) is the second one.
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

    /// When the next second round is due.
    pub(super) fn second_rounds_at(&self) -> Option<Timestamp> {
        self.second_rounds().map(|(_, at)| at).min()
    }

    /// Asks every region for its first round of a new or changed monitor.
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

    /// Certificates and domains are looked at sooner than their long interval while something is wrong.
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

    /// When the next sooner look is due.
    pub(super) fn follow_up_at(&self) -> Option<Timestamp> {
        self.follow_ups().map(|(_, at)| at).min()
    }

    /// Whether a round of the region runs, or waits for its second word.
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
            // A region whose first round began later still keeps the distance that makes two rounds two.
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

    /// Milliseconds to the second round: a registry is asked again only after a minute.
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
