//! HTTP connections that send nothing, send slowly, or do not read their responses.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use parallax_tests::api_client::ApiClient;
use parallax_tests::eventually::{holds, print_figure, print_note, skip_test};
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::process::allow_descriptors;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::interval;

use super::{alone, stayed};

/// Longest lifetime of a connection that sends nothing, or sends slowly.
const SILENT: Duration = Duration::from_secs(30);
/// Longest lifetime of a connection that does not read its response, or sends an endless body; with a margin.
const STALLED: Duration = Duration::from_secs(45);
/// Time after which the test stops waiting for an attacker.
const ATTACK_TIMEOUT: Duration = Duration::from_secs(50);
/// Memory limit of a coordinator under a flood, in bytes.
const MEMORY: u64 = 300 << 20;

/// Returns the address of its HTTP server.
pub(super) fn address(coordinator: &CoordinatorProcess) -> SocketAddr {
    coordinator.ready.base_url.trim_start_matches("http://").parse().expect("an address and a port")
}

/// Behaviour of an attacker's connection until it is closed.
#[derive(Debug, Clone)]
enum Attack {
    /// Sends nothing.
    Idle,
    /// Sends these bytes at once, and then one byte a second.
    Slow(Vec<u8>),
    /// Sends requests repeatedly, and reads no response.
    NotReading(Vec<u8>),
}

/// Attackers of one kind.
struct Crowd {
    name: &'static str,
    count: usize,
    /// Longest allowed lifetime of a connection.
    limit: Duration,
    attack: Attack,
}

/// Attacks from one of several addresses until the server closes; returns the connection's lifetime.
async fn attack(to: SocketAddr, number: usize, attack: Attack) -> Duration {
    let socket = TcpSocket::new_v4().expect("a socket");
    // One address has too few ports for all attackers.
    let from = Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(number % 8).expect("it is small"));
    socket.bind((from, 0).into()).expect("a port is free");
    if matches!(attack, Attack::NotReading(_)) {
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        // The attacker's buffers use this host's memory too, which must not run out.
        socket.set_send_buffer_size(4096).expect("a small buffer");
    }
    let mut stream = socket.connect(to).await.expect("the host takes connections");
    let begun = Instant::now();
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
        Attack::NotReading(request) => while stream.write_all(&request).await.is_ok() {},
    }
    begun.elapsed()
}

/// Measurements of a flood.
struct FloodMeasurements {
    /// Time of each honest request, from when it was sent.
    answers: Vec<Duration>,
    /// Time of each honest request, from when it was due: queueing behind the previous one counts.
    waits: Vec<Duration>,
    /// Honest connections that were closed before their request, so that the client reconnected.
    dialled_again: usize,
    /// Highest memory use in bytes: the coordinator's, and this host's TCP buffers.
    memory: u64,
    buffers: u64,
    /// CPU seconds of the coordinator.
    cpu: f64,
    /// Lifetimes of all attackers, by crowd.
    lasted: Vec<Vec<Duration>>,
}

impl FloodMeasurements {
    /// Returns the time from due to response that `share` percent of honest requests do not exceed.
    fn within(&mut self, share: usize) -> Duration {
        self.waits.sort_unstable();
        let at = (self.waits.len() * share / 100).min(self.waits.len().saturating_sub(1));
        self.waits.get(at).copied().expect("at least one request")
    }

    /// Prints the attackers' lifetimes, and asserts that at most `excused` of them exceed the limit.
    fn check(&self, crowds: &[Crowd], excused: u64) {
        for (crowd, lasted) in crowds.iter().zip(&self.lasted) {
            let late = lasted.iter().filter(|&&one| one > crowd.limit).count();
            let longest = lasted.iter().filter(|&&one| one < ATTACK_TIMEOUT).max().copied().unwrap_or(ATTACK_TIMEOUT);
            print_figure(&format!("{} {}", crowd.count, crowd.name), longest, crowd.limit);
            assert!(late as u64 <= excused, "{late} {} lasted too long, {longest:?}", crowd.name);
        }
    }
}

/// Starts the crowds, at a rate of connections per second or all at once, and sends fifty honest requests a second
/// until the last attacker has ended.
async fn flood(
    coordinator: &CoordinatorProcess,
    crowds: &[Crowd],
    pace: Option<usize>,
    ask: impl AsyncFn() -> usize,
) -> FloodMeasurements {
    const TICK: Duration = Duration::from_millis(10);
    let to = address(coordinator);
    // Attackers that can't be disconnected connect first.
    let kinds = crowds.iter().enumerate().rev();
    let mut coming =
        kinds.flat_map(|(kind, crowd)| std::iter::repeat_n((kind, crowd.attack.clone()), crowd.count)).zip(0..);
    let at_once = pace.map_or(usize::MAX, |pace| pace.div_ceil(100));
    let mut lasted = vec![Vec::new(); crowds.len()];
    let attacking = async {
        let mut attacks = JoinSet::new();
        let mut tick = interval(TICK);
        loop {
            tick.tick().await;
            let before = attacks.len();
            for ((kind, what), number) in coming.by_ref().take(at_once) {
                // A connection that is never closed is abandoned, and counts as too long.
                attacks.spawn(async move {
                    let ended = tokio::time::timeout(ATTACK_TIMEOUT, attack(to, number, what)).await;
                    (kind, ended.unwrap_or(ATTACK_TIMEOUT))
                });
            }
            if attacks.len() == before {
                break;
            }
        }
        while let Some(ended) = attacks.join_next().await {
            let (kind, time): (usize, _) = ended.expect("an attack ends");
            lasted[kind].push(time);
        }
    };
    let (mut answers, mut waits, mut dialled_again) = (Vec::new(), Vec::new(), 0);
    let (mut memory, mut buffers, before) = (0, 0, coordinator.process.cpu_seconds());
    let asking = async {
        let mut tick = interval(TICK * 2);
        loop {
            let due = tick.tick().await;
            let begun = Instant::now();
            dialled_again += ask().await;
            answers.push(begun.elapsed());
            waits.push(due.elapsed());
            memory = memory.max(coordinator.process.resident_bytes());
            buffers = buffers.max(buffered());
        }
    };
    tokio::select! {
        () = attacking => {}
        () = asking => {}
    }
    let cpu = coordinator.process.cpu_seconds() - before;
    FloodMeasurements { answers, waits, dialled_again, memory, buffers, cpu, lasted }
}

/// Sends one request on a new connection, as clients do, and reconnects if it is closed before the response. A client
/// that a busy machine delays beyond the protected period looks like an attacker. Returns the number of reconnects.
async fn request_page(coordinator: &CoordinatorProcess) -> usize {
    let client = ApiClient::new(&coordinator.ready.base_url, None);
    for again in 0..10 {
        if let Ok(answer) = client.try_send(Method::GET, "/", None).await {
            assert_eq!(answer.status, 200);
            return again;
        }
    }
    panic!("cut off ten times");
}

/// Requests the largest response that needs no key, repeatedly.
fn deaf_reader() -> Attack {
    Attack::NotReading("GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(8).into_bytes())
}

fn slow_head() -> Attack {
    Attack::Slow(b"GET / HTTP/1.1\r\nX: ".to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_slow_and_deaf_connections_are_closed_while_the_api_answers_and_agents_stay() {
    let _turn = alone().await;
    // 256 places: the idle and the slow attackers alone are twice as many.
    let coordinator = CoordinatorProcess::serve_with_descriptors(512, "").await;
    let agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    let account = coordinator.create_account("pro");
    let body = format!(
        "POST /api/v1/pages/{}/monitors HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
        account.page, account.key
    );
    let crowds = [
        Crowd { name: "idle connections", count: 300, limit: SILENT, attack: Attack::Idle },
        Crowd { name: "slow heads", count: 200, limit: SILENT, attack: slow_head() },
        Crowd { name: "slow bodies", count: 40, limit: STALLED, attack: Attack::Slow(body.into_bytes()) },
        Crowd { name: "deaf readers", count: 10, limit: STALLED, attack: deaf_reader() },
    ];
    let limit = Duration::from_secs(9);
    let seen = flood(&coordinator, &crowds, None, async || request_page(&coordinator).await).await;
    let again = seen.dialled_again;
    print_note(&format!(
        "{} requests were answered meanwhile, {again} of them on a second connection",
        seen.answers.len()
    ));
    let slowest = seen.answers.iter().max().copied().expect("at least one request");
    print_figure("the slowest answer under a flood", slowest, limit);
    assert!(slowest <= limit, "{slowest:?}");
    seen.check(&crowds, 0);
    stayed(&coordinator, &agent, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it ten_thousand -- --ignored`"]
async fn ten_thousand_idle_two_thousand_slow_and_two_thousand_deaf_cost_the_api_little() {
    // For this process and the other one: 10,000 connections, and everything else.
    const DESCRIPTORS: u32 = 14_000;
    const PACE: usize = 1_000;
    const BOUND: Duration = Duration::from_millis(200);
    let _turn = alone().await;
    if let Err(reason) = allow_descriptors(DESCRIPTORS.into()) {
        skip_test("ten_thousand_idle", "too few descriptors", &reason);
        return;
    }
    let config = "requests_per_minute = 1000000\n";
    let coordinator = CoordinatorProcess::serve_with_descriptors(DESCRIPTORS, config).await;
    let agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    let account = coordinator.create_account("pro");
    account
        .client
        .create_monitor(&account.page, &json!({"name": "job", "type": "heartbeat", "periodMinutes": 5}))
        .await;
    let path = format!("/pages/{}/monitors", account.page);
    // On a separate connection, which is kept open.
    let ask = async || {
        account.client.get(&path).await.expect_status(200);
        0
    };
    // Baseline: other load of this machine is not the server's fault.
    let nobody = [Crowd { name: "nobody", count: 1, limit: SILENT, attack: Attack::Idle }];
    let mut calm = flood(&coordinator, &nobody, None, &ask).await;
    let calm = calm.within(99);
    print_note(&format!("99 of 100 within {calm:?} without a flood"));
    for crowd in [
        Crowd { name: "idle connections", count: 10_000, limit: SILENT, attack: Attack::Idle },
        Crowd { name: "slow heads", count: 2_000, limit: SILENT, attack: slow_head() },
        Crowd { name: "deaf readers", count: 2_000, limit: STALLED, attack: deaf_reader() },
    ] {
        let crowds = [crowd];
        let before = overflows();
        let mut seen = flood(&coordinator, &crowds, Some(PACE), &ask).await;
        // A connection that the host dropped because the listen queue was full exists for the client only: the server
        // can't close it.
        let dropped = overflows() - before;
        let [half, most, all] = [50, 99, 100].map(|share| seen.within(share));
        print_note(&format!(
            "{}: {} requests, half within {half:?}, 99 of 100 within {most:?} (at most {BOUND:?} more than without), the slowest {all:?}; \
             {} MiB, and {} MiB of the host's; {:.1} s of CPU; {dropped} dropped by the host",
            crowds[0].name,
            seen.answers.len(),
            seen.memory >> 20,
            seen.buffers >> 20,
            seen.cpu
        ));
        seen.check(&crowds, dropped);
        assert!(most <= BOUND + calm, "99 of 100 within {most:?}");
        assert!(seen.memory <= MEMORY, "{} MiB", seen.memory >> 20);
    }
    stayed(&coordinator, &agent, 1).await;
}

/// Returns the memory of all TCP buffers of this host.
fn buffered() -> u64 {
    let text = std::fs::read_to_string("/proc/net/sockstat").expect("the host reports it");
    let mut words = text.lines().find_map(|line| line.strip_prefix("TCP:")).unwrap_or_default().split_whitespace();
    let pages = words.find(|word| *word == "mem").and_then(|_| words.next()?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// Returns the connections that were dropped because a listen queue was full, since the host started
/// (`ListenOverflows`).
fn overflows() -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").expect("the host reports it");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, figures) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut both = names.split_whitespace().zip(figures.split_whitespace());
    both.find(|(name, _)| *name == "ListenOverflows").and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_256_descriptors_a_flood_neither_stops_nor_heats_the_coordinator() {
    const SPAN: Duration = Duration::from_secs(6);
    let _turn = alone().await;
    let mut coordinator = CoordinatorProcess::serve_with_descriptors(256, "").await;
    let agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    let to = address(&coordinator);
    // Reopened shortly after being closed, so there are always far more connections than places.
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
        let begun = Instant::now();
        request_page(&coordinator).await;
        let took = begun.elapsed();
        if took > Duration::from_secs(9) { Err(format!("an answer took {took:?}")) } else { Ok(()) }
    })
    .await;
    let share = (coordinator.process.cpu_seconds() - cpu) / begun.elapsed().as_secs_f64();
    print_note(&format!("{:.0} % of a core under a flood of 400 on 128 places, at most 60 %", share * 100.0));
    assert!(share <= 0.6, "{share}");
    flood.shutdown().await;
    let ended = Instant::now();
    request_page(&coordinator).await;
    print_figure("an answer after the flood", ended.elapsed(), Duration::from_secs(5));
    assert!(ended.elapsed() <= Duration::from_secs(9));
    assert!(coordinator.process.is_running());
    stayed(&coordinator, &agent, 1).await;
}
