//! Destinations of a page's alerts, their secrets, and the addresses that are blocked.

pub mod default_destination;
pub mod mailbox_confirmation;
mod shown_secrets;
mod undo;
mod unsubscribe;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parallax_core::account::Account;
use parallax_core::destination::edit::{DestinationContext, DestinationEdit};
use parallax_core::destination::{Destination, MAX_DESTINATIONS};
use parallax_core::id::{DestinationId, PageId};
use parallax_core::plan::PlanLimitError;
use parallax_core::role::Permission;
use parallax_core::time::Timestamp;
use parallax_core::undo::InverseChange;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use self::shown_secrets::ShownSecrets;
use crate::context::ServiceContext;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::notifications::confirmation_limits::ConfirmationLimits;
use crate::{Caller, ServiceResult};

/// Rule for changing the secret of a destination that has none.
const NO_SECRET: &str = "only a webhook has a secret";

/// Owns destinations of alerts and their secrets. A mailbox other than the account's own gets no alert before its
/// reader confirms, and its reader can stop the alerts at any time.
#[derive(Debug)]
pub struct DestinationService {
    context: Arc<ServiceContext>,
    limits: Arc<ConfirmationLimits>,
    shown_secrets: ShownSecrets,
}

impl DestinationService {
    pub(crate) fn new(context: &Arc<ServiceContext>, limits: &Arc<ConfirmationLimits>) -> Self {
        Self { context: Arc::clone(context), limits: Arc::clone(limits), shown_secrets: ShownSecrets::default() }
    }

    /// Lists the page's destinations, oldest first.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a page that the key can't access.
    pub async fn list(&self, caller: &Caller, page: PageId) -> ServiceResult<Vec<Destination>> {
        let page = self.context.page(caller, page)?;
        let account = self.context.account_of(&page)?;
        let destinations = self.context.store().read(move |store| store.destinations_of(page.id)).await?;
        Ok(destinations.into_iter().map(|destination| destination.value.on_plan(&account)).collect())
    }

    /// Returns a destination of the page.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound).
    pub fn get(&self, caller: &Caller, page: PageId, id: DestinationId) -> ServiceResult<Destination> {
        let page = self.context.page(caller, page)?;
        let destination = self.context.destination_on(&page, id)?.value;
        Ok(destination.on_plan(&self.context.account_of(&page)?))
    }

    /// Creates a destination. A webhook gets its secret. A mailbox other than the account's own gets a confirmation
    /// mail, and nothing else until its reader confirms.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`, `ServiceError::Invalid`, and `ServiceError::PlanLimit` for a
    /// channel that the plan does not include, or a page with the maximum of destinations.
    pub async fn create(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &DestinationEdit,
        once: &IdempotentRequest<'_, Destination>,
    ) -> ServiceResult<RequestOutcome<Destination>> {
        caller.require(Permission::ManageAlerts)?;
        let id = DestinationId::new(self.context.now(), rand::random());
        let is_counted = &AtomicBool::new(false);
        // Under the page's lock, so that the last slot is taken once.
        self.context
            .change_page_once(caller, page, page.to_u128(), once, |page| async move {
                let monitors = self.context.monitor_ids(&page).await?;
                let account = self.context.account_of(&page)?;
                let mut created = {
                    let blocked_class = |address| self.context.blocked_address_class(address);
                    let around = DestinationContext {
                        monitors: &monitors,
                        account_email: &account.email,
                        forbidden_address: &blocked_class,
                    };
                    edit.validate_new((id, page.id), format_secret(rand::random()), &around, self.context.now())?
                };
                let (plan, kind) = (account.plan, created.channel.kind());
                if !plan.has_channel(kind) {
                    return Err(PlanLimitError::ChannelNeedsHobby { plan, kind }.into());
                }
                if self.context.store().reader().destinations_of(page.id)?.len() >= MAX_DESTINATIONS {
                    return Err(PlanLimitError::DestinationsFull.into());
                }
                let mut batch = Batch::new();
                batch
                    .expect(Expect::Page(page.id, Presence::Present))
                    .expect(Expect::Destination(id, Presence::Absent));
                batch.expect(Expect::DestinationsBelow(page.id, MAX_DESTINATIONS));
                self.request_confirmation(&page, is_counted, None, &mut created, &mut batch).await?;
                batch.write(created.clone());
                Ok((created, batch))
            })
            .await
            .inspect(|_| self.context.deliveries_due.notify_one())
    }

    /// Edits a destination. One that the service switched off is switched on again. A new mailbox gets a confirmation
    /// mail first; so does an unconfirmed one whose last mail is more than a day old.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`, `ServiceError::Invalid`.
    pub async fn edit(
        &self,
        caller: &Caller,
        page: PageId,
        id: DestinationId,
        edit: &DestinationEdit,
        once: &IdempotentRequest<'_, Destination>,
    ) -> ServiceResult<RequestOutcome<Destination>> {
        caller.require(Permission::ManageAlerts)?;
        let is_counted = &AtomicBool::new(false);
        self.context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let before = self.context.destination_on(&page, id)?;
                let monitors = self.context.monitor_ids(&page).await?;
                let account = self.context.account_of(&page)?;
                let mut changed = {
                    let blocked_class = |address| self.context.blocked_address_class(address);
                    let around = DestinationContext {
                        monitors: &monitors,
                        account_email: &account.email,
                        forbidden_address: &blocked_class,
                    };
                    edit.validate_edit(&before.value, &around, self.context.now())?
                };
                let mut batch = Batch::new();
                self.request_confirmation(&page, is_counted, Some(&before.value), &mut changed, &mut batch).await?;
                Ok(replacement(&before, changed, batch, &account))
            })
            .await
            .inspect(|_| self.context.deliveries_due.notify_one())
    }

    /// Gives a webhook a new secret, replacing a pending one. It signs in addition to the active one until it is
    /// activated or a day has passed.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`, `ServiceError::Invalid` for a destination that is not a
    /// webhook.
    pub async fn rotate_secret(
        &self,
        caller: &Caller,
        page: PageId,
        id: DestinationId,
        once: &IdempotentRequest<'_, Destination>,
    ) -> ServiceResult<RequestOutcome<Destination>> {
        let rotate = |it: &Destination, now| it.rotated(format_secret(rand::random()), now);
        self.change_secret(caller, page, id, once, rotate).await
    }

    /// Activates a webhook's pending secret: the previous one no longer signs. Without a pending secret nothing
    /// changes.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`, `ServiceError::Invalid` for a destination that is not a
    /// webhook.
    pub async fn activate_secret(
        &self,
        caller: &Caller,
        page: PageId,
        id: DestinationId,
        once: &IdempotentRequest<'_, Destination>,
    ) -> ServiceResult<RequestOutcome<Destination>> {
        self.change_secret(caller, page, id, once, |it, _| it.activated()).await
    }

    /// Changes a webhook's secrets. `change` returns `None` for a destination that has none.
    async fn change_secret(
        &self,
        caller: &Caller,
        page: PageId,
        id: DestinationId,
        once: &IdempotentRequest<'_, Destination>,
        change: impl Fn(&Destination, Timestamp) -> Option<Destination>,
    ) -> ServiceResult<RequestOutcome<Destination>> {
        caller.require(Permission::ManageAlerts)?;
        let change = &change;
        self.context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let before = self.context.destination_on(&page, id)?;
                let changed = change(&before.value, self.context.now());
                let changed = changed.ok_or_else(|| ValidationErrors::whole_request(NO_SECRET))?;
                Ok(replacement(&before, changed, Batch::new(), &self.context.account_of(&page)?))
            })
            .await
    }

    /// Deletes a destination. Pending deliveries to it are dropped.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`.
    pub async fn delete(
        &self,
        caller: &Caller,
        page: PageId,
        id: DestinationId,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        caller.require(Permission::ManageAlerts)?;
        self.context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let destination = self.context.destination_on(&page, id)?.value;
                let mut batch = Batch::new();
                if once.undo().is_some() {
                    batch.ops.extend(self.note_of_deletion(&destination));
                }
                let inverse = || InverseChange::Destination(Box::new(destination));
                self.context.record_undo(caller, once, inverse, &mut batch);
                batch.expect(Expect::Destination(id, Presence::Present)).write(Op::DeleteDestination(id));
                Ok(((), batch))
            })
            .await
    }
}

/// The destination as its owner sees it after a change, with the batch that writes it if it differs.
fn replacement(
    before: &VersionedValue<Destination>,
    after: Destination,
    mut batch: Batch,
    account: &Account,
) -> (Destination, Batch) {
    if after != before.value {
        batch.expect(Expect::Destination(after.id, Presence::At(before.revision))).write(after.clone());
    }
    (after.on_plan(account), batch)
}

/// Formats a secret (Standard Webhooks 1.0).
pub(crate) fn format_secret(random: [u8; 32]) -> String {
    format!("whsec_{}", STANDARD.encode(random))
}
