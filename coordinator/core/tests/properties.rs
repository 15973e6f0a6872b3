//! Invariants for any sequence of observations, responses, edits, mesh changes and restarts.

#![allow(clippy::unwrap_used, reason = "a decode or encode error may panic")]

#[path = "cast/stage.rs"]
mod stage;

use std::collections::BTreeMap;

use parallax_core::check::CheckKind;
use parallax_core::event::{AlertKind, Answer, Change, RoundReport, Status, What};
use parallax_core::flapping::STEADY_AFTER;
use parallax_core::heartbeat::Beat;
use parallax_core::machine::{Machine, Output};
use parallax_core::observation::{Facts, Failure, Observation, Outcome, OwnFault, Word};
use parallax_core::place::{NetworkNo, Place, PlaceNo, Region, RegionSet};
use parallax_core::time::{DAY, SECOND, Timestamp};
use parallax_core::watch::{Confirmation, Watch};
use proptest::prelude::*;
use stage::Stage;

/// Maximum size of a machine's stored state, in bytes.
const STATE_BYTES: usize = 24 * 1024;

#[derive(Debug, Clone)]
enum Act {
    Wait(i64),
    Round { place: usize, outcome: Outcome, age: i64 },
    Again,
    Answer { which: usize, outcome: Option<Outcome> },
    Connect(usize, bool),
    Quarantine(usize, bool),
    Revoke(usize),
    Restart(i64),
    Threshold(Option<u32>),
    Uptime(Option<RegionSet>),
    Retarget,
    Pause(bool),
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let passed = |latency| Outcome::Passed(Facts { latency_ms: Some(latency), ..Facts::default() });
    prop_oneof![
        5 => Just(Outcome::Failed(Facts::default(), Failure::Refused)),
        2 => prop_oneof![Just(40_u32), Just(900)].prop_map(passed),
        1 => (any::<bool>(), 0..3_i64).prop_map(|(degraded, expires)| Outcome::Passed(Facts {
            degraded,
            expires_at: Some(Timestamp::from_millis(expires)),
            ..Facts::default()
        })),
        2 => Just(Outcome::Pending),
        1 => Just(Outcome::Inconclusive(OwnFault::NoRoute)),
    ]
}

fn acts() -> impl Strategy<Value = Act> {
    let set = prop::collection::vec(0..3_usize, 1..3)
        .prop_map(|regions| regions.into_iter().map(|at| Region::ALL[at]).collect::<RegionSet>());
    prop_oneof![
        8 => prop_oneof![0..6000_i64, Just(5000), 0..90_000_i64].prop_map(Act::Wait),
        1 => (100_000..700_000_i64).prop_map(Act::Wait),
        12 => (0..6_usize, outcomes(), prop_oneof![6 => Just(0_i64), 1 => -100_000..200_000_i64])
            .prop_map(|(place, outcome, age)| Act::Round { place, outcome, age }),
        1 => Just(Act::Again),
        20 => (0..4_usize, prop::option::weighted(0.9, outcomes()))
            .prop_map(|(which, outcome)| Act::Answer { which, outcome }),
        2 => (0..6_usize, prop::bool::weighted(0.7)).prop_map(|(place, on)| Act::Connect(place, on)),
        1 => (0..6_usize, any::<bool>()).prop_map(|(place, on)| Act::Quarantine(place, on)),
        1 => (0..40_usize).prop_map(Act::Revoke),
        2 => prop_oneof![Just(0), 0..30_000_i64].prop_map(Act::Restart),
        1 => prop::option::of(prop_oneof![Just(30_u32), Just(500), Just(1000)]).prop_map(Act::Threshold),
        1 => prop::option::of(set).prop_map(Act::Uptime),
        1 => Just(Act::Retarget),
        1 => prop::bool::weighted(0.3).prop_map(Act::Pause),
    ]
}

fn watches() -> impl Strategy<Value = Watch> {
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
            let mut watch = stage::watch(kind, interval);
            watch.pinned = pinned.map(|at| Region::ALL[at]);
            watch.slow_threshold_ms = threshold;
            watch.confirmation = if repeat { Confirmation::Repeat } else { Confirmation::OtherNetwork };
            watch
        },
    )
}

fn meshes() -> impl Strategy<Value = Vec<Place>> {
    prop::collection::vec((0..3_usize, 0..3_u16), 2..6).prop_map(|places| {
        let place = |(no, (region, network)): (u16, (usize, u16))| Place {
            no: PlaceNo(no),
            region: Region::ALL[region],
            network: NetworkNo(network),
            connected: true,
            quarantined: false,
            unfit: false,
        };
        (1..).zip(places).map(place).collect()
    })
}

/// The same sequence played twice, with the fast path and without, and everything emitted so far.
struct Play {
    fast: Stage,
    slow: Stage,
    now: Timestamp,
    asks: Vec<(u32, PlaceNo, Timestamp)>,
    networks: BTreeMap<PlaceNo, NetworkNo>,
    last: Option<Observation>,
    rounds: u64,
    status: Status,
    since: Option<Timestamp>,
    in_outage: bool,
    /// Starts of rounds that failed on two networks (or twice on the only one), by region.
    agreed: BTreeMap<Region, Vec<Timestamp>>,
    /// Starts of passed rounds.
    passed: Vec<(Region, Timestamp)>,
}

impl Play {
    fn new(watch: &Watch, places: Vec<Place>) -> Self {
        let now = Timestamp::from_millis(20_000 * DAY);
        let networks = places.iter().map(|place| (place.no, place.network)).collect();
        let (fast, out) = Stage::new(watch.clone(), places.clone(), now);
        let (mut slow, same) = Stage::new(watch.clone(), places, now);
        slow.fast = false;
        let mut play = Self {
            fast,
            slow,
            now,
            asks: Vec::new(),
            networks,
            last: None,
            rounds: 1,
            status: Status::Unknown,
            since: None,
            in_outage: false,
            agreed: BTreeMap::new(),
            passed: Vec::new(),
        };
        play.hear(out, same);
        play
    }

    fn both(&mut self, act: impl Fn(&mut Stage, Timestamp) -> Vec<Output>) {
        let (out, same) = (act(&mut self.fast, self.now), act(&mut self.slow, self.now));
        self.hear(out, same);
    }

    fn hear(&mut self, out: Vec<Output>, same: Vec<Output>) {
        assert_eq!(out, same, "both paths emit the same");
        assert!(self.fast.machine.state() == self.slow.machine.state(), "both paths have the same state");
        let changes = out
            .iter()
            .filter(|output| matches!(output, Output::Happened(what) if matches!(**what, What::Changed(_))));
        let changes = changes.count();
        for output in out {
            match output {
                Output::Ask(ask) => self.asks.push((ask.number, ask.place, self.now)),
                Output::Reading(seen) if seen.word == Word::Passed => {
                    self.passed.push((seen.region, seen.started));
                }
                Output::Reading(_) => {}
                Output::Happened(what) => match *what {
                    What::Changed(change) => self.changed(&change),
                    What::Round(report) => self.reported(&report),
                    What::ScopeChanged(_) => assert_eq!(self.status, Status::Down),
                    What::DeadlineExtended(moved) => assert!(moved.deadline > moved.before),
                    What::Steady(steady) => assert!(steady.last + STEADY_AFTER <= self.now),
                    _ => panic!("no other events"),
                },
            }
        }
        assert!(changes <= 2, "at most two changes in a step");
        let view = self.fast.machine.view(&self.fast.mesh(), self.now);
        assert_eq!((view.status, view.since), (self.status, self.since), "nothing changes without an event");
        assert!(view.down_from.is_none() || view.status == Status::Down);
        let bytes = postcard::to_allocvec(self.fast.machine.state()).unwrap().len();
        assert!(bytes < STATE_BYTES, "{bytes} bytes of state");
    }

    fn changed(&mut self, change: &Change) {
        assert_eq!(change.from, self.status, "events must chain");
        if change.alert == Some(AlertKind::StillDown) {
            assert!(self.in_outage && change.to == Status::Down && Some(change.since) == self.since);
            return;
        }
        assert_ne!(change.from, change.to, "an event must be a change");
        assert!(change.since <= self.now, "since must not be in the future");
        let paused = self.fast.machine.watch().paused;
        match (change.to, change.alert) {
            (Status::Down, Some(AlertKind::WentDown)) => {
                assert!(!self.in_outage, "an outage begins once");
                self.in_outage = true;
                if self.fast.machine.watch().beat.is_none() {
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
            (Status::Down, None) => assert!(self.in_outage, "only a known outage continues without an alert"),
            (Status::Up, Some(AlertKind::Recovered)) => {
                assert!(std::mem::take(&mut self.in_outage), "only an outage can end in a recovery");
            }
            (Status::Up, Some(AlertKind::BackToNormal) | None) => assert!(!self.in_outage),
            (Status::Slow, Some(AlertKind::WentSlow)) => assert!(!self.in_outage),
            (Status::Unknown, None) => self.in_outage &= !paused,
            other => panic!("{other:?} is no change"),
        }
        self.status = change.to;
        self.since = Some(change.since);
    }

    fn reported(&mut self, report: &RoundReport) {
        if report.word == Word::Passed {
            self.passed.push((report.region, report.started));
        }
        if report.word != Word::Failed {
            return;
        }
        let watch = self.fast.machine.watch();
        let lane = if watch.kind.is_regional() { report.region } else { Region::Europe };
        let network = |place: &PlaceNo| self.networks.get(place);
        let agreed = match &report.second {
            Some((second, Outcome::Failed(..))) => {
                assert!(
                    network(second) != network(&report.first) || watch.confirmation == Confirmation::Repeat,
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
            self.both(|stage, now| stage.step(now, Machine::handle_timeout));
        }
        self.now = until;
    }

    fn place(&self, index: usize) -> Option<Place> {
        self.fast.places.get(index).copied()
    }

    fn set_place(&mut self, index: usize, set: impl Fn(&mut Place)) {
        for stage in [&mut self.fast, &mut self.slow] {
            stage.places.get_mut(index).into_iter().for_each(&set);
        }
        self.both(Stage::mesh_changed);
    }

    fn seen(&self, place: Place, round: Option<u64>, started: Timestamp, outcome: Outcome) -> Observation {
        let ended = if round.is_some() { started } else { self.now };
        let revision = self.fast.machine.watch().revision;
        let Place { no, region, network, .. } = place;
        Observation { revision, region, place: no, network, round, started, ended, outcome }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Wait(millis) => self.wait(millis),
            Act::Round { place, outcome, age } => {
                let Some(place) = self.place(place).filter(|place| place.connected) else { return };
                let started = self.now - age;
                let interval = self.fast.machine.watch().interval_ms;
                let due = started.as_millis().unsigned_abs() / u64::from(interval);
                self.rounds = due.max(self.rounds + 1).min(due + 4);
                let seen = self.seen(place, Some(self.rounds), started, outcome);
                self.last = Some(seen.clone());
                self.both(|stage, now| stage.observe(seen.clone(), now));
            }
            Act::Again => {
                let Some(mut seen) = self.last.clone() else { return };
                // A check that was pending may have ended by now.
                if seen.outcome == Outcome::Pending {
                    seen.outcome = Outcome::Failed(Facts::default(), Failure::Reset);
                    seen.ended = self.now;
                }
                self.both(|stage, now| stage.observe(seen.clone(), now));
            }
            Act::Answer { which, outcome } => {
                let Some((number, no, asked)) = self.asks.get(which).copied() else { return };
                if outcome != Some(Outcome::Pending) {
                    self.asks.remove(which);
                }
                let place = self.fast.places.iter().copied().find(|place| place.no == no);
                let answer = match (place, outcome) {
                    (Some(place), Some(outcome)) if place.connected => {
                        Answer::Seen(self.seen(place, None, asked, outcome))
                    }
                    _ => Answer::Nothing,
                };
                self.both(|stage, now| stage.answer(number, answer.clone(), now));
            }
            Act::Connect(index, on) => self.set_place(index, |place| place.connected = on),
            Act::Quarantine(index, on) => self.set_place(index, |place| place.quarantined = on),
            Act::Revoke(index) => {
                for stage in [&mut self.fast, &mut self.slow] {
                    if index < stage.places.len() && stage.places.len() > 2 {
                        stage.places.remove(index);
                    }
                }
                self.both(Stage::mesh_changed);
            }
            Act::Restart(away) => {
                let connected: Vec<bool> = self.fast.places.iter().map(|place| place.connected).collect();
                let (status, stopped) = (self.status, self.now);
                for stage in [&mut self.fast, &mut self.slow] {
                    stage.stop(stopped);
                    stage.places.iter_mut().for_each(|place| place.connected = false);
                }
                self.asks.clear();
                self.now = self.now + away;
                self.both(Stage::start);
                // The passing of time alone may have changed the status (a reading expired), and an outage that was
                // waiting for its scope may have lost what it waited for.
                let may = away > 0 || self.status == Status::Down;
                assert!(self.status == status || may, "a restart emits nothing");
                self.wait(1500);
                for (index, on) in connected.into_iter().enumerate() {
                    self.set_place(index, |place| place.connected = on);
                }
            }
            Act::Threshold(threshold) => {
                self.both(|stage, now| stage.edit(now, |watch| watch.slow_threshold_ms = threshold))
            }
            Act::Uptime(set) => self.both(|stage, now| stage.edit(now, |watch| watch.uptime_regions = set)),
            Act::Retarget => self.both(|stage, now| stage.edit(now, |watch| watch.revision += 1)),
            Act::Pause(paused) => self.both(|stage, now| stage.edit(now, |watch| watch.paused = paused)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_keeps_the_promises(
        watch in watches(),
        places in meshes(),
        acts in prop::collection::vec(acts(), 1..120),
    ) {
        let mut play = Play::new(&watch, places);
        for act in acts {
            play.act(act);
        }
        play.wait(3_600 * SECOND);
    }

    #[test]
    fn any_pings_keep_the_promises(
        acts in prop::collection::vec((0..5_usize, 0..4_000_000_i64), 1..60),
    ) {
        let mut watch = stage::watch(CheckKind::Heartbeat, 0);
        watch.beat = Some((3_600 * SECOND, 300 * SECOND));
        let mut play = Play::new(&watch, Vec::new());
        for (kind, wait) in acts {
            let beat = match kind {
                0 => Beat::Started,
                1 => Beat::Failed(Some(2)),
                _ => Beat::Ran,
            };
            if kind == 4 {
                play.act(Act::Restart(wait));
            } else {
                play.both(|stage, now| stage.beat(beat, now));
                play.wait(wait);
            }
        }
    }
}
