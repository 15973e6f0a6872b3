//! `parallax serve`: the coordinator alone, for production.

use std::path::PathBuf;
use std::sync::Arc;

use parallax_core::effective::ConfirmationPolicy;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::{CliError, service_manager};
use crate::app;
use crate::config::CoordinatorConfig;
use crate::console;
use crate::up::ready_file::{self, ReadyInfo};

/// Runs until shutdown.
pub(super) async fn run(
    config: CoordinatorConfig,
    ready_file: Option<PathBuf>,
    shutdown: watch::Receiver<bool>,
) -> Result<(), CliError> {
    let (data, confirmation) = (config.data.clone(), config.confirmation);
    let (exposed, stopping) = (config.admin_exposure_warning(), shutdown.clone());
    let starting = service_manager::notify_starting();
    // SIGHUP reloads certificate files (`tls`); without any, it must not end the process.
    let _reload = signal(SignalKind::hangup())?;
    let running = app::start(config, shutdown).await?;
    drop(starting);
    if let Some(warning) = exposed {
        tracing::warn!("{warning}");
    }
    if confirmation == ConfirmationPolicy::Repeat {
        tracing::warn!(
            "confirmation = \"repeat\": while the mesh has only one network, that network alone confirms outages"
        );
    }
    console::info(&format!("API and pages: {}", running.base_url));
    if let Some(address) = running.tls_addr {
        console::info(&format!("TLS: {address}"));
    }
    console::info(&format!("Mesh: {} (UDP)", running.mesh_addr));
    if let Some(address) = running.admin_addr {
        console::info(&format!("Health: http://{address}/readyz"));
    }
    if running.service.accounts.list().await.is_ok_and(|accounts| accounts.is_empty()) {
        let data = data.display();
        console::info(&format!(
            "No account yet: {} account create --email YOU@EXAMPLE.COM --data {data}",
            console::program_path()
        ));
    }
    if let Some(path) = ready_file {
        ready_file::write(&path, &ReadyInfo::of(&running, None, None, None))?;
    }
    let status = format!("Serving {}", running.base_url);
    service_manager::notify_ready(&status, Arc::clone(&running.driver_counters), stopping);
    Ok(running.wait().await?)
}
