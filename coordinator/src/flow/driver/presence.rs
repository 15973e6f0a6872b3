//! Detection of stalls of the coordinator and of wall clock steps.

use parallax_core::time::{SECOND, Timestamp};

use crate::clock::STEP;

use super::{Driver, UPKEEP};
use crate::flow::warmup::{self, ALIVE};
use crate::storage::Op;

/// Milliseconds between two clock checks from which on the coordinator counts as stalled. It checks every five
/// seconds.
const AWAY: i64 = 10 * SECOND;

impl Driver {
    /// Records that the coordinator runs, so that the next start knows how long it was down. Detects wall clock steps
    /// and stalls.
    pub(super) async fn mind_the_clock(&mut self) {
        let (now, steady) = (self.clock.now(), self.clock.steady());
        let (then, before) = std::mem::replace(&mut self.looked, (now, steady));
        let passed = steady.saturating_sub(before);
        let jump = now.since(then).saturating_sub(passed);
        if jump > STEP || passed >= AWAY {
            self.cover_what_began(now).await;
        }
        let away_since = (passed >= AWAY).then(|| now - passed);
        if away_since.is_some() {
            tracing::warn!(
                milliseconds = passed,
                "the coordinator was stalled; no monitor is blamed for that time"
            );
        }
        if jump.abs() > STEP {
            tracing::warn!(
                milliseconds = jump,
                "the wall clock stepped; open rounds and deadlines were shifted"
            );
            self.with(|machines, cx| machines.clock_stepped(jump, away_since, cx));
        } else if let Some(since) = away_since {
            self.with(|machines, cx| machines.was_away(since, cx));
        }
        if now.since(self.alive_noted).unsigned_abs() >= UPKEEP.as_millis() as u64 && self.underway.is_none()
        {
            self.alive_noted = now;
            self.extra.push(Op::SetCursor(self.shard.cursor(ALIVE), now.as_millis().unsigned_abs()));
        }
    }

    /// Applies maintenance windows that began meanwhile before anything is judged.
    async fn cover_what_began(&mut self, now: Timestamp) {
        let shard = self.shard;
        match self.store.read(move |read| warmup::covered_at(read, now, shard)).await {
            Ok(covered) => {
                for monitor in covered {
                    self.with(|machines, cx| machines.cover(monitor, true, cx));
                }
            }
            Err(error) => tracing::error!(%error, "maintenance windows can't be read; they may be ignored"),
        }
    }
}
