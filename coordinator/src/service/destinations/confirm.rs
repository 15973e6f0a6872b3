//! Confirmation of destination mailboxes: each but the account's own gets a mail first, and its reader confirms
//! through a form.
//!
//! The creator of a destination can cause at most one such mail a day to a mailbox, over all pages and forms, and
//! never learns the link: the mail's content is shown to nobody, and the store has only the link's hash.

use std::sync::atomic::{AtomicBool, Ordering};

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::destination::{Destination, Health};
use parallax_core::id::{DeliveryId, DestinationId};
use parallax_core::link;
use parallax_core::page::{NOBODY, Page};
use parallax_core::refusal::Refusals;
use parallax_core::subscriber::ask::Address;
use parallax_core::subscriber::asking::Asker;
use parallax_core::subscriber::{ASKED_AGAIN, UNCONFIRMED};
use parallax_core::time::Timestamp;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::letters;
use crate::service::asking::Pending;
use crate::service::subscribers::asked_name;
use crate::service::{Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op, Remembered, Versioned};

/// Event name of the confirmation mail.
const CONFIRMATION: &str = "destination.confirmation";

/// A destination found by the link sent to its mailbox.
#[derive(Debug, Clone)]
pub struct Linked {
    /// Its page.
    pub page: Page,
    /// Its mailbox.
    pub mailbox: String,
    /// True if its reader has confirmed.
    pub is_confirmed: bool,
}

impl Service {
    /// Returns the destination that a link belongs to, as it may be shown to the bearer of the link. The page may be
    /// hidden from visitors: its owner chooses who gets its alerts.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an invalid or expired link.
    pub fn linked_destination(&self, link: &str) -> Result<Linked> {
        let destination = self.by_link(link)?.value;
        let page = self.store().reader().page(destination.page)?.ok_or(Error::NotFound)?.value;
        let mailbox = destination.mailbox().ok_or(Error::NotFound)?.to_owned();
        if page.account == NOBODY {
            return Err(Error::NotFound);
        }
        Ok(Linked { page, mailbox, is_confirmed: destination.asked_at().is_none() })
    }

    /// Confirms that a mailbox's reader wants the alerts. Idempotent.
    ///
    /// # Errors
    /// [`Error::NotFound`] as for [`Self::linked_destination`].
    pub async fn confirm_destination(&self, link: &str) -> Result<Linked> {
        let id = self.by_link(link)?.value.id;
        let confirmed = self.change(id.to_u128(), || async move {
            let Versioned { revision, value: destination } = self.by_link(link)?;
            let linked = self.linked_destination(link)?;
            if linked.is_confirmed {
                return Ok((linked, None));
            }
            let mut batch = Batch::new();
            self.forget_asked(&Address::Email(linked.mailbox.clone()), &mut batch)?;
            batch.expect(Expect::Page(destination.page, Is::Present));
            batch.expect(Expect::Destination(id, Is::At(revision)));
            batch.write(Destination { health: Health::default(), ..destination });
            Ok((Linked { is_confirmed: true, ..linked }, Some(batch)))
        });
        let linked = confirmed.await?;
        let pending = Pending::Destination(id, linked.mailbox.clone());
        self.release_unconfirmed(linked.page.account, &pending);
        Ok(linked)
    }

    /// Adds a confirmation mail to the batch if the destination's mailbox needs one; `before` is the stored
    /// destination.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the mailbox is new and got such a mail within the last day, for any page or
    /// subscription; [`Error::PageAsks`], [`Error::AccountAsks`] and [`Error::PlanLimit`] as for a subscriber that
    /// the owner adds.
    pub(super) async fn ask_mailbox(
        &self,
        page: &Page,
        is_counted: &AtomicBool,
        before: Option<&Destination>,
        destination: &mut Destination,
        batch: &mut Batch,
    ) -> Result<()> {
        let Some(asked_at) = destination.asked_at() else { return Ok(()) };
        let Some(mailbox) = destination.mailbox().map(str::to_owned) else { return Ok(()) };
        let now = self.now();
        let is_known = before.is_some_and(|it| it.mailbox() == Some(&mailbox));
        if is_known && now.since(asked_at) < ASKED_AGAIN {
            return Ok(());
        }
        let name = asked_name(&Address::Email(mailbox.clone()));
        let last = self.store().reader().remembered(&name)?;
        if last.as_ref().is_some_and(|last| last.value.expires_at > now) {
            let rule = "was sent a confirmation mail within the last day: its reader must confirm";
            return if is_known { Ok(()) } else { Err(Refusals::one("to", rule).into()) };
        }
        // Counted once per request, however often the change is retried.
        if !is_counted.swap(true, Ordering::Relaxed) {
            self.admit_asking(page, Asker::Owner).await?;
            self.hold_unconfirmed(page.account, Pending::Destination(destination.id, mailbox.clone()))
                .await?;
        }
        destination.health.off = destination.health.off.map(|(_, reason)| (now, reason));
        batch.expect(Expect::Remembered(name.clone(), last.map_or(Is::Absent, |last| Is::At(last.revision))));
        let asked = Remembered { fingerprint: [0; 32], answer: Vec::new(), expires_at: now + ASKED_AGAIN };
        batch.write(Op::ForgetExpired(now)).write(Op::Remember(name, asked));
        let token: [u8; 16] = rand::random();
        let good = Remembered {
            fingerprint: fingerprint(token, &mailbox),
            answer: Vec::new(),
            expires_at: now + UNCONFIRMED,
        };
        batch.write(Op::Remember(link_name(destination.id), good));
        batch.write(self.asking(page, destination, token, now));
        Ok(())
    }

    /// Builds the confirmation mail. Its time is also the destination's, so that a mail superseded by a newer one is
    /// not sent.
    fn asking(&self, page: &Page, destination: &Destination, token: [u8; 16], now: Timestamp) -> Delivery {
        let url = self.page_url(page);
        let link = link::write(&destination.id.to_string(), DestinationId::PREFIX, token);
        let confirm = format!("{url}/confirm-alerts?t={link}");
        Delivery {
            id: DeliveryId::new(now, rand::random()),
            page: Some(page.id),
            to: Recipient::Asked(destination.id),
            event: CONFIRMATION.to_owned(),
            monitor: None,
            incident: None,
            seq: 0,
            letter: Letter::Mail(letters::alerts_confirmation(page, &url, &confirm)),
            once: false,
            // The time stored in the destination: a mail superseded by a newer request is not sent.
            created_at: now,
            stage: Stage::Waiting(now),
            tries: Default::default(),
            log: Vec::new(),
            began: None,
        }
    }

    fn by_link(&self, link: &str) -> Result<Versioned<Destination>> {
        let (id, token) = link::read::<DestinationId>(DestinationId::PREFIX, link).ok_or(Error::NotFound)?;
        let reader = self.store().reader();
        let good = reader.remembered(&link_name(id))?.filter(|it| it.value.expires_at > self.now());
        let found = reader.destination(id)?.ok_or(Error::NotFound)?;
        let mailbox = found.value.mailbox().ok_or(Error::NotFound)?;
        let is_good = good.is_some_and(|it| {
            bool::from(it.value.fingerprint.as_slice().ct_eq(fingerprint(token, mailbox).as_slice()))
        });
        if is_good { Ok(found) } else { Err(Error::NotFound) }
    }
}

/// The key under which the valid link of a destination is stored.
fn link_name(id: DestinationId) -> String {
    format!("confirm/{id}")
}

/// The stored fingerprint of a link, valid for that mailbox only.
fn fingerprint(token: [u8; 16], mailbox: &str) -> [u8; 32] {
    Sha256::new().chain_update(token).chain_update(mailbox.as_bytes()).finalize().into()
}
