//! Operating-system faults for one process: delayed or failing system calls, by strace.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::eventually::{block_until, eventually, skip_test};
use crate::process::TestProcess;

/// Environment variable; if 1, a process that can't be traced is a failure.
const REQUIRE: &str = "PARALLAX_REQUIRE_STRACE";
/// Longest wait until the process is traced.
const ATTACH: Duration = Duration::from_secs(30);

/// Injected faults of one process, removed when dropped.
#[derive(Debug)]
pub struct SyscallFaults(Child);

impl SyscallFaults {
    /// Makes system calls of `process` and of all its threads fail by `rule`, in the syntax of strace's `inject=`:
    /// `fsync:error=EIO`, `fsync,fdatasync:delay_enter=5000000` (in µs), `pwrite64:error=EIO:when=3+` (per thread). If
    /// tracing is not possible, `test` is skipped, or fails if `PARALLAX_REQUIRE_STRACE` is 1.
    pub async fn inject(test: &str, process: &TestProcess, rule: &str) -> Option<Self> {
        let id = process.id();
        let mut command = Command::new("strace");
        command.args(["-f", "-q", "-o", "/dev/null", "-e", &format!("inject={rule}"), "-p", &id.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return skipped(test, &error.to_string()),
        };
        let attached = eventually("the process is traced", ATTACH, async || {
            if child.try_wait().expect("own child").is_some() {
                // A rule that kills may apply before every thread is traced.
                return Some(wait_until_ended(id));
            }
            is_traced(id).then_some(true)
        });
        if attached.await { Some(Self(child)) } else { skipped(test, "strace may not trace it") }
    }
}

impl Drop for SyscallFaults {
    fn drop(&mut self) {
        // SIGTERM makes strace detach; SIGKILL would kill the traced process too.
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).expect("process ids are positive");
        let _ = kill_process(id, Signal::TERM);
        if !block_until(ATTACH, || matches!(self.0.try_wait(), Ok(Some(_)))) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Returns true if each thread of the process has a tracer.
fn is_traced(id: u32) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{id}/task")) else { return false };
    let status = |task: PathBuf| std::fs::read_to_string(task.join("status")).unwrap_or_default();
    tasks.flatten().all(|task| {
        let status = status(task.path());
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() != "0"))
    })
}

/// Returns true if the process has ended, after waiting until its parent has noticed.
fn wait_until_ended(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("State:").is_some_and(|state| state.trim().starts_with('Z')))
}

fn skipped(test: &str, reason: &str) -> Option<SyscallFaults> {
    assert!(std::env::var(REQUIRE).as_deref() != Ok("1"), "{REQUIRE}=1, and nothing can be traced: {reason}");
    skip_test(test, "no process can be traced", reason);
    None
}
