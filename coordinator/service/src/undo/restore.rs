//! The write of an undo: earlier values of monitors, and records that come back with their ids.
//!
//! Monitors, destinations and subscribers are restored by their own services, which know what may be in the way.

use parallax_core::deploy::{Deploy, MAX_DEPLOYS};
use parallax_core::key::{ApiKey, MAX_KEYS};
use parallax_core::page::Page;
use parallax_core::plan::PlanLimitError;
use parallax_core::undo::{InverseChange, UndoObstacle};
use parallax_store::{Batch, Expect, Op, Presence};

use super::UndoService;
use crate::{Caller, ServiceError, ServiceResult};

/// Event of a page that is gone.
const DELETED: &str = "was deleted";

impl UndoService {
    /// Adds the inverse to the batch, for records that are as that revision left them. Returns what is in the way.
    pub(super) async fn restore(
        &self,
        caller: &Caller,
        inverse: &InverseChange,
        revision: u64,
        batch: &mut Batch,
    ) -> ServiceResult<Vec<UndoObstacle>> {
        let page = match inverse.page().map(|id| self.context.page(caller, id)) {
            None => None,
            Some(Ok(page)) => Some(page),
            Some(Err(ServiceError::NotFound)) => return Ok(vec![UndoObstacle::new("The page", DELETED)]),
            Some(Err(error)) => return Err(error),
        };
        let Some(page) = page else {
            let InverseChange::Key(key) = inverse else { return Err(ServiceError::NotFound) };
            return self.restore_key(caller, key, batch).await;
        };
        batch.expect(Expect::Page(page.id, Presence::Present));
        match inverse {
            InverseChange::Monitors(_, earlier) => {
                self.monitors.restore_earlier(caller, &page, (earlier, revision), batch).await
            }
            InverseChange::MonitorOrder(_, order) => self.monitors.restore_order(caller, &page, order, batch).await,
            InverseChange::Destination(destination) => self.destinations.restore(&page, (destination, revision), batch),
            InverseChange::Subscriber(subscriber) => {
                self.subscribers.restore(&page, (subscriber, revision), batch).await
            }
            InverseChange::Deploy(deploy) => self.restore_deploy(&page, deploy, batch).await,
            InverseChange::Key(_) => Err(ServiceError::NotFound),
        }
    }

    async fn restore_deploy(
        &self,
        page: &Page,
        deploy: &Deploy,
        batch: &mut Batch,
    ) -> ServiceResult<Vec<UndoObstacle>> {
        let id = page.id;
        let stored = self.context.store().read(move |store| store.deploys_of(id, MAX_DEPLOYS)).await?;
        // As for a new one: of a full page the oldest goes.
        if let Some(oldest) = stored.last().filter(|_| stored.len() >= MAX_DEPLOYS).map(|oldest| &oldest.value) {
            if (deploy.at, deploy.id) < (oldest.at, oldest.id) {
                return Err(PlanLimitError::DeployTooOld.into());
            }
            batch.expect(Expect::Deploy(oldest.id, Presence::Present)).write(Op::DeleteDeploy(oldest.id));
        }
        batch.expect(Expect::Deploy(deploy.id, Presence::Absent)).write(deploy.clone());
        Ok(Vec::new())
    }

    async fn restore_key(&self, caller: &Caller, key: &ApiKey, batch: &mut Batch) -> ServiceResult<Vec<UndoObstacle>> {
        if let Some(page) = key.page {
            match self.context.page(caller, page) {
                Ok(page) => {
                    batch.expect(Expect::Page(page.id, Presence::Present));
                }
                Err(ServiceError::NotFound) => return Ok(vec![UndoObstacle::new("The key’s page", DELETED)]),
                Err(error) => return Err(error),
            }
        }
        let account = caller.account;
        if self.context.store().read(move |store| store.keys_of(account)).await?.len() >= MAX_KEYS {
            return Err(PlanLimitError::KeysFull.into());
        }
        batch.expect(Expect::Account(account, Presence::Present));
        batch.expect(Expect::Key(key.id, Presence::Absent)).write(key.clone());
        self.keys.index(key)?;
        Ok(Vec::new())
    }
}
