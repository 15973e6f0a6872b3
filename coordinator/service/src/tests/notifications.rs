//! Destinations, deliveries and alert settings: limits, permissions, and deletion with the page.

use parallax_core::alert_settings::{AlertSettings, AlertSettingsEdit};
use parallax_core::audit::{AuditAction, AuditActor};
use parallax_core::delivery::{Delivery, DeliveryMessage, DeliveryState, Recipient};
use parallax_core::destination::edit::DestinationEdit;
use parallax_core::destination::{Channel, Destination, DisableReason, MAX_DESTINATIONS};
use parallax_core::id::DeliveryId;
use parallax_core::role::Role;

use super::*;
use crate::audit::AuditFilter;
use crate::deliveries::{DeliveryContent, DeliveryFilter, TESTS};

impl World {
    /// Stores failed deliveries to that destination: their ids, oldest first.
    pub(crate) async fn add_failed_deliveries(&self, destination: &Destination, count: usize) -> Vec<DeliveryId> {
        let mut ids = Vec::new();
        for number in 0..count {
            let delivery = self.delivery(destination, number);
            ids.push(delivery.id);
            let mut batch = Batch::new();
            batch.write(delivery);
            self.service.context.store().commit(batch).await.unwrap();
        }
        ids
    }

    fn delivery(&self, destination: &Destination, number: usize) -> Delivery {
        let now = self.service.now();
        Delivery {
            id: DeliveryId::new(now + i64::try_from(number).unwrap(), [7; 10]),
            page: Some(destination.page),
            to: Recipient::Destination(destination.id),
            event: "went-down".to_owned(),
            monitor: None,
            incident: None,
            seq: number as u64,
            message: DeliveryMessage::Json(b"{\"event\":\"went-down\"}".to_vec()),
            is_single_attempt: false,
            created_at: now,
            state: DeliveryState::Failed(now),
            attempts: Default::default(),
            attempt_log: Vec::new(),
            outage_start: None,
        }
    }

    async fn destination(&self, caller: &Caller, edit: &DestinationEdit) -> ServiceResult<Destination> {
        match self.service.destinations.create(caller, self.shop.id, edit, &each_time()).await? {
            RequestOutcome::Fresh(created) => Ok(created),
            RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => panic!("nothing was sent twice"),
        }
    }
}

fn text(value: &str) -> PatchField<String> {
    PatchField::Value(value.to_owned())
}

fn webhook(url: &str) -> DestinationEdit {
    DestinationEdit { name: text("Team"), kind: text("webhook"), url: text(url), ..DestinationEdit::default() }
}

const HOOK: &str = "https://hooks.example.com/x";

fn every(limit: usize) -> DeliveryFilter {
    DeliveryFilter { limit, ..DeliveryFilter::default() }
}

#[tokio::test]
async fn a_new_page_alerts_its_owner_by_mail() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Read).await;
    let destinations = world.service.destinations.list(&caller, world.shop.id).await.unwrap();
    let [only] = destinations.as_slice() else { panic!("{destinations:?}") };
    assert_eq!((only.name.as_str(), only.enabled), ("Owner", true));
    assert_eq!(only.channel, Channel::Email { to: "owner@example.com".to_owned() });
}

#[tokio::test]
async fn webhooks_need_hobby_and_a_page_has_twenty_destinations() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    world.service.accounts.set_plan(world.owner.id, Plan::Free).await.unwrap();
    let refusal = world.destination(&caller, &webhook(HOOK)).await.unwrap_err();
    assert_eq!(refusal.to_string(), "webhook destinations need the hobby plan; this account is on the free plan");
    let mail = DestinationEdit { to: text("ann@example.com"), kind: text("email"), ..webhook(HOOK) };
    assert!(world.destination(&caller, &mail).await.is_ok());
    world.service.accounts.set_plan(world.owner.id, Plan::Hobby).await.unwrap();
    for _ in 2..MAX_DESTINATIONS {
        world.destination(&caller, &webhook(HOOK)).await.unwrap();
    }
    let refusal = world.destination(&caller, &webhook(HOOK)).await.unwrap_err();
    assert!(matches!(refusal, ServiceError::PlanLimit(_)), "{refusal}");
}

#[tokio::test]
async fn private_addresses_need_the_operators_setting() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    for (url, class) in [
        ("http://127.0.0.1:9/x", "loopback"),
        ("http://[::ffff:10.0.0.1]/", "private"),
        ("http://169.254.169.254/latest", "link-local"),
        ("http://localhost/", "loopback"),
    ] {
        let refusal = world.destination(&caller, &webhook(url)).await.unwrap_err();
        assert_eq!(refusal.to_string(), format!("url must not be a {class} address"), "{url}");
    }
    let open = ServiceSettings { allow_private: true, ..world.service.context.settings().clone() };
    let store = world.service.context.store().clone();
    let service = Services::new(ServiceParts::disconnected(store, world.clock.clone(), open));
    assert_eq!(service.context.blocked_address_class("127.0.0.1".parse().unwrap()), None);
    assert_eq!(service.context.blocked_address_class("224.0.0.1".parse().unwrap()), Some("multicast"));
}

#[tokio::test]
async fn secrets_are_random_and_the_active_one_stays_while_a_new_one_is_pending() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let created = world.destination(&caller, &webhook(HOOK)).await.unwrap();
    let other = world.destination(&caller, &webhook(HOOK)).await.unwrap();
    let secret = |it: &Destination| match &it.channel {
        Channel::Webhook { secret, .. } => secret.clone(),
        other => panic!("{other:?}"),
    };
    assert!(parallax_notify::deliver::signature::SigningSecret::parse(&secret(&created).newest).is_ok());
    assert_ne!(secret(&created), secret(&other));
    let rotated =
        world.service.destinations.rotate_secret(&caller, world.shop.id, created.id, &each_time()).await.unwrap();
    let RequestOutcome::Fresh(rotated) = rotated else { panic!("nothing was sent twice") };
    let until = world.service.now() + DAY;
    assert_eq!(secret(&rotated).previous, Some((secret(&created).newest, until)));
    assert_eq!(world.service.destinations.get(&caller, world.shop.id, created.id), Ok(rotated.clone()));
    let repeated =
        world.service.destinations.rotate_secret(&caller, world.shop.id, created.id, &each_time()).await.unwrap();
    let RequestOutcome::Fresh(repeated) = repeated else { panic!("nothing was sent twice") };
    assert_eq!(secret(&repeated).previous, Some((secret(&created).newest, until)), "the pending one is gone");
    assert_ne!(secret(&repeated).newest, secret(&rotated).newest);
    let active =
        world.service.destinations.activate_secret(&caller, world.shop.id, created.id, &each_time()).await.unwrap();
    let RequestOutcome::Fresh(active) = active else { panic!("nothing was sent twice") };
    assert_eq!((secret(&active).newest, secret(&active).previous), (secret(&repeated).newest, None));
}

#[tokio::test]
async fn a_test_alert_is_one_attempt_and_five_are_allowed_a_minute() {
    let world = world().await;
    world.receive();
    let caller = world.caller(KeyAccess::Write).await;
    world.make(&caller, "Cart").await.unwrap();
    let created = world.destination(&caller, &webhook(HOOK)).await.unwrap();
    let tested = world.service.deliveries.send_test(&caller, world.shop.id, created.id).await.unwrap();
    let DeliveryContent { delivery, body, .. } = tested;
    assert!(matches!(delivery.state, DeliveryState::Delivered(_)), "{delivery:?}");
    assert_eq!((delivery.event.as_str(), delivery.is_single_attempt, delivery.attempt_log.len()), ("test", true, 1));
    let body: serde_json::Value = serde_json::from_str(&body.unwrap()).unwrap();
    assert_eq!((&body["monitor"], &body["event"], &body["test"]), (&"Cart".into(), &"went-down".into(), &true.into()));
    for _ in 1..TESTS {
        world.service.deliveries.send_test(&caller, world.shop.id, created.id).await.unwrap();
    }
    let refusal = world.service.deliveries.send_test(&caller, world.shop.id, created.id).await.unwrap_err();
    assert_eq!(refusal, ServiceError::PageTestLimit { seconds: 60 });
    world.clock.set(world.service.now() + MINUTE);
    assert!(world.service.deliveries.send_test(&caller, world.shop.id, created.id).await.is_ok());
}

#[tokio::test]
async fn deliveries_are_paginated_and_filtered() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let destination = world.destination(&caller, &webhook(HOOK)).await.unwrap();
    let other = world.destination(&caller, &webhook(HOOK)).await.unwrap();
    let ids = world.add_failed_deliveries(&destination, 300).await;
    world.clock.set(world.service.now() + 1000);
    world.add_failed_deliveries(&other, 1).await;
    let slice = |filter: DeliveryFilter| {
        let (service, caller, page) = (world.service.clone(), caller.clone(), world.shop.id);
        async move { service.deliveries.list(&caller, page, filter).await.unwrap() }
    };
    let mut listed_ids = Vec::new();
    let mut filter = DeliveryFilter { destination: Some(destination.id), limit: 200, ..every(200) };
    loop {
        let slice = slice(filter).await;
        listed_ids.extend(slice.deliveries.iter().map(|delivery| delivery.id));
        filter.before = slice.next;
        if slice.next.is_none() {
            break;
        }
    }
    assert_eq!(listed_ids, ids.iter().rev().copied().collect::<Vec<_>>());
    let newest = slice(every(1)).await;
    assert_eq!(newest.deliveries[0].to, Recipient::Destination(other.id));
    assert_eq!(newest.next, Some(newest.deliveries[0].id));
    assert!(slice(DeliveryFilter { status: Some("delivered"), ..every(10) }).await.deliveries.is_empty());
    let foreign = DeliveryFilter { destination: Some(destination.id), ..every(10) };
    assert!(world.service.deliveries.list(&caller, world.foreign.id, foreign).await.is_err());
    assert!(world.service.deliveries.get(&caller, world.blog.id, ids[0]).is_err(), "it is another page's");
}

#[tokio::test]
async fn only_a_delivery_with_an_active_recipient_is_redelivered() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let created = world.destination(&caller, &webhook(HOOK)).await.unwrap();
    let id = world.add_failed_deliveries(&created, 1).await[0];
    let repeated = async || world.service.deliveries.redeliver(&caller, world.shop.id, id, &each_time()).await;
    let RequestOutcome::Fresh(delivery) = repeated().await.unwrap() else { panic!("nothing was sent twice") };
    assert_eq!(delivery.delivery.state, DeliveryState::Waiting(world.service.now()));
    assert_eq!((delivery.delivery.id, delivery.delivery.attempts.total()), (id, 0));
    let mut off = created.clone();
    off.health.disabled = Some((world.service.now(), DisableReason::Gone));
    let mut batch = Batch::new();
    batch.write(off);
    world.service.context.store().commit(batch).await.unwrap();
    assert_eq!(repeated().await.unwrap_err().to_string(), "can't be sent: its destination is switched off");
    let edit = DestinationEdit::default();
    let on = world.service.destinations.edit(&caller, world.shop.id, created.id, &edit, &each_time()).await;
    assert!(matches!(on, Ok(RequestOutcome::Fresh(on)) if on.health.disabled.is_none()), "any edit switches it on");
    assert!(repeated().await.is_ok());
    world.service.destinations.delete(&caller, world.shop.id, created.id, &each_time()).await.unwrap();
    assert_eq!(repeated().await.unwrap_err().to_string(), "can't be sent: its destination was deleted");
}

#[tokio::test]
async fn what_the_service_switched_off_and_what_the_operator_changes_is_in_the_log() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let mut off = world.destination(&caller, &webhook(HOOK)).await.unwrap();
    let id = off.id;
    off.health.disabled = Some((world.service.now(), DisableReason::Gone));
    let mut batch = Batch::new();
    batch.write(off);
    world.service.context.store().commit(batch).await.unwrap();
    let newest = async || {
        let owner = world.signed_in(Role::Owner).await;
        let owner = world.service.people.authenticate(&owner.token).unwrap().unwrap().caller();
        // Not the entry of the owner who reads it.
        let filter = AuditFilter { action: Some(AuditAction::Changed), ..AuditFilter::default() };
        let entry = world.service.audit.list(&owner, &filter, None).await.unwrap().entries.remove(0).entry;
        (entry.actor, entry.items[0].fields[0].clone())
    };
    let edit = DestinationEdit::default();
    world.service.destinations.edit(&caller, world.shop.id, id, &edit, &each_time()).await.unwrap();
    let (_, field) = newest().await;
    assert_eq!(field.name, "Switched off by the service");
    assert_eq!(field.values, Some(("yes".to_owned(), "no".to_owned())));
    let edit = AlertSettingsEdit { repeat_minutes: PatchField::Value(5), ..AlertSettingsEdit::default() };
    world.service.alert_settings.edit_as_operator(world.shop.id, &edit).await.unwrap();
    let (actor, field) = newest().await;
    assert_eq!((actor, field.name.as_str()), (AuditActor::Operator, "Repeat (min)"));
}

#[tokio::test]
async fn a_change_of_the_alert_settings_is_an_edit_of_the_page() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    assert_eq!(world.service.alert_settings.get(&caller, world.shop.id), Ok(AlertSettings::default()));
    let edit = AlertSettingsEdit { repeat_minutes: PatchField::Value(5), ..AlertSettingsEdit::default() };
    for _ in 0..2 {
        world.service.alert_settings.edit(&caller, world.shop.id, &edit, &each_time()).await.unwrap();
    }
    assert_eq!(
        world.service.alert_settings.get(&caller, world.shop.id).map(|settings| settings.repeat_minutes),
        Ok(Some(5))
    );
    let edits = events(&world).await;
    let changed = edits.iter().filter(|kind| **kind == EventKind::PageEdited(EditKind::Changed)).count();
    assert_eq!(changed, 1, "an edit that changes nothing is no event");
}

#[tokio::test]
async fn deliveries_of_a_large_deleted_page_are_deleted_in_slices() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let created = world.destination(&caller, &webhook(HOOK)).await.unwrap();
    world.add_failed_deliveries(&created, 300).await;
    world.service.pages.delete(&caller, world.shop.id, &each_time()).await.unwrap();
    assert!(world.service.destinations.list(&caller, world.shop.id).await.is_err());
    world.service.pages.clear_deleted().await.unwrap();
    let reader = world.service.context.store().reader();
    assert_eq!(reader.deliveries_of(Some(world.shop.id), None, 1).unwrap(), []);
    assert_eq!(reader.destination(created.id).unwrap(), None);
    assert!(reader.page(world.shop.id).unwrap().is_none());
}
