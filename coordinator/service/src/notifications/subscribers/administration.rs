//! A page's subscribers, managed by its owner: list, add after confirmation, and delete.

use parallax_core::id::{PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::subscriber::Subscriber;
use parallax_core::subscriber::confirmation_limit::ConfirmationOrigin;
use parallax_core::subscriber::request::SubscriptionRequest;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use super::SubscriberService;
use super::contact_fingerprint;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::{Caller, ServiceError, ServiceResult};

/// Part of a list of subscribers, with a cursor.
#[derive(Debug, Clone)]
pub struct SubscriberSlice {
    /// Oldest first.
    pub subscribers: Vec<Subscriber>,
    /// Cursor of the next part; `None` at the end.
    pub next: Option<SubscriberId>,
}

impl SubscriberService {
    /// Lists up to `limit` of the page's subscribers after that one, confirmed or not, oldest first.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access.
    pub async fn list(
        &self,
        caller: &Caller,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> ServiceResult<SubscriberSlice> {
        let page = self.context.page(caller, page)?.id;
        let slice = self.context.store().read(move |store| store.subscribers_of(page, after, limit + 1)).await?;
        let has_more = slice.len() > limit;
        let subscribers: Vec<_> = slice.into_iter().take(limit).map(|it| it.value).collect();
        let next = subscribers.last().filter(|_| has_more).map(|last| last.id);
        Ok(SubscriberSlice { subscribers, next })
    }

    /// Sends a confirmation mail to a mailbox. It gets nothing else until its reader confirms.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], and [`ServiceError::Invalid`], also if the mailbox got a
    /// confirmation mail within the last day for another page and is not on this one;
    /// [`ServiceError::PageConfirmationLimit`] and [`ServiceError::AccountConfirmationLimit`] if too many were sent
    /// recently, [`ServiceError::PlanLimit`] if too many have not confirmed.
    pub async fn add(
        &self,
        caller: &Caller,
        page: PageId,
        ask: &SubscriptionRequest,
        once: &IdempotentRequest<'_, Subscriber>,
    ) -> ServiceResult<RequestOutcome<Subscriber>> {
        caller.require_write()?;
        let page = &self.context.page(caller, page)?;
        if let Some(answer) = self.context.replayed_answer(once)? {
            return Ok(RequestOutcome::Replayed(answer));
        }
        self.subscribe_by(ConfirmationOrigin::Owner, page, ask, None).await?;
        let address =
            ask.validate(&self.context.monitor_ids(page).await?, &|it| self.context.blocked_address_class(it))?.address;
        let fingerprint = contact_fingerprint(&address);
        self.context
            .commit_change(page.id.to_u128(), || async move {
                if let Some(answer) = self.context.replayed_answer(once)? {
                    return Ok((RequestOutcome::Replayed(answer), None));
                }
                let existing = self.context.store().reader().subscriber_by_contact(page.id, fingerprint)?;
                let subscriber = existing.ok_or_else(|| {
                    ValidationErrors::single(
                        "email",
                        "was sent a confirmation mail within the last day: its reader must confirm",
                    )
                })?;
                let mut batch = Batch::new();
                self.context.store_answer(once, &subscriber.value, &mut batch)?;
                Ok((RequestOutcome::Fresh(subscriber.value), (!batch.is_empty()).then_some(batch)))
            })
            .await
    }

    /// Deletes a subscriber. Pending deliveries to it are dropped.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`].
    pub async fn delete(
        &self,
        caller: &Caller,
        page: PageId,
        id: SubscriberId,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        self.context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let subscriber = self.subscriber_on(&page, id)?;
                let mut batch = Batch::new();
                batch.expect(Expect::Subscriber(id, Presence::At(subscriber.revision))).write(Op::DeleteSubscriber(id));
                Ok(((), batch))
            })
            .await
    }

    fn subscriber_on(&self, page: &Page, id: SubscriberId) -> ServiceResult<VersionedValue<Subscriber>> {
        let subscriber = self.context.store().reader().subscriber(id)?;
        subscriber.filter(|subscriber| subscriber.value.page == page.id).ok_or(ServiceError::NotFound)
    }
}
