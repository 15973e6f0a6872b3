//! Delivery counters for the operator's metrics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use parallax_core::destination::ChannelKind;
use parallax_core::time::Timestamp;

use crate::clock::Clock;
use crate::storage::Waiting;

/// Result of a delivery attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted by the receiver.
    Delivered,
    /// Not accepted; to be retried.
    Retried,
    /// Not accepted; no further attempts.
    Failed,
}

impl Verdict {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Delivered, Self::Retried, Self::Failed];

    /// Metric label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retried => "retried",
            Self::Failed => "failed",
        }
    }
}

/// Counts since the start, and the state of the waiting deliveries when they were last listed.
#[derive(Debug)]
pub struct Counters {
    clock: Clock,
    /// By channel, then by result.
    tries: [[AtomicU64; 3]; 8],
    /// Deliveries that were not sent because they were outdated or their receiver was gone.
    pub dropped: AtomicU64,
    waiting: AtomicU64,
    /// Creation time of the oldest waiting delivery; 0 if none waits.
    oldest: AtomicI64,
}

impl Counters {
    /// Starts all counters at zero.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            tries: Default::default(),
            dropped: AtomicU64::default(),
            waiting: AtomicU64::default(),
            oldest: AtomicI64::default(),
        }
    }

    /// Number of attempts by channel and result.
    pub fn tries(&self) -> impl Iterator<Item = (ChannelKind, Verdict, u64)> + '_ {
        ChannelKind::ALL.into_iter().zip(&self.tries).flat_map(|(channel, row)| {
            Verdict::ALL
                .into_iter()
                .zip(row)
                .map(move |(verdict, count)| (channel, verdict, count.load(Relaxed)))
        })
    }

    /// Number of waiting deliveries.
    pub fn waiting_now(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// Age of the oldest waiting delivery in milliseconds; 0 if none waits.
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
        // An id begins with its creation time in milliseconds.
        let oldest = waiting.iter().map(|it| it.id.to_u128() >> 80).min();
        self.oldest.store(oldest.and_then(|at| i64::try_from(at).ok()).unwrap_or(0), Relaxed);
    }
}
