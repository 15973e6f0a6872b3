//! Outcomes of checks in words: what an agent saw, with its name and network.

use std::collections::BTreeMap;

use parallax_core::explanation::VantageLabel;
use parallax_core::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::vantage::VantageNo;

/// Names of agents by their number.
pub(crate) type VantageLabels = BTreeMap<VantageNo, VantageLabel>;

/// Outcome at one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutcomeWords {
    /// CSS class and icon.
    pub class: &'static str,
    /// Agent and network.
    pub agent: String,
    /// Outcome in words.
    pub text: String,
}

impl OutcomeWords {
    /// Describes an outcome.
    pub(crate) fn of(vantage: VantageNo, outcome: &ProbeOutcome, labels: &VantageLabels) -> Self {
        Self { class: outcome_class(outcome), agent: agent_text(vantage, labels), text: outcome_text(outcome) }
    }
}

/// Outcome in the fewest words, for a table: the phase of a time-out is in the steps.
pub(crate) fn short_outcome(outcome: &ProbeOutcome) -> String {
    match outcome {
        ProbeOutcome::Failed(_, Failure::Timeout(_)) => "timed out".to_owned(),
        other => outcome_text(other),
    }
}

/// Agent with its network: `sin1 · AS64503`.
pub(crate) fn agent_text(vantage: VantageNo, labels: &VantageLabels) -> String {
    match labels.get(&vantage) {
        Some(label) => format!("{} · {}", label.name, label.network),
        None => format!("agent {}", vantage.0),
    }
}

/// CSS class and icon of an outcome.
pub(crate) const fn outcome_class(outcome: &ProbeOutcome) -> &'static str {
    match outcome {
        ProbeOutcome::Passed(_) => "up",
        ProbeOutcome::Failed(..) => "down",
        ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => "none",
    }
}

/// Outcome in words: `200 in 84 ms`, `timed out connecting`.
pub(crate) fn outcome_text(outcome: &ProbeOutcome) -> String {
    match outcome {
        ProbeOutcome::Passed(facts) => passed_text(facts),
        ProbeOutcome::Failed(_, failure) => failure.to_string(),
        ProbeOutcome::Inconclusive(reason) => reason.to_string(),
        ProbeOutcome::Pending => "no answer yet".to_owned(),
    }
}

fn passed_text(facts: &Measurements) -> String {
    match (facts.status_code, facts.latency_ms) {
        (Some(status), Some(latency)) => format!("{status} in {latency} ms"),
        (Some(status), None) => status.to_string(),
        (None, Some(latency)) => format!("passed in {latency} ms"),
        (None, None) => "passed".to_owned(),
    }
}

/// Measurements of an outcome, if it has some.
pub(crate) const fn measurements(outcome: &ProbeOutcome) -> Option<&Measurements> {
    match outcome {
        ProbeOutcome::Passed(facts) | ProbeOutcome::Failed(facts, _) => Some(facts),
        ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => None,
    }
}

/// How a round ended: CSS class, icon and word.
pub(crate) const fn round_label(outcome: RoundOutcome) -> (&'static str, &'static str, &'static str) {
    match outcome {
        RoundOutcome::Passed => ("up", "up", "passed"),
        RoundOutcome::Failed => ("down", "down", "failed"),
        RoundOutcome::Disputed => ("maint", "split", "disputed"),
        RoundOutcome::Unconfirmed => ("part", "part", "not confirmed"),
        RoundOutcome::Inconclusive => ("none", "none", "not judged"),
    }
}
