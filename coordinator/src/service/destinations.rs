//! Destinations of a page's alerts, their secrets, and the addresses that are blocked.

pub mod confirm;
pub mod owner;
mod stop;

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parallax_core::account::Account;
use parallax_core::destination::edit::{Around, DestinationEdit};
use parallax_core::destination::{Destination, MAX_DESTINATIONS};
use parallax_core::id::{DestinationId, PageId};
use parallax_core::page::Page;
use parallax_core::plan::PlanRefusal;
use parallax_core::refusal::Refusals;
use parallax_dial::address;

use super::once::{Done, Once};
use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op, Versioned};

/// Rule for changing the secret of a destination that has none.
const NO_SECRET: &str = "only a webhook has a secret";

impl Service {
    /// Lists the page's destinations, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that the key can't access.
    pub async fn destinations(&self, caller: &Caller, page: PageId) -> Result<Vec<Destination>> {
        let page = self.page(caller, page)?;
        let account = self.account_of(&page)?;
        let destinations = self.store().read(move |store| store.destinations_of(page.id)).await?;
        Ok(destinations.into_iter().map(|destination| destination.value.within(&account)).collect())
    }

    /// Returns a destination of the page.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn destination(&self, caller: &Caller, page: PageId, id: DestinationId) -> Result<Destination> {
        let page = self.page(caller, page)?;
        let destination = self.destination_on(&page, id)?.value;
        Ok(destination.within(&self.account_of(&page)?))
    }

    /// Creates a destination. A webhook gets its secret. A mailbox other than the account's own gets a confirmation
    /// mail, and nothing else until its reader confirms.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`], and [`Error::PlanLimit`] for a channel that the
    /// plan does not include, or a page with the maximum of destinations.
    pub async fn create_destination(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &DestinationEdit,
        once: &Once<'_, Destination>,
    ) -> Result<Done<Destination>> {
        let id = DestinationId::new(self.now(), rand::random());
        let is_counted = &AtomicBool::new(false);
        // Under the page's lock, so that the last slot is taken once.
        self.change_on(caller, page, page.to_u128(), once, |page| async move {
            let monitors = self.ids_on(&page).await?;
            let account = self.account_of(&page)?;
            let mut made = {
                let refused = |address| self.refused(address);
                let around = Around { monitors: &monitors, owner: &account.email, refused: &refused };
                edit.settle_new((id, page.id), secret(rand::random()), &around, self.now())?
            };
            let (plan, kind) = (account.plan, made.channel.kind());
            if !plan.has_channel(kind) {
                return Err(PlanRefusal::ChannelNeedsHobby { plan, kind }.into());
            }
            if self.store().reader().destinations_of(page.id)?.len() >= MAX_DESTINATIONS {
                return Err(PlanRefusal::DestinationsFull.into());
            }
            let mut batch = Batch::new();
            batch.expect(Expect::Page(page.id, Is::Present)).expect(Expect::Destination(id, Is::Absent));
            batch.expect(Expect::DestinationsBelow(page.id, MAX_DESTINATIONS));
            self.ask_mailbox(&page, is_counted, None, &mut made, &mut batch).await?;
            batch.write(made.clone());
            Ok((made, batch))
        })
        .await
        .inspect(|_| self.0.outgoing.notify_one())
    }

    /// Edits a destination. One that the service switched off is switched on again. A new mailbox gets a confirmation
    /// mail first; so does an unconfirmed one whose last mail is more than a day old.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`].
    pub async fn edit_destination(
        &self,
        caller: &Caller,
        page: PageId,
        id: DestinationId,
        edit: &DestinationEdit,
        once: &Once<'_, Destination>,
    ) -> Result<Done<Destination>> {
        let is_counted = &AtomicBool::new(false);
        self.change_on(caller, page, id.to_u128(), once, |page| async move {
            let before = self.destination_on(&page, id)?;
            let monitors = self.ids_on(&page).await?;
            let account = self.account_of(&page)?;
            let mut changed = {
                let refused = |address| self.refused(address);
                let around = Around { monitors: &monitors, owner: &account.email, refused: &refused };
                edit.settle(&before.value, &around, self.now())?
            };
            let mut batch = Batch::new();
            self.ask_mailbox(&page, is_counted, Some(&before.value), &mut changed, &mut batch).await?;
            Ok(replaced(&before, changed, batch, &account))
        })
        .await
        .inspect(|_| self.0.outgoing.notify_one())
    }

    /// Gives a webhook a new secret, replacing a pending one. It signs in addition to the active one until it is
    /// activated or a day has passed.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`] for a destination that is not a webhook.
    pub async fn rotate_secret(
        &self,
        caller: &Caller,
        page: PageId,
        id: DestinationId,
        once: &Once<'_, Destination>,
    ) -> Result<Done<Destination>> {
        self.change_on(caller, page, id.to_u128(), once, |page| async move {
            let before = self.destination_on(&page, id)?;
            let rotated = before.value.rotated(secret(rand::random()), self.now());
            let rotated = rotated.ok_or_else(|| Refusals::whole(NO_SECRET))?;
            Ok(replaced(&before, rotated, Batch::new(), &self.account_of(&page)?))
        })
        .await
    }

    /// Activates a webhook's pending secret: the previous one no longer signs. Without a pending secret nothing
    /// changes.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`] for a destination that is not a webhook.
    pub async fn activate_secret(
        &self,
        caller: &Caller,
        page: PageId,
        id: DestinationId,
        once: &Once<'_, Destination>,
    ) -> Result<Done<Destination>> {
        self.change_on(caller, page, id.to_u128(), once, |page| async move {
            let before = self.destination_on(&page, id)?;
            let activated = before.value.activated().ok_or_else(|| Refusals::whole(NO_SECRET))?;
            Ok(replaced(&before, activated, Batch::new(), &self.account_of(&page)?))
        })
        .await
    }

    /// Deletes a destination. Pending deliveries to it are dropped.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`].
    pub async fn delete_destination(
        &self,
        caller: &Caller,
        page: PageId,
        id: DestinationId,
        once: &Once<'_, ()>,
    ) -> Result<Done<()>> {
        self.change_on(caller, page, id.to_u128(), once, |page| async move {
            self.destination_on(&page, id)?;
            let mut batch = Batch::new();
            batch.expect(Expect::Destination(id, Is::Present)).write(Op::DeleteDestination(id));
            Ok(((), batch))
        })
        .await
    }

    /// Returns the class of an address that deliveries may not go to; `None` for an allowed address.
    pub(super) fn refused(&self, ip: IpAddr) -> Option<&'static str> {
        let allows_private = self.settings().allow_private;
        let class = address::refusal(ip).filter(|class| !(allows_private && class.is_own_network()))?;
        Some(class.word())
    }

    /// Returns the account that a page belongs to.
    pub(super) fn account_of(&self, page: &Page) -> Result<Account> {
        Ok(self.store().reader().account(page.account)?.ok_or(Error::NotFound)?.value)
    }

    pub(super) fn destination_on(&self, page: &Page, id: DestinationId) -> Result<Versioned<Destination>> {
        let destination = self.store().reader().destination(id)?;
        destination.filter(|destination| destination.value.page == page.id).ok_or(Error::NotFound)
    }
}

/// The destination as its owner sees it after a change, with the batch that writes it if it differs.
fn replaced(
    before: &Versioned<Destination>,
    after: Destination,
    mut batch: Batch,
    account: &Account,
) -> (Destination, Batch) {
    if after != before.value {
        batch.expect(Expect::Destination(after.id, Is::At(before.revision))).write(after.clone());
    }
    (after.within(account), batch)
}

/// Formats a secret (Standard Webhooks 1.0).
pub(super) fn secret(random: [u8; 32]) -> String {
    format!("whsec_{}", STANDARD.encode(random))
}
