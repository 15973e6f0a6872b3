//! The ready file, which tells scripts that everything is ready, and the addresses.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use parallax_core::page::Page;
use parallax_service::secret_text::ApiKeyText;
use serde::Serialize;

use crate::app::RunningCoordinator;

/// Content of the ready file.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_debug_implementations, reason = "it holds a key")]
pub(crate) struct ReadyInfo {
    /// Address of the API and the pages.
    pub base_url: String,
    /// The first key, if this start created it.
    pub api_key: Option<String>,
    /// One-time link of the account's owner, while it has none.
    pub set_up_url: Option<String>,
    /// Id of the first page.
    pub page_id: Option<String>,
    /// Public address of the page.
    pub page_url: Option<String>,
    /// UDP address for agents.
    pub mesh: SocketAddr,
    /// Process id.
    pub pid: u32,
}

impl ReadyInfo {
    /// Builds the content for a running coordinator.
    pub(crate) fn of(
        running: &RunningCoordinator,
        key: Option<&ApiKeyText>,
        set_up_url: Option<String>,
        page: Option<&Page>,
    ) -> Self {
        Self {
            base_url: running.base_url.clone(),
            api_key: key.map(|key| key.reveal().to_owned()),
            set_up_url,
            page_id: page.map(|page| page.id.to_string()),
            page_url: page.map(|page| running.service.pages.url(page)),
            mesh: running.mesh_addr,
            pid: std::process::id(),
        }
    }
}

/// Writes the file atomically: to a temporary name, then renamed. Mode 0600, since it may hold a key.
///
/// # Errors
/// The file could not be written.
pub(crate) fn write(path: &Path, ready: &ReadyInfo) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = Path::new(&temporary);
    match std::fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) | Ok(()) => {}
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
    file.write_all(&serde_json::to_vec_pretty(ready)?)?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}
