//! The journal consumers: each runs as a task, and wakes the deliverer.

use std::sync::Arc;

use parallax_core::time::Timestamp;
use parallax_notify::consumers::alerts::AlertConsumer;
use parallax_notify::consumers::automatic_incidents::IncidentConsumer;
use parallax_notify::consumers::bulletins::BulletinConsumer;
use parallax_notify::consumers::operator_alerts::OperatorAlertConsumer;
use parallax_notify::consumers::{self, JournalConsumer, bulletin_fanout};
use parallax_runtime::clock::Clock;
use parallax_runtime::supervisor::{Supervisor, TaskGroup};
use parallax_service::ServiceSettings;
use parallax_service::destinations::default_destination::add_owner_destinations;
use parallax_store::{Store, StoreError, StoreRead};
use tokio::sync::Notify;

/// Cursor names of all consumers.
pub(super) const NAMES: [&str; 4] =
    [AlertConsumer::NAME, IncidentConsumer::NAME, OperatorAlertConsumer::NAME, BulletinConsumer::NAME];

/// The running consumers.
pub(super) struct Consumers {
    pub(super) tasks: TaskGroup,
    pub(super) alerts: Arc<AlertConsumer>,
}

/// Sets each consumer's initial journal cursor, and adds the owner's mailbox as a destination to pages from before
/// alerts existed. Called before anything else runs, so that no consumer misses an event.
pub(super) async fn init_cursors(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    let pages = add_owner_destinations(store, now).await?;
    if pages > 0 {
        tracing::info!(pages, "added the owner's mailbox as a destination to pages from before alerts existed");
    }
    consumers::init_cursor::<AlertConsumer>(store).await?;
    consumers::init_cursor::<IncidentConsumer>(store).await?;
    consumers::init_cursor::<OperatorAlertConsumer>(store).await?;
    consumers::init_cursor::<BulletinConsumer>(store).await
}

/// Starts the consumers.
pub(super) fn start(
    store: &Store,
    clock: &Clock,
    settings: &ServiceSettings,
    alerts: AlertConsumer,
    operator_alerts: OperatorAlertConsumer,
    wake: &Arc<Notify>,
    supervisor: &Supervisor,
) -> Consumers {
    let alerts = Arc::new(alerts);
    let subscribers = BulletinConsumer::new(settings.base_url.clone(), settings.root_domain.clone());
    // Bulletins are fanned out to subscribers in slices; the fan-out wakes the deliverer.
    let new_events = Arc::new(Notify::new());
    let mut group = supervisor.task_group();
    spawn(&mut group, Arc::clone(&alerts), store, clock, wake);
    spawn(&mut group, Arc::new(IncidentConsumer), store, clock, wake);
    spawn(&mut group, Arc::new(operator_alerts), store, clock, wake);
    spawn(&mut group, Arc::new(subscribers), store, clock, &new_events);
    let (store, clock, wake) = (store.clone(), clock.clone(), Arc::clone(wake));
    group.spawn_restarting("fan-out", move || {
        bulletin_fanout::run_fanout(store.clone(), clock.clone(), Arc::clone(&new_events), Arc::clone(&wake))
    });
    Consumers { tasks: group, alerts }
}

/// Returns the number of events that each consumer has not read yet, by its name.
pub(super) fn consumer_lag(read: &dyn StoreRead) -> Result<[(&'static str, u64); NAMES.len()], StoreError> {
    let newest = read.last_event()?;
    let mut lags = NAMES.map(|name| (name, 0));
    for (name, events) in &mut lags {
        *events = newest.saturating_sub(read.cursor(name)?);
    }
    Ok(lags)
}

fn spawn<R: JournalConsumer>(
    group: &mut TaskGroup,
    reaction: Arc<R>,
    store: &Store,
    clock: &Clock,
    wake: &Arc<Notify>,
) {
    let (store, clock, wake) = (store.clone(), clock.clone(), Arc::clone(wake));
    group.spawn_restarting(R::NAME, move || {
        consumers::run_consumer(Arc::clone(&reaction), store.clone(), clock.clone(), Arc::clone(&wake))
    });
}
