//! Accounts that have monitors in the schedule, and the target of a monitor as quarantine counts it.

use std::collections::BTreeMap;

use parallax_core::id::{AccountId, MonitorId};
use parallax_core::quarantine::CheckTarget;

use super::Machines;

/// Accounts with monitors in the schedule, each with how many.
#[derive(Debug, Default)]
pub(super) struct Accounts(BTreeMap<AccountId, u32>);

impl Accounts {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Counts a monitor that left the schedule of one account, or came into that of one, or both.
    pub(super) fn recount(&mut self, left: Option<AccountId>, reached: Option<AccountId>) {
        if left == reached {
            return;
        }
        if let Some(account) = reached {
            *self.0.entry(account).or_default() += 1;
        }
        let Some(account) = left else { return };
        if let Some(count) = self.0.get_mut(&account) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.0.remove(&account);
            }
        }
    }
}

impl Machines {
    /// The target of a monitor, for which several monitors of one host have the same number.
    pub fn target_of(&self, monitor: MonitorId) -> Option<CheckTarget> {
        self.target_in(*self.numbers.get(&monitor)?)
    }

    /// The target of the monitor with that dense number.
    pub fn target_in(&self, slot: u32) -> Option<CheckTarget> {
        let kept = self.get(slot)?;
        let account = kept.machine.watch().account;
        Some(CheckTarget { host: kept.host, account, accounts: self.accounts.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_counts_while_it_has_a_monitor_in_the_schedule() {
        let [one, other] = [1, 2].map(AccountId::from_u128);
        let mut accounts = Accounts::default();
        for (left, reached, len) in [
            (None, Some(one), 1),
            (None, Some(one), 1),
            (Some(one), Some(one), 1),
            (Some(one), Some(other), 2),
            (Some(one), None, 1),
            (None, None, 1),
            (Some(other), None, 0),
        ] {
            accounts.recount(left, reached);
            assert_eq!(accounts.len(), len, "{left:?} {reached:?}");
        }
    }
}
