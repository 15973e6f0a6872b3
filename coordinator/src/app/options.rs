//! Options of the disk store, built from the configuration.

use std::path::Path;
use std::sync::Arc;

use parallax_certs::sealing::Keyring;
use parallax_store::disk::DiskOptions;

use super::{AppError, slot_epoch};
use crate::config::CoordinatorConfig;

/// Need of a command for the keys: to read records, or only to copy them as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyNeed {
    Read,
    NotNeeded,
}

/// The keys for secrets as far as they can be read: snapshots are also verified without.
#[derive(Debug, Default)]
pub(super) struct ReadableKeys {
    /// The keys; `None` if no key file is configured or it can't be read.
    pub(super) keyring: Option<Keyring>,
    /// The reason if a configured key file can't be read.
    pub(super) warning: Option<String>,
}

impl ReadableKeys {
    /// Reads the configured key file, if there is one.
    pub(super) fn read(key_file: Option<&Path>) -> Self {
        match key_file.map(Keyring::read).transpose() {
            Ok(keyring) => Self { keyring, warning: None },
            Err(error) => Self {
                keyring: None,
                warning: Some(format!(
                    "{}; records encrypted with its keys are verified by checksum only",
                    AppError::SecretsKey(error.to_string())
                )),
            },
        }
    }
}

/// Returns the store's options; with the keys for secrets if they are needed and a key file is configured.
pub(super) fn store_options(config: &CoordinatorConfig, keys: KeyNeed) -> Result<DiskOptions, AppError> {
    let key_file = config.secrets_key_file.as_deref().filter(|_| keys == KeyNeed::Read);
    let keyring = key_file.map(Keyring::read).transpose();
    let keyring = keyring.map_err(|error| AppError::SecretsKey(error.to_string()))?.map(Arc::new);
    let beside = parallax_certs::rotation::FILES.map(str::to_owned).to_vec();
    // After a restore a slot may refer to another monitor: the numbering needs a new identity.
    let reset = vec![slot_epoch::CURSOR.to_owned()];
    Ok(DiskOptions {
        cache: config.store.cache_bytes,
        adjacent_files: beside,
        reset_cursors: reset,
        keyring,
        ..DiskOptions::default()
    })
}
