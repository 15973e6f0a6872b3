//! Rate limits for confirmation mails and challenges to unconfirmed addresses: per page and account, and a maximum of
//! unconfirmed addresses per owner.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use parallax_core::destination::Destination;
use parallax_core::id::{AccountId, DestinationId, PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::plan::PlanLimitError;
use parallax_core::rate_limit::{FixedWindowLimit, RateExceeded, RateLimitStatus};
use parallax_core::subscriber::confirmation_limit::{
    ConfirmationOrigin, IMPORTED_PER_HOUR, MAX_UNCONFIRMED, PER_PAGE_MINUTE, PER_VISITOR_HOUR,
};
use parallax_core::subscriber::import::IMPORT_FIELD;
use parallax_core::subscriber::{Contact, Subscriber, UNCONFIRMED_RETENTION};
use parallax_core::time::{DAY, HOUR, MINUTE, Timestamp};
use parallax_core::validation::ValidationErrors;
use parallax_store::{self as storage, StoreRead};

use crate::context::ServiceContext;
use crate::{ServiceError, ServiceResult};

/// Milliseconds for which a count of an account's confirmed addresses is reused.
const COUNT_MAX_AGE: i64 = MINUTE;
/// Milliseconds after which a confirmed mailbox counts: mailboxes made only to raise the limit are worth little by
/// then.
const MIN_CONFIRMED_AGE: i64 = DAY;
/// Requests of each limit that imports leave to single ones: an import may take days.
const LEFT_FOR_SINGLE: u32 = 5;
/// Slots for unconfirmed addresses that imports leave.
const SLOTS_LEFT: usize = 20;
/// Subscribers read per query.
const SLICE: usize = 512;

/// Counts of confirmation requests by visitor, page and account.
#[derive(Debug)]
pub(crate) struct ConfirmationLimits {
    context: Arc<ServiceContext>,
    visitors: Mutex<FixedWindowLimit<u128>>,
    /// Visitors are counted apart from the owner: strangers must not keep an owner from adding subscribers.
    pages: Mutex<FixedWindowLimit<(PageId, ConfirmationOrigin)>>,
    accounts: Mutex<FixedWindowLimit<(AccountId, ConfirmationOrigin)>>,
    /// Imported addresses of each account.
    imports: Mutex<FixedWindowLimit<AccountId>>,
    /// Time and result of the last count of each account's confirmed addresses.
    confirmed: Mutex<BTreeMap<(AccountId, ConfirmationOrigin), (Timestamp, usize)>>,
    /// Unconfirmed addresses that owners added, with the time of the request; kept even if their records are deleted.
    /// Loaded from the store on first use of an account.
    unconfirmed: Mutex<BTreeMap<AccountId, BTreeMap<UnconfirmedAddress, Timestamp>>>,
}

impl ConfirmationLimits {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self {
            context: Arc::clone(context),
            visitors: Mutex::new(FixedWindowLimit::new(HOUR)),
            pages: Mutex::new(FixedWindowLimit::new(MINUTE)),
            accounts: Mutex::new(FixedWindowLimit::new(HOUR)),
            imports: Mutex::new(FixedWindowLimit::new(HOUR)),
            confirmed: Mutex::default(),
            unconfirmed: Mutex::default(),
        }
    }
}

/// An unconfirmed address that an owner added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnconfirmedAddress {
    /// A subscriber's address.
    Subscriber(SubscriberId),
    /// A destination's mailbox: a destination may have several over time.
    Destination(DestinationId, String),
}

impl ConfirmationLimits {
    /// Counts a confirmation request from a visitor at that client IP. Admits it if too many IPs are tracked already:
    /// an attack from many addresses must not lock out others, and the limits of pages and accounts still apply.
    ///
    /// # Errors
    /// [`ServiceError::PageConfirmationLimit`] with the seconds until the hour is over, beyond the limit.
    pub(crate) fn admit_visitor(&self, network: u128) -> ServiceResult<()> {
        let mut visitors = self.visitors.lock().unwrap_or_else(PoisonError::into_inner);
        if !visitors.is_tracked(&network, self.context.now()) && visitors.is_full(self.context.now()) {
            return Ok(());
        }
        let admitted = visitors.admit(PER_VISITOR_HOUR, &network, self.context.now());
        admitted.map_err(|RateExceeded { seconds }| ServiceError::PageConfirmationLimit { seconds })
    }

    /// Counts a confirmation request on behalf of the page.
    ///
    /// # Errors
    /// [`ServiceError::PageConfirmationLimit`] or [`ServiceError::AccountConfirmationLimit`] beyond the limit.
    pub(super) async fn admit_confirmation(&self, page: &Page, origin: ConfirmationOrigin) -> ServiceResult<()> {
        let seconds = |RateExceeded { seconds }| seconds;
        self.context
            .check_rate(&self.pages, PER_PAGE_MINUTE, &(page.id, origin))
            .map_err(|exceeded| ServiceError::PageConfirmationLimit { seconds: seconds(exceeded) })?;
        let (key, base) = ((page.account, origin), origin.hourly_limit(0));
        let has_room = {
            let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
            accounts.would_admit(base, &key, self.context.now())
        };
        let limit =
            if has_room { base } else { origin.hourly_limit(self.confirmed_count(page.account, origin).await?) };
        self.context
            .check_rate(&self.accounts, limit, &key)
            .map_err(|exceeded| ServiceError::AccountConfirmationLimit { origin, limit, seconds: seconds(exceeded) })
    }

    /// Checks that an account may import that many new addresses in this hour.
    ///
    /// # Errors
    /// Of the field [`IMPORT_FIELD`], with the number that it may still import.
    pub(super) fn check_import(&self, account: AccountId, added: usize) -> Result<(), ValidationErrors> {
        let imports = self.imports.lock().unwrap_or_else(PoisonError::into_inner);
        let status = imports.peek(IMPORTED_PER_HOUR, &account, self.context.now());
        let is_within = u32::try_from(added).is_ok_and(|added| added <= status.remaining);
        if is_within { Ok(()) } else { Err(too_many_imported(added, status)) }
    }

    /// The same, and counts them.
    ///
    /// # Errors
    /// As for [`Self::check_import`].
    pub(super) fn admit_import(&self, account: AccountId, added: usize) -> Result<(), ValidationErrors> {
        self.check_import(account, added)?;
        let count = u32::try_from(added).unwrap_or(u32::MAX);
        let mut imports = self.imports.lock().unwrap_or_else(PoisonError::into_inner);
        let status = imports.count(IMPORTED_PER_HOUR, &account, count, self.context.now());
        if status.allowed { Ok(()) } else { Err(too_many_imported(added, status)) }
    }

    /// Returns true if an imported address may be asked now.
    pub(super) async fn has_room_for_import(&self, page: &Page) -> ServiceResult<bool> {
        let (origin, now) = (ConfirmationOrigin::Owner, self.context.now());
        let hourly = origin.hourly_limit(self.confirmed_count(page.account, origin).await?);
        let has_minute = {
            let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
            pages.would_admit(PER_PAGE_MINUTE - LEFT_FOR_SINGLE, &(page.id, origin), now)
        };
        let has_hour = {
            let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
            accounts.would_admit(hourly.saturating_sub(LEFT_FOR_SINGLE), &(page.account, origin), now)
        };
        let has_slot = self.unconfirmed().get(&page.account).is_none_or(|addresses| {
            let is_taken = |at: &&Timestamp| (0..UNCONFIRMED_RETENTION).contains(&now.since(**at));
            addresses.values().filter(is_taken).count() < MAX_UNCONFIRMED - SLOTS_LEFT
        });
        Ok(has_minute && has_hour && has_slot)
    }

    /// Reserves one of the account's slots for unconfirmed addresses. The slot stays taken until the address is
    /// confirmed or expires, even if its record is deleted.
    ///
    /// # Errors
    /// [`PlanLimitError::UnconfirmedFull`] if none is left.
    pub(super) async fn reserve_unconfirmed(
        &self,
        account: AccountId,
        pending: UnconfirmedAddress,
    ) -> ServiceResult<()> {
        let is_read = self.unconfirmed().contains_key(&account);
        if !is_read {
            let now = self.context.now();
            let unconfirmed = self.context.store().read(move |store| find_unconfirmed(store, account, now)).await?;
            self.unconfirmed().entry(account).or_default().extend(unconfirmed);
        }
        let now = self.context.now();
        let mut all = self.unconfirmed();
        let addresses = all.entry(account).or_default();
        addresses.retain(|_, at| (0..UNCONFIRMED_RETENTION).contains(&now.since(*at)));
        if addresses.len() >= MAX_UNCONFIRMED && !addresses.contains_key(&pending) {
            return Err(PlanLimitError::UnconfirmedFull.into());
        }
        addresses.insert(pending, now);
        Ok(())
    }

    /// Releases the slot of an address that has confirmed.
    pub(super) fn release_unconfirmed(&self, account: AccountId, pending: &UnconfirmedAddress) {
        if let Some(addresses) = self.unconfirmed().get_mut(&account) {
            addresses.remove(pending);
        }
    }

    /// Returns the number of an account's confirmed mailboxes that count, at most a minute old.
    async fn confirmed_count(&self, account: AccountId, origin: ConfirmationOrigin) -> ServiceResult<usize> {
        let (key, now) = ((account, origin), self.context.now());
        let cached = self.confirmed().get(&key).copied();
        if let Some((_, count)) = cached.filter(|(at, _)| (0..COUNT_MAX_AGE).contains(&now.since(*at))) {
            return Ok(count);
        }
        let limit = origin.max_counted();
        let count = self.context.store().read(move |store| count_confirmed(store, account, limit, now)).await?;
        self.confirmed().insert(key, (now, count));
        Ok(count)
    }

    fn confirmed(&self) -> std::sync::MutexGuard<'_, BTreeMap<(AccountId, ConfirmationOrigin), (Timestamp, usize)>> {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn unconfirmed(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<AccountId, BTreeMap<UnconfirmedAddress, Timestamp>>> {
        self.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_many_imported(added: usize, status: RateLimitStatus) -> ValidationErrors {
    let RateLimitStatus { limit, remaining, reset_seconds, .. } = status;
    let minutes = reset_seconds.div_ceil(60);
    let rule = format!(
        "has {added} new addresses: an account may import {limit} an hour, and {remaining} more in the next \
         {minutes} minutes"
    );
    ValidationErrors::single(IMPORT_FIELD, rule)
}

fn is_pending(subscriber: &Subscriber, now: Timestamp) -> bool {
    let is_asked = subscriber.confirmed_at.is_none() && !subscriber.is_queued();
    subscriber.by_owner && is_asked && !subscriber.is_expired(now)
}

/// Returns the mailbox of a destination that may still confirm, and when its confirmation was requested.
fn pending_mailbox(destination: &Destination, now: Timestamp) -> Option<(String, Timestamp)> {
    let at = destination.confirmation_sent_at().filter(|at| now.since(*at) < UNCONFIRMED_RETENTION)?;
    Some((destination.mailbox()?.to_owned(), at))
}

/// Finds the unconfirmed addresses that an account's owner added.
fn find_unconfirmed(
    store: &dyn StoreRead,
    account: AccountId,
    now: Timestamp,
) -> storage::Result<Vec<(UnconfirmedAddress, Timestamp)>> {
    let mut unconfirmed = Vec::new();
    for page in store.pages_of(account)?.into_iter().map(|page| page.value.id) {
        for_each_subscriber(store, page, |it| {
            if is_pending(it, now) {
                unconfirmed.push((UnconfirmedAddress::Subscriber(it.id), it.confirmation_sent_at));
            }
            unconfirmed.len() < MAX_UNCONFIRMED
        })?;
        for it in store.destinations_of(page)?.into_iter().map(|it| it.value) {
            if let Some((mailbox, at)) = pending_mailbox(&it, now) {
                unconfirmed.push((UnconfirmedAddress::Destination(it.id, mailbox), at));
            }
        }
    }
    Ok(unconfirmed)
}

/// Counts mailboxes of an account's subscribers that confirmed a day ago or earlier, up to `limit`. Webhooks don't
/// count: they confirm automatically, which proves nothing.
fn count_confirmed(store: &dyn StoreRead, account: AccountId, limit: usize, now: Timestamp) -> storage::Result<usize> {
    let mut count = 0;
    for page in store.pages_of(account)?.into_iter().map(|page| page.value.id) {
        for_each_subscriber(store, page, |it| {
            let is_long = it.confirmed_at.is_some_and(|at| now.since(at) >= MIN_CONFIRMED_AGE);
            count += usize::from(is_long && matches!(it.contact, Contact::Email(_)));
            count < limit
        })?;
    }
    Ok(count.min(limit))
}

/// Visits a page's subscribers until `keep_reading` returns false.
fn for_each_subscriber(
    store: &dyn StoreRead,
    page: PageId,
    mut keep_reading: impl FnMut(&Subscriber) -> bool,
) -> storage::Result<()> {
    let mut after = None;
    loop {
        let slice = store.subscribers_of(page, after, SLICE)?;
        let Some(last) = slice.last() else { return Ok(()) };
        after = Some(last.value.id);
        if !slice.iter().all(|it| keep_reading(&it.value)) {
            return Ok(());
        }
    }
}
