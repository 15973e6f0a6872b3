//! The only place that reads the wall clock; tests hand in a clock of their own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parallax_core::time::Timestamp;

/// A source of the present moment. Cheap to clone.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// The host's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that stands at `at` until [`Clock::set`] moves it.
    pub fn by_hand(at: Timestamp) -> Self {
        Self(Some(Arc::new(AtomicI64::new(at.as_millis()))))
    }

    /// The present moment.
    #[allow(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn now(&self) -> Timestamp {
        let millis = match &self.0 {
            Some(hand) => hand.load(Ordering::Acquire),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
        };
        Timestamp::from_millis(millis)
    }

    /// Moves a clock that was made [`Clock::by_hand`]; the host's clock stays as it is.
    pub fn set(&self, at: Timestamp) {
        if let Some(hand) = &self.0 {
            hand.store(at.as_millis(), Ordering::Release);
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.now())
    }
}
