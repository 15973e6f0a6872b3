//! Verification of a running coordinator's store, and the views of its result and of a backup.

use std::path::Path;

use serde_json::{Value, json};

use super::Fault;
use crate::service::Service;
use crate::service::care::{StoreError, Whole};

pub(super) async fn verify(service: &Service) -> Result<Value, Fault> {
    Ok(whole_view(&service.verify().await.map_err(fault)?))
}

/// Converts a storage error. Damage found by a running coordinator is repaired once it is stopped.
pub(super) fn fault(error: StoreError) -> Fault {
    match error {
        StoreError::Damaged(_) => Fault::new(
            "damaged",
            format!(
                "{error}\nStop the coordinator, then restore the newest good snapshot: parallax restore newest"
            ),
        ),
        other => Fault::new("internal", other.to_string()),
    }
}

/// Builds the view of a backup.
pub fn backup_view(file: &Path, bytes: u64, whole: &Whole) -> Value {
    let mut view = whole_view(whole);
    view["file"] = json!(file.display().to_string());
    view["bytes"] = json!(bytes);
    view
}

/// Builds the view of a verified store or snapshot.
pub fn whole_view(whole: &Whole) -> Value {
    json!({
        "healthy": true,
        "records": whole.records,
        "documents": whole.documents,
        "events": whole.events,
        "readings": whole.readings,
        "commits": whole.commits,
    })
}
