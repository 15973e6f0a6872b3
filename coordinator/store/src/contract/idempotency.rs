//! Contract for stored responses: kept until they expire, and bounded per API key.

use parallax_core::id::KeyId;

use super::conflict;
use crate::blobs::{MAX_RESPONSE_BYTES_PER_KEY, MAX_RESPONSES_PER_KEY};
use crate::samples::*;
use crate::{Batch, Expect, Op, Presence, StoredResponse};

pub(super) fn answers_are_remembered_until_they_expire(bench: &mut TestStore) {
    let name = |n: u8| format!("key_1 request {n}");
    for n in 0..5 {
        bench.write(Op::PutStoredResponse(name(n), stored_response(n, 100 + i64::from(n))));
    }
    let again = bench.commit(Batch::new().expect(Expect::StoredResponse(name(1), Presence::Absent)));
    assert_eq!(conflict(again), Expect::StoredResponse(name(1), Presence::Absent));
    assert_eq!(bench.reader.stored_response(&name(1)).unwrap().unwrap().value, stored_response(1, 101));
    bench.write(Op::PutStoredResponse(name(1), stored_response(9, 200)));
    bench.write(Op::DeleteExpiredResponses(at(102)));
    let left: Vec<_> = (0..5).filter(|n| bench.reader.stored_response(&name(*n)).unwrap().is_some()).collect();
    assert_eq!(left, [1, 3, 4]);
    bench.write(Op::DeleteExpiredResponses(at(200)));
    assert_eq!(bench.reader.stored_response(&name(1)), Ok(None));
}

pub(super) fn an_api_keys_answers_are_bounded_and_the_oldest_go_first(bench: &mut TestStore) {
    let name = |owner: u128, n: usize| format!("{}/{n:04}", KeyId::from_u128(owner));
    let small = |expires: usize| stored_response(1, i64::try_from(expires).unwrap());
    let write = |bench: &mut TestStore, names: Vec<(String, StoredResponse)>| {
        let mut batch = Batch::new();
        for (name, answer) in names {
            batch.write(Op::PutStoredResponse(name, answer));
        }
        bench.commit(&batch).unwrap();
    };
    let is_there = |bench: &TestStore, name: &str| bench.reader.stored_response(name).unwrap().is_some();
    // A name of the service itself has no bound, and another key's flood does not affect a key's responses.
    write(bench, vec![("visitor/1".to_owned(), small(1)), (name(2, 0), small(1))]);
    for slice in (0..MAX_RESPONSES_PER_KEY + 5).collect::<Vec<_>>().chunks(100) {
        write(bench, slice.iter().map(|n| (name(1, *n), small(10 + n))).collect());
    }
    let left = |bench: &TestStore| (0..MAX_RESPONSES_PER_KEY + 9).filter(|n| is_there(bench, &name(1, *n))).count();
    assert_eq!(
        (left(bench), is_there(bench, &name(1, 4)), is_there(bench, &name(1, 5))),
        (MAX_RESPONSES_PER_KEY, false, true)
    );
    assert!(is_there(bench, "visitor/1") && is_there(bench, &name(2, 0)));
    // A response that is stored again counts once, and the newest stays even if the clock was set back.
    write(bench, vec![(name(1, 7), small(5000)), (name(1, MAX_RESPONSES_PER_KEY + 5), small(2))]);
    assert_eq!((left(bench), is_there(bench, &name(1, 5))), (MAX_RESPONSES_PER_KEY, false));
    assert!(is_there(bench, &name(1, 7)) && is_there(bench, &name(1, MAX_RESPONSES_PER_KEY + 5)));
    // By bytes: a long response evicts as many as it needs, and the newest one is never evicted.
    let long = |bytes: usize| StoredResponse { response: vec![7; bytes], ..small(6000) };
    write(bench, vec![(name(1, MAX_RESPONSES_PER_KEY + 6), long(MAX_RESPONSE_BYTES_PER_KEY / 2))]);
    assert_eq!(left(bench), MAX_RESPONSES_PER_KEY);
    write(bench, vec![(name(1, MAX_RESPONSES_PER_KEY + 7), long(MAX_RESPONSE_BYTES_PER_KEY / 2))]);
    assert_eq!(left(bench), 1);
    write(bench, vec![(name(1, MAX_RESPONSES_PER_KEY + 8), long(MAX_RESPONSE_BYTES_PER_KEY * 2))]);
    assert_eq!(left(bench), 1);
    // Expired responses free space.
    bench.write(Op::DeleteExpiredResponses(at(6000)));
    assert_eq!(left(bench), 0);
    write(bench, (0..10).map(|n| (name(1, n), small(7000 + n))).collect());
    assert_eq!(left(bench), 10);
    assert!(bench.reader.verify().is_ok());
}
