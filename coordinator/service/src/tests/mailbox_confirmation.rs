//! Mailboxes of destinations: each but the account's own gets a confirmation mail with a link that only its reader
//! sees.

use parallax_core::audit::AuditActor;
use parallax_core::delivery::{Delivery, DeliveryMessage};
use parallax_core::destination::Destination;
use parallax_core::destination::edit::DestinationEdit;
use parallax_core::subscriber::request::SubscriptionRequest;

use super::*;

impl World {
    async fn create_mailbox(&self, caller: &Caller, address: &str) -> ServiceResult<Destination> {
        let edit = DestinationEdit {
            name: PatchField::Value("Ops".to_owned()),
            kind: PatchField::Value("email".to_owned()),
            ..to(address)
        };
        fresh(self.service.destinations.create(caller, self.shop.id, &edit, &each_time()).await)
    }

    async fn save(&self, caller: &Caller, it: &Destination, edit: &DestinationEdit) -> ServiceResult<Destination> {
        fresh(self.service.destinations.edit(caller, self.shop.id, it.id, edit, &each_time()).await)
    }
}

fn to(address: &str) -> DestinationEdit {
    DestinationEdit { to: PatchField::Value(address.to_owned()), ..DestinationEdit::default() }
}

fn fresh(outcome: ServiceResult<RequestOutcome<Destination>>) -> ServiceResult<Destination> {
    match outcome? {
        RequestOutcome::Fresh(it) => Ok(it),
        RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => panic!("nothing was sent twice"),
    }
}

const LATELY: &str = "to was sent a confirmation mail within the last day: its reader must confirm";

#[tokio::test]
async fn a_mailbox_gets_no_alerts_before_its_owner_confirms_by_link() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let service = &world.service;
    let own_destination = world.create_mailbox(&caller, "Owner@example.com").await.unwrap();
    assert_eq!((own_destination.confirmation_sent_at(), world.mailbox_confirmation_requests().len()), (None, 0));
    let created = world.create_mailbox(&caller, "ann@example.com").await.unwrap();
    assert_eq!(created.confirmation_sent_at(), Some(service.now()));
    let [mail] = world.mailbox_confirmation_requests().try_into().unwrap();
    let view = service.deliveries.get(&caller, world.shop.id, mail.id).unwrap();
    assert_eq!((view.subject, view.body), (None, None), "its creator may not confirm for its reader");
    let refusal = service.deliveries.send_test(&caller, world.shop.id, created.id).await.unwrap_err();
    let expected = "can't be sent: its mailbox has not been confirmed yet";
    assert_eq!(refusal.to_string(), expected);
    let refusal = service.deliveries.redeliver(&caller, world.shop.id, mail.id, &each_time()).await.unwrap_err();
    assert!(refusal.to_string().contains("once a day"), "{refusal}");

    let link = world.mailbox_link();
    let private = Page { private: true, ..world.shop.clone() };
    world.put_page(private).await;
    let destination = service.destinations.linked_destination(&link).unwrap();
    assert_eq!((destination.mailbox.as_str(), destination.is_confirmed), ("ann@example.com", false));
    let tail = link.len() - 1;
    let digit = if link.ends_with('0') { '1' } else { '0' };
    for wrong_link in ["", &link[..tail], &format!("{}{digit}", &link[..tail])] {
        assert_eq!(service.destinations.confirm(wrong_link).await.unwrap_err(), ServiceError::NotFound);
    }
    for _ in 0..2 {
        assert!(service.destinations.confirm(&link).await.unwrap().is_confirmed);
    }
    assert_eq!(world.last_actor(), AuditActor::Visitor);
    let confirmed = service.destinations.get(&caller, world.shop.id, created.id).unwrap();
    assert_eq!(confirmed.health, Default::default());
    // A confirmed reader may get another confirmation mail on the same day.
    assert!(world.create_mailbox(&caller, "ann@example.com").await.is_ok());
}

#[tokio::test]
async fn a_mailbox_gets_one_confirmation_request_a_day() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let service = &world.service;
    let created = world.create_mailbox(&caller, "ann@example.com").await.unwrap();
    for repeated in ["ann@example.com", "Ann+x@example.com"] {
        assert_eq!(world.create_mailbox(&caller, repeated).await.unwrap_err().to_string(), LATELY);
    }
    let ask = SubscriptionRequest { email: Some("ann@example.com".to_owned()), ..SubscriptionRequest::default() };
    service.subscribers.subscribe(&world.shop, &ask).await.unwrap();
    assert_eq!(world.subscribers(&world.shop), [], "nor through the visitors' form");
    let name = DestinationEdit { name: PatchField::Value("Other".to_owned()), ..DestinationEdit::default() };
    let save = world.save(&caller, &created, &name).await.unwrap();
    assert_eq!(
        (save.confirmation_sent_at(), world.mailbox_confirmation_requests().len()),
        (created.confirmation_sent_at(), 1)
    );
    let first = world.mailbox_link();
    world.clock.set(service.now() + DAY);
    let save = world.save(&caller, &save, &DestinationEdit::default()).await.unwrap();
    assert_eq!((save.confirmation_sent_at(), world.mailbox_confirmation_requests().len()), (Some(service.now()), 2));
    assert!(service.destinations.linked_destination(&first).is_err(), "only the newest link is valid");
    assert!(service.destinations.linked_destination(&world.mailbox_link()).is_ok());
    world.clock.set(service.now() + 2 * DAY);
    assert!(service.destinations.linked_destination(&world.mailbox_link()).is_err(), "for two days");
}

#[tokio::test]
async fn a_changed_mailbox_gets_a_new_request_and_voids_the_old_link() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let service = &world.service;
    let created = world.create_mailbox(&caller, "ann@example.com").await.unwrap();
    let old = world.mailbox_link();
    service.destinations.confirm(&old).await.unwrap();
    world.clock.set(service.now() + MINUTE);
    let changed = world.save(&caller, &created, &to("bob@example.com")).await.unwrap();
    assert_eq!(changed.confirmation_sent_at(), Some(service.now()));
    assert_eq!(service.destinations.confirm(&old).await.unwrap_err(), ServiceError::NotFound);
    service.destinations.confirm(&world.mailbox_link()).await.unwrap();
    let back = world.save(&caller, &changed, &to("owner@example.com")).await.unwrap();
    assert_eq!(back.confirmation_sent_at(), None, "the account's own");
    service.destinations.delete(&caller, world.shop.id, created.id, &each_time()).await.unwrap();
    assert!(service.destinations.linked_destination(&world.mailbox_link()).is_err());
}

#[tokio::test]
async fn a_recipient_stops_alerts_by_link_and_the_owner_is_notified() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let service = &world.service;
    let own_destination = world.create_mailbox(&caller, "Owner@example.com").await.unwrap();
    assert_eq!(service.destinations.stop_url(&own_destination), None, "the account's own uses the page's settings");
    let created = world.create_mailbox(&caller, "ann@example.com").await.unwrap();
    service.destinations.confirm(&world.mailbox_link()).await.unwrap();
    let link = |it: &Destination| {
        service.destinations.stop_url(it).unwrap().split_once("/stop-alerts?t=").unwrap().1.to_owned()
    };
    let valid_link = link(&created);
    let tail = valid_link.len() - 1;
    let digit = if valid_link.ends_with('0') { '1' } else { '0' };
    for wrong_link in ["", &valid_link[..tail], &format!("{}{digit}", &valid_link[..tail]), &world.mailbox_link()] {
        assert_eq!(
            service.destinations.stop_alerts(wrong_link).await.unwrap_err(),
            ServiceError::NotFound,
            "{wrong_link}"
        );
    }
    let destination = service.destinations.stoppable(&valid_link).unwrap();
    assert_eq!((destination.mailbox.as_str(), destination.is_confirmed), ("ann@example.com", true));
    for _ in 0..2 {
        assert!(!service.destinations.stop_alerts(&valid_link).await.unwrap().is_confirmed);
    }
    assert_eq!(world.last_actor(), AuditActor::Visitor);
    let notices = world.sent("destination.stopped");
    let [Delivery { message: DeliveryMessage::Mail(mail), .. }] = &notices[..] else { panic!("once: {notices:?}") };
    assert!(mail.text.contains("The recipient stopped the alerts"), "{}", mail.text);
    let count = world.mailbox_confirmation_requests().len();
    let save = world.save(&caller, &created, &DestinationEdit::default()).await.unwrap();
    assert!(save.confirmation_sent_at().is_some(), "saving it does not switch it on");
    assert_eq!(world.mailbox_confirmation_requests().len(), count, "and nothing is sent on that day");
    world.clock.set(service.now() + DAY);
    world.save(&caller, &created, &DestinationEdit::default()).await.unwrap();
    service.destinations.confirm(&world.mailbox_link()).await.unwrap();
    let changed = world.save(&caller, &created, &to("bob@example.com")).await.unwrap();
    assert_ne!(link(&changed), valid_link);
    assert_eq!(
        service.destinations.stop_alerts(&valid_link).await.unwrap_err(),
        ServiceError::NotFound,
        "another mailbox has another link"
    );
}
