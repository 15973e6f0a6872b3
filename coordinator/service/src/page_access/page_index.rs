//! Cache of public pages by slug, valid until anything is edited.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use parallax_core::page::Page;

use super::PageAccessService;
use crate::ServiceResult;

/// Maximum cached pages; beyond that the cache is cleared.
const MOST: usize = 1024;

/// The pages, and the last edit that they were read after.
#[derive(Debug, Default)]
pub(super) struct PageIndex(Mutex<(u64, BTreeMap<String, Arc<Page>>)>);

impl PageAccessService {
    /// Returns the page with a slug, from the cache if it was read since the last edit of anything.
    ///
    /// Only public pages are cached: a protected page must take as long as a missing one.
    pub(crate) fn page_by_slug(&self, slug: &str) -> ServiceResult<Option<Arc<Page>>> {
        let PageIndex(index) = &self.page_index;
        // Read first: an edit made in the meantime has a higher number.
        let edit = self.context.last_edit();
        {
            let pages = index.lock().unwrap_or_else(PoisonError::into_inner);
            if pages.0 == edit
                && let Some(page) = pages.1.get(slug)
            {
                return Ok(Some(Arc::clone(page)));
            }
        }
        let Some(page) = self.context.store().reader().page_by_slug(slug)? else { return Ok(None) };
        let page = Arc::new(page.value);
        if !page.private && page.password_hash.is_none() {
            let mut pages = index.lock().unwrap_or_else(PoisonError::into_inner);
            if pages.0 < edit || pages.1.len() >= MOST {
                *pages = (edit, BTreeMap::new());
            }
            if pages.0 == edit {
                pages.1.insert(slug.to_owned(), Arc::clone(&page));
            }
        }
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::world;

    #[tokio::test]
    async fn an_edited_page_is_reread_and_a_hidden_one_is_not_cached() {
        let world = world().await;
        let name = || world.service.page_access.page_by_slug("shop").unwrap().map(|page| page.name.clone());
        // The cached page, and whether the cache is still valid.
        let is_cached = || {
            let index = world.service.page_access.page_index.0.lock().unwrap();
            index.0 == world.service.last_edit() && index.1.contains_key("shop")
        };
        assert_eq!((name(), is_cached()), (Some("Shop".to_owned()), true));
        world.put_page(Page { name: "New".to_owned(), ..world.shop.clone() }).await;
        assert!(!is_cached());
        assert_eq!((name(), is_cached()), (Some("New".to_owned()), true));
        world.put_page(Page { private: true, ..world.shop.clone() }).await;
        assert_eq!((name(), is_cached()), (Some("Shop".to_owned()), false));
        assert_eq!(world.service.page_access.page_by_slug("none").unwrap(), None);
        world.put_page(Page { slug: "moved".to_owned(), ..world.shop.clone() }).await;
        assert_eq!(name(), None);
    }
}
