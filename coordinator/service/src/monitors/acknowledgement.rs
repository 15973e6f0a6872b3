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
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`, `ServiceError::Invalid`, also for a monitor without a
    /// running outage, and `ServiceError::Busy` if its state is not known in time.
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
                let view = self.context.reported_view(id).await?;
                let outage = view.outage_since.ok_or_else(|| ValidationErrors::whole_request(NOT_DOWN))?;
                let current = self.monitor_with_state(&page, stored.value.clone()).await?;
                let current = MonitorWithState { view, ..current };
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

    /// Withdraws the acknowledgement of the running outage; its still-down alerts go on with the next interval. The
    /// acknowledgement of an outage that is over stays. Idempotent.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`, and `ServiceError::Busy` if the monitor's state is not known
    /// in time.
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
                if stored.value.acknowledgement.is_none() {
                    return Ok(((), batch));
                }
                let running = self.context.reported_view(id).await?.outage_since;
                let is_running = |it: &mut Box<Acknowledgement>| Some(it.outage) == running;
                if let Some(acknowledgement) = stored.value.acknowledgement.take_if(is_running) {
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
