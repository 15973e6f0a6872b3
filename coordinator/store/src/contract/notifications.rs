//! Contract for destinations, subscribers, bulletins and deliveries: lists, waiting ones, and deletion.

use parallax_core::alert_settings::AlertSettings;
use parallax_core::delivery::DeliveryState;
use parallax_core::id::{DeliveryId, DestinationId, SubscriberId};

use crate::samples::*;
use crate::{Batch, Expect, Op, Presence, StoreError};

pub(super) fn a_page_has_so_many_destinations_and_subscribers(bench: &mut TestStore) {
    bench.write(destination(1, 1));
    assert_eq!(bench.reader.destination(DestinationId::from_u128(1)), Ok(None), "it belongs to no page");
    bench.write(page(1, 1, "one"));
    for n in [2, 1] {
        let mut batch = Batch::new();
        batch.expect(Expect::DestinationsBelow(page_id(1), 2)).write(destination(n, 1));
        bench.commit(&batch).unwrap();
        let mut batch = Batch::new();
        batch.expect(Expect::SubscribersBelow(page_id(1), 2)).write(subscriber(n, 1, n as u8));
        bench.commit(&batch).unwrap();
    }
    for full in [Expect::DestinationsBelow(page_id(1), 2), Expect::SubscribersBelow(page_id(1), 2)] {
        assert_eq!(bench.commit(Batch::new().expect(full.clone())), Err(StoreError::Conflict(full)));
    }
    let found = bench.reader.destinations_of(page_id(1)).unwrap();
    assert_eq!(found.into_iter().map(|it| it.value).collect::<Vec<_>>(), [destination(1, 1), destination(2, 1)]);
    bench.write(Op::DeleteDestination(DestinationId::from_u128(1)));
    assert_eq!(bench.reader.destinations_of(page_id(1)).unwrap().len(), 1);
}

pub(super) fn subscribers_are_found_by_contact_and_in_slices(bench: &mut TestStore) {
    bench.write(page(1, 1, "one"));
    bench.write(page(2, 1, "two"));
    for n in [3, 1, 2] {
        bench.write(subscriber(n, 1, n as u8));
    }
    bench.write(subscriber(4, 2, 1));
    let numbers = |bench: &TestStore, after: Option<u128>, limit| -> Vec<u128> {
        let found = bench.reader.subscribers_of(page_id(1), after.map(SubscriberId::from_u128), limit).unwrap();
        found.iter().map(|it| it.value.id.to_u128()).collect()
    };
    assert_eq!((numbers(bench, None, 2), numbers(bench, Some(2), 9)), (vec![1, 2], vec![3]));
    assert_eq!(bench.reader.subscribers_count(page_id(1)), Ok(3));
    let found = bench.reader.subscriber_by_contact(page_id(1), [2; 16]).unwrap().unwrap();
    assert_eq!(found.value, subscriber(2, 1, 2));
    let taken = Expect::ContactFree(page_id(1), [2; 16], SubscriberId::from_u128(9));
    assert_eq!(
        bench.commit(Batch::new().write(subscriber(9, 1, 2))),
        Err(StoreError::Conflict(taken)),
        "one contact, one subscriber"
    );
    bench.write(Op::DeleteSubscriber(SubscriberId::from_u128(2)));
    assert_eq!(bench.reader.subscriber_by_contact(page_id(1), [2; 16]), Ok(None));
    assert_eq!(numbers(bench, None, 9), [1, 3]);
}

pub(super) fn what_waits_is_listed_until_it_does_not(bench: &mut TestStore) {
    bench.write(page(1, 1, "one"));
    let (first, second, ours) =
        (delivery(10, Some(1), Some(5)), delivery(20, Some(1), Some(3)), delivery(15, None, Some(4)));
    for it in [&second, &first, &ours] {
        bench.write(it.clone());
    }
    bench.write(delivery(30, Some(7), Some(1)));
    let waiting = bench.reader.waiting_deliveries().unwrap();
    assert_eq!(
        waiting.iter().map(|it| (it.id, it.due)).collect::<Vec<_>>(),
        [(first.id, at(5)), (ours.id, at(4)), (second.id, at(3))]
    );
    assert_eq!((waiting[0].ordering_key, waiting[0].seq), (first.ordering_key(), 4));
    let of = |bench: &TestStore, page: Option<u128>, before: Option<DeliveryId>, limit| -> Vec<DeliveryId> {
        let found = bench.reader.deliveries_of(page.map(page_id), before, limit).unwrap();
        found.into_iter().map(|it| it.value.id).collect()
    };
    assert_eq!(of(bench, Some(1), None, 9), [second.id, first.id]);
    assert_eq!(
        (of(bench, Some(1), None, 1), of(bench, Some(1), Some(second.id), 9)),
        (vec![second.id], vec![first.id])
    );
    assert_eq!(of(bench, None, None, 9), [ours.id]);
    let read = bench.reader.delivery(first.id).unwrap().unwrap();
    let done = parallax_core::delivery::Delivery { state: DeliveryState::Delivered(at(9)), ..read.value };
    let mut batch = Batch::new();
    batch.expect(Expect::Delivery(done.id, Presence::At(read.revision))).write(done.clone());
    bench.commit(&batch).unwrap();
    assert_eq!(bench.reader.waiting_deliveries().unwrap().len(), 2);
    assert_eq!(bench.reader.delivery(done.id).unwrap().unwrap().value, done);
    // Old ones are deleted, except those that still wait.
    bench.write(Op::DeleteOldDeliveries(at(20)));
    assert_eq!((of(bench, Some(1), None, 9), of(bench, None, None, 9)), (vec![second.id], vec![ours.id]));
}

pub(super) fn news_is_open_until_everybody_is_reached(bench: &mut TestStore) {
    bench.write(page(1, 1, "one"));
    bench.write(bulletin(10, 1, false));
    bench.write(bulletin(20, 1, true));
    assert_eq!(bench.reader.open_bulletins().unwrap().len(), 1);
    bench.write(Op::DeleteOldDeliveries(at(99)));
    assert_eq!(bench.reader.bulletin(bulletin(20, 1, true).id), Ok(None));
    let open = bench.reader.bulletin(bulletin(10, 1, false).id).unwrap().unwrap();
    assert_eq!(open.value, bulletin(10, 1, false));
    bench.write(bulletin(10, 1, true));
    assert_eq!(bench.reader.open_bulletins(), Ok(vec![]));
}

pub(super) fn a_page_takes_with_it_what_it_sent(bench: &mut TestStore) {
    for n in [1, 2] {
        bench.write(page(n, 1, &format!("p{n}")));
        bench.write(destination(n, n));
        bench.write(subscriber(n, n, 1));
        bench.write(bulletin(n as i64, n, false));
        bench.write(delivery(n as i64, Some(n), Some(1)));
        bench.write(Op::PutAlertSettings(
            page_id(n),
            AlertSettings { repeat_minutes: Some(5), ..AlertSettings::default() },
        ));
        bench.write(Op::PutAnnouncedOutages(page_id(n), Box::new(outages(n))));
    }
    let left = |bench: &TestStore| {
        let reader = bench.reader.as_ref();
        let pages = [1, 2].map(page_id);
        (
            pages.map(|page| reader.destinations_of(page).unwrap().len()),
            pages.map(|page| reader.subscribers_count(page).unwrap()),
            pages.map(|page| reader.alert_settings(page).unwrap().is_some()),
            pages.map(|page| reader.announced_outages(page).unwrap().is_some()),
            (reader.open_bulletins().unwrap().len(), reader.waiting_deliveries().unwrap().len()),
        )
    };
    bench.write(Op::ClearNotifications(page_id(1)));
    assert_eq!(left(bench), ([1, 1], [0, 1], [true, true], [true, true], (1, 1)));
    bench.write(Op::DeletePage(page_id(2)));
    assert_eq!(left(bench), ([1, 0], [0, 0], [true, false], [true, false], (0, 0)));
    let told = bench.reader.announced_outages(page_id(1)).unwrap().unwrap();
    assert_eq!(told.value, outages(1));
    let settings = Batch::new().expect(Expect::AlertSettings(page_id(2), Presence::Absent)).clone();
    assert!(bench.commit(&settings).is_ok());
}
