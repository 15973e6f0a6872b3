//! Contract for stored responses: kept until they expire, and bounded per API key.

use parallax_core::id::{AccountId, KeyId, PageId};

use super::conflict;
use crate::blobs::{
    MAX_RESPONSE_BYTES_PER_KEY, MAX_RESPONSES_PER_ACCOUNT, MAX_RESPONSES_PER_KEY, MAX_RESPONSES_PER_PAGE, max_responses,
};
use crate::samples::*;
use crate::{Batch, Expect, Op, Presence, StoredResponse};

pub(super) fn responses_are_stored_until_they_expire(store: &mut TestStore) {
    let name = |n: u8| format!("key_1 request {n}");
    for n in 0..5 {
        store.write(Op::PutStoredResponse(name(n), stored_response(n, 100 + i64::from(n))));
    }
    let result = store.commit(Batch::new().expect(Expect::StoredResponse(name(1), Presence::Absent)));
    assert_eq!(conflict(result), Expect::StoredResponse(name(1), Presence::Absent));
    assert_eq!(store.reader.stored_response(&name(1)).unwrap().unwrap().value, stored_response(1, 101));
    store.write(Op::PutStoredResponse(name(1), stored_response(9, 200)));
    store.write(Op::DeleteExpiredResponses(at(102)));
    let remaining: Vec<_> = (0..5).filter(|n| store.reader.stored_response(&name(*n)).unwrap().is_some()).collect();
    assert_eq!(remaining, [1, 3, 4]);
    store.write(Op::DeleteExpiredResponses(at(200)));
    assert_eq!(store.reader.stored_response(&name(1)), Ok(None));
}

pub(super) fn stored_responses_of_a_key_are_bounded_and_evicted_oldest_first(store: &mut TestStore) {
    let name = |owner: u128, n: usize| format!("{}/{n:04}", KeyId::from_u128(owner));
    let small = |expires: usize| stored_response(1, i64::try_from(expires).unwrap());
    let write = |store: &mut TestStore, names: Vec<(String, StoredResponse)>| {
        let mut batch = Batch::new();
        for (name, response) in names {
            batch.write(Op::PutStoredResponse(name, response));
        }
        store.commit(&batch).unwrap();
    };
    let exists = |store: &TestStore, name: &str| store.reader.stored_response(name).unwrap().is_some();
    // A name of the service itself has no bound, and another key's flood does not affect a key's responses.
    write(store, vec![("visitor/1".to_owned(), small(1)), (name(2, 0), small(1))]);
    for slice in (0..MAX_RESPONSES_PER_KEY + 5).collect::<Vec<_>>().chunks(100) {
        write(store, slice.iter().map(|n| (name(1, *n), small(10 + n))).collect());
    }
    let remaining = |store: &TestStore| (0..MAX_RESPONSES_PER_KEY + 9).filter(|n| exists(store, &name(1, *n))).count();
    assert_eq!(
        (remaining(store), exists(store, &name(1, 4)), exists(store, &name(1, 5))),
        (MAX_RESPONSES_PER_KEY, false, true)
    );
    assert!(exists(store, "visitor/1") && exists(store, &name(2, 0)));
    // A response that is stored again counts once, and the newest stays even if the clock was set back.
    write(store, vec![(name(1, 7), small(5000)), (name(1, MAX_RESPONSES_PER_KEY + 5), small(2))]);
    assert_eq!((remaining(store), exists(store, &name(1, 5))), (MAX_RESPONSES_PER_KEY, false));
    assert!(exists(store, &name(1, 7)) && exists(store, &name(1, MAX_RESPONSES_PER_KEY + 5)));
    // By bytes: a long response evicts as many as it needs, and the newest one is never evicted.
    let long = |bytes: usize| StoredResponse { response: vec![7; bytes], ..small(6000) };
    write(store, vec![(name(1, MAX_RESPONSES_PER_KEY + 6), long(MAX_RESPONSE_BYTES_PER_KEY / 2))]);
    assert_eq!(remaining(store), MAX_RESPONSES_PER_KEY);
    write(store, vec![(name(1, MAX_RESPONSES_PER_KEY + 7), long(MAX_RESPONSE_BYTES_PER_KEY / 2))]);
    assert_eq!(remaining(store), 1);
    write(store, vec![(name(1, MAX_RESPONSES_PER_KEY + 8), long(MAX_RESPONSE_BYTES_PER_KEY * 2))]);
    assert_eq!(remaining(store), 1);
    // Expired responses free space.
    store.write(Op::DeleteExpiredResponses(at(6000)));
    assert_eq!(remaining(store), 0);
    write(store, (0..10).map(|n| (name(1, n), small(7000 + n))).collect());
    assert_eq!(remaining(store), 10);
    // An account has a bound of its own.
    let undo = |n: usize| format!("{}/undo/{n:04}", AccountId::from_u128(1));
    write(store, (0..MAX_RESPONSES_PER_ACCOUNT + 5).map(|n| (undo(n), small(8000 + n))).collect());
    let kept = (0..MAX_RESPONSES_PER_ACCOUNT + 5).filter(|n| exists(store, &undo(*n))).count();
    assert_eq!((kept, exists(store, &undo(4)), exists(store, &undo(5))), (MAX_RESPONSES_PER_ACCOUNT, false, true));
    assert_eq!(remaining(store), 10);
    // So has a page: for as many as its opt-outs, which are short.
    let opt_out = |n: usize| format!("{}/opted-out/{n:032}", PageId::from_u128(1));
    assert_eq!(max_responses(&PageId::from_u128(1).to_string()), MAX_RESPONSES_PER_PAGE);
    assert!(opt_out(0).len() * MAX_RESPONSES_PER_PAGE <= MAX_RESPONSE_BYTES_PER_KEY);
    for n in 0..3 {
        write(store, vec![(opt_out(n), StoredResponse { response: vec![7; 1 << 20], ..small(9000 + n) })]);
    }
    assert_eq!([0, 1, 2].map(|n| exists(store, &opt_out(n))), [false, false, true]);
    assert_eq!((remaining(store), exists(store, &undo(5))), (10, true));
    assert!(store.reader.verify().is_ok());
}
