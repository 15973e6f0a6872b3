//! Store operations for the operator of a running coordinator. Not accessible with an API key.

use std::io::Write;
use std::sync::Arc;

use super::context::ServiceContext;

pub use parallax_store::{StoreCounts, StoreError};

/// Reads the whole store, for the operator of a running coordinator. No API key reaches it.
#[derive(Debug)]
pub struct StoreService {
    context: Arc<ServiceContext>,
}

impl StoreService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self { context: Arc::clone(context) }
    }

    /// Streams a backup to `sink` from a blocking thread, and returns the sink. The service keeps running.
    ///
    /// # Errors
    /// Fails if the sink can't be written or the store can't be read.
    pub async fn stream_backup<W: Write + Send + 'static>(&self, mut sink: W) -> Result<W, StoreError> {
        let streamed = self.context.store().read(move |read| {
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
        self.context.store().read(|read| read.verify()).await
    }
}
