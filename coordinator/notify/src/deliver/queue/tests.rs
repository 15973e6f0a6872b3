//! Queue order and slot limits.

use parallax_core::id::{DestinationId, MonitorId};

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn to(n: u128) -> Recipient {
    Recipient::Destination(DestinationId::from_u128(n))
}

fn waiting(receiver: u128, monitor: u128, seq: u64) -> WaitingDelivery {
    WaitingDelivery {
        id: DeliveryId::from_u128(receiver << 64 | monitor << 32 | u128::from(seq)),
        ordering_key: OrderingKey { to: to(receiver), subject: MonitorId::from_u128(monitor).to_u128() },
        seq,
        due: NOW,
    }
}

/// Class of a receiver; its host is its number divided by 100.
fn class(receiver: Recipient, last_succeeded: Option<bool>) -> ReceiverClass {
    let Recipient::Destination(id) = receiver else {
        return ReceiverClass { host: None, last_succeeded };
    };
    ReceiverClass { host: Some(format!("h{}", id.to_u128() / 100).into()), last_succeeded }
}

/// Takes everything that may be sent.
fn take_all(queue: &mut DeliveryQueue, last_succeeded: Option<bool>) -> Vec<(OrderingKey, DeliveryId)> {
    let mut checks_left = usize::MAX;
    std::iter::from_fn(|| queue.take_next(NOW, &mut checks_left, |to| class(to, last_succeeded))).collect()
}

fn queue_of(waiting: &[WaitingDelivery]) -> DeliveryQueue {
    let mut queue = DeliveryQueue::default();
    queue.replace_waiting(waiting);
    queue
}

fn many(receivers: std::ops::Range<u128>, monitors: u128) -> Vec<WaitingDelivery> {
    receivers.flat_map(|it| (0..monitors).map(move |monitor| waiting(it, monitor, 1))).collect()
}

#[test]
fn an_ordering_key_has_one_delivery_in_flight_and_keeps_its_order() {
    let mut queue = queue_of(&[waiting(1, 1, 3), waiting(1, 1, 1), waiting(1, 1, 2)]);
    for seq in 1..=3 {
        let taken = take_all(&mut queue, Some(true));
        assert_eq!(taken.iter().map(|(_, id)| *id).collect::<Vec<_>>(), [waiting(1, 1, seq).id]);
        queue.on_finished(taken[0].0, NextStep::Finished, Some(true));
    }
    assert_eq!((queue.in_flight_count(), queue.next_due()), (0, None));
}

#[test]
fn a_retried_delivery_blocks_its_ordering_key_until_it_is_due() {
    let mut queue = queue_of(&[waiting(1, 1, 1), waiting(1, 1, 2), waiting(2, 2, 1)]);
    let taken = take_all(&mut queue, Some(true));
    assert_eq!(taken.len(), 2);
    queue.on_finished(taken[0].0, NextStep::WaitUntil(NOW + 5_000), Some(false));
    queue.on_finished(taken[1].0, NextStep::Finished, None);
    assert!(take_all(&mut queue, Some(true)).is_empty());
    assert_eq!(queue.next_due(), Some(NOW + 5_000));
}

#[test]
fn each_pool_has_its_limit() {
    let count = |waiting: &[WaitingDelivery], last_succeeded| take_all(&mut queue_of(waiting), last_succeeded).len();
    assert_eq!(count(&many(0..1, 9), Some(true)), MAX_PER_RECEIVER);
    assert_eq!(count(&many(0..1, 9), None), MAX_PER_RECEIVER);
    assert_eq!(count(&many(0..20, 9), Some(true)), MAX_PER_HOST);
    assert_eq!(count(&many(0..20, 9), Some(false)), MAX_FAILING_PER_HOST);
    assert_eq!(count(&many(0..10_000, 1), Some(true)), MAX_REQUESTS);
    assert_eq!(count(&many(0..10_000, 1), Some(false)), MAX_FAILING);
    let mails: Vec<_> = (0..20)
        .map(|n| {
            let ordering_key = OrderingKey { to: Recipient::OperatorMail, subject: n };
            WaitingDelivery { ordering_key, ..waiting(n, n, 1) }
        })
        .collect();
    assert_eq!(count(&mails, None), MAX_MAILS);
}

#[test]
fn every_released_slot_is_used_again_until_the_queue_is_empty() {
    // Receivers that fail, new ones and healthy ones, a hundred on each host.
    let all = many(0..400, 7);
    let mut queue = queue_of(&all);
    let last_attempt = |to: Recipient| {
        let Recipient::Destination(id) = to else { return None };
        [None, Some(true), Some(false)][(id.to_u128() % 3) as usize]
    };
    let (mut in_flight, mut sent) = (Vec::new(), BTreeSet::new());
    loop {
        let mut checks_left = usize::MAX;
        while let Some((ordering_key, id)) = queue.take_next(NOW, &mut checks_left, |to| class(to, last_attempt(to))) {
            assert!(sent.insert(id), "nothing goes out twice");
            in_flight.push(ordering_key);
        }
        let Some(ordering_key) = in_flight.pop() else { break };
        queue.on_finished(ordering_key, NextStep::Finished, None);
    }
    assert_eq!(sent.len(), all.len());
    assert!(queue.used_slots.is_empty() && queue.in_flight.is_empty());
}

#[test]
fn a_receiver_gets_its_next_delivery_once_the_last_is_recorded() {
    let mut queue = queue_of(&many(0..1, 9));
    for _ in 0..9 {
        let taken = take_all(&mut queue, None);
        assert_eq!(taken.len(), 1);
        queue.on_finished(taken[0].0, NextStep::Finished, Some(true));
    }
    assert!(take_all(&mut queue, None).is_empty());
}

#[test]
fn an_outdated_listing_sends_nothing_twice() {
    let all = many(0..2, 1);
    let mut queue = queue_of(&all);
    let taken = take_all(&mut queue, Some(true));
    queue.replace_waiting(&all);
    assert!(take_all(&mut queue, Some(true)).is_empty());
    taken.iter().for_each(|(ordering_key, _)| queue.on_finished(*ordering_key, NextStep::Finished, Some(true)));
    assert!(take_all(&mut queue, Some(true)).is_empty());
    assert_eq!(queue.in_flight_count(), 0);
}

#[test]
fn a_turn_checks_at_most_the_given_number_of_receivers() {
    let mut queue = queue_of(&many(0..100, 1));
    let mut checks_left = 10;
    while queue.take_next(NOW, &mut checks_left, |to| class(to, Some(false))).is_some() {}
    assert_eq!((checks_left, queue.in_flight_count()), (0, MAX_FAILING_PER_HOST));
}

#[test]
fn deliveries_behind_the_first_of_their_ordering_key_are_listed() {
    let list = [waiting(1, 1, 3), waiting(1, 2, 1), waiting(1, 1, 1), waiting(2, 1, 9)];
    assert_eq!(queued_behind(&list), [list[0]]);
}
