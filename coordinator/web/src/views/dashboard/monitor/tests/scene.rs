//! A monitor in some state, with everything that its screens are drawn from.

use chrono_tz::Tz;
use parallax_core::check::edit::CheckEdit;
use parallax_core::event::{MonitorStatus, ProbeReason, RoundReport, StatusChange};
use parallax_core::explanation::{AlertResult, Explanation, ExplanationFacts, OutageIncident, VantageLabel};
use parallax_core::heartbeat::StoredPing;
use parallax_core::id::{IncidentId, MonitorId, PageId};
use parallax_core::machine::{MachineView, RegionInspection};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::monitor::{Monitor, NewMonitor};
use parallax_core::observation::{
    CheckPhase, Failure, Measurements, PhaseDurations, ProbeOutcome, Reading, RoundOutcome,
};
use parallax_core::outage::Outage;
use parallax_core::page::Page;
use parallax_core::page_view::{MonitorView, TimeRange, UptimeSlice};
use parallax_core::patch::PatchField;
use parallax_core::plan::Plan;
use parallax_core::role::Role;
use parallax_core::rollup::OutcomeCounts;
use parallax_core::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};
use parallax_core::uptime::MonitoredTime;
use parallax_core::vantage::{Mesh, NetworkNo, Region, RegionSet, Vantage, VantageNo};
use parallax_core::verdict::RegionStatus;

use super::super::heading::{MonitorHeading, MonitorTab};
use super::super::heartbeat::{self, HeartbeatScreen, PingRow};
use super::super::outcome::VantageLabels;
use super::super::settings_words::CheckPlan;
use super::super::summary::{self, CheckNowView, MonitorSummary, SummaryInput};
use super::super::waterfall::RegionResult;
use crate::views::dashboard::tests::frame;
use crate::views::dashboard::{Section, render};
use crate::views::format::FormattedTime;
use crate::views::tests::{NOW, monitor_view, page};

/// A monitor in some state, with everything that its screen is drawn from.
pub(super) struct Scene {
    pub(super) page: Page,
    pub(super) view: MonitorView,
    pub(super) labels: VantageLabels,
    pub(super) regions: Vec<RegionInspection>,
    pub(super) rounds: Vec<RoundReport>,
    pub(super) change: Option<StatusChange>,
    pub(super) alerts: Vec<AlertResult>,
    pub(super) outages: Vec<Outage>,
    pub(super) incident: Option<&'static str>,
    pub(super) until: Option<Timestamp>,
    pub(super) role: Role,
}

impl Scene {
    pub(super) fn up() -> Self {
        let mut view = monitor_view(3, "Payments API", "Shop", MonitorStatus::Up, 60);
        let spans = TimeRange::Day.slices(NOW, Tz::UTC);
        let slice = |(at, span): (usize, &_)| {
            let counts = OutcomeCounts { passed: 60, slow: if at == 14 { 40 } else { 0 }, ..OutcomeCounts::default() };
            let time = MonitoredTime::of_rounds(HOUR.unsigned_abs(), counts.tally());
            UptimeSlice { span: *span, counts, uptime: counts.tally().percent(), time }
        };
        view.history.slices = spans.iter().enumerate().map(slice).collect();
        let counts: Vec<OutcomeCounts> = view.history.slices.iter().map(|slice| slice.counts).collect();
        view.history.slice_regions = Region::ALL.into_iter().map(|region| (region, counts.clone())).collect();
        let agents = [
            ("fra1", "AS64496", Region::Europe),
            ("nyc3", "AS64498", Region::NorthAmerica),
            ("sao1", "AS64499", Region::SouthAmerica),
            ("jnb1", "AS64501", Region::Africa),
            ("sin1", "AS64503", Region::Asia),
            ("syd1", "AS64505", Region::Oceania),
            ("tyo2", "AS64504", Region::Asia),
            ("lhr1", "AS64497", Region::Europe),
        ];
        let labels = (1..).zip(agents).map(|(no, (name, network, region))| {
            (VantageNo(no), VantageLabel { name: name.to_owned(), network: network.to_owned(), region })
        });
        Self {
            page: page(),
            view,
            labels: labels.collect(),
            regions: Region::ALL.into_iter().map(|region| inspected(region, RegionStatus::Up)).collect(),
            rounds: Vec::new(),
            change: None,
            alerts: Vec::new(),
            outages: Vec::new(),
            incident: None,
            until: None,
            role: Role::Editor,
        }
    }

    /// Down from Asia since fourteen minutes.
    pub(super) fn down() -> Self {
        let mut scene = Self::up();
        let since = NOW - 14 * MINUTE;
        let reason = Failure::Timeout(CheckPhase::Connect);
        let asia = RegionSet::only(Region::Asia);
        scene.view.state = MachineView {
            status: MonitorStatus::Down,
            since: Some(since),
            down_from: Some(asia),
            down_reason: Some(reason.clone()),
            outage_since: Some(since),
            seen_up: RegionSet::ALL.without(asia),
            seen_down: asia,
            ..scene.view.state
        };
        let state = scene.regions.iter_mut().find(|it| it.region == Region::Asia).unwrap();
        (state.status, state.failure) = (RegionStatus::Down, Some(reason.clone()));
        state.newest_started = Some(NOW - 20 * SECOND);
        let failed = || ProbeOutcome::Failed(Measurements::default(), Failure::Timeout(CheckPhase::Connect));
        let evidence = vec![
            report(Region::Asia, since, RoundOutcome::Failed, (5, failed()), Some((7, failed()))),
            report(Region::Asia, since + 5 * SECOND, RoundOutcome::Failed, (7, failed()), Some((5, failed()))),
        ];
        scene.rounds = (1..=6_u16)
            .zip(Region::ALL)
            .filter(|(_, region)| *region != Region::Asia)
            .map(|(no, region)| {
                let round =
                    report(region, since + SECOND, RoundOutcome::Passed, (no, passed(60 + 40 * u32::from(no))), None);
                RoundReport { reason: ProbeReason::Sweep, round: None, ..round }
            })
            .collect();
        scene.change = Some(StatusChange { down_from: Some(asia), evidence, ..change(MonitorStatus::Down, since) });
        let alert = |destination: &str, after: i64, fault: Option<&str>| AlertResult {
            destination: destination.to_owned(),
            at: since + after,
            fault: fault.map(str::to_owned),
        };
        scene.alerts = vec![
            alert("On-call mailbox", 11 * SECOND, None),
            alert("Slack", 11 * SECOND + 200, None),
            alert("PagerDuty", 11 * SECOND + 600, None),
            alert("Ops webhook", 12 * SECOND, Some("answers 500")),
        ];
        scene.outages = vec![Outage { from: since, to: None, reason: Some(reason), regions: Some(asia) }];
        scene.incident = Some("Payments API is down");
        scene
    }

    pub(super) fn explain(&self) -> Explanation {
        let mesh = Mesh::new(self.labels.iter().map(|(no, label)| Vantage {
            no: *no,
            region: label.region,
            network: NetworkNo(no.0),
            connected: true,
            quarantined: false,
            unfit: false,
        }));
        let (id, started_at) = (IncidentId::from_u128(1), NOW - 14 * MINUTE + 11 * SECOND);
        Explanation::new(&ExplanationFacts {
            now: NOW,
            zone: Tz::UTC,
            monitor: &self.view.monitor,
            view: &self.view.state,
            maintenance_until: self.until,
            regions: &self.regions,
            mesh: &mesh,
            agents: &self.labels,
            rounds: &self.rounds,
            change: self.change.as_ref(),
            announced_at: None,
            deadline: None,
            alerts: &self.alerts,
            incident: self.incident.map(|title| OutageIncident { id, title, started_at }),
        })
    }

    pub(super) fn input<'a>(
        &'a self,
        explanation: &'a Explanation,
        rounds: &'a [(Reading, Option<RoundReport>)],
    ) -> SummaryInput<'a> {
        SummaryInput {
            page: &self.page,
            plan: Plan::Pro,
            view: &self.view,
            checked: CheckPlan { interval_ms: Some(60_000), regions: RegionSet::ALL },
            now: NOW,
            is_stale: false,
            range: TimeRange::Day,
            zoom: None,
            outages: &self.outages,
            deploys: &[],
            explanation,
            labels: &self.labels,
            rounds,
        }
    }

    pub(super) fn heading(&self) -> MonitorHeading {
        let plan = CheckPlan { interval_ms: Some(60_000), regions: RegionSet::ALL };
        MonitorHeading::new(
            &self.view.monitor,
            plan,
            MonitorTab::Summary,
            ("token", ["once", "acknowledge"].map(str::to_owned)),
        )
    }

    pub(super) fn render(&self, rounds: &[(Reading, Option<RoundReport>)], check: Option<CheckNowView>) -> String {
        let explanation = self.explain();
        let frame = frame(self.role, Section::Monitors, "Northwind");
        let screen = MonitorSummary::new(frame, self.heading(), self.input(&explanation, rounds), check);
        render(&screen).unwrap()
    }
}

pub(super) fn change(to: MonitorStatus, since: Timestamp) -> StatusChange {
    StatusChange {
        from: MonitorStatus::Up,
        to,
        alert: None,
        since,
        down_since: None,
        reason: None,
        down_from: None,
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        evidence: Vec::new(),
        flapping: None,
    }
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

pub(super) fn passed(latency_ms: u32) -> ProbeOutcome {
    let us = |share: u32| Some(latency_ms * 1000 * share / 100);
    let phases = PhaseDurations {
        dns_us: us(10),
        connect_us: us(24),
        tls_us: us(27),
        first_byte_us: us(36),
        transfer_us: us(3),
    };
    let (latency_ms, status_code) = (Some(latency_ms), Some(200));
    let address = Some("203.0.113.40".parse().unwrap());
    ProbeOutcome::Passed(Measurements { latency_ms, status_code, address, phases, ..Measurements::default() })
}

pub(super) fn report(
    region: Region,
    started: Timestamp,
    round_outcome: RoundOutcome,
    (first, first_outcome): (u16, ProbeOutcome),
    second: Option<(u16, ProbeOutcome)>,
) -> RoundReport {
    RoundReport {
        region,
        reason: ProbeReason::Scheduled,
        round: Some(7),
        started,
        round_outcome,
        first_vantage: VantageNo(first),
        first_outcome,
        second: second.map(|(no, outcome)| (VantageNo(no), outcome)),
        third: None,
    }
}

pub(super) fn reading(
    region: Region,
    vantage: u16,
    ago: i64,
    outcome: RoundOutcome,
    latency_ms: Option<u32>,
) -> Reading {
    Reading { slot: 3, region, vantage: VantageNo(vantage), round: 7, due: NOW - ago, outcome, latency_ms }
}

/// Newest rounds of every kind.
pub(super) fn newest_rounds() -> Vec<(Reading, Option<RoundReport>)> {
    let failed = |failure| ProbeOutcome::Failed(Measurements::default(), failure);
    let disputed =
        report(Region::Africa, NOW, RoundOutcome::Disputed, (4, failed(Failure::NameNotFound)), Some((8, passed(92))));
    let unconfirmed = report(Region::Africa, NOW, RoundOutcome::Unconfirmed, (4, failed(Failure::Reset)), None);
    vec![
        (reading(Region::Asia, 7, 9 * SECOND, RoundOutcome::Failed, None), None),
        (reading(Region::Europe, 1, 18 * SECOND, RoundOutcome::Passed, Some(86)), None),
        (reading(Region::Oceania, 6, 28 * SECOND, RoundOutcome::Passed, Some(259)), None),
        (reading(Region::Africa, 4, 47 * MINUTE, RoundOutcome::Disputed, None), Some(disputed)),
        (reading(Region::Africa, 4, 77 * MINUTE, RoundOutcome::Unconfirmed, None), Some(unconfirmed)),
    ]
}

pub(super) fn check_result(labels: &VantageLabels) -> CheckNowView {
    let (europe, oceania) = (passed(84), passed(259));
    let asia = ProbeOutcome::Failed(
        Measurements {
            phases: PhaseDurations { dns_us: Some(12_000), connect_us: Some(388_000), ..PhaseDurations::default() },
            ..Measurements::default()
        },
        Failure::Timeout(CheckPhase::Connect),
    );
    let result = |region, no, seen| RegionResult {
        region,
        seen: Some((VantageNo(no), seen)),
        missing: None,
        threshold_ms: Some(250),
    };
    let results =
        [result(Region::Europe, 8, &europe), result(Region::Oceania, 6, &oceania), result(Region::Asia, 5, &asia)];
    let at = FormattedTime { iso: NOW.to_string(), text: "12:45:51 UTC".to_owned() };
    CheckNowView::new(at, &results, labels)
}

pub(super) fn heartbeat_scene() -> Scene {
    let mut scene = Scene::up();
    let text = |text: &str| PatchField::Value(text.to_owned());
    let check = CheckEdit {
        period_minutes: PatchField::Value(1440),
        grace_minutes: PatchField::Value(60),
        ..CheckEdit::default()
    };
    let edit = MonitorEdit {
        kind: text("heartbeat"),
        name: text("Nightly report"),
        group: text("Jobs"),
        check,
        ..MonitorEdit::default()
    };
    let new =
        NewMonitor { id: MonitorId::from_u128(9), page: PageId::from_u128(1), slot: 9, position: 9, now: NOW - DAY };
    scene.view.monitor = Monitor::new(new, edit.validate(None, "8Kq2vN7xTn4cWb6YpRzd").unwrap());
    scene.view.state = MachineView::default();
    scene.view.history = Default::default();
    (scene.view.uptime_24h, scene.view.latency_ms) = (None, None);
    scene.regions = Vec::new();
    scene
}

pub(super) fn heartbeat_screen(scene: &Scene, address: Option<&str>, pings: &[StoredPing]) -> String {
    let explanation = scene.explain();
    let input = scene.input(&explanation, &[]);
    let parallax_core::check::Check::Heartbeat(check) = &scene.view.monitor.check else { panic!("a heartbeat") };
    let heading = scene.heading();
    let screen = HeartbeatScreen {
        headline: summary::headline(&input, (&heading, "/app/pages/x"), true),
        notices: summary::notices(&input),
        tools: heartbeat::tools(&heading.path, "cron"),
        snippets: address.map(|url| heartbeat::snippets("cron", url)).unwrap_or_default(),
        address: address.map(str::to_owned),
        timeline: heartbeat::timeline(check, (scene.view.state.last_ping_at, None), (NOW, Tz::UTC)),
        facts: summary::facts(&input),
        pings: pings.iter().map(|ping| PingRow::of(ping, (NOW, Tz::UTC))).collect(),
        frame: frame(scene.role, Section::Monitors, "Northwind"),
        heading,
    };
    render(&screen).unwrap()
}
