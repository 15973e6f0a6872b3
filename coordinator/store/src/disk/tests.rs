//! Tests of the engine on disk alone: it must survive kills, damage and restarts.

mod crash_harness;
mod kill;
mod power_cut;
mod sealing;
mod snapshots;

use std::fs;
use std::path::Path;

use parallax_core::vantage::Region;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::contract::everything;
use crate::samples::*;
use crate::{Batch, Block, Op};

/// Builds batch number `n`, with one record of each kind that the checks read.
fn numbered_batch(n: u64) -> Batch {
    let id = u128::from(n % 4);
    let mut batch = Batch { readings: readings(40, n), ..Batch::new() };
    batch.write(account(u128::from(n))).write(monitor(id, 1, 0)).event(event(n as i64, Some(id)));
    batch.write(Op::PutHour(rollup(id, (n % 9) as i64, vec![n as u8; 300])));
    batch.write(Op::PutBlock(block_of(n)));
    if n.is_multiple_of(5) {
        batch.write(Op::CompactHistory(monitor_id(id), (n / 4) as i64 - 1));
    }
    batch.write(Op::SetCursor("c".to_owned(), n));
    batch
}

/// Returns the one block that [`numbered_batch`] writes: a different hour of the monitor each time.
fn block_of(n: u64) -> Block {
    block(u128::from(n % 4), Region::Asia, (n / 4) as i64, n.to_be_bytes().repeat(8))
}

fn fill_store(folder: &Path, batches: u64) -> Vec<String> {
    let mut store = TestStore::on_disk(folder);
    for n in 1..=batches {
        store.commit(&numbered_batch(n)).unwrap();
    }
    everything(&*store.reader)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Opens the engine itself, for changes that a store would never make.
fn engine(folder: &Path) -> Db {
    open_engine(&sled::Config::new().path(engine_folder(folder)).segment_size(2 << 20)).unwrap()
}

fn is_damaged<T>(result: &Result<T>) -> bool {
    matches!(result, Err(StoreError::Damaged(_)))
}

#[test]
fn numbers_continue_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let before = fill_store(folder.path(), 3);
    let mut store = TestStore::on_disk(folder.path());
    assert_eq!(everything(&*store.reader), before);
    let committed = store.commit(&numbered_batch(4)).unwrap();
    assert_eq!((committed.revision, committed.last_event, committed.readings), (4, 4, Some(4)));
}

#[test]
fn a_store_can_be_opened_only_once_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = TestStore::on_disk(folder.path());
    assert_eq!(TestStore::open(folder.path()).unwrap_err(), StoreError::Locked);
    drop(first);
    assert!(TestStore::open(folder.path()).is_ok());
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fill_store(folder.path(), 1);
    let db = engine(folder.path());
    db.insert(layout::SCHEMA_KEY, record::encode(layout::SCHEMA_KEY, &9u32, None).unwrap().head).unwrap();
    drop(db);
    assert_eq!(TestStore::open(folder.path()).unwrap_err(), StoreError::Newer { found: 9, known: layout::SCHEMA });
}

#[test]
fn verification_reports_a_record_that_is_no_value_of_its_type() {
    let folder = tempfile::tempdir().unwrap();
    fill_store(folder.path(), 1);
    let account = TestStore::open(folder.path()).unwrap().reader.accounts().unwrap().remove(0);
    let key = layout::account(account.value.id);
    let mut bytes = postcard::to_allocvec(&(account.revision, &account.value)).unwrap();
    assert_eq!(bytes.pop(), Some(0), "the last field is not set");
    for (end, is_readable) in
        [(&[][..], true), (&[0], true), (&[1, 2], true), (&[1], false), (&[2], false), (&[0xff], false)]
    {
        let changed = record::encode_bytes(&key, &[&bytes, end].concat(), None).unwrap();
        let db = engine(folder.path());
        db.insert(&key, changed.head).unwrap();
        drop(db);
        let verified = TestStore::open(folder.path()).unwrap().reader.verify();
        assert_eq!(verified.is_ok(), is_readable, "{end:?}: {verified:?}");
        assert!(is_readable || verified.unwrap_err().to_string().contains("can't be read"));
    }
}

#[test]
fn a_full_disk_stops_writes_and_not_reads() {
    let folder = tempfile::tempdir().unwrap();
    let before = fill_store(folder.path(), 2);
    let full = DiskOptions { refuse_below: u64::MAX, resume_above: u64::MAX, ..small_options() };
    let (reader, mut writer) = open(folder.path(), full).unwrap();
    assert!(!folder.path().join("BALLAST").exists(), "the ballast is released");
    assert_eq!(
        writer.commit(&[numbered_batch(3), numbered_batch(4)]),
        vec![Err(StoreError::Full), Err(StoreError::Full)]
    );
    assert_eq!(everything(&*reader), before);
    drop((reader, writer));
    let mut store = TestStore::on_disk(folder.path());
    assert_eq!(fs::metadata(folder.path().join("BALLAST")).unwrap().len(), 4096);
    assert!(store.commit(&numbered_batch(3)).is_ok());
}

#[test]
fn long_values_stay_in_the_engines_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = TestStore::on_disk(folder.path());
    store.write(monitor(1, 1, 0));
    for round in 0..6u8 {
        let put = |hour| Op::PutHour(rollup(1, hour, vec![round; record::MAX_PIECE * 2]));
        for hours in [0..40, 20..60] {
            store.commit(&Batch { ops: hours.map(put).collect(), ..Batch::new() }).unwrap();
        }
    }
    assert_eq!(store.reader.size().unwrap().oversized_pages, 0);
    drop(store);
    fs::write(engine_folder(folder.path()).join("blobs/7"), "x").unwrap();
    assert!(is_damaged(&TestStore::open(folder.path())));
}

#[test]
fn an_older_copy_of_the_engines_files_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let old = tempfile::tempdir().unwrap();
    fill_store(folder.path(), 5);
    copy(&engine_folder(folder.path()), old.path());
    let mut store = TestStore::on_disk(folder.path());
    store.commit(&numbered_batch(6)).unwrap();
    drop(store);
    fs::remove_dir_all(engine_folder(folder.path())).unwrap();
    copy(old.path(), &engine_folder(folder.path()));
    let message = TestStore::open(folder.path()).unwrap_err().to_string();
    assert!(message.contains("the newest are lost"), "{message}");
    fs::remove_file(folder.path().join("WATERMARK")).unwrap();
    assert!(is_damaged(&TestStore::open(folder.path())), "nothing can be verified without the watermark");
}

#[test]
fn a_missing_record_is_detected() {
    for key in [layout::event(2), layout::readings(5), layout::account(account_id(3)), layout::hours_of(monitor_id(1))]
    {
        let folder = tempfile::tempdir().unwrap();
        fill_store(folder.path(), 9);
        let db = engine(folder.path());
        let (record_key, _) = db.scan_prefix(&key).next().unwrap().unwrap();
        db.remove(&record_key).unwrap();
        drop(db);
        let opened = TestStore::open(folder.path());
        assert!(is_damaged(&opened), "{}: {:?}", key.escape_ascii(), opened.err());
    }
}

#[test]
fn damaged_files_read_completely_or_are_refused() {
    let intact = tempfile::tempdir().unwrap();
    let before = fill_store(intact.path(), 400);
    let mut random = StdRng::seed_from_u64(20);
    let mut refused = 0;
    for round in 0..24 {
        let folder = tempfile::tempdir().unwrap();
        copy(intact.path(), folder.path());
        let path = engine_folder(folder.path()).join("db");
        let mut bytes = fs::read(&path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        if round % 3 == 0 {
            bytes.truncate(used - random.random_range(1..used / 2));
        } else {
            let at = random.random_range(0..used - 4);
            bytes[at..at + 4].copy_from_slice(&random.random::<[u8; 4]>());
        }
        fs::write(&path, bytes).unwrap();
        match TestStore::open(folder.path()) {
            Ok(mut store) => {
                assert_eq!(everything(&*store.reader), before, "round {round}");
                store.commit(&numbered_batch(401)).unwrap();
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Damaged(_)), "round {round}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 4, "only {refused} of 24 were refused: the damage did not reach the data");
}

#[test]
fn a_store_opens_again_right_after_it_was_closed() {
    // Several at once: the engine's thread pool is then late to close a file.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                for n in 1..=25 {
                    let mut store = TestStore::on_disk(folder.path());
                    assert_eq!(store.commit(&numbered_batch(n)).unwrap().revision, n);
                }
            });
        }
    });
}
