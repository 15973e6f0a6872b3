//! What goes on beside the river: all rooms that time or a change somewhere else sets to work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parallax_core::quarantine::Suspects;
use tokio::sync::watch;

use super::{care, notices};
use crate::calendar::Calendar;
use crate::clock::Clock;
use crate::config::Config;
use crate::domains;
use crate::history::{self, History};
use crate::members::Roll;
use crate::mesh::MeshHandle;
use crate::publish::Boards;
use crate::service::Service;
use crate::storage::Store;
use crate::supervise::Rooms;

/// Pause of the history's upkeep while nothing is due.
const UPKEEP: Duration = Duration::from_secs(1);
/// Pause between two looks for events that are no longer kept.
const TRIM: Duration = Duration::from_secs(60);

/// What these rooms need.
pub(super) struct Parts {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) config: Config,
    pub(super) service: Service,
    pub(super) members: Roll,
    pub(super) mesh: Arc<MeshHandle>,
    pub(super) suspects: watch::Receiver<Arc<Suspects>>,
    /// Caught up with.
    pub(super) calendar: Calendar,
    pub(super) history: Arc<History>,
    pub(super) boards: Boards,
    pub(super) looked_at: notices::Sources,
}

/// Has all of them stand.
pub(super) fn stand(rooms: &mut Rooms, parts: Parts) {
    let Parts { store, clock, config, service, members, mesh, .. } = parts;
    let (of, time) = (store.clone(), clock.clone());
    let mut caught_up = Some(parts.calendar);
    rooms.keep("calendar", move || Calendar::keep(caught_up.take(), of.clone(), time.clone()));
    let of = service.clone();
    rooms.keep("clearing", move || of.clone().keep_clearing());
    let of = service.clone();
    rooms.keep("domains", move || domains::keep(of.clone()));
    let of = service.clone();
    rooms.keep("incident limits", move || of.clone().keep_incident_limits());
    rooms.keep("subscriptions", move || service.clone().keep_subscribers());
    let of = parts.looked_at;
    rooms.keep("lookout", move || notices::watch(of.clone()));
    let of = parts.boards;
    rooms.keep("boards", move || of.clone().follow());
    let (of, suspects) = (Arc::clone(&mesh), parts.suspects);
    rooms.keep("quarantine", move || follow_quarantine(Arc::clone(&of), suspects.clone()));
    let of = members.clone();
    rooms.keep("invitations", move || of.clone().keep_invitations());
    rooms.keep("members", move || follow_members(Arc::clone(&mesh), members.clone()));
    let (kept, of, time) = (parts.history, store.clone(), clock.clone());
    rooms.keep("history", move || keep_history(Arc::clone(&kept), of.clone(), time.clone()));
    rooms.keep("snapshots", move || care::keep(store.clone(), config.clone(), clock.clone()));
}

/// Tells the mesh who is in quarantine, so that it deals out shadow rounds.
async fn follow_quarantine(mesh: Arc<MeshHandle>, mut suspects: watch::Receiver<Arc<Suspects>>) {
    loop {
        let now = Arc::clone(&suspects.borrow_and_update());
        mesh.set_suspects(&now);
        if suspects.changed().await.is_err() {
            // The driver is gone, and whoever watches it says so.
            std::future::pending::<()>().await;
        }
    }
}

/// Makes live connections follow what an operator did to the members.
async fn follow_members(mesh: Arc<MeshHandle>, members: Roll) {
    loop {
        members.changed().await;
        mesh.refresh();
    }
}

/// Seals, rolls up and trims, in slices beside other work.
async fn keep_history(history: Arc<History>, store: Store, clock: Clock) {
    let windows = history::stored_windows();
    let mut trimmed: Option<Instant> = None;
    loop {
        if trimmed.is_none_or(|at| at.elapsed() >= TRIM) {
            match history::trim_events(&store, clock.now()).await {
                Ok(true) => {}
                Ok(false) => trimmed = Some(Instant::now()),
                Err(error) => {
                    error.log_retry("old events can't be dropped");
                    trimmed = Some(Instant::now());
                }
            }
        }
        match history.upkeep(&store, clock.now(), &windows).await {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(UPKEEP).await,
            Err(error) => {
                error.log_retry("the history can't be kept up");
                tokio::time::sleep(UPKEEP).await;
            }
        }
    }
}
