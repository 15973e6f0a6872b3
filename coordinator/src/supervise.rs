//! Supervises the background tasks that run for the lifetime of the coordinator.
//!
//! A restartable task ([`Rooms::keep`]) is restarted after a pause when it panics, as long as that is rare: its state
//! is in the store or can be read again. A task is lost if it panics repeatedly, if it can't be restarted
//! ([`Rooms::hold`]), or if it returns. Without it the service would silently misbehave, so the caller waiting on
//! [`Watch::lost`] ends the process and the host's service manager restarts it. Every panic is counted and logged at
//! ERROR.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Panics within [`Times::span`] after which a task is lost.
const MOST: usize = 5;

/// Intervals of the supervision, shortened in tests.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// Window in which [`MOST`] panics make a task lost.
    span: Duration,
    /// Pause before a restart; doubled for each further panic within the span.
    pause: Duration,
    /// Time for which a panicked task is reported to the operator.
    lately: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            span: Duration::from_secs(10 * 60),
            pause: Duration::from_secs(1),
            lately: Duration::from_secs(60 * 60),
        }
    }
}

/// A lost task, without which the service would misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// It panicked too often.
    #[error("task {room} crashed {times} times in ten minutes; see the log")]
    Broken {
        /// Task name.
        room: &'static str,
        /// Number of panics.
        times: usize,
    },
    /// It panicked and can't be restarted.
    #[error("task {room} crashed; see the log")]
    Fallen {
        /// Task name.
        room: &'static str,
    },
    /// It returned, which no task should do.
    #[error("task {room} ended unexpectedly; see the log")]
    Ended {
        /// Task name.
        room: &'static str,
    },
}

/// Panic statistics and losses of all supervised tasks of the process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    times: Times,
    /// Every task that was ever started.
    rooms: Mutex<BTreeMap<&'static str, Broke>>,
    lost: watch::Sender<Option<Lost>>,
}

/// Panic count of one task.
#[derive(Debug, Clone, Copy, Default)]
struct Broke {
    times: u64,
    last: Option<Instant>,
}

impl Watch {
    /// Creates a group of tasks that are stopped together.
    pub fn rooms(&self) -> Rooms {
        Rooms { watch: self.clone(), tasks: JoinSet::new(), may_end: Arc::default() }
    }

    /// Waits until a task is lost, and returns the first one.
    pub async fn lost(&self) -> Lost {
        let mut lost = self.0.lost.subscribe();
        loop {
            if let Some(lost) = *lost.borrow_and_update() {
                return lost;
            }
            if lost.changed().await.is_err() {
                // The sender lives as long as `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns how often each task has panicked since the process started.
    pub fn broken(&self) -> Vec<(&'static str, u64)> {
        self.seen().iter().map(|(room, broke)| (*room, broke.times)).collect()
    }

    /// Returns the number of tasks that panicked within the last hour.
    pub fn broken_lately(&self) -> u32 {
        let is_late = |broke: &&Broke| broke.last.is_some_and(|last| last.elapsed() < self.0.times.lately);
        u32::try_from(self.seen().values().filter(is_late).count()).unwrap_or(u32::MAX)
    }

    fn broke(&self, room: &'static str) {
        let mut seen = self.seen();
        let broke = seen.entry(room).or_default();
        broke.times = broke.times.saturating_add(1);
        broke.last = Some(Instant::now());
    }

    fn lose(&self, lost: Lost, may_end: &AtomicBool) {
        if may_end.load(Ordering::Relaxed) {
            return;
        }
        tracing::error!("{lost}");
        self.0.lost.send_if_modified(|first| first.replace(first.unwrap_or(lost)).is_none());
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<&'static str, Broke>> {
        self.0.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A group of tasks that are stopped together. When it is dropped, they are aborted at their next await.
#[derive(Debug)]
pub struct Rooms {
    watch: Watch,
    tasks: JoinSet<()>,
    /// Set before a stop, so that a task that ends then is not reported as lost.
    may_end: Arc<AtomicBool>,
}

impl Rooms {
    /// Spawns a task that is restarted when it panics. `room`, such as `calendar`, is a label of the metrics.
    pub fn keep<B, F>(&mut self, room: &'static str, begin: B)
    where
        B: FnMut() -> F + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        self.watch.seen().entry(room).or_default();
        let (watch, may_end) = (self.watch.clone(), Arc::clone(&self.may_end));
        self.tasks.spawn(async move {
            let lost = keep(&watch, room, begin).await;
            watch.lose(lost, &may_end);
        });
    }

    /// Spawns a task that can't be restarted, because only it holds its state: one panic makes it lost.
    pub fn hold(&mut self, room: &'static str, standing: impl Future<Output = ()> + Send + 'static) {
        self.watch.seen().entry(room).or_default();
        let (watch, may_end) = (self.watch.clone(), Arc::clone(&self.may_end));
        self.tasks.spawn(async move {
            let lost = match AssertUnwindSafe(standing).catch_unwind().await {
                Ok(()) => Lost::Ended { room },
                Err(panic) => {
                    tracing::error!(room, why = why(panic.as_ref()), "a background task crashed");
                    watch.broke(room);
                    Lost::Fallen { room }
                }
            };
            watch.lose(lost, &may_end);
        });
    }

    /// Announces a stop: tasks that end from now on, because their inputs close, are not reported as lost.
    pub fn let_end(&self) {
        self.may_end.store(true, Ordering::Relaxed);
    }

    /// Aborts all tasks and waits until they have released their resources.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Runs a task, restarting it while that is allowed; returns how it was lost.
async fn keep<B, F>(watch: &Watch, room: &'static str, mut begin: B) -> Lost
where
    B: FnMut() -> F,
    F: Future<Output = ()>,
{
    let mut breaks = VecDeque::new();
    loop {
        let standing = async { begin().await };
        let Err(panic) = AssertUnwindSafe(standing).catch_unwind().await else {
            return Lost::Ended { room };
        };
        watch.broke(room);
        breaks.retain(|at: &Instant| at.elapsed() < watch.0.times.span);
        breaks.push_back(Instant::now());
        let (times, why) = (breaks.len(), why(panic.as_ref()));
        if times >= MOST {
            tracing::error!(room, why, times, "a background task crashed too often");
            return Lost::Broken { room, times };
        }
        let pause = watch.0.times.pause * (1 << (times - 1));
        tracing::error!(room, why, times, ?pause, "a background task crashed and is restarted");
        sleep(pause).await;
    }
}

/// The message of a panic.
fn why(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no panic message")
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::mpsc;

    use super::*;

    const ROOM: &str = "calendar";
    /// Longer than any test.
    const LONG: Duration = Duration::from_secs(3600);

    /// A supervisor with these intervals.
    fn watch(span: Duration, lately: Duration) -> Watch {
        let times = Times { span, pause: Duration::from_millis(2), lately };
        Watch(Arc::new(Seen { times, ..Seen::default() }))
    }

    /// Spawns a task that reports each start and panics at once.
    fn break_off(rooms: &mut Rooms) -> mpsc::UnboundedReceiver<Instant> {
        let (begun, begins) = mpsc::unbounded_channel();
        rooms.keep(ROOM, move || {
            begun.send(Instant::now()).unwrap();
            async { panic!("on purpose") }
        });
        begins
    }

    #[tokio::test]
    async fn a_room_that_breaks_off_is_begun_anew_after_pauses_that_grow_until_it_is_lost() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.rooms();
        let mut begins = break_off(&mut rooms);
        let mut last = begins.recv().await.unwrap();
        for pause in [2, 4, 8, 16] {
            let next = begins.recv().await.unwrap();
            assert!(next - last >= Duration::from_millis(pause), "{:?}", next - last);
            last = next;
        }
        let lost = watch.lost().await;
        assert_eq!(lost, Lost::Broken { room: ROOM, times: MOST });
        assert_eq!(lost.to_string(), "task calendar crashed 5 times in ten minutes; see the log");
        assert_eq!((watch.broken(), watch.broken_lately()), (vec![(ROOM, 5)], 1));
        assert_eq!(begins.recv().await, None, "it is not restarted any more");
    }

    #[tokio::test]
    async fn a_room_that_breaks_off_seldom_stands_for_ever_and_is_news_for_a_while() {
        let watch = watch(Duration::ZERO, Duration::ZERO);
        let mut rooms = watch.rooms();
        let mut begins = break_off(&mut rooms);
        for _ in 0..4 * MOST {
            begins.recv().await.unwrap();
        }
        rooms.stop().await;
        assert!(watch.lost().now_or_never().is_none());
        assert!(watch.broken()[0].1 >= 4 * MOST as u64 - 1);
        assert_eq!(watch.broken_lately(), 0);
    }

    #[tokio::test]
    async fn what_breaks_off_while_it_is_begun_is_begun_anew_too() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.rooms();
        let (begun, mut begins) = mpsc::unbounded_channel();
        rooms.keep(ROOM, move || {
            begun.send(()).unwrap();
            assert!(begun.is_closed(), "on purpose");
            pending()
        });
        begins.recv().await.unwrap();
        begins.recv().await.unwrap();
        assert_eq!(watch.broken_lately(), 1);
    }

    #[tokio::test]
    async fn one_that_ends_or_can_not_be_begun_anew_is_lost_and_the_first_is_told() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.rooms();
        rooms.keep("guest", || async {});
        assert_eq!(watch.lost().await, Lost::Ended { room: "guest" });
        rooms.hold("pipeline", async { panic!("on purpose") });
        while rooms.tasks.join_next().await.is_some() {}
        assert_eq!(watch.lost().await, Lost::Ended { room: "guest" });
        assert_eq!(watch.broken(), [("guest", 0), ("pipeline", 1)]);
        let other = Watch::default();
        let mut rooms = other.rooms();
        rooms.hold("pipeline", async { panic!("on purpose") });
        assert_eq!(other.lost().await, Lost::Fallen { room: "pipeline" });
    }

    #[tokio::test]
    async fn rooms_that_are_stopped_let_go_of_what_they_hold_and_are_not_lost() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.rooms();
        let (held, mut begins) = mpsc::unbounded_channel();
        let holding = held.clone();
        rooms.keep(ROOM, move || {
            held.send(()).unwrap();
            pending()
        });
        rooms.hold("pipeline", async move {
            holding.send(()).unwrap();
            pending().await
        });
        begins.recv().await.unwrap();
        begins.recv().await.unwrap();
        rooms.let_end();
        rooms.hold("guest", async {});
        rooms.stop().await;
        assert_eq!(begins.recv().await, None, "both are gone");
        assert!(watch.lost().now_or_never().is_none());
    }
}
