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
        let mut failures = self.0.failure.subscribe();
        loop {
            if let Some(failure) = *failures.borrow_and_update() {
                return failure;
            }
            if failures.changed().await.is_err() {
                // The sender lives as long as `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns how often each task has panicked since the process started.
    pub fn crash_counts(&self) -> Vec<(&'static str, u64)> {
        self.tasks().iter().map(|(task, record)| (*task, record.crashes)).collect()
    }

    /// Returns the number of tasks that panicked within the last hour.
    pub fn recently_crashed(&self) -> u32 {
        let is_recent =
            |crash_count: &&CrashCount| crash_count.last.is_some_and(|last| last.elapsed() < self.0.intervals.recent);
        u32::try_from(self.tasks().values().filter(is_recent).count()).unwrap_or(u32::MAX)
    }

    fn record_crash(&self, task: &'static str) {
        let mut tasks = self.tasks();
        let count = tasks.entry(task).or_default();
        count.crashes = count.crashes.saturating_add(1);
        count.last = Some(Instant::now());
    }

    fn record_failure(&self, failure: TaskFailure, exit_expected: &AtomicBool) {
        if exit_expected.load(Ordering::Relaxed) {
            return;
        }
        tracing::error!("{failure}");
        self.0.failure.send_if_modified(|first| first.replace(first.unwrap_or(failure)).is_none());
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
    pub fn spawn_restarting<B, F>(&mut self, task: &'static str, start: B)
    where
        B: FnMut() -> F + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        self.supervisor.tasks().entry(task).or_default();
        let (supervisor, exit_expected) = (self.supervisor.clone(), Arc::clone(&self.exit_expected));
        self.tasks.spawn(async move {
            let failure = run_restarting(&supervisor, task, start).await;
            supervisor.record_failure(failure, &exit_expected);
        });
    }

    /// Spawns a task that can't be restarted, because only the task itself has its state: one panic makes it lost.
    pub fn spawn_once(&mut self, task: &'static str, future: impl Future<Output = ()> + Send + 'static) {
        self.supervisor.tasks().entry(task).or_default();
        let (supervisor, exit_expected) = (self.supervisor.clone(), Arc::clone(&self.exit_expected));
        self.tasks.spawn(async move {
            let failure = match AssertUnwindSafe(future).catch_unwind().await {
                Ok(()) => TaskFailure::Exited { task },
                Err(panic) => {
                    tracing::error!(task, why = panic_message(panic.as_ref()), "a background task crashed");
                    supervisor.record_crash(task);
                    TaskFailure::Crashed { task }
                }
            };
            supervisor.record_failure(failure, &exit_expected);
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
async fn run_restarting<B, F>(supervisor: &Supervisor, task: &'static str, mut start: B) -> TaskFailure
where
    B: FnMut() -> F,
    F: Future<Output = ()>,
{
    let mut crashes = VecDeque::new();
    loop {
        let future = async { start().await };
        let Err(panic) = AssertUnwindSafe(future).catch_unwind().await else {
            return TaskFailure::Exited { task };
        };
        supervisor.record_crash(task);
        crashes.retain(|at: &Instant| at.elapsed() < supervisor.0.intervals.window);
        crashes.push_back(Instant::now());
        let (times, why) = (crashes.len(), panic_message(panic.as_ref()));
        if times >= MAX_CRASHES {
            tracing::error!(task, why, times, "a background task crashed too often");
            return TaskFailure::CrashLoop { task, times };
        }
        let pause = supervisor.0.intervals.pause * (1 << (times - 1));
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

    const TASK: &str = "calendar";
    /// Longer than any test.
    const LONG: Duration = Duration::from_secs(3600);

    /// A supervisor with these intervals.
    fn supervisor_with(window: Duration, recent: Duration) -> Supervisor {
        let intervals = Intervals { window, pause: Duration::from_millis(2), recent };
        Supervisor(Arc::new(SupervisorState { intervals, ..SupervisorState::default() }))
    }

    /// Spawns a task that reports each start and panics at once.
    fn spawn_crashing(tasks: &mut TaskGroup) -> mpsc::UnboundedReceiver<Instant> {
        let (start_sender, starts) = mpsc::unbounded_channel();
        tasks.spawn_restarting(TASK, move || {
            start_sender.send(Instant::now()).unwrap();
            async { panic!("on purpose") }
        });
        starts
    }

    #[tokio::test]
    async fn a_crashing_task_is_restarted_after_growing_pauses_until_it_is_lost() {
        let supervisor = supervisor_with(LONG, LONG);
        let mut tasks = supervisor.task_group();
        let mut starts = spawn_crashing(&mut tasks);
        let mut last = starts.recv().await.unwrap();
        for pause in [2, 4, 8, 16] {
            let next = starts.recv().await.unwrap();
            assert!(next - last >= Duration::from_millis(pause), "{:?}", next - last);
            last = next;
        }
        let failure = supervisor.first_failure().await;
        assert_eq!(failure, TaskFailure::CrashLoop { task: TASK, times: MAX_CRASHES });
        assert_eq!(failure.to_string(), "task calendar crashed 5 times in ten minutes; see the log");
        assert_eq!((supervisor.crash_counts(), supervisor.recently_crashed()), (vec![(TASK, 5)], 1));
        assert_eq!(starts.recv().await, None, "it is not restarted any more");
    }

    #[tokio::test]
    async fn a_rarely_crashing_task_is_always_restarted_and_reported_for_a_while() {
        let supervisor = supervisor_with(Duration::ZERO, Duration::ZERO);
        let mut tasks = supervisor.task_group();
        let mut starts = spawn_crashing(&mut tasks);
        for _ in 0..4 * MAX_CRASHES {
            starts.recv().await.unwrap();
        }
        tasks.stop().await;
        assert!(supervisor.first_failure().now_or_never().is_none());
        assert!(supervisor.crash_counts()[0].1 >= 4 * MAX_CRASHES as u64 - 1);
        assert_eq!(supervisor.recently_crashed(), 0);
    }

    #[tokio::test]
    async fn a_task_that_panics_while_it_starts_is_restarted_too() {
        let supervisor = supervisor_with(LONG, LONG);
        let mut tasks = supervisor.task_group();
        let (start_sender, mut starts) = mpsc::unbounded_channel();
        tasks.spawn_restarting(TASK, move || {
            start_sender.send(()).unwrap();
            assert!(start_sender.is_closed(), "on purpose");
            pending()
        });
        starts.recv().await.unwrap();
        starts.recv().await.unwrap();
        assert_eq!(supervisor.recently_crashed(), 1);
    }

    #[tokio::test]
    async fn a_task_that_returns_or_cannot_be_restarted_is_lost_and_the_first_loss_is_reported() {
        let supervisor = supervisor_with(LONG, LONG);
        let mut tasks = supervisor.task_group();
        tasks.spawn_restarting("guest", || async {});
        assert_eq!(supervisor.first_failure().await, TaskFailure::Exited { task: "guest" });
        tasks.spawn_once("pipeline", async { panic!("on purpose") });
        while tasks.tasks.join_next().await.is_some() {}
        assert_eq!(supervisor.first_failure().await, TaskFailure::Exited { task: "guest" });
        assert_eq!(supervisor.crash_counts(), [("guest", 0), ("pipeline", 1)]);
        let other = Supervisor::default();
        let mut tasks = other.task_group();
        tasks.spawn_once("pipeline", async { panic!("on purpose") });
        assert_eq!(other.first_failure().await, TaskFailure::Crashed { task: "pipeline" });
    }

    #[tokio::test]
    async fn stopped_tasks_release_their_resources_and_are_not_lost() {
        let supervisor = supervisor_with(LONG, LONG);
        let mut tasks = supervisor.task_group();
        let (start_sender, mut starts) = mpsc::unbounded_channel();
        let second_sender = start_sender.clone();
        tasks.spawn_restarting(TASK, move || {
            start_sender.send(()).unwrap();
            pending()
        });
        tasks.spawn_once("pipeline", async move {
            second_sender.send(()).unwrap();
            pending().await
        });
        starts.recv().await.unwrap();
        starts.recv().await.unwrap();
        tasks.expect_exit();
        tasks.spawn_once("guest", async {});
        tasks.stop().await;
        assert_eq!(starts.recv().await, None, "both are gone");
        assert!(supervisor.first_failure().now_or_never().is_none());
    }
}
