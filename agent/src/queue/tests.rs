//! Tests that no result is lost between memory and disk, and none is sent twice on one connection.

use super::*;
use parallax_protocol::result::{ProbeReport, WireOutcome};
use std::path::Path;

fn result(monitor: u128) -> CheckResult {
    CheckResult {
        monitor: WireMonitorId(monitor),
        revision: 1,
        round: Some(1),
        started_ms: 1,
        age_ms: 0,
        report: ProbeReport::outcome_only(WireOutcome::Passed),
    }
}

fn no_slot(_: WireMonitorId) -> Option<u32> {
    None
}

fn queue(folder: &Path, boot: u64) -> ResultQueue {
    ResultQueue::new(BootId(boot), Spool::open(folder, Spool::MIN_LIMIT).unwrap(), AgentClock::new(0))
}

fn push(queue: &mut ResultQueue, count: usize) {
    for n in 0..count {
        queue.push(result(n as u128), queue.clock.mono_ms(), no_slot);
    }
}

fn drain(queue: &mut ResultQueue) -> Vec<(u64, u64)> {
    let mut seen = Vec::new();
    while let Some(batch) = queue.next_batch(no_slot) {
        seen.extend(batch.results.iter().map(|numbered| (batch.boot.0, numbered.seq)));
    }
    seen
}

fn numbers(boot: u64, from: u64, through: u64) -> Vec<(u64, u64)> {
    (from..=through).map(|seq| (boot, seq)).collect()
}

#[test]
fn results_of_an_earlier_boot_go_first_under_their_own_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = queue(folder.path(), 1);
    push(&mut first, 3);
    first.save(true, no_slot);
    drop(first);
    let mut second = queue(folder.path(), 2);
    push(&mut second, 2);
    assert_eq!(second.earlier_boots(), [BootId(1)]);
    assert_eq!(drain(&mut second), [numbers(1, 1, 3), numbers(2, 1, 2)].concat());
    second.acknowledge(DurabilityMark { boot: BootId(1), through: 3 }).unwrap();
    assert!(second.earlier_boots().is_empty());
}

#[test]
fn a_new_connection_sends_what_was_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(folder.path(), 1);
    push(&mut queue, 5);
    assert_eq!(drain(&mut queue), numbers(1, 1, 5));
    assert!(drain(&mut queue).is_empty());
    queue.acknowledge(DurabilityMark { boot: BootId(1), through: 2 }).unwrap();
    queue.rewind();
    assert_eq!(drain(&mut queue), numbers(1, 3, 5));
}

#[test]
fn results_on_disk_and_in_memory_are_sent_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(folder.path(), 1);
    push(&mut queue, 5);
    queue.save(true, no_slot);
    push(&mut queue, 2);
    assert_eq!(drain(&mut queue), numbers(1, 1, 7));
    queue.rewind();
    assert_eq!(drain(&mut queue), numbers(1, 1, 7));
}

#[test]
fn memory_overflows_to_disk_without_a_gap_even_behind_the_reader() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(folder.path(), 1);
    queue.memory_limit = 100;
    push(&mut queue, 10);
    let first = queue.next_batch(no_slot).unwrap();
    assert_eq!(first.results.len(), 10);
    push(&mut queue, 400);
    assert!(queue.waiting().0 <= 100);
    assert_eq!(drain(&mut queue), numbers(1, 11, 410));
    assert_eq!((queue.dropped(), queue.gaps().len()), (0, 0));
}

#[test]
fn a_full_disk_keeps_the_newest_and_counts_the_gap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let mut queue = queue(&path, 1);
    queue.memory_limit = 100;
    std::fs::remove_dir_all(&path).unwrap();
    push(&mut queue, 250);
    assert!(queue.disk_fault().is_some());
    let seen = drain(&mut queue);
    assert_eq!(seen.last(), Some(&(1, 250)));
    let gap = queue.gaps()[0];
    assert_eq!(queue.gaps().len(), 1);
    assert_eq!((gap.from, gap.count()), (1, queue.dropped()));
    assert_eq!(seen.first(), Some(&(1, gap.through + 1)));
    queue.acknowledge(DurabilityMark { boot: BootId(1), through: gap.through }).unwrap();
    assert!(queue.gaps().is_empty());
}
