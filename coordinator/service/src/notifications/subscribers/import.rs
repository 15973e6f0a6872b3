//! Import of subscribers: new addresses are stored, and each is asked first, as soon as the limits of confirmation
//! mails allow. An address that is on the page, or whose reader unsubscribed from it, stays as it is.

use std::collections::BTreeSet;

use parallax_core::id::PageId;
use parallax_core::page::Page;
use parallax_core::role::Permission;
use parallax_core::subscriber::import::{self, IMPORT_FIELD, ImportEntry, RefusedLine};
use parallax_core::subscriber::request::{SubscriberAddress, ValidSubscription};
use parallax_core::subscriber::{MAX_SUBSCRIBERS, Subscriber};
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_store::{self as storage, Batch, Expect, Presence};

use super::administration::SubscriberCounts;
use super::mailboxes::PageMailboxes;
use super::request::NewSubscriber;
use super::{SubscriberService, contact_fingerprint};
use crate::idempotency::{IdempotentRequest, RequestOutcome, Rereadable};
use crate::notifications::confirmation_requests::is_opted_out;
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
    /// Addresses whose mailbox is on the page already, confirmed or not, in this spelling or another.
    pub known: usize,
    /// Lines whose mailbox stands on an earlier line.
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

impl Relation {
    const fn of(is_known: bool, is_opted_out: bool) -> Self {
        match (is_known, is_opted_out) {
            (true, _) => Self::Known,
            (false, true) => Self::OptedOut,
            (false, false) => Self::New,
        }
    }
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

    /// Corrects the count of an address that was new when the import was compared with the page.
    fn change_new(&mut self, relation: Relation) {
        self.added -= 1;
        self.add(relation);
    }
}

/// An import after its comparison with the page.
#[derive(Debug)]
struct ComparedImport {
    /// Addresses that are asked.
    new: Vec<ImportEntry>,
    report: ImportReport,
}

impl SubscriberService {
    /// Returns what an import of that text would do. Nothing is stored.
    ///
    /// # Errors
    /// As for [`Self::import`].
    pub async fn preview_import(&self, caller: &Caller, page: PageId, text: &str) -> ServiceResult<ImportReport> {
        let page = self.context.page(caller, page)?;
        caller.require(Permission::Edit)?;
        Ok(self.compare(&page, text).await?.report)
    }

    /// Imports subscribers: addresses, one a line, or CSV with a header. Each new address is asked by one mail and gets
    /// nothing else until its reader confirms. The mails are spread, so that the limits of confirmation mails hold. An
    /// import that ends early leaves addresses that are asked; when it is repeated, it adds the rest.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound),
    /// [`ServiceError::ReadOnly`](crate::ServiceError::ReadOnly),
    /// [`ServiceError::RoleForbids`](crate::ServiceError::RoleForbids), and
    /// [`ServiceError::Invalid`](crate::ServiceError::Invalid) for a text that is too long, has no address, or has more
    /// than the page has room for or the account may import in an hour.
    pub async fn import(
        &self,
        caller: &Caller,
        page: PageId,
        text: &str,
        once: &IdempotentRequest<'_, ImportReport>,
    ) -> ServiceResult<RequestOutcome<ImportReport>> {
        let page = self.context.page(caller, page)?;
        caller.require(Permission::Edit)?;
        // One at a time: of two that are compared with the same page, each would see room for all of its addresses.
        let _turn = self.import_queue.turn(page.id).await;
        if let Some(answer) = self.context.replayed_answer(once)? {
            return Ok(RequestOutcome::Replayed(answer));
        }
        let ComparedImport { new, mut report } = self.compare(&page, text).await?;
        self.limits.admit_import(page.account, new.len())?;
        for entries in new.chunks(AT_ONCE) {
            for relation in self.store_queued(caller, &page, entries).await? {
                report.change_new(relation);
            }
            // Not at the end: an import may end early, and what it stored is asked even then.
            self.import_queue.add(page.id);
            self.counts_cache.forget(page.id);
        }
        let ImportReport { added, known, repeated, opted_out, .. } = report;
        let (refused, by) = (report.refused.len(), caller.limit_id());
        tracing::info!(page = %page.id, %by, added, known, repeated, opted_out, refused, "subscribers were imported");
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

    /// Parses the text, compares its addresses with the page, and checks that there is room for the new ones.
    async fn compare(&self, page: &Page, text: &str) -> ServiceResult<ComparedImport> {
        let import = import::parse(text, &self.monitor_choices(page).await?)?;
        let addresses = import.entries.iter().map(|it| &it.address);
        let addresses = addresses.chain(import.refused.iter().filter_map(|it| it.address.as_ref()));
        let wanted: BTreeSet<String> = addresses.map(SubscriberAddress::mailbox_key).collect();
        let names: Vec<String> =
            import.entries.iter().map(|it| self.context.opt_out_key(page.id, &it.address)).collect();
        let (id, now) = (page.id, self.context.now());
        let read = self.context.store().read(move |store| {
            let out =
                names.iter().map(|name| is_opted_out(store, name, now)).collect::<storage::Result<Vec<bool>>>()?;
            Ok((PageMailboxes::search(store, id, &wanted)?, out))
        });
        let (mailboxes, out) = read.await?;
        let is_known = |address: &SubscriberAddress| mailboxes.found.contains(&address.mailbox_key());
        let mut report = ImportReport { repeated: import.repeated, ..ImportReport::default() };
        let mut new = Vec::new();
        for (entry, is_out) in import.entries.into_iter().zip(out) {
            let relation = Relation::of(is_known(&entry.address), is_out);
            report.add(relation);
            if relation == Relation::New {
                new.push(entry);
            }
        }
        // A subscriber stays as it is, so the rest of its line may say what it wants.
        let (known, refused) = import.refused.into_iter().partition(|it| it.address.as_ref().is_some_and(is_known));
        let known: Vec<RefusedLine> = known;
        report.known += known.len();
        report.refused = refused;
        check_room(&mailboxes.counts, report.added)?;
        self.limits.check_import(page.account, report.added)?;
        Ok(ComparedImport { new, report })
    }

    /// Stores the new ones of some addresses. Returns the relation of each to the page before that.
    async fn store_queued(
        &self,
        caller: &Caller,
        page: &Page,
        entries: &[ImportEntry],
    ) -> ServiceResult<Vec<Relation>> {
        self.context
            .commit_change(page.id.to_u128(), || async move {
                let (reader, now) = (self.context.store().reader(), self.context.now());
                let (mut relations, mut batch) = (Vec::with_capacity(entries.len()), Batch::new());
                let mut added = 0;
                for entry in entries {
                    let address = &entry.address;
                    let known = reader.subscriber_by_contact(page.id, contact_fingerprint(address))?.is_some();
                    let out = is_opted_out(reader.as_ref(), &self.context.opt_out_key(page.id, address), now)?;
                    let relation = Relation::of(known, out);
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
                    self.context.log_change(caller, &mut batch)?;
                }
                Ok((relations, (added > 0).then_some(batch)))
            })
            .await
    }
}

/// Checks that a page with those subscribers has room for that many more that wait to be asked.
fn check_room(counts: &SubscriberCounts, added: usize) -> Result<(), ValidationErrors> {
    let wrong = |rule: String| Err(ValidationErrors::single(IMPORT_FIELD, rule));
    if added > 0 && counts.queued + added > MAX_QUEUED {
        let waiting = counts.queued;
        return wrong(format!(
            "has {added} new addresses, and {waiting} wait to be asked already: at most {MAX_QUEUED} may"
        ));
    }
    if added > 0 && counts.total() + added > MAX_SUBSCRIBERS {
        let room = MAX_SUBSCRIBERS.saturating_sub(counts.total());
        return wrong(format!("has {added} new addresses: the page has room for {room}"));
    }
    Ok(())
}

/// Builds a subscriber that waits to be asked.
fn queued(page: &Page, entry: &ImportEntry, now: Timestamp) -> Subscriber {
    let valid = ValidSubscription { address: entry.address.clone(), monitors: entry.monitors.clone() };
    Subscriber { queued_at: Some(now), ..NewSubscriber::new(now, true).subscriber(page, &valid, now) }
}
