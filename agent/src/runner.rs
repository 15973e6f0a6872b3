//! Starts scheduled checks when they are due, in small groups, with fair sharing of the slots among accounts.
//!
//! The algorithm is in [`parallax_protocol::fair_slots`]. Probe requests have slots of their own
//! ([`crate::connection::MAX_CHECK_NOWS`]), which the coordinator shares by the same algorithm.

use crate::check_attempt::{DEADLINE, run_with_deadline};
use crate::context::AgentContext;
use crate::schedule::DueRound;
use futures_util::FutureExt;
use parallax_protocol::fair_slots::{FairSlotPermit, FairSlots};
use parallax_protocol::id::WireMonitorId;
use parallax_protocol::result::{CheckResult, ProbeReport, WireOutcome};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

/// Time within which due checks start together.
const GROUP_WINDOW: Duration = Duration::from_millis(25);

/// Maximum time between two readings of the clock, so that a suspended host is noticed.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// Runs the schedule until `stop` turns true, then waits for running checks, at most as long as one may take.
pub(crate) async fn run(shared: Arc<AgentContext>, mut stop: watch::Receiver<bool>) {
    let mut running = JoinSet::new();
    let mut slots = FairSlots::new(shared.config.concurrency);
    let mut next_group = Instant::now();
    loop {
        shared.counters.runner_loops.fetch_add(1, Ordering::Relaxed);
        while let Some(ended) = running.try_join_next() {
            release(&mut slots, ended);
        }
        let now = Instant::now();
        if now >= next_group {
            queue_due(&shared, &mut slots);
            next_group = now + GROUP_WINDOW;
        }
        start(&shared, &mut slots, &mut running);
        shared.counters.running.store(running.len(), Ordering::Relaxed);
        let next_due = shared.schedule().next_due_ms();
        let until_due = next_due.map_or(MAX_SLEEP, |due| {
            let ms = due.saturating_sub(shared.clock.coordinator_ms()).max(0).unsigned_abs();
            Duration::from_millis(ms).min(MAX_SLEEP)
        });
        tokio::select! {
            _ = stop.wait_for(|&stopped| stopped) => break,
            // While no check waits for a slot, ended checks need no wake-up: the next group collects them.
            Some(ended) = running.join_next(), if slots.waiting() > 0 => release(&mut slots, ended),
            () = shared.schedule_changed.notified() => {}
            () = sleep_until((now + until_due).max(next_group)) => {}
        }
    }
    let all = async { while running.join_next().await.is_some() {} };
    if timeout(DEADLINE, all).await.is_err() {
        tracing::warn!("the shutdown interrupted running checks");
    }
    shared.counters.running.store(0, Ordering::Relaxed);
}

/// Queues every due round for a slot.
fn queue_due(shared: &AgentContext, slots: &mut FairSlots<WireMonitorId>) {
    let mut schedule = shared.schedule();
    // A monitor waits at most once, so the queue is never longer than the schedule.
    if schedule.take_withdrawn() {
        slots.retain(|monitor| schedule.is_waiting(*monitor));
    }
    schedule.take_due(shared.clock.coordinator_ms(), |ready| {
        slots.push(ready.account, ready.pool, ready.monitor);
    });
}

/// Starts every check that gets a slot.
fn start(shared: &Arc<AgentContext>, slots: &mut FairSlots<WireMonitorId>, running: &mut JoinSet<FairSlotPermit>) {
    while let Some((monitor, permit)) = slots.start_next() {
        let due = shared.schedule().begin(monitor, shared.clock.coordinator_ms());
        match due {
            Some(due) => {
                let check = AssertUnwindSafe(check(Arc::clone(shared), due)).catch_unwind();
                running.spawn(async move {
                    if check.await.is_err() {
                        tracing::error!(%monitor, "a check panicked; its result is lost");
                    }
                    permit
                });
            }
            None => slots.release(permit),
        }
    }
}

fn release(slots: &mut FairSlots<WireMonitorId>, ended: Result<FairSlotPermit, JoinError>) {
    // Panics are caught, and a check is only cancelled by dropping the runner.
    if let Ok(permit) = ended {
        slots.release(permit);
    }
}

async fn check(shared: Arc<AgentContext>, due: DueRound) {
    let assignment = &due.assignment;
    let started_ms = shared.clock.coordinator_ms();
    let started_mono_ms = shared.clock.mono_ms();
    let result = |report| CheckResult {
        monitor: assignment.monitor,
        revision: assignment.revision,
        round: Some(due.round),
        started_ms,
        age_ms: 0,
        report,
    };
    let pending = async {
        shared.push(result(ProbeReport::outcome_only(WireOutcome::Pending)), shared.clock.mono_ms());
    };
    let done = run_with_deadline(&assignment.spec, &due.cache, &shared.probes, &shared.clock, DEADLINE, pending).await;
    tracing::trace!(monitor = %assignment.monitor, round = due.round, outcome = ?done.report.outcome, "checked");
    let took_ms = done.ended_mono_ms.saturating_sub(started_mono_ms);
    shared.push(result(done.report), done.ended_mono_ms);
    shared.schedule().finish(assignment.monitor, took_ms);
}
