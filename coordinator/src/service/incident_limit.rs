//! The number of incidents and maintenance windows that an account keeps.
//!
//! One that a person opens beyond the plan's number takes the place of the oldest that is closed for 30 days, and is refused
//! where there is none. Automatic ones are never refused; beyond twice the number of the largest plan the oldest closed ones
//! go, as many as have come. So nothing is dropped because a plan or its number changed: what an account had stays.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use parallax_core::account::Account;
use parallax_core::id::{AccountId, IncidentId, PageId};
use parallax_core::incident::{Incident, News, Told};
use parallax_core::plan::{Plan, PlanRefusal};
use parallax_core::time::{DAY, Timestamp};

use super::{Result, Service};
use crate::storage::{self, Batch, Expect, Is, Op, Read, StoreError, Versioned};

/// Milliseconds after its end in which an incident makes no room for one of a person's.
const KEPT: i64 = 30 * DAY;
/// Incidents looked at on one page at once.
const SLICE: usize = 256;
/// Pause between two looks at all accounts.
const SWEEP: Duration = Duration::from_secs(3_600);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(60);

impl Service {
    /// Drops the oldest closed incidents of accounts that have too many, as long as the coordinator runs.
    pub async fn keep_incident_limits(self) {
        loop {
            match self.sweep_incidents().await {
                Ok(()) => tokio::time::sleep(SWEEP).await,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::error!(%error, "old incidents can't be dropped; trying again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Drops what may go on every account. The first time it only notes what each has.
    pub(super) async fn sweep_incidents(&self) -> storage::Result<()> {
        let most = Plan::ALL.into_iter().map(|plan| self.limits().incidents(plan)).max();
        let most = usize::try_from(most.unwrap_or(u32::MAX)).unwrap_or(usize::MAX);
        self.sweep_incidents_to(most.saturating_mul(2)).await
    }

    /// The same with another number that an account keeps at least.
    pub(super) async fn sweep_incidents_to(&self, most: usize) -> storage::Result<()> {
        let known = self.0.incidents_kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut kept = BTreeMap::new();
        for account in self.store().read(|store| store.accounts()).await? {
            let id = account.value.id;
            let count = self.store().read(move |store| count(store, id)).await?;
            if count <= most {
                continue;
            }
            let left = match &known {
                Some(known) => self.drop_incidents(id, known.get(&id).copied().unwrap_or(most)).await?,
                None => count,
            };
            if left > most {
                kept.insert(id, left);
            }
        }
        *self.0.incidents_kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Ok(())
    }

    /// The incident that makes room for one more of a person's, where one has to.
    ///
    /// # Errors
    /// [`PlanRefusal::IncidentsFull`] where the account has as many as it may, and none may go.
    pub(super) async fn room_for_incident(&self, account: &Account) -> Result<Option<Droppable>> {
        let (id, now, plan) = (account.id, self.now(), account.plan);
        let limit = self.limits().incidents(plan);
        let oldest = move |store: &dyn Read| {
            if count(store, id)? < usize::try_from(limit).unwrap_or(usize::MAX) {
                return Ok(None);
            }
            let oldest = closed(store, id, 1)?.into_iter().next();
            Ok(Some(oldest.filter(|it| now.since(it.ended) >= KEPT)))
        };
        match self.store().read(oldest).await? {
            None => Ok(None),
            Some(Some(oldest)) => Ok(Some(oldest)),
            Some(None) => Err(PlanRefusal::IncidentsFull { plan, limit }.into()),
        }
    }

    /// Adds to a batch that an incident is dropped. A window is not cancelled by it in calendars: it is over.
    pub(super) fn drop_in(&self, batch: &mut Batch, it: &Droppable) {
        batch.expect(Expect::Incident(it.id, Is::At(it.revision))).write(Op::DeleteIncident(it.id));
        let told = Told { incident: it.id, news: News::Deleted, update: None, notify: false };
        batch.event(self.incident_event(it.page, told));
    }

    /// Drops the oldest closed incidents of an account beyond that number, and gives how many are left.
    async fn drop_incidents(&self, account: AccountId, most: usize) -> storage::Result<usize> {
        loop {
            let count = self.store().read(move |store| count(store, account)).await?;
            let over = count.saturating_sub(most);
            let found = self.store().read(move |store| closed(store, account, over)).await?;
            if found.is_empty() {
                return Ok(count);
            }
            let dropped = found.len();
            for it in found {
                let mut batch = Batch::new();
                self.drop_in(&mut batch, &it);
                match self.store().commit(batch).await {
                    // Edited meanwhile.
                    Ok(_) | Err(StoreError::Conflict(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            tracing::info!(%account, dropped, most, "oldest closed incidents dropped: the account has too many");
        }
    }
}

/// A closed incident, with the revision that it was read at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Droppable {
    page: PageId,
    id: IncidentId,
    revision: u64,
    ended: Timestamp,
}

/// Incidents and windows of an account, open ones too.
fn count(store: &dyn Read, account: AccountId) -> storage::Result<usize> {
    let mut count = 0;
    for page in store.pages_of(account)? {
        count += store.standing(page.value.id)?.incidents;
    }
    Ok(count)
}

/// The oldest closed incidents of an account, so many at most.
fn closed(store: &dyn Read, account: AccountId, most: usize) -> storage::Result<Vec<Droppable>> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for page in store.pages_of(account)? {
        let oldest = oldest_with_closed(store, page.value.id, most)?;
        found.extend(oldest.into_iter().filter(|it| !it.value.is_open()).map(|it| Droppable {
            page: it.value.page,
            id: it.value.id,
            revision: it.revision,
            ended: ended(&it.value),
        }));
    }
    found.sort_by_key(|it| (it.ended, it.id));
    found.truncate(most.min(SLICE));
    Ok(found)
}

/// The oldest incidents of a page, with so many closed ones where it has them. Read in growing slices: an incident may be
/// long, and few of the oldest are open.
fn oldest_with_closed(
    store: &dyn Read,
    page: PageId,
    closed: usize,
) -> storage::Result<Vec<Versioned<Incident>>> {
    let mut slice = closed.clamp(1, SLICE);
    loop {
        let oldest = store.oldest_incidents(page, slice)?;
        let found = oldest.iter().filter(|it| !it.value.is_open()).count();
        if found >= closed || oldest.len() < slice || slice == SLICE {
            return Ok(oldest);
        }
        slice = slice.saturating_mul(4).min(SLICE);
    }
}

/// The moment from which an incident's age counts: one that was entered afterwards is as new as its entry.
fn ended(incident: &Incident) -> Timestamp {
    incident.resolved_at.unwrap_or(incident.started_at).max(incident.created_at)
}
