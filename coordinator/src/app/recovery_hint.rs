//! Remedies for a store that can't be served: the problem found, and the command that helps.

use std::path::Path;

use super::{AppError, STORE};
use crate::console;
use crate::storage::StoreError;
use crate::storage::snapshots::SnapshotFolder;

/// Adds the remedy to an error that has one; returns other errors unchanged. Blocks, since it verifies snapshots.
pub(super) fn add_hint(data: &Path, error: AppError) -> AppError {
    let (found, remedy) = match &error {
        AppError::Store(StoreError::Denied { user, .. }) => (error.to_string(), chown_hint(data, *user)),
        AppError::Store(StoreError::Damaged(_)) => (error.to_string(), restore_hint(data)),
        AppError::History(history) if history.is_damage() => (error.to_string(), restore_hint(data)),
        _ => return error,
    };
    AppError::NeedsRecovery { found, remedy }
}

fn chown_hint(data: &Path, user: u32) -> String {
    format!(
        "Run this as the owner of the folder, or change its owner to this user with:\n  chown -R {user} {}",
        shell_path(data)
    )
}

fn restore_hint(data: &Path) -> String {
    let shelf = SnapshotFolder::of(&data.join(STORE));
    let mut bad = String::new();
    let newest = shelf.newest_valid(|snapshot, error| {
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

/// An absolute path, quoted for a shell.
fn shell_path(path: &Path) -> String {
    console::shell_quoted(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}
