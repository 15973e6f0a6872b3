//! Tests of the shares of accounts: bounded, fair, without idle slots beyond the reserve, and without
//! starvation.

use proptest::prelude::*;
use std::collections::BTreeMap;

use super::*;

const FAST: SlotPool = SlotPool::Fast;
const SLOW: SlotPool = SlotPool::Slow;

/// Starts all items that may start.
fn start_all<T>(slots: &mut FairSlots<T>) -> Vec<FairSlotPermit> {
    std::iter::from_fn(|| slots.start_next().map(|(_, permit)| permit)).collect()
}

fn greedy(capacity: usize, accounts: u32, pool: SlotPool) -> FairSlots<()> {
    let mut slots = FairSlots::new(capacity);
    for _ in 0..2 * capacity {
        (1..=accounts).for_each(|account| slots.push(account, pool, ()));
    }
    slots
}

#[test]
fn an_account_alone_leaves_an_eighth_and_several_share_alike() {
    // Capacity, accounts that want all of it, the fewest and the most that one gets, and what stays free.
    for (capacity, accounts, fewest, most, free) in [
        (512, 1, 448, 448, 64),
        (512, 2, 224, 224, 64),
        (512, 3, 149, 150, 64),
        (512, 10, 44, 45, 64),
        (512, 100, 4, 5, 32),
        (512, 500, 1, 2, 8),
        (32, 1, 28, 28, 4),
        (32, 3, 9, 10, 4),
        (4, 1, 3, 3, 1),
        (1, 1, 1, 1, 0),
    ] {
        let mut slots = greedy(capacity, accounts, FAST);
        let permits = start_all(&mut slots);
        let held = || (1..=accounts).map(|account| slots.held_by(account));
        let found = (held().min().unwrap(), held().max().unwrap(), capacity - permits.len());
        assert_eq!(found, (fewest, most, free), "{accounts} accounts, {capacity} slots");
    }
}

#[test]
fn a_newcomer_gets_a_slot_at_once_whatever_others_hold() {
    for accounts in [1, 2, 3, 10, 50] {
        for pool in POOLS {
            let mut slots = greedy(512, accounts, pool);
            let _held = start_all(&mut slots);
            slots.push(1_000, FAST, ());
            assert_eq!(start_all(&mut slots).len(), 1, "{accounts} accounts, {pool:?}");
        }
    }
}

#[test]
fn slow_targets_leave_an_eighth_to_fast_ones_of_the_same_account() {
    let mut slots = greedy(512, 1, SLOW);
    assert_eq!(start_all(&mut slots).len(), 384);
    for _ in 0..50 {
        slots.push(1, FAST, ());
    }
    assert_eq!(start_all(&mut slots).len(), 50);
}

#[test]
fn an_account_over_its_quarter_gets_nothing_while_one_below_it_waits() {
    let mut slots = FairSlots::new(512);
    (0..600).for_each(|_| slots.push(1, FAST, ()));
    let mut of_first = start_all(&mut slots);
    (0..600).for_each(|_| slots.push(2, FAST, ()));
    let mut of_second = start_all(&mut slots);
    while slots.held_by(2) < 128 {
        let before = slots.held_by(1);
        slots.release(of_first.pop().unwrap());
        of_second.extend(start_all(&mut slots));
        assert!(slots.held_by(1) < before, "slots that the first account returns go to the second");
    }
}

#[test]
fn both_pools_of_an_account_take_turns() {
    let mut slots = FairSlots::new(8);
    for item in 0..20 {
        slots.push(1, FAST, ("fast", item));
        slots.push(1, SLOW, ("slow", item));
    }
    let mut started = Vec::new();
    for _ in 0..10 {
        let (item, permit) = slots.start_next().unwrap();
        started.push(item);
        slots.release(permit);
    }
    let slow: Vec<_> = started.iter().filter(|(pool, _)| *pool == "slow").collect();
    assert_eq!(slow.len(), 5);
    assert!(slow.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1), "in order: {slow:?}");
}

#[test]
fn an_account_that_floods_a_bounded_queue_loses_its_own_items() {
    let mut slots = FairSlots::new(1);
    for number in 0..600 {
        assert_eq!(slots.push_bounded(600, 1, FAST, (1, number)), None);
    }
    assert_eq!(slots.push_bounded(600, 1, FAST, (1, 600)), Some((1, 600)));
    for number in 0..300 {
        let (account, _) = slots.push_bounded(600, 2, FAST, (2, number)).unwrap();
        assert_eq!(account, 1);
    }
    assert_eq!(slots.push_bounded(600, 2, FAST, (2, 300)), Some((2, 300)), "each has half of it");
    assert_eq!(slots.push_bounded(600, 3, FAST, (3, 0)).map(|(account, _)| account), Some(2));
    assert_eq!(slots.waiting(), 600);
    let kept = slots.drain();
    assert_eq!((kept.len(), slots.waiting()), (600, 0));
    assert!(start_all(&mut slots).is_empty());
}

#[test]
fn a_withdrawn_item_stops_waiting_and_leaves_nothing() {
    let mut slots = FairSlots::new(4);
    for item in 0..100u32 {
        slots.push(item % 10, if item % 3 == 0 { SLOW } else { FAST }, item);
    }
    slots.retain(|item| item % 10 == 7);
    assert_eq!(slots.waiting(), 10);
    assert_eq!(slots.accounts.len(), 1);
    slots.retain(|_| false);
    assert!(slots.accounts.is_empty() && slots.order.iter().all(BTreeSet::is_empty));
}

/// An operation on the slots.
#[derive(Debug, Clone)]
enum SlotOperation {
    Push { account: u32, slow: bool },
    Start,
    Release(prop::sample::Index),
}

fn act() -> impl Strategy<Value = SlotOperation> {
    prop_oneof![
        4 => (0u32..12, any::<bool>()).prop_map(|(account, slow)| SlotOperation::Push { account, slow }),
        3 => Just(SlotOperation::Start),
        2 => any::<prop::sample::Index>().prop_map(SlotOperation::Release),
    ]
}

proptest! {
    #[test]
    fn every_start_is_fair_and_only_the_reserve_is_ever_idle(
        capacity in 1usize..80,
        acts in prop::collection::vec(act(), 1..400),
    ) {
        let mut slots = FairSlots::new(capacity);
        let mut held: Vec<FairSlotPermit> = Vec::new();
        let mut waiting: BTreeMap<(u32, usize), Vec<usize>> = BTreeMap::new();
        for (number, act) in acts.into_iter().enumerate() {
            match act {
                SlotOperation::Push { account, slow } => {
                    let pool = if slow { SLOW } else { FAST };
                    slots.push(account, pool, number);
                    waiting.entry((account, pool.index())).or_default().push(number);
                }
                SlotOperation::Start => {
                    let before: BTreeMap<u32, usize> = (0..12).map(|one| (one, slots.held_by(one))).collect();
                    let free = POOLS.map(|pool| slots.free_slots(pool));
                    match slots.start_next() {
                        Some((item, permit)) => {
                            let (account, pool) = (permit.account, permit.pool);
                            let queue = waiting.get_mut(&(account, pool.index())).unwrap();
                            prop_assert_eq!(queue.remove(0), item, "first come, first served within an account");
                            let fewer = waiting.iter().any(|((one, of), queue)| {
                                *of == pool.index() && !queue.is_empty() && before[one] < before[&account]
                            });
                            prop_assert!(!fewer, "an account that holds fewer waits");
                            // The bound on one account.
                            prop_assert!(slots.held_by(account) + slots.reserve <= capacity.max(2));
                            held.push(permit);
                        }
                        None => {
                            for ((account, pool), _) in waiting.iter().filter(|(_, queue)| !queue.is_empty()) {
                                let reserve =
                                    (slots.reserve * before[account].min(FULL_RESERVE_AT)).div_ceil(FULL_RESERVE_AT);
                                let left = free[*pool];
                                let is_full = left <= reserve && left <= slots.reserve;
                                prop_assert!(is_full, "{account} waits with {left} free slots of pool {pool}");
                            }
                        }
                    }
                }
                SlotOperation::Release(index) if !held.is_empty() => {
                    let permit = held.swap_remove(index.index(held.len()));
                    slots.release(permit);
                }
                SlotOperation::Release(_) => {}
            }
            prop_assert_eq!(slots.held(), held.len());
            prop_assert!(held.len() <= capacity);
            prop_assert_eq!(slots.waiting(), waiting.values().map(Vec::len).sum::<usize>());
            prop_assert!(slots.accounts.len() <= slots.held() + slots.waiting());
        }
        // Nobody starves: with every slot returned in turn, all waiting items are started.
        let mut left = slots.waiting();
        while left > 0 {
            held.extend(start_all(&mut slots));
            prop_assert!(!held.is_empty());
            slots.release(held.remove(0));
            left = slots.waiting();
        }
        held.into_iter().for_each(|permit| slots.release(permit));
        prop_assert!(slots.accounts.is_empty());
    }

    #[test]
    fn a_modest_account_waits_for_at_most_one_release_per_account(
        greedy_accounts in 1u32..60,
        slow in any::<bool>(),
    ) {
        let mut slots = greedy(64, greedy_accounts, if slow { SLOW } else { FAST });
        let mut held = start_all(&mut slots);
        slots.push(99, FAST, ());
        let mut ends = 0;
        while slots.held_by(99) == 0 {
            held.extend(start_all(&mut slots));
            if slots.held_by(99) == 0 {
                slots.release(held.remove(0));
                ends += 1;
            }
        }
        prop_assert!(ends <= greedy_accounts, "{ends} ends");
    }
}
