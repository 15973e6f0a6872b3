//! Remedies for a store that can't be served: the problem found, and the command that helps.

use std::path::Path;

use super::{AppError, STORE};
use crate::out;
use crate::storage::StoreError;
use crate::storage::shelf::Shelf;

/// Adds the remedy to an error that has one; returns other errors unchanged. Blocks, since it verifies snapshots.
pub(super) fn explain(data: &Path, error: AppError) -> AppError {
    let (found, remedy) = match &error {
        AppError::Store(StoreError::Denied { user, .. }) => (error.to_string(), give(data, *user)),
        AppError::Store(StoreError::Damaged(_)) => (error.to_string(), put_back(data)),
        AppError::History(history) if history.is_damage() => (error.to_string(), put_back(data)),
        _ => return error,
    };
    AppError::Rescue { found, remedy }
}

fn give(data: &Path, user: u32) -> String {
    format!(
        "Run this as the owner of the folder, or change its owner to this user with:\n  chown -R {user} {}",
        at(data)
    )
}

fn put_back(data: &Path) -> String {
    let shelf = Shelf::of(&data.join(STORE));
    let mut bad = String::new();
    let newest = shelf.newest_good(|snapshot, error| {
        bad.push_str(&format!("\n{} can't be used: {error}.", snapshot.path.display()));
    });
    let words = match newest {
        Ok(Some((snapshot, whole))) => format!(
            "The newest usable snapshot is from {} ({} records). Restore it with:\n  {} restore newest --data {}\n\
             The current store is kept aside, and agents resend the results they still have.",
            snapshot.at,
            whole.records,
            out::program(),
            at(data)
        ),
        Ok(None) => format!(
            "No usable snapshot in {}. Restore a backup with:\n  {} restore FILE --data {}",
            shelf.folder().display(),
            out::program(),
            at(data)
        ),
        Err(error) => format!("The snapshots can't be read: {error}"),
    };
    format!("The coordinator did not start, and nothing was changed.{bad}\n{words}")
}

/// An absolute path, quoted for a shell.
fn at(path: &Path) -> String {
    out::quoted(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}
