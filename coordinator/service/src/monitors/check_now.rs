//! Check now: an agent in each region checks a monitor on request, and the outcomes are stored as events.

use std::sync::Arc;
use std::time::Duration;

use parallax_core::account::Account;
use parallax_core::check::{Check, CheckKind};
use parallax_core::event::{Event, EventKind, ProbeReason, RoundReport};
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::observation::{ProbeOutcome, RoundOutcome};
use parallax_core::rate_limit::RateExceeded;
use parallax_core::role::Permission;
use parallax_core::time::{MINUTE, SECOND};
use parallax_core::validation::ValidationErrors;
use parallax_core::vantage::Region;
use parallax_engine::{Arrival, CheckNowRequest, CheckNowResult, CheckNowSubject, UnsavedCheck};
use parallax_store::Batch;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::MonitorService;
use super::history::AgentsByNumber;
use crate::{Caller, ServiceError, ServiceResult};

/// Minimum milliseconds between two checks on request of one monitor.
pub(super) const MIN_INTERVAL: i64 = 10 * SECOND;
/// Window of the limits on tests of unsaved monitors and on a person's checks on request, in milliseconds.
pub(super) const TEST_WINDOW: i64 = MINUTE;
/// Tests of unsaved monitors that an account may run in a window, besides the request limit of each key.
pub const TESTS_PER_MINUTE: u32 = 20;
/// Checks on request that a person may run in a window, over all monitors. API keys have their request limit.
pub const CHECKS_PER_MINUTE: u32 = 20;
/// Time that the agents get: ten seconds for the check, two for the network, and one for the driver.
const TIMEOUT: Duration = Duration::from_secs(13);

/// Receives the results of a running check whenever a region answers; those without an observation may still follow.
pub type CheckNowProgress = watch::Sender<Vec<CheckNowResult>>;

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
    /// probed, [`ServiceError::CheckNowTooSoon`], and [`ServiceError::CheckNowLimit`].
    pub async fn check_now(
        &self,
        caller: &Caller,
        (page, id): (PageId, MonitorId),
        progress: CheckNowProgress,
    ) -> ServiceResult<CheckNowReport> {
        caller.require(Permission::Edit)?;
        let page = self.context.page(caller, page)?;
        let monitor = self.context.monitor_on(&page, id)?.value;
        if monitor.check.kind() == CheckKind::Heartbeat {
            return Err(ValidationErrors::whole_request(
                "a heartbeat can't be checked on request: its job reports by ping",
            )
            .into());
        }
        self.context
            .check_rate(&self.check_now_limit, 1, &id)
            .map_err(|RateExceeded { seconds }| ServiceError::CheckNowTooSoon { seconds })?;
        if caller.key().is_none() {
            self.context
                .check_rate(&self.person_check_limit, CHECKS_PER_MINUTE, &caller.limit_id())
                .map_err(|RateExceeded { seconds }| ServiceError::CheckNowLimit { seconds })?;
        }
        let outcomes = self.outcomes_of(CheckNowSubject::Monitor(id), progress).await;
        let mut batch = Batch::new();
        for report in outcomes.iter().filter_map(round_report) {
            let at = self.context.now();
            batch.event(Event { at, page: Some(page.id), monitor: Some(id), kind: EventKind::Round(report) });
        }
        if !batch.is_empty() {
            self.context.store().commit(batch).await?;
        }
        Ok(CheckNowReport { outcomes, agents: self.context.agents_by_number().await? })
    }

    /// Checks an unsaved monitor at once, from the regions that it would be checked from. Nothing is stored. A monitor
    /// that the account's plan has no room for can be tested, one of a type that the plan excludes can't.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`] for invalid fields and for a
    /// heartbeat, [`ServiceError::PlanLimit`], and [`ServiceError::MonitorTestLimit`].
    pub async fn test(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &MonitorEdit,
        progress: CheckNowProgress,
    ) -> ServiceResult<CheckNowReport> {
        caller.require(Permission::Edit)?;
        let page = self.context.page(caller, page)?;
        let settings = edit.validate(None, "")?;
        let kind = settings.check.kind();
        if kind == CheckKind::Heartbeat {
            let rule = "heartbeats can't be tested: their jobs report by ping";
            return Err(ValidationErrors::whole_request(rule).into());
        }
        let account = self.context.account_of(&page)?;
        self.admit_test(&account, kind)?;
        let pinned = settings.pinned_region.filter(|_| account.plan.uses_regions());
        let outcomes = self.unsaved_outcomes(account.id, (settings.check, pinned), progress).await;
        Ok(CheckNowReport { outcomes, agents: self.context.agents_by_number().await? })
    }

    /// Admits a test of an unsaved monitor of that type: the account's plan must include it, and its tests are limited.
    pub(super) fn admit_test(&self, account: &Account, kind: CheckKind) -> ServiceResult<()> {
        self.context.settings().limits.monitor_limit(account.plan, kind)?;
        self.context
            .check_rate(&self.test_limit, TESTS_PER_MINUTE, &account.id)
            .map_err(|RateExceeded { seconds }| ServiceError::MonitorTestLimit { seconds })
    }

    /// Waits for the outcomes of an unsaved check by region, of one region alone if it is pinned.
    pub(super) async fn unsaved_outcomes(
        &self,
        account: AccountId,
        (check, pinned): (Check, Option<Region>),
        progress: CheckNowProgress,
    ) -> Vec<CheckNowResult> {
        let id = MonitorId::new(self.context.now(), rand::random());
        let unsaved = UnsavedCheck { id, account, check: Arc::new(check), pinned };
        self.outcomes_of(CheckNowSubject::Unsaved(unsaved), progress).await
    }

    /// Returns the agents that the results of a running check may name.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn checking_agents(&self, caller: &Caller) -> ServiceResult<AgentsByNumber> {
        caller.require(Permission::Edit)?;
        self.context.agents_by_number().await
    }

    /// Waits for the outcomes by region; empty if the driver does not answer in time.
    async fn outcomes_of(&self, subject: CheckNowSubject, progress: CheckNowProgress) -> Vec<CheckNowResult> {
        let (answer, reply) = oneshot::channel();
        let arrival = Arrival::CheckNow(CheckNowRequest { subject, reply: answer, progress });
        let outcomes = async {
            self.pings.inbox.send(arrival).await.ok()?;
            reply.await.ok()
        };
        timeout(TIMEOUT, outcomes).await.ok().flatten().unwrap_or_default()
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
