//! Handling of a restored store: agents revoked since the snapshot are revoked again, open invitations expire, persons
//! sign in again, and no code that an authenticator app showed before counts.

use std::collections::BTreeMap;

use parallax_certs::rotation::AuthorityStore;
use parallax_core::time::Timestamp;
use parallax_mesh::members::{MemberError, MemberStore, Revocations};
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, Op, Store};

use super::{AppError, slot_epoch};
use crate::config::CoordinatorConfig;

/// Sessions, and links, deleted in one batch.
const DELETIONS: usize = 1024;

/// Opens the members' records and applies the revocations that are stored outside the store. Must run before any
/// agent can connect.
pub(super) async fn open_members(
    config: &CoordinatorConfig,
    store: &Store,
    clock: &Clock,
    authorities: AuthorityStore,
) -> Result<MemberStore, AppError> {
    let revocations = Revocations::open(&config.data).map_err(|error| AppError::Data(error.to_string()))?;
    let members = MemberStore::new(store.clone(), clock.clone(), authorities).with_revocations(revocations);
    let fault = |error: MemberError| AppError::Data(error.to_string());
    let reapplied = members.reapply_revocations().await.map_err(fault)?;
    if !reapplied.is_empty() {
        tracing::warn!(
            agents = reapplied.join(", "),
            "the store was restored: agents revoked since then were revoked again"
        );
    }
    // A restore removes the slot epoch, and a new store has none yet.
    if store.reader().cursor(slot_epoch::CURSOR)? == 0 {
        let ended = members.expire_invitations().await?;
        if ended > 0 {
            tracing::warn!(ended, "the store was restored: open invitations have expired; create new ones");
        }
        let ended = end_sign_ins(store).await?;
        if ended > 0 {
            tracing::warn!(
                ended,
                "the store was restored: everybody signs in again, and one-time links no longer work"
            );
        }
        refuse_shown_codes(store, clock.now()).await?;
        slot_epoch::load_or_create(store).await?;
    }
    Ok(members)
}

/// Deletes the sessions and one-time links of all persons and accounts, and returns their number: a snapshot has those
/// that were ended or used since. Those of persons without an account are among them: one who is invited again must not
/// find an old session open.
async fn end_sign_ins(store: &Store) -> Result<usize, AppError> {
    let mut ended = 0;
    loop {
        let deletions = store.read(|store| {
            let sessions = store.login_session_ids(DELETIONS)?.into_iter().map(Op::DeleteLoginSession);
            let links = store.one_time_link_ids(DELETIONS)?.into_iter().map(Op::DeleteOneTimeLink);
            Ok(sessions.chain(links).collect::<Vec<Op>>())
        });
        let deletions = deletions.await?;
        if deletions.is_empty() {
            return Ok(ended);
        }
        ended += deletions.len();
        let mut batch = Batch::new();
        for deletion in deletions {
            batch.write(deletion);
        }
        store.commit(batch).await?;
    }
}

/// Refuses every code that a person's authenticator app may show by now: a snapshot does not have those that were used
/// since.
async fn refuse_shown_codes(store: &Store, now: Timestamp) -> Result<(), AppError> {
    let persons = store.read(move |store| {
        let mut persons = BTreeMap::new();
        for account in store.accounts()? {
            for member in store.members_of(account.value.id)? {
                let Some(mut person) = store.person(member.value.person)?.map(|it| it.value) else { continue };
                if person.second_factor.refuse_shown_codes(now) {
                    persons.insert(person.id, person);
                }
            }
        }
        Ok(persons)
    });
    for person in persons.await?.into_values() {
        let mut batch = Batch::new();
        batch.write(person);
        store.commit(batch).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use parallax_core::one_time_link::LinkOwner;
    use parallax_core::role::Role;
    use parallax_core::second_factor::step_at;
    use parallax_store::samples::{account, account_member, at, login_session, one_time_link, person, person_id};

    use super::*;

    #[tokio::test]
    async fn a_restored_store_has_no_session_and_no_link() {
        let store = Store::in_memory().unwrap();
        let mut batch = Batch::new();
        // The third is a member of no account any more, and the account of their link is gone.
        for number in [1, 2, 3] {
            if number < 3 {
                batch.write(account(number)).write(account_member(number, number, Role::Owner));
            }
            batch.write(person(number, number as u8)).write(login_session(number, number));
            batch.write(one_time_link(2 * number, number)).write(one_time_link(2 * number + 1, number));
        }
        store.commit(batch).await.unwrap();
        assert_eq!(end_sign_ins(&store).await.unwrap(), 9);
        let reader = store.reader();
        for number in [1, 2, 3] {
            let id = person_id(number);
            assert!(reader.person(id).unwrap().is_some(), "persons stay");
            assert!(reader.login_sessions_of(id).unwrap().is_empty());
            let owners = [LinkOwner::Account(account(number).id), LinkOwner::Person(id)];
            assert!(owners.into_iter().all(|owner| reader.one_time_links_of(owner).unwrap().is_empty()));
        }
        assert_eq!(end_sign_ins(&store).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_code_that_was_shown_before_the_restore_counts_no_more() {
        let store = Store::in_memory().unwrap();
        let mut batch = Batch::new();
        for number in [1, 2] {
            batch.write(account(number)).write(person(number, number as u8));
            batch.write(account_member(number, number, Role::Owner));
        }
        store.commit(batch).await.unwrap();
        let (now, stored) = (at(3_600_000), |number| store.reader().person(person_id(number)).unwrap().unwrap().value);
        assert!(stored(2).second_factor.accept_step(step_at(now), now), "before");
        refuse_shown_codes(&store, now).await.unwrap();
        let mut factor = stored(2).second_factor;
        assert!(!factor.accept_step(step_at(now), now) && !factor.accept_step(step_at(now) + 1, now));
        assert!(factor.accept_step(step_at(now) + 2, at(3_630_000)));
        assert_eq!(stored(1), person(1, 1), "without a factor nothing is written");
    }
}
