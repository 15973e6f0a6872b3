//! Targets that respond without end, or with far more than the limits: each check ends in time, and other monitors are
//! not affected.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use parallax_tests::eventually::{API_PERIOD, eventually_every};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use parallax_tests::process::{TestProcess, binary};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::bomb_payloads::{BOMBS, ResponseBomb, dns, tls};

/// Additional memory that an agent may use, in KiB.
pub(crate) const MEMORY_MARGIN_KIB: u64 = 32 * 1024;
/// Longest check.
pub(crate) const LONGEST_CHECK: Duration = Duration::from_millis(10_500);
/// Longest start of a process on a busy machine.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest wait until every bomb was checked once: a round and its ten seconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);
/// Interval of every monitor.
const INTERVAL: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_a_bomb_ends_in_time() {
    let folder = TempDir::new().unwrap();
    let targets = Targets::start(folder.path()).await;
    let mut running = Vec::new();
    for (name, arguments) in targets.checks() {
        let mut command = Command::new(binary("parallax-agent"));
        command.arg("check").args(&arguments).args(["--json", "--allow-private", "--allow-own-host"]);
        command.arg("--config").arg(&targets.settings);
        running.push((name, Instant::now(), TestProcess::start(&name.replace(' ', "-"), command, folder.path())));
    }
    for (name, begun, mut process) in running {
        let status = process.wait_for_exit(LIMIT).await;
        assert!(begun.elapsed() <= LONGEST_CHECK + START_TIMEOUT, "{name}: {:?}", begun.elapsed());
        let said: Value = serde_json::from_str(&process.log()).unwrap();
        assert_eq!((&said["outcome"], status.code()), (&json!("failed"), Some(3)), "{name}: {said}");
        eprintln!("figure: {name}: {:?}, {}", begun.elapsed(), said["error"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_cost_an_agent_little_and_hold_up_nobody() {
    let config = "confirmation = \"repeat\"\n[plans.pro]\ninterval_seconds = 10\n";
    let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), config).await;
    let folder = TempDir::new().unwrap();
    let targets = Targets::start(folder.path()).await;
    let token = coordinator.invite("fra1", "europe", "AS64500", &[]).unwrap();
    let mut agent = AgentProcess::new("fra1", folder.path(), None);
    agent.join(coordinator.ready.mesh, &token).unwrap();
    agent.run_with(&["--config", &targets.settings]);
    coordinator.wait_for_agents(1).await;
    let account = coordinator.create_account("pro");
    let (client, page) = (&account.client, &account.page);
    let (neighbour, visits) = neighbour().await;
    client.create_monitor(page, &json!({"name": "neighbour", "url": neighbour})).await;
    eventually_every(API_PERIOD, "the neighbour is visited", LIMIT, async || {
        (!visits.lock().unwrap().is_empty()).then_some(())
    })
    .await;
    let pid = agent.process().id();
    let before = kib(pid, "VmRSS:");
    for body in targets.monitors() {
        client.create_monitor(page, &body).await;
    }
    let bombs = targets.monitors().len();
    eventually_every(API_PERIOD * 2, "every bomb has gone off", LIMIT, async || {
        let seen = client.monitors(page).await;
        let failed = seen.iter().filter(|monitor| monitor["lastCheck"]["ok"] == false).count();
        (failed == bombs).then_some(())
    })
    .await;
    eventually_every(API_PERIOD, "the neighbour is visited as ever", LIMIT, async || {
        (visits.lock().unwrap().len() >= 2).then_some(())
    })
    .await;
    let most = kib(pid, "VmHWM:");
    eprintln!("figure: resident {before} KiB before, {most} KiB at most");
    assert!(most <= before + MEMORY_MARGIN_KIB, "{before} KiB before, {most} KiB at most");
    let visits = visits.lock().unwrap().clone();
    for two in visits.windows(2) {
        let gap = two[1] - two[0];
        // A round may begin five seconds late; a skipped round would double the gap.
        assert!(gap <= INTERVAL + Duration::from_secs(6), "{gap:?} between two visits of the neighbour");
    }
}

/// All bombs, listening.
struct Targets {
    http: Vec<(&'static str, String)>,
    /// Agent settings that use the test's name server.
    settings: String,
}

impl Targets {
    async fn start(folder: &std::path::Path) -> Self {
        let mut http = Vec::new();
        for bomb in BOMBS {
            http.push((bomb.name, format!("http://{}/", serve(bomb).await)));
        }
        http.push(("a chain of a megabyte", format!("https://{}/", tls().await)));
        http.push(("an alias of itself", "http://loop.bomb.test/".to_owned()));
        http.push(("aliases without end", "http://n0.endless.bomb.test/".to_owned()));
        let settings = folder.join("agent.toml");
        fs::write(&settings, format!("resolvers = [\"{}\"]\n", dns().await)).unwrap();
        Self { http, settings: settings.to_string_lossy().into_owned() }
    }

    fn checks(&self) -> Vec<(&'static str, Vec<String>)> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let http = self.http.iter().map(|(name, url)| (*name, words(&["http", url, "--keyword", "never there"])));
        let text = words(&["dns", "txt.bomb.test", "--record", "TXT", "--expect", "never there"]);
        http.chain([("a text of 64 KB", text)]).collect()
    }

    fn monitors(&self) -> Vec<Value> {
        let http = self.http.iter().map(|(name, url)| json!({"name": name, "url": url, "keyword": "never there"}));
        let text = json!({"name": "a text of 64 KB", "type": "dns", "host": "txt.bomb.test", "dnsRecord": "TXT",
            "dnsExpect": "never there"});
        http.chain([text]).collect()
    }
}

/// Serves a bomb for as long as the test runs.
async fn serve(bomb: ResponseBomb) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(go_off(stream, bomb));
        }
    });
    address
}

async fn go_off(mut stream: TcpStream, bomb: ResponseBomb) {
    let mut request = [0; 4096];
    let first = (bomb.first)();
    if stream.read(&mut request).await.is_err() || stream.write_all(&first).await.is_err() {
        return;
    }
    let again = (bomb.again)();
    while !again.is_empty() && stream.write_all(&again).await.is_ok() {}
}

/// Starts a target that records the time of each request.
async fn neighbour() -> (String, Arc<Mutex<Vec<Instant>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let visits = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&visits);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            seen.lock().unwrap().push(Instant::now());
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 204 Fine\r\nconnection: close\r\n\r\n").await;
        }
    });
    (url, visits)
}

/// Returns a memory figure from `/proc/PID/status`, in KiB.
pub(crate) fn kib(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap()
}
