//! The journal consumers: each runs as a task, and wakes the deliverer.

use std::sync::Arc;

use parallax_core::time::Timestamp;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::react::alerts::Alerts;
use crate::react::incidents::Incidents;
use crate::react::notices::Notices;
use crate::react::subscribers::Subscribers;
use crate::react::{self, Reaction, fanout};
use crate::service::Settings;
use crate::service::destinations::owner::tell_owners;
use crate::storage::{Read, Store, StoreError};
use crate::supervise::{Rooms, Watch};

/// Cursor names of all consumers.
pub(super) const NAMES: [&str; 4] = [Alerts::NAME, Incidents::NAME, Notices::NAME, Subscribers::NAME];

/// The running consumers.
pub(super) struct Reactions {
    pub(super) rooms: Rooms,
    pub(super) alerts: Arc<Alerts>,
}

/// Sets each consumer's initial journal cursor, and adds the owner's mailbox as a destination to pages from before
/// alerts existed. Called before anything else runs, so that no consumer misses an event.
pub(super) async fn begin(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    let pages = tell_owners(store, now).await?;
    if pages > 0 {
        tracing::info!(
            pages,
            "added the owner's mailbox as a destination to pages from before alerts existed"
        );
    }
    react::begin::<Alerts>(store).await?;
    react::begin::<Incidents>(store).await?;
    react::begin::<Notices>(store).await?;
    react::begin::<Subscribers>(store).await
}

/// Starts the consumers.
pub(super) fn start(
    store: &Store,
    clock: &Clock,
    settings: &Settings,
    notices: Notices,
    wake: &Arc<Notify>,
    watch: &Watch,
) -> Reactions {
    let alerts = Arc::new(Alerts::new(settings.base_url.clone(), settings.root_domain.clone()));
    let subscribers = Subscribers::new(settings.base_url.clone(), settings.root_domain.clone());
    // Bulletins are fanned out to subscribers in slices; the fan-out wakes the deliverer.
    let news = Arc::new(Notify::new());
    let mut rooms = watch.rooms();
    run(&mut rooms, Arc::clone(&alerts), store, clock, wake);
    run(&mut rooms, Arc::new(Incidents), store, clock, wake);
    run(&mut rooms, Arc::new(notices), store, clock, wake);
    run(&mut rooms, Arc::new(subscribers), store, clock, &news);
    let (store, clock, wake) = (store.clone(), clock.clone(), Arc::clone(wake));
    rooms.keep("fan-out", move || {
        fanout::run(store.clone(), clock.clone(), Arc::clone(&news), Arc::clone(&wake))
    });
    Reactions { rooms, alerts }
}

/// Returns the number of events that each consumer has not read yet, by its name.
pub(super) fn behind(read: &dyn Read) -> Result<[(&'static str, u64); NAMES.len()], StoreError> {
    let newest = read.last_event()?;
    let mut behind = NAMES.map(|name| (name, 0));
    for (name, events) in &mut behind {
        *events = newest.saturating_sub(read.cursor(name)?);
    }
    Ok(behind)
}

fn run<R: Reaction>(rooms: &mut Rooms, reaction: Arc<R>, store: &Store, clock: &Clock, wake: &Arc<Notify>) {
    let (store, clock, wake) = (store.clone(), clock.clone(), Arc::clone(wake));
    rooms.keep(R::NAME, move || {
        react::run(Arc::clone(&reaction), store.clone(), clock.clone(), Arc::clone(&wake))
    });
}
