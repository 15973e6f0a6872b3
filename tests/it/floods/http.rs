//! Connections that say nothing, say it slowly, or take nothing of their answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use parallax_tests::client::Client;
use parallax_tests::eventually::{figure, holds, leave_out, note};
use parallax_tests::installation::Coordinator;
use parallax_tests::process::allow_descriptors;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::interval;

use super::{alone, stayed};

/// Longest time for which a connection that says nothing, or says it slowly, is kept.
const SILENT: Duration = Duration::from_secs(30);
/// The same for one that takes nothing of its answer, or sends a body without end; with a moment to come to it.
const STALLED: Duration = Duration::from_secs(45);
/// When an attacker is waited for no longer.
const GIVEN_UP: Duration = Duration::from_secs(50);
/// Memory of a coordinator under a flood, in bytes.
const MEMORY: u64 = 300 << 20;

/// Where HTTP is served.
pub(super) fn address(coordinator: &Coordinator) -> SocketAddr {
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

/// Attackers of one kind.
struct Crowd {
    name: &'static str,
    count: usize,
    /// How long one of them may last.
    limit: Duration,
    attack: Attack,
}

/// Attacks from one of a few addresses until the other end closes; gives how long the connection stood.
async fn attack(to: SocketAddr, number: usize, attack: Attack) -> Duration {
    let socket = TcpSocket::new_v4().expect("a socket");
    // One address has too few ports for all of them.
    let from = Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(number % 8).expect("it is small"));
    socket.bind((from, 0).into()).expect("a port is free");
    if matches!(attack, Attack::Deaf(_)) {
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        // The attacker's memory is this host's too, and it is not to be short of that.
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
        Attack::Deaf(request) => while stream.write_all(&request).await.is_ok() {},
    }
    begun.elapsed()
}

/// What was seen of a flood.
struct Seen {
    /// How long each honest request took, from when it was sent.
    answers: Vec<Duration>,
    /// The same from when it was due: one that had to wait for the one before has waited too.
    waits: Vec<Duration>,
    /// Connections of honest callers that were closed before they had asked, so that these dialled again.
    dialled_again: usize,
    /// Most memory at any of them, in bytes: the coordinator's, and what this host held of connections' bytes.
    memory: u64,
    buffers: u64,
    /// What the coordinator took of the processor, in seconds.
    cpu: f64,
    /// How long every attacker lasted, by crowd.
    lasted: Vec<Vec<Duration>>,
}

impl Seen {
    /// The time within which so many of a hundred honest requests were answered, from when they were due.
    fn within(&mut self, share: usize) -> Duration {
        self.waits.sort_unstable();
        let at = (self.waits.len() * share / 100).min(self.waits.len().saturating_sub(1));
        self.waits.get(at).copied().expect("somebody asked")
    }

    /// Prints how long the attackers lasted, and asserts that none but so many lasted longer than it may.
    fn check(&self, crowds: &[Crowd], excused: u64) {
        for (crowd, lasted) in crowds.iter().zip(&self.lasted) {
            let late = lasted.iter().filter(|&&one| one > crowd.limit).count();
            let longest = lasted.iter().filter(|&&one| one < GIVEN_UP).max().copied().unwrap_or(GIVEN_UP);
            figure(&format!("{} {}", crowd.count, crowd.name), longest, crowd.limit);
            assert!(late as u64 <= excused, "{late} {} lasted too long, {longest:?}", crowd.name);
        }
    }
}

/// Lets the crowds loose, so many connections a second or all at once, and asks honestly, fifty times a second, until the
/// last of them has ended.
async fn flood(
    coordinator: &Coordinator,
    crowds: &[Crowd],
    pace: Option<usize>,
    ask: impl AsyncFn() -> usize,
) -> Seen {
    const TICK: Duration = Duration::from_millis(10);
    let to = address(coordinator);
    // Those who can't be made to leave come first.
    let kinds = crowds.iter().enumerate().rev();
    let mut coming = kinds
        .flat_map(|(kind, crowd)| std::iter::repeat_n((kind, crowd.attack.clone()), crowd.count))
        .zip(0..);
    let at_once = pace.map_or(usize::MAX, |pace| pace.div_ceil(100));
    let mut lasted = vec![Vec::new(); crowds.len()];
    let attacking = async {
        let mut attacks = JoinSet::new();
        let mut tick = interval(TICK);
        loop {
            tick.tick().await;
            let before = attacks.len();
            for ((kind, what), number) in coming.by_ref().take(at_once) {
                // One that is never closed is given up, and found to have lasted too long.
                attacks.spawn(async move {
                    let ended = tokio::time::timeout(GIVEN_UP, attack(to, number, what)).await;
                    (kind, ended.unwrap_or(GIVEN_UP))
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
            memory = memory.max(coordinator.process.resident());
            buffers = buffers.max(buffered());
        }
    };
    tokio::select! {
        () = attacking => {}
        () = asking => {}
    }
    let cpu = coordinator.process.cpu_seconds() - before;
    Seen { answers, waits, dialled_again, memory, buffers, cpu, lasted }
}

/// Asks once on a connection of its own, as clients do: whoever is cut off before the answer dials again. A caller whom
/// a busy machine keeps from asking for as long as a connection is safe looks like an attacker. Gives how often it did.
async fn ask(coordinator: &Coordinator) -> usize {
    let client = Client::new(&coordinator.ready.base_url, None);
    for again in 0..10 {
        if let Ok(answer) = client.try_send(Method::GET, "/", None).await {
            assert_eq!(answer.status, 200);
            return again;
        }
    }
    panic!("cut off ten times");
}

/// The largest answer that needs no key, asked for again and again.
fn deaf_reader() -> Attack {
    Attack::Deaf("GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(8).into_bytes())
}

fn slow_head() -> Attack {
    Attack::Slow(b"GET / HTTP/1.1\r\nX: ".to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_slow_and_deaf_connections_are_closed_while_the_api_answers_and_agents_stay() {
    let _turn = alone().await;
    // 256 places: the idle and the slow alone are twice as many.
    let coordinator = Coordinator::serve_with_descriptors(512, "").await;
    let agent = coordinator.agent("fra1", "europe", "AS64500", None);
    coordinator.connected(1).await;
    let account = coordinator.account("pro");
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
    let seen = flood(&coordinator, &crowds, None, async || ask(&coordinator).await).await;
    let again = seen.dialled_again;
    note(&format!(
        "{} requests were answered meanwhile, {again} of them on a second connection",
        seen.answers.len()
    ));
    let slowest = seen.answers.iter().max().copied().expect("somebody asked");
    figure("the slowest answer under a flood", slowest, limit);
    assert!(slowest <= limit, "{slowest:?}");
    seen.check(&crowds, 0);
    stayed(&coordinator, &agent, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it ten_thousand -- --ignored`"]
async fn ten_thousand_idle_two_thousand_slow_and_two_thousand_deaf_cost_the_api_little() {
    // In this process and in the other one: 10,000 connections, and all else.
    const DESCRIPTORS: u32 = 14_000;
    const PACE: usize = 1_000;
    const BOUND: Duration = Duration::from_millis(200);
    let _turn = alone().await;
    if let Err(reason) = allow_descriptors(DESCRIPTORS.into()) {
        leave_out("ten_thousand_idle", "too few descriptors", &reason);
        return;
    }
    let config = "requests_per_minute = 1000000\n";
    let coordinator = Coordinator::serve_with_descriptors(DESCRIPTORS, config).await;
    let agent = coordinator.agent("fra1", "europe", "AS64500", None);
    coordinator.connected(1).await;
    let account = coordinator.account("pro");
    account
        .client
        .create_monitor(&account.page, &json!({"name": "job", "type": "heartbeat", "periodMinutes": 5}))
        .await;
    let path = format!("/pages/{}/monitors", account.page);
    // On a connection of its own, which it keeps.
    let ask = async || {
        account.client.get(&path).await.is(200);
        0
    };
    // What this machine has to do besides is no fault of the server's.
    let nobody = [Crowd { name: "nobody", count: 1, limit: SILENT, attack: Attack::Idle }];
    let mut calm = flood(&coordinator, &nobody, None, &ask).await;
    let calm = calm.within(99);
    note(&format!("99 of 100 within {calm:?} without a flood"));
    for crowd in [
        Crowd { name: "idle connections", count: 10_000, limit: SILENT, attack: Attack::Idle },
        Crowd { name: "slow heads", count: 2_000, limit: SILENT, attack: slow_head() },
        Crowd { name: "deaf readers", count: 2_000, limit: STALLED, attack: deaf_reader() },
    ] {
        let crowds = [crowd];
        let before = overflows();
        let mut seen = flood(&coordinator, &crowds, Some(PACE), &ask).await;
        // What the host dropped for want of room in the listener's queue is connected for its caller alone: the server
        // can't close it.
        let dropped = overflows() - before;
        let [half, most, all] = [50, 99, 100].map(|share| seen.within(share));
        note(&format!(
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

/// What this host holds of the bytes of all TCP connections.
fn buffered() -> u64 {
    let text = std::fs::read_to_string("/proc/net/sockstat").expect("the host tells");
    let mut words =
        text.lines().find_map(|line| line.strip_prefix("TCP:")).unwrap_or_default().split_whitespace();
    let pages = words.find(|word| *word == "mem").and_then(|_| words.next()?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// Connections that this host had no room for in a listener's queue, since it started (`ListenOverflows`).
fn overflows() -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").expect("the host tells");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, figures) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut both = names.split_whitespace().zip(figures.split_whitespace());
    both.find(|(name, _)| *name == "ListenOverflows").and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_256_descriptors_a_flood_neither_stops_nor_heats_the_coordinator() {
    const SPAN: Duration = Duration::from_secs(6);
    let _turn = alone().await;
    let mut coordinator = Coordinator::serve_with_descriptors(256, "").await;
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
        let begun = Instant::now();
        ask(&coordinator).await;
        let took = begun.elapsed();
        if took > Duration::from_secs(9) { Err(format!("an answer took {took:?}")) } else { Ok(()) }
    })
    .await;
    let share = (coordinator.process.cpu_seconds() - cpu) / begun.elapsed().as_secs_f64();
    note(&format!("{:.0} % of a core under a flood of 400 on 128 places, at most 60 %", share * 100.0));
    assert!(share <= 0.6, "{share}");
    flood.shutdown().await;
    let ended = Instant::now();
    ask(&coordinator).await;
    figure("an answer after the flood", ended.elapsed(), Duration::from_secs(5));
    assert!(ended.elapsed() <= Duration::from_secs(9));
    assert!(coordinator.process.running());
    stayed(&coordinator, &agent, 1).await;
}
