//! Verification of a running coordinator's store, and the views of its result and of a backup.

use std::path::Path;

use parallax_service::Services;
use parallax_service::store_admin::{StoreCounts, StoreError};
use serde_json::{Value, json};

use super::CommandError;

pub(super) async fn verify(service: &Services) -> Result<Value, CommandError> {
    Ok(verification_view(&service.store.verify().await.map_err(store_error)?))
}

/// Converts a storage error. Damage found by a running coordinator is repaired once it is stopped.
pub(super) fn store_error(error: StoreError) -> CommandError {
    match error {
        StoreError::Damaged(_) => CommandError::new(
            "damaged",
            format!("{error}\nStop the coordinator, then restore the newest good snapshot: parallax restore newest"),
        ),
        other => CommandError::new("internal", other.to_string()),
    }
}

/// Builds the view of a backup.
pub(crate) fn backup_view(file: &Path, bytes: u64, counts: &StoreCounts) -> Value {
    let mut view = verification_view(counts);
    view["file"] = json!(file.display().to_string());
    view["bytes"] = json!(bytes);
    view
}

/// Builds the view of a verified store or snapshot.
pub(crate) fn verification_view(counts: &StoreCounts) -> Value {
    json!({
        "healthy": true,
        "records": counts.records,
        "documents": counts.documents,
        "events": counts.events,
        "readings": counts.readings,
        "commits": counts.commits,
    })
}
