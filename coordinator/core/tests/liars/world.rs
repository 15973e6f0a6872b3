//! Simulated service of six monitors: vantages that keep their schedules and respond to probe requests, machines, and
//! the quarantine between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parallax_core::assign::{self, ScheduleShare, ScheduledMonitor};
use parallax_core::check::{Check, CheckKind, TcpCheck};
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::{AlertKind, EventKind, MonitorStatus, ProbeResponse};
use parallax_core::id::MonitorId;
use parallax_core::machine::{MachineOutput, MachineStep, MonitorMachine};
use parallax_core::observation::{CheckPhase, Failure, Measurements, Observation, ProbeOutcome};
use parallax_core::quarantine::{Quarantine, QuarantineChange};
use parallax_core::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};
use parallax_core::vantage::{Mesh, NetworkNo, Region, RegionSet, Vantage, VantageNo};

use super::reports::assert_consistent;
use super::seeded_random::SeededRandom;
use super::vantages::{account, target, vantages};

/// Length of a day: enough for six outages of every monitor.
const END: i64 = 8 * HOUR;
const MONITORS: usize = 6;
/// Number of accounts: one has the first three monitors, and three have one of the others each.
pub(super) const ACCOUNTS: usize = 4;
/// Milliseconds within which an outage must be reported.
const REPORTED: i64 = 6 * MINUTE;

/// Behaviour of the lying vantage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    Passes,
    Fails,
    /// It is honest, but one customer has sites that refuse it alone.
    Shunned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    Refuses,
    Hangs,
}

enum Next {
    Due(usize, usize, u64, u64),
    Result(usize, Observation),
    Question(usize, VantageNo, u32),
    Answer(usize, u32, Observation),
    Target(usize, Mood),
}

struct Monitor {
    machine: MonitorMachine,
    mood: Mood,
    /// Start of the target's present state; `is_reported` is set once it was seen as down since.
    since: i64,
    is_reported: bool,
}

pub(crate) struct SimulatedService {
    chance: SeededRandom,
    now: i64,
    queue: BTreeMap<(i64, u64), Next>,
    count: u64,
    vantages: Vec<Vantage>,
    liar: Option<(VantageNo, Lie)>,
    monitors: Vec<Monitor>,
    quarantine: Quarantine,
    mesh: Mesh,
    /// Incremented whenever the shares change.
    plan: u64,
    pub(crate) is_liar_found: bool,
    /// Milliseconds from the start of an outage to its alert.
    pub(crate) delays: Vec<i64>,
}

impl SimulatedService {
    pub(crate) fn simulate(seed: u64, lie: Option<Lie>) -> Self {
        let mut chance = SeededRandom::new(seed);
        let vantages = vantages(&mut chance);
        let liar = lie.map(|lie| (vantages[chance.index(vantages.len())].no, lie));
        let mut world = Self {
            now: 20_000 * DAY,
            queue: BTreeMap::new(),
            count: 0,
            mesh: Mesh::new(vantages.iter().copied()),
            vantages,
            liar,
            monitors: Vec::new(),
            quarantine: Quarantine::default(),
            plan: 0,
            is_liar_found: false,
            delays: Vec::new(),
            chance,
        };
        let end = world.now + END;
        for index in 0..MONITORS {
            let (settings, mut out) = (world.settings(index), Vec::new());
            let mut step = MachineStep { now: world.moment(), mesh: &world.mesh, out: &mut out };
            let machine = MonitorMachine::new(settings, &mut step);
            let since = world.now;
            world.monitors.push(Monitor { machine, mood: Mood::Well, since, is_reported: true });
            world.handle_outputs(index, out);
        }
        world.outages();
        world.assign_shares();
        while world.turn(end) {}
        world
    }

    /// Schedules six outages about an hour apart, of one monitor or of all at once.
    fn outages(&mut self) {
        for turn in 0..6 {
            let whole = self.chance.one_in(2);
            let at = self.now + turn * HOUR + self.chance.within(15 * MINUTE, 20 * MINUTE);
            let only = self.chance.index(MONITORS);
            for index in (0..MONITORS).filter(|index| whole || *index == only) {
                let mood = self.chance.pick(&[Mood::Refuses, Mood::Refuses, Mood::Hangs]);
                let begins = at + self.chance.within(0, 2 * SECOND);
                let ends = begins + self.chance.within(10 * MINUTE, 25 * MINUTE);
                self.schedule(begins, Next::Target(index, mood));
                self.schedule(ends, Next::Target(index, Mood::Well));
            }
        }
    }

    fn settings(&mut self, index: usize) -> EffectiveSettings {
        EffectiveSettings {
            monitor: MonitorId::from_u128(self.chance.next().into()),
            account: account(index),
            revision: 1,
            kind: CheckKind::Tcp,
            interval_ms: self.chance.pick(&[30_000, 60_000]),
            pinned: self.chance.one_in(4).then(|| self.pin()).flatten(),
            uptime_regions: None,
            latency_regions: RegionSet::only(Region::Europe),
            slow_threshold_ms: (index == 0).then_some(500),
            slow_thresholds: BTreeMap::new(),
            heartbeat: None,
            confirmation: ConfirmationPolicy::OtherNetwork,
            repeat_minutes: None,
            paused: false,
            acknowledged_outage: None,
        }
    }

    /// Returns a region with two networks other than the liar's.
    fn pin(&self) -> Option<Region> {
        let lies = self.liar.map(|(liar, _)| self.mesh.vantage(liar).unwrap().network);
        let networks = |region: &Region| -> BTreeSet<NetworkNo> {
            let there = self.vantages.iter().filter(|vantage| vantage.region == *region);
            there.map(|vantage| vantage.network).filter(|network| Some(*network) != lies).collect()
        };
        Region::ALL.into_iter().find(|region| networks(region).len() >= 2)
    }

    fn moment(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    fn schedule(&mut self, at: i64, next: Next) {
        self.count += 1;
        self.queue.insert((at.max(self.now), self.count), next);
    }

    fn turn(&mut self, end: i64) -> bool {
        let deadlines =
            self.monitors.iter().enumerate().filter_map(|(index, monitor)| {
                Some((monitor.machine.poll_timeout()?.as_millis().max(self.now), index))
            });
        let machine = deadlines.min();
        let queued = self.queue.keys().next().map_or(end, |(at, _)| *at);
        let calm = self.quarantine.poll_timeout().map_or(end, Timestamp::as_millis);
        let at = machine.map_or(end, |(at, _)| at).min(queued).min(calm.max(self.now));
        if at >= end {
            return false;
        }
        self.now = at;
        if calm <= at {
            let free = self.quarantine.handle_timeout(self.moment()).into_iter();
            self.apply_quarantine_changes(free.map(|vantage| (vantage, QuarantineChange::Released)).collect());
        } else if let Some((_, index)) = machine.filter(|(due, _)| *due == at) {
            self.step(index, MonitorMachine::handle_timeout);
        } else if let Some((_, next)) = self.queue.pop_first() {
            self.handle(next);
        }
        true
    }

    fn handle(&mut self, next: Next) {
        match next {
            Next::Due(index, vantage, plan, round) if plan == self.plan => {
                self.schedule_next_round(index, vantage);
                for seen in self.check(index, self.vantages[vantage], Some(round)) {
                    let at = seen.ended.as_millis() + self.chance.span(10, 400);
                    self.schedule(at, Next::Result(index, seen));
                }
            }
            Next::Due(..) => {}
            Next::Result(index, seen) => self.result(index, seen),
            Next::Question(index, vantage, number) => {
                let vantage = *self.mesh.vantage(vantage).unwrap();
                for seen in self.check(index, vantage, None) {
                    let at = seen.ended.as_millis() + self.chance.span(10, 400);
                    self.schedule(at, Next::Answer(index, number, seen));
                }
            }
            Next::Answer(index, number, seen) => {
                self.step(index, |machine, step| machine.handle_response(number, ProbeResponse::Observed(seen), step));
            }
            Next::Target(index, mood) => {
                let monitor = &mut self.monitors[index];
                let was_seen = monitor.is_reported || monitor.mood == Mood::Well;
                assert!(
                    was_seen,
                    "monitor {index} ({:?}): an outage of {} ms was not reported; vantages {:?}, liar {:?}",
                    monitor.machine.settings().pinned,
                    self.now - monitor.since,
                    self.vantages.iter().map(|it| (it.no, it.region, it.network)).collect::<Vec<_>>(),
                    self.liar
                );
                // A monitor that is still down because of a vantage that fails every check counts as reported.
                let is_down = monitor.machine.status() == MonitorStatus::Down;
                (monitor.mood, monitor.since, monitor.is_reported) = (mood, self.now, is_down);
            }
        }
    }

    fn result(&mut self, index: usize, seen: Observation) {
        let (now, vantage) = (self.moment(), seen.vantage);
        if self.mesh.vantage(vantage).unwrap().quarantined {
            let view = self.monitors[index].machine.view(&self.mesh, now);
            let agrees = view.agrees(&seen, &self.mesh);
            let turn =
                agrees.and_then(|agrees| self.quarantine.apply_shadow_round(vantage, agrees, target(index), now));
            self.apply_quarantine_changes(turn.map(|turn| (vantage, turn)).into_iter().collect());
            return;
        }
        match self.monitors[index].machine.handle_plain_pass(&seen, now) {
            Some(_) => {}
            None => self.step(index, |machine, step| machine.handle_observation(seen, step)),
        }
    }

    fn step(&mut self, index: usize, act: impl FnOnce(&mut MonitorMachine, &mut MachineStep<'_>)) {
        let mut out = Vec::new();
        let mut step = MachineStep { now: self.moment(), mesh: &self.mesh, out: &mut out };
        act(&mut self.monitors[index].machine, &mut step);
        self.handle_outputs(index, out);
    }

    fn handle_outputs(&mut self, index: usize, out: Vec<MachineOutput>) {
        let now = self.moment();
        for output in out {
            match output {
                MachineOutput::Probe(ask) => {
                    let at = self.now + self.chance.span(10, 400);
                    self.schedule(at, Next::Question(index, ask.vantage, ask.number));
                }
                MachineOutput::Reading(_) => {}
                MachineOutput::Event(what) => match *what {
                    EventKind::Round(report) => {
                        assert_consistent(&report);
                        let turns = self.quarantine.apply_round(&report, target(index), &self.mesh, now);
                        self.apply_quarantine_changes(turns);
                    }
                    EventKind::StatusChanged(change) if change.alert == Some(AlertKind::WentDown) => {
                        self.check_alert(index)
                    }
                    EventKind::StatusChanged(change) if change.alert == Some(AlertKind::Recovered) => {
                        self.check_recovery(index);
                    }
                    _ => {}
                },
            }
        }
    }

    /// Handles a went-down alert: the target must be down, or have been until a moment ago.
    fn check_alert(&mut self, index: usize) {
        let (now, monitor) = (self.now, &mut self.monitors[index]);
        let after = now - monitor.since;
        if monitor.mood == Mood::Well {
            assert!(after < 30 * SECOND, "monitor {index}: a false alert");
        } else if !std::mem::replace(&mut monitor.is_reported, true) {
            assert!(after < REPORTED, "monitor {index}: reported after {after} ms");
            self.delays.push(after);
        }
    }

    /// Handles a recovery: the target must be up. If only two networks work, a lying one can report it too early.
    fn check_recovery(&self, index: usize) {
        let monitor = &self.monitors[index];
        let since = self.now - monitor.since;
        let is_well = monitor.mood == Mood::Well || since < 30 * SECOND;
        assert!(
            is_well || !self.is_decided_by_three(index),
            "monitor {index} ({:?}): recovered {since} ms after it went down; vantages {:?}, liar {:?}",
            monitor.machine.settings().pinned,
            self.mesh,
            self.liar
        );
    }

    /// Returns true if two honest networks other than the liar's check the monitor, in its own region if it is pinned.
    fn is_decided_by_three(&self, index: usize) -> bool {
        let pinned = self.monitors[index].machine.settings().pinned;
        let lies = self.liar.map(|(liar, _)| self.mesh.vantage(liar).unwrap().network);
        let there = self.mesh.confirmers().filter(|vantage| pinned.is_none_or(|pinned| vantage.region == pinned));
        let honest: BTreeSet<NetworkNo> =
            there.map(|vantage| vantage.network).filter(|network| Some(*network) != lies).collect();
        honest.len() >= 2
    }

    fn apply_quarantine_changes(&mut self, turns: Vec<(VantageNo, QuarantineChange)>) {
        if turns.is_empty() {
            return;
        }
        for (vantage, turn) in turns {
            if let QuarantineChange::Quarantined(found) = turn {
                let is_liar = self.liar.is_some_and(|(liar, lie)| liar == vantage && lie != Lie::Shunned);
                assert!(is_liar, "an honest vantage is quarantined: {vantage:?}, {found:?}");
                self.is_liar_found = true;
            }
        }
        let held = self.quarantine.suspected().quarantined;
        assert!(held.len() * 3 <= self.vantages.len(), "more than a third are quarantined");
        let laid =
            self.vantages.iter().map(|vantage| Vantage { quarantined: held.contains_key(&vantage.no), ..*vantage });
        let before = std::mem::replace(&mut self.mesh, Mesh::new(laid.collect::<Vec<_>>()));
        if before.available_regions() != self.mesh.available_regions() {
            for index in 0..self.monitors.len() {
                self.step(index, MonitorMachine::handle_mesh);
            }
        }
        self.assign_shares();
    }

    fn assign_shares(&mut self) {
        self.plan += 1;
        for index in 0..self.monitors.len() {
            for vantage in 0..self.vantages.len() {
                self.schedule_next_round(index, vantage);
            }
        }
    }

    fn share(&self, index: usize, vantage: usize) -> Option<ScheduleShare> {
        let check = Check::Tcp(TcpCheck { host: format!("{index}.example"), port: 443 });
        let scheduled = ScheduledMonitor::new(self.monitors[index].machine.settings(), 1, &Arc::new(check))?;
        assign::share(&scheduled, &self.mesh, self.vantages[vantage].no)
    }

    fn schedule_next_round(&mut self, index: usize, vantage: usize) {
        let Some(share) = self.share(index, vantage) else { return };
        let (interval, every) = (i64::from(share.interval_ms), i64::from(share.every));
        let mut round = (self.now - i64::from(share.offset_ms)).div_euclid(interval) + 1;
        while round.rem_euclid(every) != i64::from(share.from) {
            round += 1;
        }
        let at = round * interval + i64::from(share.offset_ms);
        self.schedule(at, Next::Due(index, vantage, self.plan, round.unsigned_abs()));
    }

    /// Results of a vantage that runs the check now, including the pending report.
    fn check(&self, index: usize, vantage: Vantage, round: Option<u64>) -> Vec<Observation> {
        let started = self.moment();
        let seen = |outcome, after| Observation {
            revision: 1,
            region: vantage.region,
            vantage: vantage.no,
            network: vantage.network,
            round,
            started,
            ended: started + after,
            outcome,
        };
        let mood = match self.liar.filter(|(liar, _)| *liar == vantage.no) {
            Some((_, Lie::Passes)) => Mood::Well,
            Some((_, Lie::Fails)) => Mood::Refuses,
            Some((_, Lie::Shunned)) if account(index) == account(0) => Mood::Refuses,
            Some((_, Lie::Shunned)) | None => self.monitors[index].mood,
        };
        let facts = Measurements::default();
        match mood {
            Mood::Well => {
                let facts = Measurements { latency_ms: Some(80), ..facts };
                vec![seen(ProbeOutcome::Passed(facts), 80)]
            }
            Mood::Refuses => vec![seen(ProbeOutcome::Failed(facts, Failure::Refused), 40)],
            Mood::Hangs => vec![
                seen(ProbeOutcome::Pending, 3 * SECOND),
                seen(ProbeOutcome::Failed(facts, Failure::Timeout(CheckPhase::Connect)), 10 * SECOND),
            ],
        }
    }
}
