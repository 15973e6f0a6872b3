//! The identity of the slots' numbering, by which agents know whether what they hold is still meant.

use crate::storage::{Batch, Op, Store, StoreError};

/// Cursor under which it is kept: it changes only with the store.
pub(super) const CURSOR: &str = "mesh-book";

/// The identity of the slots' numbering, made with the store.
pub(super) async fn of(store: &Store) -> Result<u64, StoreError> {
    let known = store.reader().cursor(CURSOR)?;
    if known != 0 {
        return Ok(known);
    }
    let made = rand::random::<u64>() | 1;
    let mut batch = Batch::new();
    batch.write(Op::SetCursor(CURSOR.to_owned(), made));
    store.commit(batch).await?;
    Ok(made)
}
