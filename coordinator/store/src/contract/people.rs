//! Contract for persons: email addresses, accounts, sessions and one-time links.

use parallax_core::one_time_link::LinkOwner;
use parallax_core::role::Role;

use super::conflict;
use crate::batch::MAX_NAME;
use crate::samples::*;
use crate::{Batch, Expect, Op, StoreError};

pub(super) fn an_email_address_belongs_to_one_person_and_is_free_again_when_it_changes(store: &mut TestStore) {
    store.write(person(1, 1));
    let result = store.commit(Batch::new().write(person(2, 1)));
    assert_eq!(conflict(result), Expect::EmailFree("p1@example.com".to_owned(), person_id(2)));
    let owner = |store: &TestStore| store.reader.person_by_email("p1@example.com").unwrap().map(|it| it.value);
    assert_eq!(owner(store), Some(person(1, 1)));
    store.write(person(1, 2));
    assert_eq!(owner(store), None);
    store.write(person(2, 1));
    assert_eq!(owner(store), Some(person(2, 1)));
    assert_eq!(store.reader.person(person_id(1)).unwrap().unwrap().value, person(1, 2));
    let long = parallax_core::person::Person { email: "x".repeat(MAX_NAME + 1), ..person(3, 3) };
    assert_eq!(store.commit(Batch::new().write(long)), Err(StoreError::TooLarge("a name")));
}

pub(super) fn members_are_found_by_account_and_by_person(store: &mut TestStore) {
    for (account, person) in [(1, 1), (1, 2), (2, 1)] {
        store.write(account_member(account, person, Role::Viewer));
    }
    store.write(account_member(1, 2, Role::Owner));
    let members = |store: &TestStore, account| {
        let members = store.reader.members_of(account_id(account)).unwrap();
        members.iter().map(|it| (it.value.person, it.value.role)).collect::<Vec<_>>()
    };
    assert_eq!(members(store, 1), [(person_id(1), Role::Viewer), (person_id(2), Role::Owner)]);
    store.write(Op::DeleteAccountMember(account_id(1), person_id(1)));
    assert_eq!(members(store, 1), [(person_id(2), Role::Owner)]);
    assert_eq!(store.reader.account_member(account_id(1), person_id(1)), Ok(None));
    let memberships = store.reader.memberships_of(person_id(1)).unwrap();
    assert_eq!(memberships.iter().map(|it| it.value.account).collect::<Vec<_>>(), [account_id(2)]);
}

pub(super) fn sessions_and_links_are_found_by_their_owner(store: &mut TestStore) {
    for n in 1..=3 {
        store.write(login_session(n, n % 2));
        store.write(one_time_link(n, 1));
    }
    let sessions = |store: &TestStore| store.reader.login_sessions_of(person_id(1)).unwrap().len();
    let links = |store: &TestStore, owner| store.reader.one_time_links_of(owner).unwrap().len();
    let (of_account, of_person) = (LinkOwner::Account(account_id(1)), LinkOwner::Person(person_id(1)));
    assert_eq!((sessions(store), links(store, of_account), links(store, of_person)), (2, 1, 2));
    assert_eq!(store.reader.login_session(login_session_id(2)).unwrap().unwrap().value, login_session(2, 0));
    assert_eq!(store.reader.one_time_link(link_id(3)).unwrap().unwrap().value, one_time_link(3, 1));
    for limit in 0..=4 {
        let (sessions, links) = (store.reader.login_session_ids(limit), store.reader.one_time_link_ids(limit));
        assert_eq!(sessions.unwrap(), (1..=3).map(login_session_id).take(limit).collect::<Vec<_>>());
        assert_eq!(links.unwrap(), (1..=3).map(link_id).take(limit).collect::<Vec<_>>());
    }
    store.write(Op::DeleteLoginSession(login_session_id(1)));
    store.write(Op::DeleteOneTimeLink(link_id(1)));
    assert_eq!((sessions(store), links(store, of_account), links(store, of_person)), (1, 1, 1));
    assert_eq!(store.reader.one_time_link(link_id(1)), Ok(None));
}

pub(super) fn an_email_domain_belongs_to_one_company(store: &mut TestStore) {
    store.write(company_sign_in(1, 1));
    let result = store.commit(Batch::new().write(company_sign_in(2, 1)));
    assert_eq!(conflict(result), Expect::CompanyDomainFree("d1.example".to_owned(), account_id(2)));
    let owner = |store: &TestStore, domain: &str| store.reader.company_of_domain(domain).unwrap().map(|it| it.value);
    assert_eq!(owner(store, "d1.example"), Some(company_sign_in(1, 1)));
    // One that is not proved is nobody's.
    assert_eq!(owner(store, "other.example"), None);
    store.write(company_sign_in(1, 2));
    assert_eq!((owner(store, "d1.example"), owner(store, "d2.example")), (None, Some(company_sign_in(1, 2))));
    store.write(company_sign_in(2, 1));
    assert_eq!(store.reader.company_sign_in(account_id(2)).unwrap().unwrap().value, company_sign_in(2, 1));
    store.write(Op::DeleteCompanySignIn(account_id(2)));
    assert_eq!(store.reader.company_sign_in(account_id(2)), Ok(None));
    assert_eq!(owner(store, "d1.example"), None);
}
