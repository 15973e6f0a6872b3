//! The unsubscribe link in each alert mail, by which the mailbox's reader stops a page's alerts.
//!
//! The link's token is an HMAC over the destination and its mailbox, so nothing is stored, and a new mailbox of the
//! same destination has another link. A stopped destination must be confirmed again: saving it only sends a
//! confirmation mail.

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::destination::{Destination, Health, OffReason};
use parallax_core::id::{DeliveryId, DestinationId};
use parallax_core::link;
use parallax_core::page::{NOBODY, Page};
use parallax_core::subscriber::ASKED_AGAIN;
use parallax_core::subscriber::ask::Address;
use subtle::ConstantTimeEq;

use super::confirm::Linked;
use crate::letters;
use crate::service::subscribers::asked_name;
use crate::service::{Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op, Remembered, Versioned};

/// Event name of the mail that notifies the owner.
const STOPPED: &str = "destination.stopped";

impl Service {
    /// Returns the URL by which the reader of a destination's mailbox stops its alerts; `None` for the account's own
    /// mailbox, whose reader uses the page's settings.
    pub fn stop_url(&self, destination: &Destination) -> Option<String> {
        let mailbox = destination.mailbox()?;
        let page = self.store().reader().page(destination.page).ok()??.value;
        let owner = self.account_of(&page).ok()?.email;
        if owner.eq_ignore_ascii_case(mailbox) {
            return None;
        }
        let token = self.stop_token(destination.id, mailbox);
        let link = link::write(&destination.id.to_string(), DestinationId::PREFIX, token);
        Some(format!("{}/stop-alerts?t={link}", self.page_url(&page)))
    }

    /// Returns the destination that a link in an alert belongs to.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an invalid link, or one of another mailbox.
    pub fn stoppable_destination(&self, link: &str) -> Result<Linked> {
        let (destination, page) = self.by_stop_link(link)?;
        let mailbox = destination.value.mailbox().ok_or(Error::NotFound)?.to_owned();
        Ok(Linked { page, mailbox, is_confirmed: destination.value.asked_at().is_none() })
    }

    /// Stops the alerts to a mailbox at its reader's request, and notifies the page's owner. Idempotent.
    ///
    /// # Errors
    /// [`Error::NotFound`] as for [`Self::stoppable_destination`].
    pub async fn stop_alerts(&self, link: &str) -> Result<Linked> {
        let id = self.by_stop_link(link)?.0.value.id;
        self.change(id.to_u128(), || async move {
            let (Versioned { revision, value: destination }, page) = self.by_stop_link(link)?;
            let linked = self.stoppable_destination(link)?;
            if !linked.is_confirmed {
                return Ok((linked, None));
            }
            let now = self.now();
            let name = asked_name(&Address::Email(linked.mailbox.clone()));
            let last = self.store().reader().remembered(&name)?;
            let mut batch = Batch::new();
            batch
                .expect(Expect::Destination(id, Is::At(revision)))
                .expect(Expect::Page(page.id, Is::Present));
            batch.expect(Expect::Remembered(
                name.clone(),
                last.map_or(Is::Absent, |last| Is::At(last.revision)),
            ));
            // This mailbox gets no other confirmation mail on the same day.
            let asked =
                Remembered { fingerprint: [0; 32], answer: Vec::new(), expires_at: now + ASKED_AGAIN };
            batch.write(Op::Remember(name, asked)).write(self.told_of_stop(&page, &destination));
            let health = Health { off: Some((now, OffReason::Unconfirmed)), ..Health::default() };
            batch.write(Destination { health, ..destination });
            Ok((Linked { is_confirmed: false, ..linked }, Some(batch)))
        })
        .await
        .inspect(|_| self.0.outgoing.notify_one())
    }

    fn told_of_stop(&self, page: &Page, destination: &Destination) -> Delivery {
        let (now, why) = (self.now(), OffReason::Unconfirmed);
        Delivery {
            id: DeliveryId::new(now, rand::random()),
            page: Some(page.id),
            to: Recipient::Owner(page.account),
            event: STOPPED.to_owned(),
            monitor: None,
            incident: None,
            seq: 0,
            letter: Letter::Mail(letters::switched_off(
                &destination.name,
                &page.name,
                why,
                now,
                page.timezone,
            )),
            once: false,
            created_at: now,
            stage: Stage::Waiting(now),
            tries: Default::default(),
            log: Vec::new(),
            began: None,
        }
    }

    fn by_stop_link(&self, link: &str) -> Result<(Versioned<Destination>, Page)> {
        let (id, token) = link::read::<DestinationId>(DestinationId::PREFIX, link).ok_or(Error::NotFound)?;
        let found = self.store().reader().destination(id)?.ok_or(Error::NotFound)?;
        let good =
            found.value.mailbox().map(|mailbox| self.stop_token(id, mailbox)).ok_or(Error::NotFound)?;
        let page = self.store().reader().page(found.value.page)?.ok_or(Error::NotFound)?.value;
        if bool::from(good.ct_eq(&token)) && page.account != NOBODY {
            Ok((found, page))
        } else {
            Err(Error::NotFound)
        }
    }

    fn stop_token(&self, id: DestinationId, mailbox: &str) -> [u8; 16] {
        let sealed = self.sealed(&[b"stop alerts", &id.to_u128().to_be_bytes(), mailbox.as_bytes()]);
        let mut token = [0; 16];
        token.iter_mut().zip(sealed.as_ref()).for_each(|(byte, sealed)| *byte = *sealed);
        token
    }
}
