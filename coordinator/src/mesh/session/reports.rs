//! An agent's reports of its host: a clock that is off, faults, results that it had no room for.

use parallax_protocol::message::Gap;
use parallax_protocol::result::OwnFault;
use tracing::{info, warn};

use super::super::wire::Fault;
use super::super::{FITNESS, results};
use super::{MOST_NAMED, Session};

impl Session {
    /// Notes by how much the host's wall clock is off.
    pub(super) fn note_skew(&self, skew_ms: i64) {
        let place = self.agent.place;
        if self.hub.with_roster(|roster| roster.note_skew(place, skew_ms))
            && let Some(omitted) = self.may_log("skew")
        {
            warn!(agent = %self.agent.id, skew_ms, omitted, "the host's clock is off");
        }
    }

    /// Notes what keeps the host from checking, or that nothing does any more.
    pub(super) fn note_fitness(&self, faults: &[OwnFault]) {
        let faults = faults.get(..MOST_NAMED).unwrap_or(faults);
        let words: Vec<_> = faults.iter().map(ToString::to_string).collect();
        let (place, number, told) = (self.agent.place, self.seated.number, words.join("; "));
        if !self.hub.with_roster(|roster| roster.note_faults(place, number, faults)) {
            return;
        }
        let kind = if told.is_empty() { "fit" } else { "unfit" };
        let Some(omitted) = self.may_log(kind) else { return };
        let (agent, name) = (self.agent.id, &self.agent.name);
        if told.is_empty() {
            info!(target: FITNESS, %agent, %name, omitted, "an agent's host is fit to check again");
        } else {
            warn!(target: FITNESS, %agent, %name, faults = told, omitted, "an agent's host is not fit to check");
        }
    }

    /// Takes numbers that will never come out of what is waited for.
    pub(super) async fn gap(&mut self, gap: Gap) -> Result<(), Fault> {
        self.memory.ledger().gap(gap.boot, gap.from, gap.through).map_err(results::refusal)?;
        results::count_gone(&self.hub, &self.memory);
        if let Some(omitted) = self.may_log("gap") {
            warn!(
                agent = %self.agent.id, count = gap.count(), from_ms = gap.from_ms, through_ms = gap.through_ms, omitted,
                "the agent dropped results for want of room",
            );
        }
        self.acknowledge().await
    }

    /// Admits a log line of that kind about this agent; see [`crate::log_limit`].
    fn may_log(&self, kind: &'static str) -> Option<Option<u64>> {
        self.hub.logs.admit((Some(self.agent.id), kind))
    }
}
