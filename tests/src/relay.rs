//! A bad line: a UDP relay that loses, delays, doubles, reorders and damages datagrams, is cut, is thin, and changes its
//! address, all by a seed.

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
/// A thin line's queue: what would wait longer is lost.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

/// What a line does to the datagrams of each direction. Shares are of a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// Lost.
    pub lost: u64,
    /// Sent twice.
    pub doubled: u64,
    /// Held back behind later ones.
    pub reordered: u64,
    /// With one byte changed.
    pub damaged: u64,
    /// On the way for so many milliseconds.
    pub delay_ms: u64,
    /// And up to so many more.
    pub jitter_ms: u64,
    /// Bits a second; 0 for no bound.
    pub bits_per_second: u64,
}

/// What has gone through a relay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    /// Datagrams that came, both ways.
    pub came: u64,
    /// Lost on the way, for whatever reason.
    pub lost: u64,
    /// Bytes that came, both ways.
    pub bytes: u64,
}

/// A line to one address. Whoever sends to the relay is relayed from a port of its own.
#[derive(Debug)]
pub struct Relay {
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
    weather: Weather,
    is_cut: bool,
    random: u64,
    traffic: Traffic,
    captured: Option<Vec<u8>>,
    /// The socket towards the far end, by near address.
    ways: BTreeMap<SocketAddr, Arc<UdpSocket>>,
    /// Until when a thin line is busy, there and back.
    busy: [Option<Instant>; 2],
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    There,
    Back,
}

impl Relay {
    /// A clear line to `to`, on loopback.
    pub async fn start(to: SocketAddr, seed: u64) -> Self {
        let listener = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a UDP socket");
        Self::listen(listener, to, seed)
    }

    /// The same where a relay was that has been dropped. Until then whoever sends there hears that nobody listens.
    pub async fn start_at(address: SocketAddr, to: SocketAddr, seed: u64) -> Self {
        let listener = eventually("the address is free", Duration::from_secs(5), async || {
            UdpSocket::bind(address).await.ok()
        });
        Self::listen(listener.await, to, seed)
    }

    fn listen(listener: UdpSocket, to: SocketAddr, seed: u64) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let state = State {
            weather: Weather::default(),
            is_cut: false,
            random: seed,
            traffic: Traffic::default(),
            captured: None,
            ways: BTreeMap::new(),
            busy: [None; 2],
        };
        let line = Arc::new(Line { to, listener, state: Mutex::new(state) });
        let mut tasks = JoinSet::new();
        tasks.spawn(there(Arc::clone(&line)));
        Self { address, line, _tasks: tasks }
    }

    /// Where to send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the weather, both ways.
    pub fn set(&self, weather: Weather) {
        self.line.state().weather = weather;
    }

    /// Cuts the line silently, or repairs it.
    pub fn cut(&self, is_cut: bool) {
        self.line.state().is_cut = is_cut;
    }

    /// Has everybody come from another port from now on, as a router does that has forgotten them.
    pub fn rebind(&self) {
        self.line.state().ways.clear();
    }

    /// Keeps every byte from now on.
    pub fn capture(&self) {
        self.line.state().captured = Some(Vec::new());
    }

    /// The bytes kept.
    pub fn captured(&self) -> Vec<u8> {
        self.line.state().captured.clone().unwrap_or_default()
    }

    /// What has gone through.
    pub fn traffic(&self) -> Traffic {
        self.line.state().traffic
    }
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way of a near address to the far end, made where there is none.
    async fn way(self: &Arc<Self>, near: SocketAddr) -> Arc<UdpSocket> {
        if let Some(way) = self.state().ways.get(&near) {
            return Arc::clone(way);
        }
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a UDP socket");
        socket.connect(self.to).await.expect("loopback is there");
        let way = Arc::new(socket);
        self.state().ways.insert(near, Arc::clone(&way));
        tokio::spawn(back(Arc::downgrade(self), Arc::downgrade(&way), near));
        way
    }

    /// What becomes of a datagram: the moments at which it arrives, and its bytes then.
    fn fate(&self, direction: Direction, bytes: &[u8]) -> Vec<(Instant, Vec<u8>)> {
        let mut state = self.state();
        state.traffic.came += 1;
        state.traffic.bytes += bytes.len() as u64;
        if let Some(captured) = &mut state.captured {
            captured.extend_from_slice(bytes);
        }
        let weather = state.weather;
        if state.is_cut || state.happens(weather.lost) {
            state.traffic.lost += 1;
            return Vec::new();
        }
        let Some(through) = state.through(direction, bytes.len(), Instant::now()) else {
            state.traffic.lost += 1;
            return Vec::new();
        };
        let mut copies = vec![through];
        if state.happens(weather.doubled) {
            copies.push(through);
        }
        copies.into_iter().map(|at| (at + state.way_time(), state.maybe_damaged(bytes))).collect()
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

    fn way_time(&mut self) -> Duration {
        let weather = self.weather;
        let jitter = if weather.jitter_ms == 0 { 0 } else { self.next() % weather.jitter_ms };
        let behind = if self.happens(weather.reordered) { weather.delay_ms / 2 + 20 } else { 0 };
        Duration::from_millis(weather.delay_ms + jitter + behind)
    }

    fn maybe_damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if self.happens(self.weather.damaged) && !bytes.is_empty() {
            let at = usize::try_from(self.next() % bytes.len() as u64).unwrap_or(0);
            bytes[at] ^= 1 << (self.next() % 8);
        }
        bytes
    }

    /// When a datagram has passed a thin line; none where the queue is full.
    fn through(&mut self, direction: Direction, length: usize, now: Instant) -> Option<Instant> {
        if self.weather.bits_per_second == 0 {
            return Some(now);
        }
        let micros = (length as u64 + 28) * 8 * 1_000_000 / self.weather.bits_per_second;
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

async fn there(line: Arc<Line>) {
    let mut buffer = vec![0; DATAGRAM];
    loop {
        // A port that answered nobody is told of by an error, which means nothing here.
        let Ok((length, near)) = line.listener.recv_from(&mut buffer).await else { continue };
        for (at, bytes) in line.fate(Direction::There, &buffer[..length]) {
            let way = line.way(near).await;
            tokio::spawn(async move {
                sleep_until(at).await;
                let _ = way.send(&bytes).await;
            });
        }
    }
}

/// Brings answers back for as long as the line and the way are there.
async fn back(line: std::sync::Weak<Line>, way: std::sync::Weak<UdpSocket>, near: SocketAddr) {
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let Some(socket) = way.upgrade() else { return };
        let received = tokio::time::timeout(Duration::from_secs(1), socket.recv(&mut buffer)).await;
        drop(socket);
        let (Some(line), Ok(Ok(length))) = (line.upgrade(), received) else { continue };
        for (at, bytes) in line.fate(Direction::Back, &buffer[..length]) {
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

    /// What comes back of so many datagrams, `wanted` of them where that is known: else until nothing more comes.
    async fn asks(relay: &Relay, socket: &UdpSocket, count: u8, wanted: Option<usize>) -> Vec<Vec<u8>> {
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
        let relay = Relay::start(echo().await, 1).await;
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let clear = asks(&relay, &near, 100, Some(100)).await;
        assert_eq!(clear.len(), 100);
        relay.rebind();
        let moved = asks(&relay, &near, 1, Some(1)).await;
        assert_ne!(moved[0][..2], clear[0][..2], "from another port");
        relay.set(Weather { lost: 500, ..Weather::default() });
        assert!((5..60).contains(&asks(&relay, &near, 100, None).await.len()));
        relay.set(Weather { doubled: 1_000, ..Weather::default() });
        assert_eq!(asks(&relay, &near, 10, Some(40)).await.len(), 40);
        relay.set(Weather { reordered: 300, delay_ms: 20, ..Weather::default() });
        let numbers: Vec<u8> = asks(&relay, &near, 50, Some(50)).await.iter().map(|bytes| bytes[2]).collect();
        assert!(numbers.len() == 50 && !numbers.is_sorted());
        relay.set(Weather { damaged: 1_000, ..Weather::default() });
        assert_ne!(asks(&relay, &near, 1, Some(1)).await[0][2], 0);
        relay.set(Weather::default());
        relay.cut(true);
        assert!(asks(&relay, &near, 10, None).await.is_empty());
        relay.cut(false);
        assert_eq!(asks(&relay, &near, 10, Some(10)).await.len(), 10);
    }
}
