//! Pings as they come in: to their machine at once, and into the next commit; one write a second for each heartbeat.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parallax_core::heartbeat::PINGS_KEPT;
use tokio::sync::oneshot;

use super::Driver;
use crate::flow::Ping;
use crate::flow::driver::Channels;
use crate::storage::Op;

/// A heartbeat is written once in this time, however many pings it gets; a change of its status is never held back.
const EVERY: Duration = Duration::from_secs(1);
/// Pings that wait for their heartbeat's next write, at most: each holds a connection of the server's, which has 4096.
const HELD: usize = 3072;

/// Pings to be written, and their senders to notify then. The store keeps a heartbeat's newest pings alone, so no more of
/// them are written, or kept here, however many are answered together.
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

/// When heartbeats were written, and the pings that wait for the next time.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Heartbeats that were written less than [`EVERY`] ago, and the pings that wait of each.
    written: BTreeMap<u32, Waiting>,
    /// When each of them may be written again, the next first.
    again: VecDeque<(Instant, u32)>,
    held: usize,
}

impl Pace {
    /// Lets a ping wait, where its heartbeat was written less than [`EVERY`] ago and there is room; else gives it back.
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

    /// The heartbeat is written now: what waits of it.
    fn write(&mut self, slot: u32, now: Instant) -> Waiting {
        let waited = self.written.insert(slot, Waiting::default());
        if waited.is_none() {
            self.again.push_back((now + EVERY, slot));
        }
        let waited = waited.unwrap_or_default();
        self.held = self.held.saturating_sub(waited.told.len());
        waited
    }

    /// A heartbeat that may be written again, with what waits of it.
    fn next_due(&mut self, now: Instant, all: bool) -> Option<(u32, Waiting)> {
        let (_, slot) = self.again.pop_front_if(|(at, _)| all || *at <= now)?;
        let waited = self.written.remove(&slot).unwrap_or_default();
        self.held = self.held.saturating_sub(waited.told.len());
        Some((slot, waited))
    }

    /// How long until the next may be written again.
    pub(super) fn next(&self, now: Instant) -> Option<Duration> {
        self.again.front().map(|(at, _)| at.saturating_duration_since(now))
    }
}

impl Driver {
    /// Takes a ping in. One of a monitor that the driver has not read of yet waits for [`Driver::meet_newcomers`].
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
        // What changes its status is not held back, nor what is written anyway.
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

    /// Lets go of what waits of a monitor that is gone: its senders are told so.
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
