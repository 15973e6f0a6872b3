//! A wall clock that goes forth and comes back, and a coordinator that stands still: nothing stays wrong for as long.

#![allow(clippy::unwrap_used, dead_code, reason = "the stage is shared; what can't be read fails the test")]

#[path = "cast/stage.rs"]
mod stage;

use parallax_core::check::CheckKind;
use parallax_core::event::{AlertKind, Answer, Ask, Status, What};
use parallax_core::heartbeat::Beat;
use parallax_core::machine::{Machine, Output};
use parallax_core::observation::{Facts, Failure, Observation, Outcome};
use parallax_core::place::{NetworkNo, Place, PlaceNo, Region};
use parallax_core::time::{HOUR, MINUTE, SECOND, Timestamp};
use stage::Stage;

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn places() -> Vec<Place> {
    let place = |no| Place {
        no: PlaceNo(no),
        region: Region::Europe,
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
    };
    [place(1), place(2)].to_vec()
}

fn seen(place: PlaceNo, round: Option<u64>, at: Timestamp, outcome: Outcome) -> Observation {
    let (region, network) = (Region::Europe, NetworkNo(place.0));
    Observation { revision: 1, region, place, network, round, started: at, ended: at, outcome }
}

fn refused() -> Outcome {
    Outcome::Failed(Facts::default(), Failure::Refused)
}

fn passed() -> Outcome {
    Outcome::Passed(Facts { latency_ms: Some(40), ..Facts::default() })
}

/// One monitor, and how many questions it has asked.
struct Tale {
    stage: Stage,
    asked: usize,
    told: Vec<AlertKind>,
}

impl Tale {
    fn new() -> Self {
        let (stage, out) = Stage::new(stage::watch(CheckKind::Tcp, 60_000), places(), START);
        let mut tale = Self { stage, asked: 0, told: Vec::new() };
        tale.hear(out, START, &passed());
        assert_eq!(tale.stage.machine.status(), Status::Up);
        tale
    }

    /// Whoever is asked answers at once.
    fn hear(&mut self, out: Vec<Output>, now: Timestamp, answer: &Outcome) {
        let mut left: std::collections::VecDeque<Output> = out.into();
        while let Some(output) = left.pop_front() {
            match output {
                Output::Ask(Ask { number, place, .. }) => {
                    self.asked += 1;
                    assert!(self.asked < 200, "it asks without end");
                    let seen = Answer::Seen(seen(place, None, now, answer.clone()));
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

    fn round(&mut self, now: Timestamp, outcome: &Outcome) {
        let round = now.as_millis().unsigned_abs() / 60_000;
        let out = self.stage.observe(seen(PlaceNo(1), Some(round), now, outcome.clone()), now);
        self.hear(out, now, outcome);
    }

    fn pass_time(&mut self, until: Timestamp, outcome: &Outcome) {
        while let Some(at) = self.stage.next_timeout().filter(|at| *at <= until) {
            let out = self.stage.step(at, Machine::handle_timeout);
            self.hear(out, at, outcome);
        }
    }

    /// Everything fails from then on, for a minute.
    fn fail_from(&mut self, now: Timestamp) {
        self.round(now, &refused());
        self.pass_time(now + MINUTE, &refused());
    }
}

#[test]
fn an_outage_after_a_recovery_of_the_future_is_an_outage_of_its_own() {
    let mut tale = Tale::new();
    tale.fail_from(START + HOUR);
    tale.round(START + HOUR + 2 * MINUTE, &passed());
    assert_eq!(tale.told, [AlertKind::WentDown, AlertKind::Recovered]);
    // The clock was an hour ahead.
    let out = tale.stage.step(START + 5 * MINUTE, Machine::handle_timeout);
    tale.hear(out, START + 5 * MINUTE, &passed());
    tale.fail_from(START + 6 * MINUTE);
    assert_eq!(tale.told.last(), Some(&AlertKind::WentDown));
    assert_eq!(tale.stage.machine.status(), Status::Down);
}

#[test]
fn a_first_failure_of_the_future_holds_up_no_outage() {
    let mut tale = Tale::new();
    tale.round(START + HOUR, &refused());
    let out = tale.stage.step(START + 5 * MINUTE, Machine::handle_timeout);
    tale.hear(out, START + 5 * MINUTE, &refused());
    tale.pass_time(START + 5 * MINUTE + 10 * SECOND, &refused());
    assert_eq!(tale.told, [AlertKind::WentDown]);
}

#[test]
fn what_people_see_follows_the_present_again() {
    let mut tale = Tale::new();
    tale.round(START + HOUR, &passed());
    tale.round(START + 6 * MINUTE, &passed());
    let view = tale.stage.machine.view(&tale.stage.mesh());
    assert_eq!(view.last_check.unwrap().at, START + 6 * MINUTE);
}

#[test]
fn a_coordinator_that_stood_still_makes_no_job_late_and_no_region_stale() {
    let mut watch = stage::watch(CheckKind::Heartbeat, 0);
    watch.beat = Some((HOUR, 5 * MINUTE));
    let (mut stage, _) = Stage::new(watch, Vec::new(), START);
    stage.beat(Beat::Ran, START);
    let back = START + 3 * HOUR;
    let out = stage.step(back, |machine, step| machine.handle_absence(START + 58 * MINUTE, step));
    assert_eq!((out, stage.machine.status()), (Vec::new(), Status::Up));
    assert_eq!(stage.next_timeout(), Some(back + HOUR + 5 * MINUTE));

    let mut tale = Tale::new();
    let out = tale.stage.step(back, |machine, step| machine.handle_absence(START, step));
    assert_eq!((out, tale.stage.machine.status()), (Vec::new(), Status::Up));
    tale.pass_time(back + 5 * MINUTE, &passed());
    assert_eq!(tale.stage.machine.status(), Status::Unknown, "five minutes after its return it is");
}

#[test]
fn a_deadline_of_the_future_comes_back_with_the_clock() {
    let mut watch = stage::watch(CheckKind::Heartbeat, 0);
    watch.beat = Some((HOUR, 0));
    let (mut stage, _) = Stage::new(watch, Vec::new(), START);
    stage.beat(Beat::Ran, START + 24 * HOUR);
    stage.step(START, Machine::handle_timeout);
    assert_eq!(stage.next_timeout(), Some(START + HOUR));
}

#[test]
fn rounds_count_again_after_a_clock_that_was_ahead_when_the_monitor_was_paused() {
    let mut tale = Tale::new();
    tale.round(START + 24 * HOUR, &passed());
    tale.stage.edit(START + 24 * HOUR, |watch| watch.paused = true);
    let out = tale.stage.edit(START + MINUTE, |watch| watch.paused = false);
    tale.hear(out, START + MINUTE, &passed());
    let at = START + 10 * MINUTE;
    tale.round(at, &passed());
    assert_eq!(tale.stage.machine.view(&tale.stage.mesh()).last_check.unwrap().at, at);
}
