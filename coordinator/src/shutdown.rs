//! Graceful shutdown in order: listeners and deliveries, mesh, driver, journal consumers, store. Also watches all parts
//! while they run.
//!
//! Stop signals are `watch` channels. Their receivers also stop when the sender is dropped, so a start that fails
//! halfway leaves nothing running. A `CancellationToken` with a drop guard would do the same, but needs another
//! dependency.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use parallax_mesh::MeshHandle;
use parallax_runtime::supervisor::{Supervisor, TaskGroup};
use parallax_store::Store;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::app::AppError;

/// Time that listeners get to finish requests in progress.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the driver gets to commit what it holds.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that the deliverer gets to record what it has sent.
const DELIVERER_TIMEOUT: Duration = Duration::from_secs(6);

/// Everything that runs, with the channels that stop it.
pub(crate) struct ShutdownSequence {
    pub(crate) shutdown: watch::Receiver<bool>,
    pub(crate) stop_listeners: watch::Sender<bool>,
    pub(crate) listeners: Vec<JoinHandle<()>>,
    pub(crate) supervisor: Supervisor,
    pub(crate) background_tasks: TaskGroup,
    pub(crate) deliverer: JoinHandle<()>,
    pub(crate) mesh: Arc<MeshHandle>,
    pub(crate) stop_driver: watch::Sender<bool>,
    pub(crate) driver: JoinHandle<()>,
    pub(crate) consumers: TaskGroup,
    pub(crate) store: Store,
    pub(crate) ready: watch::Sender<bool>,
}

impl ShutdownSequence {
    /// Waits for the shutdown signal or for a part that ends unexpectedly, then stops everything.
    pub(crate) async fn run(mut self) -> Result<(), AppError> {
        let died = tokio::select! {
            biased;
            _ = self.shutdown.wait_for(|stop| *stop) => None,
            // Polled first, since other parts end when the driver drops its channels.
            _ = &mut self.driver => Some(AppError::PartEnded("the driver")),
            _ = select_all(&mut self.listeners) => Some(AppError::PartEnded("a listener")),
            _ = &mut self.deliverer => Some(AppError::PartEnded("the deliverer")),
            lost = self.supervisor.first_failure() => Some(lost.into()),
        };
        self.ready.send_replace(false);
        tracing::info!("stopping");
        self.stop_listeners.send_replace(true);
        for listener in self.listeners {
            finish_or_abort(listener, LISTENER_TIMEOUT).await;
        }
        // They hold references to the mesh, which are released with them.
        self.background_tasks.stop().await;
        if let Some(mesh) = Arc::into_inner(self.mesh) {
            mesh.stop().await;
        }
        self.stop_driver.send_replace(true);
        if !finish_or_abort(self.driver, DRIVER_TIMEOUT).await {
            tracing::warn!("the driver could not commit everything in time; agents will resend the rest");
        }
        // They resume from their journal cursors at the next start.
        self.consumers.stop().await;
        // It received its stop signal together with the listeners.
        finish_or_abort(self.deliverer, DELIVERER_TIMEOUT).await;
        self.store.close().await;
        died.map_or(Ok(()), Err)
    }
}

/// Waits until a task has finished, and aborts it after a time limit. Returns false if it was aborted.
async fn finish_or_abort(mut task: JoinHandle<()>, limit: Duration) -> bool {
    // A task that has already been awaited must not be polled again.
    if task.is_finished() || timeout(limit, &mut task).await.is_ok() {
        return true;
    }
    task.abort();
    false
}

impl fmt::Debug for ShutdownSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShutdownSequence")
    }
}
