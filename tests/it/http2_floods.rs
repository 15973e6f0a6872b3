//! HTTP/2 peers that send frames without end, or never send what is awaited: each check ends in time and costs little.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parallax_tests::eventually::{API_PERIOD, eventually_every, print_note};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use parallax_tests::process::{TestProcess, binary};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink, split};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::response_bombs::{LIMIT, LONGEST_CHECK, MEMORY_MARGIN_KIB, START_TIMEOUT, kib};

/// Frame types (RFC 9113, section 6), and an unknown one.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 0xfa;
/// END_HEADERS flag.
const END_HEADERS: u8 = 4;
/// `:status: 200` (RFC 7541, appendix A).
const OK: u8 = 0x88;
/// Longest wait until the agent has checked every flood twice: they keep it and the peers busy.
const MET: Duration = Duration::from_secs(100);
/// Concurrent checks: their frames keep the cores of both sides busy.
const AT_ONCE: usize = 3;

/// Frames after the peer's settings: a prefix, and a part that is repeated after it; an empty part means silence.
#[derive(Clone, Copy)]
struct Flood {
    name: &'static str,
    first: fn() -> Vec<u8>,
    again: fn() -> Vec<u8>,
}

const FLOODS: [Flood; 13] = [
    Flood {
        name: "headers continued without end",
        first: || frame(HEADERS, 0, 1, &[OK]),
        again: || frame(CONTINUATION, 0, 1, &b"\x00\x06x-long\x08somewhat".repeat(512)),
    },
    Flood {
        name: "empty continuations without end",
        first: || frame(HEADERS, 0, 1, &[OK]),
        again: || frame(CONTINUATION, 0, 1, &[]).repeat(4096),
    },
    Flood {
        name: "one header told ten thousand times",
        // Added to the dynamic table once, and then referenced by one byte each (RFC 7541, section 6.1).
        first: || {
            let value = vec![b'a'; 4000];
            let put = [&[OK, 0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &value, &[0xbe; 10_000]].concat();
            frame(HEADERS, END_HEADERS, 1, &put)
        },
        again: Vec::new,
    },
    Flood { name: "settings without end", first: Vec::new, again: || settings(3, 100).repeat(1024) },
    Flood { name: "pings without end", first: Vec::new, again: || frame(PING, 0, 0, &[7; 8]).repeat(1024) },
    Flood {
        name: "a window that never opens",
        // A window for neither the request's body nor, with a head only, the response's.
        first: || [settings(4, 0), frame(HEADERS, END_HEADERS, 1, &[OK])].concat(),
        again: Vec::new,
    },
    Flood {
        name: "windows opened without end",
        first: Vec::new,
        again: || frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()).repeat(1024),
    },
    Flood { name: "goes away at once", first: || frame(GOAWAY, 0, 0, &[0; 8]), again: Vec::new },
    Flood {
        name: "resets without end",
        first: Vec::new,
        again: || frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes()).repeat(1024),
    },
    Flood {
        name: "interim answers without end",
        first: Vec::new,
        again: || frame(HEADERS, END_HEADERS, 1, b"\x08\x03103\x00\x04link\x04</x>").repeat(512),
    },
    Flood {
        name: "empty data without end",
        first: || frame(HEADERS, END_HEADERS, 1, &[OK]),
        again: || frame(DATA, 0, 1, &[]).repeat(4096),
    },
    Flood { name: "unknown frames without end", first: Vec::new, again: || frame(UNKNOWN, 0, 0, &[0; 64]).repeat(512) },
    Flood { name: "never a word", first: Vec::new, again: Vec::new },
];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn settings(name: u16, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_an_http2_flood_ends_in_time() {
    let folder = TempDir::new().unwrap();
    let peers = Peers::start(folder.path()).await;
    for some in peers.addresses.chunks(AT_ONCE) {
        let mut running = Vec::new();
        for (name, address) in some {
            let mut command = Command::new(binary("parallax-agent"));
            command.args(["check", "http", &format!("https://{address}/"), "--keyword", "never there"]);
            command.args(["--method", "POST", "--body", "some text"]);
            command.args(["--json", "--allow-private", "--allow-own-host", "--config", &peers.settings]);
            let process = TestProcess::start(&name.replace(' ', "-"), command, folder.path());
            running.push((name, Instant::now(), process));
        }
        for (name, begun, mut process) in running {
            let status = process.wait_for_exit(LIMIT).await;
            let took = begun.elapsed();
            assert!(took <= LONGEST_CHECK + START_TIMEOUT, "{name}: {took:?}");
            let said: Value = serde_json::from_str(&process.log()).unwrap();
            assert_eq!((&said["outcome"], status.code()), (&json!("failed"), Some(3)), "{name}: {said}");
            // It negotiated HTTP/2.
            assert!(said["phases"]["tlsUs"].is_u64(), "{name}: {said}");
            print_note(&format!("{name}: {took:?}, {}", said["error"]));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_floods_cost_an_agent_little() {
    let config = "confirmation = \"repeat\"\n[plans.pro]\ninterval_seconds = 10\n";
    let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), config).await;
    let folder = TempDir::new().unwrap();
    let peers = Peers::start(folder.path()).await;
    let token = coordinator.invite("fra1", "europe", "AS64500", &[]).unwrap();
    let mut agent = AgentProcess::new("fra1", folder.path(), None);
    agent.join(coordinator.ready.mesh, &token).unwrap();
    agent.run_with(&["--config", &peers.settings]);
    coordinator.wait_for_agents(1).await;
    let account = coordinator.create_account("pro");
    let (client, page) = (&account.client, &account.page);
    let pid = agent.process().id();
    let before = kib(pid, "VmRSS:");
    for (name, address) in &peers.addresses {
        let body = json!({"name": name, "url": format!("https://{address}/"), "keyword": "never there",
            "method": "POST", "body": "some text"});
        client.create_monitor(page, &body).await;
    }
    eventually_every(API_PERIOD * 2, "every flood was met", MET, async || {
        let seen = client.monitors(page).await;
        let failed = seen.iter().filter(|monitor| monitor["lastCheck"]["ok"] == false).count();
        (failed == peers.addresses.len()).then_some(())
    })
    .await;
    let most = kib(pid, "VmHWM:");
    print_note(&format!("HTTP/2 floods: resident {before} KiB before, {most} KiB at most"));
    assert!(most <= before + MEMORY_MARGIN_KIB, "{before} KiB before, {most} KiB at most");
}

/// All floods, listening, and agent settings that trust their certificate.
struct Peers {
    addresses: Vec<(&'static str, SocketAddr)>,
    settings: String,
}

impl Peers {
    async fn start(folder: &Path) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let leaf = params.self_signed(&key).unwrap();
        let trust = folder.join("trust.pem");
        fs::write(&trust, leaf.pem()).unwrap();
        let settings = folder.join("agent.toml");
        fs::write(&settings, format!("trust = [\"{}\"]\n", trust.display())).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(crypto).with_safe_default_protocol_versions();
        let mut config = config.unwrap().with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let mut addresses = Vec::new();
        for flood in FLOODS {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            addresses.push((flood.name, listener.local_addr().unwrap()));
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(run(acceptor.clone(), stream, flood));
                }
            });
        }
        Self { addresses, settings: settings.to_string_lossy().into_owned() }
    }
}

/// Sends the flood's frames, and reads everything meanwhile.
async fn run(acceptor: TlsAcceptor, stream: TcpStream, flood: Flood) -> std::io::Result<()> {
    let (mut reading, mut writing) = split(acceptor.accept(stream).await?);
    // No stream is open until the request's head has arrived.
    let mut some = [0; 4096];
    let mut read = 0;
    while read < 100 {
        match reading.read(&mut some).await? {
            0 => return Ok(()),
            more => read += more,
        }
    }
    let flooding = async {
        writing.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
        writing.write_all(&(flood.first)()).await?;
        writing.flush().await?;
        let again = (flood.again)();
        while !again.is_empty() {
            writing.write_all(&again).await?;
        }
        Ok::<_, std::io::Error>(())
    };
    let mut nowhere = sink();
    let (_, flooded) = tokio::join!(copy(&mut reading, &mut nowhere), flooding);
    flooded
}
