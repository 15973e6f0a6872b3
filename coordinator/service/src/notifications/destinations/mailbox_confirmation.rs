//! Confirmation of destination mailboxes: each but the account's own gets a mail first, and its reader confirms
//! through a form.
//!
//! The creator of a destination can cause at most one such mail a day to a mailbox, over all pages and forms, and
//! never learns the link: the mail's content is shown to nobody, and the store has only the link's hash.

use std::sync::atomic::{AtomicBool, Ordering};

use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::destination::{DeliveryHealth, Destination};
use parallax_core::id::{DeliveryId, DestinationId};
use parallax_core::link_token;
use parallax_core::page::{NO_ACCOUNT, Page};
use parallax_core::subscriber::confirmation_limit::ConfirmationOrigin;
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::subscriber::{CONFIRMATION_INTERVAL, UNCONFIRMED_RETENTION};
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_notify::render;
use parallax_store::{Batch, Expect, Op, Presence, StoredResponse, VersionedValue};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::DestinationService;
use crate::audit::ChangeAuthor;
use crate::notifications::confirmation_limits::UnconfirmedAddress;
use crate::notifications::confirmation_requests::{record_request, request_key};
use crate::{ServiceError, ServiceResult};

/// Event name of the confirmation mail.
const CONFIRMATION: &str = "destination.confirmation";

/// A destination found by the link sent to its mailbox.
#[derive(Debug, Clone)]
pub struct LinkedDestination {
    /// Its page.
    pub page: Page,
    /// Its mailbox.
    pub mailbox: String,
    /// True if its reader has confirmed.
    pub is_confirmed: bool,
}

impl DestinationService {
    /// Returns the destination that a link belongs to, as it may be shown to the bearer of the link. The page may be
    /// hidden from visitors: its owner chooses who gets its alerts.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an invalid or expired link.
    pub fn linked_destination(&self, link: &str) -> ServiceResult<LinkedDestination> {
        let destination = self.destination_by_link(link)?.value;
        let page = self.context.store().reader().page(destination.page)?.ok_or(ServiceError::NotFound)?.value;
        let mailbox = destination.mailbox().ok_or(ServiceError::NotFound)?.to_owned();
        if page.account == NO_ACCOUNT {
            return Err(ServiceError::NotFound);
        }
        Ok(LinkedDestination { page, mailbox, is_confirmed: destination.confirmation_sent_at().is_none() })
    }

    /// Confirms that a mailbox's reader wants the alerts. Idempotent.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] as for [`Self::linked_destination`].
    pub async fn confirm(&self, link: &str) -> ServiceResult<LinkedDestination> {
        let id = self.destination_by_link(link)?.value.id;
        let confirmed = self.context.commit_change(id.to_u128(), || async move {
            let VersionedValue { revision, value: destination } = self.destination_by_link(link)?;
            let linked_destination = self.linked_destination(link)?;
            if linked_destination.is_confirmed {
                return Ok((linked_destination, None));
            }
            let mut batch = Batch::new();
            self.context
                .allow_next_request(&SubscriberAddress::Email(linked_destination.mailbox.clone()), &mut batch)?;
            batch.expect(Expect::Page(destination.page, Presence::Present));
            batch.expect(Expect::Destination(id, Presence::At(revision)));
            batch.write(Destination { health: DeliveryHealth::default(), ..destination });
            let author = ChangeAuthor::visitor(linked_destination.page.account, None);
            self.context.log_change(author, &mut batch)?;
            Ok((LinkedDestination { is_confirmed: true, ..linked_destination }, Some(batch)))
        });
        let linked_destination = confirmed.await?;
        let pending = UnconfirmedAddress::Destination(id, linked_destination.mailbox.clone());
        self.limits.release_unconfirmed(linked_destination.page.account, &pending);
        Ok(linked_destination)
    }

    /// Adds a confirmation mail to the batch if the destination's mailbox needs one; `before` is the stored
    /// destination.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] if the mailbox is new and got such a mail within the last day, for any page or
    /// subscription; [`ServiceError::PageConfirmationLimit`], [`ServiceError::AccountConfirmationLimit`] and
    /// [`ServiceError::PlanLimit`] as for a subscriber that the owner adds.
    pub(super) async fn request_confirmation(
        &self,
        page: &Page,
        is_counted: &AtomicBool,
        before: Option<&Destination>,
        destination: &mut Destination,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        let Some(asked_at) = destination.confirmation_sent_at() else { return Ok(()) };
        let Some(mailbox) = destination.mailbox().map(str::to_owned) else { return Ok(()) };
        let now = self.context.now();
        let is_unchanged = before.is_some_and(|it| it.mailbox() == Some(&mailbox));
        if is_unchanged && now.since(asked_at) < CONFIRMATION_INTERVAL {
            return Ok(());
        }
        let name = request_key(&SubscriberAddress::Email(mailbox.clone()));
        let last = self.context.store().reader().stored_response(&name)?;
        if last.as_ref().is_some_and(|last| last.value.expires_at > now) {
            let rule = "was sent a confirmation mail within the last day: its reader must confirm";
            return if is_unchanged { Ok(()) } else { Err(ValidationErrors::single("to", rule).into()) };
        }
        // Counted once per request, however often the change is retried.
        if !is_counted.swap(true, Ordering::Relaxed) {
            self.limits.admit_confirmation(page, ConfirmationOrigin::Owner).await?;
            self.limits
                .reserve_unconfirmed(page.account, UnconfirmedAddress::Destination(destination.id, mailbox.clone()))
                .await?;
        }
        destination.health.disabled = destination.health.disabled.map(|(_, reason)| (now, reason));
        record_request(name, last.as_ref(), now, batch);
        let token: [u8; 16] = rand::random();
        let link = StoredResponse {
            fingerprint: link_fingerprint(token, &mailbox),
            response: Vec::new(),
            expires_at: now + UNCONFIRMED_RETENTION,
        };
        batch.write(Op::PutStoredResponse(link_key(destination.id), link));
        batch.write(self.confirmation_mail(page, destination, token, now));
        Ok(())
    }

    /// Builds the confirmation mail. Its time is also the destination's, so that a mail superseded by a newer one is
    /// not sent.
    fn confirmation_mail(&self, page: &Page, destination: &Destination, token: [u8; 16], now: Timestamp) -> Delivery {
        let url = self.context.page_url(page);
        let link = link_token::encode(&destination.id.to_string(), DestinationId::PREFIX, token);
        let confirm = format!("{url}/confirm-alerts?t={link}");
        let mail = DeliveryMessage::Mail(render::alerts_confirmation(page, &url, &confirm));
        let (id, to) = (DeliveryId::new(now, rand::random()), Recipient::UnconfirmedDestination(destination.id));
        Delivery { page: Some(page.id), ..Delivery::waiting(id, to, CONFIRMATION, mail, now) }
    }

    fn destination_by_link(&self, link: &str) -> ServiceResult<VersionedValue<Destination>> {
        let (id, token) =
            link_token::decode::<DestinationId>(DestinationId::PREFIX, link).ok_or(ServiceError::NotFound)?;
        let reader = self.context.store().reader();
        let stored = reader.stored_response(&link_key(id))?.filter(|it| it.value.expires_at > self.context.now());
        let destination = reader.destination(id)?.ok_or(ServiceError::NotFound)?;
        let mailbox = destination.value.mailbox().ok_or(ServiceError::NotFound)?;
        let is_valid = stored.is_some_and(|it| {
            bool::from(it.value.fingerprint.as_slice().ct_eq(link_fingerprint(token, mailbox).as_slice()))
        });
        if is_valid { Ok(destination) } else { Err(ServiceError::NotFound) }
    }
}

/// The key under which the valid link of a destination is stored.
fn link_key(id: DestinationId) -> String {
    format!("confirm/{id}")
}

/// The stored fingerprint of a link, valid for that mailbox only.
fn link_fingerprint(token: [u8; 16], mailbox: &str) -> [u8; 32] {
    Sha256::new().chain_update(token).chain_update(mailbox.as_bytes()).finalize().into()
}
