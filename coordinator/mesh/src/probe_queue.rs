//! Queue of probe requests for one agent: bounded, and fair among accounts.
//!
//! An account whose monitors all fail at once causes thousands of requests. They take turns with those of other
//! accounts by the rule of [`parallax_protocol::slots`]. When the queue is full, the account with the most requests
//! loses its newest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parallax_engine::ProbeDispatch;
use parallax_protocol::fair_slots::{FairSlotPermit, FairSlots, MAX_PROBE_REQUESTS, SlotPool};
use tokio::sync::Notify;

/// Probe requests that may wait for one agent; more end without an outcome.
const MAX_WAITING: usize = 600;

/// State shared by both ends.
#[derive(Default)]
struct SharedQueue {
    state: Mutex<QueueState>,
    changed: Notify,
}

struct QueueState {
    slots: FairSlots<ProbeDispatch>,
    is_closed: bool,
}

impl Default for QueueState {
    fn default() -> Self {
        Self { slots: FairSlots::new(MAX_PROBE_REQUESTS as usize), is_closed: false }
    }
}

impl SharedQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }
}

/// The sending end. Dropping it ends the queue.
pub(super) struct ProbeQueueSender(Arc<SharedQueue>);

/// The receiving end. Dropping it ends the queue.
pub(super) struct ProbeQueueReceiver(Arc<SharedQueue>);

/// A probe request in flight; dropping this frees its slot.
pub(super) struct InFlightProbe {
    shared: Arc<SharedQueue>,
    permit: Option<FairSlotPermit>,
}

/// Reason why a request was not queued.
pub(super) enum ProbeQueueError {
    /// The queue is full: this request, or one of an account that has more of them.
    Evicted(ProbeDispatch),
    /// The receiving end was dropped.
    Closed(ProbeDispatch),
}

/// Creates a queue.
pub(super) fn queue() -> (ProbeQueueSender, ProbeQueueReceiver) {
    let shared = Arc::<SharedQueue>::default();
    (ProbeQueueSender(Arc::clone(&shared)), ProbeQueueReceiver(shared))
}

impl ProbeQueueSender {
    /// Queues a request for that account.
    pub(super) fn push(&self, account: u32, probe: ProbeDispatch) -> Result<(), ProbeQueueError> {
        let mut state = self.0.state();
        if state.is_closed {
            return Err(ProbeQueueError::Closed(probe));
        }
        let evicted = state.slots.push_bounded(MAX_WAITING, account, SlotPool::Fast, probe);
        drop(state);
        self.0.changed.notify_one();
        evicted.map_or(Ok(()), |evicted| Err(ProbeQueueError::Evicted(evicted)))
    }
}

impl ProbeQueueReceiver {
    /// Returns the next request; `None` once the queue has ended. Cancel-safe.
    pub(super) async fn next(&self) -> Option<(ProbeDispatch, InFlightProbe)> {
        loop {
            {
                let mut state = self.0.state();
                if state.is_closed {
                    return None;
                }
                if let Some((probe, permit)) = state.slots.start_next() {
                    let in_flight = InFlightProbe { shared: Arc::clone(&self.0), permit: Some(permit) };
                    return Some((probe, in_flight));
                }
            }
            self.0.changed.notified().await;
        }
    }

    /// Removes all waiting requests.
    pub(super) fn drain(&self) -> Vec<ProbeDispatch> {
        self.0.state().slots.drain()
    }
}

impl Drop for ProbeQueueSender {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for ProbeQueueReceiver {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for InFlightProbe {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.shared.state().slots.release(permit);
            self.shared.changed.notify_one();
        }
    }
}
