//! Excuses for DNS failures: while nearly all names fail to resolve, a failure proves nothing about the target.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use parallax_core::dns_faults::{self, NameResolution, domain_of, resolution_failed};
use parallax_core::id::{AccountId, PageId};
use parallax_core::observation::{InconclusiveReason, Observation, ProbeOutcome};
use parallax_store::Store;

use super::Driver;

/// Recent resolutions, and the accounts of the pages that had any.
#[derive(Debug, Default)]
pub(super) struct RecentDnsFailures {
    recent: dns_faults::DnsFaultDetector,
    accounts: BTreeMap<PageId, AccountId>,
}

impl RecentDnsFailures {
    /// Returns the page's account; `None` if the page is gone or can't be read.
    fn account(&mut self, page: PageId, store: &Store) -> Option<AccountId> {
        match self.accounts.entry(page) {
            Entry::Occupied(entry) => Some(*entry.get()),
            Entry::Vacant(entry) => {
                let page = store.reader().page(page).ok().flatten()?;
                Some(*entry.insert(page.value.account))
            }
        }
    }
}

impl Driver {
    /// Records how the name of the monitor's target was resolved. While nearly all names fail at all vantages, a
    /// failure becomes inconclusive.
    pub(super) fn excuse_dns_failure(&mut self, slot: u32, observation: &mut Observation) {
        let is_calm = self.dns_failures.recent.is_calm();
        let Some(failed) = resolution_failed(&observation.outcome).filter(|failed| *failed || !is_calm) else {
            return;
        };
        let Some((check, page, status)) = self.machines.check_page_status(slot) else { return };
        let Some(domain) = domain_of(check) else { return };
        if is_calm {
            self.dns_failures.accounts.clear();
        }
        let Some(account) = self.dns_failures.account(page, &self.store) else { return };
        let resolution =
            NameResolution { domain, vantage: observation.vantage, account, status, failed, ended: observation.ended };
        let (is_excused, has_changed) = self.dns_failures.recent.record(&resolution, self.clock.now());
        if is_excused {
            observation.outcome = ProbeOutcome::Inconclusive(InconclusiveReason::ResolverDead);
        }
        if has_changed {
            self.mesh_view.set_dns_failing(self.dns_failures.recent.has_fault());
        }
    }

    /// Expires old resolutions.
    pub(super) fn expire_dns_failures(&mut self) {
        if self.dns_failures.recent.expire(self.clock.now()) {
            self.mesh_view.set_dns_failing(false);
        }
    }
}
