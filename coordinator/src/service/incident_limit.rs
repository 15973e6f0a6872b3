//! The number of incidents and maintenance windows that an account keeps: the oldest closed ones make room.
//!
//! One that a person opens beyond it is refused once none is old enough to go. Automatic ones are never refused; at twice
//! the number the oldest closed ones go at any age.

use std::time::Duration;

use parallax_core::account::Account;
use parallax_core::id::{AccountId, IncidentId, PageId};
use parallax_core::incident::{Incident, News, Told};
use parallax_core::plan::PlanRefusal;
use parallax_core::time::{DAY, Timestamp};

use super::{Result, Service};
use crate::storage::{self, Batch, Expect, Is, Op, Read, StoreError};

/// Milliseconds after its end in which an incident is kept, unless there are twice as many as may be.
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

    /// Drops what may go on every account.
    pub(super) async fn sweep_incidents(&self) -> storage::Result<()> {
        for account in self.store().read(|store| store.accounts()).await? {
            self.drop_incidents(&account.value, 0).await?;
        }
        Ok(())
    }

    /// Has an account have room for one more incident of a person's.
    ///
    /// # Errors
    /// [`PlanRefusal::IncidentsFull`] where it has as many as it may, and none may go.
    pub(super) async fn has_room_for_incident(&self, account: &Account) -> Result<()> {
        let left = self.drop_incidents(account, 1).await?;
        let (plan, limit) = (account.plan, self.limits().incidents(account.plan));
        if left < usize::try_from(limit).unwrap_or(usize::MAX) {
            Ok(())
        } else {
            Err(PlanRefusal::IncidentsFull { plan, limit }.into())
        }
    }

    /// Drops closed incidents of an account until there is room for `more`, and gives how many are left.
    async fn drop_incidents(&self, account: &Account, more: usize) -> storage::Result<usize> {
        let (id, now) = (account.id, self.now());
        let limit = usize::try_from(self.limits().incidents(account.plan)).unwrap_or(usize::MAX);
        loop {
            let count = self.store().read(move |store| count(store, id)).await?;
            let over = (count + more).saturating_sub(limit);
            if over == 0 {
                return Ok(count);
            }
            let must_go = count.saturating_sub(limit.saturating_mul(2));
            let found = self.store().read(move |store| droppable(store, id, (over, must_go), now)).await?;
            if found.is_empty() {
                return Ok(count);
            }
            let dropped = found.len();
            for (page, incident, revision) in found {
                self.drop_incident(page, incident, revision).await?;
            }
            tracing::info!(account = %id, dropped, limit, "oldest closed incidents dropped: the account has too many");
        }
    }

    /// Drops one, unless it was edited meanwhile. A window is not cancelled by it in calendars: it is over.
    async fn drop_incident(&self, page: PageId, id: IncidentId, revision: u64) -> storage::Result<()> {
        let mut batch = Batch::new();
        batch.expect(Expect::Incident(id, Is::At(revision))).write(Op::DeleteIncident(id));
        let told = Told { incident: id, news: News::Deleted, update: None, notify: false };
        batch.event(self.incident_event(page, told));
        match self.store().commit(batch).await {
            Ok(_) | Err(StoreError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Incidents and windows of an account, open ones too.
fn count(store: &dyn Read, account: AccountId) -> storage::Result<usize> {
    let mut count = 0;
    for page in store.pages_of(account)? {
        count += store.standing(page.value.id)?.incidents;
    }
    Ok(count)
}

/// The oldest closed incidents of an account that may go: up to `over` of those that ended long ago, and at least
/// `must_go` of whatever age. With the revision that each was read at.
fn droppable(
    store: &dyn Read,
    account: AccountId,
    (over, must_go): (usize, usize),
    now: Timestamp,
) -> storage::Result<Vec<(PageId, IncidentId, u64)>> {
    let mut closed = Vec::new();
    for page in store.pages_of(account)? {
        let oldest = store.oldest_incidents(page.value.id, SLICE)?;
        closed.extend(oldest.into_iter().filter(|it| !it.value.is_open()));
    }
    closed.sort_by_key(|it| (ended(&it.value), it.value.id));
    closed.truncate(over.min(SLICE));
    let may_go = |n: usize, it: &Incident| n < must_go || now.since(ended(it)) >= KEPT;
    let found = closed.iter().enumerate().filter(|(n, it)| may_go(*n, &it.value));
    Ok(found.map(|(_, it)| (it.value.page, it.value.id, it.revision)).collect())
}

/// The moment from which an incident's age counts: one that was entered afterwards is as new as its entry.
fn ended(incident: &Incident) -> Timestamp {
    incident.resolved_at.unwrap_or(incident.started_at).max(incident.created_at)
}
