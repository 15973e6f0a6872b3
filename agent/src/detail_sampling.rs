//! Sampling of details: decides which passed results are sent with phases and address. Free of IO.

use parallax_protocol::id::WireMonitorId;
use parallax_protocol::result::{CheckResult, WireOutcome, WirePhases};
use std::collections::HashMap;

/// Stores, for each monitor, the last result sent in full.
#[derive(Debug, Default)]
pub struct DetailSampler {
    monitors: HashMap<WireMonitorId, LastFullResult>,
}

#[derive(Debug, Clone, Copy)]
struct LastFullResult {
    revision: u32,
    latency_ms: u32,
    plain_since: u8,
    passed: bool,
}

impl DetailSampler {
    /// Sampling interval: at least one passed result in this many is sent in full.
    pub const SAMPLING_INTERVAL: u8 = 20;

    /// Removes phases and address from a passed result unless they are informative: the first of a revision,
    /// the first after another outcome, one that took half as long again as the last one sent in full, and
    /// every twentieth. Without them a result takes a fifth of the bytes on the wire.
    pub fn strip_details(&mut self, result: &mut CheckResult) {
        let report = &mut result.report;
        match report.outcome {
            WireOutcome::Passed => {}
            WireOutcome::Pending => return,
            WireOutcome::Failed(_) | WireOutcome::Inconclusive(_) => {
                if let Some(last) = self.monitors.get_mut(&result.monitor) {
                    last.passed = false;
                }
                return;
            }
        }
        let latency_ms = report.latency_ms.unwrap_or(0);
        let last = self.monitors.get_mut(&result.monitor);
        if let Some(last) = last.filter(|last| {
            last.passed
                && last.revision == result.revision
                && last.plain_since + 1 < Self::SAMPLING_INTERVAL
                && latency_ms <= last.latency_ms.saturating_add(last.latency_ms / 2).saturating_add(20)
        }) {
            last.plain_since += 1;
            report.phases = WirePhases::default();
            report.address = None;
            return;
        }
        let last = LastFullResult { revision: result.revision, latency_ms, plain_since: 0, passed: true };
        self.monitors.insert(result.monitor, last);
    }

    /// Removes monitors that are no longer assigned.
    pub fn retain(&mut self, mut assigned: impl FnMut(WireMonitorId) -> bool) {
        self.monitors.retain(|&monitor, _| assigned(monitor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::result::{ProbeReport, WireFailure};

    fn result(outcome: WireOutcome, latency_ms: u32) -> CheckResult {
        let mut report = ProbeReport::outcome_only(outcome);
        report.latency_ms = Some(latency_ms);
        report.phases.dns_us = Some(1);
        CheckResult { monitor: WireMonitorId(1), revision: 1, round: Some(1), started_ms: 0, age_ms: 0, report }
    }

    fn is_full(details: &mut DetailSampler, mut result: CheckResult) -> bool {
        details.strip_details(&mut result);
        result.report.phases.dns_us.is_some()
    }

    #[test]
    fn one_in_twenty_is_full() {
        let mut details = DetailSampler::default();
        let full = (0..60).filter(|_| is_full(&mut details, result(WireOutcome::Passed, 50))).count();
        assert_eq!(full, 3);
    }

    #[test]
    fn the_first_result_is_sent_in_full() {
        let mut details = DetailSampler::default();
        assert!(is_full(&mut details, result(WireOutcome::Passed, 50)));
        assert!(!is_full(&mut details, result(WireOutcome::Passed, 60)));
        assert!(is_full(&mut details, result(WireOutcome::Passed, 200)), "slower");
        assert!(is_full(&mut details, result(WireOutcome::Failed(WireFailure::Refused), 1)), "failed");
        assert!(is_full(&mut details, result(WireOutcome::Passed, 200)), "passed again");
        assert!(is_full(&mut details, CheckResult { revision: 2, ..result(WireOutcome::Passed, 200) }), "changed");
        details.retain(|_| false);
        assert!(is_full(&mut details, CheckResult { revision: 2, ..result(WireOutcome::Passed, 200) }));
    }
}
