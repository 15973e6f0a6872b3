//! Remedies for a store that can't be served: the problem found, and the command that helps.

use std::path::{Path, PathBuf};

use parallax_certs::sealing::Keyring;

use super::{AppError, STORE};
use crate::config::CoordinatorConfig;
use crate::console;
use crate::storage::StoreError;
use crate::storage::snapshots::SnapshotFolder;

/// Settings of the installation from which remedies are found.
#[derive(Debug, Clone)]
pub(super) struct RecoveryHint {
    data: PathBuf,
    key_file: Option<PathBuf>,
}

impl RecoveryHint {
    pub(super) fn of(config: &CoordinatorConfig) -> Self {
        Self { data: config.data.clone(), key_file: config.secrets_key_file.clone() }
    }

    /// Adds the remedy to an error that has one; returns other errors unchanged. Blocks, since it verifies snapshots.
    pub(super) fn add(&self, error: AppError) -> AppError {
        let data = &self.data;
        let (found, remedy) = match &error {
            AppError::Store(StoreError::Denied { user, .. }) => (error.to_string(), chown_hint(data, *user)),
            AppError::Store(StoreError::Damaged(_)) => (error.to_string(), self.restore_hint()),
            AppError::History(history) if history.is_damage() => (error.to_string(), self.restore_hint()),
            _ => return error,
        };
        AppError::NeedsRecovery { found, remedy }
    }

    fn restore_hint(&self) -> String {
        let data = &self.data;
        // Without the keys, sealed records are verified by checksum only.
        let keyring = self.key_file.as_deref().and_then(|file| Keyring::read(file).ok());
        let shelf = SnapshotFolder::of(&data.join(STORE));
        let mut bad = String::new();
        let newest = shelf.newest_valid(keyring.as_ref(), |snapshot, error| {
            bad.push_str(&format!("\n{} can't be used: {error}.", snapshot.path.display()));
        });
        let words = match newest {
            Ok(Some((snapshot, whole))) => format!(
                "The newest usable snapshot is from {} ({} records). Restore it with:\n  {} restore newest --data {}\n\
                 The current store is kept aside, and agents resend the results they still have.",
                snapshot.at,
                whole.records,
                console::program_path(),
                shell_path(data)
            ),
            Ok(None) => format!(
                "No usable snapshot in {}. Restore a backup with:\n  {} restore FILE --data {}",
                shelf.path().display(),
                console::program_path(),
                shell_path(data)
            ),
            Err(error) => format!("The snapshots can't be read: {error}"),
        };
        format!("The coordinator did not start, and nothing was changed.{bad}\n{words}")
    }
}

fn chown_hint(data: &Path, user: u32) -> String {
    format!(
        "Run this as the owner of the folder, or change its owner to this user with:\n  chown -R {user} {}",
        shell_path(data)
    )
}

/// An absolute path, quoted for a shell.
fn shell_path(path: &Path) -> String {
    console::shell_quoted(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}
