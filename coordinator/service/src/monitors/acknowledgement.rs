//! Acknowledgement of a monitor's running outage: it stops the still-down alerts of this outage.

use parallax_core::acknowledgement::{Acknowledgement, AcknowledgementRequest, AcknowledgementWithdrawal};
use parallax_core::event::EventKind;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::Monitor;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Presence};

use super::{MonitorService, MonitorWithState};
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::{Caller, ServiceResult};

/// Rule for acknowledging a monitor without an outage.
const NOT_DOWN: &str = "the monitor is not down: there is no outage to acknowledge";

impl MonitorService {
    /// Acknowledges the monitor's running outage in the caller's name. An outage that is acknowledged already keeps its
    /// first acknowledgement, which is returned.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`, and `ServiceError::Invalid`, also for a monitor without a
    /// running outage.
    pub async fn acknowledge(
        &self,
        caller: &Caller,
        page: PageId,
        id: MonitorId,
        request: &AcknowledgementRequest,
        once: &IdempotentRequest<'_, MonitorWithState>,
    ) -> ServiceResult<RequestOutcome<MonitorWithState>> {
        self.context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let stored = self.context.monitor_on(&page, id)?;
                let note = request.validate()?;
                let current = self.monitor_with_state(&page, stored.value.clone()).await?;
                let outage = current.view.outage_since.ok_or_else(|| ValidationErrors::whole_request(NOT_DOWN))?;
                if stored.value.acknowledgement_of(outage).is_some() {
                    return Ok((current, Batch::new()));
                }
                let acknowledgement = Acknowledgement { outage, by: caller.actor_name(), at: self.context.now(), note };
                let in_record = Some(Box::new(acknowledgement.clone()));
                let mut batch = Batch::new();
                batch
                    .expect(Expect::Monitor(id, Presence::At(stored.revision)))
                    .write(Monitor { acknowledgement: in_record.clone(), ..stored.value })
                    .event(self.context.event_of(page.id, id, EventKind::OutageAcknowledged(acknowledgement)));
                let monitor = Monitor { acknowledgement: in_record, ..current.monitor };
                Ok((MonitorWithState { monitor, ..current }, batch))
            })
            .await
    }

    /// Takes the acknowledgement of the newest acknowledged outage back; its still-down alerts go on with the next
    /// interval. Idempotent.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`.
    pub async fn withdraw_acknowledgement(
        &self,
        caller: &Caller,
        page: PageId,
        id: MonitorId,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        self.context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let mut stored = self.context.monitor_on(&page, id)?;
                let mut batch = Batch::new();
                if let Some(acknowledgement) = stored.value.acknowledgement.take() {
                    let withdrawal =
                        AcknowledgementWithdrawal { outage: acknowledgement.outage, by: caller.actor_name() };
                    batch
                        .expect(Expect::Monitor(id, Presence::At(stored.revision)))
                        .write(stored.value)
                        .event(self.context.event_of(page.id, id, EventKind::AcknowledgementWithdrawn(withdrawal)));
                }
                Ok(((), batch))
            })
            .await
    }
}
