//! What an operator asks of the store while the coordinator runs. No key may make these calls.

use std::path::PathBuf;

use super::Service;
pub use crate::storage::{Exported, StoreError, Whole};

impl Service {
    /// Writes a snapshot to a new file, and proves it by reading it back. Everything goes on meanwhile.
    ///
    /// # Errors
    /// Where the file is there already or can't be written, or the store can't be read.
    pub async fn backup(&self, file: PathBuf) -> Result<Exported, StoreError> {
        self.0.store.read(move |read| read.export(&file)).await
    }

    /// Reads the whole store and proves it. Everything goes on meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with what was found.
    pub async fn verify(&self) -> Result<Whole, StoreError> {
        self.0.store.read(|read| read.verify()).await
    }
}
