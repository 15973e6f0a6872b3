//! Identity of the slot numbering (the slot epoch), by which agents know whether their assignments are still valid.

use parallax_store::{Batch, Op, Store, StoreError};

/// Cursor that stores it; it changes only with the store.
pub(super) const CURSOR: &str = "mesh-book";

/// Returns the slot epoch; creates it for a new store.
pub(super) async fn load_or_create(store: &Store) -> Result<u64, StoreError> {
    let stored = store.reader().cursor(CURSOR)?;
    if stored != 0 {
        return Ok(stored);
    }
    let epoch = rand::random::<u64>() | 1;
    let mut batch = Batch::new();
    batch.write(Op::SetCursor(CURSOR.to_owned(), epoch));
    store.commit(batch).await?;
    Ok(epoch)
}
