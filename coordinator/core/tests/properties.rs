//! Invariants for any sequence of observations, responses, edits, mesh changes and restarts.

#![allow(clippy::unwrap_used, reason = "a decode or encode error may panic")]

#[path = "story/acts.rs"]
mod acts;
#[path = "story/stage.rs"]
mod stage;

use std::collections::BTreeMap;

use acts::{Act, acts};
use parallax_core::check::CheckKind;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::{AlertKind, EventKind, MonitorStatus, ProbeResponse, RoundReport, StatusChange};
use parallax_core::flapping::STABLE_AFTER;
use parallax_core::heartbeat::PingKind;
use parallax_core::machine::{MachineOutput, MonitorMachine};
use parallax_core::observation::{Failure, Measurements, Observation, ProbeOutcome, RoundOutcome};
use parallax_core::time::{DAY, SECOND, Timestamp};
use parallax_core::vantage::{NetworkNo, Region, Vantage, VantageNo};
use proptest::prelude::*;
use stage::MachineStage;

/// Maximum size of a machine's stored state, in bytes.
const STATE_BYTES: usize = 24 * 1024;

fn watches() -> impl Strategy<Value = EffectiveSettings> {
    let kinds = prop_oneof![
        6 => Just(CheckKind::Http),
        1 => Just(CheckKind::Certificate),
        1 => Just(CheckKind::Domain),
        1 => Just(CheckKind::Component),
    ];
    let intervals = prop_oneof![Just(30_000_u32), Just(60_000), Just(300_000)];
    let pins = prop::option::weighted(0.15, 0..3_usize);
    (kinds, intervals, pins, any::<bool>(), prop::option::of(Just(500_u32))).prop_map(
        |(kind, interval, pinned, repeat, threshold)| {
            let mut settings = stage::effective_settings(kind, interval);
            settings.pinned = pinned.map(|at| Region::ALL[at]);
            settings.slow_threshold_ms = threshold;
            settings.confirmation = if repeat { ConfirmationPolicy::Repeat } else { ConfirmationPolicy::OtherNetwork };
            settings
        },
    )
}

fn meshes() -> impl Strategy<Value = Vec<Vantage>> {
    prop::collection::vec((0..3_usize, 0..3_u16), 2..6).prop_map(|vantages| {
        let vantage = |(no, (region, network)): (u16, (usize, u16))| Vantage {
            no: VantageNo(no),
            region: Region::ALL[region],
            network: NetworkNo(network),
            connected: true,
            quarantined: false,
            unfit: false,
        };
        (1..).zip(vantages).map(vantage).collect()
    })
}

/// The same sequence played twice, with the fast path and without, and everything emitted so far.
struct Play {
    fast: MachineStage,
    slow: MachineStage,
    now: Timestamp,
    asks: Vec<(u32, VantageNo, Timestamp)>,
    networks: BTreeMap<VantageNo, NetworkNo>,
    last: Option<Observation>,
    rounds: u64,
    status: MonitorStatus,
    since: Option<Timestamp>,
    in_outage: bool,
    /// Starts of rounds that failed on two networks (or twice on the only one), by region.
    agreed: BTreeMap<Region, Vec<Timestamp>>,
    /// Starts of passed rounds.
    passed: Vec<(Region, Timestamp)>,
}

impl Play {
    fn new(settings: &EffectiveSettings, vantages: Vec<Vantage>) -> Self {
        let now = Timestamp::from_millis(20_000 * DAY);
        let networks = vantages.iter().map(|vantage| (vantage.no, vantage.network)).collect();
        let (fast, out) = MachineStage::new(settings.clone(), vantages.clone(), now);
        let (mut slow, same) = MachineStage::new(settings.clone(), vantages, now);
        slow.fast = false;
        let mut play = Self {
            fast,
            slow,
            now,
            asks: Vec::new(),
            networks,
            last: None,
            rounds: 1,
            status: MonitorStatus::Unknown,
            since: None,
            in_outage: false,
            agreed: BTreeMap::new(),
            passed: Vec::new(),
        };
        play.hear(out, same);
        play
    }

    fn both(&mut self, act: impl Fn(&mut MachineStage, Timestamp) -> Vec<MachineOutput>) {
        let (out, same) = (act(&mut self.fast, self.now), act(&mut self.slow, self.now));
        self.hear(out, same);
    }

    fn hear(&mut self, out: Vec<MachineOutput>, same: Vec<MachineOutput>) {
        assert_eq!(out, same, "both paths emit the same");
        assert!(self.fast.machine.state() == self.slow.machine.state(), "both paths have the same state");
        let changes = out.iter().filter(
            |output| matches!(output, MachineOutput::Event(what) if matches!(**what, EventKind::StatusChanged(_))),
        );
        let changes = changes.count();
        for output in out {
            match output {
                MachineOutput::Probe(ask) => self.asks.push((ask.number, ask.vantage, self.now)),
                MachineOutput::Reading(seen) if seen.outcome == RoundOutcome::Passed => {
                    self.passed.push((seen.region, seen.started));
                }
                MachineOutput::Reading(_) => {}
                MachineOutput::Event(what) => match *what {
                    EventKind::StatusChanged(change) => self.changed(&change),
                    EventKind::Round(report) => self.reported(&report),
                    EventKind::ScopeChanged(_) => assert_eq!(self.status, MonitorStatus::Down),
                    EventKind::DeadlineExtended(moved) => assert!(moved.deadline > moved.before),
                    EventKind::FlappingEnded(steady) => {
                        assert!(steady.last_change + STABLE_AFTER <= self.now)
                    }
                    _ => panic!("no other events"),
                },
            }
        }
        assert!(changes <= 2, "at most two changes in a step");
        let view = self.fast.machine.view(&self.fast.mesh(), self.now);
        assert_eq!((view.status, view.since), (self.status, self.since), "nothing changes without an event");
        assert!(view.down_from.is_none() || view.status == MonitorStatus::Down);
        let bytes = postcard::to_allocvec(self.fast.machine.state()).unwrap().len();
        assert!(bytes < STATE_BYTES, "{bytes} bytes of state");
    }

    fn changed(&mut self, change: &StatusChange) {
        assert_eq!(change.from, self.status, "events must chain");
        if change.alert == Some(AlertKind::StillDown) {
            assert!(self.in_outage && change.to == MonitorStatus::Down && Some(change.since) == self.since);
            return;
        }
        assert_ne!(change.from, change.to, "an event must be a change");
        assert!(change.since <= self.now, "since must not be in the future");
        let paused = self.fast.machine.settings().paused;
        match (change.to, change.alert) {
            (MonitorStatus::Down, Some(AlertKind::WentDown)) => {
                assert!(!self.in_outage, "an outage begins once");
                self.in_outage = true;
                if self.fast.machine.settings().heartbeat.is_none() {
                    let apart = |starts: &Vec<Timestamp>| {
                        starts.iter().any(|one| starts.iter().any(|two| two.since(*one) >= 4 * SECOND))
                    };
                    assert!(self.agreed.values().any(apart), "two failed rounds on two networks: {change:?}");
                    assert!(!change.evidence.is_empty(), "evidence is required: {change:?}");
                }
                if let Some(from) = change.down_from {
                    let sees = |one: &(Region, Timestamp)| !from.contains(one.0) && one.1 >= change.since;
                    assert!(self.passed.iter().any(sees), "some region saw it up since: {change:?}");
                }
            }
            (MonitorStatus::Down, None) => {
                assert!(self.in_outage, "only a known outage continues without an alert")
            }
            (MonitorStatus::Up, Some(AlertKind::Recovered)) => {
                assert!(std::mem::take(&mut self.in_outage), "only an outage can end in a recovery");
            }
            (MonitorStatus::Up, Some(AlertKind::BackToNormal) | None) => assert!(!self.in_outage),
            (MonitorStatus::Slow, Some(AlertKind::WentSlow)) => assert!(!self.in_outage),
            (MonitorStatus::Unknown, None) => self.in_outage &= !paused,
            other => panic!("{other:?} is no change"),
        }
        self.status = change.to;
        self.since = Some(change.since);
    }

    fn reported(&mut self, report: &RoundReport) {
        if report.round_outcome == RoundOutcome::Passed {
            self.passed.push((report.region, report.started));
        }
        if report.round_outcome != RoundOutcome::Failed {
            return;
        }
        let settings = self.fast.machine.settings();
        let lane = if settings.kind.is_regional() { report.region } else { Region::Europe };
        let network = |vantage: &VantageNo| self.networks.get(vantage);
        let agreed = match &report.second {
            Some((second, ProbeOutcome::Failed(..))) => {
                assert!(
                    network(second) != network(&report.first_vantage)
                        || settings.confirmation == ConfirmationPolicy::Repeat,
                    "a second network agrees"
                );
                true
            }
            Some(_) | None => false,
        };
        let starts = self.agreed.entry(lane).or_default();
        if agreed {
            starts.push(report.started);
        } else {
            assert!(starts.len() >= 2, "only a region that is down fails unconfirmed");
        }
    }

    fn wait(&mut self, millis: i64) {
        let until = self.now + millis;
        let mut at_once = 0;
        while let Some(at) = self.fast.next_timeout().filter(|at| *at <= until) {
            at_once = if at <= self.now { at_once + 1 } else { 0 };
            assert!(at_once < 8, "the timeout at {at} makes progress");
            self.now = self.now.max(at);
            self.both(|stage, now| stage.step(now, MonitorMachine::handle_timeout));
        }
        self.now = until;
    }

    fn vantage(&self, index: usize) -> Option<Vantage> {
        self.fast.vantages.get(index).copied()
    }

    fn set_vantage(&mut self, index: usize, set: impl Fn(&mut Vantage)) {
        for stage in [&mut self.fast, &mut self.slow] {
            stage.vantages.get_mut(index).into_iter().for_each(&set);
        }
        self.both(MachineStage::mesh_changed);
    }

    fn seen(&self, vantage: Vantage, round: Option<u64>, started: Timestamp, outcome: ProbeOutcome) -> Observation {
        let ended = if round.is_some() { started } else { self.now };
        let revision = self.fast.machine.settings().revision;
        let Vantage { no, region, network, .. } = vantage;
        Observation { revision, region, vantage: no, network, round, started, ended, outcome }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Wait(millis) => self.wait(millis),
            Act::Round { vantage, outcome, age } => {
                let Some(vantage) = self.vantage(vantage).filter(|vantage| vantage.connected) else { return };
                let started = self.now - age;
                let interval = self.fast.machine.settings().interval_ms;
                let due = started.as_millis().unsigned_abs() / u64::from(interval);
                self.rounds = due.max(self.rounds + 1).min(due + 4);
                let seen = self.seen(vantage, Some(self.rounds), started, outcome);
                self.last = Some(seen.clone());
                self.both(|stage, now| stage.observe(seen.clone(), now));
            }
            Act::Again => {
                let Some(mut seen) = self.last.clone() else { return };
                // A check that was pending may have ended by now.
                if seen.outcome == ProbeOutcome::Pending {
                    seen.outcome = ProbeOutcome::Failed(Measurements::default(), Failure::Reset);
                    seen.ended = self.now;
                }
                self.both(|stage, now| stage.observe(seen.clone(), now));
            }
            Act::Answer { which, outcome } => {
                let Some((number, no, reason)) = self.asks.get(which).copied() else { return };
                if outcome != Some(ProbeOutcome::Pending) {
                    self.asks.remove(which);
                }
                let vantage = self.fast.vantages.iter().copied().find(|vantage| vantage.no == no);
                let answer = match (vantage, outcome) {
                    (Some(vantage), Some(outcome)) if vantage.connected => {
                        ProbeResponse::Observed(self.seen(vantage, None, reason, outcome))
                    }
                    _ => ProbeResponse::NoResponse,
                };
                self.both(|stage, now| stage.respond(number, answer.clone(), now));
            }
            Act::Connect(index, on) => self.set_vantage(index, |vantage| vantage.connected = on),
            Act::Quarantine(index, on) => self.set_vantage(index, |vantage| vantage.quarantined = on),
            Act::Revoke(index) => {
                for stage in [&mut self.fast, &mut self.slow] {
                    if index < stage.vantages.len() && stage.vantages.len() > 2 {
                        stage.vantages.remove(index);
                    }
                }
                self.both(MachineStage::mesh_changed);
            }
            Act::Restart(away) => {
                let connected: Vec<bool> = self.fast.vantages.iter().map(|vantage| vantage.connected).collect();
                let (status, stopped) = (self.status, self.now);
                for stage in [&mut self.fast, &mut self.slow] {
                    stage.stop(stopped);
                    stage.vantages.iter_mut().for_each(|vantage| vantage.connected = false);
                }
                self.asks.clear();
                self.now = self.now + away;
                self.both(MachineStage::start);
                // The passing of time alone may have changed the status (a reading expired), and an outage that was
                // waiting for its scope may have lost what it waited for.
                let may = away > 0 || self.status == MonitorStatus::Down;
                assert!(self.status == status || may, "a restart emits nothing");
                self.wait(1500);
                for (index, on) in connected.into_iter().enumerate() {
                    self.set_vantage(index, |vantage| vantage.connected = on);
                }
            }
            Act::Threshold(threshold) => {
                self.both(|stage, now| stage.edit(now, |settings| settings.slow_threshold_ms = threshold))
            }
            Act::Uptime(set) => self.both(|stage, now| stage.edit(now, |settings| settings.uptime_regions = set)),
            Act::Retarget => self.both(|stage, now| stage.edit(now, |settings| settings.revision += 1)),
            Act::Pause(paused) => self.both(|stage, now| stage.edit(now, |settings| settings.paused = paused)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_keeps_the_promises(
        settings in watches(),
        vantages in meshes(),
        acts in prop::collection::vec(acts(), 1..120),
    ) {
        let mut play = Play::new(&settings, vantages);
        for act in acts {
            play.act(act);
        }
        play.wait(3_600 * SECOND);
    }

    #[test]
    fn any_pings_keep_the_promises(
        acts in prop::collection::vec((0..5_usize, 0..4_000_000_i64), 1..60),
    ) {
        let mut settings = stage::effective_settings(CheckKind::Heartbeat, 0);
        settings.heartbeat = Some((3_600 * SECOND, 300 * SECOND));
        let mut play = Play::new(&settings, Vec::new());
        for (kind, wait) in acts {
            let beat = match kind {
                0 => PingKind::Started,
                1 => PingKind::Failed(Some(2)),
                _ => PingKind::Succeeded,
            };
            if kind == 4 {
                play.act(Act::Restart(wait));
            } else {
                play.both(|stage, now| stage.ping(beat, now));
                play.wait(wait);
            }
        }
    }
}
