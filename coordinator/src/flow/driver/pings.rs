//! Pings as they come in: to their machine at once, and into the next commit.

use std::sync::atomic::Ordering;

use super::Driver;
use crate::flow::Ping;
use crate::flow::driver::Channels;

impl Driver {
    /// Takes a ping in. One of a monitor that the driver has not read of yet waits for [`Driver::meet_newcomers`].
    pub(super) fn hear_ping(&mut self, mut ping: Ping) {
        match self.with(|machines, cx| machines.beat(&mut ping, cx)) {
            Some(op) => {
                self.counters.pings.fetch_add(1, Ordering::Relaxed);
                self.extra.push(op);
                self.durable.push(ping.durable);
            }
            None => self.early.push(ping),
        }
    }

    /// Reads the journal for the monitors of pings that came before their monitor was read of. What is still unknown
    /// then is gone: who sent it is told so by the end of its wait.
    pub(super) async fn meet_newcomers(&mut self, channels: &Channels) {
        if self.early.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.early);
        if let Err(error) = self.follow_edits(channels).await {
            tracing::error!(%error, "edits can't be read for pings that wait: they are not taken");
            return;
        }
        waiting.into_iter().for_each(|ping| self.hear_ping(ping));
        for gone in std::mem::take(&mut self.early) {
            self.tokens.remove(gone.listed.monitor);
        }
    }
}
