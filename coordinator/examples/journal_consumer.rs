//! A consumer of the journal, from trait to first event: `cargo run --example journal_consumer`.
//!
//! Real consumers are in `coordinator/notify/src/consumers/`; `app/consumers.rs` sets their first cursor and starts
//! them. This one counts the edits of each monitor, and writes nothing but its cursor.

#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use parallax_core::event::{EditKind, Event, EventKind};
use parallax_core::id::MonitorId;
use parallax_core::time::Timestamp;
use parallax_notify::consumers::{ConsumerTurn, JournalConsumer, consume_next, init_cursor};
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, JournalEvent, Result, Store, StoreRead};

/// Counts the edits of each monitor.
#[derive(Debug, Default)]
struct EditCounter {
    edits: Mutex<BTreeMap<MonitorId, u32>>,
}

impl JournalConsumer for EditCounter {
    /// The cursor is stored under this name, so a consumer continues after a restart where it stopped.
    const NAME: &'static str = "edit-counter";

    /// A consumer that sends something adds its deliveries to the batch, which is committed together with the cursor:
    /// after a crash an event is handled again only if nothing was written for it.
    fn handle_events(&self, _read: &dyn StoreRead, _events: &[JournalEvent], _now: Timestamp) -> Result<Batch> {
        Ok(Batch::new())
    }

    /// Counters change only once the batch is durable, because a batch may conflict and be made again.
    fn on_committed(&self, events: &[JournalEvent]) {
        let mut edits = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
        for JournalEvent { event, .. } in events {
            if let (EventKind::MonitorEdited(_), Some(monitor)) = (&event.kind, event.monitor) {
                *edits.entry(monitor).or_default() += 1;
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let (store, clock) = (Store::in_memory()?, Clock::system());
    commit(&store, &clock, EditKind::Created).await?;
    // A new consumer starts with future events, so that nobody is notified about old ones.
    init_cursor::<EditCounter>(&store).await?;
    commit(&store, &clock, EditKind::Changed).await?;
    commit(&store, &clock, EditKind::Deleted).await?;

    // A running coordinator calls `run_consumer`, which repeats this whenever there are new events.
    let counter = Arc::new(EditCounter::default());
    while consume_next(&counter, &store, &clock).await? != ConsumerTurn::Idle {}
    let edits = counter.edits.lock().unwrap_or_else(PoisonError::into_inner).clone();
    println!("edits by monitor: {edits:?}");
    Ok(())
}

/// Commits an event; in the coordinator, an event is in the batch of its change.
async fn commit(store: &Store, clock: &Clock, edit: EditKind) -> Result<()> {
    let monitor = Some(MonitorId::from_u128(7));
    let mut batch = Batch::new();
    batch.event(Event { at: clock.now(), page: None, monitor, kind: EventKind::MonitorEdited(edit) });
    store.commit(batch).await.map(drop)
}
