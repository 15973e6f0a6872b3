//! Notifications of both programs to the service manager (systemd's protocol for `Type=notify`).

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::process::{TestProcess, binary, output};
use tempfile::TempDir;

/// Longest wait for a notification.
const SOON: Duration = Duration::from_secs(60);
const ANY: &str = "127.0.0.1:0";

/// The service manager's side.
struct Manager(UnixDatagram);

impl Manager {
    /// Sets up a notification socket and a watchdog of two seconds for the program.
    fn of(command: &mut Command, folder: &Path) -> Self {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "2000000");
        Self(socket)
    }

    /// Returns all notifications up to and including the one with this line.
    fn until(&self, line: &str) -> Vec<String> {
        let mut reports = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            let length = self.0.recv(&mut bytes).unwrap_or_else(|error| panic!("no {line}: {error}; {reports:?}"));
            reports.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
            if reports.last().is_some_and(|report| report.lines().any(|it| it == line)) {
                return reports;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_is_ready_once_it_serves_and_feeds_the_watchdog() {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(binary("parallax"));
    command.args(["serve", "--listen", ANY, "--mesh-listen", ANY, "--data"]).arg(folder.path().join("data"));
    let manager = Manager::of(&mut command, folder.path());
    let mut process = TestProcess::start("coordinator", command, folder.path());
    let reports = manager.until("READY=1");
    let (ready, before) = reports.split_last().unwrap();
    assert!(before.iter().any(|it| it.contains("EXTEND_TIMEOUT_USEC=60000000")), "{reports:?}");
    assert!(before.iter().any(|it| it.contains("STATUS=Opening and verifying the store")), "{reports:?}");
    let address = ready.lines().find_map(|line| line.strip_prefix("STATUS=Serving http://")).unwrap();
    TcpStream::connect(address).unwrap();
    manager.until("WATCHDOG=1");
    manager.until("WATCHDOG=1");
    process.terminate();
    manager.until("STOPPING=1");
    assert_eq!(process.wait_for_exit(SOON).await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_ready_while_its_coordinator_is_away() {
    let mut coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), "").await;
    let invite = ["agent", "invite", "--name", "a1", "--region", "europe", "--network", "AS64500"];
    let invited = coordinator.run_command(&invite).unwrap();
    let folder = TempDir::new().unwrap();
    let agent = |words: &[&str]| {
        let mut command = Command::new(binary("parallax-agent"));
        command.args(words).arg("--data").arg(folder.path().join("data"));
        command
    };
    let mesh = coordinator.ready.mesh.to_string();
    let token = invited["token"].as_str().unwrap();

    let mut command = agent(&["run"]);
    let refused = output(agent(&["run"])).unwrap_err();
    assert!(refused.contains("no identity yet; join a mesh first"), "{refused}");
    output(agent(&["join", "--coordinator", &mesh, "--token", token])).unwrap();
    coordinator.process.kill();
    let manager = Manager::of(&mut command, folder.path());
    let mut process = TestProcess::start("agent", command, folder.path());
    let reports = manager.until("READY=1");
    assert!(reports.last().unwrap().contains("STATUS=Running checks as a1 (europe, AS64500)"), "{reports:?}");
    manager.until("WATCHDOG=1");
    manager.until("WATCHDOG=1");
    process.terminate();
    manager.until("STOPPING=1");
    assert_eq!(process.wait_for_exit(SOON).await.code(), Some(0));
}
