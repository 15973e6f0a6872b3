//! The monitor's status: what the regions say together becomes a change, told once.

use crate::event::{AlertKind, Change, Reason, Status, What};
use crate::observation::{Facts, Failure, Outcome};
use crate::place::{Region, RegionSet};
use crate::slowness::Passed;
use crate::time::{SECOND, Timestamp};
use crate::verdict::{Standing, Verdict, judge};

use super::state::{Outage, State};
use super::view::LastCheck;
use super::{Machine, Output, Step};

/// Milliseconds that going down waits for the other regions' second rounds and confirmations.
const SETTLE: i64 = 3 * SECOND;

/// The round that a decision follows: its region, when it began, and its response time.
pub(super) type Cause = (Region, Timestamp, Option<u32>);

impl LastCheck {
    /// The last check of a passed round.
    pub(super) fn passed(at: Timestamp, facts: &Facts) -> Self {
        Self { at, ok: true, facts: facts.clone(), error: None }
    }
}

impl Machine {
    /// Ends what is over and judges what is there: the upkeep after every step.
    pub(super) fn settle(&mut self, step: &mut Step<'_>) {
        self.close_suspicion();
        self.decide(None, step);
    }

    /// Compares what the counted regions say with the status, and changes it where they differ.
    pub(super) fn decide(&mut self, cause: Option<Cause>, step: &mut Step<'_>) {
        if self.watch.paused || self.watch.beat.is_some() {
            return;
        }
        let counted = self.watch.counted(step.mesh);
        let suspecting = self.state.suspicion.as_ref().map_or(RegionSet::NONE, |suspicion| suspicion.failing);
        let lanes = &self.state.lanes;
        let standing =
            |region: Region| lanes.get(region.index()).map_or(Standing::Unknown, |lane| lane.standing);
        match judge(standing, counted, suspecting, self.watch.kind.is_regional()) {
            Verdict::Unknown => {
                self.state.settle_by = None;
                if self.state.status != Status::Unknown {
                    self.change(Change::to(Status::Unknown, step.now), step);
                }
            }
            Verdict::Up => {
                self.state.settle_by = None;
                match self.state.status {
                    Status::Down | Status::Unknown => self.come_up(cause, step),
                    Status::Up | Status::Slow => self.judge_speed(cause, step),
                }
            }
            Verdict::Down { from, whole } => match self.state.status {
                Status::Down => self.rescope(from, step),
                Status::Unknown if self.state.outage.is_some() => self.resume_outage(from, step),
                Status::Unknown | Status::Up | Status::Slow => {
                    let waits = !whole && self.is_awaited(counted);
                    let until = *self.state.settle_by.get_or_insert(step.now + SETTLE);
                    if !waits || step.now >= until {
                        self.go_down(from, counted, step);
                    }
                }
            },
        }
    }

    /// Regions that have been silent for too long say nothing any more. One that is down stays so.
    pub(super) fn go_stale(&mut self, step: &Step<'_>) {
        for region in Region::ALL {
            if self.stale_at(region.index()).is_none_or(|at| step.now < at) {
                continue;
            }
            self.changed = true;
            if let Some(lane) = self.state.lanes.get_mut(region.index()) {
                lane.standing = Standing::Unknown;
                lane.first_failed = None;
            }
            if let Some(suspicion) = &mut self.state.suspicion {
                suspicion.failing.remove(region);
                suspicion.second_due.remove(region);
            }
        }
    }

    /// When a region becomes stale: counted from its newest round or from our own start, whichever is later.
    pub(super) fn stale_at(&self, lane: usize) -> Option<Timestamp> {
        let lane = self.state.lanes.get(lane)?;
        let speaks = lane.standing == Standing::Up
            || (lane.standing == Standing::Unknown && lane.first_failed.is_some());
        speaks.then(|| lane.fresh.map_or(self.born, |fresh| fresh.max(self.born)) + self.watch.stale_after())
    }

    /// Stops judging: unknown, and whatever outage was on is over without a word.
    pub(super) fn pause(&mut self, step: &mut Step<'_>) {
        if self.state.status != Status::Unknown {
            self.change(Change::to(Status::Unknown, step.now), step);
        }
        let kept = (self.state.next_number, self.state.expires_at, std::mem::take(&mut self.state.pulse));
        self.state = State {
            next_number: kept.0,
            expires_at: kept.1,
            pulse: crate::heartbeat::Pulse { last: kept.2.last, ..Default::default() },
            untried: true,
            ..State::default()
        };
    }

    /// It is back, or it is up for the first time. The round that shows it clears all slow marks.
    pub(super) fn come_up(&mut self, cause: Option<Cause>, step: &mut Step<'_>) {
        let since = cause.map_or(step.now, |(_, started, _)| started);
        let mut change = Change::to(Status::Up, since);
        change.latency_ms = cause.and_then(|(.., latency_ms)| latency_ms);
        if let Some(outage) = self.state.outage.take() {
            change.alert = Some(AlertKind::Recovered);
            change.down_since = Some(outage.since);
            change.reason = Some(outage.reason);
            change.duration_ms = Some(between(outage.since, since));
            self.state.last_recovered = Some(step.now);
        } else if let Some(slow) = self.state.slow {
            change.alert = Some(AlertKind::BackToNormal);
            change.duration_ms = Some(between(slow, since));
            change.threshold_ms = cause.and_then(|(region, ..)| self.watch.threshold(region));
        }
        self.state.slow = None;
        self.state.evidence.clear();
        self.state.lanes.iter_mut().for_each(|lane| lane.readings.clear());
        self.change(change, step);
    }

    /// It is down: the outage began with the first failed round of the two.
    pub(super) fn fall(
        &mut self,
        since: Timestamp,
        reason: Failure,
        from: Option<RegionSet>,
        step: &mut Step<'_>,
    ) {
        self.state.settle_by = None;
        self.state.slow = None;
        self.state.outage = Some(Outage { since, reason: reason.clone(), recovery_swept: false });
        let mut change = Change::to(Status::Down, since);
        change.alert = Some(AlertKind::WentDown);
        change.down_since = Some(since);
        change.reason = Some(reason);
        change.down_from = from;
        change.evidence = std::mem::take(&mut self.state.evidence);
        self.change(change, step);
    }

    fn go_down(&mut self, from: Option<RegionSet>, counted: RegionSet, step: &mut Step<'_>) {
        let down = |region: &Region| {
            self.state.lanes.get(region.index()).filter(|lane| lane.standing == Standing::Down)
        };
        let since = counted.iter().filter_map(|region| down(&region)?.down_since).min().unwrap_or(step.now);
        let newest = self.state.evidence.iter().rev().find_map(|report| match &report.outcome {
            Outcome::Failed(_, failure) => Some(failure.clone()),
            Outcome::Passed(_) | Outcome::Inconclusive(_) | Outcome::Pending => None,
        });
        let reason = newest.unwrap_or_else(|| Failure::Other("failed".to_owned()));
        self.fall(since, reason, from, step);
    }

    /// Down again after a time of silence within one outage: nothing new is told.
    fn resume_outage(&mut self, from: Option<RegionSet>, step: &mut Step<'_>) {
        let since = self.state.outage.as_ref().map_or(step.now, |outage| outage.since);
        let mut change = Change::to(Status::Down, since);
        change.down_since = Some(since);
        change.down_from = from;
        change.reason = self.state.outage.as_ref().map(|outage| outage.reason.clone());
        self.state.settle_by = None;
        self.change(change, step);
    }

    fn rescope(&mut self, from: Option<RegionSet>, step: &mut Step<'_>) {
        if self.state.down_from != from {
            self.state.down_from = from;
            self.changed = true;
            step.out.push(Output::happened(What::ScopeChanged(from)));
        }
    }

    fn judge_speed(&mut self, cause: Option<Cause>, step: &mut Step<'_>) {
        let slow = self.slow_reading(step);
        match (self.state.status, slow) {
            (Status::Up, Some((reading, threshold_ms))) => {
                let mut change = Change::to(Status::Slow, reading.started);
                change.alert = Some(AlertKind::WentSlow);
                change.latency_ms = Some(reading.latency_ms);
                change.threshold_ms = Some(threshold_ms);
                self.state.slow = Some(reading.started);
                self.change(change, step);
            }
            (Status::Slow, None) => {
                let since = cause.map_or(step.now, |(_, started, _)| started);
                let mut change = Change::to(Status::Up, since);
                change.alert = Some(AlertKind::BackToNormal);
                change.latency_ms = cause.and_then(|(.., latency_ms)| latency_ms);
                change.threshold_ms = cause.and_then(|(region, ..)| self.watch.threshold(region));
                change.duration_ms = self.state.slow.take().map(|slow| between(slow, since));
                self.change(change, step);
            }
            (Status::Unknown | Status::Up | Status::Slow | Status::Down, _) => {}
        }
    }

    fn slow_reading(&self, step: &Step<'_>) -> Option<(Passed, u32)> {
        let speaks = |region: &Region| {
            self.state.lanes.get(region.index()).filter(|lane| lane.standing == Standing::Up)
        };
        self.watch
            .latency(step.mesh)
            .iter()
            .find_map(|region| speaks(&region)?.readings.slow(&self.watch, step.mesh, region, step.now))
    }

    /// Whether a counted region's second round or confirmation is still under way.
    fn is_awaited(&self, counted: RegionSet) -> bool {
        self.state.rounds.iter().any(|round| {
            counted.contains(self.lane_region(round.region))
                && (round.reason == Reason::Second || round.second.open.is_some())
        })
    }

    /// One change of status, and one event for it.
    fn change(&mut self, mut change: Change, step: &mut Step<'_>) {
        self.changed = true;
        change.from = std::mem::replace(&mut self.state.status, change.to);
        self.state.since = Some(change.since);
        self.state.down_from = change.down_from;
        step.out.push(Output::happened(What::Changed(change)));
    }
}

/// Milliseconds from `start` to `end`, none where they lie the other way round.
fn between(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.since(start)).unwrap_or(0)
}
