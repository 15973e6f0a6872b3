//! The order of stopping: doors and deliveries, mesh, flow, reactions, store. Also what is watched while everything runs.

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

/// How long the doors may take to end what they are at.
const DOORS: Duration = Duration::from_secs(10);
/// How long the driver may take to commit what it has.
const DRIVER: Duration = Duration::from_secs(10);

/// How long the deliverer may take to note what it has sent.
const DELIVERER: Duration = Duration::from_secs(6);

/// Everything that runs, and how it is told to stop.
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
    /// Waits for the word to stop, or for a part that ends by itself, and then stops everything.
    pub(crate) async fn run(mut self) -> Result<(), AppError> {
        let died = tokio::select! {
            biased;
            _ = self.shutdown.wait_for(|stop| *stop) => None,
            // First, since others end with what it holds.
            _ = &mut self.driver => Some(AppError::Died("the driver")),
            _ = select_all(&mut self.doors) => Some(AppError::Died("a door")),
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
        // Their share of the mesh is let go with them.
        self.helpers.stop().await;
        if let Some(mesh) = Arc::into_inner(self.mesh) {
            mesh.stop().await;
        }
        self.stop_driver.send_replace(true);
        if !self.driver.is_finished() && timeout(DRIVER, &mut self.driver).await.is_err() {
            tracing::warn!("the driver could not commit everything in time; agents will send it again");
            self.driver.abort();
        }
        // What they have not read of the journal yet, they read after the next start.
        self.reactions.stop().await;
        // It was told to stop with the doors.
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
