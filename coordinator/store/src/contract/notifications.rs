//! Contract for destinations, subscribers, bulletins and deliveries: lists, waiting ones, and deletion.

use parallax_core::alert_settings::AlertSettings;
use parallax_core::delivery::DeliveryState;
use parallax_core::id::{DeliveryId, DestinationId, SubscriberId};

use crate::samples::*;
use crate::{Batch, Expect, Op, Presence, StoreError};

pub(super) fn destinations_and_subscribers_of_a_page_are_limited(store: &mut TestStore) {
    store.write(destination(1, 1));
    assert_eq!(store.reader.destination(DestinationId::from_u128(1)), Ok(None), "it belongs to no page");
    store.write(page(1, 1, "one"));
    for n in [2, 1] {
        let mut batch = Batch::new();
        batch.expect(Expect::DestinationsBelow(page_id(1), 2)).write(destination(n, 1));
        store.commit(&batch).unwrap();
        let mut batch = Batch::new();
        batch.expect(Expect::SubscribersBelow(page_id(1), 2)).write(subscriber(n, 1, n as u8));
        store.commit(&batch).unwrap();
    }
    for limit_reached in [Expect::DestinationsBelow(page_id(1), 2), Expect::SubscribersBelow(page_id(1), 2)] {
        assert_eq!(store.commit(Batch::new().expect(limit_reached.clone())), Err(StoreError::Conflict(limit_reached)));
    }
    let destinations = store.reader.destinations_of(page_id(1)).unwrap();
    assert_eq!(destinations.into_iter().map(|it| it.value).collect::<Vec<_>>(), [destination(1, 1), destination(2, 1)]);
    store.write(Op::DeleteDestination(DestinationId::from_u128(1)));
    assert_eq!(store.reader.destinations_of(page_id(1)).unwrap().len(), 1);
}

pub(super) fn subscribers_are_found_by_contact_and_in_slices(store: &mut TestStore) {
    store.write(page(1, 1, "one"));
    store.write(page(2, 1, "two"));
    for n in [3, 1, 2] {
        store.write(subscriber(n, 1, n as u8));
    }
    store.write(subscriber(4, 2, 1));
    let numbers = |store: &TestStore, after: Option<u128>, limit| -> Vec<u128> {
        let subscribers = store.reader.subscribers_of(page_id(1), after.map(SubscriberId::from_u128), limit).unwrap();
        subscribers.iter().map(|it| it.value.id.to_u128()).collect()
    };
    assert_eq!((numbers(store, None, 2), numbers(store, Some(2), 9)), (vec![1, 2], vec![3]));
    assert_eq!(store.reader.subscribers_count(page_id(1)), Ok(3));
    let stored = store.reader.subscriber_by_contact(page_id(1), [2; 16]).unwrap().unwrap();
    assert_eq!(stored.value, subscriber(2, 1, 2));
    let conflict = Expect::ContactFree(page_id(1), [2; 16], SubscriberId::from_u128(9));
    assert_eq!(
        store.commit(Batch::new().write(subscriber(9, 1, 2))),
        Err(StoreError::Conflict(conflict)),
        "one contact, one subscriber"
    );
    store.write(Op::DeleteSubscriber(SubscriberId::from_u128(2)));
    assert_eq!(store.reader.subscriber_by_contact(page_id(1), [2; 16]), Ok(None));
    assert_eq!(numbers(store, None, 9), [1, 3]);
}

pub(super) fn waiting_deliveries_are_listed_until_they_are_done(store: &mut TestStore) {
    store.write(page(1, 1, "one"));
    let (first, second, operator_delivery) =
        (delivery(10, Some(1), Some(5)), delivery(20, Some(1), Some(3)), delivery(15, None, Some(4)));
    for it in [&second, &first, &operator_delivery] {
        store.write(it.clone());
    }
    store.write(delivery(30, Some(7), Some(1)));
    let waiting = store.reader.waiting_deliveries().unwrap();
    assert_eq!(
        waiting.iter().map(|it| (it.id, it.due)).collect::<Vec<_>>(),
        [(first.id, at(5)), (operator_delivery.id, at(4)), (second.id, at(3))]
    );
    assert_eq!((waiting[0].ordering_key, waiting[0].seq), (first.ordering_key(), 4));
    let delivery_ids = |store: &TestStore, page: Option<u128>, before: Option<DeliveryId>, limit| -> Vec<DeliveryId> {
        let deliveries = store.reader.deliveries_of(page.map(page_id), before, limit).unwrap();
        deliveries.into_iter().map(|it| it.value.id).collect()
    };
    assert_eq!(delivery_ids(store, Some(1), None, 9), [second.id, first.id]);
    assert_eq!(
        (delivery_ids(store, Some(1), None, 1), delivery_ids(store, Some(1), Some(second.id), 9)),
        (vec![second.id], vec![first.id])
    );
    assert_eq!(delivery_ids(store, None, None, 9), [operator_delivery.id]);
    let read = store.reader.delivery(first.id).unwrap().unwrap();
    let delivered = parallax_core::delivery::Delivery { state: DeliveryState::Delivered(at(9)), ..read.value };
    let mut batch = Batch::new();
    batch.expect(Expect::Delivery(delivered.id, Presence::At(read.revision))).write(delivered.clone());
    store.commit(&batch).unwrap();
    assert_eq!(store.reader.waiting_deliveries().unwrap().len(), 2);
    assert_eq!(store.reader.delivery(delivered.id).unwrap().unwrap().value, delivered);
    // Old ones are deleted, except those that still wait.
    store.write(Op::DeleteOldDeliveries(at(20)));
    assert_eq!(
        (delivery_ids(store, Some(1), None, 9), delivery_ids(store, None, None, 9)),
        (vec![second.id], vec![operator_delivery.id])
    );
}

pub(super) fn a_bulletin_is_open_until_it_is_complete(store: &mut TestStore) {
    store.write(page(1, 1, "one"));
    store.write(bulletin(10, 1, false));
    store.write(bulletin(20, 1, true));
    assert_eq!(store.reader.open_bulletins().unwrap().len(), 1);
    store.write(Op::DeleteOldDeliveries(at(99)));
    assert_eq!(store.reader.bulletin(bulletin(20, 1, true).id), Ok(None));
    let open = store.reader.bulletin(bulletin(10, 1, false).id).unwrap().unwrap();
    assert_eq!(open.value, bulletin(10, 1, false));
    store.write(bulletin(10, 1, true));
    assert_eq!(store.reader.open_bulletins(), Ok(vec![]));
}

pub(super) fn deleting_a_page_deletes_its_notifications(store: &mut TestStore) {
    for n in [1, 2] {
        store.write(page(n, 1, &format!("p{n}")));
        store.write(destination(n, n));
        store.write(subscriber(n, n, 1));
        store.write(bulletin(n as i64, n, false));
        store.write(delivery(n as i64, Some(n), Some(1)));
        store.write(Op::PutAlertSettings(
            page_id(n),
            AlertSettings { repeat_minutes: Some(5), ..AlertSettings::default() },
        ));
        store.write(Op::PutAnnouncedOutages(page_id(n), Box::new(outages(n))));
    }
    let remaining = |store: &TestStore| {
        let reader = store.reader.as_ref();
        let pages = [1, 2].map(page_id);
        (
            pages.map(|page| reader.destinations_of(page).unwrap().len()),
            pages.map(|page| reader.subscribers_count(page).unwrap()),
            pages.map(|page| reader.alert_settings(page).unwrap().is_some()),
            pages.map(|page| reader.announced_outages(page).unwrap().is_some()),
            (reader.open_bulletins().unwrap().len(), reader.waiting_deliveries().unwrap().len()),
        )
    };
    store.write(Op::ClearNotifications(page_id(1)));
    assert_eq!(remaining(store), ([1, 1], [0, 1], [true, true], [true, true], (1, 1)));
    store.write(Op::DeletePage(page_id(2)));
    assert_eq!(remaining(store), ([1, 0], [0, 0], [true, false], [true, false], (0, 0)));
    let announced = store.reader.announced_outages(page_id(1)).unwrap().unwrap();
    assert_eq!(announced.value, outages(1));
    let settings = Batch::new().expect(Expect::AlertSettings(page_id(2), Presence::Absent)).clone();
    assert!(store.commit(&settings).is_ok());
}
