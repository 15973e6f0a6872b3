//! The audit log's entry of a destination whose address and secrets were shown to a person.

use std::sync::{Mutex, PoisonError};

use parallax_core::id::{DestinationId, PageId};
use parallax_core::rate_limit::FixedWindowLimit;
use parallax_core::role::Permission;
use parallax_core::time::HOUR;

use super::DestinationService;
use crate::{ActorId, Caller, ServiceResult};

/// Persons and destinations that are remembered. The oldest are forgotten: they are logged again.
const MAX_SHOWN: usize = 10_000;

/// Destinations whose secrets a person was shown within the last hour: a screen is opened often, and renews itself.
#[derive(Debug)]
pub(super) struct ShownSecrets(Mutex<FixedWindowLimit<(ActorId, DestinationId)>>);

impl Default for ShownSecrets {
    fn default() -> Self {
        Self(Mutex::new(FixedWindowLimit::evicting(HOUR, MAX_SHOWN)))
    }
}

impl DestinationService {
    /// Logs that the caller is shown a destination's address and secrets, once an hour. Called before they are: what can't
    /// be logged is not shown.
    ///
    /// # Errors
    /// `ServiceError::RoleForbids`, `ServiceError::NotFound`, and `ServiceError::Internal` if the store can't be written.
    pub async fn log_shown_secrets(&self, caller: &Caller, page: PageId, id: DestinationId) -> ServiceResult<()> {
        caller.require(Permission::ManageAlerts)?;
        let (name, key, now) = (self.get(caller, page, id)?.name, (caller.limit_id(), id), self.context.now());
        let shown = || self.shown_secrets.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shown().would_admit(1, &key, now) {
            self.context.commit_shown_secrets(caller, (page, id, name)).await?;
            shown().count(1, &key, 1, now);
        }
        Ok(())
    }
}
