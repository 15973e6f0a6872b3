//! Simulated service of six monitors: vantages that keep their schedules and respond to probe requests, machines, and
//! the quarantine between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parallax_core::assign::{self, Scheduled, Share};
use parallax_core::check::{Check, CheckKind, TcpCheck};
use parallax_core::event::{AlertKind, Answer, Status, What};
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::machine::{Machine, Output, Step};
use parallax_core::observation::{Facts, Failure, Observation, Outcome, Phase};
use parallax_core::place::{Mesh, NetworkNo, Place, PlaceNo, Region, RegionSet};
use parallax_core::quarantine::{CheckTarget, Quarantine, Turn};
use parallax_core::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};
use parallax_core::watch::{Confirmation, Watch};

use super::chance::Chance;

/// Length of a day: enough for six outages of every monitor.
const END: i64 = 8 * HOUR;
const MONITORS: usize = 6;
/// Number of accounts: one has the first three monitors, and three have one of the others each.
const ACCOUNTS: usize = 4;
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
    Question(usize, PlaceNo, u32),
    Answer(usize, u32, Observation),
    Target(usize, Mood),
}

struct Monitor {
    machine: Machine,
    mood: Mood,
    /// Start of the target's present state; `is_reported` is set once it was seen as down since.
    since: i64,
    is_reported: bool,
}

pub(crate) struct World {
    chance: Chance,
    now: i64,
    queue: BTreeMap<(i64, u64), Next>,
    count: u64,
    places: Vec<Place>,
    liar: Option<(PlaceNo, Lie)>,
    monitors: Vec<Monitor>,
    quarantine: Quarantine,
    mesh: Mesh,
    /// Incremented whenever the shares change.
    plan: u64,
    pub(crate) is_liar_found: bool,
    /// Milliseconds from the start of an outage to its alert.
    pub(crate) delays: Vec<i64>,
}

impl World {
    pub(crate) fn live(seed: u64, lie: Option<Lie>) -> Self {
        let mut chance = Chance::new(seed);
        let places = places(&mut chance);
        let liar = lie.map(|lie| (places[chance.index(places.len())].no, lie));
        let mut world = Self {
            now: 20_000 * DAY,
            queue: BTreeMap::new(),
            count: 0,
            mesh: Mesh::new(places.iter().copied()),
            places,
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
            let (watch, mut out) = (world.watch(index), Vec::new());
            let mut step = Step { now: world.moment(), mesh: &world.mesh, out: &mut out };
            let machine = Machine::new(watch, &mut step);
            let since = world.now;
            world.monitors.push(Monitor { machine, mood: Mood::Well, since, is_reported: true });
            world.bring(index, out);
        }
        world.outages();
        world.deal();
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
                self.put(begins, Next::Target(index, mood));
                self.put(ends, Next::Target(index, Mood::Well));
            }
        }
    }

    fn watch(&mut self, index: usize) -> Watch {
        Watch {
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
            beat: None,
            confirmation: Confirmation::OtherNetwork,
            repeat_minutes: None,
            paused: false,
        }
    }

    /// Returns a region with two networks other than the liar's.
    fn pin(&self) -> Option<Region> {
        let lies = self.liar.map(|(liar, _)| self.mesh.place(liar).unwrap().network);
        let networks = |region: &Region| -> BTreeSet<NetworkNo> {
            let there = self.places.iter().filter(|place| place.region == *region);
            there.map(|place| place.network).filter(|network| Some(*network) != lies).collect()
        };
        Region::ALL.into_iter().find(|region| networks(region).len() >= 2)
    }

    fn moment(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    fn put(&mut self, at: i64, next: Next) {
        self.count += 1;
        self.queue.insert((at.max(self.now), self.count), next);
    }

    fn turn(&mut self, end: i64) -> bool {
        let deadlines = self.monitors.iter().enumerate().filter_map(|(index, monitor)| {
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
            self.believe(free.map(|place| (place, Turn::Released)).collect());
        } else if let Some((_, index)) = machine.filter(|(due, _)| *due == at) {
            self.step(index, Machine::handle_timeout);
        } else if let Some((_, next)) = self.queue.pop_first() {
            self.come(next);
        }
        true
    }

    fn come(&mut self, next: Next) {
        match next {
            Next::Due(index, place, plan, round) if plan == self.plan => {
                self.line_up(index, place);
                for seen in self.check(index, self.places[place], Some(round)) {
                    let at = seen.ended.as_millis() + self.chance.span(10, 400);
                    self.put(at, Next::Result(index, seen));
                }
            }
            Next::Due(..) => {}
            Next::Result(index, seen) => self.result(index, seen),
            Next::Question(index, place, number) => {
                let place = *self.mesh.place(place).unwrap();
                for seen in self.check(index, place, None) {
                    let at = seen.ended.as_millis() + self.chance.span(10, 400);
                    self.put(at, Next::Answer(index, number, seen));
                }
            }
            Next::Answer(index, number, seen) => {
                self.step(index, |machine, step| machine.handle_answer(number, Answer::Seen(seen), step));
            }
            Next::Target(index, mood) => {
                let monitor = &mut self.monitors[index];
                let was_seen = monitor.is_reported || monitor.mood == Mood::Well;
                assert!(
                    was_seen,
                    "monitor {index} ({:?}): an outage of {} ms was not reported; vantages {:?}, liar {:?}",
                    monitor.machine.watch().pinned,
                    self.now - monitor.since,
                    self.places.iter().map(|it| (it.no, it.region, it.network)).collect::<Vec<_>>(),
                    self.liar
                );
                // A monitor that is still down because of a vantage that fails every check counts as reported.
                let is_down = monitor.machine.status() == Status::Down;
                (monitor.mood, monitor.since, monitor.is_reported) = (mood, self.now, is_down);
            }
        }
    }

    fn result(&mut self, index: usize, seen: Observation) {
        let (now, place) = (self.moment(), seen.place);
        if self.mesh.place(place).unwrap().quarantined {
            let view = self.monitors[index].machine.view(&self.mesh, now);
            let agrees = view.agrees(&seen, &self.mesh);
            let turn =
                agrees.and_then(|agrees| self.quarantine.hear_shadow(place, agrees, target(index), now));
            self.believe(turn.map(|turn| (place, turn)).into_iter().collect());
            return;
        }
        match self.monitors[index].machine.note_steady(&seen, now) {
            Some(_) => {}
            None => self.step(index, |machine, step| machine.handle_observation(seen, step)),
        }
    }

    fn step(&mut self, index: usize, act: impl FnOnce(&mut Machine, &mut Step<'_>)) {
        let mut out = Vec::new();
        let mut step = Step { now: self.moment(), mesh: &self.mesh, out: &mut out };
        act(&mut self.monitors[index].machine, &mut step);
        self.bring(index, out);
    }

    fn bring(&mut self, index: usize, out: Vec<Output>) {
        let now = self.moment();
        for output in out {
            match output {
                Output::Ask(ask) => {
                    let at = self.now + self.chance.span(10, 400);
                    self.put(at, Next::Question(index, ask.place, ask.number));
                }
                Output::Reading(_) => {}
                Output::Happened(what) => match *what {
                    What::Round(report) => {
                        let turns = self.quarantine.hear_round(&report, target(index), &self.mesh, now);
                        self.believe(turns);
                    }
                    What::Changed(change) if change.alert == Some(AlertKind::WentDown) => self.told(index),
                    What::Changed(change) if change.alert == Some(AlertKind::Recovered) => {
                        self.recovered(index);
                    }
                    _ => {}
                },
            }
        }
    }

    /// Handles a went-down alert: the target must be down, or have been until a moment ago.
    fn told(&mut self, index: usize) {
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
    fn recovered(&self, index: usize) {
        let monitor = &self.monitors[index];
        let since = self.now - monitor.since;
        let is_well = monitor.mood == Mood::Well || since < 30 * SECOND;
        assert!(
            is_well || !self.is_decided_by_three(index),
            "monitor {index} ({:?}): recovered {since} ms after it went down; vantages {:?}, liar {:?}",
            monitor.machine.watch().pinned,
            self.mesh,
            self.liar
        );
    }

    /// Returns true if two honest networks other than the liar's check the monitor, in its own region if it is
    /// pinned.
    fn is_decided_by_three(&self, index: usize) -> bool {
        let pinned = self.monitors[index].machine.watch().pinned;
        let lies = self.liar.map(|(liar, _)| self.mesh.place(liar).unwrap().network);
        let there = self.mesh.confirmers().filter(|place| pinned.is_none_or(|pinned| place.region == pinned));
        let honest: BTreeSet<NetworkNo> =
            there.map(|place| place.network).filter(|network| Some(*network) != lies).collect();
        honest.len() >= 2
    }

    fn believe(&mut self, turns: Vec<(PlaceNo, Turn)>) {
        if turns.is_empty() {
            return;
        }
        for (place, turn) in turns {
            if let Turn::Held(found) = turn {
                let is_liar = self.liar.is_some_and(|(liar, lie)| liar == place && lie != Lie::Shunned);
                assert!(is_liar, "an honest vantage is quarantined: {place:?}, {found:?}");
                self.is_liar_found = true;
            }
        }
        let held = self.quarantine.suspects().held;
        assert!(held.len() * 3 <= self.places.len(), "more than a third are quarantined");
        let laid =
            self.places.iter().map(|place| Place { quarantined: held.contains_key(&place.no), ..*place });
        let before = std::mem::replace(&mut self.mesh, Mesh::new(laid.collect::<Vec<_>>()));
        if before.fit_regions() != self.mesh.fit_regions() {
            for index in 0..self.monitors.len() {
                self.step(index, Machine::handle_mesh);
            }
        }
        self.deal();
    }

    fn deal(&mut self) {
        self.plan += 1;
        for index in 0..self.monitors.len() {
            for place in 0..self.places.len() {
                self.line_up(index, place);
            }
        }
    }

    fn share(&self, index: usize, place: usize) -> Option<Share> {
        let check = Check::Tcp(TcpCheck { host: format!("{index}.example"), port: 443 });
        let scheduled = Scheduled::new(self.monitors[index].machine.watch(), 1, &Arc::new(check))?;
        assign::share(&scheduled, &self.mesh, self.places[place].no)
    }

    fn line_up(&mut self, index: usize, place: usize) {
        let Some(share) = self.share(index, place) else { return };
        let (interval, every) = (i64::from(share.interval_ms), i64::from(share.every));
        let mut round = (self.now - i64::from(share.offset_ms)).div_euclid(interval) + 1;
        while round.rem_euclid(every) != i64::from(share.from) {
            round += 1;
        }
        let at = round * interval + i64::from(share.offset_ms);
        self.put(at, Next::Due(index, place, self.plan, round.unsigned_abs()));
    }

    /// Results of a vantage that runs the check now, including the pending report.
    fn check(&self, index: usize, place: Place, round: Option<u64>) -> Vec<Observation> {
        let started = self.moment();
        let seen = |outcome, after| Observation {
            revision: 1,
            region: place.region,
            place: place.no,
            network: place.network,
            round,
            started,
            ended: started + after,
            outcome,
        };
        let mood = match self.liar.filter(|(liar, _)| *liar == place.no) {
            Some((_, Lie::Passes)) => Mood::Well,
            Some((_, Lie::Fails)) => Mood::Refuses,
            Some((_, Lie::Shunned)) if account(index) == account(0) => Mood::Refuses,
            Some((_, Lie::Shunned)) | None => self.monitors[index].mood,
        };
        let facts = Facts::default();
        match mood {
            Mood::Well => {
                let facts = Facts { latency_ms: Some(80), ..facts };
                vec![seen(Outcome::Passed(facts), 80)]
            }
            Mood::Refuses => vec![seen(Outcome::Failed(facts, Failure::Refused), 40)],
            Mood::Hangs => vec![
                seen(Outcome::Pending, 3 * SECOND),
                seen(Outcome::Failed(facts, Failure::Timeout(Phase::Connect)), 10 * SECOND),
            ],
        }
    }
}

fn account(index: usize) -> AccountId {
    AccountId::from_u128(index.saturating_sub(2) as u128)
}

fn target(index: usize) -> CheckTarget {
    CheckTarget { host: index as u64, account: account(index), accounts: ACCOUNTS }
}

/// Three to eight vantages on three networks or more, in one region or several.
fn places(chance: &mut Chance) -> Vec<Place> {
    let regions = chance.index(4) + 1;
    let count = chance.index(6) + 3;
    let place = |index: usize, chance: &mut Chance| {
        let no = u16::try_from(index).unwrap();
        Place {
            no: PlaceNo(no + 1),
            region: Region::ALL[chance.index(regions)],
            network: NetworkNo(if no < 3 { no } else { chance.pick(&[0, 1, 2, 3]) }),
            connected: true,
            quarantined: false,
            unfit: false,
        }
    };
    (0..count).map(|index| place(index, chance)).collect()
}
