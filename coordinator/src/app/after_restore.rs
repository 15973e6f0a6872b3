//! Handling of a restored store: agents revoked since the snapshot are revoked again, open invitations expire, and
//! persons sign in again.

use parallax_certs::rotation::AuthorityStore;
use parallax_core::one_time_link::LinkOwner;
use parallax_mesh::members::{MemberError, MemberStore, Revocations};
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, Op, Store, StoreRead};

use super::{AppError, slot_epoch};
use crate::config::CoordinatorConfig;

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
        slot_epoch::load_or_create(store).await?;
    }
    Ok(members)
}

/// Deletes the sessions and one-time links of all persons and accounts, and returns their number: a snapshot has those
/// that were ended or used since.
async fn end_sign_ins(store: &Store) -> Result<usize, AppError> {
    let batches = store.read(|store| {
        let mut batches = Vec::new();
        for account in store.accounts()? {
            let id = account.value.id;
            let mut ops = deletions_of_links(store, LinkOwner::Account(id))?;
            for member in store.members_of(id)? {
                let person = member.value.person;
                ops.extend(deletions_of_links(store, LinkOwner::Person(person))?);
                let sessions = store.login_sessions_of(person)?;
                ops.extend(sessions.into_iter().map(|it| Op::DeleteLoginSession(it.value.id)));
            }
            batches.push(ops);
        }
        Ok(batches)
    });
    let mut ended = 0;
    for ops in batches.await?.into_iter().filter(|ops| !ops.is_empty()) {
        ended += ops.len();
        let mut batch = Batch::new();
        for op in ops {
            batch.write(op);
        }
        store.commit(batch).await?;
    }
    Ok(ended)
}

fn deletions_of_links(store: &dyn StoreRead, owner: LinkOwner) -> parallax_store::Result<Vec<Op>> {
    let links = store.one_time_links_of(owner)?;
    Ok(links.into_iter().map(|it| Op::DeleteOneTimeLink(it.value.id)).collect())
}

#[cfg(test)]
mod tests {
    use parallax_core::role::Role;
    use parallax_store::samples::{account, account_member, login_session, one_time_link, person, person_id};

    use super::*;

    #[tokio::test]
    async fn a_restored_store_has_no_session_and_no_link() {
        let store = Store::in_memory().unwrap();
        let mut batch = Batch::new();
        for number in [1, 2] {
            batch.write(account(number)).write(person(number, number as u8));
            batch.write(account_member(number, number, Role::Owner)).write(login_session(number, number));
            batch.write(one_time_link(2 * number, number)).write(one_time_link(2 * number + 1, number));
        }
        store.commit(batch).await.unwrap();
        assert_eq!(end_sign_ins(&store).await.unwrap(), 6);
        let reader = store.reader();
        for number in [1, 2] {
            let id = person_id(number);
            assert!(reader.person(id).unwrap().is_some(), "persons stay");
            assert!(reader.login_sessions_of(id).unwrap().is_empty());
            let owners = [LinkOwner::Account(account(number).id), LinkOwner::Person(id)];
            assert!(owners.into_iter().all(|owner| reader.one_time_links_of(owner).unwrap().is_empty()));
        }
        assert_eq!(end_sign_ins(&store).await.unwrap(), 0);
    }
}
