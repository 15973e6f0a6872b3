//! Outputs to one atomic commit: readings, machine states and events together, and only then the acknowledgements.

use std::time::{Duration, Instant};

use parallax_core::observation::Reading;
use tokio::sync::oneshot;

use crate::storage::{Batch, Committed, Op, Store, StoreError};

use super::machines::{Harvest, Machines};

/// How long a refused commit waits before it is tried again: a full disk, say.
const RETRY: Duration = Duration::from_secs(1);

/// A commit under way: who is told once it is durable, and what history then takes in.
#[derive(Debug)]
pub struct Underway {
    task: tokio::task::JoinHandle<Option<Committed>>,
    durable: Vec<oneshot::Sender<()>>,
    readings: Vec<Reading>,
    events: usize,
    begun: Instant,
}

/// What became durable.
#[derive(Debug)]
pub struct Landed {
    /// How many events it held.
    pub events: usize,
    /// How long it took.
    pub took: Duration,
    /// Its readings, with the number of their journal entry.
    pub readings: Option<(u64, Vec<Reading>)>,
}

/// Starts the commit of a harvest. It is tried until it succeeds: nothing is acknowledged or lost meanwhile, and the
/// inbox fills up behind it. None where there is nothing to commit; its senders are told at once.
pub fn begin(
    store: &Store,
    machines: &Machines,
    harvest: Harvest,
    durable: Vec<oneshot::Sender<()>>,
    extra: Vec<Op>,
) -> Option<Underway> {
    let batch = to_batch(machines, &harvest, extra);
    if batch.is_empty() {
        durable.into_iter().for_each(tell);
        return None;
    }
    let store = store.clone();
    let task = tokio::spawn(async move {
        loop {
            match store.commit(batch.clone()).await {
                Ok(committed) => return Some(committed),
                Err(StoreError::Closed) => return None,
                Err(error) => {
                    tracing::error!(%error, "results can't be stored; trying again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    });
    let (events, begun) = (harvest.events.len(), Instant::now());
    Some(Underway { task, durable, readings: harvest.readings, events, begun })
}

impl Underway {
    /// Waits until the commit is durable, then tells who waited for it. None where the store was closed under it:
    /// nobody is told, and agents send again.
    pub async fn landed(&mut self) -> Option<Landed> {
        // Nothing is taken before it: who waits may turn to something else first, and come back.
        let landed = (&mut self.task).await.ok().flatten();
        let (durable, readings) = (std::mem::take(&mut self.durable), std::mem::take(&mut self.readings));
        let committed = landed?;
        durable.into_iter().for_each(tell);
        let (events, took) = (self.events, self.begun.elapsed());
        Some(Landed { events, took, readings: committed.readings.map(|entry| (entry, readings)) })
    }
}

/// One batch of everything, in a fixed order: machine states first, what else the driver writes, events, readings.
fn to_batch(machines: &Machines, harvest: &Harvest, extra: Vec<Op>) -> Batch {
    let mut batch = Batch::new();
    for slot in &harvest.changed {
        if let Some((monitor, state)) = machines.state(*slot) {
            batch.write(Op::PutMachine(monitor, Box::new(state.clone())));
        }
    }
    for op in extra {
        batch.write(op);
    }
    for event in &harvest.events {
        batch.event(event.clone());
    }
    batch.readings.clone_from(&harvest.readings);
    batch
}

fn tell(waiting: oneshot::Sender<()>) {
    // A session that has ended meanwhile no longer waits; its agent will send again and be told then.
    let _ = waiting.send(());
}
