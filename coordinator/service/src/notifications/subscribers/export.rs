//! Export of a page's subscribers, in parts.

use parallax_core::audit::AuditSubject;
use parallax_core::id::{PageId, SubscriberId};
use parallax_core::role::Permission;

use super::{SubscriberService, SubscriberSlice};
use crate::{Caller, ServiceResult};

/// Subscribers of one part.
const EXPORTED_AT_ONCE: usize = 100;

impl SubscriberService {
    /// Returns the part of the page's subscribers after that one, oldest first. A read key gets masked addresses, as it
    /// does from the list. The audit log has an entry for each export
    /// of whole addresses.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`](crate::ServiceError::NotFound) for a page that the caller can't access, and
    /// [`ServiceError::RoleForbids`](crate::ServiceError::RoleForbids) for a person who is not an owner.
    pub async fn export(
        &self,
        caller: &Caller,
        page: PageId,
        after: Option<SubscriberId>,
    ) -> ServiceResult<SubscriberSlice> {
        let page = self.context.page(caller, page)?;
        if caller.key().is_none() {
            caller.require(Permission::ExportSubscribers)?;
        }
        if after.is_none() && caller.allows(Permission::ExportSubscribers) {
            let exported = (AuditSubject::Subscriber, String::new(), page.name, Some(page.id));
            self.context.commit_export(caller, exported).await?;
        }
        let slice = self.slice(page.id, after, EXPORTED_AT_ONCE).await?;
        Ok(if caller.allows(Permission::ExportSubscribers) { slice } else { slice.masked() })
    }
}
