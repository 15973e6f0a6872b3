//! A page's deleted windows, listed for thirty days so that calendars can show them as cancelled.

use parallax_core::id::PageId;
use parallax_core::incident::Incident;
use parallax_core::incident::cancelled::{self, CancelledWindow, CancelledWindows};
use parallax_store::{Batch, Expect, Op, Presence, StoredResponse, VersionedValue};

use super::IncidentService;
use crate::{ServiceError, ServiceResult};

impl IncidentService {
    /// Lists a page's windows that were deleted within the last thirty days.
    pub(crate) async fn cancelled_windows_of(&self, page: PageId) -> ServiceResult<Vec<CancelledWindow>> {
        let (name, now) = (cancelled_key(page), self.context.now());
        let stored = self.context.store().read(move |store| store.stored_response(&name)).await?;
        let mut cancelled = stored.map(|stored| decode_cancelled(&stored.value)).unwrap_or_default();
        cancelled.prune(now);
        Ok(cancelled.0)
    }

    /// Records a deleted window for calendars, if they need to know.
    pub(super) fn record_cancelled(&self, deleted: &VersionedValue<Incident>, batch: &mut Batch) -> ServiceResult<()> {
        let (name, now) = (cancelled_key(deleted.value.page), self.context.now());
        let before = self.context.store().reader().stored_response(&name)?;
        let mut cancelled = before.as_ref().map(|stored| decode_cancelled(&stored.value)).unwrap_or_default();
        if !cancelled.record_deletion(&deleted.value, deleted.revision, now) {
            return Ok(());
        }
        let answer = postcard::to_stdvec(&cancelled).map_err(|error| ServiceError::Internal(error.to_string()))?;
        let presence = before.map_or(Presence::Absent, |stored| Presence::At(stored.revision));
        batch.expect(Expect::StoredResponse(name.clone(), presence));
        let remembered =
            StoredResponse { fingerprint: [0; 32], response: answer, expires_at: now + cancelled::LISTED_FOR };
        batch.write(Op::DeleteExpiredResponses(now)).write(Op::PutStoredResponse(name, remembered));
        Ok(())
    }
}

/// The key under which a page's deleted windows are stored.
fn cancelled_key(page: PageId) -> String {
    format!("cancelled-windows/{page}")
}

/// Decodes the deleted windows; empty if that fails, so that the calendar still works.
fn decode_cancelled(remembered: &StoredResponse) -> CancelledWindows {
    postcard::from_bytes(&remembered.response).unwrap_or_default()
}
