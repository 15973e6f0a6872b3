//! What goes on beside the river: the mesh follows the members and the quarantine, and the history is kept up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parallax_core::place::PlaceNo;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::history::{self, History};
use crate::members::Roll;
use crate::mesh::MeshHandle;
use crate::storage::Store;

/// Pause of the history's upkeep while nothing is due.
const UPKEEP: Duration = Duration::from_secs(1);
/// Pause between two looks for events that are no longer kept.
const TRIM: Duration = Duration::from_secs(60);

/// Tells the mesh who is in quarantine, so that it deals out shadow rounds.
pub(super) async fn follow_quarantine(
    mesh: Arc<MeshHandle>,
    mut quarantine: watch::Receiver<Arc<BTreeSet<PlaceNo>>>,
) {
    let mut before = BTreeSet::new();
    while quarantine.changed().await.is_ok() {
        let now = quarantine.borrow_and_update().as_ref().clone();
        for place in before.symmetric_difference(&now) {
            mesh.set_quarantine(*place, now.contains(place));
        }
        before = now;
    }
}

/// Makes live connections follow what an operator did to the members.
pub(super) async fn follow_members(mesh: Arc<MeshHandle>, members: Roll) {
    loop {
        members.changed().await;
        mesh.refresh();
    }
}

/// Seals, rolls up and trims, in slices beside other work.
pub(super) async fn keep_history(history: Arc<History>, store: Store, clock: Clock) {
    let windows = history::stored_windows();
    let mut trimmed: Option<Instant> = None;
    loop {
        if trimmed.is_none_or(|at| at.elapsed() >= TRIM) {
            match history::trim_events(&store, clock.now()).await {
                Ok(true) => {}
                Ok(false) => trimmed = Some(Instant::now()),
                Err(error) => {
                    tracing::error!(%error, "old events can't be dropped; trying again");
                    trimmed = Some(Instant::now());
                }
            }
        }
        match history.upkeep(&store, clock.now(), &windows).await {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(UPKEEP).await,
            Err(error) => {
                tracing::error!(%error, "the history can't be kept up; trying again");
                tokio::time::sleep(UPKEEP).await;
            }
        }
    }
}
