//! Steps of an explanation: first failure, checks of other regions, second failure, alerts, incident, newest check.

use crate::event::{MonitorStatus, RoundReport, StatusChange};
use crate::id::IncidentId;
use crate::observation::{Failure, ProbeOutcome, RoundOutcome};
use crate::time::{SECOND, Timestamp};
use crate::vantage::RegionSet;

use super::evidence::sweep;
use super::wording::{capitalized, list, regions, short_duration, spelled_count};
use super::{ExplanationFacts, ExplanationKind};

/// One step, as bold words and the rest of the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplanationStep {
    /// Time.
    pub at: Timestamp,
    /// Tone.
    pub tone: StepTone,
    /// True for the moment that decided.
    pub is_decisive: bool,
    /// First words.
    pub title: String,
    /// The rest; may be empty.
    pub text: String,
    /// Link to more.
    pub link: Option<StepLink>,
}

/// Tone of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepTone {
    /// A failure.
    Bad,
    /// Something passed.
    Good,
    /// A warning.
    Warning,
    /// A plain fact.
    Plain,
}

/// Target of a step's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepLink {
    /// Alerts of the monitor.
    Alerts,
    /// An incident.
    Incident(IncidentId),
}

impl ExplanationStep {
    fn new(at: Timestamp, tone: StepTone, title: impl Into<String>, text: impl Into<String>) -> Self {
        Self { at, tone, is_decisive: false, title: title.into(), text: text.into(), link: None }
    }

    const fn decisive(mut self) -> Self {
        self.is_decisive = true;
        self
    }
}

/// Milliseconds from the first failure to the first alert that was delivered; none for an outage that a maintenance
/// window kept silent at first.
pub(super) fn alerted_after(facts: &ExplanationFacts<'_>) -> Option<i64> {
    let change = facts.change.filter(|change| change.to == MonitorStatus::Down && facts.announced_at.is_none())?;
    let first = change.evidence.iter().map(|report| report.started).min().unwrap_or(change.since);
    let delivered = facts.alerts.iter().filter(|alert| alert.fault.is_none()).map(|alert| alert.at).min()?;
    Some(delivered.since(first).max(0))
}

/// Steps of the change, oldest first; none without one.
pub(super) fn steps(facts: &ExplanationFacts<'_>, kind: ExplanationKind) -> Vec<ExplanationStep> {
    let Some(change) = facts.change else { return Vec::new() };
    let mut steps = match change.to {
        MonitorStatus::Down if !change.evidence.is_empty() => outage_steps(facts, change),
        MonitorStatus::Down => vec![plain_outage_step(change)],
        MonitorStatus::Slow => vec![slow_step(change)],
        MonitorStatus::Up | MonitorStatus::Unknown => return Vec::new(),
    };
    steps.extend(facts.announced_at.map(|at| {
        let text = "It had begun in maintenance, without alerts, and was still down.";
        ExplanationStep::new(at, StepTone::Plain, "Maintenance ended.", text)
    }));
    steps.extend(alert_step(facts, change));
    if let Some(incident) = facts.incident {
        let title = format!("Incident “{}”", incident.title);
        let step = ExplanationStep::new(incident.started_at, StepTone::Bad, title, "opened automatically.");
        steps.push(ExplanationStep { link: Some(StepLink::Incident(incident.id)), ..step });
    }
    steps.extend(newest_step(facts, kind));
    steps.sort_by_key(|step| step.at);
    steps
}

fn outage_steps(facts: &ExplanationFacts<'_>, change: &StatusChange) -> Vec<ExplanationStep> {
    let mut reports: Vec<&RoundReport> = change.evidence.iter().collect();
    reports.sort_by_key(|report| report.started);
    let Some(first) = reports.first() else { return Vec::new() };
    let mut steps = vec![first_failure(facts, first)];
    steps.extend(sweep_step(facts, change));
    let is_second = |report: &&&RoundReport| {
        reports.iter().any(|earlier| earlier.region == report.region && earlier.started < report.started)
    };
    let second: Vec<&RoundReport> = reports.iter().filter(is_second).copied().collect();
    if let Some(deciding) = second.first() {
        let set: RegionSet = second.iter().map(|report| report.region).collect();
        let place = place(facts, set);
        let networks = match deciding.second {
            Some((_, ProbeOutcome::Failed(..))) => "Again on two networks. ",
            _ => "",
        };
        let from = change.down_from.map_or_else(|| "down".to_owned(), |it| format!("down from {}", regions(it)));
        let text = format!("{networks}Two in a row: {from}.");
        steps.push(
            ExplanationStep::new(deciding.started, StepTone::Bad, format!("Second failure{place}."), text).decisive(),
        );
    }
    steps
}

fn first_failure(facts: &ExplanationFacts<'_>, first: &RoundReport) -> ExplanationStep {
    let confirmed = match &first.second {
        Some((vantage, ProbeOutcome::Failed(..))) => match facts.region(*vantage).filter(|_| facts.is_regional()) {
            Some(region) => {
                format!("A second network in {} checked at once and failed too.", region.title())
            }
            None => "A second network checked at once and failed too.".to_owned(),
        },
        Some(_) | None => failure_text(&first.first_outcome).map(|text| format!("{text}.")).unwrap_or_default(),
    };
    let place = place(facts, RegionSet::only(first.region));
    ExplanationStep::new(first.started, StepTone::Bad, format!("First failure{place}."), confirmed)
}

fn sweep_step(facts: &ExplanationFacts<'_>, change: &StatusChange) -> Option<ExplanationStep> {
    let swept = sweep(facts, change);
    let at = swept.iter().map(|report| report.started).min()?;
    let passed = swept.iter().filter(|report| report.round_outcome == RoundOutcome::Passed).count();
    let failed = swept.len() - passed;
    let known: RegionSet = facts.regions.iter().map(|it| it.region).collect();
    let title = if !known.is_empty() && swept.len() + 1 >= known.len() {
        "All other regions checked.".to_owned()
    } else if swept.len() == 1 {
        "One other region checked.".to_owned()
    } else {
        format!("{} other regions checked.", capitalized(&spelled_count(swept.len())))
    };
    let text = match (passed, failed) {
        (passed, 0) => format!("{} passed.", capitalized(&spelled_count(passed))),
        (0, failed) => format!("{} failed.", capitalized(&spelled_count(failed))),
        (passed, failed) => {
            format!("{} passed, {} failed.", capitalized(&spelled_count(passed)), spelled_count(failed))
        }
    };
    let tone = if failed == 0 { StepTone::Good } else { StepTone::Warning };
    Some(ExplanationStep::new(at, tone, title, text))
}

/// The step of an outage without rounds: a missing ping, or a vendor's report.
fn plain_outage_step(change: &StatusChange) -> ExplanationStep {
    let title = match &change.reason {
        Some(Failure::PingMissed) => "No ping by the deadline.".to_owned(),
        Some(Failure::JobFailed(_)) => "The job reported a failure.".to_owned(),
        Some(failure) => format!("{}.", capitalized(&failure.to_string())),
        None => "It went down.".to_owned(),
    };
    ExplanationStep::new(change.since, StepTone::Bad, title, "").decisive()
}

fn slow_step(change: &StatusChange) -> ExplanationStep {
    let text = match (change.latency_ms, change.threshold_ms) {
        (Some(latency), Some(threshold)) => format!("{latency} ms, threshold {threshold} ms."),
        (_, _) => String::new(),
    };
    ExplanationStep::new(change.since, StepTone::Warning, "Slow.", text).decisive()
}

fn alert_step(facts: &ExplanationFacts<'_>, change: &StatusChange) -> Option<ExplanationStep> {
    let first = facts.alerts.iter().map(|alert| alert.at).min()?;
    let delivered: Vec<&str> =
        facts.alerts.iter().filter(|alert| alert.fault.is_none()).map(|alert| alert.destination.as_str()).collect();
    let newest = facts.alerts.iter().filter(|alert| alert.fault.is_none()).map(|alert| alert.at).max();
    let faults: Vec<String> = facts
        .alerts
        .iter()
        .filter_map(|alert| Some(format!("{}: {}", alert.destination, alert.fault.as_ref()?)))
        .collect();
    let title = match delivered.len() {
        0 => "No alert delivered yet.".to_owned(),
        1 => "1 alert sent:".to_owned(),
        count => format!("{count} alerts sent:"),
    };
    let mut text = newest.map_or_else(String::new, |newest| {
        let within = newest.since(facts.announced_at.unwrap_or_else(|| change_time(change))).max(0);
        // In tenths, at least one: "within 0.0 s" reads like a fault.
        format!("{} within {}", list(&delivered), seconds(within.max(100)))
    });
    if !faults.is_empty() {
        let gap = if text.is_empty() { "" } else { "; " };
        text = format!("{text}{gap}{}", faults.join("; "));
    }
    text.push('.');
    let step = ExplanationStep::new(first, StepTone::Bad, title, text).decisive();
    Some(ExplanationStep { link: Some(StepLink::Alerts), ..step })
}

/// Time from which alerts are counted: the newest round of the evidence, or the start of the status.
fn change_time(change: &StatusChange) -> Timestamp {
    change.evidence.iter().map(|report| report.started).max().unwrap_or(change.since)
}

/// The newest check, while the outage lasts.
fn newest_step(facts: &ExplanationFacts<'_>, kind: ExplanationKind) -> Option<ExplanationStep> {
    let last = facts.view.last_check.as_ref().filter(|_| kind == ExplanationKind::Down)?;
    let failing = facts.view.down_from.and_then(|from| from.iter().next());
    let region = failing.and_then(|region| facts.regions.iter().find(|it| it.region == region));
    let (at, failure, place) = match region.and_then(|it| Some((it.newest_started?, it))) {
        Some((at, state)) => (at, state.failure.as_ref(), format!(" from {}", state.region.title())),
        None => (last.at, last.error.as_ref(), String::new()),
    };
    let text = failure.map_or_else(|| "passed.".to_owned(), |failure| format!("{failure}."));
    let tone = if failure.is_some() { StepTone::Plain } else { StepTone::Good };
    Some(ExplanationStep::new(at, tone, "", format!("Newest check{place}: {text}")))
}

fn failure_text(outcome: &ProbeOutcome) -> Option<String> {
    match outcome {
        ProbeOutcome::Failed(_, failure) => Some(capitalized(&failure.to_string())),
        ProbeOutcome::Passed(_) | ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => None,
    }
}

/// Clause with the regions, for types that are judged by region.
fn place(facts: &ExplanationFacts<'_>, set: RegionSet) -> String {
    if facts.is_regional() { format!(" in {}", regions(set)) } else { String::new() }
}

/// Length with tenths below ten seconds: `0.6 s`.
fn seconds(millis: i64) -> String {
    if millis < 10 * SECOND {
        format!("{}.{} s", millis / SECOND, millis % SECOND / 100)
    } else {
        short_duration(millis)
    }
}
