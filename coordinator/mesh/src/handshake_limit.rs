//! Rate limits for QUIC handshakes: each costs a signature, so unknown sources share a limited number per second
//! and at once, while networks that agents have connected from have their own allowance.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use parallax_core::rate_limit::{KeyedTokenBuckets, TokenBucket, TokenRate};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::join_attempts::source_network;

/// Open handshakes of unknown sources, at most. Each costs some 90 KiB, and still does for three seconds after it
/// was closed (RFC 9000, section 10.2).
const MAX_UNKNOWN: usize = 64;
/// Further ones, for networks that agents have connected from.
const MAX_KNOWN: usize = 64;
/// Rate for all unknown sources together: handshakes per second, and the burst after some quiet.
const TOTAL_RATE: TokenRate = TokenRate::per_second(48, 96);
/// Rate per network: a few dozen agents behind one address all reconnect within seconds.
const NETWORK_RATE: TokenRate = TokenRate::per_second(8, 32);
/// Networks whose rate is tracked, and known networks remembered, at most each.
const MAX_NETWORKS: usize = 4_096;
/// Time a handshake keeps its permit while others wait for one: more than two round trips.
const GRACE: Duration = Duration::from_secs(1);

/// Limits handshakes overall, per network and in parallel.
#[derive(Debug, Clone)]
pub(super) struct HandshakeLimiter(Arc<Mutex<LimiterState>>);

/// A handshake's permit, released when dropped.
#[derive(Debug)]
pub(super) struct HandshakePermit {
    limiter: HandshakeLimiter,
    /// `None` for a known network.
    number: Option<u64>,
    eviction: Arc<Notify>,
}

#[derive(Debug)]
struct LimiterState {
    /// Start of the buckets' time.
    started_at: Instant,
    total: TokenBucket,
    per_network: KeyedTokenBuckets<IpAddr>,
    /// Networks that agents have connected from, newest last.
    known_networks: VecDeque<IpAddr>,
    known_open: usize,
    next: u64,
    /// Open handshakes of unknown sources, in the order in which they began.
    open: BTreeMap<u64, (Instant, Arc<Notify>)>,
}

impl HandshakeLimiter {
    /// Starts with no open handshakes and no known networks.
    pub(super) fn new(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(LimiterState {
            started_at: now,
            total: TokenBucket::default(),
            per_network: KeyedTokenBuckets::new(NETWORK_RATE, MAX_NETWORKS),
            known_networks: VecDeque::new(),
            known_open: 0,
            next: 0,
            open: BTreeMap::new(),
        })))
    }

    /// Returns a permit for a handshake from `source`, or `None` if a limit is reached. A client with a validated
    /// address that gets no response retries by itself after a second (RFC 9002, section 6.2).
    pub(super) fn acquire(&self, source: IpAddr, now: Instant) -> Option<HandshakePermit> {
        let source = source_network(source);
        let mut state = self.state();
        let eviction = Arc::new(Notify::new());
        let number = if state.known_networks.contains(&source) && state.known_open < MAX_KNOWN {
            if !state.take_token(source, true, now) {
                return None;
            }
            state.known_open += 1;
            None
        } else {
            Some(state.register(source, &eviction, now)?)
        };
        drop(state);
        Some(HandshakePermit { limiter: self.clone(), number, eviction })
    }

    /// Records that an agent has connected from `source`.
    pub(super) fn add_known_network(&self, source: IpAddr) {
        let source = source_network(source);
        let mut state = self.state();
        state.known_networks.retain(|known| *known != source);
        if state.known_networks.len() >= MAX_NETWORKS {
            state.known_networks.pop_front();
        }
        state.known_networks.push_back(source);
    }

    fn state(&self) -> MutexGuard<'_, LimiterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimiterState {
    /// Takes a token of that network's bucket. For an unknown network there must be space to track it.
    fn take_token(&mut self, source: IpAddr, is_known: bool, now: Instant) -> bool {
        let now = self.since_start(now);
        (self.per_network.has_room(&source, now) || is_known) && self.per_network.take(source, now)
    }

    fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started_at)
    }

    /// Registers a handshake of an unknown source and returns its number. If all permits are taken, the oldest one
    /// past its grace time is evicted.
    fn register(&mut self, source: IpAddr, eviction: &Arc<Notify>, now: Instant) -> Option<u64> {
        let oldest = self.open.first_key_value().map(|(number, (started, _))| (*number, *started));
        let oldest = oldest.filter(|_| self.open.len() >= MAX_UNKNOWN);
        let is_in_grace = oldest.is_some_and(|(_, started)| now.saturating_duration_since(started) < GRACE);
        // All limits are checked before any token is taken: a refused handshake costs neither a token nor a permit.
        let has_token = self.total.has_token(TOTAL_RATE, self.since_start(now));
        if is_in_grace || !has_token || !self.take_token(source, false, now) {
            return None;
        }
        self.total.reserve(TOTAL_RATE, self.since_start(now));
        if let Some((_, eviction)) = oldest.and_then(|(number, _)| self.open.remove(&number)) {
            eviction.notify_one();
        }
        let number = self.next;
        self.next += 1;
        self.open.insert(number, (now, Arc::clone(eviction)));
        Some(number)
    }
}

impl HandshakePermit {
    /// Waits until this handshake is evicted.
    pub(super) async fn evicted(&self) {
        self.eviction.notified().await;
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        let mut state = self.limiter.state();
        match self.number {
            Some(number) => {
                state.open.remove(&number);
            }
            None => state.known_open -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Returns the nth of many addresses, each in a network of its own.
    fn unknown_source(number: usize) -> IpAddr {
        let [.., a, b] = number.to_be_bytes();
        IpAddr::from([10, a, b, 1])
    }

    #[test]
    fn each_network_has_its_own_rate() {
        let started = Instant::now();
        let limiter = HandshakeLimiter::new(started);
        let admitted_count = |source: &str, now| {
            let source = source.parse().unwrap();
            std::iter::from_fn(|| limiter.acquire(source, now)).count()
        };
        assert_eq!(admitted_count("2001:db8::1", started), 32);
        assert_eq!(admitted_count("2001:db8::2", started), 0, "one host has all addresses of its network");
        assert_eq!(admitted_count("192.0.2.1", started), 32);
        assert_eq!(admitted_count("2001:db8::1", started + Duration::from_secs(1)), 8);
        assert_eq!(admitted_count("2001:db8::1", started + Duration::from_secs(60)), 32);
    }

    #[test]
    fn the_oldest_handshake_is_evicted_after_its_grace_time() {
        let started = Instant::now();
        let limiter = HandshakeLimiter::new(started);
        let permits: Vec<_> = (0..MAX_UNKNOWN).map(|n| limiter.acquire(unknown_source(n), started).unwrap()).collect();
        assert!(limiter.acquire(unknown_source(1_000), started + GRACE / 2).is_none());
        assert!(permits[0].evicted().now_or_never().is_none());
        let _new = limiter.acquire(unknown_source(1_001), started + GRACE).unwrap();
        assert!(permits[0].evicted().now_or_never().is_some());
        assert!(permits[1].evicted().now_or_never().is_none());
        drop(permits);
        assert_eq!(limiter.state().open.len(), 1);
    }

    #[test]
    fn unknown_sources_share_a_rate_and_known_networks_have_their_own() {
        let started = Instant::now();
        let limiter = HandshakeLimiter::new(started);
        let known_source = "2001:db8:7::9".parse().unwrap();
        limiter.add_known_network("2001:db8:7::1".parse().unwrap());
        let admitted = (0..5_000).filter(|n| limiter.acquire(unknown_source(*n), started).is_some()).count();
        assert_eq!(admitted, 96);
        let permits: Vec<_> = (0..MAX_KNOWN).filter_map(|_| limiter.acquire(known_source, started)).collect();
        assert_eq!(permits.len(), 32);
        drop(permits);
        assert_eq!(limiter.state().known_open, 0);
    }

    #[test]
    fn tracked_networks_are_bounded() {
        let mut now = Instant::now();
        let limiter = HandshakeLimiter::new(now);
        for number in 0..2 * MAX_NETWORKS {
            limiter.add_known_network(unknown_source(number));
            now += Duration::from_millis(1);
            drop(limiter.acquire(unknown_source(number + 20_000), now));
        }
        assert_eq!(limiter.state().known_networks.len(), MAX_NETWORKS);
        assert!(limiter.state().per_network.key_count() <= MAX_NETWORKS);
    }
}
