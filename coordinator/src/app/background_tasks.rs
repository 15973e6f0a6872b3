//! Background tasks next to the pipeline, driven by time or by changes elsewhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parallax_core::quarantine::SuspectedVantages;
use tokio::sync::watch;

use super::{health_checks, store_maintenance};
use crate::clock::Clock;
use crate::config::CoordinatorConfig;
use crate::domain_verification;
use crate::history::{self, History};
use crate::members::MemberStore;
use crate::mesh::MeshHandle;
use crate::page_cache::PageCache;
use crate::scheduler::Scheduler;
use crate::service::Services;
use crate::storage::Store;
use crate::supervisor::TaskGroup;

/// Interval of the history's maintenance while nothing is due.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which expired events are trimmed.
const TRIM_INTERVAL: Duration = Duration::from_secs(60);

/// Dependencies of the background tasks.
pub(super) struct BackgroundTasks {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) config: CoordinatorConfig,
    pub(super) service: Arc<Services>,
    pub(super) members: MemberStore,
    pub(super) mesh: Arc<MeshHandle>,
    pub(super) suspects: watch::Receiver<Arc<SuspectedVantages>>,
    /// Already caught up with the time of the start.
    pub(super) calendar: Scheduler,
    pub(super) history: Arc<History>,
    pub(super) page_cache: PageCache,
    pub(super) health_sources: health_checks::HealthSources,
}

/// Starts all background tasks.
pub(super) fn start(rooms: &mut TaskGroup, parts: BackgroundTasks) {
    let BackgroundTasks { store, clock, config, service, members, mesh, .. } = parts;
    let (of, time) = (store.clone(), clock.clone());
    let mut caught_up = Some(parts.calendar);
    rooms.spawn_restarting("calendar", move || Scheduler::run_from(caught_up.take(), of.clone(), time.clone()));
    let of = Arc::clone(&service.pages);
    rooms.spawn_restarting("clearing", move || Arc::clone(&of).run_cleanup());
    let of = Arc::clone(&service.domains);
    rooms.spawn_restarting("domains", move || domain_verification::run(Arc::clone(&of)));
    let of = Arc::clone(&service.incidents);
    rooms.spawn_restarting("incident limits", move || Arc::clone(&of).run_limits());
    let of = Arc::clone(&service.subscribers);
    rooms.spawn_restarting("subscriptions", move || Arc::clone(&of).run());
    let of = parts.health_sources;
    rooms.spawn_restarting("lookout", move || health_checks::run(of.clone()));
    let of = parts.page_cache;
    rooms.spawn_restarting("boards", move || of.clone().run());
    let (of, suspects) = (Arc::clone(&mesh), parts.suspects);
    rooms.spawn_restarting("quarantine", move || follow_quarantine(Arc::clone(&of), suspects.clone()));
    let of = members.clone();
    rooms.spawn_restarting("invitations", move || of.clone().run_invitation_cleanup());
    rooms.spawn_restarting("members", move || follow_members(Arc::clone(&mesh), members.clone()));
    let (kept, of, time) = (parts.history, store.clone(), clock.clone());
    rooms.spawn_restarting("history", move || maintain_history(Arc::clone(&kept), of.clone(), time.clone()));
    rooms.spawn_restarting("snapshots", move || store_maintenance::run(store.clone(), config.clone(), clock.clone()));
}

/// Passes quarantined agents to the mesh, so that it assigns them shadow rounds.
async fn follow_quarantine(mesh: Arc<MeshHandle>, mut suspects: watch::Receiver<Arc<SuspectedVantages>>) {
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
async fn follow_members(mesh: Arc<MeshHandle>, members: MemberStore) {
    loop {
        members.changed().await;
        mesh.refresh();
    }
}

/// Seals blocks, builds roll-ups and trims events, in slices so that other work proceeds.
async fn maintain_history(history: Arc<History>, store: Store, clock: Clock) {
    let windows = history::stored_windows();
    let mut trimmed: Option<Instant> = None;
    loop {
        if trimmed.is_none_or(|at| at.elapsed() >= TRIM_INTERVAL) {
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
            Ok(false) => tokio::time::sleep(MAINTENANCE_INTERVAL).await,
            Err(error) => {
                error.log_retry("the history can't be kept up");
                tokio::time::sleep(MAINTENANCE_INTERVAL).await;
            }
        }
    }
}
