//! Malformed HTTP requests: noise, truncated and modified heads, and lengths that exceed the body.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parallax_tests::eventually::{print_figure, print_note};
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::untrusted_peer::pseudo_random_bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::alone;
use super::http::address;

/// Longest wait for the end of a response. The sender has closed its side, so the server has nothing to wait for;
/// includes a margin for a busy machine.
const ENDED: Duration = Duration::from_secs(5);
/// Additional memory allowed, in MiB.
const MEMORY: u64 = 32;

/// Returns malformed request number `number`.
fn noise(number: u64, key: &str, path: &str) -> Vec<u8> {
    let random = pseudo_random_bytes(number, usize::try_from(number * 31 % 700).expect("it is small"));
    let good = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: 14\r\n\r\n{{\"name\": \"no\"}}"
    );
    let with = |line: &str| good.replace("Content-Length: 14", line).into_bytes();
    let place = usize::try_from(number / 12).expect("it is small") % good.len();
    match number % 12 {
        0 => random,
        1 => good.as_bytes()[..place].to_vec(),
        2 | 3 => {
            let mut bytes = good.into_bytes();
            for (byte, other) in bytes.iter_mut().skip(place).zip(random.iter().take(4)) {
                *byte = *other;
            }
            bytes
        }
        4 => [&good.as_bytes()[..place], &random, &good.as_bytes()[place..]].concat(),
        5 => with(&format!("X: {}", "y".repeat(20_000))),
        6 => with(&"X: y\r\n".repeat(100)),
        7 => with("Content-Length: 18446744073709551615"),
        8 => with("Content-Length: 99999999999999999999999"),
        9 => with("Transfer-Encoding: chunked").into_iter().chain(*b"ffffffffffffffff\r\n").collect(),
        10 => with("Transfer-Encoding: chunked\r\nContent-Length: 14").into_iter().chain(random).collect(),
        _ => good.replacen(path, &format!("/{}", "%f".repeat(place * 20)), 1).into_bytes(),
    }
}

/// Sends the bytes, closes its side, and reads the response; returns how long that took.
async fn send(to: SocketAddr, bytes: &[u8]) -> Duration {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(to).await.expect("the host takes connections");
    // The server may reject it before everything is sent.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(&mut Vec::new()).await;
    begun.elapsed()
}

async fn heads(span: Duration) {
    let _turn = alone().await;
    let mut coordinator = CoordinatorProcess::serve_with_descriptors(512, "requests_per_minute = 1000000\n").await;
    let account = coordinator.create_account("pro");
    let (to, path) = (address(&coordinator), format!("/api/v1/pages/{}/monitors", account.page));
    let (before, begun) = (coordinator.process.resident_bytes(), Instant::now());
    let (mut number, mut slowest) = (0, Duration::ZERO);
    while begun.elapsed() < span {
        slowest = slowest.max(send(to, &noise(number, &account.key, &path)).await);
        number += 1;
    }
    let grown = coordinator.process.resident_bytes().saturating_sub(before) >> 20;
    print_note(&format!("{number} requests of no good, {grown} MiB more memory"));
    print_figure("the slowest of them was ended", slowest, ENDED);
    assert!(slowest <= ENDED, "{slowest:?}");
    assert!(grown <= MEMORY, "{grown} MiB");
    assert!(coordinator.process.is_running());
    let log = coordinator.process.log();
    assert!(!log.contains("panicked"), "{log}");
    assert!(account.client.monitors(&account.page).await.is_empty(), "none of them was good");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_no_good_are_ended_at_once_and_cost_nothing() {
    heads(Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it ten_minutes -- --ignored`"]
async fn requests_of_no_good_for_ten_minutes_are_ended_at_once_and_cost_nothing() {
    heads(Duration::from_secs(600)).await;
}
