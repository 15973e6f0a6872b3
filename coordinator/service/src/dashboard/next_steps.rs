//! Steps that are next after the set-up of an account, each known from what is stored.

use parallax_core::account::Account;
use parallax_core::delivery::{Delivery, DeliveryState};
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

/// All steps, in the order of the list.
const STEPS: [SetUpStep; 5] =
    [SetUpStep::Monitor, SetUpStep::SecondNetwork, SetUpStep::TestAlert, SetUpStep::SecondMember, SetUpStep::Domain];

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

impl SetUpStep {
    /// Bit of the step in [`Account::set_up_done`].
    const fn bit(self) -> u8 {
        match self {
            Self::Monitor => 1,
            Self::SecondNetwork => 1 << 1,
            Self::TestAlert => 1 << 2,
            Self::SecondMember => 1 << 3,
            Self::Domain => 1 << 4,
        }
    }
}

impl DashboardService {
    /// Returns the steps after the set-up, each with true if it is done: one that was done once stays so. None for those
    /// who may not take them all, once all are done, and after they were dismissed.
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
        let before = account.set_up_done;
        let mut done = self.context.store().read(move |store| steps_done(store, id, before)).await?;
        if is_operator && self.history.confirming_networks().has_second() {
            done |= SetUpStep::SecondNetwork.bit();
        }
        if done != before
            && let Err(error) = self.record_done(id, done).await
        {
            // Known again at the next reading: a store that takes no writes must not hide the screen.
            tracing::warn!(%error, account = %id, "steps that are done can't be recorded; retried at the next overview");
        }
        let steps = STEPS.into_iter().filter(|step| is_operator || *step != SetUpStep::SecondNetwork);
        let steps: Vec<(SetUpStep, bool)> = steps.map(|step| (step, done & step.bit() != 0)).collect();
        Ok(steps.iter().any(|(_, is_done)| !is_done).then_some(steps))
    }

    /// Records steps that are done.
    async fn record_done(&self, id: AccountId, done: u8) -> ServiceResult<()> {
        self.change_account(id, |account| Account { set_up_done: account.set_up_done | done, ..account }).await
    }

    /// Hides the steps after the set-up from all owners of the account. Idempotent.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::RoleForbids`], [`ServiceError::NotFound`].
    pub async fn dismiss_next_steps(&self, caller: &Caller) -> ServiceResult<()> {
        caller.require(Permission::ManageAccount)?;
        self.change_account(caller.account, |account| Account { is_set_up_dismissed: true, ..account }).await
    }

    /// Changes an account; without a difference nothing is written.
    async fn change_account(&self, id: AccountId, change: impl Fn(Account) -> Account) -> ServiceResult<()> {
        let change = &change;
        self.context
            .commit_change(id.to_u128(), || async move {
                let account = self.context.store().reader().account(id)?.ok_or(ServiceError::NotFound)?;
                let changed = change(account.value.clone());
                if changed == account.value {
                    return Ok(((), None));
                }
                let mut batch = parallax_store::Batch::new();
                batch.expect(Expect::Account(id, Presence::At(account.revision))).write(changed);
                Ok(((), Some(batch)))
            })
            .await
    }
}

/// Adds the steps that are done by what is stored. What was done before is not read again.
fn steps_done(store: &dyn StoreRead, account: AccountId, before: u8) -> parallax_store::Result<u8> {
    let mut done = before;
    let is_open = |done: u8, step: SetUpStep| done & step.bit() == 0;
    let pages = store.pages_of(account)?;
    for page in pages.iter().take(MAX_PAGES_READ).map(|page| page.value.id) {
        if is_open(done, SetUpStep::Monitor) && !store.monitors_of(page)?.is_empty() {
            done |= SetUpStep::Monitor.bit();
        }
        if is_open(done, SetUpStep::TestAlert) {
            let newest = store.deliveries_of(Some(page), None, MAX_DELIVERIES_READ)?;
            let is_alert = |it: &Delivery| it.event == TEST_EVENT || is_alert(it);
            let has_arrived = |it: &Delivery| matches!(it.state, DeliveryState::Delivered(_)) && is_alert(it);
            if newest.iter().any(|it| has_arrived(&it.value)) {
                done |= SetUpStep::TestAlert.bit();
            }
        }
    }
    if is_open(done, SetUpStep::SecondMember) && store.members_of(account)?.len() > 1 {
        done |= SetUpStep::SecondMember.bit();
    }
    if pages.iter().any(|page| page.value.custom_domain.is_some()) {
        done |= SetUpStep::Domain.bit();
    }
    Ok(done)
}
