//! The pace at which addresses that have not agreed yet are asked to confirm: of a page, of an account, and how many of
//! them an account's owner may leave unconfirmed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use parallax_core::destination::Destination;
use parallax_core::id::{AccountId, DestinationId, PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::plan::PlanRefusal;
use parallax_core::subscriber::asking::{Asker, MAX_UNCONFIRMED, PAGE_A_MINUTE, VISITOR_AN_HOUR};
use parallax_core::subscriber::{Contact, Subscriber, UNCONFIRMED};
use parallax_core::time::{DAY, HOUR, MINUTE, Timestamp};

use super::pace::{Pace, TooOften};
use super::{Error, Result, Service};
use crate::storage::{self, Read};

/// How long a count of an account's confirmed addresses is used, in milliseconds.
const COUNTED: i64 = MINUTE;
/// How long after it was confirmed a mailbox counts, in milliseconds: one that is made for it is worth little by then.
const CONFIRMED_FOR: i64 = DAY;
/// Subscribers read at once.
const SLICE: usize = 512;

/// Addresses that were asked, by page and by account.
#[derive(Debug)]
pub(super) struct Asking {
    visitors: Mutex<Pace<u128>>,
    /// Visitors' apart from the owner's: a stranger does not keep an owner from adding anybody.
    pages: Mutex<Pace<(PageId, Asker)>>,
    accounts: Mutex<Pace<(AccountId, Asker)>>,
    /// When each account's confirmed addresses were last counted, and how many there were.
    confirmed: Mutex<BTreeMap<(AccountId, Asker), (Timestamp, usize)>>,
    /// Addresses that owners had asked and that have not confirmed, since when, whatever became of their records: those of
    /// an account once they were read from the store.
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pending {
    /// A subscriber's.
    Subscriber(SubscriberId),
    /// A destination's, with its mailbox: a destination may have one after another.
    Destination(DestinationId, String),
}

impl Service {
    /// Counts one more address that a visitor from that place has asked. Where too many places are known already it is let
    /// through: nobody shuts others out by coming from everywhere, and the paces of pages and accounts hold.
    ///
    /// # Errors
    /// [`Error::PageAsks`] until the hour is up, where it is one too many.
    pub(super) fn admit_visitor(&self, place: u128) -> Result<()> {
        let mut visitors = self.0.asking.visitors.lock().unwrap_or_else(PoisonError::into_inner);
        if !visitors.knows(&place, self.now()) && visitors.is_full(self.now()) {
            return Ok(());
        }
        let paced = visitors.admit(VISITOR_AN_HOUR, &place, self.now());
        paced.map_err(|TooOften { seconds }| Error::PageAsks { seconds })
    }

    /// Counts one more address that is asked because of the page.
    ///
    /// # Errors
    /// [`Error::PageAsks`] and [`Error::AccountAsks`] where it is one too many.
    pub(super) async fn admit_asking(&self, page: &Page, asker: Asker) -> Result<()> {
        let asking = &self.0.asking;
        let seconds = |TooOften { seconds }| seconds;
        self.paced(&asking.pages, PAGE_A_MINUTE, &(page.id, asker))
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

    /// Takes one of the places of an account's unconfirmed addresses, which it keeps until it is confirmed or too old to be,
    /// though it is deleted meanwhile.
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
        let now = self.now();
        let mut all = self.unconfirmed();
        let own = all.entry(account).or_default();
        own.retain(|_, at| (0..UNCONFIRMED).contains(&now.since(*at)));
        if own.len() >= MAX_UNCONFIRMED && !own.contains_key(&pending) {
            return Err(PlanRefusal::UnconfirmedFull.into());
        }
        own.insert(pending, now);
        Ok(())
    }

    /// Gives the place of an address back that has confirmed.
    pub(super) fn release_unconfirmed(&self, account: AccountId, pending: &Pending) {
        if let Some(own) = self.unconfirmed().get_mut(&account) {
            own.remove(pending);
        }
    }

    /// An account's confirmed mailboxes, as far as they count, as of a minute ago at most.
    async fn confirmed_of(&self, account: AccountId, asker: Asker) -> Result<usize> {
        let (thing, now) = ((account, asker), self.now());
        let known = self.confirmed().get(&thing).copied();
        if let Some((_, count)) = known.filter(|(at, _)| (0..COUNTED).contains(&now.since(*at))) {
            return Ok(count);
        }
        let most = asker.most_counted();
        let count = self.store().read(move |store| confirmed_of(store, account, most, now)).await?;
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

/// When the mailbox of a destination was asked that may still confirm.
fn awaits_reader(destination: &Destination, now: Timestamp) -> Option<(String, Timestamp)> {
    let at = destination.asked_at().filter(|at| now.since(*at) < UNCONFIRMED)?;
    Some((destination.mailbox()?.to_owned(), at))
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
            if let Some((mailbox, at)) = awaits_reader(&it, now) {
                found.push((Pending::Destination(it.id, mailbox), at));
            }
        }
    }
    Ok(found)
}

/// How many mailboxes of an account's subscribers have confirmed a day ago or earlier, counted up to `most`. A webhook
/// confirms by itself, and shows nothing.
fn confirmed_of(store: &dyn Read, account: AccountId, most: usize, now: Timestamp) -> storage::Result<usize> {
    let mut count = 0;
    for page in store.pages_of(account)?.into_iter().map(|page| page.value.id) {
        walk(store, page, |it| {
            let is_long = it.confirmed_at.is_some_and(|at| now.since(at) >= CONFIRMED_FOR);
            count += usize::from(is_long && matches!(it.contact, Contact::Email(_)));
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
