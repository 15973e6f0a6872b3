//! Contract for stored responses: kept until they expire, and bounded per API key.

use parallax_core::id::KeyId;

use super::conflict;
use super::samples::*;
use crate::storage::packed::{MAX_REMEMBERED, MAX_REMEMBERED_BYTES};
use crate::storage::{Batch, Expect, Is, Op, Remembered};

pub(super) fn answers_are_remembered_until_they_expire(bench: &mut Bench) {
    let name = |n: u8| format!("key_1 request {n}");
    for n in 0..5 {
        bench.write(Op::Remember(name(n), remembered(n, 100 + i64::from(n))));
    }
    let again = bench.commit(Batch::new().expect(Expect::Remembered(name(1), Is::Absent)));
    assert_eq!(conflict(again), Expect::Remembered(name(1), Is::Absent));
    assert_eq!(bench.reader.remembered(&name(1)).unwrap().unwrap().value, remembered(1, 101));
    bench.write(Op::Remember(name(1), remembered(9, 200)));
    bench.write(Op::ForgetExpired(at(102)));
    let left: Vec<_> = (0..5).filter(|n| bench.reader.remembered(&name(*n)).unwrap().is_some()).collect();
    assert_eq!(left, [1, 3, 4]);
    bench.write(Op::ForgetExpired(at(200)));
    assert_eq!(bench.reader.remembered(&name(1)), Ok(None));
}

pub(super) fn an_api_keys_answers_are_bounded_and_the_oldest_go_first(bench: &mut Bench) {
    let name = |owner: u128, n: usize| format!("{}/{n:04}", KeyId::from_u128(owner));
    let small = |expires: usize| remembered(1, i64::try_from(expires).unwrap());
    let write = |bench: &mut Bench, names: Vec<(String, Remembered)>| {
        let mut batch = Batch::new();
        for (name, answer) in names {
            batch.write(Op::Remember(name, answer));
        }
        bench.commit(&batch).unwrap();
    };
    let is_there = |bench: &Bench, name: &str| bench.reader.remembered(name).unwrap().is_some();
    // A name of the service itself has no bound, and another key's flood does not affect a key's responses.
    write(bench, vec![("visitor/1".to_owned(), small(1)), (name(2, 0), small(1))]);
    for slice in (0..MAX_REMEMBERED + 5).collect::<Vec<_>>().chunks(100) {
        write(bench, slice.iter().map(|n| (name(1, *n), small(10 + n))).collect());
    }
    let left = |bench: &Bench| (0..MAX_REMEMBERED + 9).filter(|n| is_there(bench, &name(1, *n))).count();
    assert_eq!(
        (left(bench), is_there(bench, &name(1, 4)), is_there(bench, &name(1, 5))),
        (MAX_REMEMBERED, false, true)
    );
    assert!(is_there(bench, "visitor/1") && is_there(bench, &name(2, 0)));
    // A response that is stored again counts once, and the newest stays even if the clock was set back.
    write(bench, vec![(name(1, 7), small(5000)), (name(1, MAX_REMEMBERED + 5), small(2))]);
    assert_eq!((left(bench), is_there(bench, &name(1, 5))), (MAX_REMEMBERED, false));
    assert!(is_there(bench, &name(1, 7)) && is_there(bench, &name(1, MAX_REMEMBERED + 5)));
    // By bytes: a long response evicts as many as it needs, and the newest one is never evicted.
    let long = |bytes: usize| Remembered { answer: vec![7; bytes], ..small(6000) };
    write(bench, vec![(name(1, MAX_REMEMBERED + 6), long(MAX_REMEMBERED_BYTES / 2))]);
    assert_eq!(left(bench), MAX_REMEMBERED);
    write(bench, vec![(name(1, MAX_REMEMBERED + 7), long(MAX_REMEMBERED_BYTES / 2))]);
    assert_eq!(left(bench), 1);
    write(bench, vec![(name(1, MAX_REMEMBERED + 8), long(MAX_REMEMBERED_BYTES * 2))]);
    assert_eq!(left(bench), 1);
    // Expired responses free space.
    bench.write(Op::ForgetExpired(at(6000)));
    assert_eq!(left(bench), 0);
    write(bench, (0..10).map(|n| (name(1, n), small(7000 + n))).collect());
    assert_eq!(left(bench), 10);
    assert!(bench.reader.verify().is_ok());
}
