//! Datagrams and half handshakes at the agents' port.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parallax_protocol::version::MESH_V1;
use parallax_tests::eventually::{figure, note};
use parallax_tests::installation::Coordinator;
use parallax_tests::stranger::{Shows, knock, scattered};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::begun::{Hello, begin};
use super::{alone, stayed};

/// Memory that a flood may cost, in MiB.
const MEMORY: u64 = 32;
/// Addresses from which handshakes are begun.
const ADDRESSES: u8 = 25;
/// Longest time for an honest agent to come in meanwhile.
const COMES: Duration = Duration::from_secs(20);

/// What comes at the port, and for how long.
#[derive(Debug, Clone, Copy)]
struct Siege {
    span: Duration,
    /// Datagrams a second of random bytes.
    random: u64,
    /// Datagrams a second that were a client's first, or its answer to a Retry, sent again.
    again: u64,
    /// Handshakes a second that strangers begin and leave.
    begun: u64,
    /// Whole handshakes under way at any time, by strangers.
    knocking: usize,
}

/// What went to the port, and what came back.
#[derive(Default)]
pub(super) struct Traffic {
    pub(super) datagrams: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) came: AtomicU64,
    /// Handshakes that were begun, and those of them that went on with a proven address.
    pub(super) begun: AtomicU64,
    pub(super) proven: AtomicU64,
}

/// Sends one of `datagrams` after the other, so many a second for that long, and counts what comes back.
async fn pelt(socket: UdpSocket, datagrams: Vec<Vec<u8>>, rate: u64, span: Duration, traffic: Arc<Traffic>) {
    const TICKS: u64 = 200;
    let mut came = [0; 2048];
    let mut take = || {
        while let Ok(count) = socket.try_recv(&mut came) {
            traffic.came.fetch_add(count as u64, Ordering::Relaxed);
        }
    };
    let mut next = datagrams.iter().cycle();
    let mut tick = interval(Duration::from_secs(1) / u32::try_from(TICKS).expect("it is small"));
    let begun = Instant::now();
    while begun.elapsed() < span {
        tick.tick().await;
        for datagram in next.by_ref().take(usize::try_from(rate / TICKS).expect("it is small")) {
            if socket.send(datagram).await.is_ok() {
                traffic.datagrams.fetch_add(1, Ordering::Relaxed);
                traffic.sent.fetch_add(datagram.len() as u64, Ordering::Relaxed);
            }
        }
        take();
    }
    // What is still on its way.
    let late = tokio::time::timeout(Duration::from_secs(1), async {
        loop {
            if socket.readable().await.is_ok() {
                take();
            }
        }
    });
    let _: Result<(), _> = late.await;
}

/// A socket that speaks to the port alone.
async fn socket(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    socket.connect(to).await.expect("loopback has a way");
    socket
}

/// What somebody without a certificate sends first, and then in answer to a Retry, with the socket that both came from: the
/// second holds for that address alone.
async fn initials(to: SocketAddr) -> (UdpSocket, Vec<u8>, Vec<u8>) {
    let (near, far) = (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket"), socket(to).await);
    let at = near.local_addr().expect("it is bound");
    let caller = tokio::spawn(knock(at, MESH_V1, Shows::Nothing, "parallax:agent:none"));
    let (mut asked, mut answer) = ([0; 2048], [0; 2048]);
    let (mut first, mut stranger) = (Vec::new(), None);
    let second = loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(30)) => panic!("nobody told the caller to try again"),
            got = near.recv_from(&mut asked) => {
                let (count, from) = got.expect("it knocks");
                let datagram = asked[..count].to_vec();
                stranger = Some(from);
                // To whom it is addressed follows flags and version, and is another once it was told to try again.
                if first.is_empty() {
                    first.clone_from(&datagram);
                } else if datagram.get(5..14) != first.get(5..14) {
                    break datagram;
                }
                far.send(&datagram).await.expect("loopback has a way");
            }
            got = far.recv(&mut answer) => {
                let told = &answer[..got.expect("it is told to try again")];
                near.send_to(told, stranger.expect("it asked")).await.expect("loopback has a way");
            }
        }
    };
    caller.abort();
    (far, first, second)
}

/// Handshakes by those who show nothing, and now and then of those who show another installation's certificate or one of
/// their own. Gives how many there were; none gets in.
async fn knocks(mesh: SocketAddr, at_once: usize, span: Duration) -> usize {
    let begun = Instant::now();
    let mut knocking = JoinSet::new();
    let mut knocked = 0;
    while begun.elapsed() < span || !knocking.is_empty() {
        while knocking.len() < at_once && begun.elapsed() < span {
            let shows = match knocked % 50 {
                0 => Shows::OtherAuthority,
                1 => Shows::SelfMade,
                _ => Shows::Nothing,
            };
            knocked += 1;
            // One that found no room for its handshake has been told so, or waits in vain.
            let patience = Duration::from_secs(5);
            knocking.spawn(async move {
                tokio::time::timeout(patience, knock(mesh, MESH_V1, shows, "parallax:agent:none")).await
            });
        }
        if let Some(ended) = knocking.join_next().await {
            assert!(!matches!(ended, Ok(Ok(Ok(())))), "nobody gets in");
        }
    }
    knocked
}

async fn besiege(siege: Siege) {
    const THREADS: u64 = 2;
    let _turn = alone().await;
    let coordinator = Coordinator::serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "").await;
    let agent = coordinator.agent("fra1", "europe", "AS64500", None);
    coordinator.connected(1).await;
    let (mesh, before) = (coordinator.ready.mesh, coordinator.process.resident());
    let traffic = Arc::new(Traffic::default());
    let known = [initials(mesh).await, initials(mesh).await];
    let mut pelting = JoinSet::new();
    for ((far, first, second), thread) in known.into_iter().zip(0..) {
        // Of every size and first byte, so of every kind that QUIC knows.
        let random = (0..4_096)
            .map(|n| scattered(n * THREADS + thread, 20 + usize::try_from(n * 7 % 1_400).unwrap_or(0)));
        let (random, rate) = (random.collect(), siege.random / THREADS);
        pelting.spawn(pelt(socket(mesh).await, random, rate, siege.span, Arc::clone(&traffic)));
        let rate = siege.again / THREADS / 2;
        pelting.spawn(pelt(socket(mesh).await, vec![first], rate, siege.span, Arc::clone(&traffic)));
        pelting.spawn(pelt(far, vec![second], rate, siege.span, Arc::clone(&traffic)));
    }
    let hello = Arc::new(Hello::new());
    for from in 0..ADDRESSES {
        let rate = siege.begun / u64::from(ADDRESSES);
        pelting.spawn(begin(mesh, from, rate, siege.span, Arc::clone(&hello), Arc::clone(&traffic)));
    }
    let (begun, cpu) = (Instant::now(), coordinator.process.cpu_seconds());
    let late = async {
        tokio::time::sleep(siege.span / 2).await;
        let begun = Instant::now();
        let late = coordinator.agent("ams1", "europe", "AS64501", None);
        coordinator.connected(2).await;
        figure("an agent that came amid it was in", begun.elapsed(), COMES);
        assert!(begun.elapsed() <= COMES, "{:?}", begun.elapsed());
        late
    };
    let (knocked, late) = tokio::join!(knocks(mesh, siege.knocking, siege.span), late);
    let took = begun.elapsed().as_secs_f64();
    pelting.join_all().await;
    let core = (coordinator.process.cpu_seconds() - cpu) / begun.elapsed().as_secs_f64();
    let [datagrams, sent, came, begun, proven] =
        [&traffic.datagrams, &traffic.sent, &traffic.came, &traffic.begun, &traffic.proven]
            .map(|count| count.load(Ordering::Relaxed));
    let grown = coordinator.process.resident().saturating_sub(before) >> 20;
    #[expect(clippy::cast_precision_loss, reason = "figures to be read")]
    let ([each, begun, proven], handshakes) = (
        [datagrams, begun, proven].map(|count| count as f64 / siege.span.as_secs_f64()),
        knocked as f64 / took,
    );
    note(&format!(
        "{each:.0} datagrams a second, {sent} bytes; {begun:.0} handshakes a second begun, {proven:.0} of them by a proven \
         address; {handshakes:.0} whole ones a second; {came} bytes came back, {grown} MiB more memory, {:.0} % of a core",
        core * 100.0
    ));
    assert!(proven > 0.0, "the hand-made packets are understood");
    assert!(came <= 3 * sent, "{came} bytes answered {sent}");
    assert!(grown <= MEMORY, "{grown} MiB");
    stayed(&coordinator, &agent, 2).await;
    drop(late);
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_and_half_handshakes_at_the_agents_port_cost_its_agents_nothing() {
    let span = Duration::from_secs(5);
    besiege(Siege { span, random: 16_000, again: 1_600, begun: 2_000, knocking: 4 }).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it fifty_thousand -- --ignored`"]
async fn fifty_thousand_datagrams_a_second_at_the_agents_port_cost_its_agents_nothing() {
    let span = Duration::from_secs(60);
    besiege(Siege { span, random: 50_000, again: 5_000, begun: 5_000, knocking: 16 }).await;
}
