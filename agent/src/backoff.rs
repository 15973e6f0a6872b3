//! Wait before the next connection attempt: exponential backoff with full jitter.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// Shortest wait.
pub const SHORTEST: Duration = Duration::from_millis(500);
/// Longest wait after a temporary fault.
pub const LONGEST: Duration = Duration::from_secs(30);
/// Bounds of the wait after a permanent refusal (revoked, unknown, another version).
pub const PERMANENT: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(300));

/// Initial upper bound. It spreads the agents of a restarted coordinator over two and a half seconds.
const INITIAL_BOUND: Duration = Duration::from_secs(3);

/// Draws waits at random, reproducibly from the seed.
#[derive(Debug)]
pub struct Backoff {
    bound: Duration,
    random: StdRng,
}

impl Backoff {
    /// Starts at the shortest waits.
    pub fn new(seed: u64) -> Self {
        Self { bound: INITIAL_BOUND, random: StdRng::seed_from_u64(seed) }
    }

    /// Returns the next wait, between [`SHORTEST`] and a bound that doubles up to [`LONGEST`].
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.random.random_range(SHORTEST..=self.bound);
        self.bound = (self.bound * 2).min(LONGEST);
        wait
    }

    /// Returns a wait after a permanent refusal.
    pub fn permanent_wait(&mut self) -> Duration {
        self.random.random_range(PERMANENT.0..=PERMANENT.1)
    }

    /// Restarts at the shortest waits after a stable connection.
    pub fn reset(&mut self) {
        self.bound = INITIAL_BOUND;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_stay_within_their_bounds_and_grow() {
        for seed in 0..200 {
            let mut backoff = Backoff::new(seed);
            let mut bound = INITIAL_BOUND;
            for _ in 0..12 {
                let wait = backoff.next_wait();
                assert!(wait >= SHORTEST && wait <= bound, "{wait:?}");
                bound = (bound * 2).min(LONGEST);
            }
        }
    }

    #[test]
    fn sixty_agents_reconnect_at_different_times() {
        let mut tenths = [0; 30];
        for seed in 0..60 {
            let wait = Backoff::new(seed).next_wait();
            tenths[usize::try_from(wait.as_millis() / 100).unwrap().min(29)] += 1;
        }
        assert!(tenths.into_iter().max().unwrap() <= 10, "{tenths:?}");
    }

    #[test]
    fn a_reset_returns_to_short_waits() {
        let mut backoff = Backoff::new(7);
        for _ in 0..10 {
            backoff.next_wait();
        }
        backoff.reset();
        assert!(backoff.next_wait() <= INITIAL_BOUND);
        assert!(backoff.permanent_wait() >= PERMANENT.0);
    }
}
