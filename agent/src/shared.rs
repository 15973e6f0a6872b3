//! State shared by the tasks of a running agent.

use crate::clock::Clock;
use crate::config::Config;
use crate::detail::Details;
use crate::home::{Home, Membership};
use crate::probe::Net;
use crate::queue::Queue;
use crate::schedule::Schedule;
use parallax_certs::csr::AgentKey;
use parallax_certs::verify::KnownTime;
use parallax_protocol::id::MonitorId;
use parallax_protocol::result::{CheckResult, Outcome, OwnFault};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// State of one agent. Lock order: the queue before the schedule.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) home: Home,
    pub(crate) net: Net,
    pub(crate) known: Arc<KnownTime>,
    pub(crate) schedule_changed: Notify,
    pub(crate) queue_changed: Notify,
    pub(crate) renewal_wanted: Notify,
    pub(crate) counts: Counts,
    pub(crate) faults: watch::Sender<Vec<OwnFault>>,
    /// True while dns monitors can be checked: their name servers may be unreachable while the host's own
    /// work.
    pub(crate) resolves_records: watch::Sender<bool>,
    pub(crate) connected_since_ms: Mutex<Option<i64>>,
    /// Reason for the end or failure of the newest connection.
    pub(crate) link_fault: Mutex<String>,
    /// True if the membership is over and its files are deleted. Locked while files are written.
    pub(crate) erased: Mutex<bool>,
    schedule: Mutex<Schedule>,
    queue: Mutex<Queue>,
    details: Mutex<Details>,
    membership: Mutex<Membership>,
    asked: Mutex<BTreeMap<MonitorId, usize>>,
    awaited: Mutex<Option<AgentKey>>,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) running: AtomicUsize,
    /// Iterations of the runner's loop; a stuck loop shows here.
    pub(crate) turns: AtomicU64,
    pub(crate) passed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) inconclusive: AtomicU64,
    /// Inconclusive for lack of descriptors or ports.
    pub(crate) exhausted: AtomicU64,
    pub(crate) asked: AtomicU64,
    pub(crate) connections: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        clock: Clock,
        home: Home,
        net: Net,
        membership: Membership,
        queue: Queue,
    ) -> Self {
        let known = KnownTime::new(Some(membership.record.coordinator_ms / 1000));
        Self {
            config,
            clock,
            home,
            net,
            known,
            schedule_changed: Notify::new(),
            queue_changed: Notify::new(),
            renewal_wanted: Notify::new(),
            counts: Counts::default(),
            faults: watch::Sender::new(Vec::new()),
            resolves_records: watch::Sender::new(true),
            connected_since_ms: Mutex::new(None),
            link_fault: Mutex::new(String::new()),
            erased: Mutex::new(false),
            schedule: Mutex::default(),
            queue: Mutex::new(queue),
            details: Mutex::new(Details::default()),
            membership: Mutex::new(membership),
            asked: Mutex::new(BTreeMap::new()),
            awaited: Mutex::new(None),
        }
    }

    pub(crate) fn schedule(&self) -> MutexGuard<'_, Schedule> {
        locked(&self.schedule)
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        locked(&self.queue)
    }

    pub(crate) fn membership(&self) -> MutexGuard<'_, Membership> {
        locked(&self.membership)
    }

    /// Returns the key of a pending certificate request.
    pub(crate) fn awaited(&self) -> MutexGuard<'_, Option<AgentKey>> {
        locked(&self.awaited)
    }

    /// Queues a scheduled result.
    pub(crate) fn push(&self, mut result: CheckResult, ended_mono_ms: i64) {
        self.counts.count(&result.report.outcome);
        locked(&self.details).thin(&mut result);
        let news = self.queue().push(result, ended_mono_ms, |monitor| self.schedule().slot_of(monitor));
        if news {
            self.queue_changed.notify_one();
        }
    }

    /// Removes the state of monitors that are no longer assigned.
    pub(crate) fn forget_unassigned(&self) {
        let schedule = self.schedule();
        locked(&self.details).retain(|monitor| schedule.slot_of(monitor).is_some());
    }

    /// Counts a check-now of this monitor; returns `None` if the maximum is already running.
    pub(crate) fn ask_of(self: &Arc<Self>, monitor: MonitorId) -> Option<Asked> {
        // The sweep and the second round of its region, and confirmations for two rounds of two other
        // regions: a target that does not respond has them all waiting at the same time.
        const AT_ONCE: usize = 6;
        let mut asked = locked(&self.asked);
        let running = asked.entry(monitor).or_default();
        if *running >= AT_ONCE {
            return None;
        }
        *running += 1;
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        Some(Asked { shared: Arc::clone(self), monitor })
    }
}

impl Counts {
    pub(crate) fn count(&self, outcome: &Outcome) {
        if *outcome == Outcome::Inconclusive(OwnFault::NoDescriptors) {
            self.exhausted.fetch_add(1, Ordering::Relaxed);
        }
        let counter = match outcome {
            Outcome::Passed => &self.passed,
            Outcome::Failed(_) => &self.failed,
            Outcome::Inconclusive(_) => &self.inconclusive,
            Outcome::Pending => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A running check-now; dropping it decrements the count.
#[derive(Debug)]
pub(crate) struct Asked {
    shared: Arc<Shared>,
    monitor: MonitorId,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut asked = locked(&self.shared.asked);
        if let Some(running) = asked.get_mut(&self.monitor) {
            *running = running.saturating_sub(1);
            if *running == 0 {
                asked.remove(&self.monitor);
            }
        }
    }
}

/// Locks a mutex. A panic elsewhere left the value consistent: every change under these locks is one call.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
