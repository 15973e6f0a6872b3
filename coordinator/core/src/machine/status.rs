//! Status of the monitor: turns the combined verdict of the regions into changes, each emitted once.

use crate::check::CheckKind;
use crate::event::{AlertKind, EventKind, MonitorStatus, ProbeReason, StatusChange};
use crate::heartbeat::HeartbeatState;
use crate::observation::{Failure, Measurements};
use crate::slowness::PassedReading;
use crate::time::{SECOND, Timestamp};
use crate::vantage::{Mesh, Region, RegionSet};
use crate::verdict::{RegionState, RegionStatus, Verdict, judge};

use super::machine_view::LastCheck;
use super::state::{MachineState, OpenOutage};
use super::{MachineOutput, MachineStep, MonitorMachine};

/// Milliseconds that going down waits for second rounds and confirmations of other regions.
pub(super) const SCOPE_DELAY: i64 = 3 * SECOND;
/// Milliseconds after a start during which missing agents are assumed to be reconnecting.
pub(super) const RECONNECT_GRACE: i64 = 15 * SECOND;

/// Round that caused a decision: its region, start and response time.
pub(super) type DecisionCause = (Region, Timestamp, Option<u32>);

impl LastCheck {
    /// Creates the last check of a passed round.
    pub(super) fn passed(at: Timestamp, facts: &Measurements) -> Self {
        Self { at, ok: true, facts: facts.clone(), error: None }
    }
}

impl MonitorMachine {
    /// Ends a suspicion that is over, then computes the status; runs after every step.
    pub(super) fn update(&mut self, step: &mut MachineStep<'_>) {
        self.close_suspicion();
        if self.is_mesh_unknown(step) {
            self.state.scope_deadline = self.state.scope_deadline.map(|by| by.max(step.now + SECOND));
            return;
        }
        self.counted = self.settings.counted_regions(step.mesh);
        self.decide(None, step);
    }

    /// Returns true if the mesh is not known yet: an empty one in the first seconds of this process is no
    /// information.
    pub(super) fn is_mesh_unknown(&self, step: &MachineStep<'_>) -> bool {
        step.mesh.vantages().is_empty() && step.now.since(self.taken_over_at) < RECONNECT_GRACE
    }

    /// Compares the verdict of the counted regions with the status, and changes the status if they differ.
    pub(super) fn decide(&mut self, cause: Option<DecisionCause>, step: &mut MachineStep<'_>) {
        if self.settings.paused || self.settings.heartbeat.is_some() || self.is_mesh_unknown(step) {
            return;
        }
        let says = self.summarize_regions(step.mesh, |says| match &self.state.outage {
            Some(outage) => Some(outage.adjusted_start()),
            None => self.first_failure(says.failing()).map(|(since, _)| since),
        });
        match judge(&says) {
            Verdict::Unknown => {
                self.state.scope_deadline = None;
                if self.state.status != MonitorStatus::Unknown {
                    self.change_status(StatusChange::new(MonitorStatus::Unknown, step.now), step);
                }
            }
            Verdict::Up => {
                self.state.scope_deadline = None;
                match self.state.status {
                    MonitorStatus::Down | MonitorStatus::Unknown => self.go_up(cause, step),
                    MonitorStatus::Up | MonitorStatus::Slow => self.judge_latency(cause, step),
                }
            }
            Verdict::Down { from, whole } => match self.state.status {
                MonitorStatus::Down => self.change_scope(from, step),
                MonitorStatus::Unknown if self.state.outage.is_some() => self.resume_outage(from, step),
                MonitorStatus::Unknown | MonitorStatus::Up | MonitorStatus::Slow => {
                    let waits = !whole && self.awaits_other_regions(says.counted);
                    let until = *self.state.scope_deadline.get_or_insert(step.now + SCOPE_DELAY);
                    if !waits || step.now >= until {
                        self.go_down(from, says.failing(), step);
                    }
                }
            },
        }
    }

    /// Marks regions that have been silent for too long as unknown. A region that is down stays down.
    pub(super) fn mark_stale(&mut self, step: &MachineStep<'_>) {
        for region in Region::ALL {
            if self.stale_at(region.index()).is_none_or(|at| step.now < at) {
                continue;
            }
            self.changed = true;
            if let Some(region_state) = self.state.regions.get_mut(region.index()) {
                region_state.status = RegionStatus::Unknown;
                region_state.reset_failure_run();
            }
            self.remove_evidence(region);
            self.remove_from_suspicion(region);
        }
    }

    /// Time at which a region becomes stale: counted from its newest round or the coordinator's start, whichever is
    /// later. A region that is down does not become stale, except for a component: a vendor's page that cannot be
    /// read for that long makes it unknown.
    pub(super) fn stale_at(&self, index: usize) -> Option<Timestamp> {
        let region_state = self.state.regions.get(index)?;
        let can_be_stale = match region_state.status {
            RegionStatus::Up => true,
            RegionStatus::Down => self.settings.kind == CheckKind::Component,
            RegionStatus::Unknown => region_state.first_failure().is_some(),
        };
        can_be_stale.then(|| self.current_until(region_state))
    }

    /// Regions with that status by recent rounds: one that is down without recent rounds is left out. For check types
    /// that are not judged by region, one region represents all.
    pub(super) fn recently_seen(&self, status: RegionStatus, now: Timestamp) -> RegionSet {
        let is_seen = |region: &Region| {
            let region_state = self.state.regions.get(self.settings.state_index(*region));
            region_state.is_some_and(|state| state.status == status && now < self.current_until(state))
        };
        Region::ALL.into_iter().filter(is_seen).collect()
    }

    /// Time until which the newest round of a region is current.
    pub(super) fn current_until(&self, region_state: &RegionState) -> Timestamp {
        region_state.newest_arrived.map_or(self.taken_over_at, |newest| newest.max(self.taken_over_at))
            + self.settings.stale_after()
    }

    /// Stops judging: the status becomes unknown, and an open outage is dropped without an alert.
    pub(super) fn pause(&mut self, step: &mut MachineStep<'_>) {
        if self.state.status != MonitorStatus::Unknown {
            self.change_status(StatusChange::new(MonitorStatus::Unknown, step.now), step);
        }
        let mut region_states = std::mem::take(&mut self.state.regions);
        region_states.iter_mut().for_each(|region_state| {
            region_state.clear();
        });
        let mut downtime = std::mem::take(&mut self.state.downtime);
        downtime.pause(step.now);
        self.state = MachineState {
            regions: region_states,
            since: self.state.since,
            next_request: self.state.next_request,
            expires_at: self.state.expires_at,
            heartbeat: HeartbeatState {
                last_ping: self.state.heartbeat.last_ping,
                ping_count: self.state.heartbeat.ping_count,
                last_run_ms: self.state.heartbeat.last_run_ms,
                ..HeartbeatState::default()
            }
            .into(),
            needs_first_rounds: true,
            settings: self.state.settings,
            downtime,
            // An outage that was open before the pause is over without an alert, also for the end of a window.
            announced_before_window: self.state.announced_before_window.as_ref().map(|_| Box::default()),
            ..MachineState::default()
        };
    }

    /// Goes up: a recovery, or up for the first time. The round that shows it clears all slowness.
    pub(super) fn go_up(&mut self, cause: Option<DecisionCause>, step: &mut MachineStep<'_>) {
        let since = cause.map_or(step.now, |(_, started, _)| started);
        let mut change = StatusChange::new(MonitorStatus::Up, since);
        change.latency_ms = cause.and_then(|(.., latency_ms)| latency_ms);
        if let Some(outage) = self.state.outage.take() {
            change.alert = Some(AlertKind::Recovered);
            change.down_since = Some(outage.since);
            change.reason = Some(outage.reason);
            change.duration_ms = Some(duration_between(outage.since, since));
            self.state.last_recovered = Some(step.now);
        } else if let Some(slow) = self.state.slow_since {
            change.alert = Some(AlertKind::BackToNormal);
            change.duration_ms = Some(duration_between(slow, since));
            change.threshold_ms = cause.and_then(|(region, ..)| self.settings.threshold(region));
        }
        self.state.slow_since = None;
        self.state.regions.iter_mut().for_each(|state| state.readings.clear());
        self.state.degraded_since = None;
        self.change_status(change, step);
    }

    /// Goes down: the outage began with the first failed round of the two.
    pub(super) fn begin_outage(
        &mut self,
        since: Timestamp,
        reason: Failure,
        from: Option<RegionSet>,
        step: &mut MachineStep<'_>,
    ) {
        self.state.scope_deadline = None;
        self.state.slow_since = None;
        self.state.outage = Some(Box::new(OpenOutage::new(since, reason.clone())));
        let mut change = StatusChange::new(MonitorStatus::Down, since);
        change.alert = Some(AlertKind::WentDown);
        change.down_since = Some(since);
        change.reason = Some(reason);
        change.down_from = from;
        change.evidence = self.evidence(step);
        self.change_status(change, step);
    }

    /// Goes down, dated from the first failed round of all contributing regions.
    fn go_down(&mut self, from: Option<RegionSet>, failing: RegionSet, step: &mut MachineStep<'_>) {
        let (since, failure) = self.first_failure(failing).unwrap_or((step.now, None));
        let failure = failure.cloned().unwrap_or_else(|| Failure::Other("failed".to_owned()));
        self.begin_outage(since, failure, from, step);
    }

    /// Start and reason of the first failed round among regions that are down or suspected.
    fn first_failure(&self, failing: RegionSet) -> Option<(Timestamp, Option<&Failure>)> {
        let failed = |region: Region| {
            let region_state = self.state.regions.get(region.index())?;
            let since = match region_state.status {
                RegionStatus::Down => region_state.down_since(),
                RegionStatus::Unknown | RegionStatus::Up => region_state.first_failure().map(|first| first.started),
            };
            Some((since?, region_state.failure()))
        };
        failing.iter().filter_map(failed).min_by_key(|(since, _)| *since)
    }

    /// Goes down again after an unknown period within one outage: no new alert.
    fn resume_outage(&mut self, from: Option<RegionSet>, step: &mut MachineStep<'_>) {
        let since = self.state.outage.as_ref().map_or(step.now, |outage| outage.since);
        let mut change = StatusChange::new(MonitorStatus::Down, since);
        change.down_since = Some(since);
        change.down_from = from;
        change.reason = self.state.outage.as_ref().map(|outage| outage.reason.clone());
        self.state.scope_deadline = None;
        self.change_status(change, step);
    }

    fn change_scope(&mut self, from: Option<RegionSet>, step: &mut MachineStep<'_>) {
        if self.state.down_from != from {
            self.state.down_from = from;
            self.changed = true;
            step.out.push(MachineOutput::event(EventKind::ScopeChanged(from)));
        }
    }

    fn judge_latency(&mut self, cause: Option<DecisionCause>, step: &mut MachineStep<'_>) {
        match (self.state.status, self.slow_reading(step)) {
            (MonitorStatus::Up, Some(reading)) => {
                let mut change = StatusChange::new(MonitorStatus::Slow, reading.started);
                change.alert = Some(AlertKind::WentSlow);
                change.latency_ms = reading.latency_ms;
                change.threshold_ms = reading.threshold_ms;
                self.state.slow_since = Some(reading.started);
                self.change_status(change, step);
            }
            (MonitorStatus::Slow, None) => {
                let judged = self.settings.judged_latency_regions(step.mesh);
                let round = cause.filter(|(region, ..)| judged.contains(*region) || judged.is_empty());
                let reading = round.or_else(|| self.newest_reading(step));
                let since = round.map_or(step.now, |(_, started, _)| started);
                let mut change = StatusChange::new(MonitorStatus::Up, since);
                change.alert = Some(AlertKind::BackToNormal);
                change.latency_ms = reading.and_then(|(.., latency_ms)| latency_ms);
                change.threshold_ms = reading.and_then(|(region, ..)| self.settings.threshold(region));
                change.duration_ms = self.state.slow_since.take().map(|slow| duration_between(slow, since));
                self.change_status(change, step);
            }
            (MonitorStatus::Unknown | MonitorStatus::Up | MonitorStatus::Slow | MonitorStatus::Down, _) => {}
        }
    }

    /// Reading that makes the monitor slow: above the threshold of a region that is not stale, or degraded by the
    /// vendor.
    fn slow_reading(&self, step: &MachineStep<'_>) -> Option<SlowReading> {
        if let Some(started) = self.state.degraded_since.filter(|_| self.settings.kind == CheckKind::Component) {
            return Some(SlowReading { started, latency_ms: None, threshold_ms: None });
        }
        let slow = |region| self.slow_reading_of(region, step.mesh, step.now);
        let (reading, threshold) = self.settings.judged_latency_regions(step.mesh).iter().find_map(slow)?;
        Some(SlowReading {
            started: reading.started,
            latency_ms: Some(reading.latency_ms),
            threshold_ms: Some(threshold),
        })
    }

    /// Reading that makes a region slow, with its threshold; none if the region is stale.
    fn slow_reading_of(&self, region: Region, mesh: &Mesh, now: Timestamp) -> Option<(PassedReading, u32)> {
        // Agents reconnect one by one after a start: their absence makes nothing faster.
        let waits = self.state.status == MonitorStatus::Slow && now.since(self.taken_over_at) < RECONNECT_GRACE;
        let region_state = self.state.regions.get(region.index())?;
        let region_state = (region_state.status != RegionStatus::Unknown).then_some(region_state)?;
        region_state.readings.slow_reading(&self.settings, (!waits).then_some(mesh), region, now)
    }

    /// While slow: the slow regions, provided that other counted regions are seen as not slow.
    pub(super) fn slow_from(&self, mesh: &Mesh, now: Timestamp) -> Option<RegionSet> {
        if self.state.status != MonitorStatus::Slow {
            return None;
        }
        let judged = self.settings.judged_latency_regions(mesh);
        let slow: RegionSet =
            judged.iter().filter(|region| self.slow_reading_of(*region, mesh, now).is_some()).collect();
        let seen = self.recently_seen(RegionStatus::Up, now);
        let is_fast = |region: Region| seen.contains(region) && !slow.contains(region);
        (!slow.is_empty() && judged.iter().any(is_fast)).then_some(slow)
    }

    /// Response time and threshold of the reading that makes it slow, if it has numbers.
    pub(super) fn slow_figures(&self, step: &MachineStep<'_>) -> (Option<u32>, Option<u32>) {
        self.slow_reading(step).map_or((None, None), |reading| (reading.latency_ms, reading.threshold_ms))
    }

    /// Response time and threshold of the newest counted reading, if there is one.
    pub(super) fn newest_figures(&self, step: &MachineStep<'_>) -> (Option<u32>, Option<u32>) {
        let Some((region, _, latency_ms)) = self.newest_reading(step) else { return (None, None) };
        (latency_ms, self.settings.threshold(region))
    }

    fn newest_reading(&self, step: &MachineStep<'_>) -> Option<DecisionCause> {
        let readings = self.settings.judged_latency_regions(step.mesh).iter().filter_map(|region| {
            let reading = self.state.regions.get(region.index())?.readings.newest()?;
            Some((region, reading.started, Some(reading.latency_ms)))
        });
        readings.max_by_key(|(_, started, _)| *started)
    }

    /// While slow: time at which the next reading expires.
    pub(super) fn reading_expires_at(&self) -> Option<Timestamp> {
        let region_states = self.state.regions.iter().filter(|_| self.state.status == MonitorStatus::Slow);
        Some(region_states.filter_map(|state| state.readings.oldest()).min()? + self.settings.intervals(3))
    }

    /// Removes expired readings.
    pub(super) fn expire_readings(&mut self, step: &MachineStep<'_>) {
        if self.reading_expires_at().is_some_and(|at| step.now >= at) {
            let before = step.now - self.settings.intervals(3);
            self.state.regions.iter_mut().for_each(|state| state.readings.expire(before));
            self.changed = true;
        }
    }

    /// Returns true if a counted region's second round or confirmation is outstanding: due, or in progress.
    fn awaits_other_regions(&self, counted: RegionSet) -> bool {
        let due = self.state.suspicion.as_ref().map_or(RegionSet::NONE, |suspicion| suspicion.second_due);
        let under_way = self.state.rounds.iter().any(|round| {
            let confirms = round.confirmation.open_request.is_some() || round.confirmation.repeat_at.is_some();
            counted.contains(self.state_region(round.region))
                && round.held_outcome.is_none()
                && (round.reason == ProbeReason::Second || confirms)
        });
        under_way || !due.intersection(counted).is_empty()
    }

    /// Changes the status and emits one event for it.
    fn change_status(&mut self, mut change: StatusChange, step: &mut MachineStep<'_>) {
        self.changed = true;
        change.from = std::mem::replace(&mut self.state.status, change.to);
        if self.state.announced_before_window.is_some() {
            change.alert = None;
        }
        self.state.since = Some(change.since);
        self.state.down_from = change.down_from;
        self.skip_still_down(step.now);
        if self.settings.kind.has_downtime() {
            self.state.downtime.set_down(change.to == MonitorStatus::Down, change.since);
        }
        self.emit_change(change, step);
    }
}

/// Reading that makes a monitor slow.
struct SlowReading {
    started: Timestamp,
    latency_ms: Option<u32>,
    threshold_ms: Option<u32>,
}

/// Milliseconds from `start` to `end`; 0 if the order is reversed.
pub(super) fn duration_between(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.since(start)).unwrap_or(0)
}
