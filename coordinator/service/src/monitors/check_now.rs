//! Check now: an agent in each region checks a monitor on request, and the outcomes are stored as events.

use std::time::Duration;

use parallax_core::event::{Event, EventKind, ProbeReason, RoundReport};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::observation::{ProbeOutcome, RoundOutcome};
use parallax_core::rate_limit::RateExceeded;
use parallax_core::time::SECOND;
use parallax_core::validation::ValidationErrors;
use parallax_engine::{Arrival, CheckNowRequest, CheckNowResult};
use parallax_store::Batch;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::MonitorService;
use super::history::AgentsByNumber;
use crate::{Caller, ServiceError, ServiceResult};

/// Minimum milliseconds between two checks on request of one monitor.
pub(super) const MIN_INTERVAL: i64 = 10 * SECOND;
/// Time that the agents get: ten seconds for the check, two for the network, and one for the driver.
const TIMEOUT: Duration = Duration::from_secs(13);

/// Result of a check on request.
#[derive(Debug, Clone)]
pub struct CheckNowReport {
    /// Outcome for each region, including regions without an agent, in the order of regions.
    pub outcomes: Vec<CheckNowResult>,
    /// Agents named in the outcomes.
    pub agents: AgentsByNumber,
}

impl MonitorService {
    /// Checks a monitor at once, once in each of its regions. The outcomes change no status and count in no
    /// statistics.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`] for a heartbeat, which is not
    /// probed, and [`ServiceError::CheckNowTooSoon`].
    pub async fn check_now(&self, caller: &Caller, page: PageId, id: MonitorId) -> ServiceResult<CheckNowReport> {
        caller.require_write()?;
        let page = self.context.page(caller, page)?;
        let monitor = self.context.monitor_on(&page, id)?.value;
        if monitor.check.kind() == parallax_core::check::CheckKind::Heartbeat {
            return Err(ValidationErrors::whole_request(
                "a heartbeat can't be checked on request: its job reports by ping",
            )
            .into());
        }
        self.context
            .check_rate(&self.check_now_limit, 1, &id)
            .map_err(|RateExceeded { seconds }| ServiceError::CheckNowTooSoon { seconds })?;
        let (answer, reply) = oneshot::channel();
        let arrival = Arrival::CheckNow(CheckNowRequest { monitor: id, reply: answer });
        let looking = async {
            self.pings.inbox.send(arrival).await.ok()?;
            reply.await.ok()
        };
        let sightings = timeout(TIMEOUT, looking).await.ok().flatten().unwrap_or_default();
        let mut batch = Batch::new();
        for report in sightings.iter().filter_map(round_report) {
            let at = self.context.now();
            batch.event(Event { at, page: Some(page.id), monitor: Some(id), kind: EventKind::Round(report) });
        }
        if !batch.is_empty() {
            self.context.store().commit(batch).await?;
        }
        Ok(CheckNowReport { outcomes: sightings, agents: self.context.agents_by_number().await? })
    }
}

/// Builds the event of an agent's outcome: a failure counts as unconfirmed.
fn round_report(result: &CheckNowResult) -> Option<RoundReport> {
    let observation = result.observation.as_ref()?;
    let outcome = match observation.outcome {
        ProbeOutcome::Passed(_) => RoundOutcome::Passed,
        ProbeOutcome::Failed(..) => RoundOutcome::Unconfirmed,
        ProbeOutcome::Inconclusive(_) => RoundOutcome::Inconclusive,
        ProbeOutcome::Pending => return None,
    };
    Some(RoundReport {
        region: observation.region,
        reason: ProbeReason::Manual,
        round: None,
        started: observation.started,
        round_outcome: outcome,
        first_vantage: observation.vantage,
        first_outcome: observation.outcome.clone(),
        second: None,
        third: None,
    })
}
