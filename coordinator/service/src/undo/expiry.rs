//! Deletion of expired records: an inverse may hold secrets, which leave the store even while nobody writes to it.

use std::sync::Arc;
use std::time::Duration;

use parallax_store::{self as storage, Batch, Op, StoreError};
use tokio::time::sleep;

use super::UndoService;

/// Pause between two deletions.
const INTERVAL: Duration = Duration::from_secs(60);
/// Deletions in one batch, each of as many records as the store deletes at once.
const AT_ONCE: usize = 8;

impl UndoService {
    /// Deletes expired records of changes and answers, as long as the coordinator runs.
    pub async fn run_expiry(self: Arc<Self>) {
        loop {
            match self.delete_expired().await {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => error.log_retry("expired records of changes can't be deleted"),
            }
            sleep(INTERVAL).await;
        }
    }

    async fn delete_expired(&self) -> storage::Result<()> {
        let now = self.context.now();
        let mut batch = Batch::new();
        for _ in 0..AT_ONCE {
            batch.write(Op::DeleteExpiredResponses(now));
        }
        self.context.store().commit(batch).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::undo::UNDO_WINDOW;
    use parallax_store::StoredResponse;

    use crate::test_world::world;

    #[tokio::test]
    async fn expired_records_leave_a_store_that_nobody_writes_to() {
        let world = world().await;
        let (store, now) = (world.service.context.store(), world.service.now());
        let secret = StoredResponse { fingerprint: [0; 32], response: vec![7; 9], expires_at: now + UNDO_WINDOW };
        let write = parallax_store::Op::PutStoredResponse("secret".to_owned(), secret);
        store.commit(parallax_store::Batch::new().write(write).clone()).await.unwrap();
        let is_stored = || store.reader().stored_response("secret").unwrap().is_some();
        for (age, expected) in [(0, true), (UNDO_WINDOW - 1, true), (UNDO_WINDOW, false)] {
            world.clock.set(now + age);
            world.service.undo.delete_expired().await.unwrap();
            assert_eq!(is_stored(), expected, "{age}");
        }
    }
}
