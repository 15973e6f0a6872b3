//! The only place that reads the wall clock; tests hand in a clock of their own.

use std::fmt;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parallax_core::time::Timestamp;

/// A source of the present moment. Cheap to clone.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<Hand>>);

/// A clock that is moved by hand.
#[derive(Debug)]
struct Hand {
    wall: AtomicI64,
    /// Time itself: it goes forth with the wall's clock, and never back.
    steady: AtomicI64,
}

/// Where time itself is counted from.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Clock {
    /// The host's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that stands at `at` until [`Clock::set`] moves it.
    pub fn by_hand(at: Timestamp) -> Self {
        let at = at.as_millis();
        Self(Some(Arc::new(Hand { wall: AtomicI64::new(at), steady: AtomicI64::new(at) })))
    }

    /// The present moment.
    #[allow(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn now(&self) -> Timestamp {
        let millis = match &self.0 {
            Some(hand) => hand.wall.load(Ordering::Acquire),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
        };
        Timestamp::from_millis(millis)
    }

    /// Milliseconds since some moment, which only go forth, whatever happens to the clock on the wall. A host that sleeps
    /// may leave its sleep out.
    pub fn steady(&self) -> i64 {
        match &self.0 {
            Some(hand) => hand.steady.load(Ordering::Acquire),
            None => i64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(i64::MAX),
        }
    }

    /// Moves a clock that was made [`Clock::by_hand`]; the host's clock stays as it is.
    pub fn set(&self, at: Timestamp) {
        if let Some(hand) = &self.0 {
            hand.steady.fetch_max(at.as_millis(), Ordering::AcqRel);
            hand.wall.store(at.as_millis(), Ordering::Release);
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.now())
    }
}
