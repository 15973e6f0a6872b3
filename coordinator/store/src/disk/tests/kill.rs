//! Tests of kill -9 at any time: nothing acknowledged is lost, and a commit without its flush would be detected.

use super::super::writer::SkippedStep;
use super::crash_harness::{Committer, survives};
use super::*;

/// Kills a committing process `rounds` times on one store, and reports any loss.
fn kill_repeatedly(rounds: u32, skip: SkippedStep) -> std::result::Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let mut random = StdRng::from_os_rng();
    for round in 0..rounds {
        let (committer, last_acknowledged) = Committer::start(folder.path(), skip, random.random_range(1..150))
            .ok_or(format!("round {round}: it does not open again"))?;
        let acknowledged = committer.kill(last_acknowledged);
        survives(folder.path(), acknowledged).map_err(|lost| format!("round {round}: {lost}"))?;
    }
    Ok(())
}

#[test]
fn no_acknowledged_commit_is_lost_to_a_kill() {
    kill_repeatedly(15, SkippedStep::Nothing).unwrap();
}

#[test]
#[ignore = "takes minutes: `cargo test -p parallax-store two_hundred -- --ignored`"]
fn no_acknowledged_commit_is_lost_to_two_hundred_kills() {
    kill_repeatedly(200, SkippedStep::Nothing).unwrap();
}

#[test]
fn a_commit_without_its_flush_is_detected_by_a_kill() {
    let lost = kill_repeatedly(5, SkippedStep::Flush).unwrap_err();
    assert!(lost.contains("lost") || lost.contains("survive"), "{lost}");
}
