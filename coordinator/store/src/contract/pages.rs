//! Contract for pages: custom hostnames, pictures, and reserved hostnames.

use parallax_core::page::branding::PictureUse;

use super::conflict;
use crate::batch::MAX_NAME;
use crate::samples::*;
use crate::{Batch, Expect, Op, StoreError};

pub(super) fn a_hostname_belongs_to_one_page_and_is_free_after_its_removal(store: &mut TestStore) {
    store.write(page_with_host(1, "one", "a.example"));
    let result = store.commit(Batch::new().write(page_with_host(2, "two", "a.example")));
    assert_eq!(conflict(result), Expect::HostnameFree("a.example".to_owned(), page_id(2)));
    let page_with_that_host = |store: &TestStore| store.reader.page_by_host("a.example").unwrap().map(|it| it.value.id);
    assert_eq!(page_with_that_host(store), Some(page_id(1)));
    store.write(page(1, 1, "one"));
    assert_eq!(page_with_that_host(store), None);
    store.write(page_with_host(2, "two", "a.example"));
    assert_eq!(page_with_that_host(store), Some(page_id(2)));
    store.write(Op::DeletePage(page_id(2)));
    assert_eq!(page_with_that_host(store), None);
    let long = page_with_host(3, "three", &"x".repeat(MAX_NAME + 1));
    assert_eq!(store.commit(Batch::new().write(long)), Err(StoreError::TooLarge("a name")));
}

pub(super) fn pictures_are_stored_with_their_page_and_deleted_with_it(store: &mut TestStore) {
    let put = |page, usage, length| Op::PutPicture(page_id(page), usage, vec![7; length]);
    store.write(put(1, PictureUse::Logo, 9));
    assert_eq!(store.reader.picture(page_id(1), PictureUse::Logo), Ok(None), "there is no such page");
    store.write(page(1, 1, "one"));
    store.write(put(1, PictureUse::Logo, 64 << 10));
    store.write(put(1, PictureUse::Favicon, 3));
    let lengths = |store: &TestStore| {
        PictureUse::ALL.map(|usage| store.reader.picture(page_id(1), usage).unwrap().map(|it| it.len()))
    };
    assert_eq!(lengths(store), [Some(64 << 10), Some(3)]);
    store.write(put(1, PictureUse::Logo, 5));
    store.write(Op::DeletePicture(page_id(1), PictureUse::Favicon));
    store.write(page(1, 1, "other"));
    assert_eq!(lengths(store), [Some(5), None]);
    store.write(Op::DeletePage(page_id(1)));
    assert_eq!(lengths(store), [None, None]);
}

pub(super) fn reserved_hostnames_are_stored_until_they_expire(store: &mut TestStore) {
    store.write(Op::PutReservedHostname("a.example".to_owned(), reserved_hostname(1, 5)));
    store.write(Op::PutReservedHostname("b.example".to_owned(), reserved_hostname(1, 6)));
    store.write(Op::PutReservedHostname("a.example".to_owned(), reserved_hostname(2, 7)));
    assert_eq!(store.reader.reserved_hostname("a.example"), Ok(Some(reserved_hostname(2, 7))));
    store.write(Op::DeleteExpiredReservations(at(6)));
    assert_eq!(
        (store.reader.reserved_hostname("b.example"), store.reader.reserved_hostname("c.example")),
        (Ok(None), Ok(None))
    );
    assert!(store.reader.reserved_hostname("a.example").unwrap().is_some());
}
