//! Memory limit for bodies that are being read, shared fairly among accounts.
//!
//! Servers that send long bodies and then stall must not exhaust the host's memory, nor that of other
//! accounts' checks. An account may use a third of the free memory: a quarter of the budget if alone, and
//! however much others use, some is left for a newcomer (dynamic thresholds, as in switches with shared
//! buffers).

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Bytes used by all bodies of an agent that are being read.
#[derive(Debug, Default)]
pub(in crate::probe) struct MemoryBudget(Mutex<Usage>);

#[derive(Debug, Default)]
struct Usage {
    total: usize,
    /// By account; no entry is zero.
    accounts: BTreeMap<u32, usize>,
}

impl MemoryBudget {
    /// Total budget in bytes.
    const MAX_BYTES: usize = 192 << 20;

    /// Creates an account's share, of zero bytes. Unknown accounts all have the same number.
    pub(in crate::probe) fn share(self: &Arc<Self>, account: u32) -> MemoryShare {
        MemoryShare { budget: Arc::clone(self), account, bytes: 0 }
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory of one buffer, returned to the budget on drop.
#[derive(Debug)]
pub(in crate::probe) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    account: u32,
    bytes: usize,
}

impl MemoryShare {
    /// Creates another share of the same account, of zero bytes.
    pub(super) fn sibling(&self) -> Self {
        self.budget.share(self.account)
    }

    /// Adds this many bytes to the share.
    ///
    /// # Errors
    /// [`io::ErrorKind::OutOfMemory`] if the account would exceed its limit.
    pub(super) fn grow(&mut self, by: usize) -> io::Result<()> {
        let mut usage = self.budget.usage();
        let total = usage.total.saturating_add(by);
        let own = usage.accounts.get(&self.account).copied().unwrap_or_default().saturating_add(by);
        if own.saturating_mul(3) > MemoryBudget::MAX_BYTES.saturating_sub(total) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if own > 0 {
            usage.total = total;
            usage.accounts.insert(self.account, own);
            self.bytes += by;
        }
        Ok(())
    }

    /// Grows the share to this many bytes if it is smaller.
    ///
    /// # Errors
    /// As for [`Self::grow`].
    pub(super) fn grow_to(&mut self, bytes: usize) -> io::Result<()> {
        match bytes.saturating_sub(self.bytes) {
            0 => Ok(()),
            by => self.grow(by),
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut usage = self.budget.usage();
        usage.total = usage.total.saturating_sub(self.bytes);
        let own = usage.accounts.get(&self.account).map_or(0, |own| own.saturating_sub(self.bytes));
        if own == 0 {
            usage.accounts.remove(&self.account);
        } else {
            usage.accounts.insert(self.account, own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_at_its_limit_leaves_memory_to_others() {
        let budget = Arc::new(MemoryBudget::default());
        let piece = 1 << 20;
        // As many stalled readings as it can start.
        let fill = |account| {
            let shares = std::iter::repeat_with(|| budget.share(account));
            shares.map_while(|mut share| share.grow(piece).is_ok().then_some(share)).collect::<Vec<_>>()
        };
        let first = fill(1);
        assert_eq!(first.len() * piece, MemoryBudget::MAX_BYTES / 4);
        let mut second = budget.share(2);
        second.grow(8 << 20).unwrap();
        drop(second);
        let many: Vec<_> = (3..11).map(fill).collect();
        budget.share(99).grow(2 << 20).unwrap();
        drop((first, many));
        let usage = budget.usage();
        assert_eq!((usage.total, usage.accounts.len()), (0, 0));
    }
}
