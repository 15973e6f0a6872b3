//! Invariant of every round report.

use parallax_core::event::RoundReport;
use parallax_core::observation::{ProbeOutcome, RoundOutcome};

/// The first vantage of a report saw what the round ended with; a dispute or an unconfirmed round began with a failure.
pub(crate) fn assert_consistent(report: &RoundReport) {
    let failed = matches!(report.first_outcome, ProbeOutcome::Failed(..));
    let holds = match report.round_outcome {
        RoundOutcome::Passed | RoundOutcome::Failed => report.round_outcome.agrees_with(&report.first_outcome),
        RoundOutcome::Disputed | RoundOutcome::Unconfirmed => failed,
        RoundOutcome::Inconclusive => !failed,
    };
    assert!(holds, "the report contradicts itself: {report:?}");
}
