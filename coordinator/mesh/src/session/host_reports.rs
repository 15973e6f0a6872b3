//! An agent's reports about its host: clock skew, faults, and results it dropped.

use std::time::Duration;

use parallax_protocol::message::ResultGap;
use parallax_protocol::result::WireOwnFault;
use tokio::time::Instant;
use tracing::{info, warn};

use super::super::wire::SessionError;
use super::super::{FITNESS_LOG_TARGET, results};
use super::{MAX_LISTED, Session};

/// Minimum time between two changes of an agent's faults: each one recomputes all agents' shares.
const FAULT_INTERVAL: Duration = Duration::from_secs(5);

/// Delays an agent's fault reports to that interval; a newer report replaces a waiting one.
#[derive(Debug, Default)]
pub(super) struct FaultReportPacer {
    recorded_at: Option<Instant>,
    waiting: Option<Vec<WireOwnFault>>,
}

impl FaultReportPacer {
    /// Stores a report.
    fn push(&mut self, faults: Vec<WireOwnFault>) {
        self.waiting = Some(faults);
    }

    /// Returns the newest report if one is due.
    fn take_due(&mut self, now: Instant) -> Option<Vec<WireOwnFault>> {
        if self.recorded_at.is_some_and(|recorded_at| now.duration_since(recorded_at) < FAULT_INTERVAL) {
            return None;
        }
        let faults = self.waiting.take()?;
        self.recorded_at = Some(now);
        Some(faults)
    }
}

impl Session {
    /// Handles a report of faults that keep the host from checking, at once or when it is due.
    pub(super) fn handle_faults(&mut self, mut faults: Vec<WireOwnFault>) {
        faults.truncate(MAX_LISTED);
        self.fault_reports.push(faults);
        self.record_due_faults();
    }

    /// Applies the waiting report if it is due.
    pub(super) fn record_due_faults(&mut self) {
        if let Some(faults) = self.fault_reports.take_due(Instant::now()) {
            self.record_faults(&faults);
        }
    }

    /// Records the host's clock skew.
    pub(super) fn record_skew(&self, skew_ms: i64) {
        let vantage = self.agent.vantage_no;
        if self.hub.with_roster(|roster| roster.record_skew(vantage, skew_ms))
            && let Some(omitted) = self.may_log("skew")
        {
            warn!(agent = %self.agent.id, skew_ms, omitted, "the host's clock is off");
        }
    }

    /// Records the faults that keep the host from checking; an empty list means that it is fit again.
    fn record_faults(&self, faults: &[WireOwnFault]) {
        let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
        let (vantage, number, text) = (self.agent.vantage_no, self.guard.number, texts.join("; "));
        if !self.hub.with_roster(|roster| roster.record_faults(vantage, number, faults)) {
            return;
        }
        let kind = if text.is_empty() { "fit" } else { "unfit" };
        let Some(omitted) = self.may_log(kind) else { return };
        let (agent, name) = (self.agent.id, &self.agent.name);
        if text.is_empty() {
            info!(target: FITNESS_LOG_TARGET, %agent, %name, omitted, "an agent's host is fit to check again");
        } else {
            warn!(
                target: FITNESS_LOG_TARGET, %agent, %name, faults = text, omitted,
                "an agent's host is not fit to check",
            );
        }
    }

    /// Handles a gap report: its numbers will never arrive.
    pub(super) async fn handle_gap(&mut self, gap: ResultGap) -> Result<(), SessionError> {
        self.agent_state.ledger().record_gap(gap.boot, gap.from, gap.through).map_err(results::close_fault)?;
        results::count_lost(&self.hub, &self.agent_state);
        if let Some(omitted) = self.may_log("gap") {
            warn!(
                agent = %self.agent.id, count = gap.count(), from_ms = gap.from_ms, through_ms = gap.through_ms, omitted,
                "the agent dropped results because its spool is full",
            );
        }
        self.acknowledge().await
    }

    /// Admits a log line of that kind about this agent; see [`parallax_runtime::log_limit`].
    fn may_log(&self, kind: &'static str) -> Option<Option<u64>> {
        self.hub.logs.admit((Some(self.agent.id), kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_fault_reports_are_delayed_and_the_newest_is_never_lost() {
        let (mut pacer, started) = (FaultReportPacer::default(), Instant::now());
        let mut reports = Vec::new();
        for tenth in 0..200 {
            let faults = if tenth % 2 == 0 { vec![WireOwnFault::NoRoute] } else { Vec::new() };
            pacer.push(faults);
            reports.extend(pacer.take_due(started + Duration::from_millis(100 * tenth)));
        }
        assert_eq!(reports.len(), 4);
        assert_eq!(reports[0], [WireOwnFault::NoRoute], "the first at once");
        let last = pacer.take_due(started + Duration::from_secs(60));
        assert_eq!(last, Some(Vec::new()));
        assert_eq!(pacer.take_due(started + Duration::from_secs(90)), None);
    }
}
