//! What an operator asks of the store while the coordinator runs. No key may make these calls.

use std::io::Write;

use super::Service;
pub use crate::storage::{StoreError, Whole};

impl Service {
    /// Streams a snapshot to `sink`, on a thread that may block, and returns it. Everything goes on meanwhile.
    ///
    /// # Errors
    /// Where the sink takes no more, or the store can't be read.
    pub async fn stream_backup<W: Write + Send + 'static>(&self, mut sink: W) -> Result<W, StoreError> {
        let streamed = self.0.store.read(move |read| {
            read.stream(&mut sink)?;
            Ok(sink)
        });
        streamed.await
    }

    /// Reads the whole store and proves it. Everything goes on meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with what was found.
    pub async fn verify(&self) -> Result<Whole, StoreError> {
        self.0.store.read(|read| read.verify()).await
    }
}
