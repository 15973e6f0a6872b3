//! Cache of public pages by slug, valid until anything is edited.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use parallax_core::page::Page;
use tokio::sync::watch;

use super::{Service, ServiceResult};

/// Maximum cached pages; beyond that the cache is cleared.
const MOST: usize = 1024;

/// The pages, and the last edit that they were read after.
#[derive(Debug, Default)]
pub(super) struct PageIndex(Mutex<(u64, BTreeMap<String, Arc<Page>>)>);

impl Service {
    /// Returns the number of the last event of an edit of anything, such as a page. While it is unchanged, the
    /// authorization of public pages is too.
    pub fn last_edit(&self) -> u64 {
        *self.0.edits.borrow()
    }

    /// Watches the number of the last edit.
    pub fn watch_edits(&self) -> watch::Receiver<u64> {
        self.0.edits.clone()
    }

    /// Returns the page with a slug, from the cache if it was read since the last edit of anything.
    ///
    /// Only public pages are cached: a protected page must take as long as a missing one.
    pub(super) fn page_by_slug(&self, slug: &str) -> ServiceResult<Option<Arc<Page>>> {
        let PageIndex(known) = &self.0.page_index;
        // Read first: an edit made in the meantime has a higher number.
        let edit = self.last_edit();
        {
            let held = known.lock().unwrap_or_else(PoisonError::into_inner);
            if held.0 == edit
                && let Some(page) = held.1.get(slug)
            {
                return Ok(Some(Arc::clone(page)));
            }
        }
        let Some(page) = self.store().reader().page_by_slug(slug)? else { return Ok(None) };
        let page = Arc::new(page.value);
        if !page.private && page.password_hash.is_none() {
            let mut held = known.lock().unwrap_or_else(PoisonError::into_inner);
            if held.0 < edit || held.1.len() >= MOST {
                *held = (edit, BTreeMap::new());
            }
            if held.0 == edit {
                held.1.insert(slug.to_owned(), Arc::clone(&page));
            }
        }
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::world;
    use super::*;

    #[tokio::test]
    async fn an_edited_page_is_read_anew_and_a_hidden_one_each_time() {
        let world = world().await;
        let name = || world.service.page_by_slug("shop").unwrap().map(|page| page.name.clone());
        // The cached page, and whether the cache is still valid.
        let held = || {
            let known = world.service.0.page_index.0.lock().unwrap();
            known.0 == world.service.last_edit() && known.1.contains_key("shop")
        };
        assert_eq!((name(), held()), (Some("Shop".to_owned()), true));
        world.put_page(Page { name: "New".to_owned(), ..world.shop.clone() }).await;
        assert!(!held());
        assert_eq!((name(), held()), (Some("New".to_owned()), true));
        world.put_page(Page { private: true, ..world.shop.clone() }).await;
        assert_eq!((name(), held()), (Some("Shop".to_owned()), false));
        assert_eq!(world.service.page_by_slug("none").unwrap(), None);
        world.put_page(Page { slug: "moved".to_owned(), ..world.shop.clone() }).await;
        assert_eq!(name(), None);
    }
}
