//! Remedies for a store that can't be served: the problem found, and the command that helps.

use std::path::{Path, PathBuf};

use parallax_store::StoreError;
use parallax_store::snapshots::{SnapshotFolder, SnapshotSearch};

use super::options::ReadableKeys;
use super::{AppError, STORE};
use crate::config::CoordinatorConfig;
use crate::console;

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
        let (problem, remedy) = match &error {
            AppError::Store(StoreError::Denied { user, .. }) => (error.to_string(), chown_hint(data, *user)),
            AppError::Store(StoreError::Damaged(_)) => (error.to_string(), self.restore_hint()),
            AppError::History(history) if history.is_damage() => (error.to_string(), self.restore_hint()),
            _ => return error,
        };
        AppError::NeedsRecovery { problem, remedy }
    }

    fn restore_hint(&self) -> String {
        let data = &self.data;
        let keys = ReadableKeys::read(self.key_file.as_deref());
        let folder = SnapshotFolder::of(&data.join(STORE));
        let program = console::program_path();
        let restore = |source: &str| format!("{program} restore {source} --data {}", shell_path(data));
        let mut notes: String = keys.warning.iter().map(|warning| format!("\nWarning: {warning}.")).collect();
        let remedy = match folder.newest_usable(keys.keyring.as_ref()) {
            Ok(SnapshotSearch { found: newest, skipped }) => {
                for (snapshot, reason) in &skipped {
                    notes.push_str(&format!("\nSkipped {}: {reason}.", snapshot.path.display()));
                }
                match newest {
                    Some((snapshot, verified)) => {
                        if let Some(records) = &verified.undecodable {
                            notes.push_str(&format!(
                                "\nNo snapshot can be read completely, so restoring one may not solve this. \
                                 The newest intact one has {records}."
                            ));
                        }
                        format!(
                            "The newest usable snapshot is from {} ({} records). Restore it with:\n  {}\n\
                             The current store is kept aside, and agents resend the results they still have.",
                            snapshot.at,
                            verified.counts.records,
                            restore("newest")
                        )
                    }
                    None => format!(
                        "No usable snapshot in {}. Restore a backup with:\n  {}",
                        folder.path().display(),
                        restore("FILE")
                    ),
                }
            }
            Err(error) => format!("The snapshots can't be read: {error}"),
        };
        format!("The coordinator did not start, and nothing was changed.{notes}\n{remedy}")
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
