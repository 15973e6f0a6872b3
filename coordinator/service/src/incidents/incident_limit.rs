//! The maximum number of incidents and maintenance windows per account.
//!
//! An incident that a person opens beyond the plan's number replaces the oldest that has been closed for 30 days, and
//! is refused if there is none. Automatic incidents are never refused; beyond twice the number of the largest plan,
//! the oldest closed ones are deleted, one for each new one. So a change of the plan or its number deletes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use parallax_core::account::Account;
use parallax_core::id::{AccountId, IncidentId, PageId};
use parallax_core::incident::{Incident, IncidentChange, IncidentEvent};
use parallax_core::plan::{Plan, PlanLimitError};
use parallax_core::time::{DAY, Timestamp};
use parallax_store::{self as storage, Batch, Expect, Op, Presence, StoreError, StoreRead, VersionedValue};

use super::IncidentService;
use crate::ServiceResult;

/// Milliseconds after its end during which an incident is not replaced by a person's new one.
const MIN_CLOSED_AGE: i64 = 30 * DAY;
/// Incidents read per page and query.
const SLICE: usize = 256;
/// Interval of the sweep over all accounts.
const SWEEP: Duration = Duration::from_secs(3_600);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(60);

impl IncidentService {
    /// Deletes the oldest closed incidents of accounts that exceed the limit, as long as the coordinator runs.
    pub async fn run_limits(self: Arc<Self>) {
        loop {
            match self.sweep_incidents().await {
                Ok(()) => tokio::time::sleep(SWEEP).await,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::error!(%error, "old incidents can't be deleted; trying again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Sweeps all accounts once. The first sweep only records the counts.
    pub(crate) async fn sweep_incidents(&self) -> storage::Result<()> {
        let most = Plan::ALL.into_iter().map(|plan| self.context.limits().incidents(plan)).max();
        let most = usize::try_from(most.unwrap_or(u32::MAX)).unwrap_or(usize::MAX);
        self.sweep_incidents_to(most.saturating_mul(2)).await
    }

    /// The same with another minimum that every account keeps.
    pub(crate) async fn sweep_incidents_to(&self, most: usize) -> storage::Result<()> {
        let known = self.excess_incidents.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut kept = BTreeMap::new();
        for account in self.context.store().read(|store| store.accounts()).await? {
            let id = account.value.id;
            let count = self.context.store().read(move |store| count_incidents(store, id)).await?;
            if count <= most {
                continue;
            }
            let left = match &known {
                Some(known) => self.delete_excess_incidents(id, known.get(&id).copied().unwrap_or(most)).await?,
                None => count,
            };
            if left > most {
                kept.insert(id, left);
            }
        }
        *self.excess_incidents.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Ok(())
    }

    /// Finds the incident to replace when a person opens one more, if that is needed.
    ///
    /// # Errors
    /// [`PlanLimitError::IncidentsFull`] if the account is at its limit and none may be replaced.
    pub(super) async fn incident_to_replace(&self, account: &Account) -> ServiceResult<Option<ClosedIncident>> {
        let (id, now, plan) = (account.id, self.context.now(), account.plan);
        let limit = self.context.limits().incidents(plan);
        let oldest = move |store: &dyn StoreRead| {
            if count_incidents(store, id)? < usize::try_from(limit).unwrap_or(usize::MAX) {
                return Ok(None);
            }
            let oldest = oldest_closed(store, id, 1)?.into_iter().next();
            Ok(Some(oldest.filter(|it| now.since(it.ended) >= MIN_CLOSED_AGE)))
        };
        match self.context.store().read(oldest).await? {
            None => Ok(None),
            Some(Some(oldest)) => Ok(Some(oldest)),
            Some(None) => Err(PlanLimitError::IncidentsFull { plan, limit }.into()),
        }
    }

    /// Adds an incident's deletion to a batch. A window is over by then, so calendars don't show it as cancelled.
    pub(super) fn add_deletion(&self, batch: &mut Batch, it: &ClosedIncident) {
        batch.expect(Expect::Incident(it.id, Presence::At(it.revision))).write(Op::DeleteIncident(it.id));
        let told = IncidentEvent { incident: it.id, change: IncidentChange::Deleted, update: None, notify: false };
        batch.event(self.context.incident_event(it.page, told));
    }

    /// Deletes the oldest closed incidents of an account beyond that number, and returns how many are left.
    async fn delete_excess_incidents(&self, account: AccountId, most: usize) -> storage::Result<usize> {
        loop {
            let count = self.context.store().read(move |store| count_incidents(store, account)).await?;
            let over = count.saturating_sub(most);
            let found = self.context.store().read(move |store| oldest_closed(store, account, over)).await?;
            if found.is_empty() {
                return Ok(count);
            }
            let dropped = found.len();
            for it in found {
                let mut batch = Batch::new();
                self.add_deletion(&mut batch, &it);
                match self.context.store().commit(batch).await {
                    // Edited in the meantime.
                    Ok(_) | Err(StoreError::Conflict(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            tracing::info!(%account, dropped, most, "deleted the oldest closed incidents: account over its limit");
        }
    }
}

/// A closed incident with its revision.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClosedIncident {
    page: PageId,
    id: IncidentId,
    revision: u64,
    ended: Timestamp,
}

/// Counts an account's incidents and windows, including open ones.
fn count_incidents(store: &dyn StoreRead, account: AccountId) -> storage::Result<usize> {
    let mut count = 0;
    for page in store.pages_of(account)? {
        count += store.page_counts(page.value.id)?.incidents;
    }
    Ok(count)
}

/// Finds the oldest closed incidents of an account, up to that number.
fn oldest_closed(store: &dyn StoreRead, account: AccountId, most: usize) -> storage::Result<Vec<ClosedIncident>> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for page in store.pages_of(account)? {
        let oldest = oldest_with_closed(store, page.value.id, most)?;
        found.extend(oldest.into_iter().filter(|it| !it.value.is_open()).map(|it| ClosedIncident {
            page: it.value.page,
            id: it.value.id,
            revision: it.revision,
            ended: age_start(&it.value),
        }));
    }
    found.sort_by_key(|it| (it.ended, it.id));
    found.truncate(most.min(SLICE));
    Ok(found)
}

/// Reads the oldest incidents of a page until they include that many closed ones. Reads in growing slices: incidents
/// may be long, and few of the oldest are open.
fn oldest_with_closed(
    store: &dyn StoreRead,
    page: PageId,
    closed: usize,
) -> storage::Result<Vec<VersionedValue<Incident>>> {
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

/// Returns the time from which an incident's age counts: one entered in retrospect is as new as its entry.
fn age_start(incident: &Incident) -> Timestamp {
    incident.resolved_at.unwrap_or(incident.started_at).max(incident.created_at)
}
