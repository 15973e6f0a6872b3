//! Rate limits for QUIC handshakes: each costs a signature, so unknown sources share a limited number per second
//! and at once, while networks that agents have connected from have their own allowance.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::join::network;

/// Open handshakes of unknown sources, at most. Each costs some 90 KiB, and still does for three seconds after it
/// was closed (RFC 9000, section 10.2).
const STRANGERS: usize = 64;
/// Further ones, for networks that agents have connected from.
const KNOWN: usize = 64;
/// Rate for all unknown sources together: handshakes per second, and the burst after some quiet.
const PACE: Pace = Pace { a_second: 48.0, burst: 96.0 };
/// Rate per network: a few dozen agents behind one address all reconnect within seconds.
const PACE_OF_ONE: Pace = Pace { a_second: 8.0, burst: 32.0 };
/// Networks whose rate is tracked, and known networks remembered, at most each.
const NETWORKS: usize = 4_096;
/// Time a handshake keeps its permit while others wait for one: more than two round trips.
const GRACE: Duration = Duration::from_secs(1);

/// A token bucket rate.
#[derive(Debug, Clone, Copy)]
struct Pace {
    a_second: f64,
    burst: f64,
}

/// The fill level of a token bucket at a moment.
#[derive(Debug, Clone, Copy)]
struct Left {
    tokens: f64,
    at: Instant,
}

/// Limits handshakes overall, per network and in parallel.
#[derive(Debug, Clone)]
pub(super) struct Gate(Arc<Mutex<State>>);

/// A handshake's permit, released when dropped.
#[derive(Debug)]
pub(super) struct Place {
    gate: Gate,
    /// `None` for a known network.
    number: Option<u64>,
    leave: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    left: Left,
    of_one: BTreeMap<IpAddr, Left>,
    /// Networks that agents have connected from, newest last.
    known: VecDeque<IpAddr>,
    known_under_way: usize,
    next: u64,
    /// Open handshakes of unknown sources, in the order in which they began.
    under_way: BTreeMap<u64, (Instant, Arc<Notify>)>,
}

impl Gate {
    /// Starts with no open handshakes and no known networks.
    pub(super) fn new(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(State {
            left: PACE.full(now),
            of_one: BTreeMap::new(),
            known: VecDeque::new(),
            known_under_way: 0,
            next: 0,
            under_way: BTreeMap::new(),
        })))
    }

    /// Returns a permit for a handshake from `source`, or `None` if a limit is reached. A client with a validated
    /// address that gets no response retries by itself after a second (RFC 9002, section 6.2).
    pub(super) fn admit(&self, source: IpAddr, now: Instant) -> Option<Place> {
        let source = network(source);
        let mut state = self.state();
        let leave = Arc::new(Notify::new());
        let number = if state.known.contains(&source) && state.known_under_way < KNOWN {
            if !state.takes_turn(source, true, now) {
                return None;
            }
            state.known_under_way += 1;
            None
        } else {
            Some(state.begin(source, &leave, now)?)
        };
        drop(state);
        Some(Place { gate: self.clone(), number, leave })
    }

    /// Records that an agent has connected from `source`.
    pub(super) fn know(&self, source: IpAddr) {
        let source = network(source);
        let mut state = self.state();
        state.known.retain(|known| *known != source);
        if state.known.len() >= NETWORKS {
            state.known.pop_front();
        }
        state.known.push_back(source);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes a token of that network's bucket. For an unknown network there must be space to track it.
    fn takes_turn(&mut self, source: IpAddr, is_known: bool, now: Instant) -> bool {
        if self.of_one.len() >= NETWORKS && !self.of_one.contains_key(&source) {
            self.of_one.retain(|_, left| !PACE_OF_ONE.is_full(*left, now));
            if self.of_one.len() >= NETWORKS && !is_known {
                return false;
            }
        }
        PACE_OF_ONE.take(self.of_one.entry(source).or_insert_with(|| PACE_OF_ONE.full(now)), now)
    }

    /// Registers a handshake of an unknown source and returns its number. If all permits are taken, the oldest one
    /// past its grace time is evicted.
    fn begin(&mut self, source: IpAddr, leave: &Arc<Notify>, now: Instant) -> Option<u64> {
        let oldest = self.under_way.first_key_value().map(|(number, (begun, _))| (*number, *begun));
        let oldest = oldest.filter(|_| self.under_way.len() >= STRANGERS);
        let is_taken = oldest.is_some_and(|(_, begun)| now.saturating_duration_since(begun) < GRACE);
        // All limits are checked before any token is taken: a refused handshake costs neither a token nor a permit.
        if is_taken || PACE.at(self.left, now) < 1.0 || !self.takes_turn(source, false, now) {
            return None;
        }
        PACE.take(&mut self.left, now);
        if let Some((_, leave)) = oldest.and_then(|(number, _)| self.under_way.remove(&number)) {
            leave.notify_one();
        }
        let number = self.next;
        self.next += 1;
        self.under_way.insert(number, (now, Arc::clone(leave)));
        Some(number)
    }
}

impl Place {
    /// Waits until this handshake is evicted.
    pub(super) async fn told_to_leave(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        match self.number {
            Some(number) => {
                state.under_way.remove(&number);
            }
            None => state.known_under_way -= 1,
        }
    }
}

impl Pace {
    const fn full(self, now: Instant) -> Left {
        Left { tokens: self.burst, at: now }
    }

    fn at(self, left: Left, now: Instant) -> f64 {
        let grown = now.saturating_duration_since(left.at).as_secs_f64() * self.a_second;
        (left.tokens + grown).min(self.burst)
    }

    fn is_full(self, left: Left, now: Instant) -> bool {
        self.at(left, now) >= self.burst
    }

    fn take(self, left: &mut Left, now: Instant) -> bool {
        let tokens = self.at(*left, now);
        let may = tokens >= 1.0;
        *left = Left { tokens: if may { tokens - 1.0 } else { tokens }, at: now };
        may
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Returns the nth of many addresses, each in a network of its own.
    fn stranger(number: usize) -> IpAddr {
        let [.., a, b] = number.to_be_bytes();
        IpAddr::from([10, a, b, 1])
    }

    #[test]
    fn one_network_has_its_pace_and_others_theirs() {
        let begun = Instant::now();
        let gate = Gate::new(begun);
        let turns = |source: &str, now| {
            let source = source.parse().unwrap();
            std::iter::from_fn(|| gate.admit(source, now)).count()
        };
        assert_eq!(turns("2001:db8::1", begun), 32);
        assert_eq!(turns("2001:db8::2", begun), 0, "one host has all addresses of its network");
        assert_eq!(turns("192.0.2.1", begun), 32);
        assert_eq!(turns("2001:db8::1", begun + Duration::from_secs(1)), 8);
        assert_eq!(turns("2001:db8::1", begun + Duration::from_secs(60)), 32);
    }

    #[test]
    fn the_oldest_handshake_makes_room_once_it_has_had_its_time() {
        let begun = Instant::now();
        let gate = Gate::new(begun);
        let held: Vec<_> = (0..STRANGERS).map(|n| gate.admit(stranger(n), begun).unwrap()).collect();
        assert!(gate.admit(stranger(1_000), begun + GRACE / 2).is_none());
        assert!(held[0].told_to_leave().now_or_never().is_none());
        let _new = gate.admit(stranger(1_001), begun + GRACE).unwrap();
        assert!(held[0].told_to_leave().now_or_never().is_some());
        assert!(held[1].told_to_leave().now_or_never().is_none());
        drop(held);
        assert_eq!(gate.state().under_way.len(), 1);
    }

    #[test]
    fn strangers_share_a_pace_and_an_agents_network_is_let_in_besides() {
        let begun = Instant::now();
        let gate = Gate::new(begun);
        let home = "2001:db8:7::9".parse().unwrap();
        gate.know("2001:db8:7::1".parse().unwrap());
        let admitted = (0..5_000).filter(|n| gate.admit(stranger(*n), begun).is_some()).count();
        assert_eq!(admitted, 96);
        let at_home: Vec<_> = (0..KNOWN).filter_map(|_| gate.admit(home, begun)).collect();
        assert_eq!(at_home.len(), 32);
        drop(at_home);
        assert_eq!(gate.state().known_under_way, 0);
    }

    #[test]
    fn what_is_kept_of_networks_is_bounded() {
        let mut now = Instant::now();
        let gate = Gate::new(now);
        for number in 0..2 * NETWORKS {
            gate.know(stranger(number));
            now += Duration::from_millis(1);
            drop(gate.admit(stranger(number + 20_000), now));
        }
        assert_eq!(gate.state().known.len(), NETWORKS);
        assert!(gate.state().of_one.len() <= NETWORKS);
    }
}
