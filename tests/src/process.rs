//! Real processes: the binaries found or built, started with their output kept, and killed when dropped.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use crate::bench::gauge;
use crate::eventually::{blocks_until, eventually};

/// How many lines of a process's log are shown when its test fails.
const LINES_SHOWN: usize = 60;

/// Names the folder of finished binaries.
pub(crate) const BIN_DIR: &str = "PARALLAX_BIN_DIR";

/// Path of the binary `parallax`, `parallax-agent` or `parallax-target`.
///
/// `PARALLAX_BIN_DIR` names the folder of finished binaries. Without it they are built once a process, so that a test
/// run by hand never meets binaries of yesterday.
pub fn binary(name: &str) -> PathBuf {
    let path = folder().join(name);
    assert!(path.is_file(), "{name} is not in {}", folder().display());
    path
}

/// Folder of the binaries.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| std::env::var_os(BIN_DIR).map_or_else(build, PathBuf::from))
}

/// Builds the binaries where this test was built, and gives their folder.
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

/// A command that runs `program` in a network namespace, or here. The process that starts is the program itself.
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

/// A process with its output in a file. Killed when dropped; where its test is failing, the end of its log is shown.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; what it prints goes to `NAME.log` in `folder`, after what is there already.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Self {
        let log = folder.join(format!("{name}.log"));
        let out = File::options().create(true).append(true).open(&log).expect("log can be made");
        let err = out.try_clone().expect("log can be shared");
        command.stdin(Stdio::piped()).stdout(out).stderr(err).env("NO_COLOR", "1");
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { name: name.to_owned(), child, log }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU seconds that it has used.
    pub fn cpu_seconds(&self) -> f64 {
        gauge::cpu_seconds(self.id())
    }

    /// Its resident memory in bytes.
    pub fn resident(&self) -> u64 {
        gauge::resident(self.id())
    }

    /// All it has printed.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Whether it is still there.
    pub fn running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it with no time to say anything (SIGKILL), and waits until it is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Has it stand still in the middle of what it does (SIGSTOP), and waits until all of it does.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        let stands = |task: &Path| {
            let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
            // The state stands behind the name, which is in brackets and may hold anything.
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        let tasks = format!("/proc/{}/task", self.child.id());
        let all_stand =
            || std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.flatten().all(|task| stands(&task.path())));
        assert!(blocks_until(Duration::from_secs(10), all_stand), "{} does not stand", self.name);
    }

    fn signal(&self, signal: Signal) {
        let id =
            i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("process ids are positive");
        kill_process(id, signal).expect("the process can be told");
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        let what = format!("{} ends", self.name);
        eventually(&what, limit, async || self.child.try_wait().expect("own child")).await
    }

    /// Waits until a line of its log contains `text`.
    pub async fn says(&mut self, text: &str, limit: Duration) {
        let what = format!("{} says `{text}`", self.name);
        eventually(&what, limit, async || self.log().contains(text).then_some(())).await;
    }

    /// Writes a line to its standard input.
    pub fn tell(&mut self, line: &str) {
        let stdin: &mut ChildStdin = self.child.stdin.as_mut().expect("stdin is piped");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the process listens");
    }
}

impl Drop for Process {
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

/// Has this process, and what it starts from now on, open that many descriptors; the error says why it may not.
pub fn allow_descriptors(wanted: u64) -> Result<(), String> {
    let found = getrlimit(Resource::Nofile);
    if found.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    // More than was ever meant to be had is root's to allow.
    let maximum = found.maximum.map(|maximum| maximum.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
        .map_err(|error| format!("{wanted} descriptors: {error}"))
}

/// Runs `command` to its end and gives what it printed; an error with both outputs where it failed.
pub fn output(mut command: Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{shown}: {error}"))?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(out);
    }
    Err(format!("{shown}: {}\n{out}{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Kills processes that are not our children, by id, and waits a moment for them to go.
pub(crate) fn kill_all(ids: &[i32]) {
    for id in ids.iter().filter_map(|&id| Pid::from_raw(id)) {
        // One that has gone meanwhile is what was wanted.
        let _ = kill_process(id, Signal::KILL);
    }
    blocks_until(Duration::from_secs(2), || ids.iter().all(|id| !Path::new(&format!("/proc/{id}")).exists()));
}
