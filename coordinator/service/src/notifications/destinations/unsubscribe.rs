//! The unsubscribe link in each alert mail, by which the mailbox's reader stops a page's alerts.
//!
//! The link's token is an HMAC over the destination and its mailbox, so nothing is stored, and a new mailbox of the
//! same destination has another link. A stopped destination must be confirmed again: saving it only sends a
//! confirmation mail.

use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::destination::{DeliveryHealth, Destination, DisableReason};
use parallax_core::id::{DeliveryId, DestinationId};
use parallax_core::link_token;
use parallax_core::page::{NO_ACCOUNT, Page};
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_notify::render;
use parallax_store::{Batch, Expect, Presence, VersionedValue};
use subtle::ConstantTimeEq;

use super::DestinationService;
use super::mailbox_confirmation::LinkedDestination;
use crate::audit::ChangeAuthor;
use crate::notifications::confirmation_requests::{record_request, request_key};
use crate::{ServiceError, ServiceResult};

/// Event name of the mail that notifies the owner.
const STOPPED: &str = "destination.stopped";

impl DestinationService {
    /// Returns the URL by which the reader of a destination's mailbox stops its alerts; `None` for the account's own
    /// mailbox, whose reader uses the page's settings.
    pub fn stop_url(&self, destination: &Destination) -> Option<String> {
        let mailbox = destination.mailbox()?;
        let page = self.context.store().reader().page(destination.page).ok()??.value;
        let owner = self.context.account_of(&page).ok()?.email;
        if owner.eq_ignore_ascii_case(mailbox) {
            return None;
        }
        let token = self.stop_token(destination.id, mailbox);
        let link = link_token::encode(&destination.id.to_string(), DestinationId::PREFIX, token);
        Some(format!("{}/stop-alerts?t={link}", self.context.page_url(&page)))
    }

    /// Returns the destination that a link in an alert belongs to.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an invalid link, or one of another mailbox.
    pub fn stoppable(&self, link: &str) -> ServiceResult<LinkedDestination> {
        let (destination, page) = match self.destination_by_stop_link(link) {
            Err(ServiceError::NotFound) => return self.deleted_by_stop_link(link),
            found => found?,
        };
        let mailbox = destination.value.mailbox().ok_or(ServiceError::NotFound)?.to_owned();
        Ok(LinkedDestination { page, mailbox, is_confirmed: destination.value.confirmation_sent_at().is_none() })
    }

    /// Stops the alerts to a mailbox at its reader's request, and notifies the page's owner. Idempotent.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] as for [`Self::stoppable`].
    pub async fn stop_alerts(&self, link: &str) -> ServiceResult<LinkedDestination> {
        // An invalid link takes no lock.
        self.stoppable(link)?;
        let (id, _) = link_token::decode::<DestinationId>(DestinationId::PREFIX, link).ok_or(ServiceError::NotFound)?;
        self.context
            .commit_change(id.to_u128(), || async move {
                let (VersionedValue { revision, value: destination }, page) = match self.destination_by_stop_link(link)
                {
                    Err(ServiceError::NotFound) => return self.deletion_without_undo(link),
                    found => found?,
                };
                let link_target = self.stoppable(link)?;
                if !link_target.is_confirmed {
                    return Ok((link_target, None));
                }
                let now = self.context.now();
                let name = request_key(&SubscriberAddress::Email(link_target.mailbox.clone()));
                let last = self.context.store().reader().stored_response(&name)?;
                let mut batch = Batch::new();
                batch
                    .expect(Expect::Destination(id, Presence::At(revision)))
                    .expect(Expect::Page(page.id, Presence::Present));
                // This mailbox gets no other confirmation mail on the same day.
                record_request(name, last.as_ref(), now, &mut batch);
                batch.write(self.stop_notice_mail(&page, &destination));
                let health =
                    DeliveryHealth { disabled: Some((now, DisableReason::Unconfirmed)), ..DeliveryHealth::default() };
                batch.write(Destination { health, ..destination });
                self.context.log_change(ChangeAuthor::visitor(page.account, None), &mut batch)?;
                Ok((LinkedDestination { is_confirmed: false, ..link_target }, Some(batch)))
            })
            .await
            .inspect(|_| self.context.deliveries_due.notify_one())
    }

    fn stop_notice_mail(&self, page: &Page, destination: &Destination) -> Delivery {
        let (now, why) = (self.context.now(), DisableReason::Unconfirmed);
        let mail = render::destination_switched_off(&destination.name, &page.name, why, now, page.timezone);
        let (id, to) = (DeliveryId::new(now, rand::random()), Recipient::Owner(page.account));
        Delivery { page: Some(page.id), ..Delivery::waiting(id, to, STOPPED, DeliveryMessage::Mail(mail), now) }
    }

    fn destination_by_stop_link(&self, link: &str) -> ServiceResult<(VersionedValue<Destination>, Page)> {
        let (id, token) =
            link_token::decode::<DestinationId>(DestinationId::PREFIX, link).ok_or(ServiceError::NotFound)?;
        let destination = self.context.store().reader().destination(id)?.ok_or(ServiceError::NotFound)?;
        let expected =
            destination.value.mailbox().map(|mailbox| self.stop_token(id, mailbox)).ok_or(ServiceError::NotFound)?;
        let page = self.context.store().reader().page(destination.value.page)?.ok_or(ServiceError::NotFound)?.value;
        if bool::from(expected.ct_eq(&token)) && page.account != NO_ACCOUNT {
            Ok((destination, page))
        } else {
            Err(ServiceError::NotFound)
        }
    }

    pub(super) fn stop_token(&self, id: DestinationId, mailbox: &str) -> [u8; 16] {
        self.context.mac_prefix(&[b"stop alerts", &id.to_u128().to_be_bytes(), mailbox.as_bytes()])
    }
}
