//! What deliveries are counted by, for the operator's metrics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use parallax_core::destination::ChannelKind;
use parallax_core::time::Timestamp;

use crate::clock::Clock;
use crate::storage::Waiting;

/// What can come of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Taken.
    Delivered,
    /// Not taken, to be tried again.
    Retried,
    /// Given up.
    Failed,
}

impl Verdict {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Delivered, Self::Retried, Self::Failed];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retried => "retried",
            Self::Failed => "failed",
        }
    }
}

/// Counts since the start, and how what waits stood when it was last listed.
#[derive(Debug)]
pub struct Counters {
    clock: Clock,
    /// By channel, then by verdict.
    tries: [[AtomicU64; 3]; 8],
    /// Deliveries that were not sent, since they say nothing new or their receiver is gone.
    pub dropped: AtomicU64,
    waiting: AtomicU64,
    /// When the oldest of those that wait was made; 0 where none waits.
    oldest: AtomicI64,
}

impl Counters {
    /// Counts from nothing.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            tries: Default::default(),
            dropped: AtomicU64::default(),
            waiting: AtomicU64::default(),
            oldest: AtomicI64::default(),
        }
    }

    /// How many tries by each channel ended in each way.
    pub fn tries(&self) -> impl Iterator<Item = (ChannelKind, Verdict, u64)> + '_ {
        ChannelKind::ALL.into_iter().zip(&self.tries).flat_map(|(channel, row)| {
            Verdict::ALL
                .into_iter()
                .zip(row)
                .map(move |(verdict, count)| (channel, verdict, count.load(Relaxed)))
        })
    }

    /// How many wait.
    pub fn waiting_now(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// For how many milliseconds the oldest has waited; 0 where none waits.
    pub fn oldest_ms(&self) -> i64 {
        match self.oldest.load(Relaxed) {
            0 => 0,
            made => self.clock.now().since(Timestamp::from_millis(made)).max(0),
        }
    }

    pub(super) fn count(&self, channel: ChannelKind, verdict: Verdict) {
        let row = ChannelKind::ALL.iter().position(|it| *it == channel);
        let column = Verdict::ALL.iter().position(|it| *it == verdict);
        let cell = row.zip(column).and_then(|(row, column)| self.tries.get(row)?.get(column));
        if let Some(cell) = cell {
            cell.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn waiting(&self, waiting: &[Waiting]) {
        self.waiting.store(waiting.len() as u64, Relaxed);
        // An id begins with the milliseconds of the moment that it was made.
        let oldest = waiting.iter().map(|it| it.id.to_u128() >> 80).min();
        self.oldest.store(oldest.and_then(|at| i64::try_from(at).ok()).unwrap_or(0), Relaxed);
    }
}
