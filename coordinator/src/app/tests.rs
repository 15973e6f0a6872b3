//! A whole coordinator in which one background task crashes.

use std::path::Path;
use std::time::Duration;

use parallax_runtime::supervisor::TaskFailure;
use parallax_store::{Batch, StoreError};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;

/// Maximum time of a start, and of a stop.
const LIMIT: Duration = Duration::from_secs(60);

async fn started(data: &Path) -> (RunningCoordinator, watch::Sender<bool>) {
    // As in the binary's main; the second test of a process finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = CoordinatorConfig { data: data.join("data"), ..CoordinatorConfig::default() };
    config.http.listen = "127.0.0.1:0".parse().unwrap();
    config.mesh.listen = "127.0.0.1:0".parse().unwrap();
    let (stop, shutdown) = watch::channel(false);
    let running = timeout(LIMIT, start(config, shutdown)).await.unwrap().unwrap();
    (running, stop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_task_stops_the_coordinator_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, _stop) = started(folder.path()).await;
    let ready = running.shutdown.ready.subscribe();
    let store = running.shutdown.store.clone();
    assert!(*ready.borrow());
    running.shutdown.background_tasks.spawn_once("guest", async { panic!("on purpose") });
    let ended = timeout(LIMIT, running.wait()).await.unwrap();
    assert!(matches!(ended, Err(AppError::TaskFailed(TaskFailure::Crashed { task: "guest" }))), "{ended:?}");
    assert!(!*ready.borrow());
    assert_eq!(store.commit(Batch::new()).await, Err(StoreError::Closed), "the store was closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_task_is_restarted_and_stopped_with_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, stop) = started(folder.path()).await;
    let (start_sender, mut starts) = mpsc::unbounded_channel();
    let mut is_first = true;
    running.shutdown.background_tasks.spawn_restarting("guest", move || {
        let (was_first, start_sender) = (std::mem::take(&mut is_first), start_sender.clone());
        async move {
            assert!(!was_first, "on purpose");
            start_sender.send(()).unwrap();
            std::future::pending().await
        }
    });
    timeout(LIMIT, starts.recv()).await.unwrap().unwrap();
    assert!(running.shutdown.supervisor.crash_counts().contains(&("guest", 1)));
    stop.send_replace(true);
    timeout(LIMIT, running.wait()).await.unwrap().unwrap();
    assert_eq!(starts.recv().await, None, "it was dropped");
}
