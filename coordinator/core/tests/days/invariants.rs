//! Invariants of everything that a machine emits, in the order in which it became durable.

use std::collections::BTreeMap;

use parallax_core::event::{AlertKind, EventKind, MonitorStatus, RoundReport, StatusChange};
use parallax_core::flapping::{Aspect, MIN_CHANGES};
use parallax_core::machine::{FinishedRound, MachineOutput};
use parallax_core::observation::{ProbeOutcome, RoundOutcome};
use parallax_core::time::{MINUTE, SECOND, Timestamp};
use parallax_core::vantage::{NetworkNo, Region, VantageNo};

/// Minimum time in milliseconds covered by the readings journal.
pub(crate) const JOURNAL: i64 = 20 * MINUTE;

/// Everything emitted so far.
pub(crate) struct Invariants {
    /// Set if judged by region; otherwise all rounds belong to one region state.
    pub(crate) regional: bool,
    pub(crate) networks: BTreeMap<VantageNo, NetworkNo>,
    /// Status according to the changes.
    pub(crate) status: MonitorStatus,
    pub(crate) since: Option<Timestamp>,
    /// Status last announced.
    pub(crate) announced: MonitorStatus,
    /// Rounds in history, each with the coordinator life that stored it, and when.
    pub(crate) stored: BTreeMap<(Region, u64), (u64, i64)>,
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

impl Invariants {
    pub(crate) fn new(regional: bool, networks: BTreeMap<VantageNo, NetworkNo>) -> Self {
        Self {
            regional,
            networks,
            status: MonitorStatus::Unknown,
            since: None,
            announced: MonitorStatus::Up,
            stored: BTreeMap::new(),
            failed: BTreeMap::new(),
            passed: BTreeMap::new(),
            alerts: BTreeMap::new(),
            unique: true,
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    pub(crate) fn take(&mut self, output: &MachineOutput, life: u64, now: i64) {
        for byte in format!("{output:?}").bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        match output {
            MachineOutput::Probe(_) => {}
            MachineOutput::Reading(finished) => self.reading(finished, life, now),
            MachineOutput::Event(what) => match &**what {
                EventKind::StatusChanged(change) => self.changed(change),
                EventKind::Round(report) => self.round(report),
                EventKind::ScopeChanged(_) => {
                    assert_eq!(self.status, MonitorStatus::Down, "only an outage has a scope")
                }
                EventKind::DeadlineExtended(moved) => assert!(moved.deadline > moved.before),
                EventKind::FlappingEnded(steady) => {
                    let expected = match steady.aspect {
                        Aspect::Availability => MonitorStatus::Down,
                        Aspect::Speed => MonitorStatus::Slow,
                    };
                    assert_eq!(steady.is_bad, self.announced == expected, "the steady state is the one last announced");
                    assert!(steady.flapping.changes >= MIN_CHANGES);
                }
                other => panic!("a machine reports no {other:?}"),
            },
        }
    }

    /// Checks that a round is stored once. One older than the journal may be emitted again after a restart: history
    /// already has it, and keeps the first.
    fn reading(&mut self, finished: &FinishedRound, life: u64, now: i64) {
        let before = self.stored.insert((self.lane(finished.region), finished.round), (life, now));
        let again = before.is_none_or(|(of, at)| of < life && now - at > JOURNAL);
        assert!(again || !self.unique, "a round is stored once: {finished:?}");
        if matches!(finished.outcome, RoundOutcome::Passed | RoundOutcome::Disputed) {
            self.break_runs(finished.region, finished.started);
        }
        if finished.outcome == RoundOutcome::Passed {
            self.note_pass(finished.region, finished.started);
        }
    }

    fn note_pass(&mut self, region: Region, started: Timestamp) {
        let newest = self.passed.entry(region).or_insert(started);
        *newest = started.max(*newest);
    }

    fn round(&mut self, report: &RoundReport) {
        if report.round_outcome == RoundOutcome::Passed {
            self.note_pass(report.region, report.started);
        }
        match report.round_outcome {
            RoundOutcome::Passed | RoundOutcome::Disputed => self.break_runs(report.region, report.started),
            RoundOutcome::Failed => {
                if let Some((second, ProbeOutcome::Failed(..))) = &report.second {
                    let network = |vantage: VantageNo| self.networks.get(&vantage).copied();
                    assert_ne!(
                        network(*second),
                        network(report.first_vantage),
                        "another network must agree: {report:?}"
                    );
                    let lane = self.lane(report.region);
                    self.failed.entry(lane).or_default().push(report.started);
                }
            }
            RoundOutcome::Unconfirmed | RoundOutcome::Inconclusive => {}
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

    fn changed(&mut self, change: &StatusChange) {
        if change.alert == Some(AlertKind::StillDown) {
            assert_eq!(
                (change.from, change.to, self.announced),
                (MonitorStatus::Down, MonitorStatus::Down, MonitorStatus::Down)
            );
            assert_eq!(Some(change.since), self.since, "the start of the status must not change");
        } else if change.alert.is_some() && change.from != self.status {
            // At the end of a window a recovery is announced first, followed by slowness.
            let first = (MonitorStatus::Slow, Some(AlertKind::Recovered));
            assert!(change.to == self.status || (self.status, change.alert) == first, "{change:?}");
        } else {
            assert_eq!(change.from, self.status, "events must chain: {change:?}");
            assert_ne!(change.from, change.to, "an event must be a change");
            if change.to == MonitorStatus::Down && change.alert.is_some() {
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
            self.check_evidence(change);
        }
        *self.alerts.entry(alert).or_default() += 1;
        let next = match (self.announced, alert) {
            (MonitorStatus::Up | MonitorStatus::Slow, AlertKind::WentDown) => MonitorStatus::Down,
            (MonitorStatus::Down, AlertKind::Recovered) | (MonitorStatus::Slow, AlertKind::BackToNormal) => {
                MonitorStatus::Up
            }
            (MonitorStatus::Up, AlertKind::WentSlow) => MonitorStatus::Slow,
            (MonitorStatus::Down, AlertKind::StillDown) => MonitorStatus::Down,
            (expected, alert) => panic!("{alert:?} is announced while {expected:?}: {change:?}"),
        };
        self.announced = next;
    }

    /// Checks that a went-down alert has the rounds that led to it, and names regions only if another has seen the
    /// target up since.
    fn check_evidence(&self, change: &StatusChange) {
        assert!(!change.evidence.is_empty(), "evidence is required: {change:?}");
        // After a correction of the clock, rounds of the same moment have different times.
        if let Some(from) = change.down_from.filter(|_| self.unique) {
            let mut others = self.passed.iter().filter(|(region, _)| !from.contains(**region));
            assert!(others.any(|(_, at)| *at >= change.since), "some region saw it up since: {change:?}");
        }
    }
}
