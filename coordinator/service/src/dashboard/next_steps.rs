//! Steps that are next after the set-up of an account, each known from what is stored.

use parallax_core::account::Account;
use parallax_core::delivery::DeliveryState;
use parallax_core::id::AccountId;
use parallax_core::role::Permission;
use parallax_store::{Expect, Presence, StoreRead};

use super::DashboardService;
use crate::deliveries::{TEST_EVENT, is_alert};
use crate::{Actor, Caller, ServiceError, ServiceResult};

/// Newest deliveries of a page among which an alert or a test that arrived is searched.
const MAX_DELIVERIES_READ: usize = 512;
/// Pages whose deliveries are read.
const MAX_PAGES_READ: usize = 8;

/// A step after the set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetUpStep {
    /// A monitor on a page.
    Monitor,
    /// A second agent, on another network; for operators.
    SecondNetwork,
    /// An alert or a test alert that arrived.
    TestAlert,
    /// A second member of the account.
    SecondMember,
    /// A domain of a page.
    Domain,
}

impl DashboardService {
    /// Returns the steps after the set-up, each with true if it is done. None for those who may not take them all,
    /// once all are done, and after they were dismissed.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if the account no longer exists, and [`ServiceError::Internal`].
    pub async fn next_steps(&self, caller: &Caller) -> ServiceResult<Option<Vec<(SetUpStep, bool)>>> {
        let Actor::Person { is_operator, .. } = caller.actor else { return Ok(None) };
        let id = caller.account;
        let account = self.context.store().reader().account(id)?.ok_or(ServiceError::NotFound)?.value;
        if !caller.allows(Permission::ManageAccount) || account.is_set_up_dismissed {
            return Ok(None);
        }
        let mut steps = self.context.store().read(move |store| stored_steps(store, id)).await?;
        if is_operator {
            let is_done = self.history.confirming_networks().has_second();
            steps.insert(1, (SetUpStep::SecondNetwork, is_done));
        }
        Ok(steps.iter().any(|(_, is_done)| !is_done).then_some(steps))
    }

    /// Hides the steps after the set-up from all owners of the account. Idempotent.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::RoleForbids`], [`ServiceError::NotFound`].
    pub async fn dismiss_next_steps(&self, caller: &Caller) -> ServiceResult<()> {
        caller.require(Permission::ManageAccount)?;
        let id = caller.account;
        self.context
            .commit_change(id.to_u128(), || async move {
                let account = self.context.store().reader().account(id)?.ok_or(ServiceError::NotFound)?;
                if account.value.is_set_up_dismissed {
                    return Ok(((), None));
                }
                let mut batch = parallax_store::Batch::new();
                batch
                    .expect(Expect::Account(id, Presence::At(account.revision)))
                    .write(Account { is_set_up_dismissed: true, ..account.value });
                Ok(((), Some(batch)))
            })
            .await
    }
}

fn stored_steps(store: &dyn StoreRead, account: AccountId) -> parallax_store::Result<Vec<(SetUpStep, bool)>> {
    let pages = store.pages_of(account)?;
    let (mut has_monitor, mut has_alert) = (false, false);
    for page in pages.iter().take(MAX_PAGES_READ).map(|page| page.value.id) {
        has_monitor = has_monitor || !store.monitors_of(page)?.is_empty();
        has_alert = has_alert || {
            let newest = store.deliveries_of(Some(page), None, MAX_DELIVERIES_READ)?;
            newest
                .iter()
                .map(|it| &it.value)
                .any(|it| matches!(it.state, DeliveryState::Delivered(_)) && (it.event == TEST_EVENT || is_alert(it)))
        };
    }
    Ok(vec![
        (SetUpStep::Monitor, has_monitor),
        (SetUpStep::TestAlert, has_alert),
        (SetUpStep::SecondMember, store.members_of(account)?.len() > 1),
        (SetUpStep::Domain, pages.iter().any(|page| page.value.custom_domain.is_some())),
    ])
}
