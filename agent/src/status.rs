//! State that `status` prints: written by the running agent, read from its folder.

use crate::context::{AgentContext, lock};
use crate::data_folder::{read_record, removal_reason_of, validity_of};
use crate::error::AgentError;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Age from which a status belongs to an agent that no longer runs, in ms.
const STALE_MS: i64 = 20_000;

/// An agent's state at one time. Times are epoch ms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// Time of writing, by the host's wall clock.
    pub written_ms: i64,
    /// Process number.
    pub pid: u32,
    /// Software version.
    pub software: String,
    /// True if a coordinator has accepted this agent and the connection is open.
    pub connected: bool,
    /// Start of the connection, by the coordinator's clock.
    pub connected_since_ms: Option<i64>,
    /// Reason why it is not connected, if there was an error.
    #[serde(default)]
    pub link_fault: Option<String>,
    /// Connections accepted since the start.
    pub connections: u64,
    /// Revision of the schedule in force.
    pub schedule_revision: Option<u64>,
    /// Monitors assigned.
    pub monitors: usize,
    /// Checks running now.
    pub running: usize,
    /// Scheduled checks that passed since the start.
    pub passed: u64,
    /// Scheduled checks that failed.
    pub failed: u64,
    /// Scheduled checks without a verdict because of a fault on the agent's side.
    pub inconclusive: u64,
    /// Check-nows done.
    #[serde(rename = "asked")]
    pub check_nows: u64,
    /// Rounds not run because the host slept or was too busy.
    pub missed: u64,
    /// Results in memory that wait for acknowledgement.
    pub waiting_memory: usize,
    /// Results on disk that wait for acknowledgement.
    pub waiting_disk: u64,
    /// Size of the spool in bytes.
    pub spool_bytes: u64,
    /// Results dropped for lack of space.
    pub lost: u64,
    /// Host's wall clock minus the coordinator's, in ms.
    pub skew_ms: i64,
    /// Expiry of the certificate.
    pub certificate_ends_ms: i64,
    /// Faults of the host.
    pub faults: Vec<String>,
}

/// Reads the state of a running agent.
pub(crate) fn snapshot(shared: &AgentContext) -> AgentStatus {
    let (memory, disk, bytes, lost, disk_fault) = {
        let queue = shared.queue();
        let (memory, disk) = queue.waiting();
        (memory, disk, queue.spool_bytes(), queue.dropped(), queue.disk_fault().map(str::to_owned))
    };
    let (version, monitors, missed) = {
        let schedule = shared.schedule();
        (schedule.version(), schedule.len(), schedule.missed())
    };
    let ends = validity_of(&shared.membership().credentials).map_or(0, |life| life.not_after);
    let mut faults: Vec<String> = shared.faults.borrow().iter().map(ToString::to_string).collect();
    faults.extend(disk_fault);
    if !*shared.resolves_records.borrow() {
        faults.push(crate::readiness::RECORD_RESOLVER_FAULT.to_owned());
    }
    let connected_since_ms = *lock(&shared.connected_since_ms);
    let link_fault = lock(&shared.connection_error).clone();
    let counts = &shared.counters;
    AgentStatus {
        written_ms: shared.clock.wall_ms(),
        pid: std::process::id(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        connected: connected_since_ms.is_some(),
        connected_since_ms,
        link_fault: connected_since_ms.is_none().then_some(link_fault).filter(|fault| !fault.is_empty()),
        connections: counts.connections.load(Ordering::Relaxed),
        schedule_revision: version.map(|version| version.revision),
        monitors,
        running: counts.running.load(Ordering::Relaxed),
        passed: counts.passed.load(Ordering::Relaxed),
        failed: counts.failed.load(Ordering::Relaxed),
        inconclusive: counts.inconclusive.load(Ordering::Relaxed),
        check_nows: counts.check_nows.load(Ordering::Relaxed),
        missed,
        waiting_memory: memory,
        waiting_disk: disk,
        spool_bytes: bytes,
        lost,
        skew_ms: shared.clock.skew_ms(),
        certificate_ends_ms: ends.saturating_mul(1000),
        faults,
    }
}

/// Writes the state into the folder atomically.
pub(crate) fn write(folder: &Path, status: &AgentStatus) -> Result<(), AgentError> {
    let path = folder.join(FILE);
    let text = serde_json::to_vec_pretty(status)
        .map_err(|_| AgentError::Damaged { path: path.clone(), rule: "does not encode" })?;
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, &path)).map_err(AgentError::file(&path))
}

/// Removes the state of an agent that has stopped.
pub(crate) fn remove(folder: &Path) {
    // If it cannot be removed, its age shows that it is stale.
    let _ = std::fs::remove_file(folder.join(FILE));
}

/// Describes the agent in `folder`: as text or JSON, and whether it runs and is connected.
///
/// # Errors
/// [`AgentError::NotJoined`] if there is no agent; [`AgentError::Damaged`] for files that no agent wrote.
pub fn report(folder: &Path, now_wall_ms: i64, json: bool) -> Result<(String, bool), AgentError> {
    let record = read_record(folder)?.ok_or_else(|| AgentError::NotJoined(folder.to_owned()))?;
    let path = folder.join(FILE);
    let status = match std::fs::read(&path) {
        Ok(bytes) => {
            let damaged = |_| AgentError::Damaged { path: path.clone(), rule: "is not an agent's status" };
            Some(serde_json::from_slice::<AgentStatus>(&bytes).map_err(damaged)?)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(AgentError::file(path)(error)),
    };
    let status = status.filter(|status| now_wall_ms.abs_diff(status.written_ms) < STALE_MS.unsigned_abs());
    let connected = status.as_ref().is_some_and(|status| status.connected);
    if json {
        let value = serde_json::json!({
            "running": status.is_some(),
            "agent": {
                "id": record.agent, "name": record.name, "region": record.region, "network": record.network,
                "mesh": record.mesh, "coordinator": record.coordinator,
            },
            "status": status,
        });
        return Ok((format!("{value:#}"), connected));
    }
    let removed = removal_reason_of(folder);
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<14}{value}");
    };
    line("agent", format!("{} ({}, {})", record.name, record.region, record.network));
    line("mesh", format!("{} at {}", record.mesh, record.coordinator));
    let Some(status) = status else {
        line("state", removed.map_or("not running".into(), |why| format!("not running: {why}")));
        return Ok((text, false));
    };
    line(
        "state",
        match &status.link_fault {
            _ if connected => "connected".into(),
            Some(fault) => format!("running, not connected: {fault}"),
            None => "running, not connected".into(),
        },
    );
    line("version", format!("{}, process {}", status.software, status.pid));
    let revision = status.schedule_revision.map_or("none".into(), |revision| format!("revision {revision}"));
    line("schedule", format!("{} monitors, {revision}", status.monitors));
    line(
        "checks",
        format!(
            "{} running, {} passed, {} failed, {} inconclusive, {} check-nows, {} missed",
            status.running, status.passed, status.failed, status.inconclusive, status.check_nows, status.missed
        ),
    );
    line(
        "waiting",
        format!(
            "{} in memory, {} on disk ({} bytes), {} lost",
            status.waiting_memory, status.waiting_disk, status.spool_bytes, status.lost
        ),
    );
    line("clock", format!("{} ms off the coordinator's", status.skew_ms));
    let days = (status.certificate_ends_ms - now_wall_ms) / 86_400_000;
    line("certificate", format!("ends in {days} days"));
    line("faults", if status.faults.is_empty() { "none".into() } else { status.faults.join("; ") });
    Ok((text, connected))
}

const FILE: &str = "status.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_of_an_older_agent_can_be_read() {
        let text = r#"{"writtenMs": 1, "pid": 2, "software": "0", "connected": false, "connectedSinceMs": null,
            "connections": 0, "scheduleRevision": null, "monitors": 0, "running": 0, "passed": 0, "failed": 0,
            "inconclusive": 0, "asked": 0, "missed": 0, "waitingMemory": 0, "waitingDisk": 0, "spoolBytes": 0,
            "lost": 0, "skewMs": 0, "certificateEndsMs": 0, "faults": []}"#;
        assert_eq!(serde_json::from_str::<AgentStatus>(text).unwrap().link_fault, None);
    }
}
