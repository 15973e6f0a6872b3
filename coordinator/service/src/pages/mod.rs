//! Pages as API keys and the operator manage them: look-up, creation, edits, deletion, and deploy markers.

pub mod creation;
mod deletion;
pub(crate) mod deploys;
pub mod editing;

use std::sync::Arc;

use parallax_core::id::{AccountId, PageId};
use parallax_core::page::Page;
use parallax_core::page::branding::PictureUse;
use tokio::sync::Notify;

use super::accounts::keys::KeyService;
use super::context::ServiceContext;
use super::{Caller, ServiceResult};

/// Owns pages as people manage them. A slug belongs to one page; a deleted page is invisible at once, its keys
/// included, and its contents are deleted in slices.
#[derive(Debug)]
pub struct PageService {
    context: Arc<ServiceContext>,
    keys: Arc<KeyService>,
    /// Notified when a page is deleted and may need clearing.
    page_deleted: Notify,
}

impl PageService {
    pub(crate) fn new(context: &Arc<ServiceContext>, keys: &Arc<KeyService>) -> Self {
        Self { context: Arc::clone(context), keys: Arc::clone(keys), page_deleted: Notify::new() }
    }

    /// Returns a page that the caller's key can access.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](super::ServiceError::NotFound) for any other page.
    pub fn get(&self, caller: &Caller, id: PageId) -> ServiceResult<Page> {
        self.context.page(caller, id)
    }

    /// Returns the public URL of the page.
    pub fn url(&self, page: &Page) -> String {
        self.context.page_url(page)
    }

    /// Returns the id of the page with that slug, if the key can access it.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](super::ServiceError::Internal) if the store can't be read.
    pub fn id_by_slug(&self, caller: &Caller, slug: &str) -> ServiceResult<Option<PageId>> {
        let page = self.context.store().reader().page_by_slug(slug)?;
        Ok(page.filter(|page| caller.reaches(&page.value)).map(|page| page.value.id))
    }

    /// Lists every page that the caller's key can access, oldest first.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](super::ServiceError::Internal) if the store can't be read.
    pub async fn list(&self, caller: &Caller) -> ServiceResult<Vec<Page>> {
        let mut pages = self.list_of_account(caller.account).await?;
        pages.retain(|page| caller.reaches(page));
        Ok(pages)
    }

    /// Returns the public URL of a picture of the page, if it has one.
    pub fn picture_url(&self, page: &Page, usage: PictureUse) -> Option<String> {
        let picture = page.branding.picture(usage)?;
        Some(format!("{}/{}/{}", self.context.page_url(page), usage.name(), picture.hex()))
    }

    /// Lists an account's pages, oldest first; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](super::ServiceError::Internal) if the store can't be read.
    pub async fn list_of_account(&self, account: AccountId) -> ServiceResult<Vec<Page>> {
        let pages = self.context.store().read(move |store| store.pages_of(account)).await?;
        let mut pages: Vec<Page> = pages.into_iter().map(|page| page.value).collect();
        pages.sort_by_key(|page| (page.created_at, page.id));
        Ok(pages)
    }
}
