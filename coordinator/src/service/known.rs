//! Pages that visitors ask for, remembered by their labels for as long as nothing is edited.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use parallax_core::page::Page;
use tokio::sync::watch;

use super::{Result, Service};

/// Pages that are remembered at most; for one more, all are forgotten.
const MOST: usize = 1024;

/// The pages, and the last edit that they were read after.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<(u64, BTreeMap<String, Arc<Page>>)>);

impl Service {
    /// The number of the last event that came with an edit of anything, such as of a page: while it stays, so does what
    /// the gate says of pages that everybody may see.
    pub fn last_edit(&self) -> u64 {
        *self.0.edits.borrow()
    }

    /// Told of each such edit.
    pub fn edits(&self) -> watch::Receiver<u64> {
        self.0.edits.clone()
    }

    /// The page under a label, without a look into the store where it was asked for since the last edit of anything.
    ///
    /// Only pages that everybody may see are remembered: a hidden one must take as long as none.
    pub(super) fn page_under(&self, slug: &str) -> Result<Option<Arc<Page>>> {
        let Known(known) = &self.0.known;
        // Before the look: what is edited meanwhile has another number.
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
        if !page.private && page.password.is_none() {
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
        let name = || world.service.page_under("shop").unwrap().map(|page| page.name.clone());
        // What is remembered of it, and whether that counts still.
        let held = || {
            let known = world.service.0.known.0.lock().unwrap();
            known.0 == world.service.last_edit() && known.1.contains_key("shop")
        };
        assert_eq!((name(), held()), (Some("Shop".to_owned()), true));
        world.put_page(Page { name: "New".to_owned(), ..world.shop.clone() }).await;
        assert!(!held());
        assert_eq!((name(), held()), (Some("New".to_owned()), true));
        world.put_page(Page { private: true, ..world.shop.clone() }).await;
        assert_eq!((name(), held()), (Some("Shop".to_owned()), false));
        assert_eq!(world.service.page_under("none").unwrap(), None);
        world.put_page(Page { slug: "moved".to_owned(), ..world.shop.clone() }).await;
        assert_eq!(name(), None);
    }
}
