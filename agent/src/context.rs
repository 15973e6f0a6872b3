//! State shared by the tasks of a running agent.

use crate::clock::AgentClock;
use crate::config::AgentConfig;
use crate::data_folder::{DataFolder, Membership};
use crate::detail_sampling::DetailSampler;
use crate::probe::Probes;
use crate::queue::ResultQueue;
use crate::schedule::AgentSchedule;
use parallax_certs::csr::AgentKey;
use parallax_certs::server_verifier::CoordinatorTime;
use parallax_protocol::id::WireMonitorId;
use parallax_protocol::result::{CheckResult, WireOutcome, WireOwnFault};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// State of one agent. Lock order: the queue before the schedule.
#[derive(Debug)]
pub(crate) struct AgentContext {
    pub(crate) config: AgentConfig,
    pub(crate) clock: AgentClock,
    pub(crate) data_folder: DataFolder,
    pub(crate) probes: Probes,
    pub(crate) coordinator_time: Arc<CoordinatorTime>,
    pub(crate) schedule_changed: Notify,
    pub(crate) queue_changed: Notify,
    pub(crate) renewal_wanted: Notify,
    pub(crate) counters: AgentCounters,
    pub(crate) faults: watch::Sender<Vec<WireOwnFault>>,
    /// True while dns monitors can be checked: their name servers may be unreachable while the host's own
    /// work.
    pub(crate) resolves_records: watch::Sender<bool>,
    pub(crate) connected_since_ms: Mutex<Option<i64>>,
    /// Reason for the end or failure of the newest connection.
    pub(crate) connection_error: Mutex<String>,
    /// True if the membership is over and its files are deleted. Locked while files are written.
    pub(crate) is_erased: Mutex<bool>,
    schedule: Mutex<AgentSchedule>,
    queue: Mutex<ResultQueue>,
    detail_sampler: Mutex<DetailSampler>,
    membership: Mutex<Membership>,
    check_nows: Mutex<BTreeMap<WireMonitorId, usize>>,
    pending_key: Mutex<Option<AgentKey>>,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct AgentCounters {
    pub(crate) running: AtomicUsize,
    /// Iterations of the runner's loop; a stuck loop shows here.
    pub(crate) runner_loops: AtomicU64,
    pub(crate) passed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) inconclusive: AtomicU64,
    /// Inconclusive for lack of descriptors or ports.
    pub(crate) exhausted: AtomicU64,
    pub(crate) check_nows: AtomicU64,
    pub(crate) connections: AtomicU64,
}

impl AgentContext {
    pub(crate) fn new(
        config: AgentConfig,
        clock: AgentClock,
        home: DataFolder,
        probes: Probes,
        membership: Membership,
        queue: ResultQueue,
    ) -> Self {
        let known = CoordinatorTime::new(Some(membership.record.coordinator_ms / 1000));
        Self {
            config,
            clock,
            data_folder: home,
            probes,
            coordinator_time: known,
            schedule_changed: Notify::new(),
            queue_changed: Notify::new(),
            renewal_wanted: Notify::new(),
            counters: AgentCounters::default(),
            faults: watch::Sender::new(Vec::new()),
            resolves_records: watch::Sender::new(true),
            connected_since_ms: Mutex::new(None),
            connection_error: Mutex::new(String::new()),
            is_erased: Mutex::new(false),
            schedule: Mutex::default(),
            queue: Mutex::new(queue),
            detail_sampler: Mutex::new(DetailSampler::default()),
            membership: Mutex::new(membership),
            check_nows: Mutex::new(BTreeMap::new()),
            pending_key: Mutex::new(None),
        }
    }

    pub(crate) fn schedule(&self) -> MutexGuard<'_, AgentSchedule> {
        lock(&self.schedule)
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, ResultQueue> {
        lock(&self.queue)
    }

    pub(crate) fn membership(&self) -> MutexGuard<'_, Membership> {
        lock(&self.membership)
    }

    /// Returns the key of a pending certificate request.
    pub(crate) fn pending_key(&self) -> MutexGuard<'_, Option<AgentKey>> {
        lock(&self.pending_key)
    }

    /// Queues a scheduled result.
    pub(crate) fn push(&self, mut result: CheckResult, ended_mono_ms: i64) {
        self.counters.count(&result.report.outcome);
        lock(&self.detail_sampler).strip_details(&mut result);
        let news = self.queue().push(result, ended_mono_ms, |monitor| self.schedule().slot_of(monitor));
        if news {
            self.queue_changed.notify_one();
        }
    }

    /// Removes the state of monitors that are no longer assigned.
    pub(crate) fn remove_unassigned(&self) {
        let schedule = self.schedule();
        lock(&self.detail_sampler).retain(|monitor| schedule.slot_of(monitor).is_some());
    }

    /// Counts a check-now of this monitor; returns `None` if the maximum is already running.
    pub(crate) fn begin_check_now(self: &Arc<Self>, monitor: WireMonitorId) -> Option<RunningCheckNow> {
        // The sweep and the second round of its region, and confirmations for two rounds of two other
        // regions: a target that does not respond has them all waiting at the same time.
        const AT_ONCE: usize = 6;
        let mut check_nows = lock(&self.check_nows);
        let running = check_nows.entry(monitor).or_default();
        if *running >= AT_ONCE {
            return None;
        }
        *running += 1;
        self.counters.check_nows.fetch_add(1, Ordering::Relaxed);
        Some(RunningCheckNow { shared: Arc::clone(self), monitor })
    }
}

impl AgentCounters {
    pub(crate) fn count(&self, outcome: &WireOutcome) {
        if *outcome == WireOutcome::Inconclusive(WireOwnFault::NoDescriptors) {
            self.exhausted.fetch_add(1, Ordering::Relaxed);
        }
        let counter = match outcome {
            WireOutcome::Passed => &self.passed,
            WireOutcome::Failed(_) => &self.failed,
            WireOutcome::Inconclusive(_) => &self.inconclusive,
            WireOutcome::Pending => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A running check-now; dropping it decrements the count.
#[derive(Debug)]
pub(crate) struct RunningCheckNow {
    shared: Arc<AgentContext>,
    monitor: WireMonitorId,
}

impl Drop for RunningCheckNow {
    fn drop(&mut self) {
        let mut check_nows = lock(&self.shared.check_nows);
        if let Some(running) = check_nows.get_mut(&self.monitor) {
            *running = running.saturating_sub(1);
            if *running == 0 {
                check_nows.remove(&self.monitor);
            }
        }
    }
}

/// Locks a mutex. A panic elsewhere left the value consistent: every change under these locks is one call.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
