//! Store operations for the operator of a running coordinator. Not accessible with an API key.

use std::io::Write;

use super::Service;
pub use crate::storage::{StoreCounts, StoreError};

impl Service {
    /// Streams a backup to `sink` from a blocking thread, and returns the sink. The service keeps running.
    ///
    /// # Errors
    /// Fails if the sink can't be written or the store can't be read.
    pub async fn stream_backup<W: Write + Send + 'static>(&self, mut sink: W) -> Result<W, StoreError> {
        let streamed = self.0.store.read(move |read| {
            read.stream(&mut sink)?;
            Ok(sink)
        });
        streamed.await
    }

    /// Verifies the whole store. The service keeps running.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the problem found.
    pub async fn verify(&self) -> Result<StoreCounts, StoreError> {
        self.0.store.read(|read| read.verify()).await
    }
}
