//! Supervises the background tasks that run for the lifetime of the coordinator.
//!
//! A restartable task ([`TaskGroup::spawn_restarting`]) is restarted after a pause when it panics, as long as that is
//! rare: its state is in the store or can be read again. A task is lost if it panics repeatedly, if it can't be
//! restarted ([`TaskGroup::spawn_once`]), or if it returns. Without it the service would silently misbehave, so the
//! caller waiting on [`Supervisor::first_failure`] ends the process and the host's service manager restarts it. Every
//! panic is counted and logged at ERROR.
//!
//! A [`JoinSet`] holds each group, since it aborts its tasks when it is dropped. `tokio_util`'s `TaskTracker` doesn't,
//! and no task group of a well-kept crate restarts tasks, counts their panics and reports the first loss.

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

/// Panics within [`Intervals::window`] after which a task is lost.
const MAX_CRASHES: usize = 5;

/// Intervals of the supervision, shortened in tests.
#[derive(Debug, Clone, Copy)]
struct Intervals {
    /// Window in which [`MAX_CRASHES`] panics make a task lost.
    window: Duration,
    /// Pause before a restart; doubled for each further panic within the window.
    pause: Duration,
    /// Time for which a panicked task is reported to the operator.
    recent: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10 * 60),
            pause: Duration::from_secs(1),
            recent: Duration::from_secs(60 * 60),
        }
    }
}

/// A lost task, without which the service would misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TaskFailure {
    /// It panicked too often.
    #[error("task {task} crashed {times} times in ten minutes; see the log")]
    CrashLoop {
        /// Task name.
        task: &'static str,
        /// Number of panics.
        times: usize,
    },
    /// It panicked and can't be restarted.
    #[error("task {task} crashed; see the log")]
    Crashed {
        /// Task name.
        task: &'static str,
    },
    /// It returned, which no task should do.
    #[error("task {task} ended unexpectedly; see the log")]
    Exited {
        /// Task name.
        task: &'static str,
    },
}

/// Panic statistics and losses of all supervised tasks of the process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Supervisor(Arc<SupervisorState>);

#[derive(Debug, Default)]
struct SupervisorState {
    intervals: Intervals,
    /// Every task that was ever started.
    tasks: Mutex<BTreeMap<&'static str, CrashCount>>,
    failure: watch::Sender<Option<TaskFailure>>,
}

/// Panic count of one task.
#[derive(Debug, Clone, Copy, Default)]
struct CrashCount {
    crashes: u64,
    last: Option<Instant>,
}

impl Supervisor {
    /// Creates a group of tasks that are stopped together.
    pub fn task_group(&self) -> TaskGroup {
        TaskGroup { supervisor: self.clone(), tasks: JoinSet::new(), exit_expected: Arc::default() }
    }

    /// Waits until a task is lost, and returns the first one.
    pub async fn first_failure(&self) -> TaskFailure {
        let mut lost = self.0.failure.subscribe();
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
    pub fn crash_counts(&self) -> Vec<(&'static str, u64)> {
        self.tasks().iter().map(|(task, broke)| (*task, broke.crashes)).collect()
    }

    /// Returns the number of tasks that panicked within the last hour.
    pub fn recently_crashed(&self) -> u32 {
        let is_late = |broke: &&CrashCount| broke.last.is_some_and(|last| last.elapsed() < self.0.intervals.recent);
        u32::try_from(self.tasks().values().filter(is_late).count()).unwrap_or(u32::MAX)
    }

    fn record_crash(&self, task: &'static str) {
        let mut seen = self.tasks();
        let broke = seen.entry(task).or_default();
        broke.crashes = broke.crashes.saturating_add(1);
        broke.last = Some(Instant::now());
    }

    fn record_failure(&self, lost: TaskFailure, may_end: &AtomicBool) {
        if may_end.load(Ordering::Relaxed) {
            return;
        }
        tracing::error!("{lost}");
        self.0.failure.send_if_modified(|first| first.replace(first.unwrap_or(lost)).is_none());
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<&'static str, CrashCount>> {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A group of tasks that are stopped together. When it is dropped, they are aborted at their next await.
#[derive(Debug)]
pub struct TaskGroup {
    supervisor: Supervisor,
    tasks: JoinSet<()>,
    /// Set before a stop, so that a task that ends then is not reported as lost.
    exit_expected: Arc<AtomicBool>,
}

impl TaskGroup {
    /// Spawns a task that is restarted when it panics. `task`, such as `calendar`, is the value of the metrics' label
    /// `room`.
    pub fn spawn_restarting<B, F>(&mut self, task: &'static str, begin: B)
    where
        B: FnMut() -> F + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        self.supervisor.tasks().entry(task).or_default();
        let (watch, may_end) = (self.supervisor.clone(), Arc::clone(&self.exit_expected));
        self.tasks.spawn(async move {
            let lost = run_restarting(&watch, task, begin).await;
            watch.record_failure(lost, &may_end);
        });
    }

    /// Spawns a task that can't be restarted, because only it holds its state: one panic makes it lost.
    pub fn spawn_once(&mut self, task: &'static str, standing: impl Future<Output = ()> + Send + 'static) {
        self.supervisor.tasks().entry(task).or_default();
        let (watch, may_end) = (self.supervisor.clone(), Arc::clone(&self.exit_expected));
        self.tasks.spawn(async move {
            let lost = match AssertUnwindSafe(standing).catch_unwind().await {
                Ok(()) => TaskFailure::Exited { task },
                Err(panic) => {
                    tracing::error!(task, why = panic_message(panic.as_ref()), "a background task crashed");
                    watch.record_crash(task);
                    TaskFailure::Crashed { task }
                }
            };
            watch.record_failure(lost, &may_end);
        });
    }

    /// Announces a stop: tasks that end from now on, because their inputs close, are not reported as lost.
    pub fn expect_exit(&self) {
        self.exit_expected.store(true, Ordering::Relaxed);
    }

    /// Aborts all tasks and waits until they have released their resources.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Runs a task, restarting it while that is allowed; returns how it was lost.
async fn run_restarting<B, F>(watch: &Supervisor, task: &'static str, mut begin: B) -> TaskFailure
where
    B: FnMut() -> F,
    F: Future<Output = ()>,
{
    let mut breaks = VecDeque::new();
    loop {
        let standing = async { begin().await };
        let Err(panic) = AssertUnwindSafe(standing).catch_unwind().await else {
            return TaskFailure::Exited { task };
        };
        watch.record_crash(task);
        breaks.retain(|at: &Instant| at.elapsed() < watch.0.intervals.window);
        breaks.push_back(Instant::now());
        let (times, why) = (breaks.len(), panic_message(panic.as_ref()));
        if times >= MAX_CRASHES {
            tracing::error!(task, why, times, "a background task crashed too often");
            return TaskFailure::CrashLoop { task, times };
        }
        let pause = watch.0.intervals.pause * (1 << (times - 1));
        tracing::error!(task, why, times, ?pause, "a background task crashed and is restarted");
        sleep(pause).await;
    }
}

/// The message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
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
    fn watch(span: Duration, lately: Duration) -> Supervisor {
        let times = Intervals { window: span, pause: Duration::from_millis(2), recent: lately };
        Supervisor(Arc::new(SupervisorState { intervals: times, ..SupervisorState::default() }))
    }

    /// Spawns a task that reports each start and panics at once.
    fn break_off(rooms: &mut TaskGroup) -> mpsc::UnboundedReceiver<Instant> {
        let (begun, begins) = mpsc::unbounded_channel();
        rooms.spawn_restarting(ROOM, move || {
            begun.send(Instant::now()).unwrap();
            async { panic!("on purpose") }
        });
        begins
    }

    #[tokio::test]
    async fn a_room_that_breaks_off_is_begun_anew_after_pauses_that_grow_until_it_is_lost() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.task_group();
        let mut begins = break_off(&mut rooms);
        let mut last = begins.recv().await.unwrap();
        for pause in [2, 4, 8, 16] {
            let next = begins.recv().await.unwrap();
            assert!(next - last >= Duration::from_millis(pause), "{:?}", next - last);
            last = next;
        }
        let lost = watch.first_failure().await;
        assert_eq!(lost, TaskFailure::CrashLoop { task: ROOM, times: MAX_CRASHES });
        assert_eq!(lost.to_string(), "task calendar crashed 5 times in ten minutes; see the log");
        assert_eq!((watch.crash_counts(), watch.recently_crashed()), (vec![(ROOM, 5)], 1));
        assert_eq!(begins.recv().await, None, "it is not restarted any more");
    }

    #[tokio::test]
    async fn a_room_that_breaks_off_seldom_stands_for_ever_and_is_news_for_a_while() {
        let watch = watch(Duration::ZERO, Duration::ZERO);
        let mut rooms = watch.task_group();
        let mut begins = break_off(&mut rooms);
        for _ in 0..4 * MAX_CRASHES {
            begins.recv().await.unwrap();
        }
        rooms.stop().await;
        assert!(watch.first_failure().now_or_never().is_none());
        assert!(watch.crash_counts()[0].1 >= 4 * MAX_CRASHES as u64 - 1);
        assert_eq!(watch.recently_crashed(), 0);
    }

    #[tokio::test]
    async fn what_breaks_off_while_it_is_begun_is_begun_anew_too() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.task_group();
        let (begun, mut begins) = mpsc::unbounded_channel();
        rooms.spawn_restarting(ROOM, move || {
            begun.send(()).unwrap();
            assert!(begun.is_closed(), "on purpose");
            pending()
        });
        begins.recv().await.unwrap();
        begins.recv().await.unwrap();
        assert_eq!(watch.recently_crashed(), 1);
    }

    #[tokio::test]
    async fn one_that_ends_or_can_not_be_begun_anew_is_lost_and_the_first_is_told() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.task_group();
        rooms.spawn_restarting("guest", || async {});
        assert_eq!(watch.first_failure().await, TaskFailure::Exited { task: "guest" });
        rooms.spawn_once("pipeline", async { panic!("on purpose") });
        while rooms.tasks.join_next().await.is_some() {}
        assert_eq!(watch.first_failure().await, TaskFailure::Exited { task: "guest" });
        assert_eq!(watch.crash_counts(), [("guest", 0), ("pipeline", 1)]);
        let other = Supervisor::default();
        let mut rooms = other.task_group();
        rooms.spawn_once("pipeline", async { panic!("on purpose") });
        assert_eq!(other.first_failure().await, TaskFailure::Crashed { task: "pipeline" });
    }

    #[tokio::test]
    async fn rooms_that_are_stopped_let_go_of_what_they_hold_and_are_not_lost() {
        let watch = watch(LONG, LONG);
        let mut rooms = watch.task_group();
        let (held, mut begins) = mpsc::unbounded_channel();
        let holding = held.clone();
        rooms.spawn_restarting(ROOM, move || {
            held.send(()).unwrap();
            pending()
        });
        rooms.spawn_once("pipeline", async move {
            holding.send(()).unwrap();
            pending().await
        });
        begins.recv().await.unwrap();
        begins.recv().await.unwrap();
        rooms.expect_exit();
        rooms.spawn_once("guest", async {});
        rooms.stop().await;
        assert_eq!(begins.recv().await, None, "both are gone");
        assert!(watch.first_failure().now_or_never().is_none());
    }
}
