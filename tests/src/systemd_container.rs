//! A booted systemd in a container: this host's `/usr`, read-only, and everything else empty and in memory. It has its
//! own network without a route to the outside. Nothing is downloaded.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::eventually::{block_until, skip_test};
use crate::process::binary_folder;
use crate::reference_servers::find_program;

/// Environment variable; if 1, a container that can't be booted is a failure.
const REQUIRE: &str = "PARALLAX_REQUIRE_NSPAWN";
/// Longest start of the container.
const BOOT: Duration = Duration::from_secs(180);
/// Path of the source tree in the container; scripts run there.
const TREE: &str = "/mnt/tree";
/// Host units that would wait for a network or ask questions.
const MASKED: [&str; 4] = [
    "systemd-networkd-wait-online.service",
    "systemd-networkd.service",
    "systemd-firstboot.service",
    "systemd-resolved.service",
];
/// Prefix of every script: `sudo` is not configured in an empty `/etc`.
const PRELUDE: &str = "set -euo pipefail; shopt -s expand_aliases; cd /mnt/tree; export NO_COLOR=1
    sudo() { setpriv --reuid \"$2\" --regid \"$2\" --clear-groups -- \"${@:3}\"; }\n";

/// A container with a booted systemd, killed when dropped.
#[derive(Debug)]
pub struct SystemdContainer {
    container: Child,
    /// Process id of its first process, as seen from this host.
    leader: i32,
    log: TempDir,
}

impl SystemdContainer {
    /// Boots a container. If that is not possible, `test` is skipped, or fails if `PARALLAX_REQUIRE_NSPAWN` is 1.
    pub fn boot(test: &str) -> Option<Self> {
        match Self::try_boot() {
            Ok(machine) => Some(machine),
            Err(reason) => {
                assert!(
                    std::env::var(REQUIRE).as_deref() != Ok("1"),
                    "{REQUIRE}=1, and no container can be booted: {reason}"
                );
                skip_test(test, "no container can be booted", &reason);
                None
            }
        }
    }

    fn try_boot() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("not root".to_owned());
        }
        let nspawn = find_program("systemd-nspawn").ok_or("no systemd-nspawn: apt-get install systemd-container")?;
        let log = TempDir::new().expect("temporary folder");
        let out = fs::File::create(log.path().join("boot.log")).expect("log can be made");
        let err = out.try_clone().expect("log can be shared");
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the tree");
        // The container ends with the thread that started it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(nspawn);
        command.args(["--volatile=yes", "--directory=/", "--private-network", "--register=no"]);
        if !Path::new("/run/systemd/system").exists() {
            command.arg("--keep-unit");
        }
        command
            .arg(format!("--machine=parallax-test-{}", std::process::id()))
            .args(["--console=pipe", "--tmpfs=/usr/local/bin"])
            .arg(format!("--bind-ro={}:{TREE}/target/release", binary_folder().display()))
            .arg(format!("--bind-ro={}:{TREE}/deploy", top.join("deploy").display()))
            // `useradd` reads there that each user gets a group.
            .arg("--bind-ro=/etc/login.defs")
            .args(["--boot", "systemd.unit=basic.target"])
            .args(MASKED.map(|unit| format!("systemd.mask={unit}")))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err);
        let container = command.spawn().map_err(|error| format!("systemd-nspawn: {error}"))?;
        let mut machine = Self { container, leader: 0, log };
        let booted = block_until(BOOT, || machine.has_booted());
        if booted { Ok(machine) } else { Err(format!("systemd does not start: {}", machine.boot_log())) }
    }

    fn has_booted(&mut self) -> bool {
        if !matches!(self.container.try_wait(), Ok(None)) {
            return false;
        }
        let id = self.container.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let Some(leader) = children.split_whitespace().next().and_then(|id| id.parse().ok()) else {
            return false;
        };
        self.leader = leader;
        let state = self.try_run("systemctl is-system-running || true").unwrap_or_default();
        matches!(state.trim(), "running" | "degraded")
    }

    fn boot_log(&self) -> String {
        fs::read_to_string(self.log.path().join("boot.log")).unwrap_or_default()
    }

    /// Runs a bash script in the container, at the top of the tree. Returns its output, or both output streams if it
    /// failed.
    pub fn try_run(&self, script: &str) -> Result<String, String> {
        let mut shell = Command::new("nsenter");
        shell.args(["--target", &self.leader.to_string(), "--all", "env", "-i"]);
        shell.args(["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"]);
        shell.args(["bash", "-c", &format!("{PRELUDE}{script}")]);
        let ran = shell.stdin(Stdio::null()).output().map_err(|error| format!("nsenter: {error}"))?;
        let out = String::from_utf8_lossy(&ran.stdout).into_owned();
        if ran.status.success() {
            return Ok(out);
        }
        Err(format!("{script}: {}\n{out}{}", ran.status, String::from_utf8_lossy(&ran.stderr)))
    }

    /// As [`SystemdContainer::try_run`], but panics if the script fails.
    pub fn run(&self, script: &str) -> String {
        self.try_run(script).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// Repeats a script until it succeeds, and returns its output.
    pub fn retry(&self, what: &str, limit: Duration, script: &str) -> String {
        let mut last = Err(String::new());
        let done = block_until(limit, || {
            last = self.try_run(script);
            last.is_ok()
        });
        assert!(done, "not within {limit:?}: {what}: {}", last.unwrap_err());
        last.unwrap_or_default()
    }

    /// Waits until the journal of a unit contains `words`.
    pub fn wait_for_log(&self, unit: &str, words: &str) {
        let script = format!("journalctl --no-pager -o cat -u {unit} | grep -F -- '{words}'");
        self.retry(&format!("{unit} logs {words:?}"), Duration::from_secs(60), &script);
    }

    /// Sends an API request with a key, and returns status and body.
    pub fn api(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
        let body = if body.is_empty() { String::new() } else { format!("-d '{body}'") };
        let answer = self.run(&format!(
            "curl -s -m 30 -w '\\n%{{http_code}}' -X {method} -H 'Authorization: Bearer {key}' \
             -H 'Content-Type: application/json' {body} 'http://127.0.0.1/api/v1{path}'"
        ));
        let (body, status) = answer.rsplit_once('\n').expect("curl says the status");
        (status.parse().expect("a status is a number"), serde_json::from_str(body).unwrap_or_default())
    }
}

impl Drop for SystemdContainer {
    fn drop(&mut self) {
        if std::thread::panicking() && self.leader > 0 {
            let units = self.try_run("journalctl --no-pager -o cat -u parallax -u parallax-agent | tail -n 80");
            let _ = writeln!(std::io::stderr(), "--- journal\n{}\n---", units.unwrap_or_else(|fault| fault));
        }
        if let Some(leader) = rustix::process::Pid::from_raw(self.leader).filter(|_| self.leader > 1) {
            // Killing the first process ends the container, and then its supervisor.
            let _ = rustix::process::kill_process(leader, rustix::process::Signal::KILL);
            block_until(Duration::from_secs(10), || !matches!(self.container.try_wait(), Ok(None)));
        }
        let _ = self.container.kill();
        let _ = self.container.wait();
    }
}
