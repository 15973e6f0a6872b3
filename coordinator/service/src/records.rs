//! Look-ups, events and addresses that several services share.

use std::collections::BTreeSet;
use std::net::IpAddr;

use parallax_core::account::Account;
use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient, visitor_mailbox_key};
use parallax_core::destination::Destination;
use parallax_core::event::{EditKind, Event, EventKind};
use parallax_core::id::{DeliveryId, DestinationId, IncidentId, MonitorId, PageId};
use parallax_core::incident::{Incident, IncidentEvent};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::plan::PlanLimits;
use parallax_core::time::Timestamp;
use parallax_dial::address;
use parallax_store::{Batch, Op, StoredResponse, VersionedValue};
use ring::hmac;

use super::context::ServiceContext;
use super::hosts::hostname::url_host;
use super::monitors::history::AgentsByNumber;
use super::{Caller, ServiceError, ServiceResult};

impl ServiceContext {
    /// Returns a page that the caller can access.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for any other page.
    pub(super) fn page(&self, caller: &Caller, id: PageId) -> ServiceResult<Page> {
        self.accessible_page(caller, id).map(|page| page.value)
    }

    pub(super) fn accessible_page(&self, caller: &Caller, id: PageId) -> ServiceResult<VersionedValue<Page>> {
        let page = self.store().reader().page(id)?;
        page.filter(|page| caller.reaches(&page.value)).ok_or(ServiceError::NotFound)
    }

    pub(super) fn monitor_on(&self, page: &Page, id: MonitorId) -> ServiceResult<VersionedValue<Monitor>> {
        let monitor = self.store().reader().monitor(id)?;
        monitor.filter(|monitor| monitor.value.page == page.id).ok_or(ServiceError::NotFound)
    }

    pub(super) fn incident_on(&self, page: &Page, id: IncidentId) -> ServiceResult<VersionedValue<Incident>> {
        let incident = self.store().reader().incident(id)?;
        incident.filter(|incident| incident.value.page == page.id).ok_or(ServiceError::NotFound)
    }

    pub(super) fn destination_on(&self, page: &Page, id: DestinationId) -> ServiceResult<VersionedValue<Destination>> {
        let destination = self.store().reader().destination(id)?;
        destination.filter(|destination| destination.value.page == page.id).ok_or(ServiceError::NotFound)
    }

    /// Returns the account that a page belongs to.
    pub(super) fn account_of(&self, page: &Page) -> ServiceResult<Account> {
        Ok(self.store().reader().account(page.account)?.ok_or(ServiceError::NotFound)?.value)
    }

    /// Returns the ids of a page's monitors.
    pub(super) async fn monitor_ids(&self, page: &Page) -> ServiceResult<BTreeSet<MonitorId>> {
        let id = page.id;
        let monitors = self.store().read(move |store| store.monitors_of(id)).await?;
        Ok(monitors.into_iter().map(|monitor| monitor.value.id).collect())
    }

    /// Returns all agents by number.
    pub(super) async fn agents_by_number(&self) -> ServiceResult<AgentsByNumber> {
        let agents = self.store().read(|store| store.agents()).await?;
        Ok(agents.into_iter().map(|agent| (agent.value.vantage_no, agent.value)).collect())
    }

    pub(super) fn page_event(&self, id: PageId, edited: EditKind) -> Event {
        Event { at: self.now(), page: Some(id), monitor: None, kind: EventKind::PageEdited(edited) }
    }

    pub(super) fn monitor_event(&self, page: PageId, monitor: MonitorId, edited: EditKind) -> Event {
        self.event_of(page, monitor, EventKind::MonitorEdited(edited))
    }

    /// Returns an event of a monitor, as of now.
    pub(super) fn event_of(&self, page: PageId, monitor: MonitorId, kind: EventKind) -> Event {
        Event { at: self.now(), page: Some(page), monitor: Some(monitor), kind }
    }

    pub(super) fn incident_event(&self, page: PageId, change: IncidentEvent) -> Event {
        Event { at: self.now(), page: Some(page), monitor: None, kind: EventKind::Incident(change) }
    }

    /// Returns the public URL of the page.
    pub(super) fn page_url(&self, page: &Page) -> String {
        let settings = self.settings();
        page.address(&settings.base_url, settings.root_domain.as_deref())
    }

    /// Returns the host of the base URL in normalized form.
    pub(super) fn base_host(&self) -> Option<String> {
        url_host(self.base_url())
    }

    /// Returns the limits of each plan, as configured by the operator.
    pub(super) fn limits(&self) -> &PlanLimits {
        &self.settings().limits
    }

    /// Returns the class of an address that deliveries may not go to; `None` for an allowed address.
    pub(super) fn blocked_address_class(&self, ip: IpAddr) -> Option<&'static str> {
        let allows_private = self.settings().allow_private;
        let class = address::blocked_class(ip).filter(|class| !(allows_private && class.is_own_network()))?;
        Some(class.name())
    }

    /// Adds a mail to a batch for one mailbox that is no subscriber's, about a page or none. It is sent until that time,
    /// when the address is forgotten.
    pub(super) fn mail_visitor(
        &self,
        (page, event): (Option<PageId>, &str),
        email: &str,
        mail: DeliveryMessage,
        expires_at: Timestamp,
        batch: &mut Batch,
    ) {
        let now = self.now();
        let id = DeliveryId::new(now, rand::random());
        let receiver = StoredResponse { fingerprint: [0; 32], response: email.as_bytes().to_vec(), expires_at };
        batch
            .write(Op::PutStoredResponse(visitor_mailbox_key(id), receiver))
            .write(Delivery { page, ..Delivery::waiting(id, Recipient::Visitor(id), event, mail, now) });
    }

    /// Computes the HMAC over these parts with the installation's key.
    pub(super) fn mac(&self, parts: &[&[u8]]) -> hmac::Tag {
        self.settings().access_token_key.mac(parts)
    }

    /// Returns the first `N` bytes of such an HMAC.
    pub(super) fn mac_prefix<const N: usize>(&self, parts: &[&[u8]]) -> [u8; N] {
        // HMAC-SHA-256 yields 32 bytes.
        const { assert!(N <= 32) };
        self.mac(parts).as_ref().first_chunk().copied().unwrap_or([0; N])
    }
}
