//! A monitor in some state, with everything that its explanation is made from.

use std::collections::BTreeMap;

use chrono_tz::Tz;

use super::super::*;
use crate::check::edit::CheckEdit;
use crate::event::{MonitorStatus, ProbeReason};
use crate::id::{MonitorId, PageId};
use crate::machine::LastCheck;
use crate::monitor::NewMonitor;
use crate::monitor::edit::MonitorEdit;
use crate::observation::{CheckPhase, Failure, Measurements, ProbeOutcome, RoundOutcome};
use crate::patch::PatchField;
use crate::time::{DAY, HOUR, MINUTE, SECOND};
use crate::vantage::{NetworkNo, RegionSet, Vantage};
use crate::verdict::RegionStatus;

/// 27 November 2026, 12:46:00 UTC.
pub(super) const NOW: Timestamp = Timestamp::from_millis(1_795_783_560_000);

/// Everything that a test sets, with a monitor that is up as the default.
pub(super) struct Scene {
    pub(super) monitor: Monitor,
    pub(super) view: MachineView,
    pub(super) until: Option<Timestamp>,
    pub(super) regions: Vec<RegionInspection>,
    pub(super) mesh: Mesh,
    pub(super) agents: BTreeMap<VantageNo, VantageLabel>,
    pub(super) rounds: Vec<RoundReport>,
    pub(super) change: Option<StatusChange>,
    pub(super) announced_at: Option<Timestamp>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) alerts: Vec<AlertResult>,
    pub(super) incident: bool,
}

impl Scene {
    pub(super) fn new(kind: &str) -> Self {
        let text = |text: &str| PatchField::Value(text.to_owned());
        let check = match kind {
            "heartbeat" => CheckEdit {
                period_minutes: PatchField::Value(1440),
                grace_minutes: PatchField::Value(60),
                ..CheckEdit::default()
            },
            "component" => CheckEdit { vendor_url: text("https://vendor.example"), ..CheckEdit::default() },
            _ => CheckEdit { url: text("https://example.com"), ..CheckEdit::default() },
        };
        let edit = MonitorEdit { kind: text(kind), name: text("Payments"), check, ..MonitorEdit::default() };
        let (id, page) = (MonitorId::from_u128(1), PageId::from_u128(1));
        let new = NewMonitor { id, page, slot: 1, position: 0, now: NOW - DAY };
        let names = ["fra1", "nyc1", "sao1", "jnb1", "sin1", "syd1", "tyo2", "lhr1"];
        let regions = Region::ALL.into_iter().chain([Region::Asia, Region::Europe]);
        let agents = (1_u16..).zip(regions).zip(names).map(|((no, region), name)| {
            let network = format!("AS{}", 64500 + u32::from(no));
            (VantageNo(no), VantageLabel { name: name.to_owned(), network, region })
        });
        let agents: BTreeMap<_, _> = agents.collect();
        let mesh = Mesh::new(agents.iter().map(|(no, label)| vantage(no.0, label.region)));
        let view = MachineView {
            status: MonitorStatus::Up,
            since: Some(NOW - HOUR),
            seen_up: RegionSet::ALL,
            last_check: Some(last_check(NOW - MINUTE, None)),
            ..MachineView::default()
        };
        Self {
            monitor: Monitor::new(new, edit.validate(None, "token").unwrap()),
            view,
            until: None,
            regions: Region::ALL.into_iter().map(|region| inspected(region, RegionStatus::Up)).collect(),
            mesh,
            agents,
            rounds: Vec::new(),
            change: None,
            announced_at: None,
            deadline: None,
            alerts: Vec::new(),
            incident: false,
        }
    }

    pub(super) fn explain(&self) -> Explanation {
        let incident = OutageIncident { id: IncidentId::from_u128(1), title: "Payments is down", started_at: NOW };
        Explanation::new(&ExplanationFacts {
            now: NOW,
            zone: Tz::UTC,
            monitor: &self.monitor,
            view: &self.view,
            maintenance_until: self.until,
            regions: &self.regions,
            mesh: &self.mesh,
            agents: &self.agents,
            rounds: &self.rounds,
            change: self.change.as_ref(),
            announced_at: self.announced_at,
            deadline: self.deadline,
            alerts: &self.alerts,
            incident: self.incident.then_some(incident),
        })
    }

    pub(super) fn region(&mut self, region: Region) -> &mut RegionInspection {
        self.regions.iter_mut().find(|it| it.region == region).unwrap()
    }

    /// Down from Asia since fourteen minutes, five seconds apart, with a sweep in between.
    pub(super) fn down() -> Self {
        let mut scene = Self::new("http");
        let since = NOW - 14 * MINUTE;
        let timeout = Failure::Timeout(CheckPhase::Connect);
        scene.view = MachineView {
            status: MonitorStatus::Down,
            since: Some(since),
            down_from: Some(RegionSet::only(Region::Asia)),
            down_reason: Some(timeout.clone()),
            outage_since: Some(since),
            seen_up: RegionSet::ALL.without(RegionSet::only(Region::Asia)),
            seen_down: RegionSet::only(Region::Asia),
            ..scene.view
        };
        let asia = scene.region(Region::Asia);
        (asia.status, asia.failure, asia.newest_started) = (RegionStatus::Down, Some(timeout), Some(NOW - 20 * SECOND));
        let evidence = vec![
            report(Region::Asia, since, RoundOutcome::Failed, (5, false), Some((7, false))),
            report(Region::Asia, since + 5 * SECOND, RoundOutcome::Failed, (7, false), Some((5, false))),
        ];
        let sweep = |region: Region| {
            let no = scene.agents.iter().find(|(_, label)| label.region == region).unwrap().0.0;
            let passed = report(region, since + SECOND, RoundOutcome::Passed, (no, true), None);
            RoundReport { reason: ProbeReason::Sweep, round: None, ..passed }
        };
        let others = Region::ALL.into_iter().filter(|region| *region != Region::Asia);
        scene.rounds = others.map(sweep).collect();
        let down_from = scene.view.down_from;
        scene.change = Some(StatusChange { down_from, ..change(MonitorStatus::Down, since, evidence) });
        scene
    }
}

/// Makes the monitor down for fourteen minutes.
pub(super) fn down_as(scene: &mut Scene, reason: Failure) {
    let view = std::mem::take(&mut scene.view);
    let since = Some(NOW - 14 * MINUTE);
    let (status, down_reason) = (MonitorStatus::Down, Some(reason));
    scene.view = MachineView { status, since, outage_since: since, down_reason, ..view };
}

pub(super) fn change(to: MonitorStatus, since: Timestamp, evidence: Vec<RoundReport>) -> StatusChange {
    StatusChange { from: MonitorStatus::Up, evidence, ..StatusChange::new(to, since) }
}

pub(super) fn vantage(no: u16, region: Region) -> Vantage {
    let (no, network) = (VantageNo(no), NetworkNo(no));
    Vantage { no, region, network, connected: true, quarantined: false, unfit: false }
}

pub(super) fn last_check(at: Timestamp, error: Option<Failure>) -> LastCheck {
    LastCheck { at, ok: error.is_none(), facts: Measurements::default(), error }
}

pub(super) fn inspected(region: Region, status: RegionStatus) -> RegionInspection {
    RegionInspection {
        region,
        status,
        counts: true,
        first_failure: None,
        down_since: None,
        failure: None,
        newest_started: None,
        newest_arrived: None,
        not_passed: None,
        disputed_since: None,
    }
}

pub(super) fn outcome(passed: bool) -> ProbeOutcome {
    let facts = Measurements::default();
    if passed { ProbeOutcome::Passed(facts) } else { ProbeOutcome::Failed(facts, Failure::Refused) }
}

pub(super) fn report(
    region: Region,
    started: Timestamp,
    round_outcome: RoundOutcome,
    first: (u16, bool),
    second: Option<(u16, bool)>,
) -> RoundReport {
    RoundReport {
        region,
        reason: ProbeReason::Scheduled,
        round: Some(1),
        started,
        round_outcome,
        first_vantage: VantageNo(first.0),
        first_outcome: outcome(first.1),
        second: second.map(|(no, passed)| (VantageNo(no), outcome(passed))),
        third: None,
    }
}
