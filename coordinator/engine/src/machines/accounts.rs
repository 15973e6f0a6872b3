//! Accounts that have monitors in the schedule, and a monitor's target as quarantine counts it.

use std::collections::BTreeMap;

use parallax_core::id::{AccountId, MonitorId};
use parallax_core::quarantine::CheckTarget;

use super::Machines;

/// Number of scheduled monitors per account.
#[derive(Debug, Default)]
pub(super) struct ScheduledAccounts(BTreeMap<AccountId, u32>);

impl ScheduledAccounts {
    /// Returns the number of accounts.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Counts a monitor that left one account's schedule, or joined another's, or both.
    pub(super) fn recount(&mut self, from: Option<AccountId>, to: Option<AccountId>) {
        if from == to {
            return;
        }
        if let Some(account) = to {
            *self.0.entry(account).or_default() += 1;
        }
        let Some(account) = from else { return };
        if let Some(count) = self.0.get_mut(&account) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.0.remove(&account);
            }
        }
    }
}

impl Machines {
    /// Returns the target of a monitor. Monitors of one host share its host number.
    pub(crate) fn quarantine_target(&self, monitor: MonitorId) -> Option<CheckTarget> {
        self.quarantine_target_of_slot(*self.slots.get(&monitor)?)
    }

    /// Returns the target of the monitor with that slot.
    pub(crate) fn quarantine_target_of_slot(&self, slot: u32) -> Option<CheckTarget> {
        let entry = self.get(slot)?;
        let account = entry.machine.settings().account;
        Some(CheckTarget { host: entry.host, account, accounts: self.accounts.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_counts_while_it_has_a_monitor_in_the_schedule() {
        let [one, other] = [1, 2].map(AccountId::from_u128);
        let mut accounts = ScheduledAccounts::default();
        for (from, to, len) in [
            (None, Some(one), 1),
            (None, Some(one), 1),
            (Some(one), Some(one), 1),
            (Some(one), Some(other), 2),
            (Some(one), None, 1),
            (None, None, 1),
            (Some(other), None, 0),
        ] {
            accounts.recount(from, to);
            assert_eq!(accounts.len(), len, "{from:?} {to:?}");
        }
    }
}
