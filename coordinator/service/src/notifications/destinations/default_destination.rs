//! The default destination of every new page, its owner's mailbox; also added once to pages from before destinations
//! existed.

use parallax_core::destination::{Channel, Destination};
use parallax_core::id::{AccountId, DestinationId, PageId};
use parallax_core::page::{NO_ACCOUNT, Page};
use parallax_core::time::Timestamp;
use parallax_store::{Batch, Expect, Op, Presence, Result, Store, StoreError, StoreRead};

/// Name of the destination.
const NAME: &str = "Owner";
/// Cursor that marks the one-time migration of old pages as done.
const MIGRATION_CURSOR: &str = "owners-are-told";
/// Value of the cursor: beyond every event, so that it keeps none from being trimmed.
const MIGRATION_DONE: u64 = u64::MAX;
/// Pages handled per batch.
const AT_ONCE: usize = 64;

/// Builds the default destination of a page: its owner's mailbox.
pub(crate) fn default_destination(page: PageId, email: String, now: Timestamp) -> Destination {
    Destination {
        id: DestinationId::new(now, rand::random()),
        page,
        name: NAME.to_owned(),
        channel: Channel::Email { to: email },
        events: None,
        monitors: None,
        enabled: true,
        health: Default::default(),
        created_at: now,
        evidence_link: false,
    }
}

/// Adds the owner's mailbox to each page without destinations and deliveries, once in a store's life: such pages were
/// created before alerts existed. Called before anything else runs. Returns the number of pages.
///
/// # Errors
/// Fails if the store can't be read or written.
pub async fn add_owner_destinations(store: &Store, now: Timestamp) -> Result<usize> {
    if store.reader().cursor(MIGRATION_CURSOR)? != 0 {
        return Ok(0);
    }
    let pages = store.read(pages_without_destinations).await?;
    for some in pages.chunks(AT_ONCE) {
        let mut batch = Batch::new();
        for (page, account) in some {
            let Some(account) = store.reader().account(*account)? else { continue };
            batch.expect(Expect::Page(*page, Presence::Present));
            batch.write(default_destination(*page, account.value.email, now));
        }
        store.commit(batch).await?;
    }
    // Last: after a crash before it the remaining pages are handled at the next start.
    let mut batch = Batch::new();
    batch.write(Op::SetCursor(MIGRATION_CURSOR.to_owned(), MIGRATION_DONE));
    store.commit(batch).await?;
    Ok(pages.len())
}

fn pages_without_destinations(read: &dyn StoreRead) -> std::result::Result<Vec<(PageId, AccountId)>, StoreError> {
    let mut pages = Vec::new();
    let is_owned = |page: &Page| page.account != NO_ACCOUNT;
    for page in read.pages()?.into_iter().map(|page| page.value).filter(is_owned) {
        if read.destinations_of(page.id)?.is_empty() && read.deliveries_of(Some(page.id), None, 1)?.is_empty() {
            pages.push((page.id, page.account));
        }
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use parallax_store::samples;

    use super::*;

    #[tokio::test]
    async fn existing_pages_get_the_owners_mailbox_as_destination_once() {
        let store = Store::in_memory().unwrap();
        let mut batch = Batch::new();
        batch.write(samples::account(1));
        for n in 1..=70 {
            batch.write(samples::page(n, 1, &format!("page-{n}")));
        }
        batch.write(samples::destination(1, 70)).write(samples::delivery(1, Some(69), None));
        store.commit(batch).await.unwrap();
        assert_eq!(add_owner_destinations(&store, samples::at(5)).await, Ok(68));
        let destinations = |n: u128| store.reader().destinations_of(samples::page_id(n)).unwrap();
        let email = store.reader().accounts().unwrap().remove(0).value.email;
        let destination = destinations(1).remove(0).value;
        assert_eq!((destination.name.as_str(), destination.mailbox()), (NAME, Some(email.as_str())));
        assert_eq!((destinations(68).len(), destinations(69).len(), destinations(70).len()), (1, 0, 1));
        store.commit(Batch::new().write(Op::DeleteDestination(destination.id)).clone()).await.unwrap();
        assert_eq!(add_owner_destinations(&store, samples::at(6)).await, Ok(0), "an owner's deletion is final");
    }
}
