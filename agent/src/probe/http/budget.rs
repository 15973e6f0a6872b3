//! Memory that bodies may take while they are read, shared fairly among accounts.
//!
//! Servers that send long bodies and then stall must not take the host's memory, nor that of other accounts' checks. An
//! account may hold a third of what is still free: a quarter of the budget alone, and while others hold what they can,
//! there is still some for one that comes later (dynamic thresholds, as in switches with shared buffers).

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Bytes that all bodies of an agent may take together while they are read.
#[derive(Debug, Default)]
pub(in crate::probe) struct Budget(Mutex<Usage>);

#[derive(Debug, Default)]
struct Usage {
    total: usize,
    /// By account; none of them is zero.
    accounts: BTreeMap<u32, usize>,
}

impl Budget {
    /// The most.
    const MOST: usize = 192 << 20;

    /// An account's share, of no bytes as yet. Where accounts are not known all have one number.
    pub(in crate::probe) fn share(self: &Arc<Self>, account: u32) -> Share {
        Share { budget: Arc::clone(self), account, bytes: 0 }
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One buffer's share of the budget, given back when it is dropped.
#[derive(Debug)]
pub(in crate::probe) struct Share {
    budget: Arc<Budget>,
    account: u32,
    bytes: usize,
}

impl Share {
    /// A share of the same account, of no bytes as yet.
    pub(super) fn another(&self) -> Self {
        self.budget.share(self.account)
    }

    /// Counts in so many more bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::OutOfMemory`] where the account would hold more than its share.
    pub(super) fn grow(&mut self, by: usize) -> io::Result<()> {
        let mut usage = self.budget.usage();
        let total = usage.total.saturating_add(by);
        let own = usage.accounts.get(&self.account).copied().unwrap_or_default().saturating_add(by);
        if own.saturating_mul(3) > Budget::MOST.saturating_sub(total) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if own > 0 {
            usage.total = total;
            usage.accounts.insert(self.account, own);
            self.bytes += by;
        }
        Ok(())
    }

    /// Counts in what is still missing up to so many bytes.
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

impl Drop for Share {
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
    fn an_account_that_holds_what_it_can_leaves_memory_to_others() {
        let budget = Arc::new(Budget::default());
        let piece = 1 << 20;
        // As many readings as it likes, which all stall.
        let fill = |account| {
            let shares = std::iter::repeat_with(|| budget.share(account));
            shares.map_while(|mut share| share.grow(piece).is_ok().then_some(share)).collect::<Vec<_>>()
        };
        let one = fill(1);
        assert_eq!(one.len() * piece, Budget::MOST / 4);
        let mut other = budget.share(2);
        other.grow(8 << 20).unwrap();
        drop(other);
        let many: Vec<_> = (3..11).map(fill).collect();
        budget.share(99).grow(2 << 20).unwrap();
        drop((one, many));
        let usage = budget.usage();
        assert_eq!((usage.total, usage.accounts.len()), (0, 0));
    }
}
