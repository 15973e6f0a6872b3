//! Deploy markers of a page.

use parallax_core::deploy::{Deploy, DeployEdit, KEPT};
use parallax_core::id::{DeployId, PageId};
use parallax_core::plan::PlanRefusal;

use super::once::{Done, Once};
use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op};

/// How many markers a list holds.
const LISTED: usize = 50;

impl Service {
    /// The page's last fifty markers, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that the key does not reach.
    pub async fn deploys(&self, caller: &Caller, page: PageId) -> Result<Vec<Deploy>> {
        let page = self.page(caller, page)?.id;
        let deploys = self.store().read(move |store| store.deploys_of(page, LISTED)).await?;
        Ok(deploys.into_iter().map(|deploy| deploy.value).collect())
    }

    /// Makes a marker. Where the page has all that it keeps, the oldest goes.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`], and [`Error::PlanLimit`] for one that is older than
    /// all that a full page keeps.
    pub async fn create_deploy(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &DeployEdit,
        once: &Once<'_, Deploy>,
    ) -> Result<Done<Deploy>> {
        let id = DeployId::new(self.now(), rand::random());
        // In the page's turn, so that of two at once each makes room for itself.
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

    /// Takes a marker out.
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
