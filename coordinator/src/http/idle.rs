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
const ASKED: u32 = 2;
/// Flag: the connection is not in the queue. Changed only under the lock of the queue.
const OUT: u32 = 1 << 31;

/// The open connections, ordered by when they were last seen to become idle.
#[derive(Debug, Clone)]
pub(super) struct Idle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Time for which an idle connection is not evicted, since the request that it has sent may not have been read yet.
    fresh: Duration,
    /// Zero of all timestamps.
    begun: Instant,
    all: Mutex<All>,
    /// Number of tasks that wait to evict a connection.
    wanted: AtomicU32,
    /// Notified when a connection becomes idle while a task waits to evict one.
    more: Notify,
    /// Notified when a connection declines its eviction.
    stayed: Notify,
}

#[derive(Debug, Default)]
struct All {
    next: u64,
    /// By a lower bound of the time since which it is idle, and its number.
    seats: BTreeMap<(u64, u64), Arc<Kept>>,
}

/// Activity of one connection, idle at first. Unregistered when the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct Seat(Arc<Taken>);

/// A request in progress.
#[derive(Debug)]
pub(super) struct Asked(Seat);

#[derive(Debug)]
struct Taken {
    idle: Idle,
    kept: Arc<Kept>,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    /// Time under which it is queued; written under the lock of the queue.
    filed: AtomicU64,
    /// [`UNSENT`] and the count of [`ASKED`] (both zero if idle), and [`OUT`].
    work: AtomicU32,
    /// Time at which it last became idle.
    since: AtomicU64,
    leave: Notify,
}

/// Result of an attempt to evict a connection.
enum Found {
    /// A connection was asked to close.
    Left,
    /// The connection idle for longest may not be evicted before this time.
    Fresh(Instant),
    /// All connections are busy.
    None,
}

impl Idle {
    /// Creates an empty set. No connection is evicted before it has been idle for `fresh`.
    pub(super) fn new(fresh: Duration) -> Self {
        Self(Arc::new(Shared {
            fresh,
            begun: Instant::now(),
            all: Mutex::default(),
            wanted: AtomicU32::new(0),
            more: Notify::new(),
            stayed: Notify::new(),
        }))
    }

    /// Registers a new connection.
    pub(super) fn seat(&self) -> Seat {
        let now = self.moment();
        let mut all = locked(&self.0.all);
        let number = all.next;
        all.next += 1;
        let kept = Arc::new(Kept {
            number,
            filed: AtomicU64::new(now),
            work: AtomicU32::new(0),
            since: AtomicU64::new(now),
            leave: Notify::new(),
        });
        all.seats.insert((now, number), Arc::clone(&kept));
        drop(all);
        self.tell_of_more();
        Seat(Arc::new(Taken { idle: self.clone(), kept }))
    }

    /// Asks the connection idle for longest to close; waits until one is idle.
    pub(super) async fn make_room(&self) {
        // Before the first attempt: a connection that becomes idle after it sees that one is waited for.
        let _wanted = Wanted::new(&self.0.wanted);
        loop {
            match self.look() {
                Found::Left => {
                    // Two notifications may have been merged into one.
                    if self.0.wanted.load(Ordering::SeqCst) > 1 {
                        self.0.more.notify_one();
                    }
                    return;
                }
                Found::Fresh(until) => sleep_until(until).await,
                Found::None => self.0.more.notified().await,
            }
        }
    }

    /// Waits until a connection declines its eviction.
    pub(super) async fn stayed(&self) {
        self.0.stayed.notified().await;
    }

    /// Searches the queue from the oldest entry, and corrects outdated entries on the way.
    fn look(&self) -> Found {
        let mut all = locked(&self.0.all);
        while let Some(first) = all.seats.first_entry() {
            let (filed, _) = *first.key();
            let seat = first.remove();
            match seat.idle_since() {
                Some(since) if since <= filed => {
                    let until = self.0.begun + Duration::from_nanos(since) + self.0.fresh;
                    if until <= Instant::now() {
                        seat.leave.notify_one();
                        return Found::Left;
                    }
                    all.file(filed, seat);
                    return Found::Fresh(until);
                }
                Some(since) => all.file(since, seat),
                None => {
                    // It may have become idle just now, without seeing that it is dequeued.
                    if is_idle(seat.work.fetch_or(OUT, Ordering::SeqCst)) {
                        all.back(seat);
                    }
                }
            }
        }
        Found::None
    }

    /// Nanoseconds since the set was created; enough for five centuries.
    fn moment(&self) -> u64 {
        u64::try_from(self.0.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn tell_of_more(&self) {
        if self.0.wanted.load(Ordering::SeqCst) > 0 {
            self.0.more.notify_one();
        }
    }
}

impl All {
    fn file(&mut self, moment: u64, seat: Arc<Kept>) {
        seat.filed.store(moment, Ordering::Relaxed);
        self.seats.insert((moment, seat.number), seat);
    }

    /// Requeues a connection that is idle again, if it is dequeued.
    fn back(&mut self, seat: Arc<Kept>) {
        if seat.work.fetch_and(!OUT, Ordering::SeqCst) & OUT != 0 {
            self.file(seat.since.load(Ordering::SeqCst), seat);
        }
    }
}

impl Seat {
    /// Waits until this connection is to be closed. If it is busy by then, it declines and another one is evicted.
    pub(super) async fn told_to_leave(&self) {
        let Taken { idle, kept } = &*self.0;
        loop {
            kept.leave.notified().await;
            if kept.idle_since().is_some() {
                return;
            }
            locked(&idle.0.all).file(idle.moment(), Arc::clone(kept));
            idle.0.stayed.notify_one();
        }
    }

    /// Marks the start of a request, once its header is read. Drop the guard when the request ends.
    pub(super) fn asked(&self) -> Asked {
        self.0.kept.work.fetch_add(ASKED, Ordering::SeqCst);
        Asked(self.clone())
    }

    /// Notes that bytes were or are about to be written.
    pub(super) fn sending(&self) {
        self.0.kept.work.fetch_or(UNSENT, Ordering::SeqCst);
    }

    /// Notes that the operating system has accepted all bytes written.
    pub(super) fn sent(&self) {
        if self.0.kept.work.load(Ordering::SeqCst) & UNSENT == 0 {
            return;
        }
        // Stored before the connection counts as idle, so that no outdated time is read.
        self.0.kept.since.store(self.0.idle.moment(), Ordering::SeqCst);
        let before = self.0.kept.work.fetch_and(!UNSENT, Ordering::SeqCst);
        if !is_idle(before & !UNSENT) {
            return;
        }
        if before & OUT != 0 {
            locked(&self.0.idle.0.all).back(Arc::clone(&self.0.kept));
        }
        self.0.idle.tell_of_more();
    }
}

impl Kept {
    /// Time since which it has had no request and nothing to send; `None` while it is busy.
    fn idle_since(&self) -> Option<u64> {
        is_idle(self.work.load(Ordering::SeqCst)).then(|| self.since.load(Ordering::SeqCst))
    }
}

/// Returns true if the flags are those of an idle connection.
const fn is_idle(work: u32) -> bool {
    work & !OUT == 0
}

impl Drop for Asked {
    fn drop(&mut self) {
        // The response is still to be sent.
        self.0.0.kept.work.fetch_or(UNSENT, Ordering::SeqCst);
        self.0.0.kept.work.fetch_sub(ASKED, Ordering::SeqCst);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut all = locked(&self.idle.0.all);
        // Read under the lock, since an evicting task may requeue it.
        let filed = self.kept.filed.load(Ordering::Relaxed);
        all.seats.remove(&(filed, self.kept.number));
    }
}

/// Counts one waiting task for as long as it is held.
struct Wanted<'a>(&'a AtomicU32);

impl<'a> Wanted<'a> {
    fn new(wanted: &'a AtomicU32) -> Self {
        wanted.fetch_add(1, Ordering::SeqCst);
        Self(wanted)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
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
        // It was used later than the others and is idle for less time than the fresh one.
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
    fn one_that_was_busy_at_every_look_comes_back_into_the_order() {
        let idle = Idle::new(Duration::ZERO);
        let [first, second] = std::array::from_fn(|_| idle.seat());
        let asked = [first.asked(), second.asked()];
        for _ in 0..3 {
            assert!(idle.make_room().now_or_never().is_none());
            assert!(locked(&idle.0.all).seats.is_empty());
        }
        drop(asked);
        second.sent();
        first.sent();
        // Busy and idle again, which moves it to the end.
        drop(second.asked());
        second.sent();
        for seat in [&first, &second] {
            assert!(idle.make_room().now_or_never().is_some());
            assert!(seat.told_to_leave().now_or_never().is_some());
        }
    }

    #[test]
    fn no_connection_is_lost_from_the_order_while_others_look_for_room() {
        const REQUESTS: usize = 20_000;
        let idle = Idle::new(Duration::ZERO);
        let connection = || {
            let mut seat = idle.seat();
            for _ in 0..REQUESTS {
                drop(seat.asked());
                seat.sent();
                if seat.told_to_leave().now_or_never().is_some() {
                    seat = idle.seat();
                }
            }
            seat
        };
        let seats: Vec<Seat> = std::thread::scope(|scope| {
            let connections: Vec<_> = (0..4).map(|_| scope.spawn(connection)).collect();
            while !connections.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                let _ = idle.make_room().now_or_never();
            }
            connections.into_iter().map(|it| it.join().unwrap()).collect()
        });
        while idle.make_room().now_or_never().is_some() {}
        assert!(locked(&idle.0.all).seats.is_empty());
        for seat in seats {
            assert!(seat.told_to_leave().now_or_never().is_some());
        }
    }

    #[test]
    fn one_that_has_gone_is_not_told() {
        let idle = Idle::new(Duration::ZERO);
        drop(idle.seat());
        assert!(locked(&idle.0.all).seats.is_empty());
        assert!(idle.make_room().now_or_never().is_none());
    }
}
