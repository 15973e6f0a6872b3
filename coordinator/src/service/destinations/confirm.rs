//! Mailboxes that are to get a page's alerts: each but the account's own is asked first, and its reader says so by a form.
//!
//! Whoever makes a destination has a mailbox written to once a day at most, whatever page or form asks for it, and learns
//! nothing of the link: what was sent is shown to nobody, and the store has the link's hash alone.

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

/// What a mailbox is asked by.
const CONFIRMATION: &str = "destination.confirmation";

/// A destination whose reader has a link to it.
#[derive(Debug, Clone)]
pub struct Linked {
    /// Its page.
    pub page: Page,
    /// Its mailbox.
    pub mailbox: String,
    /// Whether its reader has said that he wants alerts.
    pub is_confirmed: bool,
}

impl Service {
    /// The destination that a link was made for, as it may be shown to whoever has the link. The page may hide from
    /// visitors: its alerts go to those whom its owner names.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a link that is none, or came too late.
    pub fn linked_destination(&self, link: &str) -> Result<Linked> {
        let destination = self.by_link(link)?.value;
        let page = self.store().reader().page(destination.page)?.ok_or(Error::NotFound)?.value;
        let mailbox = destination.mailbox().ok_or(Error::NotFound)?.to_owned();
        if page.account == NOBODY {
            return Err(Error::NotFound);
        }
        Ok(Linked { page, mailbox, is_confirmed: destination.asked_at().is_none() })
    }

    /// Confirms that a mailbox's reader wants the alerts. Doing so again changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] as [`Self::linked_destination`] does.
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

    /// Adds to the batch that the mailbox of a destination is asked, where it is to be: `before` is what stood of it.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it is new and was asked within the day, for whatever page or subscription;
    /// [`Error::PageAsks`], [`Error::AccountAsks`] and [`Error::PlanLimit`] as for a subscriber that the owner adds.
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
            let rule = "was asked to confirm within the last day; only its reader can go on";
            return if is_known { Ok(()) } else { Err(Refusals::one("to", rule).into()) };
        }
        // Once a request, however often it is decided again.
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

    /// The mail that asks at that moment, which is the destination's too: one that was asked since is not sent another's.
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
            // The moment that the destination has of it: one that was asked anew since is not sent.
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

/// The name under which it is remembered which link to a destination is good.
fn link_name(id: DestinationId) -> String {
    format!("confirm/{id}")
}

/// What is kept of a link: good for that mailbox alone.
fn fingerprint(token: [u8; 16], mailbox: &str) -> [u8; 32] {
    Sha256::new().chain_update(token).chain_update(mailbox.as_bytes()).finalize().into()
}
