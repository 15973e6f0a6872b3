//! A process that commits until it is stopped, and the checks afterwards, shared by the kill and power cut tests.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::super::writer::SkippedStep;
use super::*;
use crate::Store;

const FOLDER: &str = "PARALLAX_STORE_UNDER_TEST";
const SKIP: &str = "PARALLAX_COMMIT_SKIPS";

/// A process that commits numbered batches to a store and reports the acknowledged ones.
pub(super) struct Committer {
    pub(super) child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Committer {
    /// Starts one and waits until that many commits are acknowledged. Returns `None` if it could not open the
    /// store.
    pub(super) fn start(folder: &Path, skip: SkippedStep, commits: usize) -> Option<(Self, u64)> {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "disk::tests::crash_harness::committer", "--nocapture", "--include-ignored"])
            .env(FOLDER, folder)
            .env(SKIP, format!("{skip:?}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let acknowledged = lines.by_ref().map_while(std::result::Result::ok).filter_map(number).nth(commits);
        let mut committer = Self { child, lines };
        match acknowledged {
            Some(acknowledged) => Some((committer, acknowledged)),
            None => {
                committer.child.wait().unwrap();
                None
            }
        }
    }

    /// Kills it and returns the last commit reported as acknowledged, after `acknowledged`.
    pub(super) fn kill(mut self, acknowledged: u64) -> u64 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // Lines written before it died count too.
        self.lines.map_while(std::result::Result::ok).filter_map(number).last().unwrap_or(acknowledged)
    }
}

fn number(line: String) -> Option<u64> {
    line.strip_prefix("acknowledged ")?.parse().ok()
}

#[test]
#[ignore = "not a test: the process that the tests of kills and power cuts stop"]
fn committer() {
    let (Some(folder), Ok(skip)) = (std::env::var_os(FOLDER), std::env::var(SKIP)) else { return };
    let skip =
        [SkippedStep::Nothing, SkippedStep::Flush, SkippedStep::Fsync].into_iter().find(|it| format!("{it:?}") == skip);
    let options = DiskOptions { skip: skip.unwrap(), ..small_options() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = Store::on_disk(Path::new(&folder), options).unwrap();
        let mut in_flight = VecDeque::new();
        for n in store.reader().last_event().unwrap() + 1.. {
            // Many in flight at a time.
            in_flight.push_back(store.send(numbered_batch(n)).await.unwrap());
            if in_flight.len() > 16 {
                let committed = in_flight.pop_front().unwrap().await.unwrap().unwrap();
                writeln!(std::io::stdout(), "acknowledged {}", committed.last_event).unwrap();
            }
        }
    });
}

/// Checks that a store holds every acknowledged commit, no gap, and nothing that was not committed.
pub(super) fn survives(folder: &Path, acknowledged: u64) -> std::result::Result<u64, String> {
    let store = TestStore::open(folder).map_err(|error| error.to_string())?;
    let reader = &store.reader;
    let last = reader.last_event().unwrap();
    if last < acknowledged {
        return Err(format!("{acknowledged} were acknowledged, and {last} survive"));
    }
    let events = reader.events_after(0, usize::MAX).unwrap();
    let entries = reader.readings_after(0, usize::MAX).unwrap();
    if (events.len() as u64, entries.len() as u64) != (last, last) {
        return Err(format!("{} events and {} entries of {last}", events.len(), entries.len()));
    }
    for (n, (event, entry)) in (1..).zip(events.iter().zip(&entries)) {
        let numbered_batch = numbered_batch(n);
        let is_unchanged = (event.seq, entry.seq) == (n, n)
            && Some(&event.event) == numbered_batch.events.first()
            && entry.readings == numbered_batch.readings;
        if !is_unchanged {
            return Err(format!("commit {n} is not what was written"));
        }
    }
    for monitor in 0..4 {
        let blocks = reader.blocks(monitor_id(monitor), Region::Asia, 0..i64::MAX).unwrap();
        if !blocks.into_iter().eq((1..=last).filter(|n| u128::from(n % 4) == monitor).map(block_of)) {
            return Err(format!("blocks of monitor {monitor} are not what was written"));
        }
    }
    let accounts = reader.accounts().unwrap();
    let are_all = accounts.iter().map(|it| it.value.id).eq((1..=last).map(|n| account_id(u128::from(n))));
    if are_all && reader.cursor("c") == Ok(last) { Ok(last) } else { Err("records are missing".to_owned()) }
}
