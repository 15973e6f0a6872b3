//! Plan of one day: the mesh, the monitor, and every fault with its time, drawn before the day begins.

use std::collections::BTreeMap;

use parallax_core::check::CheckKind;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::time::{DAY, HOUR, MINUTE, SECOND};
use parallax_core::vantage::{NetworkNo, Region, RegionSet, Vantage, VantageNo};

use super::seeded_random::SeededRandom;

/// Milliseconds from one calm period to the next.
const TURN: i64 = 2 * HOUR;

/// State of the target or of a vantage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DayTargetState {
    Up(u32),
    Refuses,
    Hangs,
    /// The vantage's own fault.
    OwnFault,
}

/// Scope of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultScope {
    Everywhere,
    Region(Region),
    Network(NetworkNo),
    Vantage(VantageNo),
}

/// Action at a given time.
#[derive(Debug, Clone)]
pub(crate) enum DayAction {
    Mood(u64, FaultScope, DayTargetState),
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
    Calm(DayTargetState),
    /// End of a calm period: the state must be known by now.
    Judge(DayTargetState),
}

/// Plan of one day.
pub(crate) struct DayPlan {
    pub(crate) settings: EffectiveSettings,
    pub(crate) vantages: Vec<Vantage>,
    pub(crate) acts: Vec<(i64, DayAction)>,
    /// Set if rounds keep their numbers all day.
    pub(crate) numbered: bool,
    /// One in this many messages is lost.
    pub(crate) lost: u64,
}

impl DayPlan {
    pub(crate) fn of(chance: &mut SeededRandom) -> Self {
        let vantages = vantages(chance);
        let settings = settings(chance, &vantages);
        let mut plan =
            Self { settings, vantages, acts: Vec::new(), numbered: true, lost: chance.pick(&[20, 100, 1000]) };
        let (skews, revokes) = (chance.one_in(4), chance.one_in(4));
        plan.numbered = !skews;
        let calm = 30 * MINUTE;
        for turn in 0..DAY / TURN {
            plan.storm(chance, turn * TURN, (turn + 1) * TURN - calm, skews);
            let mood = chance.pick(&[
                DayTargetState::Up(80),
                DayTargetState::Up(80),
                DayTargetState::Refuses,
                DayTargetState::Hangs,
                DayTargetState::Up(900),
            ]);
            plan.acts.push(((turn + 1) * TURN - calm, DayAction::Calm(mood)));
            plan.acts.push(((turn + 1) * TURN - 1, DayAction::Judge(mood)));
        }
        if revokes {
            let at = chance.within(0, DAY);
            plan.acts.push((at, DayAction::Revoke(chance.index(plan.vantages.len()))));
        }
        // Actions at the same time are executed in the order in which they were drawn.
        plan.acts.sort_by_key(|(at, _)| *at);
        plan
    }

    fn storm(&mut self, chance: &mut SeededRandom, from: i64, to: i64, skews: bool) {
        let mut acts = Vec::new();
        // Every fault is over before the calm period.
        let mut put = |at: i64, act| acts.push((at.min(to - 1), act));
        for _ in 0..chance.within(0, 8) {
            let at = chance.within(from, to);
            let name = chance.next();
            let vantage = self.vantages[chance.index(self.vantages.len())];
            let seen = match chance.within(0, 6) {
                0..=2 => FaultScope::Everywhere,
                3 => FaultScope::Region(vantage.region),
                4 => FaultScope::Network(vantage.network),
                _ => FaultScope::Vantage(vantage.no),
            };
            let mood = chance.pick(&[
                DayTargetState::Refuses,
                DayTargetState::Refuses,
                DayTargetState::Hangs,
                DayTargetState::Up(900),
                DayTargetState::OwnFault,
            ]);
            put(at, DayAction::Mood(name, seen, mood));
            put(at + chance.span(SECOND / 2, 40 * MINUTE), DayAction::Over(name));
        }
        for _ in 0..chance.within(0, 5) {
            let (at, index) = (chance.within(from, to), chance.index(self.vantages.len()));
            put(at, DayAction::Connect(index, false));
            put(at + chance.span(SECOND, 60 * MINUTE), DayAction::Connect(index, true));
        }
        if chance.one_in(3) {
            let (at, index) = (chance.within(from, to), chance.index(self.vantages.len()));
            put(at, DayAction::Quarantine(index, true));
            put(at + 5 * MINUTE, DayAction::Quarantine(index, false));
        }
        if chance.one_in(2) {
            let at = chance.within(from, to);
            put(at, DayAction::Crash);
            put(at + chance.span(SECOND / 10, 20 * MINUTE), DayAction::Start);
        } else if chance.one_in(3) {
            let at = chance.within(from, to);
            put(at, DayAction::Freeze);
            put(at + chance.span(11 * SECOND, 20 * MINUTE), DayAction::Thaw);
        }
        for _ in 0..chance.within(0, 3) {
            let at = chance.within(from, to);
            put(at, DayAction::Window(true));
            // A window may extend beyond it.
            self.acts.push((at + chance.span(MINUTE, 3 * HOUR), DayAction::Window(false)));
        }
        if chance.one_in(2) {
            let set = chance.pick(&self.vantages).region;
            let act = match chance.within(0, 7) {
                6 => {
                    self.numbered = false;
                    DayAction::Interval(chance.pick(&[30_000, 60_000, 300_000]))
                }
                0 => DayAction::Threshold(None),
                1 | 2 => DayAction::Threshold(Some(500)),
                3 => DayAction::Uptime(None),
                4 => DayAction::Uptime(Some(RegionSet::only(set))),
                _ => DayAction::Retarget,
            };
            put(chance.within(from, to), act);
        }
        if chance.one_in(6) {
            let at = chance.within(from, to);
            put(at, DayAction::Pause(true));
            put(at + chance.span(SECOND, 20 * MINUTE), DayAction::Pause(false));
        }
        if skews && chance.one_in(2) {
            let at = chance.within(from, to);
            let length = chance.span(SECOND, HOUR);
            let ahead = if chance.one_in(2) { length } else { -length };
            put(at, DayAction::Skew(ahead));
            put(at + chance.span(SECOND, HOUR), DayAction::Skew(0));
        }
        self.acts.append(&mut acts);
    }
}

fn vantages(chance: &mut SeededRandom) -> Vec<Vantage> {
    let regions = chance.index(Region::ALL.len()) + 1;
    let networks = chance.pick(&[2_u16, 3, 4]);
    let count = chance.index(7) + 3;
    let vantage = |index: usize, chance: &mut SeededRandom| {
        let no = u16::try_from(index).unwrap_or(0);
        // At least two networks.
        let network = if no < 2 { no } else { chance.pick(&[0, 1, 2, 3]) % networks };
        Vantage {
            no: VantageNo(no + 1),
            region: Region::ALL[chance.index(regions)],
            network: NetworkNo(network),
            connected: true,
            quarantined: false,
            unfit: false,
        }
    };
    (0..count).map(|index| vantage(index, chance)).collect()
}

fn settings(chance: &mut SeededRandom, vantages: &[Vantage]) -> EffectiveSettings {
    let kind = match chance.within(0, 8) {
        0 => CheckKind::Domain,
        1 => CheckKind::Certificate,
        2 => CheckKind::Component,
        _ => CheckKind::Tcp,
    };
    let region = chance.pick(vantages).region;
    EffectiveSettings {
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
        heartbeat: None,
        confirmation: ConfirmationPolicy::OtherNetwork,
        repeat_minutes: chance.one_in(2).then_some(5),
        paused: false,
        acknowledged_outage: None,
    }
}
