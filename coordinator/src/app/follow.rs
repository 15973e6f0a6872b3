//! What the mesh is told of others' changes: quarantine, and what an operator did to the members.

use std::collections::BTreeSet;
use std::sync::Arc;

use parallax_core::place::PlaceNo;
use tokio::sync::watch;

use crate::members::Roll;
use crate::mesh::MeshHandle;

/// Tells the mesh who is in quarantine, so that it deals out shadow rounds.
pub(super) async fn quarantine(
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
pub(super) async fn members(mesh: Arc<MeshHandle>, members: Roll) {
    loop {
        members.changed().await;
        mesh.refresh();
    }
}
