//! Tracks idle connections: when all connection slots are taken, the connection idle for longest is closed.
//!
//! A request only updates atomics of its own connection. The queue of all connections is brought up to date by the task
//! that evicts, as far as it has to search; a busy connection that it finds is dequeued and requeued once it is idle.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Flag: part of a response may not have been written yet.
const UNSENT: u32 = 1;
/// Counter in the same word: one request in progress. HTTP/2 connections may have several.
const REQUEST: u32 = 2;
/// Flag: the connection is not in the queue. Changed only under the lock of the queue.
const DEQUEUED: u32 = 1 << 31;

/// The open connections, ordered by when they were last seen to become idle.
#[derive(Debug, Clone)]
pub(super) struct IdleConnections(Arc<IdleState>);

#[derive(Debug)]
struct IdleState {
    /// Time for which an idle connection is not evicted, since the request that it has sent may not have been read yet.
    min_idle: Duration,
    /// Zero of all timestamps.
    epoch: Instant,
    queue: Mutex<IdleQueue>,
    /// Number of tasks that wait to evict a connection.
    waiters: AtomicU32,
    /// Notified when a connection becomes idle while a task waits to evict one.
    became_idle: Notify,
    /// Notified when a connection declines its eviction.
    declined: Notify,
}

#[derive(Debug, Default)]
struct IdleQueue {
    next_number: u64,
    /// By a lower bound of the time since which it is idle, and its number.
    by_idle_since: BTreeMap<(u64, u64), Arc<ActivityState>>,
}

/// Activity of one connection, idle at first. Unregistered when the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct ConnectionActivity(Arc<ActivityHandle>);

/// A request in progress.
#[derive(Debug)]
pub(super) struct ActiveRequest(ConnectionActivity);

#[derive(Debug)]
struct ActivityHandle {
    idle: IdleConnections,
    state: Arc<ActivityState>,
}

#[derive(Debug)]
struct ActivityState {
    number: u64,
    /// Time under which it is queued; written under the lock of the queue.
    queued_at: AtomicU64,
    /// [`UNSENT`] and the count of [`REQUEST`] (both zero if idle), and [`DEQUEUED`].
    flags: AtomicU32,
    /// Time at which it last became idle.
    idle_since: AtomicU64,
    evict: Notify,
}

/// Result of an attempt to evict a connection.
enum Eviction {
    /// A connection was asked to close.
    Evicted,
    /// The connection idle for longest may not be evicted before this time.
    TooRecent(Instant),
    /// All connections are busy.
    NoneIdle,
}

impl IdleConnections {
    /// Creates an empty set. No connection is evicted before it has been idle for `grace_period`.
    pub(super) fn new(grace_period: Duration) -> Self {
        Self(Arc::new(IdleState {
            min_idle: grace_period,
            epoch: Instant::now(),
            queue: Mutex::default(),
            waiters: AtomicU32::new(0),
            became_idle: Notify::new(),
            declined: Notify::new(),
        }))
    }

    /// Registers a new connection.
    pub(super) fn register(&self) -> ConnectionActivity {
        let now = self.now_nanos();
        let mut all = lock(&self.0.queue);
        let number = all.next_number;
        all.next_number += 1;
        let state = Arc::new(ActivityState {
            number,
            queued_at: AtomicU64::new(now),
            flags: AtomicU32::new(0),
            idle_since: AtomicU64::new(now),
            evict: Notify::new(),
        });
        all.by_idle_since.insert((now, number), Arc::clone(&state));
        drop(all);
        self.notify_waiters();
        ConnectionActivity(Arc::new(ActivityHandle { idle: self.clone(), state }))
    }

    /// Asks the connection idle for longest to close; waits until one is idle.
    pub(super) async fn evict_one(&self) {
        // Before the first attempt: a connection that becomes idle after it sees that one is waited for.
        let _wanted = EvictionWaiter::new(&self.0.waiters);
        loop {
            match self.try_evict() {
                Eviction::Evicted => {
                    // Two notifications may have been merged into one.
                    if self.0.waiters.load(Ordering::SeqCst) > 1 {
                        self.0.became_idle.notify_one();
                    }
                    return;
                }
                Eviction::TooRecent(until) => sleep_until(until).await,
                Eviction::NoneIdle => self.0.became_idle.notified().await,
            }
        }
    }

    /// Waits until a connection declines its eviction.
    pub(super) async fn eviction_declined(&self) {
        self.0.declined.notified().await;
    }

    /// Searches the queue from the oldest entry, and corrects outdated entries on the way.
    fn try_evict(&self) -> Eviction {
        let mut all = lock(&self.0.queue);
        while let Some(first) = all.by_idle_since.first_entry() {
            let (filed, _) = *first.key();
            let connection = first.remove();
            match connection.idle_since() {
                Some(since) if since <= filed => {
                    let until = self.0.epoch + Duration::from_nanos(since) + self.0.min_idle;
                    if until <= Instant::now() {
                        connection.evict.notify_one();
                        return Eviction::Evicted;
                    }
                    all.enqueue(filed, connection);
                    return Eviction::TooRecent(until);
                }
                Some(since) => all.enqueue(since, connection),
                None => {
                    // It may have become idle just now, without seeing that it is dequeued.
                    if is_idle(connection.flags.fetch_or(DEQUEUED, Ordering::SeqCst)) {
                        all.requeue(connection);
                    }
                }
            }
        }
        Eviction::NoneIdle
    }

    /// Nanoseconds since the set was created; enough for five centuries.
    fn now_nanos(&self) -> u64 {
        u64::try_from(self.0.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn notify_waiters(&self) {
        if self.0.waiters.load(Ordering::SeqCst) > 0 {
            self.0.became_idle.notify_one();
        }
    }
}

impl IdleQueue {
    fn enqueue(&mut self, since: u64, connection: Arc<ActivityState>) {
        connection.queued_at.store(since, Ordering::Relaxed);
        self.by_idle_since.insert((since, connection.number), connection);
    }

    /// Requeues a connection that is idle again, if it is dequeued.
    fn requeue(&mut self, connection: Arc<ActivityState>) {
        if connection.flags.fetch_and(!DEQUEUED, Ordering::SeqCst) & DEQUEUED != 0 {
            self.enqueue(connection.idle_since.load(Ordering::SeqCst), connection);
        }
    }
}

impl ConnectionActivity {
    /// Waits until this connection is to be closed. If it is busy by then, it declines and another one is evicted.
    pub(super) async fn evicted(&self) {
        let ActivityHandle { idle, state } = &*self.0;
        loop {
            state.evict.notified().await;
            if state.idle_since().is_some() {
                return;
            }
            lock(&idle.0.queue).enqueue(idle.now_nanos(), Arc::clone(state));
            idle.0.declined.notify_one();
        }
    }

    /// Marks the start of a request, once its header is read. Drop the guard when the request ends.
    pub(super) fn begin_request(&self) -> ActiveRequest {
        self.0.state.flags.fetch_add(REQUEST, Ordering::SeqCst);
        ActiveRequest(self.clone())
    }

    /// Notes that bytes were or are about to be written.
    pub(super) fn mark_sending(&self) {
        self.0.state.flags.fetch_or(UNSENT, Ordering::SeqCst);
    }

    /// Notes that the operating system has accepted all bytes written.
    pub(super) fn mark_sent(&self) {
        if self.0.state.flags.load(Ordering::SeqCst) & UNSENT == 0 {
            return;
        }
        // Stored before the connection counts as idle, so that no outdated time is read.
        self.0.state.idle_since.store(self.0.idle.now_nanos(), Ordering::SeqCst);
        let before = self.0.state.flags.fetch_and(!UNSENT, Ordering::SeqCst);
        if !is_idle(before & !UNSENT) {
            return;
        }
        if before & DEQUEUED != 0 {
            lock(&self.0.idle.0.queue).requeue(Arc::clone(&self.0.state));
        }
        self.0.idle.notify_waiters();
    }
}

impl ActivityState {
    /// Time since which it has had no request and nothing to send; `None` while it is busy.
    fn idle_since(&self) -> Option<u64> {
        is_idle(self.flags.load(Ordering::SeqCst)).then(|| self.idle_since.load(Ordering::SeqCst))
    }
}

/// Returns true if the flags are those of an idle connection.
const fn is_idle(work: u32) -> bool {
    work & !DEQUEUED == 0
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        // The response is still to be sent.
        self.0.0.state.flags.fetch_or(UNSENT, Ordering::SeqCst);
        self.0.0.state.flags.fetch_sub(REQUEST, Ordering::SeqCst);
    }
}

impl Drop for ActivityHandle {
    fn drop(&mut self) {
        let mut all = lock(&self.idle.0.queue);
        // Read under the lock, since an evicting task may requeue it.
        let filed = self.state.queued_at.load(Ordering::Relaxed);
        all.by_idle_since.remove(&(filed, self.state.number));
    }
}

/// Counts one waiting task for as long as it is held.
struct EvictionWaiter<'a>(&'a AtomicU32);

impl<'a> EvictionWaiter<'a> {
    fn new(wanted_slots: &'a AtomicU32) -> Self {
        wanted_slots.fetch_add(1, Ordering::SeqCst);
        Self(wanted_slots)
    }
}

impl Drop for EvictionWaiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_longest_idle_connection_is_evicted_and_busy_ones_stay() {
        let idle = IdleConnections::new(Duration::ZERO);
        let [busy, sending, used, unused] = std::array::from_fn(|_| idle.register());
        let _busy = [busy.begin_request(), busy.begin_request()];
        drop(busy.begin_request());
        busy.mark_sent();
        drop(sending.begin_request());
        // It was used later than the others and is idle for less time than the unused one.
        drop(used.begin_request());
        used.mark_sent();
        for connection in [&unused, &used] {
            assert!(idle.evict_one().now_or_never().is_some());
            assert!(connection.evicted().now_or_never().is_some());
        }
        assert!(idle.evict_one().now_or_never().is_none());
        for connection in [&busy, &sending] {
            assert!(connection.evicted().now_or_never().is_none());
        }
        sending.mark_sent();
        assert!(idle.evict_one().now_or_never().is_some());
        assert!(sending.evicted().now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_waiting_connection_gets_the_slot_of_an_idle_one() {
        let idle = IdleConnections::new(Duration::ZERO);
        let connection = idle.register();
        let requests = connection.begin_request();
        let response = async {
            drop(requests);
            connection.mark_sent();
        };
        tokio::join!(idle.evict_one(), response);
        connection.evicted().await;
    }

    #[tokio::test]
    async fn a_new_connection_is_not_evicted_before_it_can_send_a_request() {
        const FRESH: Duration = Duration::from_millis(50);
        let idle = IdleConnections::new(FRESH);
        let (started, connection) = (Instant::now(), idle.register());
        idle.evict_one().await;
        assert!(started.elapsed() >= FRESH);
        let _asked = connection.begin_request();
        assert!(connection.evicted().now_or_never().is_none());
        assert!(idle.eviction_declined().now_or_never().is_some());
    }

    #[test]
    fn a_busy_connection_is_queued_again_once_idle() {
        let idle = IdleConnections::new(Duration::ZERO);
        let [first, second] = std::array::from_fn(|_| idle.register());
        let requests = [first.begin_request(), second.begin_request()];
        for _ in 0..3 {
            assert!(idle.evict_one().now_or_never().is_none());
            assert!(lock(&idle.0.queue).by_idle_since.is_empty());
        }
        drop(requests);
        second.mark_sent();
        first.mark_sent();
        // Busy and idle again, which moves it to the end.
        drop(second.begin_request());
        second.mark_sent();
        for connection in [&first, &second] {
            assert!(idle.evict_one().now_or_never().is_some());
            assert!(connection.evicted().now_or_never().is_some());
        }
    }

    #[test]
    fn no_connection_is_lost_from_the_queue_during_evictions() {
        const REQUESTS: usize = 20_000;
        let idle = IdleConnections::new(Duration::ZERO);
        let connection = || {
            let mut activity = idle.register();
            for _ in 0..REQUESTS {
                drop(activity.begin_request());
                activity.mark_sent();
                if activity.evicted().now_or_never().is_some() {
                    activity = idle.register();
                }
            }
            activity
        };
        let activities: Vec<ConnectionActivity> = std::thread::scope(|scope| {
            let connections: Vec<_> = (0..4).map(|_| scope.spawn(connection)).collect();
            while !connections.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                let _ = idle.evict_one().now_or_never();
            }
            connections.into_iter().map(|it| it.join().unwrap()).collect()
        });
        while idle.evict_one().now_or_never().is_some() {}
        assert!(lock(&idle.0.queue).by_idle_since.is_empty());
        for activity in activities {
            assert!(activity.evicted().now_or_never().is_some());
        }
    }

    #[test]
    fn a_closed_connection_is_not_evicted() {
        let idle = IdleConnections::new(Duration::ZERO);
        drop(idle.register());
        assert!(lock(&idle.0.queue).by_idle_since.is_empty());
        assert!(idle.evict_one().now_or_never().is_none());
    }
}
