//! The contract of a storage engine, run on both engines.

mod audit;
mod history;
mod idempotency;
mod incidents;
mod notifications;
mod pages;
mod people;
mod pings;
mod property;
mod trim;

use parallax_core::id::{AgentId, InvitationId, KeyId};
use parallax_core::machine::MachineState;
use parallax_core::vantage::{NetworkNo, Region, VantageNo};

use self::audit::{audit_entries_are_evicted_when_they_are_too_many_or_too_old, audit_entries_are_listed_newest_first};
use self::history::{
    compaction_changes_no_query_result, history_is_found_by_range, old_days_are_deleted_oldest_first_and_few_at_a_time,
};
use self::idempotency::{
    responses_are_stored_until_they_expire, stored_responses_of_a_key_are_bounded_and_evicted_oldest_first,
};
use self::incidents::{
    deleting_a_page_deletes_its_incidents_series_and_deploys, deploys_are_listed_newest_first,
    incidents_are_listed_newest_first_and_optionally_only_open_ones, windows_and_series_are_found,
};
use self::notifications::{
    a_bulletin_is_open_until_it_is_complete, deleting_a_page_deletes_its_notifications,
    destinations_and_subscribers_of_a_page_are_limited, subscribers_are_found_by_contact_and_in_slices,
    waiting_deliveries_are_listed_until_they_are_done,
};
use self::pages::{
    a_hostname_belongs_to_one_page_and_is_free_after_its_removal,
    pictures_are_stored_with_their_page_and_deleted_with_it, reserved_hostnames_are_stored_until_they_expire,
};
use self::people::{
    an_email_address_belongs_to_one_person_and_is_free_again_when_it_changes, an_email_domain_belongs_to_one_company,
    members_are_found_by_account_and_by_person, sessions_and_links_are_found_by_their_owner,
};
use self::pings::the_newest_pings_of_a_heartbeat_are_kept;
pub(crate) use self::property::everything;
use self::trim::events_are_trimmed_in_slices_and_not_before_every_consumer_read_them;
use super::batch::{MAX_NAME, MAX_TRIMMED_PER_OP};
use super::{Batch, Checkpoint, Expect, Op, Presence, StoreError};
use crate::samples::*;

macro_rules! rules {
    ($($rule:ident)*) => {
        mod in_memory {
            $(#[test]
            fn $rule() {
                super::$rule(&mut super::TestStore::in_memory());
            })*
        }

        mod on_disk {
            $(#[test]
            fn $rule() {
                let folder = tempfile::tempdir().unwrap();
                super::$rule(&mut super::TestStore::on_disk(folder.path()));
            })*
        }
    };
}

rules! {
    audit_entries_are_listed_newest_first
    audit_entries_are_evicted_when_they_are_too_many_or_too_old
    a_document_reads_back_with_the_revision_that_wrote_it
    a_batch_is_written_whole_or_not_at_all
    each_batch_of_a_group_sees_those_before_it
    a_slug_belongs_to_one_page_and_is_free_again_when_it_changes
    monitors_are_listed_in_page_order
    the_monitor_limit_counts_all_monitors_of_the_account_except_components
    an_invitation_is_used_once
    counters_change_only_if_they_have_the_expected_value
    events_get_numbers_without_gaps_and_are_found_by_monitor
    readings_of_a_batch_are_one_entry_and_trimmed_oldest_first
    history_is_found_by_range
    compaction_changes_no_query_result
    old_days_are_deleted_oldest_first_and_few_at_a_time
    a_deleted_monitor_leaves_nothing_behind
    long_values_read_back_and_shrink
    the_newest_pings_of_a_heartbeat_are_kept
    responses_are_stored_until_they_expire
    stored_responses_of_a_key_are_bounded_and_evicted_oldest_first
    incidents_are_listed_newest_first_and_optionally_only_open_ones
    windows_and_series_are_found
    deploys_are_listed_newest_first
    deleting_a_page_deletes_its_incidents_series_and_deploys
    destinations_and_subscribers_of_a_page_are_limited
    subscribers_are_found_by_contact_and_in_slices
    waiting_deliveries_are_listed_until_they_are_done
    a_bulletin_is_open_until_it_is_complete
    deleting_a_page_deletes_its_notifications
    an_email_address_belongs_to_one_person_and_is_free_again_when_it_changes
    members_are_found_by_account_and_by_person
    an_email_domain_belongs_to_one_company
    sessions_and_links_are_found_by_their_owner
    oversized_names_and_values_are_refused
    a_query_never_sees_part_of_a_batch
    a_recreated_record_has_another_revision
    a_hostname_belongs_to_one_page_and_is_free_after_its_removal
    pictures_are_stored_with_their_page_and_deleted_with_it
    reserved_hostnames_are_stored_until_they_expire
    events_are_trimmed_in_slices_and_not_before_every_consumer_read_them
}

fn conflict<T: std::fmt::Debug>(result: super::Result<T>) -> Expect {
    match result {
        Err(StoreError::Conflict(expect)) => expect,
        other => panic!("not a conflict: {other:?}"),
    }
}

fn a_document_reads_back_with_the_revision_that_wrote_it(store: &mut TestStore) {
    let mut batch = Batch::new();
    batch.write(account(1)).write(page(2, 1, "two")).write(monitor(3, 2, 0)).write(key(4, 1)).write(key(5, 9));
    batch.write(agent(6)).write(invitation(7, None));
    let first = store.commit(&batch).unwrap();
    let second = store.write(account(2));
    assert_eq!((first.revision, second.revision), (1, 2));
    let reader = &store.reader;
    let read = reader.account(account_id(1)).unwrap().unwrap();
    assert_eq!((read.revision, read.value), (1, account(1)));
    assert_eq!(reader.accounts().unwrap().iter().map(|it| it.revision).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(reader.page(page_id(2)).unwrap().unwrap().value, page(2, 1, "two"));
    assert_eq!(reader.pages_of(account_id(1)).unwrap(), reader.pages().unwrap());
    assert_eq!(reader.monitor(monitor_id(3)).unwrap().unwrap().value, monitor(3, 2, 0));
    assert_eq!(reader.key(KeyId::from_u128(4)).unwrap().unwrap().value, key(4, 1));
    assert_eq!(reader.keys_of(account_id(1)).unwrap().len(), 1);
    assert_eq!(reader.agent(AgentId::from_u128(6)).unwrap().unwrap().value, agent(6));
    assert_eq!(reader.agents().unwrap().len(), 1);
    assert_eq!(reader.invitation(InvitationId::from_u128(7)).unwrap(), reader.invitations().unwrap().pop());
    store.write(Op::DeleteKey(KeyId::from_u128(4)));
    store.write(Op::DeleteAccount(account_id(1)));
    assert_eq!(store.reader.keys_of(account_id(1)), Ok(Vec::new()));
    assert_eq!(store.reader.account(account_id(1)), Ok(None));
}

fn a_batch_is_written_whole_or_not_at_all(store: &mut TestStore) {
    store.write(account(1));
    let mut batch = Batch::new();
    batch.write(account(2)).event(event(1, None)).expect(Expect::Account(account_id(1), Presence::At(7)));
    batch.readings = readings(3, 0);
    assert_eq!(conflict(store.commit(&batch)), Expect::Account(account_id(1), Presence::At(7)));
    assert_eq!(store.reader.account(account_id(2)), Ok(None));
    assert_eq!((store.reader.last_event(), store.reader.last_reading()), (Ok(0), Ok(0)));
    for (expect, holds) in [
        (Expect::Account(account_id(1), Presence::At(1)), true),
        (Expect::Account(account_id(1), Presence::Present), true),
        (Expect::Account(account_id(1), Presence::Absent), false),
        (Expect::Account(account_id(2), Presence::Absent), true),
        (Expect::Monitor(monitor_id(2), Presence::Present), false),
        (Expect::Key(KeyId::from_u128(2), Presence::At(0)), false),
    ] {
        assert_eq!(store.commit(Batch::new().expect(expect.clone())).is_ok(), holds, "{expect}");
    }
}

fn each_batch_of_a_group_sees_those_before_it(store: &mut TestStore) {
    let make = |n: u128| {
        let mut batch = Batch::new();
        batch.expect(Expect::Account(account_id(1), Presence::Absent)).write(account(1)).event(event(n as i64, None));
        batch
    };
    let results = store.writer.commit(&[make(1), make(2), Batch::new()]);
    assert_eq!(results[0].as_ref().unwrap().last_event, 1);
    assert!(matches!(results[1], Err(StoreError::Conflict(_))));
    assert_eq!(results[2].as_ref().unwrap().revision, 2);
    assert_eq!(store.reader.last_event(), Ok(1));
}

fn a_slug_belongs_to_one_page_and_is_free_again_when_it_changes(store: &mut TestStore) {
    store.write(page(1, 1, "one"));
    let result = store.commit(Batch::new().write(page(2, 1, "one")));
    assert_eq!(conflict(result), Expect::SlugFree("one".to_owned(), page_id(2)));
    store.write(page(1, 1, "first"));
    store.write(page(2, 2, "one"));
    assert_eq!(store.reader.page_by_slug("one").unwrap().unwrap().value.id, page_id(2));
    assert_eq!(store.reader.page_by_slug("first").unwrap().unwrap().value.id, page_id(1));
    store.write(Op::DeletePage(page_id(2)));
    assert_eq!(store.reader.page_by_slug("one"), Ok(None));
    assert_eq!(store.reader.pages_of(account_id(2)), Ok(Vec::new()));
    assert!(store.commit(Batch::new().expect(Expect::SlugFree("one".to_owned(), page_id(9)))).is_ok());
}

fn monitors_are_listed_in_page_order(store: &mut TestStore) {
    let mut batch = Batch::new();
    batch.write(page(1, 1, "a")).write(page(2, 1, "b"));
    batch.write(monitor(1, 1, 2)).write(monitor(2, 1, 0)).write(monitor(3, 1, 1)).write(monitor(4, 2, 0));
    batch.write(monitor(5, 1, 1));
    store.commit(&batch).unwrap();
    let order = |store: &TestStore| {
        let listed = store.reader.monitors_of(page_id(1)).unwrap();
        listed.into_iter().map(|it| it.value.id.to_u128()).collect::<Vec<_>>()
    };
    assert_eq!(order(store), [2, 3, 5, 1]);
    store.write(monitor(2, 2, 0));
    assert_eq!(order(store), [3, 5, 1]);
    let listed_after = |after, limit| {
        let listed = store.reader.monitors_after(after, limit).unwrap();
        listed.into_iter().map(|it| it.value.id.to_u128()).collect::<Vec<_>>()
    };
    assert_eq!(listed_after(None, usize::MAX), [1, 2, 3, 4, 5]);
    assert_eq!((listed_after(Some(monitor_id(2)), 2), listed_after(Some(monitor_id(5)), 2)), (vec![3, 4], vec![]));
}

fn the_monitor_limit_counts_all_monitors_of_the_account_except_components(store: &mut TestStore) {
    let mut batch = Batch::new();
    batch.write(page(1, 1, "a")).write(page(2, 1, "b")).write(page(3, 2, "c"));
    batch.write(monitor(1, 1, 0)).write(monitor(2, 2, 0)).write(monitor(3, 3, 0)).write(component(4, 1));
    store.commit(&batch).unwrap();
    for (limit, is_ok) in [(1, false), (2, true)] {
        let below = Expect::ComponentsBelow(account_id(1), limit);
        assert_eq!(store.commit(Batch::new().expect(below)).is_ok(), is_ok);
    }
    let below = |limit| Expect::MonitorsBelow(account_id(1), limit);
    assert_eq!(conflict(store.commit(Batch::new().expect(below(2)))), below(2));
    let mut third = Batch::new();
    third.expect(below(3)).write(monitor(5, 1, 1));
    let mut fourth = Batch::new();
    fourth.expect(below(3)).write(monitor(6, 1, 2));
    let results = store.writer.commit(&[third, fourth]);
    assert!(results[0].is_ok() && results[1].is_err(), "the second sees the first: {results:?}");
    store.write(Op::DeleteMonitor(monitor_id(5)));
    assert!(store.commit(Batch::new().expect(below(3))).is_ok());
    assert!(store.commit(Batch::new().expect(Expect::NoMonitors(page_id(1)))).is_err());
    assert!(store.commit(Batch::new().expect(Expect::NoMonitors(page_id(4)))).is_ok());
}

fn an_invitation_is_used_once(store: &mut TestStore) {
    let unused = Expect::InvitationUnused(InvitationId::from_u128(1));
    assert!(store.commit(Batch::new().expect(unused.clone())).is_err());
    store.write(invitation(1, None));
    let mut join = Batch::new();
    join.expect(unused.clone()).write(agent(1)).write(invitation(1, Some(AgentId::from_u128(1))));
    let results = store.writer.commit(&[join.clone(), join]);
    assert!(results[0].is_ok());
    assert_eq!(conflict(results[1].clone()), unused);
}

fn counters_change_only_if_they_have_the_expected_value(store: &mut TestStore) {
    let mut batch = Batch::new();
    batch.expect(Expect::NextSlot(0)).expect(Expect::NextVantage(VantageNo(0))).expect(Expect::Networks(0));
    batch.expect(Expect::Cursor("alerts".to_owned(), 0));
    batch.write(Op::SetNextSlot(1)).write(Op::SetNextVantage(VantageNo(1)));
    batch.write(Op::PutNetwork("one".to_owned(), NetworkNo(0))).write(Op::SetCursor("alerts".to_owned(), 12));
    store.commit(&batch).unwrap();
    assert_eq!(conflict(store.commit(&batch)), Expect::NextSlot(0));
    let reader = &store.reader;
    assert_eq!((reader.next_slot(), reader.next_vantage()), (Ok(1), Ok(VantageNo(1))));
    assert_eq!(reader.networks(), Ok([("one".to_owned(), NetworkNo(0))].into()));
    assert_eq!((reader.cursor("alerts"), reader.cursor("pages")), (Ok(12), Ok(0)));
    for expect in [Expect::NextVantage(VantageNo(0)), Expect::Networks(2), Expect::Cursor("alerts".to_owned(), 11)] {
        assert_eq!(conflict(store.commit(Batch::new().expect(expect.clone()))), expect);
    }
}

fn events_get_numbers_without_gaps_and_are_found_by_monitor(store: &mut TestStore) {
    let mut batch = Batch::new();
    batch.write(monitor(1, 1, 0)).write(monitor(2, 1, 0));
    batch.event(event(10, Some(1))).event(event(11, Some(2))).event(event(12, None));
    assert_eq!(store.commit(&batch).unwrap().last_event, 3);
    for n in 13..16 {
        store.commit(Batch::new().event(event(n, Some(1)))).unwrap();
    }
    assert_eq!(store.write(account(1)).last_event, 6);
    let seqs = |events: Vec<crate::JournalEvent>| events.into_iter().map(|it| it.seq).collect::<Vec<_>>();
    let reader = &store.reader;
    assert_eq!(seqs(reader.events_after(0, 100).unwrap()), [1, 2, 3, 4, 5, 6]);
    assert_eq!(seqs(reader.events_after(2, 2).unwrap()), [3, 4]);
    assert_eq!(seqs(reader.events_after(u64::MAX, 2).unwrap()), [0u64; 0]);
    assert_eq!(seqs(reader.events_of(monitor_id(1), None, 3).unwrap()), [6, 5, 4]);
    assert_eq!(seqs(reader.events_of(monitor_id(1), Some(5), 3).unwrap()), [4, 1]);
    let of = |monitors: &[u128], before, limit| {
        let ids: Vec<_> = monitors.iter().map(|n| monitor_id(*n)).collect();
        seqs(reader.events_of_many(&ids, before, limit).unwrap())
    };
    assert_eq!(of(&[1, 2], None, 9), [6, 5, 4, 2, 1], "the third is of no monitor");
    assert_eq!(of(&[2, 1], None, 4), [6, 5, 4, 2]);
    assert_eq!((of(&[2, 9, 1], Some(4), 9), of(&[2], Some(2), 9)), (vec![2, 1], vec![]));
    assert_eq!((of(&[], None, 9), of(&[1, 2], None, 0), of(&[1], Some(0), 9)), (vec![], vec![], vec![]));
    assert_eq!(reader.events_after(1, 1).unwrap()[0].event, event(11, Some(2)));
    assert_eq!(reader.last_event(), Ok(6));
}

fn readings_of_a_batch_are_one_entry_and_trimmed_oldest_first(store: &mut TestStore) {
    let entry = |seed| Batch { readings: readings(5, seed), ..Batch::new() };
    let group: Vec<_> = (0..MAX_TRIMMED_PER_OP as u64 + 10).map(entry).collect();
    let results = store.writer.commit(&group);
    assert_eq!(results[3].as_ref().unwrap().readings, Some(4));
    let first = |store: &TestStore| store.reader.readings_after(0, 1).unwrap().first().map(|it| it.seq);
    store.write(Op::TrimReadings(2));
    assert_eq!(first(store), Some(3));
    assert_eq!(store.reader.readings_after(2, 1).unwrap()[0].readings, readings(5, 2));
    store.write(Op::TrimReadings(u64::MAX));
    assert_eq!(first(store), Some(3 + MAX_TRIMMED_PER_OP as u64), "as many at once as may be");
    store.write(Op::TrimReadings(u64::MAX));
    assert_eq!(first(store), None);
    assert_eq!(store.commit(&entry(0)).unwrap().readings, Some(MAX_TRIMMED_PER_OP as u64 + 11));
    assert_eq!(store.reader.last_reading(), Ok(MAX_TRIMMED_PER_OP as u64 + 11));
}

fn a_deleted_monitor_leaves_nothing_behind(store: &mut TestStore) {
    let id = monitor_id(1);
    let mut batch = Batch::new();
    batch.write(monitor(1, 1, 0)).write(Op::PutMachine(id, Box::<MachineState>::default())).event(event(1, Some(1)));
    for hour in 0..1500 {
        batch.write(Op::PutBlock(block(1, Region::Asia, hour, vec![1; 9])));
        batch.write(Op::PutHour(rollup(1, hour, vec![1])));
    }
    store.commit(&batch).unwrap();
    assert!(store.reader.machine(id).unwrap().is_some());
    let mut batch = Batch::new();
    batch.write(Op::DeleteMonitor(id)).write(Op::PutDay(rollup(1, 3, vec![1])));
    batch.write(Op::PutMachine(id, Box::<MachineState>::default())).event(event(2, Some(1)));
    store.commit(&batch).unwrap();
    let assert_nothing_left = |store: &TestStore| {
        let reader = &store.reader;
        assert_eq!((reader.blocks(id, Region::Asia, 0..99), reader.hours(id, 0..99)), (Ok(vec![]), Ok(vec![])));
        assert_eq!((reader.days(id, 0..99), reader.machine(id)), (Ok(vec![]), Ok(None)));
        assert_eq!((reader.events_of(id, None, 9), reader.monitors_of(page_id(1))), (Ok(vec![]), Ok(vec![])));
        assert_eq!(reader.last_event(), Ok(2), "the journal keeps its events");
    };
    assert_nothing_left(store);
    store.write(monitor(1, 1, 0));
    let reader = &store.reader;
    assert_eq!((reader.blocks(id, Region::Asia, 0..99), reader.events_of(id, None, 9)), (Ok(vec![]), Ok(vec![])));
    store.write(Op::DeleteMonitor(id));
    store.tidy();
    assert_nothing_left(store);
}

fn long_values_read_back_and_shrink(store: &mut TestStore) {
    store.write(monitor(1, 1, 0));
    for size in [24 << 10, (24 << 10) + 1, 300_000, 1_000_000, 70_000, 5, 0] {
        let bytes: Vec<u8> = (0..size).map(|n: u32| (n / 7) as u8).collect();
        store.write(Op::PutHour(rollup(1, 4, bytes.clone())));
        assert_eq!(store.reader.hours(monitor_id(1), 4..5), Ok(vec![rollup(1, 4, bytes)]), "{size}");
    }
    let long = Batch { readings: readings(20_000, 1), ..Batch::new() };
    store.commit(&long).unwrap();
    assert_eq!(store.reader.readings_after(0, 9).unwrap()[0].readings, long.readings);
    store.write(Op::TrimReadings(1));
    assert_eq!(store.reader.readings_after(0, 9), Ok(Vec::new()));
    assert_eq!(store.reader.size().unwrap().oversized_pages, 0);
}

fn oversized_names_and_values_are_refused(store: &mut TestStore) {
    let long = "x".repeat(MAX_NAME + 1);
    for op in
        [Op::SetCursor(long.clone(), 1), page(1, 1, &long).into(), Op::PutStoredResponse(long, stored_response(1, 1))]
    {
        assert_eq!(store.commit(Batch::new().write(op)), Err(StoreError::TooLarge("a name")));
    }
    let bytes = vec![0; super::batch::MAX_BYTES + 1];
    let checkpoint = Op::PutCheckpoint(Checkpoint { part: 0, through: 0, bytes });
    assert_eq!(store.commit(Batch::new().write(checkpoint)), Err(StoreError::TooLarge("a value")));
    assert_eq!(store.write(account(1)).revision, 1);
}

fn a_query_never_sees_part_of_a_batch(store: &mut TestStore) {
    let reader = store.reader.clone();
    let last = 300;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut newest = 0;
            while newest < last {
                let revisions: Vec<_> = reader.accounts().unwrap().iter().map(|it| it.revision).collect();
                assert!(revisions.windows(2).all(|pair| pair[0] == pair[1]), "{revisions:?}");
                newest = revisions.first().copied().unwrap_or(0);
            }
        });
        for _ in 0..last {
            store.commit(Batch::new().write(account(1)).write(account(2)).write(account(3))).unwrap();
        }
    });
}

fn a_recreated_record_has_another_revision(store: &mut TestStore) {
    let old_revision = store.write(account(1)).revision;
    store.write(Op::DeleteAccount(account_id(1)));
    store.write(account(1));
    assert!(store.commit(Batch::new().expect(Expect::Account(account_id(1), Presence::At(old_revision)))).is_err());
}
