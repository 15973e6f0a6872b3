//! Delivery counters for the operator's metrics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use parallax_core::destination::ChannelKind;
use parallax_core::time::Timestamp;
use parallax_runtime::clock::Clock;
use parallax_store::WaitingDelivery;

/// Result of a delivery attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResultKind {
    /// Accepted by the receiver.
    Delivered,
    /// Not accepted; to be retried.
    Retried,
    /// Not accepted; no further attempts.
    Failed,
}

impl AttemptResultKind {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Delivered, Self::Retried, Self::Failed];

    /// Metric label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retried => "retried",
            Self::Failed => "failed",
        }
    }
}

/// Counts since the start, and the state of the waiting deliveries when they were last listed.
#[derive(Debug)]
pub struct DeliveryCounters {
    clock: Clock,
    /// By channel, then by result.
    attempts: [[AtomicU64; 3]; 8],
    /// Deliveries that were not sent because they were outdated or their receiver no longer existed.
    pub dropped: AtomicU64,
    waiting: AtomicU64,
    /// Creation time of the oldest waiting delivery; 0 if none waits.
    oldest_created_at: AtomicI64,
}

impl DeliveryCounters {
    /// Starts all counters at zero.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            attempts: Default::default(),
            dropped: AtomicU64::default(),
            waiting: AtomicU64::default(),
            oldest_created_at: AtomicI64::default(),
        }
    }

    /// Number of attempts by channel and result.
    pub fn attempts(&self) -> impl Iterator<Item = (ChannelKind, AttemptResultKind, u64)> + '_ {
        ChannelKind::ALL.into_iter().zip(&self.attempts).flat_map(|(channel, row)| {
            AttemptResultKind::ALL
                .into_iter()
                .zip(row)
                .map(move |(result, count)| (channel, result, count.load(Relaxed)))
        })
    }

    /// Number of waiting deliveries.
    pub fn waiting_count(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// Age of the oldest waiting delivery in milliseconds; 0 if none waits.
    pub fn oldest_waiting_ms(&self) -> i64 {
        match self.oldest_created_at.load(Relaxed) {
            0 => 0,
            created_at => self.clock.now().since(Timestamp::from_millis(created_at)).max(0),
        }
    }

    pub(super) fn count(&self, channel: ChannelKind, result: AttemptResultKind) {
        let row = ChannelKind::ALL.iter().position(|it| *it == channel);
        let column = AttemptResultKind::ALL.iter().position(|it| *it == result);
        let cell = row.zip(column).and_then(|(row, column)| self.attempts.get(row)?.get(column));
        if let Some(cell) = cell {
            cell.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn set_waiting(&self, waiting: &[WaitingDelivery]) {
        self.waiting.store(waiting.len() as u64, Relaxed);
        // An id begins with its creation time in milliseconds.
        let oldest = waiting.iter().map(|it| it.id.to_u128() >> 80).min();
        self.oldest_created_at.store(oldest.and_then(|at| i64::try_from(at).ok()).unwrap_or(0), Relaxed);
    }
}
