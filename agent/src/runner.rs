//! Starts scheduled checks when they are due, in small groups, and never too many at once.

use crate::attempt::{DEADLINE, attempt};
use crate::schedule::Due;
use crate::shared::Shared;
use parallax_protocol::result::{CheckResult, Outcome, Report};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// Checks that fall due within this time start together.
const GROUP: Duration = Duration::from_millis(25);

/// The clock is looked at least this often, so that a host that slept is noticed.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the schedule until `stop` turns true, then lets running checks end, for as long as one may take.
pub(crate) async fn run(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut running = JoinSet::new();
    let mut next_group = Instant::now();
    loop {
        shared.counts.turns.fetch_add(1, Ordering::Relaxed);
        while running.try_join_next().is_some() {}
        let now = Instant::now();
        let free = shared.config.concurrency.saturating_sub(running.len());
        if now >= next_group && free > 0 {
            let due = shared.schedule().take_due(shared.clock.coordinator_ms(), free);
            let behind = due.len() == free;
            for due in due {
                running.spawn(check(Arc::clone(&shared), due));
            }
            // What could not begin for want of room begins as soon as there is some, and not with the next group.
            next_group = if behind { now } else { now + GROUP };
        }
        shared.counts.running.store(running.len(), Ordering::Relaxed);
        let next_due = shared.schedule().next_due_ms();
        let until_due = next_due.map_or(LOOK, |due| {
            let ms = due.saturating_sub(shared.clock.coordinator_ms()).max(0).unsigned_abs();
            Duration::from_millis(ms).min(LOOK)
        });
        let full = running.len() >= shared.config.concurrency;
        tokio::select! {
            _ = stop.wait_for(|&stopped| stopped) => break,
            // While there is room nobody waits for a check to end: the next group finds it ended.
            Some(_) = running.join_next(), if full => {}
            () = shared.schedule_changed.notified() => {}
            () = sleep_until((now + until_due).max(next_group)), if !full => {}
        }
    }
    let all = async { while running.join_next().await.is_some() {} };
    if timeout(DEADLINE, all).await.is_err() {
        tracing::warn!("checks were cut off by the shutdown");
    }
    shared.counts.running.store(0, Ordering::Relaxed);
}

async fn check(shared: Arc<Shared>, due: Due) {
    let assignment = &due.assignment;
    let started_ms = shared.clock.coordinator_ms();
    let result = |report| CheckResult {
        monitor: assignment.monitor,
        revision: assignment.revision,
        round: Some(due.round),
        started_ms,
        age_ms: 0,
        report,
    };
    let pending = async {
        shared.push(result(Report::bare(Outcome::Pending)), shared.clock.mono_ms());
    };
    let done = attempt(&assignment.spec, &due.kept, &shared.net, &shared.clock, DEADLINE, pending).await;
    tracing::trace!(monitor = %assignment.monitor, round = due.round, outcome = ?done.report.outcome, "checked");
    shared.push(result(done.report), done.ended_mono_ms);
    shared.schedule().finished(assignment.monitor);
}
