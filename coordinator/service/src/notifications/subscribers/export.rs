//! Export of a page's subscribers, in parts.

use parallax_core::id::{PageId, SubscriberId};
use parallax_core::role::Permission;
use parallax_core::subscriber::Subscriber;

use super::{SubscriberService, SubscriberSlice};
use crate::{Caller, ServiceResult};

/// Subscribers of one part.
const EXPORTED_AT_ONCE: usize = 100;

impl SubscriberService {
    /// Returns the part of the page's subscribers after that one, oldest first. A read key gets masked addresses, as it
    /// does from the list.
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
        self.context.page(caller, page)?;
        if caller.key().is_none() {
            caller.require(Permission::ExportSubscribers)?;
        }
        let slice = self.list(caller, page, after, EXPORTED_AT_ONCE).await?;
        if caller.allows(Permission::ExportSubscribers) {
            return Ok(slice);
        }
        let subscribers = slice.subscribers.into_iter().map(Subscriber::masked).collect();
        Ok(SubscriberSlice { subscribers, ..slice })
    }
}
