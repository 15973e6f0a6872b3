//! Inspections of machines in each status: facts, deadlines and reasons.

use std::collections::BTreeMap;

use super::*;
use crate::check::CheckKind;
use crate::effective::ConfirmationPolicy;
use crate::event::{MonitorStatus, ProbeResponse};
use crate::id::{AccountId, MonitorId};
use crate::machine::{MachineOutput, MachineStep};
use crate::observation::{Measurements, Observation};
use crate::time::SECOND;
use crate::vantage::{NetworkNo, Vantage};

const START: Timestamp = Timestamp::from_millis(1_795_783_560_000);

fn settings(kind: CheckKind) -> EffectiveSettings {
    EffectiveSettings {
        monitor: MonitorId::from_u128(7),
        account: AccountId::from_u128(1),
        revision: 1,
        kind,
        interval_ms: 60_000,
        pinned: None,
        uptime_regions: None,
        latency_regions: RegionSet::only(Region::Europe),
        slow_threshold_ms: None,
        slow_thresholds: BTreeMap::new(),
        heartbeat: (kind == CheckKind::Heartbeat).then_some((60 * SECOND, 30 * SECOND)),
        confirmation: ConfirmationPolicy::OtherNetwork,
        repeat_minutes: Some(10),
        paused: false,
        acknowledged_outage: None,
    }
}

fn mesh() -> Mesh {
    Mesh::new([(1, Region::Europe), (2, Region::Europe), (3, Region::Asia)].map(|(no, region)| Vantage {
        no: VantageNo(no),
        region,
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
        unfit: false,
    }))
}

/// A machine whose probe requests are answered at once.
struct AnsweredMachine {
    machine: MonitorMachine,
    mesh: Mesh,
    now: Timestamp,
}

impl AnsweredMachine {
    fn new(kind: CheckKind) -> Self {
        let (mesh, mut out) = (mesh(), Vec::new());
        let machine = MonitorMachine::new(settings(kind), &mut MachineStep { now: START, mesh: &mesh, out: &mut out });
        let mut answered = Self { machine, mesh, now: START };
        answered.answer(out, &passed());
        answered
    }

    /// Answers all probe requests with that outcome, until there are no more.
    fn answer(&mut self, mut out: Vec<MachineOutput>, outcome: &ProbeOutcome) {
        while let Some(output) = out.pop() {
            let MachineOutput::Probe(request) = output else { continue };
            let seen = self.seen(request.vantage, None, outcome.clone());
            let mut step = MachineStep { now: self.now, mesh: &self.mesh, out: &mut out };
            self.machine.handle_response(request.number, ProbeResponse::Observed(seen), &mut step);
        }
    }

    fn seen(&self, vantage: VantageNo, round: Option<u64>, outcome: ProbeOutcome) -> Observation {
        let of = self.mesh.vantage(vantage).unwrap();
        Observation {
            revision: 1,
            region: of.region,
            vantage,
            network: of.network,
            round,
            started: self.now,
            ended: self.now,
            outcome,
        }
    }

    /// Lets a scheduled round of the first vantage fail, without an answer to what it leads to.
    fn fail_round(&mut self) -> Vec<MachineOutput> {
        let round = self.now.as_millis().unsigned_abs() / 60_000;
        let seen = self.seen(VantageNo(1), Some(round), refused());
        let mut out = Vec::new();
        self.machine.handle_observation(seen, &mut MachineStep { now: self.now, mesh: &self.mesh, out: &mut out });
        out
    }

    fn pass_time(&mut self, millis: i64, outcome: &ProbeOutcome) {
        let until = self.now + millis;
        while let Some(at) = self.machine.poll_timeout().filter(|at| *at <= until) {
            self.now = at.max(self.now);
            let mut out = Vec::new();
            self.machine.handle_timeout(&mut MachineStep { now: self.now, mesh: &self.mesh, out: &mut out });
            self.answer(out, outcome);
        }
        self.now = until;
    }

    fn inspect(&self) -> MachineInspection {
        let inspection = self.machine.inspect(&self.mesh, self.now);
        assert_eq!(inspection.deadlines.first().map(|deadline| deadline.at), self.machine.poll_timeout());
        inspection
    }
}

fn passed() -> ProbeOutcome {
    ProbeOutcome::Passed(Measurements { latency_ms: Some(40), ..Measurements::default() })
}

fn refused() -> ProbeOutcome {
    ProbeOutcome::Failed(Measurements::default(), Failure::Refused)
}

#[test]
fn a_monitor_that_is_up_says_which_regions_see_it_so() {
    let mut stage = AnsweredMachine::new(CheckKind::Tcp);
    stage.now = START + 20 * SECOND;
    let seen = stage.inspect();
    assert_eq!(seen.view.status, MonitorStatus::Up);
    assert_eq!(seen.regions.iter().map(|it| it.region).collect::<Vec<_>>(), [Region::Europe, Region::Asia]);
    assert_eq!(
        seen.reasons,
        [
            "It is up: no region that counts (Europe, Asia) is down, and at least one is up.",
            "Europe is up; its newest round began at 2026-11-27T12:46:00.000Z.",
            "Asia is up; its newest round began at 2026-11-27T12:46:00.000Z.",
        ]
    );
    assert!(seen.deadlines.iter().all(|it| it.kind == DeadlineKind::Stale), "{:?}", seen.deadlines);
}

#[test]
fn a_failed_round_shows_its_confirmation_then_its_suspicion_then_the_outage() {
    let mut stage = AnsweredMachine::new(CheckKind::Tcp);
    stage.now = START + 60 * SECOND;
    let asked = stage.fail_round();
    let seen = stage.inspect();
    let [round] = seen.open_rounds.as_slice() else { panic!("{:?}", seen.open_rounds) };
    assert_eq!((round.vantage, round.first.clone(), round.second.clone()), (VantageNo(1), Some(refused()), None));
    assert!(round.confirming.is_some());
    assert!(seen.reasons.contains(&"A finished round waits for another network.".to_owned()), "{:?}", seen.reasons);

    stage.answer(asked, &refused());
    let seen = stage.inspect();
    assert_eq!(seen.suspicion.map(|it| it.failing.contains(Region::Europe)), Some(true));
    let first = "Europe had a failed and confirmed round at 2026-11-27T12:47:00.000Z (connection refused); a second \
                 one in a row makes it down.";
    assert!(seen.reasons.iter().any(|reason| reason == first), "{:?}", seen.reasons);
    assert!(seen.deadlines.iter().any(|it| it.kind == DeadlineKind::SecondRound), "{:?}", seen.deadlines);

    stage.pass_time(20 * SECOND, &refused());
    let seen = stage.inspect();
    assert_eq!(seen.view.status, MonitorStatus::Down);
    let outage = "An outage is open since 2026-11-27T12:47:00.000Z: connection refused.";
    assert_eq!(seen.reasons.last().map(String::as_str), Some(outage));
    assert!(seen.deadlines.iter().any(|it| it.kind == DeadlineKind::StillDownAlert), "{:?}", seen.deadlines);
    assert!(!seen.evidence.is_empty());
}

#[test]
fn a_heartbeat_and_a_paused_monitor_have_no_regions_to_give_as_reasons() {
    let stage = AnsweredMachine::new(CheckKind::Heartbeat);
    let seen = stage.inspect();
    assert_eq!(seen.reasons, ["It is unknown until the first ping arrives."]);
    assert!(seen.regions.is_empty() && seen.heartbeat.is_some());

    let mut stage = AnsweredMachine::new(CheckKind::Tcp);
    let paused = EffectiveSettings { paused: true, ..settings(CheckKind::Tcp) };
    let mut out = Vec::new();
    stage.machine.handle_edit(paused, &mut MachineStep { now: stage.now, mesh: &stage.mesh, out: &mut out });
    assert_eq!(stage.inspect().reasons, ["It is paused: no checks are run."]);
}

#[test]
fn an_agent_that_is_alone_is_named_as_the_reason_for_no_outage() {
    let mut stage = AnsweredMachine::new(CheckKind::Tcp);
    stage.mesh = Mesh::new(stage.mesh.vantages().iter().copied().take(1));
    stage.now = START + 60 * SECOND;
    let asked = stage.fail_round();
    stage.answer(asked, &refused());
    let seen = stage.inspect();
    assert!(!seen.confirmable);
    let alone = "No second network can confirm its failures, so no failure can make it down.";
    assert!(seen.reasons.iter().any(|reason| reason == alone), "{:?}", seen.reasons);
    assert_eq!(seen.regions.first().and_then(|it| it.not_passed), Some(RoundOutcome::Unconfirmed));
}

/// Reasons of a TCP monitor with that pinned region, once `change` has been applied to every vantage.
fn reasons_with(pinned: Option<Region>, change: impl Fn(&mut Vantage)) -> Vec<String> {
    let mut stage = AnsweredMachine::new(CheckKind::Tcp);
    let edited = EffectiveSettings { pinned, ..settings(CheckKind::Tcp) };
    let mut out = Vec::new();
    stage.machine.handle_edit(edited, &mut MachineStep { now: stage.now, mesh: &stage.mesh, out: &mut out });
    stage.answer(out, &passed());
    let mut vantages = stage.mesh.vantages().to_vec();
    vantages.iter_mut().for_each(change);
    stage.mesh = Mesh::new(vantages);
    stage.inspect().reasons
}

const NO_AGENT: &str = "No agent that may check it is connected, so no check is run.";
const ALL_QUARANTINED: &str = "Every connected agent that may check it is in quarantine, so no round counts.";
const SOME_QUARANTINED: &str = "Agents in quarantine, whose rounds don't count: ";

#[test]
fn agents_in_quarantine_are_connected_and_none_of_their_rounds_counts() {
    let reasons = reasons_with(None, |vantage| vantage.quarantined = true);
    assert!(reasons.iter().any(|reason| reason == ALL_QUARANTINED), "{reasons:?}");
    let is_another = |reason: &String| reason.starts_with(SOME_QUARANTINED) || reason == NO_AGENT;
    assert!(!reasons.iter().any(is_another), "{reasons:?}");

    let reasons = reasons_with(None, |vantage| vantage.quarantined = vantage.no == VantageNo(3));
    let some = format!("{SOME_QUARANTINED}1.");
    assert!(reasons.contains(&some) && !reasons.iter().any(|reason| reason == ALL_QUARANTINED), "{reasons:?}");

    let reasons = reasons_with(None, |vantage| vantage.connected = false);
    assert!(reasons.iter().any(|reason| reason == NO_AGENT), "{reasons:?}");

    // An agent in quarantine that is away does not change that the others are all in quarantine.
    let reasons = reasons_with(None, |vantage| {
        vantage.quarantined = true;
        vantage.connected = vantage.no != VantageNo(3);
    });
    assert!(reasons.iter().any(|reason| reason == ALL_QUARANTINED), "{reasons:?}");
}

#[test]
fn a_pinned_monitor_is_explained_by_the_agents_of_its_region_alone() {
    let asia = Some(Region::Asia);
    let reasons = reasons_with(asia, |vantage| vantage.connected = vantage.region != Region::Asia);
    assert!(reasons.iter().any(|reason| reason == NO_AGENT), "{reasons:?}");

    let reasons = reasons_with(asia, |vantage| vantage.quarantined = vantage.region == Region::Asia);
    assert!(reasons.iter().any(|reason| reason == ALL_QUARANTINED), "{reasons:?}");

    let reasons = reasons_with(asia, |vantage| vantage.quarantined = vantage.region == Region::Europe);
    assert!(reasons.iter().all(|reason| !reason.contains("quarantine") && reason != NO_AGENT), "{reasons:?}");
}
