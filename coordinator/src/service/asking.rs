//! Rate limits for confirmation mails and challenges to unconfirmed addresses: per page and account, and a maximum of
//! unconfirmed addresses per owner.

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

/// Milliseconds for which a count of an account's confirmed addresses is reused.
const COUNTED: i64 = MINUTE;
/// Milliseconds after which a confirmed mailbox counts: mailboxes made only to raise the limit are worth little by
/// then.
const CONFIRMED_FOR: i64 = DAY;
/// Subscribers read per query.
const SLICE: usize = 512;

/// Counts of confirmation requests by visitor, page and account.
#[derive(Debug)]
pub(super) struct Asking {
    visitors: Mutex<Pace<u128>>,
    /// Visitors are counted apart from the owner: strangers must not keep an owner from adding subscribers.
    pages: Mutex<Pace<(PageId, Asker)>>,
    accounts: Mutex<Pace<(AccountId, Asker)>>,
    /// Time and result of the last count of each account's confirmed addresses.
    confirmed: Mutex<BTreeMap<(AccountId, Asker), (Timestamp, usize)>>,
    /// Unconfirmed addresses that owners added, with the time of the request; kept even if their records are deleted.
    /// Loaded from the store on first use of an account.
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

/// An unconfirmed address that an owner added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pending {
    /// A subscriber's address.
    Subscriber(SubscriberId),
    /// A destination's mailbox: a destination may have several over time.
    Destination(DestinationId, String),
}

impl Service {
    /// Counts a confirmation request from a visitor at that client IP. Admits it if too many IPs are tracked already:
    /// an attack from many addresses must not lock out others, and the limits of pages and accounts still apply.
    ///
    /// # Errors
    /// [`Error::PageAsks`] with the seconds until the hour is over, beyond the limit.
    pub(super) fn admit_visitor(&self, place: u128) -> Result<()> {
        let mut visitors = self.0.asking.visitors.lock().unwrap_or_else(PoisonError::into_inner);
        if !visitors.knows(&place, self.now()) && visitors.is_full(self.now()) {
            return Ok(());
        }
        let paced = visitors.admit(VISITOR_AN_HOUR, &place, self.now());
        paced.map_err(|TooOften { seconds }| Error::PageAsks { seconds })
    }

    /// Counts a confirmation request on behalf of the page.
    ///
    /// # Errors
    /// [`Error::PageAsks`] or [`Error::AccountAsks`] beyond the limit.
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

    /// Reserves one of the account's slots for unconfirmed addresses. The slot stays taken until the address is
    /// confirmed or expires, even if its record is deleted.
    ///
    /// # Errors
    /// [`PlanRefusal::UnconfirmedFull`] if none is left.
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

    /// Releases the slot of an address that has confirmed.
    pub(super) fn release_unconfirmed(&self, account: AccountId, pending: &Pending) {
        if let Some(own) = self.unconfirmed().get_mut(&account) {
            own.remove(pending);
        }
    }

    /// Returns the number of an account's confirmed mailboxes that count, at most a minute old.
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

/// Returns the mailbox of a destination that may still confirm, and when its confirmation was requested.
fn awaits_reader(destination: &Destination, now: Timestamp) -> Option<(String, Timestamp)> {
    let at = destination.asked_at().filter(|at| now.since(*at) < UNCONFIRMED)?;
    Some((destination.mailbox()?.to_owned(), at))
}

/// Finds the unconfirmed addresses that an account's owner added.
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

/// Counts mailboxes of an account's subscribers that confirmed a day ago or earlier, up to `most`. Webhooks don't
/// count: they confirm automatically, which proves nothing.
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

/// Visits a page's subscribers until `goes_on` returns false.
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
