//! Real processes: binaries found or built, started with their output in a file, and killed when dropped.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use crate::bench::process_usage;
use crate::eventually::{block_until, eventually};

/// Lines of a process's log that are printed when its test fails.
const LINES_SHOWN: usize = 60;

/// Environment variable with the folder of built binaries.
pub(crate) const BIN_DIR: &str = "PARALLAX_BIN_DIR";

/// Returns the path of the binary `parallax`, `parallax-agent` or `parallax-target`.
///
/// `PARALLAX_BIN_DIR` names the folder of built binaries. Without it they are built once per process, so that a test
/// run by hand never uses outdated binaries.
pub fn binary(name: &str) -> PathBuf {
    let path = binary_folder().join(name);
    assert!(path.is_file(), "{name} is not in {}", binary_folder().display());
    path
}

/// Returns the folder of the binaries.
pub(crate) fn binary_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| std::env::var_os(BIN_DIR).map_or_else(build, PathBuf::from))
}

/// Builds the binaries with the profile of this test, and returns their folder.
fn build() -> PathBuf {
    let exe = std::env::current_exe().expect("a process knows its file");
    // …/target/debug/deps/it-0123456789abcdef
    let folder = exe.ancestors().nth(2).expect("tests lie in the target directory").to_path_buf();
    let target = folder.parent().expect("a profile lies in the target directory");
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo
        .args([
            "build",
            "--quiet",
            "--bins",
            "-p",
            "parallax-coordinator",
            "-p",
            "parallax-agent",
            "-p",
            "parallax-tests",
        ])
        .arg("--target-dir")
        .arg(target)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "the binaries do not build");
    folder
}

/// Returns a command that runs `program` in a network namespace, or on this host. The started process is the program
/// itself.
pub fn command(netns: Option<&str>, program: &Path) -> Command {
    match netns {
        None => Command::new(program),
        Some(name) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", name]).arg(program);
            command
        }
    }
}

/// A process with its output in a file. Killed when dropped; if its test is failing, the end of its log is printed.
#[derive(Debug)]
pub struct TestProcess {
    name: String,
    child: Child,
    log: PathBuf,
}

impl TestProcess {
    /// Starts `command`; its output is appended to `NAME.log` in `folder`.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Self {
        let log = folder.join(format!("{name}.log"));
        let out = File::options().create(true).append(true).open(&log).expect("log can be made");
        let err = out.try_clone().expect("log can be shared");
        command.stdin(Stdio::piped()).stdout(out).stderr(err).env("NO_COLOR", "1");
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { name: name.to_owned(), child, log }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the CPU seconds used so far.
    pub fn cpu_seconds(&self) -> f64 {
        process_usage::cpu_seconds(self.id())
    }

    /// Returns the resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        process_usage::resident_bytes(self.id())
    }

    /// Returns all output so far.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Returns true while it runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it (SIGKILL), and waits until it has ended.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Stops it (SIGSTOP), and waits until all threads are stopped.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        let stands = |task: &Path| {
            let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
            // The state follows the name, which is in brackets and may contain anything.
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        let tasks = format!("/proc/{}/task", self.child.id());
        let all_stand =
            || std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.flatten().all(|task| stands(&task.path())));
        assert!(block_until(Duration::from_secs(10), all_stand), "{} is not stopped", self.name);
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("process ids are positive");
        kill_process(id, signal).expect("the process can be signalled");
    }

    /// Waits until it has exited by itself.
    pub async fn wait_for_exit(&mut self, limit: Duration) -> ExitStatus {
        let what = format!("{} ends", self.name);
        eventually(&what, limit, async || self.child.try_wait().expect("own child")).await
    }

    /// Waits until its log contains `text`.
    pub async fn wait_for_log(&mut self, text: &str, limit: Duration) {
        let what = format!("{} says `{text}`", self.name);
        eventually(&what, limit, async || self.log().contains(text).then_some(())).await;
    }

    /// Writes a line to its standard input.
    pub fn write_line(&mut self, line: &str) {
        let stdin: &mut ChildStdin = self.child.stdin.as_mut().expect("stdin is piped");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the process listens");
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let shown = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n");
            let _ = writeln!(std::io::stderr(), "--- {} (end of its log)\n{shown}\n---", self.name);
        }
    }
}

/// Raises the descriptor limit of this process and its future children to `wanted`; the error is the reason if that is
/// not allowed.
pub fn allow_descriptors(wanted: u64) -> Result<(), String> {
    let found = getrlimit(Resource::Nofile);
    if found.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    // Only root may raise the hard limit.
    let maximum = found.maximum.map(|maximum| maximum.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
        .map_err(|error| format!("{wanted} descriptors: {error}"))
}

/// Runs `command` and returns its output; an error with both output streams if it failed.
pub fn output(mut command: Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{shown}: {error}"))?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(out);
    }
    Err(format!("{shown}: {}\n{out}{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Kills processes that are not children of this one, by id, and waits briefly for them to end.
pub(crate) fn kill_all(ids: &[i32]) {
    for id in ids.iter().filter_map(|&id| Pid::from_raw(id)) {
        // It may have ended already.
        let _ = kill_process(id, Signal::KILL);
    }
    block_until(Duration::from_secs(2), || ids.iter().all(|id| !Path::new(&format!("/proc/{id}")).exists()));
}
