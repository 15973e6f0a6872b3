//! Monitor edits from the event journal, applied to machines, schedule, tokens and history.

use std::time::{Duration, Instant};

use super::{Channels, Driver};
use crate::flow::warmup;
use crate::storage::StoreError;

/// Delay before edits that can't be read are retried.
const RETRY: Duration = Duration::from_secs(1);

impl Driver {
    /// Reads the edits that are due. A failed read is retried.
    pub(super) async fn catch_up(&mut self, channels: &Channels) {
        if self.behind.take_if(|at| *at <= Instant::now()).is_none() {
            return;
        }
        if let Err(error) = self.follow_edits(channels).await {
            tracing::error!(%error, "edits can't be read; retrying");
            self.behind = Some(Instant::now() + RETRY);
        }
    }

    /// Applies the edits since the last read.
    pub(super) async fn follow_edits(&mut self, channels: &Channels) -> Result<(), StoreError> {
        let (cursor, judging, shard) = (self.cursor, self.judging, self.shard);
        let edits = self.store.read(move |read| warmup::edits(read, cursor, &judging, shard)).await?;
        self.cursor = edits.cursor;
        let before = self.machines.schedule().version();
        let gone = if edits.whole {
            let left = edits.put.iter().map(|(monitor, _)| monitor.id).collect();
            self.machines.others(&left)
        } else {
            edits.gone
        };
        for (monitor, watch) in edits.put {
            self.history.enlist(monitor.slot, monitor.id);
            self.tokens.put(&monitor);
            self.with(|machines, cx| machines.put(&monitor, watch, cx));
        }
        for (monitor, covered) in edits.covered {
            self.with(|machines, cx| machines.cover(monitor, covered, cx));
        }
        for monitor in gone {
            self.tokens.remove(monitor);
            if let Some(slot) = self.machines.remove(monitor) {
                self.history.forget(slot);
                self.forget_pings(slot);
            }
        }
        if self.machines.schedule().version() != before {
            self.publish(channels);
        }
        Ok(())
    }

    /// Publishes the schedule that agents are to run.
    pub(super) fn publish(&self, channels: &Channels) {
        channels.schedules.send_replace(self.schedule());
    }
}
