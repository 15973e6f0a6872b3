//! The plan of a key's account: what it allows, and how much of it is used.

use parallax_core::check::CheckKind;
use parallax_core::plan::{self, Plan, PlanLimits};

use super::{Caller, Error, Result, Service};

/// An account's plan and its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The plan.
    pub plan: Plan,
    /// Numbers of each plan, as the operator has set them.
    pub limits: PlanLimits,
    /// Monitors that the account has, those of type component not counted.
    pub monitors: usize,
    /// Pages that the account has.
    pub pages: usize,
    /// Pages that it may have.
    pub most_pages: usize,
}

impl Service {
    /// The numbers of each plan, as the operator has set them.
    pub fn limits(&self) -> &PlanLimits {
        &self.settings().limits
    }

    /// The plan of the key's account and its use.
    ///
    /// # Errors
    /// [`Error::NotFound`] where the account is gone, and [`Error::Internal`].
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
