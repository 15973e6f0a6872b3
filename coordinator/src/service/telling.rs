//! Alert settings of a page.

use parallax_core::event::Edited;
use parallax_core::id::PageId;
use parallax_core::telling::{Telling, TellingEdit};

use super::once::{Done, Once};
use super::{Caller, Result, Service};
use crate::storage::{Batch, Expect, Is, Op};

impl Service {
    /// Returns the page's alert settings.
    ///
    /// # Errors
    /// [`Error::NotFound`](super::Error::NotFound) for a page that the key can't access.
    pub fn telling(&self, caller: &Caller, page: PageId) -> Result<Telling> {
        let page = self.page(caller, page)?.id;
        let telling = self.store().reader().telling(page)?;
        Ok(telling.map(|telling| telling.value).unwrap_or_default())
    }

    /// Edits the page's alert settings.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](super::Error::ReadOnly), [`Error::NotFound`](super::Error::NotFound),
    /// [`Error::Invalid`](super::Error::Invalid).
    pub async fn edit_telling(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &TellingEdit,
        once: &Once<'_, Telling>,
    ) -> Result<Done<Telling>> {
        self.change_on(
            caller,
            page,
            page.to_u128(),
            once,
            |page| async move { self.told_anew(page.id, edit) },
        )
        .await
    }

    /// Edits a page's alert settings, and returns them; called by the operator.
    ///
    /// # Errors
    /// [`Error::Invalid`](super::Error::Invalid), and [`Error::Internal`](super::Error::Internal) if the page no
    /// longer exists.
    pub async fn set_telling(&self, page: PageId, edit: &TellingEdit) -> Result<Telling> {
        self.change(page.to_u128(), || async move {
            let (after, batch) = self.told_anew(page, edit)?;
            Ok((after, (!batch.is_empty()).then_some(batch)))
        })
        .await
    }

    fn told_anew(&self, page: PageId, edit: &TellingEdit) -> Result<(Telling, Batch)> {
        let found = self.store().reader().telling(page)?;
        let is = found.as_ref().map_or(Is::Absent, |found| Is::At(found.revision));
        let before = found.map(|found| found.value).unwrap_or_default();
        let after = edit.settle(before)?;
        let mut batch = Batch::new();
        if after != before {
            batch.expect(Expect::Page(page, Is::Present)).expect(Expect::Telling(page, is));
            batch.write(Op::PutTelling(page, after)).event(self.page_event(page, Edited::Changed));
        }
        Ok((after, batch))
    }
}
