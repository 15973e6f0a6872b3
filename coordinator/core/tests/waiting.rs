//! Rounds that are pending, retried elsewhere and requested again after restarts: none of them is left behind.

#![allow(clippy::unwrap_used, dead_code, reason = "the stage is shared; a decode error may panic")]

#[path = "story/reports.rs"]
mod reports;
#[path = "story/stage.rs"]
mod stage;

use parallax_core::check::CheckKind;
use parallax_core::event::{EventKind, MonitorStatus, ProbeReason, ProbeRequest, ProbeResponse, RoundReport};
use parallax_core::machine::{MachineOutput, MonitorMachine};
use parallax_core::observation::{Failure, Measurements, Observation, ProbeOutcome, RoundOutcome};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::vantage::{NetworkNo, Region, Vantage, VantageNo};
use proptest::prelude::*;
use stage::MachineStage;

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

#[derive(Debug, Clone)]
enum Act {
    Wait(i64),
    /// Sends a scheduled round of that vantage.
    Round(usize, ProbeOutcome),
    /// Responds to an open probe request; without an outcome if its vantage is gone.
    Answer(usize, Option<ProbeOutcome>),
    Restart(i64),
}

fn acts() -> impl Strategy<Value = Act> {
    let failed = || ProbeOutcome::Failed(Measurements::default(), Failure::Refused);
    let answers = prop_oneof![
        2 => Just(None),
        3 => Just(Some(ProbeOutcome::Pending)),
        3 => Just(Some(failed())),
        1 => Just(Some(ProbeOutcome::Passed(Measurements::default()))),
    ];
    let rounds = prop_oneof![1 => Just(ProbeOutcome::Pending), 2 => Just(failed())];
    prop_oneof![
        4 => (500..3_000_i64).prop_map(Act::Wait),
        2 => (0..6_usize, rounds).prop_map(|(vantage, outcome)| Act::Round(vantage, outcome)),
        8 => (0..6_usize, answers).prop_map(|(which, outcome)| Act::Answer(which, outcome)),
        1 => (0..3_000_i64).prop_map(Act::Restart),
    ]
}

struct Play {
    stage: MachineStage,
    now: Timestamp,
    rounds: u64,
    open: Vec<ProbeRequest>,
    /// Reports of finished rounds that the journal gets.
    reports: Vec<RoundReport>,
}

impl Play {
    fn hear(&mut self, out: Vec<MachineOutput>) {
        for output in out {
            match output {
                MachineOutput::Probe(ask) => self.open.push(ask),
                MachineOutput::Event(event) => {
                    if let EventKind::Round(report) = *event {
                        reports::assert_consistent(&report);
                        self.reports.push(report);
                    }
                }
                MachineOutput::Reading(_) => {}
            }
        }
    }

    fn wait(&mut self, millis: i64) {
        let until = self.now + millis;
        while let Some(at) = self.stage.next_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            let out = self.stage.step(self.now, MonitorMachine::handle_timeout);
            self.hear(out);
        }
        self.now = until;
    }

    fn seen(&self, vantage: Vantage, round: Option<u64>, outcome: ProbeOutcome) -> Observation {
        let (no, now) = (vantage.no, self.now);
        let Vantage { region, network, .. } = vantage;
        Observation { revision: 1, region, vantage: no, network, round, started: now, ended: now, outcome }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Wait(millis) => self.wait(millis),
            Act::Round(vantage, outcome) => {
                let due = self.now.as_millis().unsigned_abs() / 60_000;
                self.rounds = due.max(self.rounds + 1).min(due + 4);
                let seen = self.seen(self.stage.vantages[vantage], Some(self.rounds), outcome);
                let out = self.stage.observe(seen, self.now);
                self.hear(out);
            }
            Act::Answer(which, outcome) => {
                let Some(ask) = self.open.get(which).copied() else { return };
                if outcome != Some(ProbeOutcome::Pending) {
                    self.open.remove(which);
                }
                let vantage = self.stage.vantages[usize::from(ask.vantage.0)];
                let seen = |outcome| ProbeResponse::Observed(self.seen(vantage, None, outcome));
                let answer = outcome.map_or(ProbeResponse::NoResponse, seen);
                let out = self.stage.respond(ask.number, answer, self.now);
                self.hear(out);
            }
            Act::Restart(away) => {
                self.stage.stop(self.now);
                self.open.clear();
                self.now = self.now + away;
                let out = self.stage.start(self.now);
                self.hear(out);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_round_outlasts_its_deadline(acts in prop::collection::vec(acts(), 1..60)) {
        let vantage = |no: u16| Vantage {
            no: VantageNo(no),
            region: Region::ALL[usize::from(no % 3)],
            network: NetworkNo(no),
            connected: true,
            quarantined: false,
            unfit: false,
        };
        let vantages = (0..6).map(vantage).collect();
        let (stage, out) = MachineStage::new(stage::effective_settings(CheckKind::Http, 60_000), vantages, START);
        let mut play = Play { stage, now: START, rounds: 0, open: Vec::new(), reports: Vec::new() };
        play.hear(out);
        // Every region is up.
        for ask in std::mem::take(&mut play.open) {
            let vantage = play.stage.vantages[usize::from(ask.vantage.0)];
            let passed = ProbeOutcome::Passed(Measurements::default());
            let answer = ProbeResponse::Observed(play.seen(vantage, None, passed));
            play.stage.respond(ask.number, answer, play.now);
        }
        play.wait(MINUTE);
        for act in acts {
            play.act(act);
        }
        play.wait(10 * MINUTE);
        prop_assert!(!play.stage.machine.has_rounds());
    }
}

#[test]
fn an_outvoted_pass_is_reported_as_the_failure_of_the_others() {
    let vantage = |no: u16, region| Vantage {
        no: VantageNo(no),
        region,
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
        unfit: false,
    };
    let asia = Region::Asia;
    let vantages = vec![vantage(0, Region::Europe), vantage(1, asia), vantage(2, asia), vantage(3, asia)];
    let (stage, out) = MachineStage::new(stage::effective_settings(CheckKind::Http, 60_000), vantages, START);
    let mut play = Play { stage, now: START, rounds: 0, open: Vec::new(), reports: Vec::new() };
    play.hear(out);
    let passed = || ProbeOutcome::Passed(Measurements::default());
    let failed = || ProbeOutcome::Failed(Measurements::default(), Failure::Refused);
    let answer_all = |play: &mut Play, asia_is_up: bool| {
        while let Some(ask) = play.open.first() {
            let is_up = ask.vantage == VantageNo(0) || asia_is_up;
            play.act(Act::Answer(0, Some(if is_up { passed() } else { failed() })));
        }
    };
    answer_all(&mut play, true);
    play.act(Act::Wait(MINUTE));
    play.act(Act::Round(1, failed()));
    for _ in 0..8 {
        answer_all(&mut play, false);
        play.act(Act::Wait(1_000));
    }
    let settings = play.stage.machine.settings().clone();
    assert!(settings.uptime_regions.is_none() && play.stage.machine.status() == MonitorStatus::Down);
    play.act(Act::Wait(MINUTE));
    // Europe's check is pending, so Asia is checked provisionally: one vantage passes, and two others fail.
    play.act(Act::Round(0, ProbeOutcome::Pending));
    play.reports.clear();
    let sweep = play.open.iter().position(|ask| ask.reason == ProbeReason::Sweep).unwrap();
    play.act(Act::Answer(sweep, Some(passed())));
    answer_all(&mut play, false);
    let round = play.rounds;
    let seen = play.seen(play.stage.vantages[0], Some(round), passed());
    let out = play.stage.observe(seen, play.now);
    play.hear(out);
    let outvoted = |report: &RoundReport| {
        let third = report.third.as_deref().map(|(_, outcome)| outcome);
        report.round_outcome == RoundOutcome::Failed && matches!(third, Some(ProbeOutcome::Passed(_)))
    };
    assert!(play.reports.iter().any(outvoted), "{:?}", play.reports);
}
