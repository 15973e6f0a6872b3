//! Outputs to atomic commits: readings, machine states and events together, and only then the acknowledgements.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use parallax_core::event::Event;
use parallax_core::id::MonitorId;
use parallax_core::observation::Reading;
use tokio::sync::oneshot;

use crate::storage::{Batch, Op, Store, StoreError};

use super::machines::{Harvest, Machines};

/// How long a commit that the full disk refused waits before it is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Machines of one batch. A harvest is almost always one; a region that leaves may change all machines at once.
const MACHINES: usize = 4096;

/// A commit under way: who is told once it is durable.
#[derive(Debug)]
pub struct Underway {
    task: tokio::task::JoinHandle<Result<Vec<Entry>, StoreError>>,
    durable: Vec<oneshot::Sender<()>>,
    events: usize,
    begun: Instant,
}

/// Number of an entry of the readings journal, and its readings.
pub type Entry = (u64, Vec<Reading>);

/// What became durable.
#[derive(Debug)]
pub struct Landed {
    /// How many events it held.
    pub events: usize,
    /// How long it took.
    pub took: Duration,
    /// Its readings, for history.
    pub entries: Vec<Entry>,
}

/// Starts the commit of a harvest. While the disk is full it is tried until it succeeds: nothing is acknowledged or
/// lost meanwhile, and the inbox fills up behind it. None where there is nothing to commit; its senders are told at
/// once.
pub fn begin(
    store: &Store,
    machines: &Machines,
    harvest: Harvest,
    durable: Vec<oneshot::Sender<()>>,
    extra: Vec<Op>,
) -> Option<Underway> {
    let events = harvest.events.len();
    let batches = to_batches(machines, harvest, extra);
    if batches.is_empty() {
        durable.into_iter().for_each(tell);
        return None;
    }
    let store = store.clone();
    let task = tokio::spawn(async move {
        let mut entries = Vec::new();
        for batch in batches {
            let number = land(&store, &batch).await?;
            entries.extend(number.map(|number| (number, batch.readings)));
        }
        Ok(entries)
    });
    Some(Underway { task, durable, events, begun: Instant::now() })
}

impl Underway {
    /// Waits until everything is durable, then tells who waited for it, and gives what it was.
    ///
    /// # Errors
    /// Where the store can't be written any more: nobody is told, and agents send again after the next start.
    pub async fn landed(&mut self) -> Result<Landed, StoreError> {
        let landed = (&mut self.task).await.unwrap_or(Err(StoreError::Closed));
        let durable = std::mem::take(&mut self.durable);
        let entries = landed?;
        durable.into_iter().for_each(tell);
        Ok(Landed { events: self.events, took: self.begun.elapsed(), entries })
    }
}

/// Commits one batch; the number of its entry of readings, where it has any.
async fn land(store: &Store, batch: &Batch) -> Result<Option<u64>, StoreError> {
    loop {
        match store.commit(batch.clone()).await {
            Ok(committed) => return Ok(committed.readings),
            // The store logs it.
            Err(StoreError::Full) => tokio::time::sleep(RETRY).await,
            Err(error) => return Err(error),
        }
    }
}

/// A machine's state, events and readings go into one batch; machines share one as far as it goes.
fn to_batches(machines: &Machines, harvest: Harvest, extra: Vec<Op>) -> Vec<Batch> {
    let mut first = Batch { ops: extra, ..Batch::new() };
    if harvest.changed.len() <= MACHINES {
        add_states(&mut first, machines, harvest.changed.iter());
        first.events = harvest.events;
        first.readings = harvest.readings;
        return if first.is_empty() { Vec::new() } else { vec![first] };
    }
    let mut events: BTreeMap<Option<MonitorId>, Vec<Event>> = BTreeMap::new();
    for event in harvest.events {
        events.entry(event.monitor).or_default().push(event);
    }
    let mut readings: BTreeMap<u32, Vec<Reading>> = BTreeMap::new();
    for reading in harvest.readings {
        readings.entry(reading.slot).or_default().push(reading);
    }
    let changed: Vec<u32> = harvest.changed.into_iter().collect();
    let mut batches = Vec::new();
    for slots in changed.chunks(MACHINES) {
        let mut batch = Batch::new();
        add_states(&mut batch, machines, slots.iter());
        let monitors: BTreeSet<Option<MonitorId>> =
            slots.iter().filter_map(|slot| Some(Some(machines.state(*slot)?.0))).collect();
        batch.events.extend(monitors.iter().filter_map(|monitor| events.remove(monitor)).flatten());
        batch.readings.extend(slots.iter().filter_map(|slot| readings.remove(slot)).flatten());
        batches.push(batch);
    }
    first.events = events.into_values().flatten().collect();
    first.readings = readings.into_values().flatten().collect();
    batches.push(first);
    batches.retain(|batch| !batch.is_empty());
    batches
}

fn add_states<'a>(batch: &mut Batch, machines: &Machines, slots: impl Iterator<Item = &'a u32>) {
    for slot in slots {
        if let Some((monitor, state)) = machines.state(*slot) {
            batch.write(Op::PutMachine(monitor, Box::new(state.clone())));
        }
    }
}

fn tell(waiting: oneshot::Sender<()>) {
    // A session that has ended meanwhile no longer waits; its agent will send again and be told then.
    let _ = waiting.send(());
}
