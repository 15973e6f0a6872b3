//! Checks that cannot be judged, for an external reason: counted, and reported to the monitor's owner once.

use serde::{Deserialize, Serialize};

use crate::event::{self, EventKind};
use crate::observation::ProbeOutcome;
use crate::time::{DAY, MINUTE, Timestamp};

use super::{MachineOutput, MachineStep, MonitorMachine};

/// Consecutive rounds without a judgement before the owner is notified: vantages take turns, so several have tried.
const MIN_ROUNDS: u8 = 3;
/// Minimum duration of that in milliseconds.
const MIN_DURATION: i64 = 30 * MINUTE;
/// Milliseconds after a report during which the same problem is not reported again.
const REPORT_PAUSE: i64 = 30 * DAY;

/// Run of rounds that could not be judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnjudgedRun {
    /// Consecutive rounds up to the newest; 0 once one was judged.
    rounds: u8,
    /// Start of the first of them.
    pub(super) since: Timestamp,
    /// Time of the last notification to the owner.
    pub(super) reported: Option<Timestamp>,
}

impl UnjudgedRun {
    /// Returns true if the newest round could not be judged.
    pub(super) const fn is_ongoing(&self) -> bool {
        self.rounds > 0
    }
}

impl MonitorMachine {
    /// Counts a round that could not be judged, or resets the count if one was judged. A vantage's own fault changes
    /// nothing.
    pub(super) fn count_unjudged(&mut self, started: Timestamp, outcome: &ProbeOutcome, step: &mut MachineStep<'_>) {
        match outcome {
            ProbeOutcome::Inconclusive(fault) if fault.is_external() => {
                let unjudged = self.state.unjudged.get_or_insert_default();
                if !unjudged.is_ongoing() {
                    unjudged.since = started;
                }
                unjudged.rounds = unjudged.rounds.saturating_add(1);
                let lasts = started.since(unjudged.since) >= MIN_DURATION && unjudged.rounds >= MIN_ROUNDS;
                if lasts && unjudged.reported.is_none_or(|at| step.now.since(at) >= REPORT_PAUSE) {
                    unjudged.reported = Some(step.now);
                    let since = unjudged.since;
                    let unjudged = event::UnjudgedPeriod { since, reason: fault.to_string() };
                    step.out.push(MachineOutput::event(EventKind::Unjudged(unjudged)));
                }
            }
            ProbeOutcome::Passed(_) | ProbeOutcome::Failed(..) => {
                if let Some(unjudged) = self.state.unjudged.as_mut() {
                    unjudged.rounds = 0;
                }
                self.state.unjudged.take_if(|unjudged| unjudged.reported.is_none());
            }
            ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => {}
        }
    }

    /// Returns true if the newest round could not be judged, for an external reason.
    pub(super) fn is_unjudged(&self) -> bool {
        self.state.unjudged.as_ref().is_some_and(|unjudged| unjudged.is_ongoing())
    }
}
