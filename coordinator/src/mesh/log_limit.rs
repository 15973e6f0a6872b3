//! A limit on log lines that peers cause: one a second of each agent and kind, and then how many were left out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use parallax_core::id::AgentId;
use tracing::info;

/// Time between two lines of one agent and kind.
const SPACING: Duration = Duration::from_secs(1);
/// Time after which a pair that logged nothing is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// An agent, or all who are none together; and what the line says.
type Key = (Option<AgentId>, &'static str);

/// Lines by agent and kind. There are as many as agents that may connect, times the kinds.
#[derive(Debug, Default)]
pub(super) struct LogLimit(Mutex<BTreeMap<Key, Line>>);

#[derive(Debug)]
struct Line {
    logged: Instant,
    omitted: u64,
}

impl LogLimit {
    /// Whether a line of that agent and kind may be logged now; then with how many were left out before it, if any were.
    pub(super) fn admit(&self, agent: Option<AgentId>, kind: &'static str) -> Option<Option<u64>> {
        self.admit_at(agent, kind, Instant::now())
    }

    fn admit_at(&self, agent: Option<AgentId>, kind: &'static str, now: Instant) -> Option<Option<u64>> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(line) = lines.get_mut(&(agent, kind)) else {
            lines.insert((agent, kind), Line { logged: now, omitted: 0 });
            return Some(None);
        };
        if now.saturating_duration_since(line.logged) < SPACING {
            line.omitted = line.omitted.saturating_add(1);
            return None;
        }
        line.logged = now;
        let omitted = std::mem::take(&mut line.omitted);
        Some((omitted > 0).then_some(omitted))
    }

    /// Logs how many lines were left out where none of their kind has followed.
    pub(super) fn report(&self) {
        for ((agent, kind), omitted) in self.omitted_at(Instant::now()) {
            let agent = agent.map(tracing::field::display);
            info!(agent, kind, omitted, "{omitted} more log lines of this kind were left out");
        }
    }

    fn omitted_at(&self, now: Instant) -> Vec<(Key, u64)> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut omitted = Vec::new();
        lines.retain(|key, line| {
            let age = now.saturating_duration_since(line.logged);
            if line.omitted > 0 && age >= SPACING {
                omitted.push((*key, std::mem::take(&mut line.omitted)));
                line.logged = now;
            }
            age < FORGOTTEN || line.omitted > 0
        });
        omitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: Option<AgentId> = Some(AgentId::from_u128(1));

    #[test]
    fn one_line_a_second_of_each_agent_and_kind_then_a_count() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(limit.admit_at(AGENT, "gap", at(0)), Some(None));
        for ms in 1..500 {
            assert_eq!(limit.admit_at(AGENT, "gap", at(ms)), None);
        }
        assert_eq!(limit.admit_at(AGENT, "skew", at(500)), Some(None), "another kind");
        assert_eq!(limit.admit_at(None, "gap", at(500)), Some(None), "another peer");
        assert_eq!(limit.admit_at(AGENT, "gap", at(1_000)), Some(Some(499)));
        assert_eq!(limit.admit_at(AGENT, "gap", at(2_000)), Some(None));
    }

    #[test]
    fn what_was_left_out_is_reported_and_calm_pairs_are_forgotten() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        for ms in 0..10 {
            limit.admit_at(AGENT, "gap", at(ms));
        }
        assert_eq!(limit.omitted_at(at(900)), []);
        assert_eq!(limit.omitted_at(at(1_100)), [((AGENT, "gap"), 9)]);
        assert_eq!(limit.omitted_at(at(9_000)), []);
        assert_eq!(limit.omitted_at(at(90_000)), []);
        assert!(limit.0.lock().unwrap().is_empty());
    }
}
