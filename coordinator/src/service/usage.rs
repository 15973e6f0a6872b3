//! The plan of a key's account: its limits and their usage.

use parallax_core::check::CheckKind;
use parallax_core::plan::{self, Plan, PlanLimits};

use super::{Caller, Error, Result, Service};

/// An account's plan and its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The plan.
    pub plan: Plan,
    /// Limits of each plan, as configured by the operator.
    pub limits: PlanLimits,
    /// The account's monitors, not counting those of type component.
    pub monitors: usize,
    /// The account's pages.
    pub pages: usize,
    /// Maximum number of pages.
    pub most_pages: usize,
}

impl Service {
    /// Returns the limits of each plan, as configured by the operator.
    pub fn limits(&self) -> &PlanLimits {
        &self.settings().limits
    }

    /// Returns the plan of the key's account and its usage.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account no longer exists, and [`Error::Internal`].
    pub async fn usage(&self, caller: &Caller) -> Result<Usage> {
        let id = caller.key.account;
        let plan = self.store().reader().account(id)?.ok_or(Error::NotFound)?.value.plan;
        let (pages, monitors) = self
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
        let limits = *self.limits();
        Ok(Usage { plan, limits, monitors, pages, most_pages: plan::pages(plan) })
    }
}
