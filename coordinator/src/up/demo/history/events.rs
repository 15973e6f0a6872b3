//! Events of the simulated past with their evidence, as far back as events are kept.

use parallax_core::event::{AlertKind, Event, EventKind, MonitorStatus, ProbeReason, RoundReport, StatusChange};
use parallax_core::observation::{CheckPhase, Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::time::{DAY, SECOND, Timestamp};
use parallax_core::vantage::RegionSet;

use super::readings::{SimulatedMonitor, SimulatedRound};
use super::script::{Calendar, DISPUTED, OUTAGES, SLOW, ScriptedOutage};

/// Days for which events are kept.
const EVENT_DAYS: i64 = 30;
/// Milliseconds from the first failed round to the sweep of the other regions, to the second rounds, and to the alert.
const SWEEP: i64 = 2 * SECOND;
const SECOND_ROUND: i64 = 5 * SECOND;
const ALERT: i64 = 8 * SECOND;

/// Events of all monitors and those of incidents, oldest first.
pub(super) fn past_events(calendar: Calendar, monitors: &[SimulatedMonitor], of_incidents: Vec<Event>) -> Vec<Event> {
    let mut events: Vec<Event> = monitors.iter().flat_map(|monitor| of_monitor(calendar, monitor)).collect();
    events.extend(of_incidents);
    events.retain(|event| calendar.now.since(event.at) < EVENT_DAYS * DAY);
    events.sort_by_key(|event| event.at);
    events
}

/// The two events of an outage of a monitor; none if it had no rounds then.
pub(super) fn outage_events(calendar: Calendar, monitor: &SimulatedMonitor, outage: &ScriptedOutage) -> Vec<Event> {
    let span = calendar.span(outage.start, outage.minutes);
    if let Some(past) = &monitor.component {
        let of_outage = |event: &&Event| matches!(&event.kind, EventKind::StatusChanged(change) if change.down_since.is_some_and(|at| span.contains(at)));
        return past.events.iter().filter(of_outage).cloned().collect();
    }
    let regions = monitor.regions().intersection(outage.regions);
    let earliest = |at| {
        let rounds = regions.iter().filter_map(|region| monitor.first_round(calendar, region, at));
        rounds.min_by_key(|round| round.due)
    };
    let (Some(first), Some(passed)) = (earliest(span.from), earliest(span.to)) else { return Vec::new() };
    let down = StatusChange {
        alert: Some(AlertKind::WentDown),
        down_since: Some(first.due),
        reason: Some((outage.failure)()),
        down_from: (outage.regions != RegionSet::ALL).then_some(outage.regions),
        evidence: evidence(calendar, monitor, first, regions, &(outage.failure)()),
        ..change(MonitorStatus::Up, MonitorStatus::Down, first.due)
    };
    let up = StatusChange {
        alert: Some(AlertKind::Recovered),
        down_since: Some(first.due),
        reason: Some((outage.failure)()),
        latency_ms: monitor.latency_ms(calendar, passed),
        duration_ms: u64::try_from(passed.due.since(first.due)).ok(),
        ..change(MonitorStatus::Down, MonitorStatus::Up, passed.due)
    };
    vec![event(monitor, first.due + ALERT, down), event(monitor, passed.due + SECOND, up)]
}

fn of_monitor(calendar: Calendar, monitor: &SimulatedMonitor) -> Vec<Event> {
    let outages = OUTAGES.iter().filter(|outage| outage.monitors.contains(&monitor.key));
    let mut events: Vec<Event> = outages.flat_map(|outage| outage_events(calendar, monitor, outage)).collect();
    if monitor.key == SLOW.monitor {
        events.extend(slow_events(calendar, monitor));
    }
    if monitor.key == DISPUTED.monitor
        && let Some(round) = monitor.first_round(calendar, DISPUTED.region, calendar.time(DISPUTED.start))
    {
        events.push(Event {
            at: round.due + SWEEP,
            kind: EventKind::Round(disputed(calendar, monitor, round)),
            page: Some(monitor.record.page),
            monitor: Some(monitor.record.id),
        });
    }
    events
}

fn slow_events(calendar: Calendar, monitor: &SimulatedMonitor) -> Vec<Event> {
    let span = calendar.span(SLOW.start, SLOW.minutes);
    let round = |at| monitor.first_round(calendar, SLOW.region, at);
    let (Some(first), Some(normal)) = (round(span.from), round(span.to)) else { return Vec::new() };
    let threshold_ms = monitor.record.slow_threshold_ms;
    let slow = StatusChange {
        alert: Some(AlertKind::WentSlow),
        latency_ms: monitor.latency_ms(calendar, first),
        threshold_ms,
        ..change(MonitorStatus::Up, MonitorStatus::Slow, first.due)
    };
    let back = StatusChange {
        alert: Some(AlertKind::BackToNormal),
        latency_ms: monitor.latency_ms(calendar, normal),
        threshold_ms,
        duration_ms: u64::try_from(normal.due.since(first.due)).ok(),
        ..change(MonitorStatus::Slow, MonitorStatus::Up, normal.due)
    };
    vec![event(monitor, first.due + SECOND, slow), event(monitor, normal.due + SECOND, back)]
}

const fn change(from: MonitorStatus, to: MonitorStatus, since: Timestamp) -> StatusChange {
    StatusChange {
        from,
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

fn event(monitor: &SimulatedMonitor, at: Timestamp, change: StatusChange) -> Event {
    let kind = EventKind::StatusChanged(change);
    Event { at, page: Some(monitor.record.page), monitor: Some(monitor.record.id), kind }
}

/// The two failed rounds of each region that was down: the first one scheduled, and swept from the other regions.
fn evidence(
    calendar: Calendar,
    monitor: &SimulatedMonitor,
    first: SimulatedRound,
    regions: RegionSet,
    failure: &Failure,
) -> Vec<RoundReport> {
    let failed = || ProbeOutcome::Failed(measured(failure), failure.clone());
    let report = |round: SimulatedRound, reason, started| RoundReport {
        region: round.region,
        reason,
        round: (reason == ProbeReason::Scheduled).then_some(round.round),
        started,
        round_outcome: RoundOutcome::Failed,
        first_vantage: round.agents[0],
        first_outcome: failed(),
        second: Some((round.agents[1], failed())),
        third: None,
    };
    let rounds = regions.iter().filter_map(|region| monitor.first_round(calendar, region, first.due));
    let reports = rounds.flat_map(|round| {
        let (reason, started) = if round.region == first.region {
            (ProbeReason::Scheduled, first.due)
        } else {
            (ProbeReason::Sweep, first.due + SWEEP)
        };
        [report(round, reason, started), report(round, ProbeReason::Second, first.due + SECOND_ROUND)]
    });
    let mut reports: Vec<RoundReport> = reports.collect();
    reports.sort_by_key(|report| report.started);
    reports
}

fn disputed(calendar: Calendar, monitor: &SimulatedMonitor, round: SimulatedRound) -> RoundReport {
    let failure = Failure::Timeout(CheckPhase::Connect);
    let passed = Measurements {
        latency_ms: monitor.latency_ms(calendar, round),
        status_code: Some(200),
        ..Measurements::default()
    };
    RoundReport {
        region: round.region,
        reason: ProbeReason::Scheduled,
        round: Some(round.round),
        started: round.due,
        round_outcome: RoundOutcome::Disputed,
        first_vantage: round.agents[0],
        first_outcome: ProbeOutcome::Failed(Measurements::default(), failure),
        second: Some((round.agents[1], ProbeOutcome::Passed(passed))),
        third: None,
    }
}

fn measured(failure: &Failure) -> Measurements {
    let status_code = if let Failure::UnexpectedStatus(status) = failure { Some(*status) } else { None };
    Measurements { status_code, ..Measurements::default() }
}
