//! Questions that wait for one agent: bounded, and dealt out fairly among accounts.
//!
//! An account whose monitors all fail at once asks thousands of questions. They take their turns with those of others by
//! the rule of [`parallax_protocol::slots`], and where too many wait the account that has the most loses its newest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parallax_protocol::slots::{Permit, Pool, QUESTIONS_AT_ONCE, Slots};
use tokio::sync::Notify;

use crate::flow::Question;

/// Questions that wait for one agent; more than that are answered with nothing.
const MOST: usize = 600;

/// State that asker and carrier share.
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

/// The end that questions are put in at. Dropping it ends the queue.
pub(super) struct QuestionSender(Arc<Shared>);

/// The end that questions are taken out at. Dropping it ends the queue.
pub(super) struct QuestionReceiver(Arc<Shared>);

/// A question under way; dropping it makes room for another.
pub(super) struct InFlight {
    shared: Arc<Shared>,
    permit: Option<Permit>,
}

/// Why a question was not taken.
pub(super) enum AskError {
    /// Too many wait: this one, or another of an account that has more of them.
    Evicted(Question),
    /// Nobody carries questions any more.
    Closed(Question),
}

/// Makes a queue.
pub(super) fn queue() -> (QuestionSender, QuestionReceiver) {
    let shared = Arc::<Shared>::default();
    (QuestionSender(Arc::clone(&shared)), QuestionReceiver(shared))
}

impl QuestionSender {
    /// Has a question of that account wait for its turn.
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
    /// The question whose turn it is; none where the queue has ended. Nothing is lost where this is dropped early.
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

    /// Takes out all that waits.
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
