//! Simulated rounds of one monitor. They depend on the script, the monitor's schedule and the present alone, so that the
//! same history can be computed again.

use parallax_core::assign::{due_ms, offset_ms, phase_hash, stable_hash};
use parallax_core::block::BlockReading;
use parallax_core::check::CheckKind;
use parallax_core::effective::EffectiveSettings;
use parallax_core::event::Event;
use parallax_core::machine::MachineState;
use parallax_core::monitor::Monitor;
use parallax_core::observation::RoundOutcome;
use parallax_core::time::{HOUR, Timestamp};
use parallax_core::uptime::TimeSpan;
use parallax_core::vantage::{Region, RegionSet, VantageNo};
use parallax_engine::history::PastHour;

use super::super::demo_agents::DEMO_AGENTS;
use super::super::site_latency::response_ms;
use super::script::{Calendar, DISPUTED, OUTAGES, SLOW};

/// Response times on the slow afternoon vary by this many milliseconds.
const SLOW_SPREAD_MS: u64 = 140;
/// Longest response time of what is on the agents' own host, in milliseconds.
const LOCAL_MS: u64 = 2;

/// A monitor of the demo with its schedule.
#[derive(Debug, Clone)]
pub(super) struct SimulatedMonitor {
    /// Key of its definition.
    pub(super) key: &'static str,
    pub(super) record: Monitor,
    /// Settings by which it is checked now: rounds of the past are multiples of its interval apart.
    pub(super) settings: EffectiveSettings,
    /// Response time of the site from nearby, in milliseconds; none if it isn't a site.
    pub(super) base_ms: Option<u32>,
    /// Number of the demo's first agent; the others follow in order.
    pub(super) first_agent: VantageNo,
    /// Past of a vendor's component, which has no rounds.
    pub(super) component: Option<Box<ComponentPast>>,
}

/// State of a component's machine today, and its events.
#[derive(Debug, Clone)]
pub(super) struct ComponentPast {
    pub(super) state: MachineState,
    pub(super) events: Vec<Event>,
}

/// A scheduled round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimulatedRound {
    pub(super) region: Region,
    pub(super) round: u64,
    pub(super) due: Timestamp,
    /// Agent that runs it, and the other one of its region.
    pub(super) agents: [VantageNo; 2],
}

impl SimulatedMonitor {
    /// Milliseconds between two rounds of a region; 1 for a type without rounds.
    pub(super) fn interval_ms(&self) -> u32 {
        self.settings.interval_ms.max(1)
    }

    /// Regions with rounds; none for a type that has no history of rounds.
    pub(super) const fn regions(&self) -> RegionSet {
        match self.record.check.kind() {
            CheckKind::Http | CheckKind::Tcp | CheckKind::Dns | CheckKind::Ping | CheckKind::Certificate => {
                RegionSet::ALL
            }
            CheckKind::Domain => RegionSet::only(Region::Europe),
            CheckKind::Heartbeat | CheckKind::Component => RegionSet::NONE,
        }
    }

    /// Every reading from the start of the history to the present, by region and hour.
    pub(super) fn hours(&self, calendar: Calendar) -> impl Iterator<Item = PastHour> {
        let hours = calendar.from().hour()..=calendar.now.hour();
        self.regions().iter().flat_map(move |region| {
            let outages = self.outages(calendar, region);
            hours.clone().map(move |hour| {
                let rounds = self.rounds(calendar, region, hour);
                let readings = rounds.map(|round| self.reading(calendar, &outages, round)).collect();
                PastHour { region, hour, readings }
            })
        })
    }

    /// First round of a region that was due at or after that time.
    pub(super) fn first_round(&self, calendar: Calendar, region: Region, at: Timestamp) -> Option<SimulatedRound> {
        let mut hours = at.hour()..=calendar.now.hour();
        hours.find_map(|hour| self.rounds(calendar, region, hour).find(|round| round.due >= at))
    }

    /// Response time of a round that passes, in milliseconds; none for a type without one.
    pub(super) fn latency_ms(&self, calendar: Calendar, round: SimulatedRound) -> Option<u32> {
        if !self.record.check.kind().has_latency() {
            return None;
        }
        let noise = self.noise(round);
        let slow = calendar.span(SLOW.start, SLOW.minutes);
        if self.key == SLOW.monitor && round.region == SLOW.region && slow.contains(round.due) {
            return Some(SLOW.latency_ms + u32::try_from(noise % SLOW_SPREAD_MS).unwrap_or(0));
        }
        Some(match self.base_ms {
            Some(base_ms) => response_ms(base_ms, round.region, round.due, noise),
            None => u32::try_from(1 + noise % LOCAL_MS).unwrap_or(1),
        })
    }

    fn outages(&self, calendar: Calendar, region: Region) -> Vec<TimeSpan> {
        let outages = OUTAGES.iter().filter(|it| it.monitors.contains(&self.key) && it.regions.contains(region));
        outages.map(|outage| calendar.span(outage.start, outage.minutes)).collect()
    }

    fn is_disputed(&self, calendar: Calendar, round: SimulatedRound) -> bool {
        let since = round.due.since(calendar.time(DISPUTED.start));
        let cadence = calendar.cadence(round.due.hour());
        self.key == DISPUTED.monitor && round.region == DISPUTED.region && (0..cadence).contains(&since)
    }

    fn reading(&self, calendar: Calendar, outages: &[TimeSpan], round: SimulatedRound) -> BlockReading {
        let outcome = if outages.iter().any(|outage| outage.contains(round.due)) {
            RoundOutcome::Failed
        } else if self.is_disputed(calendar, round) {
            RoundOutcome::Disputed
        } else {
            RoundOutcome::Passed
        };
        let latency_ms = if outcome == RoundOutcome::Passed { self.latency_ms(calendar, round) } else { None };
        BlockReading { vantage: round.agents[0], round: round.round, due: round.due, outcome, latency_ms }
    }

    /// Rounds of a region that were due in that hour and in the history.
    fn rounds(&self, calendar: Calendar, region: Region, hour: i64) -> impl Iterator<Item = SimulatedRound> {
        let interval_ms = self.interval_ms();
        let step = u64::try_from(calendar.cadence(hour) / i64::from(interval_ms)).unwrap_or(1).max(1);
        let offset_ms = offset_ms(self.phase(), interval_ms, RegionSet::ALL, region);
        let from = Timestamp::from_millis(hour.saturating_mul(HOUR)).max(calendar.from());
        let to = Timestamp::from_millis(hour.saturating_add(1).saturating_mul(HOUR)).min(calendar.now);
        let earliest = from.as_millis() - i64::from(offset_ms);
        let earliest = u64::try_from(earliest).unwrap_or(0).div_ceil(u64::from(interval_ms));
        let first = earliest.div_ceil(step) * step;
        let agents = self.agents(region);
        let rounds = (0..).map(move |turn| first + turn * step);
        let rounds = rounds.map(move |round| {
            let due = Timestamp::from_millis(due_ms(offset_ms, interval_ms, round));
            let [one, other] = agents;
            let agents = if (round / step).is_multiple_of(2) { [one, other] } else { [other, one] };
            SimulatedRound { region, round, due, agents }
        });
        rounds.take_while(move |round| round.due < to)
    }

    fn phase(&self) -> u64 {
        phase_hash(self.record.id, &self.record.check)
    }

    /// The two agents of a region.
    fn agents(&self, region: Region) -> [VantageNo; 2] {
        let of_region = (self.first_agent.0..).zip(&DEMO_AGENTS).filter(|(_, agent)| agent.region == region);
        let mut numbers = of_region.map(|(number, _)| VantageNo(number));
        let one = numbers.next().unwrap_or(self.first_agent);
        [one, numbers.next().unwrap_or(one)]
    }

    /// A number that differs from round to round and looks random (SplitMix64, Steele et al. 2014).
    fn noise(&self, round: SimulatedRound) -> u64 {
        let seed = stable_hash(self.key.as_bytes()) ^ ((round.region.index() as u64) << 56);
        let mut mixed = seed.wrapping_add(round.round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
