//! Excuses for DNS failures: while nearly all names fail to resolve, a failure proves nothing about the target.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use parallax_core::id::{AccountId, PageId};
use parallax_core::names::{self, Resolution, domain_of, resolution};
use parallax_core::observation::{Observation, Outcome, OwnFault};

use super::Driver;
use crate::storage::Store;

/// Recent resolutions, and the accounts of the pages that had any.
#[derive(Debug, Default)]
pub(super) struct Names {
    late: names::Names,
    accounts: BTreeMap<PageId, AccountId>,
}

impl Names {
    /// Returns the page's account; `None` if the page is gone or can't be read.
    fn account(&mut self, page: PageId, store: &Store) -> Option<AccountId> {
        match self.accounts.entry(page) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(unknown) => {
                let page = store.reader().page(page).ok().flatten()?;
                Some(*unknown.insert(page.value.account))
            }
        }
    }
}

impl Driver {
    /// Records how the name of the monitor's target was resolved. While nearly all names fail at all vantages, a
    /// failure becomes inconclusive.
    pub(super) fn mind_names(&mut self, slot: u32, seen: &mut Observation) {
        let is_calm = self.names.late.is_calm();
        let Some(failed) = resolution(&seen.outcome).filter(|failed| *failed || !is_calm) else { return };
        let Some((check, page, status)) = self.machines.named(slot) else { return };
        let Some(domain) = domain_of(check) else { return };
        if is_calm {
            self.names.accounts.clear();
        }
        let Some(account) = self.names.account(page, &self.store) else { return };
        let heard = Resolution { domain, place: seen.place, account, status, failed, ended: seen.ended };
        let (is_excused, is_news) = self.names.late.hear(&heard, self.clock.now());
        if is_excused {
            seen.outcome = Outcome::Inconclusive(OwnFault::ResolverDead);
        }
        if is_news {
            self.places.set_names_fail(self.names.late.is_ours());
        }
    }

    /// Expires old resolutions.
    pub(super) fn expire_names(&mut self) {
        if self.names.late.expire(self.clock.now()) {
            self.places.set_names_fail(false);
        }
    }
}
