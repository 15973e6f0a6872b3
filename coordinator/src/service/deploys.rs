//! Deploy markers of a page.

use parallax_core::deploy::{Deploy, DeployEdit, MAX_DEPLOYS};
use parallax_core::id::{DeployId, PageId};
use parallax_core::plan::PlanLimitError;

use super::idempotency::{IdempotentRequest, RequestOutcome};
use super::{Caller, Service, ServiceError, ServiceResult};
use crate::storage::{Batch, Expect, Op, Presence};

/// Maximum markers in a list.
const MAX_LISTED: usize = 50;

impl Service {
    /// Lists the page's last fifty markers, newest first.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access.
    pub async fn deploys(&self, caller: &Caller, page: PageId) -> ServiceResult<Vec<Deploy>> {
        let page = self.page(caller, page)?.id;
        let deploys = self.store().read(move |store| store.deploys_of(page, MAX_LISTED)).await?;
        Ok(deploys.into_iter().map(|deploy| deploy.value).collect())
    }

    /// Creates a marker. If the page has the maximum, the oldest is deleted.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`], and [`ServiceError::PlanLimit`] for one that is older
    /// than all markers of a full page.
    pub async fn create_deploy(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &DeployEdit,
        once: &IdempotentRequest<'_, Deploy>,
    ) -> ServiceResult<RequestOutcome<Deploy>> {
        let id = DeployId::new(self.now(), rand::random());
        // Under the page's lock, so that two at once each replace a different marker.
        self.change_page_once(caller, page, page.to_u128(), once, |page| async move {
            let deploy = edit.validate(id, page.id, &self.monitor_ids(&page).await?, self.now())?;
            let mut batch = Batch::new();
            batch.expect(Expect::Page(page.id, Presence::Present)).write(deploy.clone());
            let kept = self.store().read(move |store| store.deploys_of(page.id, MAX_DEPLOYS)).await?;
            if let Some(oldest) = kept.last().filter(|_| kept.len() >= MAX_DEPLOYS).map(|oldest| &oldest.value) {
                if (deploy.at, deploy.id) < (oldest.at, oldest.id) {
                    return Err(PlanLimitError::DeployTooOld.into());
                }
                batch.expect(Expect::Deploy(oldest.id, Presence::Present)).write(Op::DeleteDeploy(oldest.id));
            }
            Ok((deploy, batch))
        })
        .await
    }

    /// Deletes a marker.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`].
    pub async fn delete_deploy(
        &self,
        caller: &Caller,
        page: PageId,
        id: DeployId,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        self.change_page_once(caller, page, id.to_u128(), once, |page| async move {
            let deploy = self.store().reader().deploy(id)?;
            deploy.filter(|deploy| deploy.value.page == page.id).ok_or(ServiceError::NotFound)?;
            let mut batch = Batch::new();
            batch.expect(Expect::Deploy(id, Presence::Present)).write(Op::DeleteDeploy(id));
            Ok(((), batch))
        })
        .await
    }
}
