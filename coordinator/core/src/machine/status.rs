//! Status of the monitor: turns the combined verdict of the regions into changes, each emitted once.

use crate::check::CheckKind;
use crate::event::{AlertKind, Change, Reason, Status, What};
use crate::heartbeat::Pulse;
use crate::observation::{Facts, Failure};
use crate::place::{Mesh, Region, RegionSet};
use crate::slowness::Passed;
use crate::time::{SECOND, Timestamp};
use crate::verdict::{Lane, Standing, Verdict, judge};

use super::state::{Outage, State};
use super::view::LastCheck;
use super::{Machine, Output, Step};

/// Milliseconds that going down waits for second rounds and confirmations of other regions.
pub(super) const SETTLE: i64 = 3 * SECOND;
/// Milliseconds after a start during which missing agents are assumed to be reconnecting.
const BLIND: i64 = 15 * SECOND;

/// Round that caused a decision: its region, start and response time.
pub(super) type Cause = (Region, Timestamp, Option<u32>);

impl LastCheck {
    /// Creates the last check of a passed round.
    pub(super) fn passed(at: Timestamp, facts: &Facts) -> Self {
        Self { at, ok: true, facts: facts.clone(), error: None }
    }
}

impl Machine {
    /// Closes what is over and judges the monitor; runs after every step.
    pub(super) fn settle(&mut self, step: &mut Step<'_>) {
        self.close_suspicion();
        if self.is_blind(step) {
            self.state.settle_by = self.state.settle_by.map(|by| by.max(step.now + SECOND));
            return;
        }
        self.counted = self.watch.counted(step.mesh);
        self.decide(None, step);
    }

    /// Returns true if the mesh is not known yet: an empty one in the first seconds of this process is no
    /// information.
    pub(super) fn is_blind(&self, step: &Step<'_>) -> bool {
        step.mesh.places().is_empty() && step.now.since(self.born) < BLIND
    }

    /// Compares the verdict of the counted regions with the status, and changes the status if they differ.
    pub(super) fn decide(&mut self, cause: Option<Cause>, step: &mut Step<'_>) {
        if self.watch.paused || self.watch.beat.is_some() || self.is_blind(step) {
            return;
        }
        let says = self.says(step.mesh, |says| match &self.state.outage {
            Some(outage) => Some(outage.began()),
            None => self.first_failed(says.failing()).map(|(since, _)| since),
        });
        match judge(&says) {
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
                    let waits = !whole && self.is_awaited(says.counted);
                    let until = *self.state.settle_by.get_or_insert(step.now + SETTLE);
                    if !waits || step.now >= until {
                        self.go_down(from, says.failing(), step);
                    }
                }
            },
        }
    }

    /// Marks regions that have been silent for too long as unknown. A region that is down stays down.
    pub(super) fn go_stale(&mut self, step: &Step<'_>) {
        for region in Region::ALL {
            if self.stale_at(region.index()).is_none_or(|at| step.now < at) {
                continue;
            }
            self.changed = true;
            if let Some(lane) = self.state.lanes.get_mut(region.index()) {
                lane.standing = Standing::Unknown;
                lane.forget_first_failed();
            }
            self.forget_evidence(region);
            self.forget_suspect(region);
        }
    }

    /// Time at which a region becomes stale: counted from its newest round or the coordinator's start, whichever is
    /// later. A region that is down does not become stale, except for a component: a vendor's page that cannot be
    /// read for that long makes it unknown.
    pub(super) fn stale_at(&self, lane: usize) -> Option<Timestamp> {
        let lane = self.state.lanes.get(lane)?;
        let speaks = match lane.standing {
            Standing::Up => true,
            Standing::Down => self.watch.kind == CheckKind::Component,
            Standing::Unknown => lane.first_failed().is_some(),
        };
        speaks.then(|| self.speaks_until(lane))
    }

    /// Regions with that status by recent rounds: one that is down without recent rounds is left out. For check types
    /// that are not judged by region, one region represents all.
    pub(super) fn seen(&self, standing: Standing, now: Timestamp) -> RegionSet {
        let is_seen = |region: &Region| {
            let lane = self.state.lanes.get(self.watch.lane(*region));
            lane.is_some_and(|lane| lane.standing == standing && now < self.speaks_until(lane))
        };
        Region::ALL.into_iter().filter(is_seen).collect()
    }

    /// Time until which the newest round of a region is current.
    pub(super) fn speaks_until(&self, lane: &Lane) -> Timestamp {
        lane.fresh.map_or(self.born, |fresh| fresh.max(self.born)) + self.watch.stale_after()
    }

    /// Stops judging: the status becomes unknown, and an open outage is dropped without an alert.
    pub(super) fn pause(&mut self, step: &mut Step<'_>) {
        if self.state.status != Status::Unknown {
            self.change(Change::to(Status::Unknown, step.now), step);
        }
        let mut lanes = std::mem::take(&mut self.state.lanes);
        lanes.iter_mut().for_each(|lane| {
            lane.leave();
        });
        let mut downtime = std::mem::take(&mut self.state.downtime);
        downtime.pause(step.now);
        self.state = State {
            lanes,
            since: self.state.since,
            next_number: self.state.next_number,
            expires_at: self.state.expires_at,
            pulse: Pulse {
                last: self.state.pulse.last,
                count: self.state.pulse.count,
                last_run_ms: self.state.pulse.last_run_ms,
                ..Pulse::default()
            }
            .into(),
            untried: true,
            settings: self.state.settings,
            downtime,
            // An outage that was open before the pause is over without an alert, also for the end of a window.
            window: self.state.window.as_ref().map(|_| Box::default()),
            ..State::default()
        };
    }

    /// Goes up: a recovery, or up for the first time. The round that shows it clears all slowness.
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
        self.state.lanes.iter_mut().for_each(|lane| lane.readings.clear());
        self.state.degraded = None;
        self.change(change, step);
    }

    /// Goes down: the outage began with the first failed round of the two.
    pub(super) fn fall(
        &mut self,
        since: Timestamp,
        reason: Failure,
        from: Option<RegionSet>,
        step: &mut Step<'_>,
    ) {
        self.state.settle_by = None;
        self.state.slow = None;
        self.state.outage = Some(Box::new(Outage::new(since, reason.clone())));
        let mut change = Change::to(Status::Down, since);
        change.alert = Some(AlertKind::WentDown);
        change.down_since = Some(since);
        change.reason = Some(reason);
        change.down_from = from;
        change.evidence = self.evidence(step);
        self.change(change, step);
    }

    /// Goes down, dated from the first failed round of all contributing regions.
    fn go_down(&mut self, from: Option<RegionSet>, failing: RegionSet, step: &mut Step<'_>) {
        let (since, failure) = self.first_failed(failing).unwrap_or((step.now, None));
        let failure = failure.cloned().unwrap_or_else(|| Failure::Other("failed".to_owned()));
        self.fall(since, failure, from, step);
    }

    /// Start and reason of the first failed round among regions that are down or suspected.
    fn first_failed(&self, failing: RegionSet) -> Option<(Timestamp, Option<&Failure>)> {
        let failed = |region: Region| {
            let lane = self.state.lanes.get(region.index())?;
            let since = match lane.standing {
                Standing::Down => lane.down_since(),
                Standing::Unknown | Standing::Up => lane.first_failed().map(|first| first.started),
            };
            Some((since?, lane.failure()))
        };
        failing.iter().filter_map(failed).min_by_key(|(since, _)| *since)
    }

    /// Goes down again after an unknown period within one outage: no new alert.
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
        match (self.state.status, self.slow_reading(step)) {
            (Status::Up, Some(reading)) => {
                let mut change = Change::to(Status::Slow, reading.started);
                change.alert = Some(AlertKind::WentSlow);
                change.latency_ms = reading.latency_ms;
                change.threshold_ms = reading.threshold_ms;
                self.state.slow = Some(reading.started);
                self.change(change, step);
            }
            (Status::Slow, None) => {
                let judged = self.watch.latency(step.mesh);
                let round = cause.filter(|(region, ..)| judged.contains(*region) || judged.is_empty());
                let reading = round.or_else(|| self.newest_reading(step));
                let since = round.map_or(step.now, |(_, started, _)| started);
                let mut change = Change::to(Status::Up, since);
                change.alert = Some(AlertKind::BackToNormal);
                change.latency_ms = reading.and_then(|(.., latency_ms)| latency_ms);
                change.threshold_ms = reading.and_then(|(region, ..)| self.watch.threshold(region));
                change.duration_ms = self.state.slow.take().map(|slow| between(slow, since));
                self.change(change, step);
            }
            (Status::Unknown | Status::Up | Status::Slow | Status::Down, _) => {}
        }
    }

    /// Reading that makes the monitor slow: above the threshold of a region that is not stale, or degraded by the
    /// vendor.
    fn slow_reading(&self, step: &Step<'_>) -> Option<SlowReading> {
        if let Some(started) = self.state.degraded.filter(|_| self.watch.kind == CheckKind::Component) {
            return Some(SlowReading { started, latency_ms: None, threshold_ms: None });
        }
        let slow = |region| self.slow_reading_of(region, step.mesh, step.now);
        let (reading, threshold) = self.watch.latency(step.mesh).iter().find_map(slow)?;
        Some(SlowReading {
            started: reading.started,
            latency_ms: Some(reading.latency_ms),
            threshold_ms: Some(threshold),
        })
    }

    /// Reading that makes a region slow, with its threshold; none if the region is stale.
    fn slow_reading_of(&self, region: Region, mesh: &Mesh, now: Timestamp) -> Option<(Passed, u32)> {
        // Agents reconnect one by one after a start: their absence makes nothing faster.
        let waits = self.state.status == Status::Slow && now.since(self.born) < BLIND;
        let lane = self.state.lanes.get(region.index())?;
        let lane = (lane.standing != Standing::Unknown).then_some(lane)?;
        lane.readings.slow(&self.watch, (!waits).then_some(mesh), region, now)
    }

    /// While slow: the slow regions, provided that other counted regions are seen as not slow.
    pub(super) fn slow_from(&self, mesh: &Mesh, now: Timestamp) -> Option<RegionSet> {
        if self.state.status != Status::Slow {
            return None;
        }
        let judged = self.watch.latency(mesh);
        let slow: RegionSet =
            judged.iter().filter(|region| self.slow_reading_of(*region, mesh, now).is_some()).collect();
        let seen = self.seen(Standing::Up, now);
        let is_fast = |region: Region| seen.contains(region) && !slow.contains(region);
        (!slow.is_empty() && judged.iter().any(is_fast)).then_some(slow)
    }

    /// Response time and threshold of the reading that makes it slow, if it has numbers.
    pub(super) fn slow_figures(&self, step: &Step<'_>) -> (Option<u32>, Option<u32>) {
        self.slow_reading(step).map_or((None, None), |reading| (reading.latency_ms, reading.threshold_ms))
    }

    /// Response time and threshold of the newest counted reading, if there is one.
    pub(super) fn newest_figures(&self, step: &Step<'_>) -> (Option<u32>, Option<u32>) {
        let Some((region, _, latency_ms)) = self.newest_reading(step) else { return (None, None) };
        (latency_ms, self.watch.threshold(region))
    }

    fn newest_reading(&self, step: &Step<'_>) -> Option<Cause> {
        let readings = self.watch.latency(step.mesh).iter().filter_map(|region| {
            let reading = self.state.lanes.get(region.index())?.readings.newest()?;
            Some((region, reading.started, Some(reading.latency_ms)))
        });
        readings.max_by_key(|(_, started, _)| *started)
    }

    /// While slow: time at which the next reading expires.
    pub(super) fn reading_expires_at(&self) -> Option<Timestamp> {
        let lanes = self.state.lanes.iter().filter(|_| self.state.status == Status::Slow);
        Some(lanes.filter_map(|lane| lane.readings.oldest()).min()? + self.watch.intervals(3))
    }

    /// Removes expired readings.
    pub(super) fn expire_readings(&mut self, step: &Step<'_>) {
        if self.reading_expires_at().is_some_and(|at| step.now >= at) {
            let before = step.now - self.watch.intervals(3);
            self.state.lanes.iter_mut().for_each(|lane| lane.readings.expire(before));
            self.changed = true;
        }
    }

    /// Returns true if a counted region's second round or confirmation is outstanding: due, or in progress.
    fn is_awaited(&self, counted: RegionSet) -> bool {
        let due = self.state.suspicion.as_ref().map_or(RegionSet::NONE, |suspicion| suspicion.second_due);
        let under_way = self.state.rounds.iter().any(|round| {
            let confirms = round.second.open.is_some() || round.second.repeat_at.is_some();
            counted.contains(self.lane_region(round.region))
                && round.held.is_none()
                && (round.reason == Reason::Second || confirms)
        });
        under_way || !due.intersection(counted).is_empty()
    }

    /// Changes the status and emits one event for it.
    fn change(&mut self, mut change: Change, step: &mut Step<'_>) {
        self.changed = true;
        change.from = std::mem::replace(&mut self.state.status, change.to);
        if self.state.window.is_some() {
            change.alert = None;
        }
        self.state.since = Some(change.since);
        self.state.down_from = change.down_from;
        self.skip_repeats(step.now);
        if self.watch.kind.has_downtime() {
            self.state.downtime.note(change.to == Status::Down, change.since);
        }
        self.happened(change, step);
    }
}

/// Reading that makes a monitor slow.
struct SlowReading {
    started: Timestamp,
    latency_ms: Option<u32>,
    threshold_ms: Option<u32>,
}

/// Milliseconds from `start` to `end`; 0 if the order is reversed.
pub(super) fn between(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.since(start)).unwrap_or(0)
}
