//! Incoming pings: each goes to its machine at once and into the next commit, with one write a second per heartbeat.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parallax_core::heartbeat::PINGS_KEPT;
use tokio::sync::oneshot;

use super::Driver;
use crate::flow::Ping;
use crate::flow::driver::Channels;
use crate::storage::Op;

/// Minimum interval between writes of one heartbeat. A change of its status is never delayed.
const EVERY: Duration = Duration::from_secs(1);
/// Pings waiting for their heartbeat's next write, at most. Each holds one of the server's 4096 connections.
const HELD: usize = 3072;

/// Pings to be written, and the senders to notify afterwards. The store keeps only a heartbeat's newest pings, so no
/// more of them are written or held here, however many are answered together.
#[derive(Debug, Default)]
struct Waiting {
    ops: VecDeque<Op>,
    told: Vec<oneshot::Sender<()>>,
}

impl Waiting {
    fn push(&mut self, op: Op, durable: oneshot::Sender<()>) {
        if self.ops.len() as u64 >= PINGS_KEPT {
            self.ops.pop_front();
        }
        self.ops.push_back(op);
        self.told.push(durable);
    }
}

/// Per-heartbeat write pacing, with the pings that wait for the next write.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Heartbeats that were written less than [`EVERY`] ago, each with its waiting pings.
    written: BTreeMap<u32, Waiting>,
    /// The earliest next write of each, soonest first.
    again: VecDeque<(Instant, u32)>,
    held: usize,
}

impl Pace {
    /// Holds a ping back if its heartbeat was written less than [`EVERY`] ago and the limit allows; otherwise returns
    /// it.
    fn hold(&mut self, slot: u32, op: Op, durable: oneshot::Sender<()>) -> Option<(Op, oneshot::Sender<()>)> {
        match self.written.get_mut(&slot) {
            Some(waiting) if self.held < HELD => {
                waiting.push(op, durable);
                self.held += 1;
                None
            }
            Some(_) | None => Some((op, durable)),
        }
    }

    /// Records a write of the heartbeat and returns its waiting pings.
    fn write(&mut self, slot: u32, now: Instant) -> Waiting {
        let waited = self.written.insert(slot, Waiting::default());
        if waited.is_none() {
            self.again.push_back((now + EVERY, slot));
        }
        let waited = waited.unwrap_or_default();
        self.held = self.held.saturating_sub(waited.told.len());
        waited
    }

    /// Returns a heartbeat that may be written again, with its waiting pings.
    fn next_due(&mut self, now: Instant, all: bool) -> Option<(u32, Waiting)> {
        let (_, slot) = self.again.pop_front_if(|(at, _)| all || *at <= now)?;
        let waited = self.written.remove(&slot).unwrap_or_default();
        self.held = self.held.saturating_sub(waited.told.len());
        Some((slot, waited))
    }

    /// Returns the time until the next heartbeat may be written again.
    pub(super) fn next(&self, now: Instant) -> Option<Duration> {
        self.again.front().map(|(at, _)| at.saturating_duration_since(now))
    }
}

impl Driver {
    /// Accepts a ping. If its monitor is not known to the driver yet, it waits for [`Driver::meet_newcomers`].
    pub(super) fn hear_ping(&mut self, mut ping: Ping) {
        let (slot, now) = (ping.listed.slot, Instant::now());
        let was_wanted = self.harvest.changed.contains(&slot);
        let events = self.harvest.events.len();
        let Some(op) = self.with(|machines, cx| machines.beat(&mut ping, cx)) else {
            self.early.push(ping);
            return;
        };
        self.counters.pings.fetch_add(1, Ordering::Relaxed);
        let mut told = Some((op, ping.durable));
        // A ping that changes the status is not held back, nor one whose machine is written anyway.
        let waits = self.harvest.events.len() == events && !was_wanted;
        if waits && let Some((op, durable)) = told.take() {
            told = self.pace.hold(slot, op, durable);
        }
        match told {
            Some((op, durable)) => {
                let mut waited = self.pace.write(slot, now);
                waited.push(op, durable);
                self.write_pings(waited);
            }
            None => {
                self.harvest.changed.remove(&slot);
            }
        }
    }

    /// Puts the pings whose heartbeat may be written again into the next commit; with `all`, every one.
    pub(super) fn write_due_pings(&mut self, all: bool) {
        let now = Instant::now();
        while let Some((slot, waited)) = self.pace.next_due(now, all) {
            if !waited.told.is_empty() {
                self.harvest.changed.insert(slot);
                self.pace.write(slot, now);
                self.write_pings(waited);
            }
        }
    }

    /// Drops the waiting pings of a deleted monitor. Their senders see the closed channel.
    pub(super) fn forget_pings(&mut self, slot: u32) {
        if let Some(waiting) = self.pace.written.get_mut(&slot) {
            self.pace.held = self.pace.held.saturating_sub(waiting.told.len());
            *waiting = Waiting::default();
        }
    }

    fn write_pings(&mut self, pings: Waiting) {
        self.extra.extend(pings.ops);
        self.durable.extend(pings.told);
    }

    /// Reads the journal for the monitors of pings that arrived before their monitor was known. If one is still
    /// unknown afterwards, it is deleted: the dropped channel notifies the sender.
    pub(super) async fn meet_newcomers(&mut self, channels: &Channels) {
        if self.early.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.early);
        if let Err(error) = self.follow_edits(channels).await {
            tracing::error!(%error, "edits can't be read; waiting pings of new monitors were dropped");
            return;
        }
        waiting.into_iter().for_each(|ping| self.hear_ping(ping));
        for gone in std::mem::take(&mut self.early) {
            self.tokens.remove(gone.listed.monitor);
        }
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::heartbeat::{self, Beat};
    use parallax_core::id::MonitorId;
    use parallax_core::time::Timestamp;

    use super::*;

    fn op(number: u64) -> Op {
        let ping = heartbeat::Ping {
            number,
            at: Timestamp::from_millis(0),
            beat: Beat::Ran,
            run: None,
            run_ms: None,
            method: "GET".to_owned(),
            from: None,
            agent: String::new(),
            body: Vec::new(),
        };
        Op::PutPing(MonitorId::from_u128(1), Box::new(ping))
    }

    #[test]
    fn of_pings_that_are_answered_together_the_newest_are_written() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let (durable, first) = oneshot::channel();
        assert!(pace.hold(7, op(0), durable).is_some(), "the first is written at once");
        assert!(pace.write(7, now).told.is_empty());
        let mut waiting = Vec::new();
        for number in 1..=100 {
            let (durable, told) = oneshot::channel();
            assert!(pace.hold(7, op(number), durable).is_none());
            waiting.push(told);
        }
        let waited = pace.write(7, now);
        assert_eq!((waited.ops.len() as u64, waited.told.len(), pace.held), (PINGS_KEPT, 100, 0));
        assert!(matches!(waited.ops.back(), Some(Op::PutPing(_, last)) if last.number == 100));
        drop((first, waiting));
    }
}
