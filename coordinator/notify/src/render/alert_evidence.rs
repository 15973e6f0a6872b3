//! Evidence of an alert: the rounds that led to it, the agent and network of each check, and the results.

use parallax_core::event::{ProbeReason, RoundReport};
use parallax_core::observation::{ProbeOutcome, RoundOutcome};
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::vantage::{Region, VantageNo};
use schemars::JsonSchema;
use serde::Serialize;

use super::region_schema::RegionNameSchema;
use super::{AgentLabels, text, time_format};

/// Maximum number of rounds in one alert: more than a machine stores.
const MAX_ROUNDS: usize = 32;
/// Maximum length of a failure text in UTF-16 units.
const MAX_FAILURE: usize = 200;
/// Maximum length of an agent's or network's name in UTF-16 units.
const MAX_NAME: usize = 60;
/// Name of an agent that no longer exists.
const REMOVED_AGENT: &str = "a former agent";

/// A round that led to the alert, with the results of its agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AlertRound")]
pub(super) struct AlertRound {
    /// Region of the round.
    #[schemars(with = "RegionNameSchema")]
    region: &'static str,
    /// Reason for the round: `scheduled`, `second-round`, `sweep`.
    #[schemars(with = "String")]
    reason: &'static str,
    /// Number in the schedule; null for an unscheduled round.
    round: Option<u64>,
    /// Start time.
    started_at: i64,
    /// Result: `passed`, `failed`, `disputed`.
    #[schemars(with = "String")]
    result: &'static str,
    /// Result of the first agent.
    first: AlertCheckResult,
    /// Result of the agent on another network; null if none was asked.
    second: Option<AlertCheckResult>,
}

/// Result of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AlertSight")]
struct AlertCheckResult {
    /// Agent's name for the operator's account, its number for others; null for an agent that no longer
    /// exists.
    place: Option<String>,
    /// Agent's network; null for an agent that no longer exists.
    network: Option<String>,
    /// True if the check passed; null if the agent could not run it.
    ok: Option<bool>,
    /// http: the status received.
    status_code: Option<u16>,
    /// Response time in milliseconds.
    latency_ms: Option<u32>,
    /// The address that was checked.
    address: Option<String>,
    /// Reason of a failure.
    error: Option<String>,
}

/// Returns the rounds in order of their start.
pub(super) fn alert_rounds(evidence: &[RoundReport], labels: &AgentLabels) -> Vec<AlertRound> {
    ordered(evidence).into_iter().map(|report| alert_round(report, labels)).collect()
}

fn ordered(evidence: &[RoundReport]) -> Vec<&RoundReport> {
    let mut reports: Vec<&RoundReport> = evidence.iter().collect();
    reports.sort_by_key(|report| (report.started, report.region));
    reports.truncate(MAX_ROUNDS);
    reports
}

fn alert_round(report: &RoundReport, labels: &AgentLabels) -> AlertRound {
    AlertRound {
        region: report.region.name(),
        reason: report.reason.name(),
        round: report.round,
        started_at: report.started.as_millis(),
        result: report.round_outcome.name(),
        first: check_result(report.first_vantage, &report.first_outcome, labels),
        second: report.second.as_ref().map(|(vantage, outcome)| check_result(*vantage, outcome, labels)),
    }
}

fn check_result(vantage: VantageNo, outcome: &ProbeOutcome, labels: &AgentLabels) -> AlertCheckResult {
    let (ok, measurements, error) = match outcome {
        ProbeOutcome::Passed(measurements) => (Some(true), Some(measurements), None),
        ProbeOutcome::Failed(measurements, failure) => (Some(false), Some(measurements), Some(failure.to_string())),
        ProbeOutcome::Inconclusive(fault) => (None, None, Some(fault.to_string())),
        ProbeOutcome::Pending => (None, None, None),
    };
    let label = labels.get(&vantage);
    AlertCheckResult {
        place: label.map(|label| label.name.clone()),
        network: label.map(|label| label.network.clone()),
        ok,
        status_code: measurements.and_then(|measurements| measurements.status_code),
        latency_ms: measurements.and_then(|measurements| measurements.latency_ms),
        address: measurements.and_then(|measurements| measurements.address).map(|address| address.to_string()),
        error: error.map(|error| text::truncate(&error, MAX_FAILURE)),
    }
}

/// Returns one sentence per region, failed regions first: `Asia: connection refused from tokyo-1 (AS64500),
/// then from tokyo-2 (AS64501); again 5 s later`.
pub(super) fn sentences(evidence: &[RoundReport], labels: &AgentLabels) -> Vec<String> {
    let reports = ordered(evidence);
    let in_region = |region: Region| -> Vec<&RoundReport> {
        reports.iter().copied().filter(|report| report.region == region).collect()
    };
    let mut regions: Vec<_> = Region::ALL.into_iter().map(|region| (region, in_region(region))).collect();
    regions.retain(|(_, rounds)| !rounds.is_empty());
    regions.sort_by_key(|(_, rounds)| rounds.iter().all(|report| report.round_outcome != RoundOutcome::Failed));
    let all = regions.iter();
    all.map(|(region, rounds)| format!("{}: {}", region.title(), sentence(rounds, labels))).collect()
}

fn sentence(rounds: &[&RoundReport], labels: &AgentLabels) -> String {
    let mut clauses = Vec::new();
    let mut previous: Option<(String, Timestamp)> = None;
    for report in rounds {
        let clause = clause(report, labels);
        clauses.push(match &previous {
            None => clause.clone(),
            Some((previous_clause, at)) if *previous_clause == clause => {
                format!("again {}", time_after(report.started, *at))
            }
            Some((_, at)) => format!("{}, {clause}", time_after(report.started, *at)),
        });
        previous = Some((clause, report.started));
    }
    clauses.join("; ")
}

fn clause(report: &RoundReport, labels: &AgentLabels) -> String {
    let first = result_text(&report.first_outcome);
    let mut clause = format!("{first} from {}", agent_text(report.first_vantage, labels));
    match &report.second {
        Some((vantage, outcome)) => {
            let is_contradicted = report.round_outcome == RoundOutcome::Disputed || report.third.is_some();
            let conjunction = if is_contradicted { "but" } else { "then" };
            let mut previous = first;
            let third = report.third.as_deref().map(|(vantage, outcome)| ("then", *vantage, outcome));
            for (conjunction, vantage, outcome) in std::iter::once((conjunction, *vantage, outcome)).chain(third) {
                let result = result_text(outcome);
                let next_text = if result == previous { String::new() } else { format!(" {result}") };
                clause.push_str(&format!(", {conjunction}{next_text} from {}", agent_text(vantage, labels)));
                previous = result;
            }
        }
        None if report.round_outcome == RoundOutcome::Unconfirmed => clause.push_str(", not confirmed"),
        None => {}
    }
    match report.reason {
        ProbeReason::Manual => clause.push_str(", manual check"),
        ProbeReason::Scheduled
        | ProbeReason::First
        | ProbeReason::Confirm
        | ProbeReason::Second
        | ProbeReason::Sweep
        | ProbeReason::FollowUp => {}
    }
    clause
}

fn result_text(outcome: &ProbeOutcome) -> String {
    match outcome {
        ProbeOutcome::Passed(measurements) => {
            measurements.latency_ms.map_or_else(|| "passed".to_owned(), |latency| format!("passed in {latency} ms"))
        }
        ProbeOutcome::Failed(_, failure) => text::single_line(&failure.to_string(), MAX_FAILURE),
        ProbeOutcome::Inconclusive(fault) => format!("no result ({fault})"),
        ProbeOutcome::Pending => "no result yet".to_owned(),
    }
}

fn agent_text(vantage: VantageNo, labels: &AgentLabels) -> String {
    let Some(label) = labels.get(&vantage) else { return REMOVED_AGENT.to_owned() };
    format!("{} ({})", text::single_line(&label.name, MAX_NAME), text::single_line(&label.network, MAX_NAME))
}

fn time_after(at: Timestamp, previous: Timestamp) -> String {
    match at.since(previous) {
        elapsed if elapsed < SECOND => "at once".to_owned(),
        elapsed => format!("{} later", time_format::format_duration(elapsed)),
    }
}
