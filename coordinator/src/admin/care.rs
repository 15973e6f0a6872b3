//! Backup and verification of a running coordinator's store, and how they are told.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Fault;
use crate::service::Service;
use crate::service::care::{Exported, StoreError, Whole};

pub(super) async fn backup(service: &Service, file: &str) -> Result<Value, Fault> {
    let file = PathBuf::from(file);
    if !file.is_absolute() {
        return Err(Fault::new("invalid", "file must be an absolute path"));
    }
    let exported = service.backup(file.clone()).await.map_err(fault)?;
    Ok(exported_view(&file, &exported))
}

pub(super) async fn verify(service: &Service) -> Result<Value, Fault> {
    Ok(whole_view(&service.verify().await.map_err(fault)?))
}

/// Damage that a running coordinator finds is put right once it is stopped.
fn fault(error: StoreError) -> Fault {
    match error {
        StoreError::Damaged(_) => Fault::new(
            "damaged",
            format!(
                "{error}\nStop the coordinator, then put the newest good snapshot back: parallax restore newest"
            ),
        ),
        other => Fault::new("internal", other.to_string()),
    }
}

/// A backup that was made.
pub fn exported_view(file: &Path, exported: &Exported) -> Value {
    let mut view = whole_view(&exported.whole);
    view["file"] = json!(file.display().to_string());
    view["bytes"] = json!(exported.bytes);
    view
}

/// A store or snapshot that was found whole.
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
