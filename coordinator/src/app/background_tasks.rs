//! Background tasks next to the pipeline, driven by time or by changes elsewhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parallax_core::quarantine::SuspectedVantages;
use parallax_engine::history::{self, History};
use parallax_engine::scheduler::Scheduler;
use parallax_mesh::MeshHandle;
use parallax_mesh::members::MemberStore;
use parallax_runtime::clock::Clock;
use parallax_runtime::supervisor::TaskGroup;
use parallax_service::Services;
use parallax_service::domain_verification;
use parallax_store::Store;
use parallax_web::page_cache::PageCache;
use tokio::sync::watch;

use super::{health_checks, store_maintenance};
use crate::config::CoordinatorConfig;

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
    pub(super) scheduler: Scheduler,
    pub(super) history: Arc<History>,
    pub(super) page_cache: PageCache,
    pub(super) health_sources: health_checks::HealthSources,
}

/// Starts all background tasks.
pub(super) fn start(group: &mut TaskGroup, parts: BackgroundTasks) {
    let BackgroundTasks { store, clock, config, service, members, mesh, .. } = parts;
    let (task_store, task_clock) = (store.clone(), clock.clone());
    let mut scheduler = Some(parts.scheduler);
    group.spawn_restarting("calendar", move || {
        Scheduler::run_from(scheduler.take(), task_store.clone(), task_clock.clone())
    });
    let pages = Arc::clone(&service.pages);
    group.spawn_restarting("clearing", move || Arc::clone(&pages).run_cleanup());
    let domains = Arc::clone(&service.domains);
    group.spawn_restarting("domains", move || domain_verification::run(Arc::clone(&domains)));
    let incidents = Arc::clone(&service.incidents);
    group.spawn_restarting("incident limits", move || Arc::clone(&incidents).run_limits());
    let subscribers = Arc::clone(&service.subscribers);
    group.spawn_restarting("subscriptions", move || Arc::clone(&subscribers).run());
    let undo = Arc::clone(&service.undo);
    group.spawn_restarting("undo records", move || Arc::clone(&undo).run_expiry());
    let sources = parts.health_sources;
    group.spawn_restarting("lookout", move || health_checks::run(sources.clone()));
    let page_cache = parts.page_cache;
    group.spawn_restarting("boards", move || page_cache.clone().run());
    let (task_mesh, suspects) = (Arc::clone(&mesh), parts.suspects);
    group.spawn_restarting("quarantine", move || follow_quarantine(Arc::clone(&task_mesh), suspects.clone()));
    let invitations = members.clone();
    group.spawn_restarting("invitations", move || invitations.clone().run_invitation_cleanup());
    group.spawn_restarting("members", move || follow_members(Arc::clone(&mesh), members.clone()));
    let (history, task_store, task_clock) = (parts.history, store.clone(), clock.clone());
    group.spawn_restarting("history", move || {
        maintain_history(Arc::clone(&history), task_store.clone(), task_clock.clone())
    });
    group.spawn_restarting("snapshots", move || store_maintenance::run(store.clone(), config.clone(), clock.clone()));
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
