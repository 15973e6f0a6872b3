//! Tests of power cuts: the image of a disk while commits run, mounted again. A missing flush or fsync would show.
//!
//! The disk is a file system in a file (ext4 on a loop device): data that was not made durable is in the host's
//! memory and not in that file. The committing process is stopped for good, so that the copy is from one point in
//! time.

use std::io::Write as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::super::writer::SkippedStep;
use super::crash_harness::{Committer, survives};
use super::*;

/// Set to 1 where a disk that can't be mounted is a failure.
const REQUIRE: &str = "PARALLAX_REQUIRE_MOUNT";
/// Path of a file that gets one line for every skipped test.
const SKIP_LOG: &str = "PARALLAX_SKIP_LOG";
/// Size of the disk.
const SIZE: u64 = 256 << 20;

/// A file system in a file, mounted until it is dropped.
struct Disk {
    image: PathBuf,
    mounted: tempfile::TempDir,
}

impl Disk {
    fn create(folder: &Path) -> std::result::Result<Self, String> {
        let image = folder.join("disk");
        File::create(&image).and_then(|file| file.set_len(SIZE)).map_err(|error| error.to_string())?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))?;
        Self::mount(image)
    }

    fn mount(image: PathBuf) -> std::result::Result<Self, String> {
        let mounted = tempfile::tempdir().map_err(|error| error.to_string())?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(mounted.path()))?;
        Ok(Self { image, mounted })
    }

    fn store(&self) -> PathBuf {
        self.mounted.path().join("store")
    }

    /// Copies the disk in its current state to another one.
    fn copy(&self, name: &str) -> Self {
        let image = self.image.with_file_name(name);
        run(Command::new("cp").arg("--sparse=always").arg(&self.image).arg(&image)).unwrap();
        Self::mount(image).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A file of the store that is still being closed keeps the mount busy for a moment.
        let started = Instant::now();
        while run(Command::new("umount").arg(self.mounted.path())).is_err()
            && started.elapsed() < Duration::from_secs(5)
        {
            thread::park_timeout(Duration::from_millis(20));
        }
        let _ = fs::remove_file(&self.image);
    }
}

/// Cuts the power `rounds` times and reports any loss; `None` if no disk can be mounted here.
fn cut_power_repeatedly(test: &str, rounds: u32, skip: SkippedStep) -> Option<std::result::Result<(), String>> {
    let folder = tempfile::tempdir().unwrap();
    let disk = match Disk::create(folder.path()) {
        Ok(disk) => disk,
        Err(reason) => {
            assert!(std::env::var(REQUIRE).as_deref() != Ok("1"), "{REQUIRE}=1, and no disk: {reason}");
            record_skip(test, &reason);
            return None;
        }
    };
    let mut random = StdRng::from_os_rng();
    for round in 0..rounds {
        let lost = |lost: String| Some(Err(format!("round {round}: {lost}")));
        let commits = random.random_range(1..150);
        let Some((committer, last_acknowledged)) = Committer::start(&disk.store(), skip, commits) else {
            return lost("it does not open again after a kill".to_owned());
        };
        stop(&committer);
        let after = disk.copy("after");
        let acknowledged = committer.kill(last_acknowledged);
        if let Err(problem) = survives(&after.store(), acknowledged) {
            return lost(problem);
        }
    }
    Some(Ok(()))
}

/// Stops a process and waits until all of its threads have stopped.
fn stop(committer: &Committer) {
    let id = committer.child.id();
    kill_process(Pid::from_raw(id as i32).unwrap(), Signal::STOP).unwrap();
    let is_stopped = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The state comes after the name, which is in brackets and may contain anything.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    let started = Instant::now();
    while !fs::read_dir(format!("/proc/{id}/task")).unwrap().all(|task| is_stopped(task.unwrap())) {
        assert!(started.elapsed() < Duration::from_secs(10), "the process has not stopped");
        thread::park_timeout(Duration::from_millis(1));
    }
}

fn run(command: &mut Command) -> std::result::Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let problem = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", problem.trim())) }
}

/// Reports that a test was skipped, where it can be counted.
fn record_skip(test: &str, reason: &str) {
    let line = format!("{test}: skipped, no disk can be mounted: {}", reason.lines().last().unwrap_or_default());
    let _ = writeln!(std::io::stderr(), "{line}");
    if let Some(path) = std::env::var_os(SKIP_LOG) {
        let file = File::options().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).expect("the skip log can be written");
    }
}

#[test]
fn no_acknowledged_commit_is_lost_to_a_power_cut() {
    if let Some(result) =
        cut_power_repeatedly("no_acknowledged_commit_is_lost_to_a_power_cut", 15, SkippedStep::Nothing)
    {
        result.unwrap();
    }
}

#[test]
#[ignore = "takes minutes: `cargo test -p parallax-store two_hundred -- --ignored`"]
fn no_acknowledged_commit_is_lost_to_two_hundred_power_cuts() {
    if let Some(result) =
        cut_power_repeatedly("no_acknowledged_commit_is_lost_to_two_hundred_power_cuts", 200, SkippedStep::Nothing)
    {
        result.unwrap();
    }
}

#[test]
fn a_commit_without_flush_or_fsync_is_found_out_by_a_power_cut() {
    for skip in [SkippedStep::Flush, SkippedStep::Fsync] {
        let result = cut_power_repeatedly("a_commit_without_flush_or_fsync_is_found_out_by_a_power_cut", 15, skip);
        if let Some(result) = result {
            let lost = result.expect_err(&format!("a commit that skips {skip:?} is not found out"));
            println!("without {skip:?}: {lost}");
        }
    }
}
