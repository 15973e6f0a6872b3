//! Checks that nobody can judge, for a reason on the other side: counted, and reported to the monitor's owner once.

use serde::{Deserialize, Serialize};

use crate::event::{self, What};
use crate::observation::Outcome;
use crate::time::{DAY, MINUTE, Timestamp};

use super::{Machine, Output, Step};

/// Rounds in a row that nobody could judge before their owner hears of it: places take turns, so several have tried.
const ROUNDS: u8 = 3;
/// Milliseconds that they last at least before that.
const LASTS: i64 = 30 * MINUTE;
/// Milliseconds after a report in which another time of the same is no news.
const REPORTED: i64 = 30 * DAY;

/// The memory of rounds that nobody could judge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unjudged {
    /// Rounds in a row up to the newest; 0 once one was judged.
    rounds: u8,
    /// When the first of them began.
    pub(super) since: Timestamp,
    /// When its owner was last told.
    pub(super) reported: Option<Timestamp>,
}

impl Unjudged {
    /// True while the newest round could not be judged.
    pub(super) const fn is_on(&self) -> bool {
        self.rounds > 0
    }
}

impl Machine {
    /// Counts a round that nobody could judge, or ends the count where one was judged. A place's own fault changes
    /// nothing.
    pub(super) fn note_judged(&mut self, started: Timestamp, outcome: &Outcome, step: &mut Step<'_>) {
        match outcome {
            Outcome::Inconclusive(fault) if fault.is_other_sides() => {
                let unjudged = self.state.unjudged.get_or_insert_default();
                if !unjudged.is_on() {
                    unjudged.since = started;
                }
                unjudged.rounds = unjudged.rounds.saturating_add(1);
                let lasts = started.since(unjudged.since) >= LASTS && unjudged.rounds >= ROUNDS;
                if lasts && unjudged.reported.is_none_or(|at| step.now.since(at) >= REPORTED) {
                    unjudged.reported = Some(step.now);
                    let since = unjudged.since;
                    let unjudged = event::Unjudged { since, reason: fault.to_string() };
                    step.out.push(Output::happened(What::Unjudged(unjudged)));
                }
            }
            Outcome::Passed(_) | Outcome::Failed(..) => {
                if let Some(unjudged) = self.state.unjudged.as_mut() {
                    unjudged.rounds = 0;
                }
                self.state.unjudged.take_if(|unjudged| unjudged.reported.is_none());
            }
            Outcome::Inconclusive(_) | Outcome::Pending => {}
        }
    }

    /// True while the newest round could not be judged, for a reason on the other side.
    pub(super) fn is_unjudged(&self) -> bool {
        self.state.unjudged.as_ref().is_some_and(|unjudged| unjudged.is_on())
    }
}
