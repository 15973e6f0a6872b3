//! `parallax serve`: the coordinator alone, for production.

use std::path::PathBuf;
use std::sync::Arc;

use parallax_core::watch::Confirmation;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::{CliError, service_manager};
use crate::app;
use crate::config::Config;
use crate::out;
use crate::up::ready::{self, Ready};

/// Runs until shutdown.
pub(super) async fn run(
    config: Config,
    ready_file: Option<PathBuf>,
    shutdown: watch::Receiver<bool>,
) -> Result<(), CliError> {
    let (data, confirmation) = (config.data.clone(), config.confirmation);
    let (exposed, stopping) = (config.exposed_admin(), shutdown.clone());
    let starting = service_manager::starting();
    // SIGHUP reloads certificate files (`tls`); without any, it must not end the process.
    let _reload = signal(SignalKind::hangup())?;
    let running = app::start(config, shutdown).await?;
    drop(starting);
    if let Some(warning) = exposed {
        tracing::warn!("{warning}");
    }
    if confirmation == Confirmation::Repeat {
        tracing::warn!(
            "confirmation = \"repeat\": while the mesh has only one network, that network alone confirms outages"
        );
    }
    out::notice(&format!("API and pages: {}", running.base_url));
    if let Some(address) = running.tls_addr {
        out::notice(&format!("TLS: {address}"));
    }
    out::notice(&format!("Mesh: {} (UDP)", running.mesh_addr));
    if let Some(address) = running.admin_addr {
        out::notice(&format!("Health: http://{address}/readyz"));
    }
    if running.service.accounts().await.is_ok_and(|accounts| accounts.is_empty()) {
        let data = data.display();
        out::notice(&format!(
            "No account yet: {} account create --email YOU@EXAMPLE.COM --data {data}",
            out::program()
        ));
    }
    if let Some(path) = ready_file {
        ready::write(&path, &Ready::of(&running, None, None))?;
    }
    let status = format!("Serving {}", running.base_url);
    service_manager::serving(&status, Arc::clone(&running.flow), stopping);
    Ok(running.wait().await?)
}
