//! Graceful shutdown in order: listeners and deliveries, mesh, driver, journal consumers, store. Also watches all
//! parts while they run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::app::AppError;
use crate::mesh::MeshHandle;
use crate::storage::Store;
use crate::supervise::{Rooms, Watch};

/// Time that listeners get to finish requests in progress.
const DOORS: Duration = Duration::from_secs(10);
/// Time that the driver gets to commit what it holds.
const DRIVER: Duration = Duration::from_secs(10);

/// Time that the deliverer gets to record what it has sent.
const DELIVERER: Duration = Duration::from_secs(6);

/// Everything that runs, with the channels that stop it.
pub(crate) struct Drain {
    pub(crate) shutdown: watch::Receiver<bool>,
    pub(crate) stop_doors: watch::Sender<bool>,
    pub(crate) doors: Vec<JoinHandle<()>>,
    pub(crate) watch: Watch,
    pub(crate) helpers: Rooms,
    pub(crate) deliverer: JoinHandle<()>,
    pub(crate) mesh: Arc<MeshHandle>,
    pub(crate) stop_driver: watch::Sender<bool>,
    pub(crate) driver: JoinHandle<()>,
    pub(crate) reactions: Rooms,
    pub(crate) store: Store,
    pub(crate) ready: watch::Sender<bool>,
}

impl Drain {
    /// Waits for the shutdown signal or for a part that ends unexpectedly, then stops everything.
    pub(crate) async fn run(mut self) -> Result<(), AppError> {
        let died = tokio::select! {
            biased;
            _ = self.shutdown.wait_for(|stop| *stop) => None,
            // Polled first, since other parts end when the driver drops its channels.
            _ = &mut self.driver => Some(AppError::Died("the driver")),
            _ = select_all(&mut self.doors) => Some(AppError::Died("a listener")),
            _ = &mut self.deliverer => Some(AppError::Died("the deliverer")),
            lost = self.watch.lost() => Some(lost.into()),
        };
        self.ready.send_replace(false);
        tracing::info!("stopping");
        self.stop_doors.send_replace(true);
        for mut door in self.doors {
            if !door.is_finished() && timeout(DOORS, &mut door).await.is_err() {
                door.abort();
            }
        }
        // They hold references to the mesh, which are released with them.
        self.helpers.stop().await;
        if let Some(mesh) = Arc::into_inner(self.mesh) {
            mesh.stop().await;
        }
        self.stop_driver.send_replace(true);
        if !self.driver.is_finished() && timeout(DRIVER, &mut self.driver).await.is_err() {
            tracing::warn!("the driver could not commit everything in time; agents will resend the rest");
            self.driver.abort();
        }
        // They resume from their journal cursors at the next start.
        self.reactions.stop().await;
        // It received its stop signal together with the listeners.
        if !self.deliverer.is_finished() && timeout(DELIVERER, &mut self.deliverer).await.is_err() {
            self.deliverer.abort();
        }
        self.store.close().await;
        died.map_or(Ok(()), Err)
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Drain")
    }
}
