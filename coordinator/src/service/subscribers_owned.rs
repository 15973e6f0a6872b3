//! A page's subscribers, managed by its owner: list, add after confirmation, and delete.

use parallax_core::id::{PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::refusal::Refusals;
use parallax_core::subscriber::Subscriber;
use parallax_core::subscriber::ask::Ask;
use parallax_core::subscriber::asking::Asker;

use super::once::{Done, Once};
use super::subscribers::fingerprint;
use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op, Versioned};

/// Part of a list of subscribers, with a cursor.
#[derive(Debug, Clone)]
pub struct Part {
    /// Oldest first.
    pub subscribers: Vec<Subscriber>,
    /// Cursor of the next part; `None` at the end.
    pub next: Option<SubscriberId>,
}

impl Service {
    /// Lists up to `limit` of the page's subscribers after that one, confirmed or not, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that the key can't access.
    pub async fn subscribers(
        &self,
        caller: &Caller,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> Result<Part> {
        let page = self.page(caller, page)?.id;
        let found = self.store().read(move |store| store.subscribers_of(page, after, limit + 1)).await?;
        let has_more = found.len() > limit;
        let subscribers: Vec<_> = found.into_iter().take(limit).map(|it| it.value).collect();
        let next = subscribers.last().filter(|_| has_more).map(|last| last.id);
        Ok(Part { subscribers, next })
    }

    /// Sends a confirmation mail to a mailbox. It gets nothing else until its reader confirms.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], and [`Error::Invalid`], also if the mailbox got a confirmation mail
    /// within the last day for another page and is not on this one; [`Error::PageAsks`] and [`Error::AccountAsks`] if
    /// too many were sent recently, [`Error::PlanLimit`] if too many have not confirmed.
    pub async fn add_subscriber(
        &self,
        caller: &Caller,
        page: PageId,
        ask: &Ask,
        once: &Once<'_, Subscriber>,
    ) -> Result<Done<Subscriber>> {
        caller.writes()?;
        let page = &self.page(caller, page)?;
        if let Some(answer) = self.answered(once)? {
            return Ok(Done::Before(answer));
        }
        self.subscribe_by(Asker::Owner, page, ask, None).await?;
        let address = ask.settle(&self.ids_on(page).await?, &|it| self.refused(it))?.address;
        let fingerprint = fingerprint(&address);
        self.change(page.id.to_u128(), || async move {
            if let Some(answer) = self.answered(once)? {
                return Ok((Done::Before(answer), None));
            }
            let found = self.store().reader().subscriber_by(page.id, fingerprint)?;
            let asked = found.ok_or_else(|| {
                Refusals::one(
                    "email",
                    "was sent a confirmation mail within the last day: its reader must confirm",
                )
            })?;
            let mut batch = Batch::new();
            self.remember(once, &asked.value, &mut batch)?;
            Ok((Done::Now(asked.value), (!batch.is_empty()).then_some(batch)))
        })
        .await
    }

    /// Deletes a subscriber. Pending deliveries to it are dropped.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`].
    pub async fn delete_subscriber(
        &self,
        caller: &Caller,
        page: PageId,
        id: SubscriberId,
        once: &Once<'_, ()>,
    ) -> Result<Done<()>> {
        self.change_on(caller, page, id.to_u128(), once, |page| async move {
            let found = self.subscriber_on(&page, id)?;
            let mut batch = Batch::new();
            batch.expect(Expect::Subscriber(id, Is::At(found.revision))).write(Op::DeleteSubscriber(id));
            Ok(((), batch))
        })
        .await
    }

    fn subscriber_on(&self, page: &Page, id: SubscriberId) -> Result<Versioned<Subscriber>> {
        let subscriber = self.store().reader().subscriber(id)?;
        subscriber.filter(|subscriber| subscriber.value.page == page.id).ok_or(Error::NotFound)
    }
}
