//! What is said when the store can't be served from: what was found, and the command that helps.

use std::path::Path;

use super::{AppError, STORE};
use crate::out;
use crate::storage::StoreError;
use crate::storage::shelf::Shelf;

/// Puts the way out beside an error that has one; others stay as they are. Blocks: snapshots are read whole.
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
        "Run this as the user that it belongs to, or give the folder to this one with:\n  chown -R {user} {}",
        at(data)
    )
}

fn put_back(data: &Path) -> String {
    let shelf = Shelf::of(&data.join(STORE));
    let mut bad = String::new();
    let newest = shelf.newest_good(|snapshot, error| {
        bad.push_str(&format!("\n{} is of no use: {error}.", snapshot.path.display()));
    });
    let words = match newest {
        Ok(Some((snapshot, whole))) => format!(
            "The newest good snapshot is of {} ({} records). Put it back with:\n  {} restore newest --data {}\n\
             What is there now is kept beside it, and agents send again what they still have.",
            snapshot.at,
            whole.records,
            out::program(),
            at(data)
        ),
        Ok(None) => format!(
            "No good snapshot is in {}. A backup is put back with:\n  {} restore FILE --data {}",
            shelf.folder().display(),
            out::program(),
            at(data)
        ),
        Err(error) => format!("The snapshots can't be looked at: {error}"),
    };
    format!("Nothing is served, and nothing was changed.{bad}\n{words}")
}

/// A path as a shell takes it, wherever it is.
fn at(path: &Path) -> String {
    out::quoted(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}
