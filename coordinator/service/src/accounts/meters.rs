//! Use of every limit of an account, for its owner.

use parallax_core::check::CheckKind;
use parallax_core::key::MAX_KEYS;
use parallax_core::person::MAX_MEMBERS;
use parallax_core::role::Permission;

use super::AccountService;
use super::usage::PlanUsage;
use crate::{Caller, ServiceResult};

/// Use of an account's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountMeters {
    /// Its plan, monitors and pages.
    pub usage: PlanUsage,
    /// Monitors of type component.
    pub components: usize,
    /// Incidents and maintenance windows that are kept.
    pub incidents: usize,
    /// API keys, and how many it may have.
    pub keys: (usize, usize),
    /// Members, and how many it may have.
    pub members: (usize, usize),
}

impl AccountService {
    /// Counts what the caller's account has of everything that is limited.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`](crate::ServiceError::RoleForbids) for everyone but owners.
    pub async fn meters(&self, caller: &Caller) -> ServiceResult<AccountMeters> {
        caller.require(Permission::ManageAccount)?;
        let (id, usage) = (caller.account, self.usage(caller).await?);
        let read = self.context.store().read(move |store| {
            let (mut components, mut incidents) = (0, 0);
            for page in store.pages_of(id)? {
                let monitors = store.monitors_of(page.value.id)?;
                components += monitors.iter().filter(|it| it.value.check.kind() == CheckKind::Component).count();
                incidents += store.page_counts(page.value.id)?.incidents;
            }
            let keys = (store.keys_of(id)?.len(), MAX_KEYS);
            Ok((components, incidents, keys, (store.members_of(id)?.len(), MAX_MEMBERS)))
        });
        let (components, incidents, keys, members) = read.await?;
        Ok(AccountMeters { usage, components, incidents, keys, members })
    }
}
