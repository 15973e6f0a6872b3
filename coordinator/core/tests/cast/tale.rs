//! Test driver for one monitor whose vantages respond at once, with the alerts it sent.

use parallax_core::check::CheckKind;
use parallax_core::event::{AlertKind, Answer, Ask, Status, What};
use parallax_core::machine::{Machine, Output};
use parallax_core::observation::{Facts, Failure, Observation, Outcome};
use parallax_core::place::{NetworkNo, Place, PlaceNo, Region, RegionSet};
use parallax_core::time::{MINUTE, Timestamp};

use crate::stage::{self, Stage};

pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Vantages in Europe; those from the third on are in Asia.
pub(crate) fn places(count: u16) -> Vec<Place> {
    let place = |no| Place {
        no: PlaceNo(no),
        region: region(PlaceNo(no)),
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
        unfit: false,
    };
    (1..=count).map(place).collect()
}

pub(crate) fn region(place: PlaceNo) -> Region {
    if place.0 <= 2 { Region::Europe } else { Region::Asia }
}

pub(crate) fn seen(place: PlaceNo, round: Option<u64>, at: Timestamp, outcome: Outcome) -> Observation {
    let (region, network) = (region(place), NetworkNo(place.0));
    Observation { revision: 1, region, place, network, round, started: at, ended: at, outcome }
}

pub(crate) fn refused() -> Outcome {
    Outcome::Failed(Facts::default(), Failure::Refused)
}

pub(crate) fn passed() -> Outcome {
    Outcome::Passed(Facts { latency_ms: Some(40), ..Facts::default() })
}

/// One monitor, and the number of its probe requests.
pub(crate) struct Tale {
    pub(crate) stage: Stage,
    pub(crate) asked: usize,
    pub(crate) told: Vec<AlertKind>,
    /// Response of Asia if it differs from the others; none if it does not respond.
    pub(crate) asia: Option<Option<Outcome>>,
}

impl Tale {
    pub(crate) fn new() -> Self {
        Self::of(2)
    }

    pub(crate) fn of(count: u16) -> Self {
        let (stage, out) = Stage::new(stage::watch(CheckKind::Tcp, 60_000), places(count), START);
        let mut tale = Self { stage, asked: 0, told: Vec::new(), asia: None };
        tale.hear(out, START, &passed());
        assert_eq!(tale.stage.machine.status(), Status::Up);
        tale
    }

    /// Makes every requested vantage respond at once.
    pub(crate) fn hear(&mut self, out: Vec<Output>, now: Timestamp, answer: &Outcome) {
        let mut left: std::collections::VecDeque<Output> = out.into();
        while let Some(output) = left.pop_front() {
            match output {
                Output::Ask(Ask { number, place, .. }) => {
                    self.asked += 1;
                    assert!(self.asked < 200, "endless probe requests");
                    let elsewhere = self.asia.clone().filter(|_| region(place) == Region::Asia);
                    let Some(answer) = elsewhere.unwrap_or(Some(answer.clone())) else { continue };
                    let seen = Answer::Seen(seen(place, None, now, answer));
                    left.extend(self.stage.answer(number, seen, now));
                }
                Output::Happened(what) => {
                    if let What::Changed(change) = *what {
                        self.told.extend(change.alert);
                    }
                }
                Output::Reading(_) => {}
            }
        }
    }

    pub(crate) fn round(&mut self, now: Timestamp, outcome: &Outcome) {
        self.round_of(1, now, outcome);
    }

    pub(crate) fn round_of(&mut self, place: u16, now: Timestamp, outcome: &Outcome) {
        let round = now.as_millis().unsigned_abs() / 60_000;
        let out = self.stage.observe(seen(PlaceNo(place), Some(round), now, outcome.clone()), now);
        self.hear(out, now, outcome);
    }

    pub(crate) fn pass_time(&mut self, until: Timestamp, outcome: &Outcome) {
        while let Some(at) = self.stage.next_timeout().filter(|at| *at <= until) {
            let out = self.stage.step(at, Machine::handle_timeout);
            self.hear(out, at, outcome);
        }
    }

    /// Steps the clock at that time; returns the new time.
    pub(crate) fn step(&mut self, at: Timestamp, jump: i64, outcome: &Outcome) -> Timestamp {
        let out = self.stage.step(at + jump, |machine, step| machine.handle_step(jump, None, step));
        self.hear(out, at + jump, outcome);
        at + jump
    }

    pub(crate) fn down_from(&self, now: Timestamp) -> Option<RegionSet> {
        assert_eq!(self.stage.machine.status(), Status::Down);
        self.stage.machine.view(&self.stage.mesh(), now).down_from
    }

    /// Makes everything fail from then on, for a minute.
    pub(crate) fn fail_from(&mut self, now: Timestamp) {
        self.round(now, &refused());
        self.pass_time(now + MINUTE, &refused());
    }
}
