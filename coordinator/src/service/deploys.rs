//! Deploy markers of a page.

use parallax_core::deploy::{Deploy, DeployEdit, KEPT};
use parallax_core::id::{DeployId, PageId};
use parallax_core::plan::PlanRefusal;

use super::once::{Done, Once};
use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op};

/// Maximum markers in a list.
const LISTED: usize = 50;

impl Service {
    /// Lists the page's last fifty markers, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that the key can't access.
    pub async fn deploys(&self, caller: &Caller, page: PageId) -> Result<Vec<Deploy>> {
        let page = self.page(caller, page)?.id;
        let deploys = self.store().read(move |store| store.deploys_of(page, LISTED)).await?;
        Ok(deploys.into_iter().map(|deploy| deploy.value).collect())
    }

    /// Creates a marker. If the page has the maximum, the oldest is deleted.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`], and [`Error::PlanLimit`] for one that is older
    /// than all markers of a full page.
    pub async fn create_deploy(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &DeployEdit,
        once: &Once<'_, Deploy>,
    ) -> Result<Done<Deploy>> {
        let id = DeployId::new(self.now(), rand::random());
        // Under the page's lock, so that two at once each replace a different marker.
        self.change_on(caller, page, page.to_u128(), once, |page| async move {
            let deploy = edit.settle(id, page.id, &self.ids_on(&page).await?, self.now())?;
            let mut batch = Batch::new();
            batch.expect(Expect::Page(page.id, Is::Present)).write(deploy.clone());
            let kept = self.store().read(move |store| store.deploys_of(page.id, KEPT)).await?;
            if let Some(oldest) = kept.last().filter(|_| kept.len() >= KEPT).map(|oldest| &oldest.value) {
                if (deploy.at, deploy.id) < (oldest.at, oldest.id) {
                    return Err(PlanRefusal::DeployTooOld.into());
                }
                batch.expect(Expect::Deploy(oldest.id, Is::Present)).write(Op::DeleteDeploy(oldest.id));
            }
            Ok((deploy, batch))
        })
        .await
    }

    /// Deletes a marker.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`].
    pub async fn delete_deploy(
        &self,
        caller: &Caller,
        page: PageId,
        id: DeployId,
        once: &Once<'_, ()>,
    ) -> Result<Done<()>> {
        self.change_on(caller, page, id.to_u128(), once, |page| async move {
            let deploy = self.store().reader().deploy(id)?;
            deploy.filter(|deploy| deploy.value.page == page.id).ok_or(Error::NotFound)?;
            let mut batch = Batch::new();
            batch.expect(Expect::Deploy(id, Is::Present)).write(Op::DeleteDeploy(id));
            Ok(((), batch))
        })
        .await
    }
}
