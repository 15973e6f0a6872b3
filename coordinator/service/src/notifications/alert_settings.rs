//! Alert settings of a page.

use std::sync::Arc;

use parallax_core::alert_settings::{AlertSettings, AlertSettingsEdit};
use parallax_core::event::EditKind;
use parallax_core::id::PageId;
use parallax_store::{Batch, Expect, Op, Presence};

use crate::audit::ChangeAuthor;
use crate::context::ServiceContext;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::{Caller, ServiceResult};

/// Owns the alert settings of pages. A change counts as an edit of the page.
#[derive(Debug)]
pub struct AlertSettingsService {
    context: Arc<ServiceContext>,
}

impl AlertSettingsService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self { context: Arc::clone(context) }
    }

    /// Returns the page's alert settings.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a page that the key can't access.
    pub fn get(&self, caller: &Caller, page: PageId) -> ServiceResult<AlertSettings> {
        let page = self.context.page(caller, page)?.id;
        let settings = self.context.store().reader().alert_settings(page)?;
        Ok(settings.map(|settings| settings.value).unwrap_or_default())
    }

    /// Edits the page's alert settings.
    ///
    /// # Errors
    /// `ServiceError::ReadOnly`, `ServiceError::NotFound`, `ServiceError::Invalid`.
    pub async fn edit(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &AlertSettingsEdit,
        once: &IdempotentRequest<'_, AlertSettings>,
    ) -> ServiceResult<RequestOutcome<AlertSettings>> {
        self.context
            .change_page_once(caller, page, page.to_u128(), once, |page| async move { self.edit_batch(page.id, edit) })
            .await
    }

    /// Edits a page's alert settings, and returns them; called by the operator.
    ///
    /// # Errors
    /// `ServiceError::Invalid`, and `ServiceError::Internal` if the page no longer exists.
    pub async fn edit_as_operator(&self, page: PageId, edit: &AlertSettingsEdit) -> ServiceResult<AlertSettings> {
        self.context
            .commit_change(page.to_u128(), || async move {
                let (after, mut batch) = self.edit_batch(page, edit)?;
                if let Some(page) = self.context.store().reader().page(page)? {
                    self.context.log_change(ChangeAuthor::operator(page.value.account), &mut batch)?;
                }
                Ok((after, (!batch.is_empty()).then_some(batch)))
            })
            .await
    }

    fn edit_batch(&self, page: PageId, edit: &AlertSettingsEdit) -> ServiceResult<(AlertSettings, Batch)> {
        let stored = self.context.store().reader().alert_settings(page)?;
        let presence = stored.as_ref().map_or(Presence::Absent, |stored| Presence::At(stored.revision));
        let before = stored.map(|stored| stored.value).unwrap_or_default();
        let after = edit.validate(before)?;
        let mut batch = Batch::new();
        if after != before {
            batch.expect(Expect::Page(page, Presence::Present)).expect(Expect::AlertSettings(page, presence));
            batch.write(Op::PutAlertSettings(page, after)).event(self.context.page_event(page, EditKind::Changed));
        }
        Ok((after, batch))
    }
}
