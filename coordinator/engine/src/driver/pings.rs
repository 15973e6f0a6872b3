//! Incoming pings: each goes to its machine at once and into the next commit, with one write a second per heartbeat.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parallax_core::heartbeat::MAX_STORED_PINGS;
use parallax_store::Op;
use tokio::sync::oneshot;

use super::Driver;
use crate::IncomingPing;
use crate::driver::DriverChannels;

/// Minimum interval between writes of one heartbeat. A change of its status is never delayed.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// Pings waiting for their heartbeat's next write, at most. Each holds one of the server's 4096 connections.
const MAX_WAITING: usize = 3072;

/// Pings to be written, and the senders to notify afterwards. The store keeps only a heartbeat's newest pings, so no
/// more of them are written or held here, however many are answered together.
#[derive(Debug, Default)]
struct WaitingPings {
    ops: VecDeque<Op>,
    on_durable: Vec<oneshot::Sender<()>>,
}

impl WaitingPings {
    fn push(&mut self, op: Op, on_durable: oneshot::Sender<()>) {
        if self.ops.len() as u64 >= MAX_STORED_PINGS {
            self.ops.pop_front();
        }
        self.ops.push_back(op);
        self.on_durable.push(on_durable);
    }
}

/// Per-heartbeat write pacing, with the pings that wait for the next write.
#[derive(Debug, Default)]
pub(super) struct PingPacer {
    /// Heartbeats that were written less than [`WRITE_INTERVAL`] ago, each with its waiting pings.
    recently_written: BTreeMap<u32, WaitingPings>,
    /// The earliest next write of each, soonest first.
    next_writes: VecDeque<(Instant, u32)>,
    waiting_count: usize,
}

impl PingPacer {
    /// Holds a ping back if its heartbeat was written less than [`WRITE_INTERVAL`] ago and the limit allows; otherwise returns
    /// it.
    fn hold_back(&mut self, slot: u32, op: Op, on_durable: oneshot::Sender<()>) -> Option<(Op, oneshot::Sender<()>)> {
        match self.recently_written.get_mut(&slot) {
            Some(waiting) if self.waiting_count < MAX_WAITING => {
                waiting.push(op, on_durable);
                self.waiting_count += 1;
                None
            }
            Some(_) | None => Some((op, on_durable)),
        }
    }

    /// Records a write of the heartbeat and returns its waiting pings.
    fn take_waiting(&mut self, slot: u32, now: Instant) -> WaitingPings {
        let waiting = self.recently_written.insert(slot, WaitingPings::default());
        if waiting.is_none() {
            self.next_writes.push_back((now + WRITE_INTERVAL, slot));
        }
        let waiting = waiting.unwrap_or_default();
        self.waiting_count = self.waiting_count.saturating_sub(waiting.on_durable.len());
        waiting
    }

    /// Returns a heartbeat that may be written again, with its waiting pings.
    fn next_due(&mut self, now: Instant, all: bool) -> Option<(u32, WaitingPings)> {
        let (_, slot) = self.next_writes.pop_front_if(|(at, _)| all || *at <= now)?;
        let waiting = self.recently_written.remove(&slot).unwrap_or_default();
        self.waiting_count = self.waiting_count.saturating_sub(waiting.on_durable.len());
        Some((slot, waiting))
    }

    /// Returns the time until the next heartbeat may be written again.
    pub(super) fn until_next_write(&self, now: Instant) -> Option<Duration> {
        self.next_writes.front().map(|(at, _)| at.saturating_duration_since(now))
    }
}

impl Driver {
    /// Accepts a ping. If its monitor is not known to the driver yet, it waits for [`Driver::retry_early_pings`].
    pub(super) fn handle_ping(&mut self, mut ping: IncomingPing) {
        let (slot, now) = (ping.heartbeat.slot, Instant::now());
        let was_changed = self.pending.changed.contains(&slot);
        let events = self.pending.events.len();
        let Some(op) = self.with_machines(|machines, cx| machines.ping(&mut ping, cx)) else {
            self.early_pings.push(ping);
            return;
        };
        self.counters.pings.fetch_add(1, Ordering::Relaxed);
        let mut pending_write = Some((op, ping.on_durable));
        // A ping is written at once if it changes the status or its machine is written anyway.
        let can_wait = self.pending.events.len() == events && !was_changed;
        if can_wait && let Some((op, on_durable)) = pending_write.take() {
            pending_write = self.ping_pacer.hold_back(slot, op, on_durable);
        }
        match pending_write {
            Some((op, on_durable)) => {
                let mut waiting = self.ping_pacer.take_waiting(slot, now);
                waiting.push(op, on_durable);
                self.write_pings(waiting);
            }
            None => {
                self.pending.changed.remove(&slot);
            }
        }
    }

    /// Puts the pings whose heartbeat may be written again into the next commit; with `all`, every one.
    pub(super) fn write_due_pings(&mut self, all: bool) {
        let now = Instant::now();
        while let Some((slot, waiting)) = self.ping_pacer.next_due(now, all) {
            if !waiting.on_durable.is_empty() {
                self.pending.changed.insert(slot);
                self.ping_pacer.take_waiting(slot, now);
                self.write_pings(waiting);
            }
        }
    }

    /// Drops the waiting pings of a deleted monitor. Their senders see the closed channel.
    pub(super) fn drop_waiting_pings(&mut self, slot: u32) {
        if let Some(waiting) = self.ping_pacer.recently_written.get_mut(&slot) {
            self.ping_pacer.waiting_count = self.ping_pacer.waiting_count.saturating_sub(waiting.on_durable.len());
            *waiting = WaitingPings::default();
        }
    }

    fn write_pings(&mut self, pings: WaitingPings) {
        self.extra_ops.extend(pings.ops);
        self.on_durable.extend(pings.on_durable);
    }

    /// Reads the journal for the monitors of pings that arrived before their monitor was known. If one is still
    /// unknown afterwards, it is deleted: the dropped channel notifies the sender.
    pub(super) async fn retry_early_pings(&mut self, channels: &DriverChannels) {
        if self.early_pings.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.early_pings);
        if let Err(error) = self.apply_edits(channels).await {
            tracing::error!(%error, "edits can't be read; waiting pings of new monitors were dropped");
            return;
        }
        waiting.into_iter().for_each(|ping| self.handle_ping(ping));
        for ping in std::mem::take(&mut self.early_pings) {
            self.tokens.remove(ping.heartbeat.monitor);
        }
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::heartbeat::{self, PingKind};
    use parallax_core::id::MonitorId;
    use parallax_core::time::Timestamp;

    use super::*;

    fn op(number: u64) -> Op {
        let ping = heartbeat::StoredPing {
            number,
            at: Timestamp::from_millis(0),
            kind: PingKind::Succeeded,
            run: None,
            run_ms: None,
            method: "GET".to_owned(),
            client_ip: None,
            user_agent: String::new(),
            body: Vec::new(),
        };
        Op::PutPing(MonitorId::from_u128(1), Box::new(ping))
    }

    #[test]
    fn only_the_newest_waiting_pings_are_written() {
        let (mut pacer, now) = (PingPacer::default(), Instant::now());
        let (on_durable, first) = oneshot::channel();
        assert!(pacer.hold_back(7, op(0), on_durable).is_some(), "the first is written at once");
        assert!(pacer.take_waiting(7, now).on_durable.is_empty());
        let mut waiting = Vec::new();
        for number in 1..=100 {
            let (on_durable, receiver) = oneshot::channel();
            assert!(pacer.hold_back(7, op(number), on_durable).is_none());
            waiting.push(receiver);
        }
        let batch = pacer.take_waiting(7, now);
        assert_eq!((batch.ops.len() as u64, batch.on_durable.len(), pacer.waiting_count), (MAX_STORED_PINGS, 100, 0));
        assert!(matches!(batch.ops.back(), Some(Op::PutPing(_, last)) if last.number == 100));
        drop((first, waiting));
    }
}
