//! State of the demo between starts, in `DIR/demo.json`: the port and monitor of each target.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parallax_certs::files::{read_secret, write_secret};
use parallax_core::id::MonitorId;
use serde::{Deserialize, Serialize};

use crate::up::UpError;

/// All stored targets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DemoState(BTreeMap<String, DemoTarget>);

/// A target and its monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DemoTarget {
    /// Port of the target, if the demo serves it.
    pub(super) port: Option<u16>,
    /// Its monitor.
    pub(super) monitor: MonitorId,
}

/// An entry of the file.
#[derive(Debug, Serialize, Deserialize)]
struct StoredTarget {
    port: Option<u16>,
    monitor: String,
}

impl DemoState {
    /// Returns true if a start has written the file.
    pub(super) fn exists(data: &Path) -> bool {
        path(data).exists()
    }

    /// Reads the file; without one, nothing is stored.
    pub(super) fn read(data: &Path) -> Result<Self, UpError> {
        let path = path(data);
        let fault = |reason: String| UpError::Memory { path: path.display().to_string(), reason };
        let Some(text) = read_secret(&path).map_err(|error| fault(error.to_string()))? else {
            return Ok(Self::default());
        };
        let entries: BTreeMap<String, StoredTarget> =
            serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
        let targets = entries.into_iter().map(|(key, entry)| {
            let monitor = entry.monitor.parse().map_err(|_| fault(format!("{key}: not a monitor's id")))?;
            Ok((key, DemoTarget { port: entry.port, monitor }))
        });
        targets.collect::<Result<_, UpError>>().map(Self)
    }

    /// Returns the entry of a target.
    pub(super) fn get(&self, key: &str) -> Option<DemoTarget> {
        self.0.get(key).copied()
    }

    /// Stores a target.
    pub(super) fn insert(&mut self, key: &str, port: Option<u16>, monitor: MonitorId) {
        self.0.insert(key.to_owned(), DemoTarget { port, monitor });
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, data: &Path) -> Result<(), UpError> {
        let path = path(data);
        let fault = |reason: String| UpError::Memory { path: path.display().to_string(), reason };
        let entry = |target: &DemoTarget| StoredTarget { port: target.port, monitor: target.monitor.to_string() };
        let entries: BTreeMap<&str, StoredTarget> =
            self.0.iter().map(|(key, target)| (key.as_str(), entry(target))).collect();
        let text = serde_json::to_string_pretty(&entries).map_err(|error| fault(error.to_string()))?;
        write_secret(&path, &text).map_err(|error| fault(error.to_string()))
    }
}

fn path(data: &Path) -> PathBuf {
    data.join("demo.json")
}
