//! Hundreds of targets that refuse, hang, reset, respond with garbage or close during TLS: every monitor is checked on
//! time, and the agent's resources stay constant.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use parallax_core::time::Timestamp;
use parallax_tests::eventually::{eventually_every, holds, print_note, wall_clock};
use parallax_tests::installation::CoordinatorProcess;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::response_bombs::kib;
use crate::scenario_setup::parse_time;

/// Interval of every monitor, in milliseconds.
const INTERVAL_MS: i64 = 15_000;
/// Longest time until a round is reported: a check, and its second attempt.
const VERDICT_MS: i64 = 22_000;
/// Sampling interval.
const SAMPLE: Duration = Duration::from_secs(2);
/// Longest wait for every monitor's first rounds.
const FIRST: Duration = Duration::from_secs(120);

const WAYS: [Misbehaviour; 5] =
    [Misbehaviour::Refuse, Misbehaviour::Hang, Misbehaviour::Reset, Misbehaviour::Garbage, Misbehaviour::CloseAmidTls];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Misbehaviour {
    Refuse,
    Hang,
    Reset,
    Garbage,
    CloseAmidTls,
}

#[tokio::test(flavor = "multi_thread")]
async fn misbehaved_targets_keep_nobody_from_its_turn() {
    misbehave(300, Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "two hours"]
async fn a_thousand_misbehaved_targets_for_two_hours() {
    misbehave(1000, Duration::from_secs(2 * 60 * 60)).await;
}

async fn misbehave(monitors: usize, span: Duration) {
    let seconds = INTERVAL_MS / 1000;
    let config = format!(
        "confirmation = \"repeat\"\nrequests_per_minute = 1000000\n[plans]\n\
         certificate_interval_seconds = {seconds}\n[plans.pro]\nmonitors = {monitors}\ninterval_seconds = {seconds}\n"
    );
    let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), &config).await;
    let mut agent = coordinator.start_agent("fra1", "europe", "AS64500", None);
    coordinator.wait_for_agents(1).await;
    let account = coordinator.create_account("pro");
    let (client, page) = (&account.client, &account.page);
    let mut addresses = Vec::new();
    for way in WAYS {
        addresses.push((way, serve(way).await));
    }
    for number in 0..monitors {
        let (way, address) = addresses[number % addresses.len()];
        let body = match (way, number % 3) {
            (Misbehaviour::CloseAmidTls, 0) => {
                json!({"type": "certificate", "host": "127.0.0.1", "port": address.port()})
            }
            (Misbehaviour::CloseAmidTls, _) | (Misbehaviour::Garbage, 1) => {
                json!({"url": format!("https://{address}/{number}")})
            }
            (Misbehaviour::Refuse, 0) => json!({"type": "tcp", "host": "127.0.0.1", "port": address.port()}),
            _ => json!({"url": format!("http://{address}/{number}"), "keyword": "never"}),
        };
        client.create_monitor(page, &body).await;
    }
    let all_down = async || {
        let seen = client.monitors(page).await;
        seen.iter().all(|monitor| monitor["status"] == "down").then_some(())
    };
    eventually_every(SAMPLE, "every target is called down", FIRST, all_down).await;

    let pid = agent.process().id();
    let mut samples: Vec<Sample> = Vec::new();
    holds(SAMPLE, span, async || {
        let seen = client.monitors(page).await;
        let now = wall_clock();
        if let Some(late) = seen.iter().find(|monitor| is_overdue(monitor, now)) {
            return Err(format!("at {now} overdue: {late}"));
        }
        samples.push(Sample::take(pid));
        Ok(())
    })
    .await;
    let third = samples.len() / 3;
    let (first, last) = (Sample::most(&samples[..third]), Sample::most(&samples[samples.len() - third..]));
    print_note(&format!(
        "{monitors} misbehaved targets: {} samples, first third at most {first:?}, last {last:?}",
        samples.len()
    ));
    // Open descriptors vary with the number of hanging checks; a leak in one of a hundred checks would exceed this.
    assert!(last.descriptors <= first.descriptors + first.descriptors / 10 + 8, "{first:?}, {last:?}");
    assert!(last.threads <= first.threads + 2, "{first:?}, {last:?}");
    assert!(last.kib <= first.kib + first.kib / 10 + 2048, "{first:?}, {last:?}");
}

fn is_overdue(monitor: &Value, now: Timestamp) -> bool {
    now.since(parse_time(&monitor["lastCheck"]["at"])) > 2 * INTERVAL_MS + VERDICT_MS
}

/// Resource usage of the agent's process at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    descriptors: usize,
    threads: usize,
    kib: u64,
}

impl Sample {
    fn take(pid: u32) -> Self {
        let count = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().count();
        Self { descriptors: count("fd"), threads: count("task"), kib: kib(pid, "VmRSS:") }
    }

    fn most(samples: &[Self]) -> Self {
        samples.iter().fold(Self::default(), |most, one| Self {
            descriptors: most.descriptors.max(one.descriptors),
            threads: most.threads.max(one.threads),
            kib: most.kib.max(one.kib),
        })
    }
}

/// Starts a target that misbehaves in one way, for as long as the test runs.
async fn serve(way: Misbehaviour) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    if way != Misbehaviour::Refuse {
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, way));
            }
        });
    }
    address
}

async fn answer(mut stream: TcpStream, way: Misbehaviour) -> std::io::Result<()> {
    let mut request = [0; 4096];
    match way {
        Misbehaviour::Refuse => {}
        // Until the client gives up.
        Misbehaviour::Hang => while stream.read(&mut request).await? > 0 {},
        Misbehaviour::Reset => {
            let _ = stream.read(&mut request).await?;
            stream.set_zero_linger()?;
        }
        Misbehaviour::Garbage => {
            let _ = stream.read(&mut request).await?;
            stream.write_all(&b"\x00\xffno answer of any kind\r\n".repeat(32)).await?;
        }
        Misbehaviour::CloseAmidTls => {
            let _ = stream.read(&mut request).await?;
            // The header of a record of 512 bytes (RFC 8446, section 5.1), and a tenth of its content.
            stream.write_all(&[&[22, 3, 3, 2, 0, 2, 0, 1, 252, 3, 3][..], &[7; 50]].concat()).await?;
        }
    }
    Ok(())
}
