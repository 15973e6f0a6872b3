//! Invariants of everything that a machine emits, in the order in which it became durable.

use std::collections::BTreeMap;

use parallax_core::event::{AlertKind, Change, RoundReport, Status, What};
use parallax_core::flapping::{Aspect, CHANGES};
use parallax_core::machine::{Finished, Output};
use parallax_core::observation::{Outcome, Word};
use parallax_core::place::{NetworkNo, PlaceNo, Region};
use parallax_core::time::{MINUTE, SECOND, Timestamp};

/// Minimum time in milliseconds covered by the readings journal.
pub(crate) const JOURNAL: i64 = 20 * MINUTE;

/// Everything emitted so far.
pub(crate) struct Held {
    /// Set if judged by region; otherwise all rounds belong to one region state.
    pub(crate) regional: bool,
    pub(crate) networks: BTreeMap<PlaceNo, NetworkNo>,
    /// Status according to the changes.
    pub(crate) status: Status,
    pub(crate) since: Option<Timestamp>,
    /// Status last announced.
    pub(crate) told: Status,
    /// Rounds in history, each with the coordinator life that stored it, and when.
    pub(crate) kept: BTreeMap<(Region, u64), (u64, i64)>,
    /// Starts of rounds that failed on two networks since the region's last pass.
    failed: BTreeMap<Region, Vec<Timestamp>>,
    /// Start of each region's newest passed round.
    passed: BTreeMap<Region, Timestamp>,
    pub(crate) alerts: BTreeMap<AlertKind, usize>,
    /// Set if rounds keep their numbers all day, so that each is stored once.
    pub(crate) unique: bool,
    /// Digest of all outputs.
    pub(crate) digest: u64,
}

impl Held {
    pub(crate) fn new(regional: bool, networks: BTreeMap<PlaceNo, NetworkNo>) -> Self {
        Self {
            regional,
            networks,
            status: Status::Unknown,
            since: None,
            told: Status::Up,
            kept: BTreeMap::new(),
            failed: BTreeMap::new(),
            passed: BTreeMap::new(),
            alerts: BTreeMap::new(),
            unique: true,
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    pub(crate) fn take(&mut self, output: &Output, life: u64, now: i64) {
        for byte in format!("{output:?}").bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        match output {
            Output::Ask(_) => {}
            Output::Reading(finished) => self.reading(finished, life, now),
            Output::Happened(what) => match &**what {
                What::Changed(change) => self.changed(change),
                What::Round(report) => self.round(report),
                What::ScopeChanged(_) => assert_eq!(self.status, Status::Down, "only an outage has a scope"),
                What::DeadlineExtended(moved) => assert!(moved.deadline > moved.before),
                What::Steady(steady) => {
                    let told = match steady.aspect {
                        Aspect::Availability => Status::Down,
                        Aspect::Speed => Status::Slow,
                    };
                    assert_eq!(
                        steady.is_bad,
                        self.told == told,
                        "the steady state is the one last announced"
                    );
                    assert!(steady.flapping.changes >= CHANGES);
                }
                other => panic!("a machine reports no {other:?}"),
            },
        }
    }

    /// Checks that a round is stored once. One older than the journal may be emitted again after a restart: history
    /// already has it, and keeps the first.
    fn reading(&mut self, finished: &Finished, life: u64, now: i64) {
        let before = self.kept.insert((self.lane(finished.region), finished.round), (life, now));
        let again = before.is_none_or(|(of, at)| of < life && now - at > JOURNAL);
        assert!(again || !self.unique, "a round is stored once: {finished:?}");
        if matches!(finished.word, Word::Passed | Word::Disputed) {
            self.break_runs(finished.region, finished.started);
        }
        if finished.word == Word::Passed {
            self.note_pass(finished.region, finished.started);
        }
    }

    fn note_pass(&mut self, region: Region, started: Timestamp) {
        let newest = self.passed.entry(region).or_insert(started);
        *newest = started.max(*newest);
    }

    fn round(&mut self, report: &RoundReport) {
        if report.word == Word::Passed {
            self.note_pass(report.region, report.started);
        }
        match report.word {
            Word::Passed | Word::Disputed => self.break_runs(report.region, report.started),
            Word::Failed => {
                if let Some((second, Outcome::Failed(..))) = &report.second {
                    let network = |place: PlaceNo| self.networks.get(&place).copied();
                    assert_ne!(
                        network(*second),
                        network(report.first),
                        "another network must agree: {report:?}"
                    );
                    let lane = self.lane(report.region);
                    self.failed.entry(lane).or_default().push(report.started);
                }
            }
            Word::Unconfirmed | Word::Inconclusive => {}
        }
    }

    fn break_runs(&mut self, region: Region, started: Timestamp) {
        let lane = self.lane(region);
        self.failed.entry(lane).or_default().retain(|failed| *failed > started);
    }

    /// Region whose state a round of that region affects, and under which it counts once.
    pub(crate) fn lane(&self, region: Region) -> Region {
        if self.regional { region } else { Region::Europe }
    }

    fn changed(&mut self, change: &Change) {
        if change.alert == Some(AlertKind::StillDown) {
            assert_eq!((change.from, change.to, self.told), (Status::Down, Status::Down, Status::Down));
            assert_eq!(Some(change.since), self.since, "the start of the status must not change");
        } else if change.alert.is_some() && change.from != self.status {
            // At the end of a window a recovery is announced first, followed by slowness.
            let first = (Status::Slow, Some(AlertKind::Recovered));
            assert!(change.to == self.status || (self.status, change.alert) == first, "{change:?}");
        } else {
            assert_eq!(change.from, self.status, "events must chain: {change:?}");
            assert_ne!(change.from, change.to, "an event must be a change");
            if change.to == Status::Down && change.alert.is_some() {
                let two = |starts: &Vec<Timestamp>| {
                    starts.iter().any(|one| starts.iter().any(|two| two.since(*one) >= 4 * SECOND))
                };
                assert!(
                    self.failed.values().any(two),
                    "two consecutive failed rounds, each on two networks: {change:?}, {:?}",
                    self.failed
                );
            }
            self.status = change.to;
            self.since = Some(change.since);
        }
        let Some(alert) = change.alert else { return };
        if alert == AlertKind::WentDown {
            self.explained(change);
        }
        *self.alerts.entry(alert).or_default() += 1;
        let next = match (self.told, alert) {
            (Status::Up | Status::Slow, AlertKind::WentDown) => Status::Down,
            (Status::Down, AlertKind::Recovered) | (Status::Slow, AlertKind::BackToNormal) => Status::Up,
            (Status::Up, AlertKind::WentSlow) => Status::Slow,
            (Status::Down, AlertKind::StillDown) => Status::Down,
            (told, alert) => panic!("{alert:?} is announced while {told:?}: {change:?}"),
        };
        self.told = next;
    }

    /// Checks that a went-down alert has the rounds that led to it, and names regions only if another has seen the
    /// target up since.
    fn explained(&self, change: &Change) {
        assert!(!change.evidence.is_empty(), "evidence is required: {change:?}");
        // After a correction of the clock, rounds of the same moment have different times.
        if let Some(from) = change.down_from.filter(|_| self.unique) {
            let mut others = self.passed.iter().filter(|(region, _)| !from.contains(**region));
            assert!(others.any(|(_, at)| *at >= change.since), "some region saw it up since: {change:?}");
        }
    }
}
