//! Test driver for one monitor whose vantages respond at once, with the alerts it sent.

use parallax_core::check::CheckKind;
use parallax_core::event::{AlertKind, EventKind, MonitorStatus, ProbeRequest, ProbeResponse};
use parallax_core::machine::{MachineOutput, MonitorMachine};
use parallax_core::observation::{Failure, Measurements, Observation, ProbeOutcome};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::vantage::{NetworkNo, Region, RegionSet, Vantage, VantageNo};

use crate::stage::{self, MachineStage};

pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Vantages in Europe; those from the third on are in Asia.
pub(crate) fn vantages(count: u16) -> Vec<Vantage> {
    let vantage = |no| Vantage {
        no: VantageNo(no),
        region: region(VantageNo(no)),
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
        unfit: false,
    };
    (1..=count).map(vantage).collect()
}

pub(crate) fn region(vantage: VantageNo) -> Region {
    if vantage.0 <= 2 { Region::Europe } else { Region::Asia }
}

pub(crate) fn seen(vantage: VantageNo, round: Option<u64>, at: Timestamp, outcome: ProbeOutcome) -> Observation {
    let (region, network) = (region(vantage), NetworkNo(vantage.0));
    Observation { revision: 1, region, vantage, network, round, started: at, ended: at, outcome }
}

pub(crate) fn refused() -> ProbeOutcome {
    ProbeOutcome::Failed(Measurements::default(), Failure::Refused)
}

pub(crate) fn passed() -> ProbeOutcome {
    ProbeOutcome::Passed(Measurements { latency_ms: Some(40), ..Measurements::default() })
}

/// One monitor, and the number of its probe requests.
pub(crate) struct MonitorScenario {
    pub(crate) stage: MachineStage,
    pub(crate) requests: usize,
    pub(crate) alerts: Vec<AlertKind>,
    /// Response of Asia if it differs from the others; none if it does not respond.
    pub(crate) asia: Option<Option<ProbeOutcome>>,
}

impl MonitorScenario {
    pub(crate) fn new() -> Self {
        Self::of(2)
    }

    pub(crate) fn of(count: u16) -> Self {
        let (stage, out) = MachineStage::new(stage::effective_settings(CheckKind::Tcp, 60_000), vantages(count), START);
        let mut tale = Self { stage, requests: 0, alerts: Vec::new(), asia: None };
        tale.apply(out, START, &passed());
        assert_eq!(tale.stage.machine.status(), MonitorStatus::Up);
        tale
    }

    /// Makes every requested vantage respond at once.
    pub(crate) fn apply(&mut self, out: Vec<MachineOutput>, now: Timestamp, answer: &ProbeOutcome) {
        let mut left: std::collections::VecDeque<MachineOutput> = out.into();
        while let Some(output) = left.pop_front() {
            match output {
                MachineOutput::Probe(ProbeRequest { number, vantage, .. }) => {
                    self.requests += 1;
                    assert!(self.requests < 200, "endless probe requests");
                    let elsewhere = self.asia.clone().filter(|_| region(vantage) == Region::Asia);
                    let Some(answer) = elsewhere.unwrap_or(Some(answer.clone())) else { continue };
                    let seen = ProbeResponse::Observed(seen(vantage, None, now, answer));
                    left.extend(self.stage.respond(number, seen, now));
                }
                MachineOutput::Event(what) => {
                    if let EventKind::StatusChanged(change) = *what {
                        self.alerts.extend(change.alert);
                    }
                }
                MachineOutput::Reading(_) => {}
            }
        }
    }

    pub(crate) fn round(&mut self, now: Timestamp, outcome: &ProbeOutcome) {
        self.round_of(1, now, outcome);
    }

    pub(crate) fn round_of(&mut self, vantage: u16, now: Timestamp, outcome: &ProbeOutcome) {
        let round = now.as_millis().unsigned_abs() / 60_000;
        let out = self.stage.observe(seen(VantageNo(vantage), Some(round), now, outcome.clone()), now);
        self.apply(out, now, outcome);
    }

    pub(crate) fn pass_time(&mut self, until: Timestamp, outcome: &ProbeOutcome) {
        while let Some(at) = self.stage.next_timeout().filter(|at| *at <= until) {
            let out = self.stage.step(at, MonitorMachine::handle_timeout);
            self.apply(out, at, outcome);
        }
    }

    /// Steps the clock at that time; returns the new time.
    pub(crate) fn step(&mut self, at: Timestamp, jump: i64, outcome: &ProbeOutcome) -> Timestamp {
        let out = self.stage.step(at + jump, |machine, step| machine.handle_clock_step(jump, None, step));
        self.apply(out, at + jump, outcome);
        at + jump
    }

    pub(crate) fn down_from(&self, now: Timestamp) -> Option<RegionSet> {
        assert_eq!(self.stage.machine.status(), MonitorStatus::Down);
        self.stage.machine.view(&self.stage.mesh(), now).down_from
    }

    /// Makes everything fail from then on, for a minute.
    pub(crate) fn fail_from(&mut self, now: Timestamp) {
        self.round(now, &refused());
        self.pass_time(now + MINUTE, &refused());
    }
}
