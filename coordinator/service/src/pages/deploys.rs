//! Deploy markers of a page.

use std::sync::Arc;

use parallax_core::deploy::{Deploy, DeployEdit, MAX_DEPLOYS};
use parallax_core::id::{DeployId, PageId};
use parallax_core::plan::PlanLimitError;
use parallax_core::undo::InverseChange;
use parallax_store::{Batch, Expect, Op, Presence};

use crate::context::ServiceContext;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::{Caller, ServiceError, ServiceResult};

/// Maximum markers in a list.
const MAX_LISTED: usize = 50;

/// Owns deploy markers of pages. A page with the maximum loses its oldest marker for a newer one.
#[derive(Debug)]
pub struct DeployService {
    context: Arc<ServiceContext>,
}

impl DeployService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self { context: Arc::clone(context) }
    }

    /// Lists the page's last fifty markers, newest first.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access.
    pub async fn list(&self, caller: &Caller, page: PageId) -> ServiceResult<Vec<Deploy>> {
        let page = self.context.page(caller, page)?.id;
        let deploys = self.context.store().read(move |store| store.deploys_of(page, MAX_LISTED)).await?;
        Ok(deploys.into_iter().map(|deploy| deploy.value).collect())
    }

    /// Creates a marker. If the page has the maximum, the oldest is deleted.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`], and
    /// [`ServiceError::PlanLimit`] for one that is older than all markers of a full page.
    pub async fn create(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &DeployEdit,
        once: &IdempotentRequest<'_, Deploy>,
    ) -> ServiceResult<RequestOutcome<Deploy>> {
        let id = DeployId::new(self.context.now(), rand::random());
        // Under the page's lock, so that two at once each replace a different marker.
        self.context
            .change_page_once(caller, page, page.to_u128(), once, |page| async move {
                let deploy = edit.validate(id, page.id, &self.context.monitor_ids(&page).await?, self.context.now())?;
                let mut batch = Batch::new();
                batch.expect(Expect::Page(page.id, Presence::Present)).write(deploy.clone());
                let stored = self.context.store().read(move |store| store.deploys_of(page.id, MAX_DEPLOYS)).await?;
                if let Some(oldest) = stored.last().filter(|_| stored.len() >= MAX_DEPLOYS).map(|oldest| &oldest.value)
                {
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
    pub async fn delete(
        &self,
        caller: &Caller,
        page: PageId,
        id: DeployId,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        self.context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let deploy = self.context.store().reader().deploy(id)?;
                let deploy = deploy.filter(|deploy| deploy.value.page == page.id).ok_or(ServiceError::NotFound)?;
                let mut batch = Batch::new();
                self.context.record_undo(caller, once, || InverseChange::Deploy(Box::new(deploy.value)), &mut batch);
                batch.expect(Expect::Deploy(id, Presence::Present)).write(Op::DeleteDeploy(id));
                Ok(((), batch))
            })
            .await
    }
}
