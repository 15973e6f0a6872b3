//! Records of the test world that no call of the service writes or returns: deliveries, subscribers, stored incidents.

use parallax_core::alert_settings::{AnnouncedOutage, AnnouncedOutages};
use parallax_core::delivery::{AttemptOutcome, Delivery, DeliveryAttempt, DeliveryMessage, Recipient};
use parallax_core::id::{IncidentId, MonitorId, PageId, PersonId};
use parallax_core::incident::Incident;
use parallax_core::page::Page;
use parallax_core::subscriber::request::SubscriptionRequest;
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_store::{Batch, Op};

use super::World;

impl World {
    /// Changes an incident directly in the store.
    pub async fn change_incident(&self, id: IncidentId, change: impl FnOnce(&mut Incident)) {
        let mut incident = self.service.context.store().reader().incident(id).unwrap().unwrap().value;
        change(&mut incident);
        let mut batch = Batch::new();
        batch.write(incident);
        self.service.context.store().commit(batch).await.unwrap();
    }

    /// Makes an incident of a page the automatic one of announced outages of those monitors.
    pub async fn open_automatically(&self, page: PageId, id: IncidentId, monitors: &[MonitorId]) {
        self.change_incident(id, |incident| incident.automatic = true).await;
        let since = self.service.now();
        let outage = |monitor: &MonitorId| {
            (*monitor, AnnouncedOutage { since, reason: None, down_from: None, incident: Some(id) })
        };
        let down = monitors.iter().map(outage).collect();
        let outages = Box::new(AnnouncedOutages { down, ..AnnouncedOutages::default() });
        self.service
            .context
            .store()
            .commit(Batch::new().write(Op::PutAnnouncedOutages(page, outages)).clone())
            .await
            .unwrap();
    }

    /// Removes a person from the owner's account.
    pub async fn remove_member(&self, person: PersonId) {
        let mut batch = Batch::new();
        batch.write(Op::DeleteAccountMember(self.owner.id, person));
        self.service.context.store().commit(batch).await.unwrap();
    }

    /// A page's subscribers, confirmed or not.
    pub fn subscribers(&self, page: &Page) -> Vec<Subscriber> {
        let subscribers = self.service.context.store().reader().subscribers_of(page.id, None, 100).unwrap();
        subscribers.into_iter().map(|it| it.value).collect()
    }

    /// Subscribes an address to the shop.
    pub async fn subscribed(&self, address: &str) -> Subscriber {
        let request = SubscriptionRequest { email: Some(address.to_owned()), ..SubscriptionRequest::default() };
        self.service.subscribers.subscribe(&self.shop, &request).await.unwrap();
        let subscribers = self.subscribers(&self.shop).into_iter();
        let has_address = |it: &Subscriber| matches!(&it.contact, Contact::Email(email) if email == address);
        let link = subscribers.rev().find(has_address).unwrap().link_token();
        self.service.subscribers.confirm(&self.shop, &link, None).await.unwrap()
    }

    /// Confirmation mails to mailboxes of the shop's destinations, newest first.
    pub(crate) fn mailbox_confirmation_requests(&self) -> Vec<Delivery> {
        let deliveries = self.service.context.store().reader().deliveries_of(Some(self.shop.id), None, 100).unwrap();
        let is_request = |it: &Delivery| matches!(it.to, Recipient::UnconfirmedDestination(_));
        deliveries.into_iter().map(|it| it.value).filter(is_request).collect()
    }

    /// The link in the newest of them.
    pub fn mailbox_link(&self) -> String {
        let DeliveryMessage::Mail(mail) = self.mailbox_confirmation_requests().remove(0).message else {
            panic!("a mailbox gets mails")
        };
        let (_, link) = mail.text.split_once("/confirm-alerts?t=").unwrap();
        link.split_whitespace().next().unwrap().to_owned()
    }

    /// Accepts every delivery, as a working receiver would.
    pub fn receive(&self) {
        self.receive_with("taken");
    }

    /// Accepts every delivery with that answer.
    pub fn receive_with(&self, response: &'static str) {
        let service = self.service.clone();
        tokio::spawn(async move {
            let outgoing = service.deliveries_due();
            loop {
                outgoing.notified().await;
                for waiting in service.context.store().reader().waiting_deliveries().unwrap() {
                    let stored = service.context.store().reader().delivery(waiting.id).unwrap().unwrap();
                    let (mut delivery, now) = (stored.value, service.now());
                    let attempt = DeliveryAttempt {
                        at: now,
                        duration_ms: 3,
                        status: Some(204),
                        error: None,
                        response: response.to_owned(),
                    };
                    delivery.record_attempt(attempt, AttemptOutcome::Accepted, now, 0.0);
                    let mut batch = Batch::new();
                    batch.write(delivery);
                    service.context.store().commit(batch).await.unwrap();
                }
            }
        });
    }

    /// The shop's deliveries of that event, oldest first.
    pub fn sent(&self, event: &str) -> Vec<Delivery> {
        self.deliveries_of_event(Some(self.shop.id), event)
    }

    /// Deliveries without a page of that event, oldest first.
    pub fn sent_of_no_page(&self, event: &str) -> Vec<Delivery> {
        self.deliveries_of_event(None, event)
    }

    fn deliveries_of_event(&self, page: Option<PageId>, event: &str) -> Vec<Delivery> {
        let deliveries = self.service.context.store().reader().deliveries_of(page, None, 100).unwrap();
        let mut deliveries: Vec<_> = deliveries.into_iter().map(|it| it.value).filter(|it| it.event == event).collect();
        deliveries.sort_by_key(|it| it.id);
        deliveries
    }
}
