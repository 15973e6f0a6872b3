//! Opens the store, and restores from it what runs: the members' records, history, scheduler and driver.

use std::sync::Arc;

use parallax_certs::files;
use parallax_certs::mesh_secret::MeshSecret;
use parallax_certs::rotation::AuthorityStore;
use parallax_core::time::SECOND;
use parallax_engine::driver::Driver;
use parallax_engine::history::History;
use parallax_engine::scheduler::Scheduler;
use parallax_engine::shard::Shard;
use parallax_mesh::Trust;
use parallax_mesh::members::MemberStore;
use parallax_runtime::clock::Clock;
use parallax_store::{Store, StoreError};

use super::options::{KeyNeed, store_options};
use super::{AppError, STORE, StartContext, after_restore, consumers, settings};
use crate::config::CoordinatorConfig;

/// The open store, and the parts restored from it. None of them runs yet.
pub(super) struct StoredState {
    pub(super) store: Store,
    pub(super) secret: MeshSecret,
    pub(super) trust: Trust,
    /// Not connected to the mesh yet.
    pub(super) members: MemberStore,
    pub(super) history: Arc<History>,
    /// Caught up with the present.
    pub(super) scheduler: Scheduler,
    pub(super) driver: Driver,
}

/// Opens the store and restores the parts in order: the driver reads what the scheduler has committed.
pub(super) async fn start(context: &StartContext) -> Result<StoredState, AppError> {
    let StartContext { config, clock, .. } = context;
    let (store, authorities, secret) = open(config, clock).await?;
    consumers::init_cursors(&store, clock.now()).await?;
    let trust = Trust::from(&authorities);
    let members = after_restore::open_members(config, &store, clock, authorities).await?;
    let history = Arc::new(rebuild_history(&store).await?);
    let scheduler = Scheduler::start_caught_up(store.clone(), clock.now()).await?;
    let verdicts = settings::verdict_settings(config);
    let driver = Driver::start(clock.clone(), store.clone(), Arc::clone(&history), verdicts, Shard::WHOLE).await?;
    Ok(StoredState { store, secret, trust, members, history, scheduler, driver })
}

/// Opens the store, the mesh's authorities and its secret.
pub(super) async fn open(
    config: &CoordinatorConfig,
    clock: &Clock,
) -> Result<(Store, AuthorityStore, MeshSecret), AppError> {
    let (data, options) = (config.data.clone(), store_options(config, KeyNeed::Read)?);
    let now = clock.now().as_millis().div_euclid(SECOND);
    let opened = tokio::task::spawn_blocking(move || -> Result<_, AppError> {
        files::ensure_private_folder(&data).map_err(|error| AppError::Data(error.to_string()))?;
        // The store first: its lock makes this process the only user of the directory.
        let store = Store::on_disk(&data.join(STORE), options)?;
        let authorities = AuthorityStore::open(&data, now)?;
        let secret = MeshSecret::open(&data).map_err(|error| AppError::Data(error.to_string()))?;
        Ok((store, authorities, secret))
    });
    opened.await.map_err(|error| AppError::Data(error.to_string()))?
}

async fn rebuild_history(store: &Store) -> Result<History, AppError> {
    let reader = Arc::clone(store.reader());
    let rebuilt = tokio::task::spawn_blocking(move || History::rebuild(reader.as_ref())).await;
    Ok(rebuilt.map_err(|error| StoreError::Io(error.to_string()))??)
}
