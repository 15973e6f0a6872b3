//! Strangers who flood the doors: HTTP with connections that say and take nothing, the agents' port with datagrams.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parallax_protocol::version::MESH_V1;
use parallax_tests::client::Client;
use parallax_tests::eventually::{eventually, figure, holds, note};
use parallax_tests::installation::{Agent, Coordinator};
use parallax_tests::stranger::{Shows, knock};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::task::JoinSet;

/// Longest time for which a connection that says nothing, or says it slowly, is kept.
const SILENT: Duration = Duration::from_secs(15);
/// The same for one that takes nothing of its answer, or sends a body without end; with a moment to come to it.
const STALLED: Duration = Duration::from_secs(35);

/// When an attacker is waited for no longer.
const GIVEN_UP: Duration = Duration::from_secs(50);

fn address(coordinator: &Coordinator) -> SocketAddr {
    coordinator.ready.base_url.trim_start_matches("http://").parse().expect("an address and a port")
}

/// What an attacker does with a connection until it is closed.
#[derive(Debug, Clone)]
enum Attack {
    /// Nothing.
    Idle,
    /// Says so much at once, and then a byte a second.
    Slow(Vec<u8>),
    /// Asks again and again, and takes no answer.
    Deaf(Vec<u8>),
}

/// Attacks until the other end closes; gives how long that took.
async fn attack(to: SocketAddr, attack: Attack) -> Duration {
    let begun = Instant::now();
    let socket = TcpSocket::new_v4().expect("a socket");
    if matches!(attack, Attack::Deaf(_)) {
        socket.set_recv_buffer_size(4096).expect("a small buffer");
    }
    let mut stream = socket.connect(to).await.expect("the host takes connections");
    match attack {
        Attack::Idle => {
            let _ = stream.read(&mut [0; 64]).await;
        }
        Attack::Slow(first) => {
            let (mut reader, mut writer) = stream.split();
            let says = async {
                writer.write_all(&first).await?;
                loop {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    writer.write_all(b"a").await?;
                }
            };
            let mut answer = Vec::new();
            tokio::select! {
                ended = says => { let _: std::io::Result<()> = ended; }
                _ = reader.read_to_end(&mut answer) => {}
            }
        }
        Attack::Deaf(request) => while stream.write_all(&request).await.is_ok() {},
    }
    begun.elapsed()
}

/// Asks once on a connection of its own; gives how long that took.
async fn ask(coordinator: &Coordinator) -> Duration {
    let begun = Instant::now();
    let client = Client::new(&coordinator.ready.base_url, None);
    assert_eq!(client.send(Method::GET, "/", None).await.status, 200);
    begun.elapsed()
}

/// The agent has been connected all the time, and nothing was dropped.
async fn stayed(coordinator: &Coordinator, agent: &Agent) {
    coordinator.connected(1).await;
    eventually("the agent says so", Duration::from_secs(10), async || {
        agent.status().is_some_and(|now| now["connected"] == true).then_some(())
    })
    .await;
    let status = agent.status().expect("it is there");
    assert_eq!(status["connections"], 1, "never connected anew: {status}");
    let member = coordinator.members().remove(0);
    assert_eq!((&member["dropped"], &member["status"]), (&json!(0), &json!("connected")), "{member}");
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_slow_and_deaf_connections_are_closed_while_the_api_answers_and_agents_stay() {
    // 256 places: the idle and the slow alone are twice as many.
    let coordinator = Coordinator::serve_with_descriptors(512).await;
    let agent = coordinator.agent("fra1", "europe", "AS64500", None);
    coordinator.connected(1).await;
    let account = coordinator.account("pro");
    for number in 0..30 {
        let body =
            json!({"name": format!("{number}{}", "&".repeat(50)), "type": "heartbeat", "periodMinutes": 5});
        account.client.create_monitor(&account.page, &body).await;
    }
    let to = address(&coordinator);
    let body = format!(
        "POST /api/v1/pages/{}/monitors HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
        account.page, account.key
    );
    let page = format!("GET /p/{} HTTP/1.1\r\nHost: x\r\n\r\n", account.slug).repeat(20);
    let kinds = [
        ("idle connections", 300, SILENT, Attack::Idle),
        ("slow heads", 200, SILENT, Attack::Slow(b"GET / HTTP/1.1\r\nX: ".to_vec())),
        ("slow bodies", 40, STALLED, Attack::Slow(body.into_bytes())),
        ("deaf readers", 10, STALLED, Attack::Deaf(page.into_bytes())),
    ];
    let mut attacks = JoinSet::new();
    // Those who can't be made to leave come first.
    for (number, (_, count, _, what)) in kinds.iter().enumerate().rev() {
        for _ in 0..*count {
            let what = what.clone();
            // One that is never closed is given up, and found to have lasted too long.
            attacks.spawn(async move {
                let ended = tokio::time::timeout(GIVEN_UP, attack(to, what)).await;
                (number, ended.unwrap_or(GIVEN_UP))
            });
        }
    }
    let mut slowest = Duration::ZERO;
    let mut took = [Duration::ZERO; 4];
    let mut asked = 0;
    while !attacks.is_empty() {
        tokio::select! {
            Some(ended) = attacks.join_next() => {
                let (number, lasted) = ended.expect("an attack ends");
                took[number] = took[number].max(lasted);
            }
            one = ask(&coordinator) => {
                asked += 1;
                slowest = slowest.max(one);
                assert!(one < Duration::from_secs(5), "{asked} asked, the last took {one:?}");
            }
        }
    }
    note(&format!("{asked} requests were answered meanwhile"));
    figure("the slowest answer under a flood", slowest, Duration::from_secs(5));
    for ((name, _, limit, _), lasted) in kinds.iter().zip(took) {
        figure(name, lasted, *limit);
        assert!(lasted <= *limit, "{name} lasted {lasted:?}");
    }
    stayed(&coordinator, &agent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_256_descriptors_a_flood_neither_stops_nor_heats_the_coordinator() {
    const SPAN: Duration = Duration::from_secs(6);
    let mut coordinator = Coordinator::serve_with_descriptors(256).await;
    let agent = coordinator.agent("fra1", "europe", "AS64500", None);
    coordinator.connected(1).await;
    let to = address(&coordinator);
    // Held, and made anew a while after it was closed: always far more than there are places.
    let mut flood = JoinSet::new();
    for _ in 0..400 {
        flood.spawn(async move {
            loop {
                if let Ok(mut stream) = TcpStream::connect(to).await {
                    let _ = stream.read(&mut [0; 1]).await;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }
    let (cpu, begun) = (coordinator.process.cpu_seconds(), Instant::now());
    holds(Duration::from_millis(100), SPAN, async || {
        let took = ask(&coordinator).await;
        if took > Duration::from_secs(5) { Err(format!("an answer took {took:?}")) } else { Ok(()) }
    })
    .await;
    let share = (coordinator.process.cpu_seconds() - cpu) / begun.elapsed().as_secs_f64();
    note(&format!("{:.0} % of a core under a flood of 400 on 128 places, at most 60 %", share * 100.0));
    assert!(share <= 0.6, "{share}");
    flood.shutdown().await;
    let ended = Instant::now();
    ask(&coordinator).await;
    figure("an answer after the flood", ended.elapsed(), Duration::from_secs(5));
    assert!(ended.elapsed() <= Duration::from_secs(5));
    assert!(coordinator.process.running());
    stayed(&coordinator, &agent).await;
}

/// What went to the port, and what came back.
#[derive(Default)]
struct Bytes {
    sent: AtomicU64,
    came: AtomicU64,
}

/// Sends what `next` makes, so many times, from a port of its own, and counts what comes back.
async fn pelt(to: SocketAddr, times: u64, bytes: Arc<Bytes>, mut next: impl FnMut(u64) -> Vec<u8>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let mut came = [0; 2048];
    let mut take = |wait: &UdpSocket| {
        while let Ok(count) = wait.try_recv(&mut came) {
            bytes.came.fetch_add(count as u64, Ordering::Relaxed);
        }
    };
    socket.connect(to).await.expect("loopback has a way");
    for number in 0..times {
        let datagram = next(number);
        if socket.send(&datagram).await.is_ok() {
            bytes.sent.fetch_add(datagram.len() as u64, Ordering::Relaxed);
        }
        take(&socket);
    }
    // What is still on its way.
    let late = tokio::time::timeout(Duration::from_secs(1), async {
        loop {
            if socket.readable().await.is_ok() {
                take(&socket);
            }
        }
    });
    let _: Result<(), _> = late.await;
}

/// The first datagram of a handshake by somebody without a certificate.
async fn initial() -> Vec<u8> {
    let trap = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let at = trap.local_addr().expect("it is bound");
    let caller = tokio::spawn(knock(at, MESH_V1, Shows::Nothing, "parallax:agent:none"));
    let mut datagram = vec![0; 2048];
    let count = trap.recv(&mut datagram).await.expect("it knocks");
    caller.abort();
    datagram.truncate(count);
    datagram
}

/// Bytes that look random, the same at each run.
fn scattered(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(step).take(count).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_and_half_handshakes_at_the_agents_port_cost_its_agents_nothing() {
    let coordinator = Coordinator::serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "").await;
    let agent = coordinator.agent("fra1", "europe", "AS64500", None);
    coordinator.connected(1).await;
    let (mesh, before) = (coordinator.ready.mesh, coordinator.process.resident());
    let (bytes, first) = (Arc::new(Bytes::default()), initial().await);
    let begun = Instant::now();
    let mut pelting = JoinSet::new();
    for thread in 0..4_u64 {
        // Of every size and first byte, so of every kind that QUIC knows.
        let random =
            move |n: u64| scattered(n * 4 + thread, 20 + usize::try_from(n * 7 % 1_400).unwrap_or(0));
        pelting.spawn(pelt(mesh, 20_000, Arc::clone(&bytes), random));
        let again = first.clone();
        pelting.spawn(pelt(mesh, 2_000, Arc::clone(&bytes), move |_| again.clone()));
    }
    // Whole handshakes by those who show nothing, and of those who show another installation's certificate.
    let mut knocking = JoinSet::new();
    for number in 0..200 {
        let shows = [Shows::Nothing, Shows::OtherAuthority, Shows::SelfMade][number % 3];
        knocking.spawn(async move { knock(mesh, MESH_V1, shows, "parallax:agent:none").await });
    }
    let mut refused = 0;
    while let Some(knocked) = knocking.join_next().await {
        // One that found no room for its handshake has also been told so, or waits in vain for a while.
        refused += usize::from(!matches!(knocked, Ok(Ok(()))));
    }
    pelting.join_all().await;
    let (sent, came) = (bytes.sent.load(Ordering::Relaxed), bytes.came.load(Ordering::Relaxed));
    let grown = coordinator.process.resident().saturating_sub(before) >> 20;
    note(&format!(
        "{sent} bytes at the agents' port in {:.1} s, {came} came back, {grown} MiB more memory, {refused} knocks refused",
        begun.elapsed().as_secs_f64()
    ));
    assert_eq!(refused, 200, "nobody got in");
    assert!(came <= 3 * sent, "{came} bytes answered {sent}");
    assert!(grown <= 32, "{grown} MiB");
    stayed(&coordinator, &agent).await;
}
