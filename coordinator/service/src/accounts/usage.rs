//! The plan of a key's account: its limits and their usage.

use parallax_core::check::CheckKind;
use parallax_core::id::AccountId;
use parallax_core::plan::{self, Plan, PlanLimits};

use super::AccountService;
use crate::{Caller, ServiceError, ServiceResult};

/// An account's plan and its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanUsage {
    /// The plan.
    pub plan: Plan,
    /// Limits of each plan, as configured by the operator.
    pub limits: PlanLimits,
    /// The account's monitors, not counting those of type component.
    pub monitors: usize,
    /// The account's pages.
    pub pages: usize,
    /// Maximum number of pages.
    pub max_pages: usize,
}

impl AccountService {
    /// Returns the limits of each plan, as configured by the operator.
    pub fn limits(&self) -> &PlanLimits {
        self.context.limits()
    }

    /// Returns the plan of the caller's account, without its usage.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if the account no longer exists, and [`ServiceError::Internal`].
    pub fn plan(&self, caller: &Caller) -> ServiceResult<Plan> {
        self.plan_of(caller.account)
    }

    fn plan_of(&self, id: AccountId) -> ServiceResult<Plan> {
        Ok(self.context.store().reader().account(id)?.ok_or(ServiceError::NotFound)?.value.plan)
    }

    /// Returns the plan of the key's account and its usage.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if the account no longer exists, and [`ServiceError::Internal`].
    pub async fn usage(&self, caller: &Caller) -> ServiceResult<PlanUsage> {
        self.usage_of(caller.account).await
    }

    /// Returns the plan of an account and its usage; called by the operator.
    ///
    /// # Errors
    /// As [`Self::usage`].
    pub async fn usage_of(&self, id: AccountId) -> ServiceResult<PlanUsage> {
        let plan = self.plan_of(id)?;
        let (pages, monitors) = self
            .context
            .store()
            .read(move |store| {
                let pages = store.pages_of(id)?;
                let mut monitors = 0_usize;
                for page in &pages {
                    let on_page = store.monitors_of(page.value.id)?;
                    let counts = |kind: CheckKind| !matches!(kind, CheckKind::Component);
                    monitors += on_page.iter().filter(|monitor| counts(monitor.value.check.kind())).count();
                }
                Ok((pages.len(), monitors))
            })
            .await?;
        let limits = *self.context.limits();
        Ok(PlanUsage { plan, limits, monitors, pages, max_pages: plan::max_pages(plan) })
    }
}
