//! The pace at which addresses that have not agreed yet are asked to confirm: of a page, of an account, and how many of
//! them an account's owner may leave unconfirmed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use parallax_core::destination::Destination;
use parallax_core::id::{AccountId, DestinationId, PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::plan::PlanRefusal;
use parallax_core::subscriber::asking::{Asker, MAX_UNCONFIRMED, PAGE_A_MINUTE, VISITOR_AN_HOUR};
use parallax_core::subscriber::{Subscriber, UNCONFIRMED};
use parallax_core::time::{HOUR, MINUTE, SECOND, Timestamp};

use super::pace::{Pace, TooOften};
use super::{Error, Result, Service};
use crate::storage::{self, Read};

/// How long a count of an account's confirmed addresses is used, in milliseconds.
const COUNTED: i64 = MINUTE;
/// How long an address counts as unconfirmed before it is in the store, in milliseconds.
const ON_ITS_WAY: i64 = 30 * SECOND;
/// Subscribers read at once.
const SLICE: usize = 512;

/// Addresses that were asked, by page and by account.
#[derive(Debug)]
pub(super) struct Asking {
    visitors: Mutex<Pace<u128>>,
    pages: Mutex<Pace<PageId>>,
    accounts: Mutex<Pace<(AccountId, Asker)>>,
    /// When each account's confirmed addresses were last counted, and how many there were.
    confirmed: Mutex<BTreeMap<(AccountId, Asker), (Timestamp, usize)>>,
    /// Addresses that owners had asked, since when: those of an account once they were read from the store.
    unconfirmed: Mutex<BTreeMap<AccountId, BTreeMap<Pending, Timestamp>>>,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            visitors: Mutex::new(Pace::new(HOUR)),
            pages: Mutex::new(Pace::new(MINUTE)),
            accounts: Mutex::new(Pace::new(HOUR)),
            confirmed: Mutex::default(),
            unconfirmed: Mutex::default(),
        }
    }
}

/// An address that an owner had asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pending {
    /// A subscriber's.
    Subscriber(SubscriberId),
    /// A destination's.
    Destination(DestinationId),
}

impl Service {
    /// Counts one more address that a visitor from that place has asked.
    ///
    /// # Errors
    /// Seconds until the hour is up, where it is one too many.
    pub fn admit_visitor(&self, place: u128) -> std::result::Result<(), u32> {
        let paced = self.paced(&self.0.asking.visitors, VISITOR_AN_HOUR, &place);
        paced.map_err(|TooOften { seconds }| seconds)
    }

    /// Counts one more address that is asked because of the page.
    ///
    /// # Errors
    /// [`Error::PageAsks`] and [`Error::AccountAsks`] where it is one too many.
    pub(super) async fn admit_asking(&self, page: &Page, asker: Asker) -> Result<()> {
        let asking = &self.0.asking;
        let seconds = |TooOften { seconds }| seconds;
        self.paced(&asking.pages, PAGE_A_MINUTE, &page.id)
            .map_err(|often| Error::PageAsks { seconds: seconds(often) })?;
        let (thing, base) = ((page.account, asker), asker.an_hour(0));
        let has_room = {
            let accounts = asking.accounts.lock().unwrap_or_else(PoisonError::into_inner);
            accounts.has_room(base, &thing, self.now())
        };
        let limit =
            if has_room { base } else { asker.an_hour(self.confirmed_of(page.account, asker).await?) };
        self.paced(&asking.accounts, limit, &thing).map_err(|often| Error::AccountAsks {
            asker,
            limit,
            seconds: seconds(often),
        })
    }

    /// Takes one of the places of an account's unconfirmed addresses, which it keeps until it is confirmed, deleted or too
    /// old to be.
    ///
    /// # Errors
    /// [`PlanRefusal::UnconfirmedFull`] where none is left.
    pub(super) async fn hold_unconfirmed(&self, account: AccountId, pending: Pending) -> Result<()> {
        let is_read = self.unconfirmed().contains_key(&account);
        if !is_read {
            let now = self.now();
            let found = self.store().read(move |store| unconfirmed_of(store, account, now)).await?;
            self.unconfirmed().entry(account).or_default().extend(found);
        }
        let (now, reader) = (self.now(), self.store().reader());
        let mut all = self.unconfirmed();
        let own = all.entry(account).or_default();
        own.retain(|it, at| {
            // What can't be read is not refused twice: the reader of the store says so elsewhere.
            (0..ON_ITS_WAY).contains(&now.since(*at))
                || is_unconfirmed(reader.as_ref(), *it, now).unwrap_or(true)
        });
        if own.len() >= MAX_UNCONFIRMED && !own.contains_key(&pending) {
            return Err(PlanRefusal::UnconfirmedFull.into());
        }
        own.insert(pending, now);
        Ok(())
    }

    /// An account's confirmed addresses, as far as they count, as of a minute ago at most.
    async fn confirmed_of(&self, account: AccountId, asker: Asker) -> Result<usize> {
        let (thing, now) = ((account, asker), self.now());
        let known = self.confirmed().get(&thing).copied();
        if let Some((_, count)) = known.filter(|(at, _)| (0..COUNTED).contains(&now.since(*at))) {
            return Ok(count);
        }
        let most = asker.most_counted();
        let count = self.store().read(move |store| confirmed_of(store, account, most)).await?;
        self.confirmed().insert(thing, (now, count));
        Ok(count)
    }

    fn confirmed(&self) -> std::sync::MutexGuard<'_, BTreeMap<(AccountId, Asker), (Timestamp, usize)>> {
        self.0.asking.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn unconfirmed(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<AccountId, BTreeMap<Pending, Timestamp>>> {
        self.0.asking.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn waits(subscriber: &Subscriber, now: Timestamp) -> bool {
    subscriber.by_owner && subscriber.confirmed_at.is_none() && !subscriber.is_stale(now)
}

fn awaits_reader(destination: &Destination, now: Timestamp) -> bool {
    destination.asked_at().is_some_and(|at| now.since(at) < UNCONFIRMED)
}

fn is_unconfirmed(store: &dyn Read, pending: Pending, now: Timestamp) -> storage::Result<bool> {
    Ok(match pending {
        Pending::Subscriber(id) => store.subscriber(id)?.is_some_and(|it| waits(&it.value, now)),
        Pending::Destination(id) => store.destination(id)?.is_some_and(|it| awaits_reader(&it.value, now)),
    })
}

/// The unconfirmed addresses that an account's owner had asked.
fn unconfirmed_of(
    store: &dyn Read,
    account: AccountId,
    now: Timestamp,
) -> storage::Result<Vec<(Pending, Timestamp)>> {
    let mut found = Vec::new();
    for page in store.pages_of(account)?.into_iter().map(|page| page.value.id) {
        walk(store, page, |it| {
            if waits(it, now) {
                found.push((Pending::Subscriber(it.id), it.asked_at));
            }
            found.len() < MAX_UNCONFIRMED
        })?;
        for it in store.destinations_of(page)?.into_iter().map(|it| it.value) {
            if awaits_reader(&it, now) {
                found.push((Pending::Destination(it.id), it.created_at));
            }
        }
    }
    Ok(found)
}

/// How many subscribers of an account have confirmed, counted up to `most`.
fn confirmed_of(store: &dyn Read, account: AccountId, most: usize) -> storage::Result<usize> {
    let mut count = 0;
    for page in store.pages_of(account)?.into_iter().map(|page| page.value.id) {
        walk(store, page, |it| {
            count += usize::from(it.confirmed_at.is_some());
            count < most
        })?;
    }
    Ok(count.min(most))
}

/// Shows each subscriber of a page until `goes_on` has seen enough.
fn walk(store: &dyn Read, page: PageId, mut goes_on: impl FnMut(&Subscriber) -> bool) -> storage::Result<()> {
    let mut after = None;
    loop {
        let slice = store.subscribers_of(page, after, SLICE)?;
        let Some(last) = slice.last() else { return Ok(()) };
        after = Some(last.value.id);
        if !slice.iter().all(|it| goes_on(&it.value)) {
            return Ok(());
        }
    }
}
