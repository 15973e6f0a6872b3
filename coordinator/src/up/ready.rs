//! The ready file: how scripts learn that everything serves, and where.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use parallax_core::page::Page;
use serde::Serialize;

use crate::app::Running;
use crate::service::token::KeyText;

/// What the file says.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_debug_implementations, reason = "it holds a key")]
pub struct Ready {
    /// Address of the API and the pages.
    pub base_url: String,
    /// The first key, at the start that made it.
    pub api_key: Option<String>,
    /// Id of the first page.
    pub page_id: Option<String>,
    /// Where that page is seen.
    pub page_url: Option<String>,
    /// Where agents connect, over UDP.
    pub mesh: SocketAddr,
    /// The process.
    pub pid: u32,
}

impl Ready {
    /// What there is to say of a running coordinator.
    pub fn of(running: &Running, key: Option<&KeyText>, page: Option<&Page>) -> Self {
        Self {
            base_url: running.base_url.clone(),
            api_key: key.map(|key| key.reveal().to_owned()),
            page_id: page.map(|page| page.id.to_string()),
            page_url: page.map(|page| running.service.page_url(page)),
            mesh: running.mesh_addr,
            pid: std::process::id(),
        }
    }
}

/// Writes the file whole: under another name first, then renamed. Mode 0600, since it may hold a key.
///
/// # Errors
/// Where it can't be written.
pub fn write(path: &Path, ready: &Ready) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = Path::new(&fresh);
    match std::fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) | Ok(()) => {}
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh)?;
    file.write_all(&serde_json::to_vec_pretty(ready)?)?;
    file.sync_all()?;
    std::fs::rename(fresh, path)
}
