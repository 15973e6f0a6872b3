//! Tests of the spool over restarts, damage and lack of space.

use super::*;
use parallax_protocol::id::WireMonitorId;
use parallax_protocol::result::{CheckResult, ProbeReport, WireOutcome};
use proptest::prelude::*;

const CLOCKS: ClockPair = ClockPair { mono_ms: 1_000_000, coordinator_ms: 1_790_000_000_000 };

fn kept(from: u64, count: u64) -> Vec<QueuedResult> {
    (from..from + count)
        .map(|seq| QueuedResult {
            seq,
            ended_mono_ms: 999_000,
            result: CheckResult {
                monitor: WireMonitorId(u128::MAX - u128::from(seq)),
                revision: 1,
                round: Some(seq),
                started_ms: 1_780_000_000_000 + i64::try_from(seq).unwrap(),
                age_ms: 0,
                report: ProbeReport::outcome_only(WireOutcome::Passed),
            },
        })
        .collect()
}

fn read_all(spool: &Spool) -> Vec<(BootId, u64)> {
    let mut at = SpoolPosition::default();
    let mut seen = Vec::new();
    while let Some(spooled) = spool.read(at, CLOCKS).unwrap() {
        at = spooled.next;
        seen.extend(spooled.results.iter().map(|kept| (spooled.boot, kept.seq)));
    }
    seen
}

fn numbers(boot: u64, from: u64, through: u64) -> Vec<(BootId, u64)> {
    (from..=through).map(|seq| (BootId(boot), seq)).collect()
}

#[test]
fn spooled_results_survive_a_restart_with_their_age() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(folder.path(), Spool::MIN_LIMIT).unwrap();
    spool.append(BootId(1), &kept(1, 3), CLOCKS).unwrap();
    spool.append(BootId(1), &kept(4, 2), CLOCKS).unwrap();
    drop(spool);
    let mut spool = Spool::open(folder.path(), Spool::MIN_LIMIT).unwrap();
    spool.append(BootId(2), &kept(1, 1), CLOCKS).unwrap();
    assert_eq!(read_all(&spool), [numbers(1, 1, 5), numbers(2, 1, 1)].concat());
    assert_eq!(spool.boots(), [BootId(1), BootId(2)]);
    let later = ClockPair { mono_ms: 50, coordinator_ms: CLOCKS.coordinator_ms + 60_000 };
    let first = spool.read(SpoolPosition::default(), later).unwrap().unwrap();
    assert_eq!(first.results[0].ended_mono_ms, 50 - 61_000);
    assert_eq!(first.results[0].result, kept(1, 1)[0].result);
}

#[test]
fn the_oldest_is_dropped_first_and_reported_as_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(folder.path(), Spool::MIN_LIMIT).unwrap();
    let mut gaps = Vec::new();
    let mut next = 1;
    while gaps.is_empty() {
        gaps = spool.append(BootId(1), &kept(next, 500), CLOCKS).unwrap();
        next += 500;
    }
    assert!(spool.bytes() <= Spool::MIN_LIMIT);
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].from, gaps[0].from_ms), (1, 1_780_000_000_001));
    assert_eq!(read_all(&spool), numbers(1, gaps[0].through + 1, next - 1));
}

#[test]
fn acknowledged_segments_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(folder.path(), Spool::MIN_LIMIT).unwrap();
    spool.append(BootId(1), &kept(1, 500), CLOCKS).unwrap();
    spool.append(BootId(2), &kept(1, 10), CLOCKS).unwrap();
    spool.acknowledge(DurabilityMark { boot: BootId(1), through: 500 }).unwrap();
    assert_eq!(read_all(&spool), numbers(2, 1, 10));
    spool.acknowledge(DurabilityMark { boot: BootId(2), through: 10 }).unwrap();
    assert!(spool.is_empty());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    spool.append(BootId(2), &kept(11, 1), CLOCKS).unwrap();
    assert_eq!(read_all(&spool), numbers(2, 11, 11));
}

#[test]
fn a_reader_that_fell_behind_finds_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(folder.path(), Spool::MIN_LIMIT).unwrap();
    spool.append(BootId(1), &kept(1, 5), CLOCKS).unwrap();
    spool.append(BootId(2), &kept(1, 5), CLOCKS).unwrap();
    spool.append(BootId(2), &kept(6, 5), CLOCKS).unwrap();
    let at = spool.find(BootId(2), 7).unwrap();
    assert_eq!(spool.read(at, CLOCKS).unwrap().unwrap().results[0].seq, 6);
    assert_eq!(spool.find(BootId(2), 11), None);
}

#[test]
fn other_files_in_the_folder_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let spool = Spool::open(folder.path(), Spool::MIN_LIMIT).unwrap();
    assert!(spool.is_empty());
    assert!(folder.path().join("notes.txt").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn damage_costs_only_the_records_after_it(cut in any::<prop::sample::Index>(), flip in any::<Option<u8>>()) {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path(), Spool::MIN_LIMIT).unwrap();
        for n in 0..10 {
            spool.append(BootId(1), &kept(1 + n * 7, 7), CLOCKS).unwrap();
        }
        drop(spool);
        let path = folder.path().join("0000000000000000.seg");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = cut.index(bytes.len());
        match flip {
            Some(value) => bytes[at] ^= value | 1,
            None => bytes.truncate(at),
        }
        std::fs::write(&path, &bytes).unwrap();
        let mut spool = Spool::open(folder.path(), Spool::MIN_LIMIT).unwrap();
        let seen = read_all(&spool);
        prop_assert_eq!(seen.len() % 7, 0);
        prop_assert_eq!(seen.clone(), numbers(1, 1, u64::try_from(seen.len()).unwrap()));
        spool.append(BootId(2), &kept(1, 1), CLOCKS).unwrap();
        prop_assert_eq!(read_all(&spool).len(), seen.len() + 1);
    }
}
