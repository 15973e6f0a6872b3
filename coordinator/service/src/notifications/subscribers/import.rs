//! Import of subscribers: new addresses are stored, and each is asked first, as soon as the limits of confirmation
//! mails allow. An address that is on the page, or whose reader unsubscribed from it, stays as it is.

use parallax_core::id::{MonitorId, PageId};
use parallax_core::page::Page;
use parallax_core::role::Permission;
use parallax_core::subscriber::import::{self, IMPORT_FIELD, ImportEntry, RefusedLine, SubscriberImport};
use parallax_core::subscriber::request::{SubscriberAddress, ValidSubscription};
use parallax_core::subscriber::{MAX_SUBSCRIBERS, Subscriber};
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_store::{self as storage, Batch, Expect, Presence, StoreRead};

use super::request::NewSubscriber;
use super::{SubscriberService, contact_fingerprint};
use crate::idempotency::{IdempotentRequest, RequestOutcome, Rereadable};
use crate::notifications::confirmation_requests::opt_out_key;
use crate::{Caller, ServiceResult};

/// Imported addresses of one page that may wait to be asked.
pub const MAX_QUEUED: usize = 5_000;
/// Addresses stored in one batch.
const AT_ONCE: usize = 250;

/// Result of an import, or of its preview.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// New addresses: they are asked.
    pub added: usize,
    /// Addresses that are on the page already, confirmed or not.
    pub known: usize,
    /// Lines whose address stands on an earlier line.
    pub repeated: usize,
    /// Addresses whose readers unsubscribed from the page: they are not asked.
    pub opted_out: usize,
    /// Lines that break a rule.
    pub refused: Vec<RefusedLine>,
}

impl Rereadable for ImportReport {}

/// Relation of an address to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    New,
    Known,
    OptedOut,
}

impl ImportReport {
    fn add(&mut self, relation: Relation) {
        let count = match relation {
            Relation::New => &mut self.added,
            Relation::Known => &mut self.known,
            Relation::OptedOut => &mut self.opted_out,
        };
        *count += 1;
    }
}

impl SubscriberService {
    /// Returns what an import of that text would do. Nothing is stored.
    ///
    /// # Errors
    /// As for [`Self::import`].
    pub async fn preview_import(&self, caller: &Caller, page: PageId, text: &str) -> ServiceResult<ImportReport> {
        let page = self.context.page(caller, page)?;
        caller.require(Permission::Edit)?;
        let import = self.parse_import(&page, text).await?;
        self.checked_report(&page, &import).await
    }

    /// Imports subscribers: addresses, one a line, or CSV with a header. Each new address is asked by one mail and gets
    /// nothing else until its reader confirms. The mails are spread, so that the limits of confirmation mails hold.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound),
    /// [`ServiceError::ReadOnly`](crate::ServiceError::ReadOnly),
    /// [`ServiceError::RoleForbids`](crate::ServiceError::RoleForbids), and
    /// [`ServiceError::Invalid`](crate::ServiceError::Invalid) for a text that is too long, has no address, or has more
    /// than the page has room for.
    pub async fn import(
        &self,
        caller: &Caller,
        page: PageId,
        text: &str,
        once: &IdempotentRequest<'_, ImportReport>,
    ) -> ServiceResult<RequestOutcome<ImportReport>> {
        let page = self.context.page(caller, page)?;
        caller.require(Permission::Edit)?;
        if let Some(answer) = self.context.replayed_answer(once)? {
            return Ok(RequestOutcome::Replayed(answer));
        }
        let import = self.parse_import(&page, text).await?;
        self.checked_report(&page, &import).await?;
        let mut report = ImportReport { repeated: import.repeated, refused: import.refused, ..ImportReport::default() };
        for entries in import.entries.chunks(AT_ONCE) {
            for relation in self.store_queued(&page, entries).await? {
                report.add(relation);
            }
        }
        self.counts_cache.forget(page.id);
        self.import_queue.add(page.id);
        let report = &report;
        // Apart from the addresses: an import that is repeated after a crash finds them on the page.
        self.context
            .commit_change(page.id.to_u128(), || async move {
                if let Some(answer) = self.context.replayed_answer(once)? {
                    return Ok((RequestOutcome::Replayed(answer), None));
                }
                let mut batch = Batch::new();
                self.context.store_answer(once, report, &mut batch)?;
                Ok((RequestOutcome::Fresh(report.clone()), (!batch.is_empty()).then_some(batch)))
            })
            .await
    }

    async fn parse_import(&self, page: &Page, text: &str) -> ServiceResult<SubscriberImport> {
        let id = page.id;
        let monitors = self.context.store().read(move |store| store.monitors_of(id)).await?;
        let monitors: Vec<(MonitorId, String)> = monitors.into_iter().map(|it| (it.value.id, it.value.name)).collect();
        Ok(import::parse(text, &monitors)?)
    }

    /// Compares the addresses with the page, and checks that it has room for the new ones.
    async fn checked_report(&self, page: &Page, import: &SubscriberImport) -> ServiceResult<ImportReport> {
        let (id, now) = (page.id, self.context.now());
        let addresses: Vec<SubscriberAddress> = import.entries.iter().map(|it| it.address.clone()).collect();
        let relations = self.context.store().read(move |store| {
            addresses.iter().map(|address| relation(store, id, address, now)).collect::<storage::Result<Vec<_>>>()
        });
        let mut report =
            ImportReport { repeated: import.repeated, refused: import.refused.clone(), ..ImportReport::default() };
        relations.await?.into_iter().for_each(|relation| report.add(relation));
        let counts = self.counts_of(id).await?;
        let wrong = |rule: String| Err(ValidationErrors::single(IMPORT_FIELD, rule).into());
        if report.added > 0 && counts.queued + report.added > MAX_QUEUED {
            let waiting = counts.queued;
            return wrong(format!(
                "has {} new addresses, and {waiting} wait to be asked already: at most {MAX_QUEUED} may",
                report.added
            ));
        }
        if report.added > 0 && counts.total() + report.added > MAX_SUBSCRIBERS {
            let room = MAX_SUBSCRIBERS.saturating_sub(counts.total());
            return wrong(format!("has {} new addresses: the page has room for {room}", report.added));
        }
        Ok(report)
    }

    /// Stores the new ones of some addresses. Returns the relation of each to the page before that.
    async fn store_queued(&self, page: &Page, entries: &[ImportEntry]) -> ServiceResult<Vec<Relation>> {
        self.context
            .commit_change(page.id.to_u128(), || async move {
                let (reader, now) = (self.context.store().reader(), self.context.now());
                let (mut relations, mut batch) = (Vec::with_capacity(entries.len()), Batch::new());
                let mut added = 0;
                for entry in entries {
                    let relation = relation(reader.as_ref(), page.id, &entry.address, now)?;
                    relations.push(relation);
                    if relation == Relation::New {
                        added += 1;
                        let subscriber = queued(page, entry, now);
                        batch.expect(Expect::Subscriber(subscriber.id, Presence::Absent)).write(subscriber);
                    }
                }
                if added > 0 {
                    batch.expect(Expect::Page(page.id, Presence::Present));
                    batch.expect(Expect::SubscribersBelow(page.id, (MAX_SUBSCRIBERS + 1).saturating_sub(added)));
                }
                Ok((relations, (added > 0).then_some(batch)))
            })
            .await
    }
}

/// Builds a subscriber that waits to be asked.
fn queued(page: &Page, entry: &ImportEntry, now: Timestamp) -> Subscriber {
    let valid = ValidSubscription { address: entry.address.clone(), monitors: entry.monitors.clone() };
    Subscriber { queued_at: Some(now), ..NewSubscriber::new(now, true).subscriber(page, &valid, now) }
}

fn relation(
    store: &dyn StoreRead,
    page: PageId,
    address: &SubscriberAddress,
    now: Timestamp,
) -> storage::Result<Relation> {
    if store.subscriber_by_contact(page, contact_fingerprint(address))?.is_some() {
        return Ok(Relation::Known);
    }
    let opt_out = store.stored_response(&opt_out_key(page, address))?;
    let is_out = opt_out.is_some_and(|it| it.value.expires_at > now);
    Ok(if is_out { Relation::OptedOut } else { Relation::New })
}
