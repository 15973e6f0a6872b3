//! The engine's cache, kept to its size while the whole tree is walked.

use sled::Tree;

/// Uses of each record that was walked: those of the 9 to 17 on a page are about as many as a queue holds.
const USES: u32 = 5;

/// Tells the engine of records that were just walked, so that it lets go of pages before them.
///
/// It notes uses in 256 queues and looks at each only once 64 are in it. A walk uses a page once, and so up to 16,384 of
/// them would stay in memory whatever the cache's size is.
pub(super) fn walked<'k>(tree: &Tree, keys: impl Iterator<Item = &'k [u8]>) {
    for key in keys {
        for _ in 0..USES {
            // What can't be read is found out where it matters.
            let _ = tree.contains_key(key);
        }
    }
}
