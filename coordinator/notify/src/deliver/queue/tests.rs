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
fn class(receiver: Recipient, last: Option<bool>) -> ReceiverClass {
    let Recipient::Destination(id) = receiver else {
        return ReceiverClass { host: None, last_succeeded: last };
    };
    ReceiverClass { host: Some(format!("h{}", id.to_u128() / 100).into()), last_succeeded: last }
}

/// Takes everything that may be sent.
fn take(queue: &mut DeliveryQueue, last: Option<bool>) -> Vec<(OrderingKey, DeliveryId)> {
    let mut looks = usize::MAX;
    std::iter::from_fn(|| queue.take_next(NOW, &mut looks, |to| class(to, last))).collect()
}

fn filled(waiting: &[WaitingDelivery]) -> DeliveryQueue {
    let mut queue = DeliveryQueue::default();
    queue.replace_waiting(waiting);
    queue
}

fn many(receivers: std::ops::Range<u128>, monitors: u128) -> Vec<WaitingDelivery> {
    receivers.flat_map(|it| (0..monitors).map(move |monitor| waiting(it, monitor, 1))).collect()
}

#[test]
fn a_lane_has_one_on_its_way_and_goes_in_its_order() {
    let mut queue = filled(&[waiting(1, 1, 3), waiting(1, 1, 1), waiting(1, 1, 2)]);
    for seq in 1..=3 {
        let taken = take(&mut queue, Some(true));
        assert_eq!(taken.iter().map(|(_, id)| *id).collect::<Vec<_>>(), [waiting(1, 1, seq).id]);
        queue.on_finished(taken[0].0, NextStep::Finished, Some(true));
    }
    assert_eq!((queue.in_flight_count(), queue.next_due()), (0, None));
}

#[test]
fn one_that_has_to_wait_holds_its_lane_up_until_its_time() {
    let mut queue = filled(&[waiting(1, 1, 1), waiting(1, 1, 2), waiting(2, 2, 1)]);
    let taken = take(&mut queue, Some(true));
    assert_eq!(taken.len(), 2);
    queue.on_finished(taken[0].0, NextStep::WaitUntil(NOW + 5_000), Some(false));
    queue.on_finished(taken[1].0, NextStep::Finished, None);
    assert!(take(&mut queue, Some(true)).is_empty());
    assert_eq!(queue.next_due(), Some(NOW + 5_000));
}

#[test]
fn slots_are_shared_as_they_should_be() {
    let count = |waiting: &[WaitingDelivery], last| take(&mut filled(waiting), last).len();
    assert_eq!(count(&many(0..1, 9), Some(true)), MAX_PER_RECEIVER);
    assert_eq!(count(&many(0..1, 9), None), MAX_PER_RECEIVER);
    assert_eq!(count(&many(0..20, 9), Some(true)), MAX_PER_HOST);
    assert_eq!(count(&many(0..20, 9), Some(false)), MAX_FAILING_PER_HOST);
    assert_eq!(count(&many(0..10_000, 1), Some(true)), MAX_REQUESTS);
    assert_eq!(count(&many(0..10_000, 1), Some(false)), MAX_FAILING);
    let mails: Vec<_> = (0..20)
        .map(|n| {
            let lane = OrderingKey { to: Recipient::OperatorMail, subject: n };
            WaitingDelivery { ordering_key: lane, ..waiting(n, n, 1) }
        })
        .collect();
    assert_eq!(count(&mails, None), MAX_MAILS);
}

#[test]
fn every_slot_that_is_given_back_is_taken_again_until_nothing_is_left() {
    // Receivers that fail, new ones and healthy ones, a hundred on each host.
    let all = many(0..400, 7);
    let mut queue = filled(&all);
    let last = |to: Recipient| {
        let Recipient::Destination(id) = to else { return None };
        [None, Some(true), Some(false)][(id.to_u128() % 3) as usize]
    };
    let (mut on_way, mut seen) = (Vec::new(), BTreeSet::new());
    loop {
        let mut looks = usize::MAX;
        while let Some((lane, id)) = queue.take_next(NOW, &mut looks, |to| class(to, last(to))) {
            assert!(seen.insert(id), "nothing goes out twice");
            on_way.push(lane);
        }
        let Some(lane) = on_way.pop() else { break };
        queue.on_finished(lane, NextStep::Finished, None);
    }
    assert_eq!(seen.len(), all.len());
    assert!(queue.used_slots.is_empty() && queue.in_flight.is_empty());
}

#[test]
fn a_receiver_gets_the_next_once_the_last_is_noted() {
    let mut queue = filled(&many(0..1, 9));
    for _ in 0..9 {
        let taken = take(&mut queue, None);
        assert_eq!(taken.len(), 1);
        queue.on_finished(taken[0].0, NextStep::Finished, Some(true));
    }
    assert!(take(&mut queue, None).is_empty());
}

#[test]
fn a_list_that_is_older_than_what_is_on_its_way_sends_nothing_twice() {
    let all = many(0..2, 1);
    let mut queue = filled(&all);
    let taken = take(&mut queue, Some(true));
    queue.replace_waiting(&all);
    assert!(take(&mut queue, Some(true)).is_empty());
    taken.iter().for_each(|(lane, _)| queue.on_finished(*lane, NextStep::Finished, Some(true)));
    assert!(take(&mut queue, Some(true)).is_empty());
    assert_eq!(queue.in_flight_count(), 0);
}

#[test]
fn a_turn_looks_at_no_more_than_it_may() {
    let mut queue = filled(&many(0..100, 1));
    let mut looks = 10;
    while queue.take_next(NOW, &mut looks, |to| class(to, Some(false))).is_some() {}
    assert_eq!((looks, queue.in_flight_count()), (0, MAX_FAILING_PER_HOST));
}

#[test]
fn those_behind_the_first_of_their_lane_are_told() {
    let list = [waiting(1, 1, 3), waiting(1, 2, 1), waiting(1, 1, 1), waiting(2, 1, 9)];
    assert_eq!(queued_behind(&list), [list[0]]);
}
