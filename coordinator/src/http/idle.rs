//! Which connections have no request under way: where all places are taken, the one idle for longest makes room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The idle connections, in the order in which they became so; as large as the connections that are open.
#[derive(Debug, Clone)]
pub(super) struct Idle {
    /// For so long a connection is left alone: what it has sent may not have been read yet.
    fresh: Duration,
    all: Arc<Mutex<All>>,
    /// Told of each connection that becomes idle.
    more: Arc<Notify>,
    /// Told of each connection that was to leave and stays.
    stayed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct All {
    next: u64,
    idle: BTreeMap<u64, (Instant, Arc<Notify>)>,
}

/// What one connection is about. It begins idle, and counts no more once dropped.
#[derive(Debug, Clone)]
pub(super) struct Seat(Arc<Kept>);

/// A request under way.
#[derive(Debug)]
pub(super) struct Asked(Seat);

#[derive(Debug)]
struct Kept {
    idle: Idle,
    leave: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Its number among the idle ones.
    number: Option<u64>,
    /// Requests that are being answered: one at most but over HTTP/2.
    asked: u32,
    /// Whether some of an answer may still be on its way.
    is_unsent: bool,
}

impl Idle {
    /// None so far; each is left alone for as long as it is `fresh`.
    pub(super) fn new(fresh: Duration) -> Self {
        Self { fresh, all: Arc::default(), more: Arc::default(), stayed: Arc::default() }
    }

    /// A new connection's seat.
    pub(super) fn seat(&self) -> Seat {
        let seat =
            Seat(Arc::new(Kept { idle: self.clone(), leave: Arc::default(), state: Mutex::default() }));
        seat.change(|_| ());
        seat
    }

    /// Tells the connection that has been idle for longest to leave; waits for one where there is none.
    pub(super) async fn make_room(&self) {
        loop {
            let more = self.more.notified();
            let ripe = {
                let mut all = locked(&self.all);
                match all.idle.first_entry() {
                    Some(oldest) if oldest.get().0.elapsed() >= self.fresh => {
                        oldest.remove().1.notify_one();
                        return;
                    }
                    oldest => oldest.map(|oldest| oldest.get().0 + self.fresh),
                }
            };
            match ripe {
                Some(ripe) => sleep_until(ripe).await,
                None => more.await,
            }
        }
    }

    /// Waits until one that was told to leave has stayed.
    pub(super) async fn stayed(&self) {
        self.stayed.notified().await;
    }
}

impl Seat {
    /// Waits until this connection is to make room. One that has a request by then stays, and another is found.
    pub(super) async fn told_to_leave(&self) {
        loop {
            self.0.leave.notified().await;
            if locked(&self.0.state).number.is_some() {
                return;
            }
            self.0.idle.stayed.notify_one();
        }
    }

    /// A request's head has been read; it is answered, or given up by its sender, once this is dropped.
    pub(super) fn asked(&self) -> Asked {
        self.change(|state| state.asked = state.asked.saturating_add(1));
        Asked(self.clone())
    }

    /// Bytes were written, or are to be.
    pub(super) fn sending(&self) {
        self.change(|state| state.is_unsent = true);
    }

    /// All that was written has been taken by the host.
    pub(super) fn sent(&self) {
        self.change(|state| state.is_unsent = false);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = locked(&self.0.state);
        change(&mut state);
        let is_idle = state.asked == 0 && !state.is_unsent;
        match (is_idle, state.number) {
            (true, None) => {
                let mut all = locked(&self.0.idle.all);
                let number = all.next;
                all.next += 1;
                all.idle.insert(number, (Instant::now(), Arc::clone(&self.0.leave)));
                state.number = Some(number);
                drop(all);
                self.0.idle.more.notify_one();
            }
            (false, Some(number)) => {
                locked(&self.0.idle.all).idle.remove(&number);
                state.number = None;
            }
            _ => {}
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // The answer remains to be sent.
        self.0.change(|state| (state.asked, state.is_unsent) = (state.asked.saturating_sub(1), true));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = state.number {
            locked(&self.idle.all).idle.remove(&number);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_one_idle_for_longest_leaves_and_those_with_a_request_stay() {
        let idle = Idle::new(Duration::ZERO);
        let [busy, sending, used, fresh] = std::array::from_fn(|_| idle.seat());
        let _busy = [busy.asked(), busy.asked()];
        drop(busy.asked());
        busy.sent();
        drop(sending.asked());
        // Used since, it has been idle for less long than the fresh one.
        drop(used.asked());
        used.sent();
        for seat in [&fresh, &used] {
            assert!(idle.make_room().now_or_never().is_some());
            assert!(seat.told_to_leave().now_or_never().is_some());
        }
        assert!(idle.make_room().now_or_never().is_none());
        for seat in [&busy, &sending] {
            assert!(seat.told_to_leave().now_or_never().is_none());
        }
        sending.sent();
        assert!(idle.make_room().now_or_never().is_some());
        assert!(sending.told_to_leave().now_or_never().is_some());
    }

    #[tokio::test]
    async fn whoever_waits_for_room_has_it_once_a_connection_is_idle() {
        let idle = Idle::new(Duration::ZERO);
        let seat = idle.seat();
        let asked = seat.asked();
        let answered = async {
            drop(asked);
            seat.sent();
        };
        tokio::join!(idle.make_room(), answered);
        seat.told_to_leave().await;
    }

    #[tokio::test]
    async fn a_fresh_connection_is_left_alone_and_one_with_a_request_by_then_stays() {
        const FRESH: Duration = Duration::from_millis(50);
        let idle = Idle::new(FRESH);
        let (begun, seat) = (Instant::now(), idle.seat());
        idle.make_room().await;
        assert!(begun.elapsed() >= FRESH);
        let _asked = seat.asked();
        assert!(seat.told_to_leave().now_or_never().is_none());
        assert!(idle.stayed().now_or_never().is_some());
    }

    #[test]
    fn one_that_has_gone_is_not_told() {
        let idle = Idle::new(Duration::ZERO);
        drop(idle.seat());
        assert!(locked(&idle.all).idle.is_empty());
        assert!(idle.make_room().now_or_never().is_none());
    }
}
