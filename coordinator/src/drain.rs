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
    pub(crate) helpers: Vec<JoinHandle<()>>,
    pub(crate) deliverer: JoinHandle<()>,
    pub(crate) mesh: Arc<MeshHandle>,
    pub(crate) stop_driver: watch::Sender<bool>,
    pub(crate) driver: JoinHandle<()>,
    pub(crate) reactions: Vec<JoinHandle<()>>,
    pub(crate) store: Store,
    pub(crate) ready: watch::Sender<bool>,
}

impl Drain {
    /// Waits for the word to stop, or for a part that ends by itself, and then stops everything.
    pub(crate) async fn run(mut self) -> Result<(), AppError> {
        let died = tokio::select! {
            _ = self.shutdown.wait_for(|stop| *stop) => None,
            _ = &mut self.driver => Some("the driver"),
            _ = select_all(&mut self.doors) => Some("a door"),
            _ = &mut self.deliverer => Some("the deliverer"),
            _ = select_all(&mut self.reactions) => Some("a reader of the journal"),
        };
        self.ready.send_replace(false);
        tracing::info!("stopping");
        self.stop_doors.send_replace(true);
        for mut door in self.doors {
            if !door.is_finished() && timeout(DOORS, &mut door).await.is_err() {
                door.abort();
            }
        }
        for helper in self.helpers {
            helper.abort();
            // Its share of the mesh is let go once it has ended; that it was aborted is no news.
            let _ = helper.await;
        }
        if let Some(mesh) = Arc::into_inner(self.mesh) {
            mesh.stop().await;
        }
        self.stop_driver.send_replace(true);
        if !self.driver.is_finished() && timeout(DRIVER, &mut self.driver).await.is_err() {
            tracing::warn!("the driver could not commit everything in time; agents will send it again");
            self.driver.abort();
        }
        for reaction in self.reactions {
            // What it has not read of the journal yet, it reads after the next start.
            if !reaction.is_finished() {
                reaction.abort();
                let _ = reaction.await;
            }
        }
        // It was told to stop with the doors.
        if !self.deliverer.is_finished() && timeout(DELIVERER, &mut self.deliverer).await.is_err() {
            self.deliverer.abort();
        }
        self.store.close().await;
        died.map_or(Ok(()), |part| Err(AppError::Died(part)))
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Drain")
    }
}
