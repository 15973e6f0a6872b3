//! Background tasks next to the pipeline, driven by time or by changes elsewhere.

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

/// Interval of the history's maintenance while nothing is due.
const UPKEEP: Duration = Duration::from_secs(1);
/// Interval at which expired events are trimmed.
const TRIM: Duration = Duration::from_secs(60);

/// Dependencies of the background tasks.
pub(super) struct Parts {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) config: Config,
    pub(super) service: Service,
    pub(super) members: Roll,
    pub(super) mesh: Arc<MeshHandle>,
    pub(super) suspects: watch::Receiver<Arc<Suspects>>,
    /// Already caught up with the time of the start.
    pub(super) calendar: Calendar,
    pub(super) history: Arc<History>,
    pub(super) boards: Boards,
    pub(super) looked_at: notices::Sources,
}

/// Starts all background tasks.
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

/// Passes quarantined agents to the mesh, so that it assigns them shadow rounds.
async fn follow_quarantine(mesh: Arc<MeshHandle>, mut suspects: watch::Receiver<Arc<Suspects>>) {
    loop {
        let now = Arc::clone(&suspects.borrow_and_update());
        mesh.set_suspects(&now);
        if suspects.changed().await.is_err() {
            // The driver has ended, which the shutdown code reports.
            std::future::pending::<()>().await;
        }
    }
}

/// Updates live connections after an operator changed the members.
async fn follow_members(mesh: Arc<MeshHandle>, members: Roll) {
    loop {
        members.changed().await;
        mesh.refresh();
    }
}

/// Seals blocks, builds roll-ups and trims events, in slices so that other work proceeds.
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
