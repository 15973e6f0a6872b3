//! Detection of stalls of the coordinator and of wall clock steps.

use parallax_core::time::{SECOND, Timestamp};
use parallax_runtime::clock::STEP;
use parallax_store::Op;

use super::{CLOCK_CHECK_INTERVAL, Driver};
use crate::restore::{self, ALIVE_CURSOR};

/// Milliseconds between two clock checks from which on the coordinator counts as stalled. It checks every five
/// seconds.
const STALL: i64 = 10 * SECOND;

impl Driver {
    /// Records that the coordinator runs, so that the next start knows how long it was down. Detects wall clock steps
    /// and stalls.
    pub(super) async fn check_clock(&mut self) {
        let (now, monotonic) = (self.clock.now(), self.clock.monotonic());
        let (last_now, last_monotonic) = std::mem::replace(&mut self.last_clock_check, (now, monotonic));
        let elapsed = monotonic.saturating_sub(last_monotonic);
        let jump = now.since(last_now).saturating_sub(elapsed);
        if jump > STEP || elapsed >= STALL {
            self.apply_begun_windows(now).await;
        }
        let away_since = (elapsed >= STALL).then(|| now - elapsed);
        if away_since.is_some() {
            tracing::warn!(milliseconds = elapsed, "the coordinator was stalled; no monitor is blamed for that time");
        }
        if jump.abs() > STEP {
            tracing::warn!(milliseconds = jump, "the wall clock stepped; open rounds and deadlines were shifted");
            self.with_machines(|machines, cx| machines.handle_clock_step(jump, away_since, cx));
        } else if let Some(since) = away_since {
            self.with_machines(|machines, cx| machines.handle_stall(since, cx));
        }
        if now.since(self.alive_recorded_at).unsigned_abs() >= CLOCK_CHECK_INTERVAL.as_millis() as u64
            && self.in_flight.is_none()
        {
            self.alive_recorded_at = now;
            self.extra_ops.push(Op::SetCursor(self.shard.cursor_name(ALIVE_CURSOR), now.as_millis().unsigned_abs()));
        }
    }

    /// Applies maintenance windows that began meanwhile before anything is judged.
    async fn apply_begun_windows(&mut self, now: Timestamp) {
        let shard = self.shard;
        match self.store.read(move |read| restore::covered_at(read, now, shard)).await {
            Ok(covered) => {
                for monitor in covered {
                    self.with_machines(|machines, cx| machines.set_covered(monitor, true, cx));
                }
            }
            Err(error) => tracing::error!(%error, "maintenance windows can't be read; they may be ignored"),
        }
    }
}
