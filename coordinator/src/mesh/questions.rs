//! Queue of probe requests for one agent: bounded, and fair among accounts.
//!
//! An account whose monitors all fail at once causes thousands of requests. They take turns with those of other
//! accounts by the rule of [`parallax_protocol::slots`]. When the queue is full, the account with the most requests
//! loses its newest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parallax_protocol::slots::{Permit, Pool, QUESTIONS_AT_ONCE, Slots};
use tokio::sync::Notify;

use crate::flow::Question;

/// Probe requests that may wait for one agent; more end without an outcome.
const MOST: usize = 600;

/// State shared by both ends.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    slots: Slots<Question>,
    is_closed: bool,
}

impl Default for State {
    fn default() -> Self {
        Self { slots: Slots::new(QUESTIONS_AT_ONCE as usize), is_closed: false }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }
}

/// The sending end. Dropping it ends the queue.
pub(super) struct QuestionSender(Arc<Shared>);

/// The receiving end. Dropping it ends the queue.
pub(super) struct QuestionReceiver(Arc<Shared>);

/// A probe request in flight; dropping this frees its slot.
pub(super) struct InFlight {
    shared: Arc<Shared>,
    permit: Option<Permit>,
}

/// Reason why a request was not queued.
pub(super) enum AskError {
    /// The queue is full: this request, or one of an account that has more of them.
    Evicted(Question),
    /// The receiving end is gone.
    Closed(Question),
}

/// Creates a queue.
pub(super) fn queue() -> (QuestionSender, QuestionReceiver) {
    let shared = Arc::<Shared>::default();
    (QuestionSender(Arc::clone(&shared)), QuestionReceiver(shared))
}

impl QuestionSender {
    /// Queues a request for that account.
    pub(super) fn ask(&self, account: u32, question: Question) -> Result<(), AskError> {
        let mut state = self.0.state();
        if state.is_closed {
            return Err(AskError::Closed(question));
        }
        let evicted = state.slots.push_within(MOST, account, Pool::Fast, question);
        drop(state);
        self.0.changed.notify_one();
        evicted.map_or(Ok(()), |evicted| Err(AskError::Evicted(evicted)))
    }
}

impl QuestionReceiver {
    /// Returns the next request; `None` once the queue has ended. Cancel-safe.
    pub(super) async fn next(&self) -> Option<(Question, InFlight)> {
        loop {
            {
                let mut state = self.0.state();
                if state.is_closed {
                    return None;
                }
                if let Some((question, permit)) = state.slots.start_next() {
                    let under_way = InFlight { shared: Arc::clone(&self.0), permit: Some(permit) };
                    return Some((question, under_way));
                }
            }
            self.0.changed.notified().await;
        }
    }

    /// Removes all waiting requests.
    pub(super) fn drain(&self) -> Vec<Question> {
        self.0.state().slots.drain()
    }
}

impl Drop for QuestionSender {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for QuestionReceiver {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.shared.state().slots.release(permit);
            self.shared.changed.notify_one();
        }
    }
}
