//! Plan of one day: the mesh, the monitor, and every fault with its time, drawn before the day begins.

use std::collections::BTreeMap;

use parallax_core::check::CheckKind;
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::place::{NetworkNo, Place, PlaceNo, Region, RegionSet};
use parallax_core::time::{DAY, HOUR, MINUTE, SECOND};
use parallax_core::watch::{Confirmation, Watch};

use super::chance::Chance;

/// Milliseconds from one calm period to the next.
const TURN: i64 = 2 * HOUR;

/// State of the target or of a vantage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Well(u32),
    Refuses,
    Hangs,
    /// The vantage's own fault.
    Blind,
}

/// Scope of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Everywhere,
    Region(Region),
    Network(NetworkNo),
    Place(PlaceNo),
}

/// Action at a given time.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Mood(u64, Seen, Mood),
    Over(u64),
    Connect(usize, bool),
    Quarantine(usize, bool),
    Revoke(usize),
    /// The process is killed, and anything not committed is lost.
    Crash,
    Start,
    /// The process is suspended.
    Freeze,
    Thaw,
    Window(bool),
    Threshold(Option<u32>),
    Uptime(Option<RegionSet>),
    Retarget,
    Interval(u32),
    Pause(bool),
    /// The wall clock deviates by that much from real time.
    Skew(i64),
    /// Every fault ends, and the target is the same everywhere.
    Calm(Mood),
    /// End of a calm period: the state must be known by now.
    Judge(Mood),
}

/// Plan of one day.
pub(crate) struct Plan {
    pub(crate) watch: Watch,
    pub(crate) places: Vec<Place>,
    pub(crate) acts: Vec<(i64, Act)>,
    /// Set if rounds keep their numbers all day.
    pub(crate) numbered: bool,
    /// One in this many messages is lost.
    pub(crate) lost: u64,
}

impl Plan {
    pub(crate) fn of(chance: &mut Chance) -> Self {
        let places = places(chance);
        let watch = watch(chance, &places);
        let mut plan =
            Self { watch, places, acts: Vec::new(), numbered: true, lost: chance.pick(&[20, 100, 1000]) };
        let (skews, revokes) = (chance.one_in(4), chance.one_in(4));
        plan.numbered = !skews;
        let calm = 30 * MINUTE;
        for turn in 0..DAY / TURN {
            plan.storm(chance, turn * TURN, (turn + 1) * TURN - calm, skews);
            let mood =
                chance.pick(&[Mood::Well(80), Mood::Well(80), Mood::Refuses, Mood::Hangs, Mood::Well(900)]);
            plan.acts.push(((turn + 1) * TURN - calm, Act::Calm(mood)));
            plan.acts.push(((turn + 1) * TURN - 1, Act::Judge(mood)));
        }
        if revokes {
            let at = chance.within(0, DAY);
            plan.acts.push((at, Act::Revoke(chance.index(plan.places.len()))));
        }
        // Actions at the same time are executed in the order in which they were drawn.
        plan.acts.sort_by_key(|(at, _)| *at);
        plan
    }

    fn storm(&mut self, chance: &mut Chance, from: i64, to: i64, skews: bool) {
        let mut acts = Vec::new();
        // Every fault is over before the calm period.
        let mut put = |at: i64, act| acts.push((at.min(to - 1), act));
        for _ in 0..chance.within(0, 8) {
            let at = chance.within(from, to);
            let name = chance.next();
            let place = self.places[chance.index(self.places.len())];
            let seen = match chance.within(0, 6) {
                0..=2 => Seen::Everywhere,
                3 => Seen::Region(place.region),
                4 => Seen::Network(place.network),
                _ => Seen::Place(place.no),
            };
            let mood =
                chance.pick(&[Mood::Refuses, Mood::Refuses, Mood::Hangs, Mood::Well(900), Mood::Blind]);
            put(at, Act::Mood(name, seen, mood));
            put(at + chance.span(SECOND / 2, 40 * MINUTE), Act::Over(name));
        }
        for _ in 0..chance.within(0, 5) {
            let (at, index) = (chance.within(from, to), chance.index(self.places.len()));
            put(at, Act::Connect(index, false));
            put(at + chance.span(SECOND, 60 * MINUTE), Act::Connect(index, true));
        }
        if chance.one_in(3) {
            let (at, index) = (chance.within(from, to), chance.index(self.places.len()));
            put(at, Act::Quarantine(index, true));
            put(at + 5 * MINUTE, Act::Quarantine(index, false));
        }
        if chance.one_in(2) {
            let at = chance.within(from, to);
            put(at, Act::Crash);
            put(at + chance.span(SECOND / 10, 20 * MINUTE), Act::Start);
        } else if chance.one_in(3) {
            let at = chance.within(from, to);
            put(at, Act::Freeze);
            put(at + chance.span(11 * SECOND, 20 * MINUTE), Act::Thaw);
        }
        for _ in 0..chance.within(0, 3) {
            let at = chance.within(from, to);
            put(at, Act::Window(true));
            // A window may extend beyond it.
            self.acts.push((at + chance.span(MINUTE, 3 * HOUR), Act::Window(false)));
        }
        if chance.one_in(2) {
            let set = chance.pick(&self.places).region;
            let act = match chance.within(0, 7) {
                6 => {
                    self.numbered = false;
                    Act::Interval(chance.pick(&[30_000, 60_000, 300_000]))
                }
                0 => Act::Threshold(None),
                1 | 2 => Act::Threshold(Some(500)),
                3 => Act::Uptime(None),
                4 => Act::Uptime(Some(RegionSet::only(set))),
                _ => Act::Retarget,
            };
            put(chance.within(from, to), act);
        }
        if chance.one_in(6) {
            let at = chance.within(from, to);
            put(at, Act::Pause(true));
            put(at + chance.span(SECOND, 20 * MINUTE), Act::Pause(false));
        }
        if skews && chance.one_in(2) {
            let at = chance.within(from, to);
            let length = chance.span(SECOND, HOUR);
            let ahead = if chance.one_in(2) { length } else { -length };
            put(at, Act::Skew(ahead));
            put(at + chance.span(SECOND, HOUR), Act::Skew(0));
        }
        self.acts.append(&mut acts);
    }
}

fn places(chance: &mut Chance) -> Vec<Place> {
    let regions = chance.index(Region::ALL.len()) + 1;
    let networks = chance.pick(&[2_u16, 3, 4]);
    let count = chance.index(7) + 3;
    let place = |index: usize, chance: &mut Chance| {
        let no = u16::try_from(index).unwrap_or(0);
        // At least two networks.
        let network = if no < 2 { no } else { chance.pick(&[0, 1, 2, 3]) % networks };
        Place {
            no: PlaceNo(no + 1),
            region: Region::ALL[chance.index(regions)],
            network: NetworkNo(network),
            connected: true,
            quarantined: false,
            unfit: false,
        }
    };
    (0..count).map(|index| place(index, chance)).collect()
}

fn watch(chance: &mut Chance, places: &[Place]) -> Watch {
    let kind = match chance.within(0, 8) {
        0 => CheckKind::Domain,
        1 => CheckKind::Certificate,
        2 => CheckKind::Component,
        _ => CheckKind::Tcp,
    };
    let region = chance.pick(places).region;
    Watch {
        monitor: MonitorId::from_u128(u128::from(chance.next())),
        account: AccountId::from_u128(1),
        revision: 1,
        kind,
        interval_ms: chance.pick(&[30_000, 60_000, 60_000, 300_000]),
        pinned: chance.one_in(8).then_some(region),
        uptime_regions: chance.one_in(4).then_some(RegionSet::only(region)),
        latency_regions: if chance.one_in(2) { RegionSet::ALL } else { RegionSet::only(Region::Europe) },
        slow_threshold_ms: (!chance.one_in(3)).then_some(500),
        slow_thresholds: BTreeMap::new(),
        beat: None,
        confirmation: Confirmation::OtherNetwork,
        repeat_minutes: chance.one_in(2).then_some(5),
        paused: false,
    }
}
