//! Atomic commits of the engine's outputs: readings, machine states and events in one batch, then the
//! acknowledgements.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use parallax_core::event::Event;
use parallax_core::id::MonitorId;
use parallax_core::observation::Reading;
use parallax_store::{Batch, Op, Store, StoreError};
use tokio::sync::oneshot;

use super::machines::{Machines, PendingCommit};

/// Delay before a commit that a full disk refused is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Machines per batch, at most. A commit almost always fits in one; a region that leaves may change all machines at
/// once.
const MAX_MACHINES_PER_BATCH: usize = 4096;

/// A commit in flight, with the senders to notify once it is durable.
#[derive(Debug)]
pub(crate) struct InFlightCommit {
    task: tokio::task::JoinHandle<Result<Vec<NumberedReadings>, StoreError>>,
    on_durable: Vec<oneshot::Sender<()>>,
    events: usize,
    started_at: Instant,
}

/// Number of a readings journal entry, and its readings.
pub(crate) type NumberedReadings = (u64, Vec<Reading>);

/// Result of a durable commit.
#[derive(Debug)]
pub(crate) struct CommitResult {
    /// Events in it.
    pub events: usize,
    /// Duration of the commit.
    pub duration: Duration,
    /// Readings in it, for history.
    pub entries: Vec<NumberedReadings>,
}

/// Starts the commit of `pending`. While the disk is full it is retried until it succeeds: nothing is acknowledged or
/// lost meanwhile, and the inbox fills up behind it. Returns `None` if there is nothing to commit; then its senders
/// are notified at once.
pub(crate) fn start(
    store: &Store,
    machines: &Machines,
    pending: PendingCommit,
    on_durable: Vec<oneshot::Sender<()>>,
    extra_ops: Vec<Op>,
) -> Option<InFlightCommit> {
    let events = pending.events.len();
    let batches = to_batches(machines, pending, extra_ops);
    if batches.is_empty() {
        on_durable.into_iter().for_each(notify);
        return None;
    }
    let store = store.clone();
    let task = tokio::spawn(async move {
        let mut entries = Vec::new();
        for batch in batches {
            let number = commit_with_retry(&store, &batch).await?;
            entries.extend(number.map(|number| (number, batch.readings)));
        }
        Ok(entries)
    });
    Some(InFlightCommit { task, on_durable, events, started_at: Instant::now() })
}

impl InFlightCommit {
    /// Waits until everything is durable, then notifies the senders and returns the result.
    ///
    /// # Errors
    /// If the store can't be written any more. Nobody is notified, and agents resend after the next start.
    pub(crate) async fn wait(&mut self) -> Result<CommitResult, StoreError> {
        let result = (&mut self.task).await.unwrap_or(Err(StoreError::Closed));
        let on_durable = std::mem::take(&mut self.on_durable);
        let entries = result?;
        on_durable.into_iter().for_each(notify);
        Ok(CommitResult { events: self.events, duration: self.started_at.elapsed(), entries })
    }
}

/// Commits one batch. Returns the number of its readings entry, if it has readings.
async fn commit_with_retry(store: &Store, batch: &Batch) -> Result<Option<u64>, StoreError> {
    loop {
        match store.commit(batch.clone()).await {
            Ok(committed) => return Ok(committed.readings),
            // The store logs it.
            Err(StoreError::Full) => tokio::time::sleep(RETRY_DELAY).await,
            Err(error) => return Err(error),
        }
    }
}

/// Splits a commit into batches. A machine's state, events and readings share one batch; machines share a batch up to
/// the limit.
fn to_batches(machines: &Machines, pending: PendingCommit, extra_ops: Vec<Op>) -> Vec<Batch> {
    let mut first = Batch { ops: extra_ops, ..Batch::new() };
    if pending.changed.len() <= MAX_MACHINES_PER_BATCH {
        add_states(&mut first, machines, pending.changed.iter());
        first.events = pending.events;
        first.readings = pending.readings;
        return if first.is_empty() { Vec::new() } else { vec![first] };
    }
    let mut events: BTreeMap<Option<MonitorId>, Vec<Event>> = BTreeMap::new();
    for event in pending.events {
        events.entry(event.monitor).or_default().push(event);
    }
    let mut readings: BTreeMap<u32, Vec<Reading>> = BTreeMap::new();
    for reading in pending.readings {
        readings.entry(reading.slot).or_default().push(reading);
    }
    let changed: Vec<u32> = pending.changed.into_iter().collect();
    let mut batches = Vec::new();
    for slots in changed.chunks(MAX_MACHINES_PER_BATCH) {
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

fn notify(sender: oneshot::Sender<()>) {
    // A session that has ended meanwhile no longer waits. Its agent resends and is acknowledged then.
    let _ = sender.send(());
}
