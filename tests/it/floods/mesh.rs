//! Datagram floods and unfinished handshakes at the mesh port.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parallax_protocol::version::MESH_V1;
use parallax_tests::eventually::{print_figure, print_note};
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::untrusted_peer::{PresentedCertificate, attempt_handshake, pseudo_random_bytes};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::unfinished_handshakes::{ClientInitial, start_handshakes};
use super::{alone, stayed};

/// Additional memory allowed, in MiB.
const MEMORY: u64 = 32;
/// Addresses that start handshakes.
const ADDRESSES: u8 = 25;
/// Longest wait for an honest agent to connect meanwhile.
const JOIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Kinds of traffic at the port, and the duration.
#[derive(Debug, Clone, Copy)]
struct FloodPlan {
    span: Duration,
    /// Random datagrams per second.
    random: u64,
    /// Replayed datagrams per second: a client's first packet, or its response to a Retry.
    replayed: u64,
    /// Unfinished handshakes per second.
    unfinished: u64,
    /// Complete handshakes in progress at any time, without a valid certificate.
    complete_handshakes: usize,
}

/// Traffic to the port and back.
#[derive(Default)]
pub(super) struct FloodTraffic {
    pub(super) datagrams: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) came: AtomicU64,
    /// Handshakes started, and those of them that continued with a validated address.
    pub(super) begun: AtomicU64,
    pub(super) proven: AtomicU64,
}

/// Sends `datagrams` in turn at a fixed rate, and counts the responses.
async fn send_datagrams(
    socket: UdpSocket,
    datagrams: Vec<Vec<u8>>,
    rate: u64,
    span: Duration,
    traffic: Arc<FloodTraffic>,
) {
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
    // Waits for responses in flight.
    let late = tokio::time::timeout(Duration::from_secs(1), async {
        loop {
            if socket.readable().await.is_ok() {
                take();
            }
        }
    });
    let _: Result<(), _> = late.await;
}

/// Opens a socket connected to the port.
async fn socket(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    socket.connect(to).await.expect("loopback is routed");
    socket
}

/// Returns the first packet of a client without a certificate, its response to the Retry, and the socket of both: the
/// response is valid for that address only.
async fn first_packets(to: SocketAddr) -> (UdpSocket, Vec<u8>, Vec<u8>) {
    let (near, far) = (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket"), socket(to).await);
    let at = near.local_addr().expect("it is bound");
    let caller = tokio::spawn(attempt_handshake(at, MESH_V1, PresentedCertificate::Absent, "parallax:agent:none"));
    let (mut asked, mut answer) = ([0; 2048], [0; 2048]);
    let (mut first, mut stranger) = (Vec::new(), None);
    let second = loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(30)) => panic!("no Retry was sent"),
            got = near.recv_from(&mut asked) => {
                let (count, from) = got.expect("the client sends");
                let datagram = asked[..count].to_vec();
                stranger = Some(from);
                // The destination id follows flags and version; after a Retry it is another one.
                if first.is_empty() {
                    first.clone_from(&datagram);
                } else if datagram.get(5..14) != first.get(5..14) {
                    break datagram;
                }
                far.send(&datagram).await.expect("loopback is routed");
            }
            got = far.recv(&mut answer) => {
                let told = &answer[..got.expect("a response")];
                near.send_to(told, stranger.expect("it asked")).await.expect("loopback is routed");
            }
        }
    };
    caller.abort();
    (far, first, second)
}

/// Runs handshakes without a certificate, and some with another installation's or a self-signed one. Returns their
/// number; all must fail.
async fn run_handshakes(mesh: SocketAddr, at_once: usize, span: Duration) -> usize {
    let begun = Instant::now();
    let mut knocking = JoinSet::new();
    let mut knocked = 0;
    while begun.elapsed() < span || !knocking.is_empty() {
        while knocking.len() < at_once && begun.elapsed() < span {
            let shows = match knocked % 50 {
                0 => PresentedCertificate::OtherAuthority,
                1 => PresentedCertificate::SelfSigned,
                _ => PresentedCertificate::Absent,
            };
            knocked += 1;
            // If there is no slot for its handshake, the peer gets a refusal or a timeout.
            let patience = Duration::from_secs(5);
            knocking.spawn(async move {
                tokio::time::timeout(patience, attempt_handshake(mesh, MESH_V1, shows, "parallax:agent:none")).await
            });
        }
        if let Some(ended) = knocking.join_next().await {
            assert!(!matches!(ended, Ok(Ok(Ok(())))), "every handshake is refused");
        }
    }
    knocked
}

async fn besiege(siege: FloodPlan) {
    const THREADS: u64 = 2;
    let _turn = alone().await;
    let coordinator = CoordinatorProcess::serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "").await;
    let agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    let (mesh, before) = (coordinator.ready.mesh, coordinator.process.resident_bytes());
    let traffic = Arc::new(FloodTraffic::default());
    let known = [first_packets(mesh).await, first_packets(mesh).await];
    let mut pelting = JoinSet::new();
    for ((far, first, second), thread) in known.into_iter().zip(0..) {
        // All sizes and first bytes, so all QUIC packet types.
        let random = (0..4_096)
            .map(|n| pseudo_random_bytes(n * THREADS + thread, 20 + usize::try_from(n * 7 % 1_400).unwrap_or(0)));
        let (random, rate) = (random.collect(), siege.random / THREADS);
        pelting.spawn(send_datagrams(socket(mesh).await, random, rate, siege.span, Arc::clone(&traffic)));
        let rate = siege.replayed / THREADS / 2;
        pelting.spawn(send_datagrams(socket(mesh).await, vec![first], rate, siege.span, Arc::clone(&traffic)));
        pelting.spawn(send_datagrams(far, vec![second], rate, siege.span, Arc::clone(&traffic)));
    }
    let hello = Arc::new(ClientInitial::new());
    for from in 0..ADDRESSES {
        let rate = siege.unfinished / u64::from(ADDRESSES);
        pelting.spawn(start_handshakes(mesh, from, rate, siege.span, Arc::clone(&hello), Arc::clone(&traffic)));
    }
    let (begun, cpu) = (Instant::now(), coordinator.process.cpu_seconds());
    let late = async {
        tokio::time::sleep(siege.span / 2).await;
        let begun = Instant::now();
        let late = coordinator.start_agent("ams1", "europe", "AS64501", None);
        coordinator.wait_for_agents(2).await;
        print_figure("an agent that came amid it was in", begun.elapsed(), JOIN_TIMEOUT);
        assert!(begun.elapsed() <= JOIN_TIMEOUT, "{:?}", begun.elapsed());
        late
    };
    let (knocked, late) = tokio::join!(run_handshakes(mesh, siege.complete_handshakes, siege.span), late);
    let took = begun.elapsed().as_secs_f64();
    pelting.join_all().await;
    let core = (coordinator.process.cpu_seconds() - cpu) / begun.elapsed().as_secs_f64();
    let [datagrams, sent, came, begun, proven] =
        [&traffic.datagrams, &traffic.sent, &traffic.came, &traffic.begun, &traffic.proven]
            .map(|count| count.load(Ordering::Relaxed));
    let grown = coordinator.process.resident_bytes().saturating_sub(before) >> 20;
    #[expect(clippy::cast_precision_loss, reason = "figures to be read")]
    let ([each, begun, proven], handshakes) =
        ([datagrams, begun, proven].map(|count| count as f64 / siege.span.as_secs_f64()), knocked as f64 / took);
    print_note(&format!(
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
    besiege(FloodPlan { span, random: 16_000, replayed: 1_600, unfinished: 2_000, complete_handshakes: 4 }).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it fifty_thousand -- --ignored`"]
async fn fifty_thousand_datagrams_a_second_at_the_agents_port_cost_its_agents_nothing() {
    let span = Duration::from_secs(60);
    besiege(FloodPlan { span, random: 50_000, replayed: 5_000, unfinished: 5_000, complete_handshakes: 16 }).await;
}
