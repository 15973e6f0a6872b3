//! A UDP relay that simulates a bad line: it drops, delays, duplicates, reorders and damages datagrams, is cut, limits
//! bandwidth, and changes its source address, all by a seed.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::eventually::eventually;

/// Longest datagram.
const DATAGRAM: usize = 65_535;
/// Longest queueing delay of a limited line; later datagrams are dropped.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

/// Line conditions for each direction. Shares are per thousand.
#[derive(Debug, Clone, Copy, Default)]
pub struct LineConditions {
    /// Dropped.
    pub dropped: u64,
    /// Duplicated.
    pub duplicated: u64,
    /// Delayed behind later ones.
    pub reordered: u64,
    /// Sent with one byte changed.
    pub damaged: u64,
    /// Delay in milliseconds.
    pub delay_ms: u64,
    /// Additional random delay, up to this many milliseconds.
    pub jitter_ms: u64,
    /// Bandwidth in bits per second; 0 for unlimited.
    pub bits_per_second: u64,
}

/// Counters of a relay.
#[derive(Debug, Clone, Copy, Default)]
pub struct RelayTraffic {
    /// Received datagrams, both directions.
    pub received: u64,
    /// Datagrams lost for any reason.
    pub lost: u64,
    /// Received bytes, both directions.
    pub bytes: u64,
}

/// A line to one address. Each sender is relayed from a separate port.
#[derive(Debug)]
pub struct UdpRelay {
    address: SocketAddr,
    line: Arc<Line>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Line {
    to: SocketAddr,
    listener: UdpSocket,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    conditions: LineConditions,
    is_cut: bool,
    random: u64,
    traffic: RelayTraffic,
    captured: Option<Vec<u8>>,
    /// Sockets towards the far end, by sender address.
    sockets: BTreeMap<SocketAddr, Arc<UdpSocket>>,
    /// End of the current transmission of a limited line, for each direction.
    busy: [Option<Instant>; 2],
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Outbound,
    Return,
}

impl UdpRelay {
    /// Starts a line without faults to `to`, on loopback.
    pub async fn start(to: SocketAddr, seed: u64) -> Self {
        let listener = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a UDP socket");
        Self::listen(listener, to, seed)
    }

    /// As [`UdpRelay::start`], at the address of a relay that was dropped. Until then senders there get ICMP port
    /// unreachable.
    pub async fn start_at(address: SocketAddr, to: SocketAddr, seed: u64) -> Self {
        let listener =
            eventually("the address is free", Duration::from_secs(5), async || UdpSocket::bind(address).await.ok());
        Self::listen(listener.await, to, seed)
    }

    fn listen(listener: UdpSocket, to: SocketAddr, seed: u64) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let state = State {
            conditions: LineConditions::default(),
            is_cut: false,
            random: seed,
            traffic: RelayTraffic::default(),
            captured: None,
            sockets: BTreeMap::new(),
            busy: [None; 2],
        };
        let line = Arc::new(Line { to, listener, state: Mutex::new(state) });
        let mut tasks = JoinSet::new();
        tasks.spawn(forward(Arc::clone(&line)));
        Self { address, line, _tasks: tasks }
    }

    /// Returns the address to send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the line conditions of both directions.
    pub fn set(&self, weather: LineConditions) {
        self.line.state().conditions = weather;
    }

    /// Cuts the line silently, or restores it.
    pub fn cut(&self, is_cut: bool) {
        self.line.state().is_cut = is_cut;
    }

    /// Relays every sender from a new port from now on, as a NAT router does that has lost its table.
    pub fn rebind(&self) {
        self.line.state().sockets.clear();
    }

    /// Starts to record all bytes.
    pub fn capture(&self) {
        self.line.state().captured = Some(Vec::new());
    }

    /// Returns the recorded bytes.
    pub fn captured(&self) -> Vec<u8> {
        self.line.state().captured.clone().unwrap_or_default()
    }

    /// Returns the counters.
    pub fn traffic(&self) -> RelayTraffic {
        self.line.state().traffic
    }
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the socket for a sender, creating it if needed.
    async fn socket_for(self: &Arc<Self>, near: SocketAddr) -> Arc<UdpSocket> {
        if let Some(way) = self.state().sockets.get(&near) {
            return Arc::clone(way);
        }
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a UDP socket");
        socket.connect(self.to).await.expect("loopback is there");
        let way = Arc::new(socket);
        self.state().sockets.insert(near, Arc::clone(&way));
        tokio::spawn(return_responses(Arc::downgrade(self), Arc::downgrade(&way), near));
        way
    }

    /// Decides the arrival times of a datagram, and its bytes at each.
    fn arrivals(&self, direction: Direction, bytes: &[u8]) -> Vec<(Instant, Vec<u8>)> {
        let mut state = self.state();
        state.traffic.received += 1;
        state.traffic.bytes += bytes.len() as u64;
        if let Some(captured) = &mut state.captured {
            captured.extend_from_slice(bytes);
        }
        let weather = state.conditions;
        if state.is_cut || state.happens(weather.dropped) {
            state.traffic.lost += 1;
            return Vec::new();
        }
        let Some(through) = state.transmission_end(direction, bytes.len(), Instant::now()) else {
            state.traffic.lost += 1;
            return Vec::new();
        };
        let mut copies = vec![through];
        if state.happens(weather.duplicated) {
            copies.push(through);
        }
        copies.into_iter().map(|at| (at + state.delay(), state.maybe_damaged(bytes))).collect()
    }
}

impl State {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn happens(&mut self, of_a_thousand: u64) -> bool {
        of_a_thousand > 0 && self.next() % 1_000 < of_a_thousand
    }

    fn delay(&mut self) -> Duration {
        let weather = self.conditions;
        let jitter = if weather.jitter_ms == 0 { 0 } else { self.next() % weather.jitter_ms };
        let behind = if self.happens(weather.reordered) { weather.delay_ms / 2 + 20 } else { 0 };
        Duration::from_millis(weather.delay_ms + jitter + behind)
    }

    fn maybe_damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if self.happens(self.conditions.damaged) && !bytes.is_empty() {
            let at = usize::try_from(self.next() % bytes.len() as u64).unwrap_or(0);
            bytes[at] ^= 1 << (self.next() % 8);
        }
        bytes
    }

    /// Returns the time at which a datagram has passed a limited line; `None` if the queue is full.
    fn transmission_end(&mut self, direction: Direction, length: usize, now: Instant) -> Option<Instant> {
        if self.conditions.bits_per_second == 0 {
            return Some(now);
        }
        let micros = (length as u64 + 28) * 8 * 1_000_000 / self.conditions.bits_per_second;
        let busy = &mut self.busy[direction as usize];
        let begins = busy.map_or(now, |busy| busy.max(now));
        if begins - now > LONGEST_QUEUE {
            return None;
        }
        let ends = begins + Duration::from_micros(micros);
        *busy = Some(ends);
        Some(ends)
    }
}

async fn forward(line: Arc<Line>) {
    let mut buffer = vec![0; DATAGRAM];
    loop {
        // Errors here report a closed port at the other end, which means nothing to the relay.
        let Ok((length, near)) = line.listener.recv_from(&mut buffer).await else { continue };
        for (at, bytes) in line.arrivals(Direction::Outbound, &buffer[..length]) {
            let way = line.socket_for(near).await;
            tokio::spawn(async move {
                sleep_until(at).await;
                let _ = way.send(&bytes).await;
            });
        }
    }
}

/// Relays responses while the line and the sender's socket exist.
async fn return_responses(line: std::sync::Weak<Line>, way: std::sync::Weak<UdpSocket>, near: SocketAddr) {
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let Some(socket) = way.upgrade() else { return };
        let received = tokio::time::timeout(Duration::from_secs(1), socket.recv(&mut buffer)).await;
        drop(socket);
        let (Some(line), Ok(Ok(length))) = (line.upgrade(), received) else { continue };
        for (at, bytes) in line.arrivals(Direction::Return, &buffer[..length]) {
            let line = Arc::clone(&line);
            tokio::spawn(async move {
                sleep_until(at).await;
                let _ = line.listener.send_to(&bytes, near).await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn echo() -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 64];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let port = from.port().to_be_bytes();
                let _ = socket.send_to(&[&port, &buffer[..length]].concat(), from).await;
            }
        });
        address
    }

    /// Returns the responses to `count` datagrams: `wanted` of them if given, else all until none arrive.
    async fn asks(relay: &UdpRelay, socket: &UdpSocket, count: u8, wanted: Option<usize>) -> Vec<Vec<u8>> {
        for number in 0..count {
            socket.send_to(&[number], relay.address()).await.unwrap();
        }
        let mut heard = Vec::new();
        let mut buffer = [0; 64];
        while wanted != Some(heard.len()) {
            let limit = Duration::from_millis(if wanted.is_some() { 10_000 } else { 500 });
            let Ok(Ok(length)) = tokio::time::timeout(limit, socket.recv(&mut buffer)).await else { break };
            heard.push(buffer[..length].to_vec());
        }
        heard
    }

    #[tokio::test]
    async fn a_clear_line_brings_everything_and_a_bad_one_does_as_it_is_told() {
        let relay = UdpRelay::start(echo().await, 1).await;
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let clear = asks(&relay, &near, 100, Some(100)).await;
        assert_eq!(clear.len(), 100);
        relay.rebind();
        let moved = asks(&relay, &near, 1, Some(1)).await;
        assert_ne!(moved[0][..2], clear[0][..2], "from another port");
        relay.set(LineConditions { dropped: 500, ..LineConditions::default() });
        assert!((5..60).contains(&asks(&relay, &near, 100, None).await.len()));
        relay.set(LineConditions { duplicated: 1_000, ..LineConditions::default() });
        assert_eq!(asks(&relay, &near, 10, Some(40)).await.len(), 40);
        relay.set(LineConditions { reordered: 300, delay_ms: 20, ..LineConditions::default() });
        let numbers: Vec<u8> = asks(&relay, &near, 50, Some(50)).await.iter().map(|bytes| bytes[2]).collect();
        assert!(numbers.len() == 50 && !numbers.is_sorted());
        relay.set(LineConditions { damaged: 1_000, ..LineConditions::default() });
        assert_ne!(asks(&relay, &near, 1, Some(1)).await[0][2], 0);
        relay.set(LineConditions::default());
        relay.cut(true);
        assert!(asks(&relay, &near, 10, None).await.is_empty());
        relay.cut(false);
        assert_eq!(asks(&relay, &near, 10, Some(10)).await.len(), 10);
    }
}
