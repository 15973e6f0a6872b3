//! Health of writes: a lasting failure is logged once, then every 15 minutes, and again when it is over.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{CommitReceipt, Result, StoreError};

/// Time between two log lines of one failure.
const LOG_INTERVAL: Duration = Duration::from_secs(15 * 60);

/// Result of the newest writes.
#[derive(Debug, Default)]
pub(super) struct WriteHealth(Mutex<Option<Failing>>);

#[derive(Debug)]
struct Failing {
    fault: StoreError,
    since: Instant,
    logged: Instant,
    /// Failed writes since the last log line.
    refused: u64,
}

/// Change to log after a group of writes.
#[derive(Debug, PartialEq, Eq)]
enum HealthChange {
    Nothing,
    Fails(StoreError),
    StillFails(StoreError, u64, Duration),
    Recovered(Duration),
}

impl WriteHealth {
    /// Returns the reason why nothing can be written now.
    pub(super) fn fault(&self) -> Option<StoreError> {
        self.failing().as_ref().map(|failing| failing.fault.clone())
    }

    /// Records the results of a group of writes, and logs changes.
    pub(super) fn record(&self, results: &[Result<CommitReceipt>]) {
        let was_full = self.fault() == Some(StoreError::Full);
        match self.record_at(results, Instant::now()) {
            // The engine on disk logs a full disk itself, with the free space.
            HealthChange::Nothing | HealthChange::Fails(StoreError::Full) => {}
            HealthChange::Recovered(_) if was_full => {}
            HealthChange::Fails(error) => {
                tracing::error!(%error, "writes fail; results and edits wait until they succeed")
            }
            HealthChange::StillFails(error, refused, lasting) => {
                tracing::error!(%error, refused, minutes = lasting.as_secs() / 60, "writes still fail");
            }
            HealthChange::Recovered(lasted) => {
                tracing::info!(seconds = lasted.as_secs(), "writes succeed again");
            }
        }
    }

    fn record_at(&self, results: &[Result<CommitReceipt>], now: Instant) -> HealthChange {
        let mut failing = self.failing();
        if failing.is_none() && results.iter().all(Result::is_ok) {
            return HealthChange::Nothing;
        }
        if results.iter().any(Result::is_ok) {
            let ended = failing.take();
            return ended.map_or(HealthChange::Nothing, |it| HealthChange::Recovered(now.duration_since(it.since)));
        }
        // Other errors are faults of a single batch.
        let is_lasting =
            |error: &&StoreError| matches!(error, StoreError::Full | StoreError::Io(_) | StoreError::Damaged(_));
        let mut refused = results.iter().filter_map(|result| result.as_ref().err()).filter(is_lasting);
        let count = refused.clone().count() as u64;
        let Some(fault) = refused.next_back().cloned() else { return HealthChange::Nothing };
        let Some(failing) = failing.as_mut() else {
            *failing = Some(Failing { fault: fault.clone(), since: now, logged: now, refused: 0 });
            return HealthChange::Fails(fault);
        };
        failing.refused += count;
        failing.fault = fault.clone();
        if now.duration_since(failing.logged) < LOG_INTERVAL {
            return HealthChange::Nothing;
        }
        failing.logged = now;
        HealthChange::StillFails(fault, std::mem::take(&mut failing.refused), now.duration_since(failing.since))
    }

    fn failing(&self) -> std::sync::MutexGuard<'_, Option<Failing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Expect;

    fn written() -> Result<CommitReceipt> {
        Ok(CommitReceipt { revision: 1, last_event: 1, readings: None })
    }

    #[test]
    fn a_full_disk_is_logged_once_then_each_quarter_of_an_hour_and_when_it_is_over() {
        let (health, start) = (WriteHealth::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(health.record_at(&[written()], at(0)), HealthChange::Nothing);
        assert_eq!(health.record_at(&[Err(StoreError::Full)], at(1)), HealthChange::Fails(StoreError::Full));
        assert_eq!(health.fault(), Some(StoreError::Full));
        for second in 2..901 {
            assert_eq!(health.record_at(&[Err(StoreError::Full)], at(second)), HealthChange::Nothing, "{second}");
        }
        let still = HealthChange::StillFails(StoreError::Full, 900, Duration::from_secs(900));
        assert_eq!(health.record_at(&[Err(StoreError::Full)], at(901)), still);
        assert_eq!(health.record_at(&[Err(StoreError::Full)], at(902)), HealthChange::Nothing);
        assert_eq!(health.record_at(&[written()], at(903)), HealthChange::Recovered(Duration::from_secs(902)));
        assert_eq!(health.fault(), None);
        assert_eq!(health.record_at(&[written()], at(904)), HealthChange::Nothing);
    }

    #[test]
    fn a_refused_batch_is_no_write_failure() {
        let health = WriteHealth::default();
        let conflict = Err(StoreError::Conflict(Expect::Networks(3)));
        assert_eq!(
            health.record_at(&[conflict, Err(StoreError::TooLarge("a value"))], Instant::now()),
            HealthChange::Nothing
        );
        assert_eq!(health.fault(), None);
    }
}
