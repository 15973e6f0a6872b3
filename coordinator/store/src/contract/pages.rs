//! Contract for pages: custom hostnames, pictures, and reserved hostnames.

use parallax_core::page::branding::PictureUse;

use super::conflict;
use crate::batch::MAX_NAME;
use crate::samples::*;
use crate::{Batch, Expect, Op, StoreError};

pub(super) fn a_hostname_belongs_to_one_page_and_is_free_again(bench: &mut TestStore) {
    bench.write(hosted(1, "one", "a.example"));
    let taken = bench.commit(Batch::new().write(hosted(2, "two", "a.example")));
    assert_eq!(conflict(taken), Expect::HostnameFree("a.example".to_owned(), page_id(2)));
    let found = |bench: &TestStore| bench.reader.page_by_host("a.example").unwrap().map(|it| it.value.id);
    assert_eq!(found(bench), Some(page_id(1)));
    bench.write(page(1, 1, "one"));
    assert_eq!(found(bench), None);
    bench.write(hosted(2, "two", "a.example"));
    assert_eq!(found(bench), Some(page_id(2)));
    bench.write(Op::DeletePage(page_id(2)));
    assert_eq!(found(bench), None);
    let long = hosted(3, "three", &"x".repeat(MAX_NAME + 1));
    assert_eq!(bench.commit(Batch::new().write(long)), Err(StoreError::TooLarge("a name")));
}

pub(super) fn a_page_keeps_its_pictures_and_takes_them_with_it(bench: &mut TestStore) {
    let put = |page, usage, length| Op::PutPicture(page_id(page), usage, vec![7; length]);
    bench.write(put(1, PictureUse::Logo, 9));
    assert_eq!(bench.reader.picture(page_id(1), PictureUse::Logo), Ok(None), "there is no such page");
    bench.write(page(1, 1, "one"));
    bench.write(put(1, PictureUse::Logo, 64 << 10));
    bench.write(put(1, PictureUse::Favicon, 3));
    let lengths = |bench: &TestStore| {
        PictureUse::ALL.map(|usage| bench.reader.picture(page_id(1), usage).unwrap().map(|it| it.len()))
    };
    assert_eq!(lengths(bench), [Some(64 << 10), Some(3)]);
    bench.write(put(1, PictureUse::Logo, 5));
    bench.write(Op::DeletePicture(page_id(1), PictureUse::Favicon));
    bench.write(page(1, 1, "other"));
    assert_eq!(lengths(bench), [Some(5), None]);
    bench.write(Op::DeletePage(page_id(1)));
    assert_eq!(lengths(bench), [None, None]);
}

pub(super) fn freed_hostnames_are_kept_for_a_while(bench: &mut TestStore) {
    bench.write(Op::PutReservedHostname("a.example".to_owned(), reserved_hostname(1, 5)));
    bench.write(Op::PutReservedHostname("b.example".to_owned(), reserved_hostname(1, 6)));
    bench.write(Op::PutReservedHostname("a.example".to_owned(), reserved_hostname(2, 7)));
    assert_eq!(bench.reader.reserved_hostname("a.example"), Ok(Some(reserved_hostname(2, 7))));
    bench.write(Op::DeleteExpiredReservations(at(6)));
    assert_eq!(
        (bench.reader.reserved_hostname("b.example"), bench.reader.reserved_hostname("c.example")),
        (Ok(None), Ok(None))
    );
    assert!(bench.reader.reserved_hostname("a.example").unwrap().is_some());
}
