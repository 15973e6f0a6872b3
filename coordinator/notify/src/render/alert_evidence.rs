//! Evidence of an alert: the rounds that led to it, the agent and network of each check, and the results.

use parallax_core::event::{ProbeReason, RoundReport};
use parallax_core::observation::{ProbeOutcome, RoundOutcome};
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::vantage::{Region, VantageNo};
use schemars::JsonSchema;
use serde::Serialize;

use super::region_schema::RegionNameSchema;
use super::{AgentLabels, text, time_format};

/// Maximum number of rounds in one alert: more than a machine keeps.
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
pub(super) fn alert_rounds(evidence: &[RoundReport], places: &AgentLabels) -> Vec<AlertRound> {
    ordered(evidence).into_iter().map(|report| alert_round(report, places)).collect()
}

fn ordered(evidence: &[RoundReport]) -> Vec<&RoundReport> {
    let mut reports: Vec<&RoundReport> = evidence.iter().collect();
    reports.sort_by_key(|report| (report.started, report.region));
    reports.truncate(MAX_ROUNDS);
    reports
}

fn alert_round(report: &RoundReport, places: &AgentLabels) -> AlertRound {
    AlertRound {
        region: report.region.name(),
        reason: report.reason.name(),
        round: report.round,
        started_at: report.started.as_millis(),
        result: report.round_outcome.name(),
        first: check_result(report.first_vantage, &report.first_outcome, places),
        second: report.second.as_ref().map(|(no, outcome)| check_result(*no, outcome, places)),
    }
}

fn check_result(no: VantageNo, outcome: &ProbeOutcome, places: &AgentLabels) -> AlertCheckResult {
    let (ok, facts, error) = match outcome {
        ProbeOutcome::Passed(facts) => (Some(true), Some(facts), None),
        ProbeOutcome::Failed(facts, failure) => (Some(false), Some(facts), Some(failure.to_string())),
        ProbeOutcome::Inconclusive(fault) => (None, None, Some(fault.to_string())),
        ProbeOutcome::Pending => (None, None, None),
    };
    let place = places.get(&no);
    AlertCheckResult {
        place: place.map(|place| place.name.clone()),
        network: place.map(|place| place.network.clone()),
        ok,
        status_code: facts.and_then(|facts| facts.status_code),
        latency_ms: facts.and_then(|facts| facts.latency_ms),
        address: facts.and_then(|facts| facts.address).map(|address| address.to_string()),
        error: error.map(|error| text::truncate(&error, MAX_FAILURE)),
    }
}

/// Returns one sentence per region, failed regions first: `Asia: connection refused from tokyo-1 (AS64500),
/// then from tokyo-2 (AS64501); again 5 s later`.
pub(super) fn sentences(evidence: &[RoundReport], places: &AgentLabels) -> Vec<String> {
    let reports = ordered(evidence);
    let of = |region: Region| -> Vec<&RoundReport> {
        reports.iter().copied().filter(|report| report.region == region).collect()
    };
    let mut regions: Vec<_> = Region::ALL.into_iter().map(|region| (region, of(region))).collect();
    regions.retain(|(_, rounds)| !rounds.is_empty());
    regions.sort_by_key(|(_, rounds)| rounds.iter().all(|report| report.round_outcome != RoundOutcome::Failed));
    let all = regions.iter();
    all.map(|(region, rounds)| format!("{}: {}", region.title(), sentence(rounds, places))).collect()
}

fn sentence(rounds: &[&RoundReport], places: &AgentLabels) -> String {
    let mut clauses = Vec::new();
    let mut before: Option<(String, Timestamp)> = None;
    for report in rounds {
        let clause = clause(report, places);
        clauses.push(match &before {
            None => clause.clone(),
            Some((same, at)) if *same == clause => format!("again {}", time_after(report.started, *at)),
            Some((_, at)) => format!("{}, {clause}", time_after(report.started, *at)),
        });
        before = Some((clause, report.started));
    }
    clauses.join("; ")
}

fn clause(report: &RoundReport, places: &AgentLabels) -> String {
    let first = result_text(&report.first_outcome);
    let mut clause = format!("{first} from {}", agent_text(report.first_vantage, places));
    match &report.second {
        Some((no, outcome)) => {
            let second = result_text(outcome);
            let but = if report.round_outcome == RoundOutcome::Disputed { "but" } else { "then" };
            let what = if second == first { String::new() } else { format!(" {second}") };
            clause.push_str(&format!(", {but}{what} from {}", agent_text(*no, places)));
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
        ProbeOutcome::Passed(facts) => {
            facts.latency_ms.map_or_else(|| "passed".to_owned(), |latency| format!("passed in {latency} ms"))
        }
        ProbeOutcome::Failed(_, failure) => text::single_line(&failure.to_string(), MAX_FAILURE),
        ProbeOutcome::Inconclusive(fault) => format!("no result ({fault})"),
        ProbeOutcome::Pending => "no result yet".to_owned(),
    }
}

fn agent_text(no: VantageNo, places: &AgentLabels) -> String {
    let Some(place) = places.get(&no) else { return REMOVED_AGENT.to_owned() };
    format!("{} ({})", text::single_line(&place.name, MAX_NAME), text::single_line(&place.network, MAX_NAME))
}

fn time_after(at: Timestamp, before: Timestamp) -> String {
    match at.since(before) {
        apart if apart < SECOND => "at once".to_owned(),
        apart => format!("{} later", time_format::format_duration(apart)),
    }
}
