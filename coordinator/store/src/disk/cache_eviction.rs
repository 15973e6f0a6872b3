//! Cache eviction: keeps the store engine's cache within its size while the whole tree is walked.

use sled::Tree;

/// Uses recorded per walked record: those of the 9 to 17 records of a page roughly fill a queue.
const USES: u32 = 5;

/// Records uses of the given walked records with the engine, so that it evicts the pages before them.
///
/// The engine records uses in 256 queues and processes a queue only once it has 64. A walk uses each page once, so
/// up to 16,384 pages would stay in memory whatever the cache's size is.
pub(super) fn record_uses<'k>(tree: &Tree, keys: impl Iterator<Item = &'k [u8]>) {
    for key in keys {
        for _ in 0..USES {
            // A read error is reported where the record is used.
            let _ = tree.contains_key(key);
        }
    }
}
