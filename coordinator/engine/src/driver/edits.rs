//! Monitor edits from the event journal, applied to machines, schedule, tokens and history.

use std::time::{Duration, Instant};

use parallax_store::StoreError;

use super::{Driver, DriverChannels};
use crate::restore;

/// Delay before edits that can't be read are retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl Driver {
    /// Reads the edits that are due. A failed read is retried.
    pub(super) async fn read_due_edits(&mut self, channels: &DriverChannels) {
        if self.read_edits_at.take_if(|at| *at <= Instant::now()).is_none() {
            return;
        }
        if let Err(error) = self.apply_edits(channels).await {
            tracing::error!(%error, "edits can't be read; retrying");
            self.read_edits_at = Some(Instant::now() + RETRY_DELAY);
        }
    }

    /// Applies the edits since the last read.
    pub(super) async fn apply_edits(&mut self, channels: &DriverChannels) -> Result<(), StoreError> {
        let (cursor, verdict_settings, shard) = (self.cursor, self.verdict_settings, self.shard);
        let edits = self.store.read(move |read| restore::read_edits(read, cursor, &verdict_settings, shard)).await?;
        self.cursor = edits.cursor;
        let version_before = self.machines.schedule().version();
        let deleted = if edits.is_full_reload {
            let existing = edits.changed.iter().map(|(monitor, _)| monitor.id).collect();
            self.machines.except(&existing)
        } else {
            edits.deleted
        };
        for (monitor, settings) in edits.changed {
            self.history.register(monitor.slot, monitor.id);
            self.tokens.put(&monitor);
            self.with_machines(|machines, cx| machines.upsert(&monitor, settings, cx));
        }
        for (monitor, covered) in edits.covered {
            self.with_machines(|machines, cx| machines.set_covered(monitor, covered, cx));
        }
        for monitor in deleted {
            self.tokens.remove(monitor);
            if let Some(slot) = self.machines.remove(monitor) {
                self.history.remove(slot);
                self.drop_waiting_pings(slot);
            }
        }
        if self.machines.schedule().version() != version_before {
            self.publish_schedule(channels);
        }
        Ok(())
    }

    /// Publishes the schedule that agents are to run.
    pub(super) fn publish_schedule(&self, channels: &DriverChannels) {
        channels.schedules.send_replace(self.schedule());
    }
}
