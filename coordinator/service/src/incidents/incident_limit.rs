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
        let limit = Plan::ALL.into_iter().map(|plan| self.context.limits().incidents(plan)).max();
        let limit = usize::try_from(limit.unwrap_or(u32::MAX)).unwrap_or(usize::MAX);
        self.sweep_incidents_to(limit.saturating_mul(2)).await
    }

    /// The same with another minimum that every account keeps.
    pub(crate) async fn sweep_incidents_to(&self, limit: usize) -> storage::Result<()> {
        let counts = self.excess_incidents.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut remaining_counts = BTreeMap::new();
        for account in self.context.store().read(|store| store.accounts()).await? {
            let id = account.value.id;
            let count = self.context.store().read(move |store| count_incidents(store, id)).await?;
            if count <= limit {
                continue;
            }
            let remaining = match &counts {
                Some(counts) => self.delete_excess_incidents(id, counts.get(&id).copied().unwrap_or(limit)).await?,
                None => count,
            };
            if remaining > limit {
                remaining_counts.insert(id, remaining);
            }
        }
        *self.excess_incidents.lock().unwrap_or_else(PoisonError::into_inner) = Some(remaining_counts);
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
    pub(super) fn add_deletion(&self, batch: &mut Batch, incident: &ClosedIncident) {
        batch
            .expect(Expect::Incident(incident.id, Presence::At(incident.revision)))
            .write(Op::DeleteIncident(incident.id));
        let event =
            IncidentEvent { incident: incident.id, change: IncidentChange::Deleted, update: None, notify: false };
        batch.event(self.context.incident_event(incident.page, event));
    }

    /// Deletes the oldest closed incidents of an account beyond that number, and returns how many are left.
    async fn delete_excess_incidents(&self, account: AccountId, limit: usize) -> storage::Result<usize> {
        loop {
            let count = self.context.store().read(move |store| count_incidents(store, account)).await?;
            let excess = count.saturating_sub(limit);
            let closed = self.context.store().read(move |store| oldest_closed(store, account, excess)).await?;
            if closed.is_empty() {
                return Ok(count);
            }
            let dropped = closed.len();
            for incident in closed {
                let mut batch = Batch::new();
                self.add_deletion(&mut batch, &incident);
                match self.context.store().commit(batch).await {
                    // Edited in the meantime.
                    Ok(_) | Err(StoreError::Conflict(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            tracing::info!(
                %account,
                dropped,
                most = limit,
                "deleted the oldest closed incidents: account over its limit"
            );
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
fn oldest_closed(store: &dyn StoreRead, account: AccountId, limit: usize) -> storage::Result<Vec<ClosedIncident>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let mut closed = Vec::new();
    for page in store.pages_of(account)? {
        let oldest = oldest_with_closed(store, page.value.id, limit)?;
        closed.extend(oldest.into_iter().filter(|it| !it.value.is_open()).map(|it| ClosedIncident {
            page: it.value.page,
            id: it.value.id,
            revision: it.revision,
            ended: age_start(&it.value),
        }));
    }
    closed.sort_by_key(|it| (it.ended, it.id));
    closed.truncate(limit.min(SLICE));
    Ok(closed)
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
        let closed_count = oldest.iter().filter(|it| !it.value.is_open()).count();
        if closed_count >= closed || oldest.len() < slice || slice == SLICE {
            return Ok(oldest);
        }
        slice = slice.saturating_mul(4).min(SLICE);
    }
}

/// Returns the time from which an incident's age counts: one entered in retrospect is as new as its entry.
fn age_start(incident: &Incident) -> Timestamp {
    incident.resolved_at.unwrap_or(incident.started_at).max(incident.created_at)
}
