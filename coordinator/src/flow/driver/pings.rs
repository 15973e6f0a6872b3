//! Pings as they come in: to their machine at once, and into the next commit; one write a second for each heartbeat.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Driver;
use crate::flow::Ping;
use crate::flow::driver::Channels;
use crate::storage::Op;

/// A heartbeat is written once in this time, however many pings it gets; a change of its status is never held back.
const EVERY: Duration = Duration::from_secs(1);
/// Pings that wait for their heartbeat's next write, at most: each holds a connection of the server's, which has 4096.
const HELD: usize = 3072;

/// What is to be written of a ping, and who is told then.
type Waiting = (Op, oneshot::Sender<()>);

/// When heartbeats were written, and the pings that wait for the next time.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Heartbeats that were written less than [`EVERY`] ago, and how many pings wait for each.
    written: BTreeMap<u32, Vec<Waiting>>,
    /// When each of them may be written again, the next first.
    again: VecDeque<(Instant, u32)>,
    held: usize,
}

impl Pace {
    /// Lets a ping wait, where its heartbeat was written less than [`EVERY`] ago and there is room; else gives it back.
    fn hold(&mut self, slot: u32, op: Op, durable: oneshot::Sender<()>) -> Option<Waiting> {
        match self.written.get_mut(&slot) {
            Some(waiting) if self.held < HELD => {
                waiting.push((op, durable));
                self.held += 1;
                None
            }
            Some(_) | None => Some((op, durable)),
        }
    }

    /// The heartbeat is written now: what waits of it.
    fn write(&mut self, slot: u32, now: Instant) -> Vec<Waiting> {
        let waited = self.written.insert(slot, Vec::new());
        if waited.is_none() {
            self.again.push_back((now + EVERY, slot));
        }
        let waited = waited.unwrap_or_default();
        self.held = self.held.saturating_sub(waited.len());
        waited
    }

    /// A heartbeat that may be written again, with what waits of it.
    fn next_due(&mut self, now: Instant, all: bool) -> Option<(u32, Vec<Waiting>)> {
        let (_, slot) = self.again.pop_front_if(|(at, _)| all || *at <= now)?;
        let waited = self.written.remove(&slot).unwrap_or_default();
        self.held = self.held.saturating_sub(waited.len());
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
            Some(told) => {
                let waited = self.pace.write(slot, now);
                self.write_pings(waited);
                self.write_pings(vec![told]);
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
            if !waited.is_empty() {
                self.harvest.changed.insert(slot);
                self.pace.write(slot, now);
                self.write_pings(waited);
            }
        }
    }

    /// Lets go of what waits of a monitor that is gone: its senders are told so.
    pub(super) fn forget_pings(&mut self, slot: u32) {
        if let Some(waiting) = self.pace.written.get_mut(&slot) {
            self.pace.held = self.pace.held.saturating_sub(waiting.len());
            waiting.clear();
        }
    }

    fn write_pings(&mut self, pings: Vec<Waiting>) {
        for (op, durable) in pings {
            self.extra.push(op);
            self.durable.push(durable);
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
