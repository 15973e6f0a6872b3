//! Resource usage of a process: CPU time and memory from `/proc`, and pinning to cores.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the CPU seconds of a live process, user and system. The sum over its threads is exact to the nanosecond but
/// lacks threads that have ended; the process total includes them, to 10 ms.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let threads: u64 = thread_ids(pid)
        .filter_map(|task| fs::read_to_string(format!("/proc/{pid}/task/{task}/schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process lives");
    let after_name = stat.rsplit_once(')').expect("the name is in brackets").1;
    // Fields 14 and 15 of proc(5), counted from the third.
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    #[allow(clippy::cast_precision_loss, reason = "seconds")]
    f64::max(threads as f64 / 1e9, ticks as f64 / 100.0)
}

/// Returns the current resident memory of a process in bytes.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    let kib: u64 = line.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number of KiB");
    kib * 1024
}

/// Pins this process to the first core, and returns the core that is left for the measured process. Call it before any
/// thread is started.
pub(super) fn split_cores() -> Option<usize> {
    let allowed = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    if !online.contains('-') {
        return None;
    }
    let present = sched_getaffinity(None).ok()?;
    // If the caller restricted us to one core, that core is for the measured process.
    let measured = if allowed == 1 { (0..64).find(|&core| present.is_set(core))? } else { 1 };
    let mut ours = CpuSet::new();
    ours.set(usize::from(measured == 0));
    sched_setaffinity(None, &ours).ok()?;
    Some(measured)
}

/// Pins a process to one core.
pub(super) fn pin(pid: u32, core: Option<usize>) {
    let Some(core) = core else { return };
    let mut set = CpuSet::new();
    set.set(core);
    for task in thread_ids(pid) {
        let id = i32::try_from(task).ok().and_then(rustix::process::Pid::from_raw);
        // A thread may have ended meanwhile.
        let _ = sched_setaffinity(id, &set);
    }
}

/// Returns the machine's load average over the last minute.
pub(super) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

fn thread_ids(pid: u32) -> impl Iterator<Item = u32> {
    let folder = fs::read_dir(format!("/proc/{pid}/task")).expect("the process lives");
    folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}
