//! Alert settings of a page.

use parallax_core::alert_settings::{AlertSettings, AlertSettingsEdit};
use parallax_core::event::EditKind;
use parallax_core::id::PageId;

use super::idempotency::{IdempotentRequest, RequestOutcome};
use super::{Caller, Service, ServiceResult};
use crate::storage::{Batch, Expect, Op, Presence};

impl Service {
    /// Returns the page's alert settings.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](super::ServiceError::NotFound) for a page that the key can't access.
    pub fn alert_settings(&self, caller: &Caller, page: PageId) -> ServiceResult<AlertSettings> {
        let page = self.page(caller, page)?.id;
        let telling = self.store().reader().alert_settings(page)?;
        Ok(telling.map(|telling| telling.value).unwrap_or_default())
    }

    /// Edits the page's alert settings.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`](super::ServiceError::ReadOnly), [`ServiceError::NotFound`](super::ServiceError::NotFound),
    /// [`ServiceError::Invalid`](super::ServiceError::Invalid).
    pub async fn edit_alert_settings(
        &self,
        caller: &Caller,
        page: PageId,
        edit: &AlertSettingsEdit,
        once: &IdempotentRequest<'_, AlertSettings>,
    ) -> ServiceResult<RequestOutcome<AlertSettings>> {
        self.change_page_once(caller, page, page.to_u128(), once, |page| async move {
            self.alert_settings_batch(page.id, edit)
        })
        .await
    }

    /// Edits a page's alert settings, and returns them; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`](super::ServiceError::Invalid), and [`ServiceError::Internal`](super::ServiceError::Internal) if the page no
    /// longer exists.
    pub async fn set_alert_settings(&self, page: PageId, edit: &AlertSettingsEdit) -> ServiceResult<AlertSettings> {
        self.commit_change(page.to_u128(), || async move {
            let (after, batch) = self.alert_settings_batch(page, edit)?;
            Ok((after, (!batch.is_empty()).then_some(batch)))
        })
        .await
    }

    fn alert_settings_batch(&self, page: PageId, edit: &AlertSettingsEdit) -> ServiceResult<(AlertSettings, Batch)> {
        let found = self.store().reader().alert_settings(page)?;
        let is = found.as_ref().map_or(Presence::Absent, |found| Presence::At(found.revision));
        let before = found.map(|found| found.value).unwrap_or_default();
        let after = edit.validate(before)?;
        let mut batch = Batch::new();
        if after != before {
            batch.expect(Expect::Page(page, Presence::Present)).expect(Expect::AlertSettings(page, is));
            batch.write(Op::PutAlertSettings(page, after)).event(self.page_event(page, EditKind::Changed));
        }
        Ok((after, batch))
    }
}
