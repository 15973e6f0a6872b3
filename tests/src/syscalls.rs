//! Faults of the operating system for one process: system calls that are late or fail, by strace.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::eventually::{blocks_until, eventually, leave_out};
use crate::process::Process;

/// Set to 1 where a process that can't be traced is a failure.
const REQUIRE: &str = "PARALLAX_REQUIRE_STRACE";
/// Longest wait until it is traced.
const ATTACH: Duration = Duration::from_secs(30);

/// A process whose system calls fail as they are told to, until this is dropped.
#[derive(Debug)]
pub struct Faults(Child);

impl Faults {
    /// Has the calls of `process` and of all its threads fail by `rule`, which is what strace's `inject=` takes:
    /// `fsync:error=EIO`, `fsync,fdatasync:delay_enter=5000000` (in µs), `pwrite64:error=EIO:when=3+` (of each thread).
    /// Where nothing can be traced `test` is left out with a word, or fails if `PARALLAX_REQUIRE_STRACE` is 1.
    pub async fn inject(test: &str, process: &Process, rule: &str) -> Option<Self> {
        let id = process.id();
        let mut command = Command::new("strace");
        command.args(["-f", "-q", "-o", "/dev/null", "-e", &format!("inject={rule}"), "-p", &id.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return left_out(test, &error.to_string()),
        };
        let attached = eventually("the process is traced", ATTACH, async || {
            if child.try_wait().expect("own child").is_some() {
                // A rule that kills may have struck before every thread was traced.
                return Some(is_over(id));
            }
            is_traced(id).then_some(true)
        });
        if attached.await { Some(Self(child)) } else { left_out(test, "strace may not trace it") }
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        // Told to stop, it lets the process go on; killed, it would take it with it.
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).expect("process ids are positive");
        let _ = kill_process(id, Signal::TERM);
        if !blocks_until(ATTACH, || matches!(self.0.try_wait(), Ok(Some(_)))) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Whether each thread of the process has a tracer.
fn is_traced(id: u32) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{id}/task")) else { return false };
    let status = |task: PathBuf| std::fs::read_to_string(task.join("status")).unwrap_or_default();
    tasks.flatten().all(|task| {
        let status = status(task.path());
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() != "0"))
    })
}

/// Whether the process has ended, and waits for its parent to hear of it.
fn is_over(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("State:").is_some_and(|state| state.trim().starts_with('Z')))
}

fn left_out(test: &str, reason: &str) -> Option<Faults> {
    assert!(std::env::var(REQUIRE).as_deref() != Ok("1"), "{REQUIRE}=1, and nothing can be traced: {reason}");
    leave_out(test, "no process can be traced", reason);
    None
}
