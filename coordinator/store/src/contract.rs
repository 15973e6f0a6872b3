//! The contract of a storage engine, run on both engines.

mod history;
mod idempotency;
mod incidents;
mod notifications;
mod pages;
mod pings;
mod property;
mod trim;

use parallax_core::id::{AgentId, InvitationId, KeyId};
use parallax_core::machine::MachineState;
use parallax_core::vantage::{NetworkNo, Region, VantageNo};

use self::history::{
    folding_changes_no_answer, history_is_found_by_range, old_days_are_dropped_the_oldest_first_and_few_at_once,
};
use self::idempotency::{
    an_api_keys_answers_are_bounded_and_the_oldest_go_first, answers_are_remembered_until_they_expire,
};
use self::incidents::{
    a_page_takes_its_incidents_series_and_deploys_with_it, deploys_are_listed_newest_first,
    incidents_are_listed_newest_first_and_open_ones_alone, windows_and_series_are_found,
};
use self::notifications::{
    a_page_has_so_many_destinations_and_subscribers, a_page_takes_with_it_what_it_sent,
    news_is_open_until_everybody_is_reached, subscribers_are_found_by_contact_and_in_slices,
    what_waits_is_listed_until_it_does_not,
};
use self::pages::{
    a_hostname_belongs_to_one_page_and_is_free_again, a_page_keeps_its_pictures_and_takes_them_with_it,
    freed_hostnames_are_kept_for_a_while,
};
use self::pings::the_newest_pings_of_a_heartbeat_are_kept;
pub(crate) use self::property::everything;
use self::trim::events_are_dropped_in_slices_and_never_before_a_reader_saw_them;
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
    a_document_reads_back_with_the_revision_that_wrote_it
    a_batch_is_written_whole_or_not_at_all
    each_batch_of_a_group_sees_those_before_it
    a_slug_belongs_to_one_page_and_is_free_again_when_it_changes
    monitors_are_listed_in_page_order
    the_plans_limit_counts_the_accounts_monitors_but_not_components
    an_invitation_is_used_once
    counters_move_only_from_where_they_were_seen
    events_get_numbers_without_gaps_and_are_found_by_monitor
    readings_are_one_entry_a_batch_and_are_trimmed_from_the_front
    history_is_found_by_range
    folding_changes_no_answer
    old_days_are_dropped_the_oldest_first_and_few_at_once
    a_deleted_monitor_leaves_nothing_behind
    long_values_read_back_and_shrink
    the_newest_pings_of_a_heartbeat_are_kept
    answers_are_remembered_until_they_expire
    an_api_keys_answers_are_bounded_and_the_oldest_go_first
    incidents_are_listed_newest_first_and_open_ones_alone
    windows_and_series_are_found
    deploys_are_listed_newest_first
    a_page_takes_its_incidents_series_and_deploys_with_it
    a_page_has_so_many_destinations_and_subscribers
    subscribers_are_found_by_contact_and_in_slices
    what_waits_is_listed_until_it_does_not
    news_is_open_until_everybody_is_reached
    a_page_takes_with_it_what_it_sent
    what_is_too_large_is_refused
    a_question_never_sees_half_a_batch
    a_record_made_anew_is_not_taken_for_the_old_one
    a_hostname_belongs_to_one_page_and_is_free_again
    a_page_keeps_its_pictures_and_takes_them_with_it
    freed_hostnames_are_kept_for_a_while
    events_are_dropped_in_slices_and_never_before_a_reader_saw_them
}

fn conflict<T: std::fmt::Debug>(result: super::Result<T>) -> Expect {
    match result {
        Err(StoreError::Conflict(expect)) => expect,
        other => panic!("not a conflict: {other:?}"),
    }
}

fn a_document_reads_back_with_the_revision_that_wrote_it(bench: &mut TestStore) {
    let mut batch = Batch::new();
    batch.write(account(1)).write(page(2, 1, "two")).write(monitor(3, 2, 0)).write(key(4, 1)).write(key(5, 9));
    batch.write(agent(6)).write(invitation(7, None));
    let first = bench.commit(&batch).unwrap();
    let second = bench.write(account(2));
    assert_eq!((first.revision, second.revision), (1, 2));
    let reader = &bench.reader;
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
    bench.write(Op::DeleteKey(KeyId::from_u128(4)));
    bench.write(Op::DeleteAccount(account_id(1)));
    assert_eq!(bench.reader.keys_of(account_id(1)), Ok(Vec::new()));
    assert_eq!(bench.reader.account(account_id(1)), Ok(None));
}

fn a_batch_is_written_whole_or_not_at_all(bench: &mut TestStore) {
    bench.write(account(1));
    let mut batch = Batch::new();
    batch.write(account(2)).event(event(1, None)).expect(Expect::Account(account_id(1), Presence::At(7)));
    batch.readings = readings(3, 0);
    assert_eq!(conflict(bench.commit(&batch)), Expect::Account(account_id(1), Presence::At(7)));
    assert_eq!(bench.reader.account(account_id(2)), Ok(None));
    assert_eq!((bench.reader.last_event(), bench.reader.last_reading()), (Ok(0), Ok(0)));
    for (expect, fits) in [
        (Expect::Account(account_id(1), Presence::At(1)), true),
        (Expect::Account(account_id(1), Presence::Present), true),
        (Expect::Account(account_id(1), Presence::Absent), false),
        (Expect::Account(account_id(2), Presence::Absent), true),
        (Expect::Monitor(monitor_id(2), Presence::Present), false),
        (Expect::Key(KeyId::from_u128(2), Presence::At(0)), false),
    ] {
        assert_eq!(bench.commit(Batch::new().expect(expect.clone())).is_ok(), fits, "{expect}");
    }
}

fn each_batch_of_a_group_sees_those_before_it(bench: &mut TestStore) {
    let make = |n: u128| {
        let mut batch = Batch::new();
        batch.expect(Expect::Account(account_id(1), Presence::Absent)).write(account(1)).event(event(n as i64, None));
        batch
    };
    let results = bench.writer.commit(&[make(1), make(2), Batch::new()]);
    assert_eq!(results[0].as_ref().unwrap().last_event, 1);
    assert!(matches!(results[1], Err(StoreError::Conflict(_))));
    assert_eq!(results[2].as_ref().unwrap().revision, 2);
    assert_eq!(bench.reader.last_event(), Ok(1));
}

fn a_slug_belongs_to_one_page_and_is_free_again_when_it_changes(bench: &mut TestStore) {
    bench.write(page(1, 1, "one"));
    let taken = bench.commit(Batch::new().write(page(2, 1, "one")));
    assert_eq!(conflict(taken), Expect::SlugFree("one".to_owned(), page_id(2)));
    bench.write(page(1, 1, "first"));
    bench.write(page(2, 2, "one"));
    assert_eq!(bench.reader.page_by_slug("one").unwrap().unwrap().value.id, page_id(2));
    assert_eq!(bench.reader.page_by_slug("first").unwrap().unwrap().value.id, page_id(1));
    bench.write(Op::DeletePage(page_id(2)));
    assert_eq!(bench.reader.page_by_slug("one"), Ok(None));
    assert_eq!(bench.reader.pages_of(account_id(2)), Ok(Vec::new()));
    assert!(bench.commit(Batch::new().expect(Expect::SlugFree("one".to_owned(), page_id(9)))).is_ok());
}

fn monitors_are_listed_in_page_order(bench: &mut TestStore) {
    let mut batch = Batch::new();
    batch.write(page(1, 1, "a")).write(page(2, 1, "b"));
    batch.write(monitor(1, 1, 2)).write(monitor(2, 1, 0)).write(monitor(3, 1, 1)).write(monitor(4, 2, 0));
    batch.write(monitor(5, 1, 1));
    bench.commit(&batch).unwrap();
    let order = |bench: &TestStore| {
        let listed = bench.reader.monitors_of(page_id(1)).unwrap();
        listed.into_iter().map(|it| it.value.id.to_u128()).collect::<Vec<_>>()
    };
    assert_eq!(order(bench), [2, 3, 5, 1]);
    bench.write(monitor(2, 2, 0));
    assert_eq!(order(bench), [3, 5, 1]);
    let behind = |after, limit| {
        let listed = bench.reader.monitors_after(after, limit).unwrap();
        listed.into_iter().map(|it| it.value.id.to_u128()).collect::<Vec<_>>()
    };
    assert_eq!(behind(None, usize::MAX), [1, 2, 3, 4, 5]);
    assert_eq!((behind(Some(monitor_id(2)), 2), behind(Some(monitor_id(5)), 2)), (vec![3, 4], vec![]));
}

fn the_plans_limit_counts_the_accounts_monitors_but_not_components(bench: &mut TestStore) {
    let mut batch = Batch::new();
    batch.write(page(1, 1, "a")).write(page(2, 1, "b")).write(page(3, 2, "c"));
    batch.write(monitor(1, 1, 0)).write(monitor(2, 2, 0)).write(monitor(3, 3, 0)).write(component(4, 1));
    bench.commit(&batch).unwrap();
    for (limit, is_ok) in [(1, false), (2, true)] {
        let below = Expect::ComponentsBelow(account_id(1), limit);
        assert_eq!(bench.commit(Batch::new().expect(below)).is_ok(), is_ok);
    }
    let below = |limit| Expect::MonitorsBelow(account_id(1), limit);
    assert_eq!(conflict(bench.commit(Batch::new().expect(below(2)))), below(2));
    let mut third = Batch::new();
    third.expect(below(3)).write(monitor(5, 1, 1));
    let mut fourth = Batch::new();
    fourth.expect(below(3)).write(monitor(6, 1, 2));
    let results = bench.writer.commit(&[third, fourth]);
    assert!(results[0].is_ok() && results[1].is_err(), "the second sees the first: {results:?}");
    bench.write(Op::DeleteMonitor(monitor_id(5)));
    assert!(bench.commit(Batch::new().expect(below(3))).is_ok());
    assert!(bench.commit(Batch::new().expect(Expect::NoMonitors(page_id(1)))).is_err());
    assert!(bench.commit(Batch::new().expect(Expect::NoMonitors(page_id(4)))).is_ok());
}

fn an_invitation_is_used_once(bench: &mut TestStore) {
    let unused = Expect::InvitationUnused(InvitationId::from_u128(1));
    assert!(bench.commit(Batch::new().expect(unused.clone())).is_err());
    bench.write(invitation(1, None));
    let mut join = Batch::new();
    join.expect(unused.clone()).write(agent(1)).write(invitation(1, Some(AgentId::from_u128(1))));
    let results = bench.writer.commit(&[join.clone(), join]);
    assert!(results[0].is_ok());
    assert_eq!(conflict(results[1].clone()), unused);
}

fn counters_move_only_from_where_they_were_seen(bench: &mut TestStore) {
    let mut batch = Batch::new();
    batch.expect(Expect::NextSlot(0)).expect(Expect::NextVantage(VantageNo(0))).expect(Expect::Networks(0));
    batch.expect(Expect::Cursor("alerts".to_owned(), 0));
    batch.write(Op::SetNextSlot(1)).write(Op::SetNextVantage(VantageNo(1)));
    batch.write(Op::PutNetwork("one".to_owned(), NetworkNo(0))).write(Op::SetCursor("alerts".to_owned(), 12));
    bench.commit(&batch).unwrap();
    assert_eq!(conflict(bench.commit(&batch)), Expect::NextSlot(0));
    let reader = &bench.reader;
    assert_eq!((reader.next_slot(), reader.next_vantage()), (Ok(1), Ok(VantageNo(1))));
    assert_eq!(reader.networks(), Ok([("one".to_owned(), NetworkNo(0))].into()));
    assert_eq!((reader.cursor("alerts"), reader.cursor("pages")), (Ok(12), Ok(0)));
    for expect in [Expect::NextVantage(VantageNo(0)), Expect::Networks(2), Expect::Cursor("alerts".to_owned(), 11)] {
        assert_eq!(conflict(bench.commit(Batch::new().expect(expect.clone()))), expect);
    }
}

fn events_get_numbers_without_gaps_and_are_found_by_monitor(bench: &mut TestStore) {
    let mut batch = Batch::new();
    batch.write(monitor(1, 1, 0)).write(monitor(2, 1, 0));
    batch.event(event(10, Some(1))).event(event(11, Some(2))).event(event(12, None));
    assert_eq!(bench.commit(&batch).unwrap().last_event, 3);
    for n in 13..16 {
        bench.commit(Batch::new().event(event(n, Some(1)))).unwrap();
    }
    assert_eq!(bench.write(account(1)).last_event, 6);
    let seqs = |events: Vec<crate::JournalEvent>| events.into_iter().map(|it| it.seq).collect::<Vec<_>>();
    let reader = &bench.reader;
    assert_eq!(seqs(reader.events_after(0, 100).unwrap()), [1, 2, 3, 4, 5, 6]);
    assert_eq!(seqs(reader.events_after(2, 2).unwrap()), [3, 4]);
    assert_eq!(seqs(reader.events_after(u64::MAX, 2).unwrap()), [0u64; 0]);
    assert_eq!(seqs(reader.events_of(monitor_id(1), None, 3).unwrap()), [6, 5, 4]);
    assert_eq!(seqs(reader.events_of(monitor_id(1), Some(5), 3).unwrap()), [4, 1]);
    assert_eq!(reader.events_after(1, 1).unwrap()[0].event, event(11, Some(2)));
    assert_eq!(reader.last_event(), Ok(6));
}

fn readings_are_one_entry_a_batch_and_are_trimmed_from_the_front(bench: &mut TestStore) {
    let entry = |seed| Batch { readings: readings(5, seed), ..Batch::new() };
    let group: Vec<_> = (0..MAX_TRIMMED_PER_OP as u64 + 10).map(entry).collect();
    let results = bench.writer.commit(&group);
    assert_eq!(results[3].as_ref().unwrap().readings, Some(4));
    let first = |bench: &TestStore| bench.reader.readings_after(0, 1).unwrap().first().map(|it| it.seq);
    bench.write(Op::TrimReadings(2));
    assert_eq!(first(bench), Some(3));
    assert_eq!(bench.reader.readings_after(2, 1).unwrap()[0].readings, readings(5, 2));
    bench.write(Op::TrimReadings(u64::MAX));
    assert_eq!(first(bench), Some(3 + MAX_TRIMMED_PER_OP as u64), "as many at once as may be");
    bench.write(Op::TrimReadings(u64::MAX));
    assert_eq!(first(bench), None);
    assert_eq!(bench.commit(&entry(0)).unwrap().readings, Some(MAX_TRIMMED_PER_OP as u64 + 11));
    assert_eq!(bench.reader.last_reading(), Ok(MAX_TRIMMED_PER_OP as u64 + 11));
}

fn a_deleted_monitor_leaves_nothing_behind(bench: &mut TestStore) {
    let id = monitor_id(1);
    let mut batch = Batch::new();
    batch.write(monitor(1, 1, 0)).write(Op::PutMachine(id, Box::<MachineState>::default())).event(event(1, Some(1)));
    for hour in 0..1500 {
        batch.write(Op::PutBlock(block(1, Region::Asia, hour, vec![1; 9])));
        batch.write(Op::PutHour(rollup(1, hour, vec![1])));
    }
    bench.commit(&batch).unwrap();
    assert!(bench.reader.machine(id).unwrap().is_some());
    let mut batch = Batch::new();
    batch.write(Op::DeleteMonitor(id)).write(Op::PutDay(rollup(1, 3, vec![1])));
    batch.write(Op::PutMachine(id, Box::<MachineState>::default())).event(event(2, Some(1)));
    bench.commit(&batch).unwrap();
    let nothing = |bench: &TestStore| {
        let reader = &bench.reader;
        assert_eq!((reader.blocks(id, Region::Asia, 0..99), reader.hours(id, 0..99)), (Ok(vec![]), Ok(vec![])));
        assert_eq!((reader.days(id, 0..99), reader.machine(id)), (Ok(vec![]), Ok(None)));
        assert_eq!((reader.events_of(id, None, 9), reader.monitors_of(page_id(1))), (Ok(vec![]), Ok(vec![])));
        assert_eq!(reader.last_event(), Ok(2), "the journal keeps its events");
    };
    nothing(bench);
    bench.write(monitor(1, 1, 0));
    let reader = &bench.reader;
    assert_eq!((reader.blocks(id, Region::Asia, 0..99), reader.events_of(id, None, 9)), (Ok(vec![]), Ok(vec![])));
    bench.write(Op::DeleteMonitor(id));
    bench.tidy();
    nothing(bench);
}

fn long_values_read_back_and_shrink(bench: &mut TestStore) {
    bench.write(monitor(1, 1, 0));
    for size in [24 << 10, (24 << 10) + 1, 300_000, 1_000_000, 70_000, 5, 0] {
        let bytes: Vec<u8> = (0..size).map(|n: u32| (n / 7) as u8).collect();
        bench.write(Op::PutHour(rollup(1, 4, bytes.clone())));
        assert_eq!(bench.reader.hours(monitor_id(1), 4..5), Ok(vec![rollup(1, 4, bytes)]), "{size}");
    }
    let long = Batch { readings: readings(20_000, 1), ..Batch::new() };
    bench.commit(&long).unwrap();
    assert_eq!(bench.reader.readings_after(0, 9).unwrap()[0].readings, long.readings);
    bench.write(Op::TrimReadings(1));
    assert_eq!(bench.reader.readings_after(0, 9), Ok(Vec::new()));
    assert_eq!(bench.reader.size().unwrap().oversized_pages, 0);
}

fn what_is_too_large_is_refused(bench: &mut TestStore) {
    let long = "x".repeat(MAX_NAME + 1);
    for op in
        [Op::SetCursor(long.clone(), 1), page(1, 1, &long).into(), Op::PutStoredResponse(long, stored_response(1, 1))]
    {
        assert_eq!(bench.commit(Batch::new().write(op)), Err(StoreError::TooLarge("a name")));
    }
    let bytes = vec![0; super::batch::MAX_BYTES + 1];
    let checkpoint = Op::PutCheckpoint(Checkpoint { part: 0, through: 0, bytes });
    assert_eq!(bench.commit(Batch::new().write(checkpoint)), Err(StoreError::TooLarge("a value")));
    assert_eq!(bench.write(account(1)).revision, 1);
}

fn a_question_never_sees_half_a_batch(bench: &mut TestStore) {
    let reader = bench.reader.clone();
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
            bench.commit(Batch::new().write(account(1)).write(account(2)).write(account(3))).unwrap();
        }
    });
}

fn a_record_made_anew_is_not_taken_for_the_old_one(bench: &mut TestStore) {
    let old = bench.write(account(1)).revision;
    bench.write(Op::DeleteAccount(account_id(1)));
    bench.write(account(1));
    assert!(bench.commit(Batch::new().expect(Expect::Account(account_id(1), Presence::At(old)))).is_err());
}
