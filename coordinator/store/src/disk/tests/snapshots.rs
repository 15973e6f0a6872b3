//! Tests of snapshots: a point in time while commits continue, detected when damaged, restored, and taken before a
//! migration.

use std::sync::atomic::{AtomicBool, Ordering};

use parallax_core::page::Page;
use parallax_core::time::Timestamp;

use super::super::legacy_records::PageOfSchema4;
use super::super::meta::StoreStateOfSchema1;
use super::super::sealed_tree::SealedTree;
use super::crash_harness::survives;
use super::*;
use crate::StoredResponse;
use crate::snapshots::{SnapshotFolder, SnapshotRetention};

/// Returns a new folder, and the path for a store in it.
fn data_folder() -> (tempfile::TempDir, PathBuf) {
    let data_folder = tempfile::tempdir().unwrap();
    let store = data_folder.path().join("store");
    (data_folder, store)
}

fn options() -> DiskOptions {
    DiskOptions { adjacent_files: vec!["secret".to_owned()], ..small_options() }
}

#[test]
fn a_restore_brings_back_everything_and_keeps_the_replaced_store() {
    let (data_folder, store) = data_folder();
    fill_store(&store, 30);
    let file = data_folder.path().join("backup");
    fs::write(data_folder.path().join("secret"), "key").unwrap();
    let (reader, mut writer) = open(&store, options()).unwrap();
    let long: Vec<Op> = (0..5).map(|hour| Op::PutHour(rollup(1, hour, vec![7; record::MAX_PIECE * 3]))).collect();
    writer.commit(&[Batch { ops: long, ..Batch::new() }]).remove(0).unwrap();
    let before = everything(&*reader);
    let exported = reader.export(&file).unwrap();
    assert_eq!((exported.counts.events, exported.counts.readings), (30, 30));
    assert_eq!(verify_snapshot(&file), Ok(exported.counts));
    assert_eq!(reader.verify(), Ok(exported.counts));
    assert!(reader.export(&file).is_err(), "no file is overwritten");
    writer.commit(&[numbered_batch(31)]).remove(0).unwrap();
    assert_eq!(restore(&store, &file, "old", &options()), Err(StoreError::Locked));
    let mut streamed = Vec::new();
    reader.stream(&mut streamed).unwrap();
    fs::write(data_folder.path().join("streamed"), streamed).unwrap();
    assert_eq!(verify_snapshot(&data_folder.path().join("streamed")).unwrap().events, 31, "a stream is a snapshot");
    drop((reader, writer));

    fs::remove_file(data_folder.path().join("secret")).unwrap();
    let restored = restore(&store, &file, "old", &options()).unwrap();
    assert_eq!(restored.counts, exported.counts);
    let replaced = restored.replaced_store.unwrap();
    assert_eq!(replaced, data_folder.path().join("store.old"));
    assert_eq!(everything(&*TestStore::on_disk(&store).reader), before);
    assert_eq!(TestStore::on_disk(&replaced).reader.last_event(), Ok(31), "the replaced store is kept");
    assert_eq!(fs::read_to_string(data_folder.path().join("secret")).unwrap(), "key");
    assert!(!data_folder.path().join("store.new").exists());

    let elsewhere = data_folder.path().join("elsewhere/store");
    assert_eq!(restore(&elsewhere, &file, "old", &options()).unwrap().replaced_store, None);
    assert_eq!(everything(&*TestStore::on_disk(&elsewhere).reader), before);
}

#[test]
fn two_restores_in_one_second_keep_both_stores_that_they_replace() {
    let (data_folder, store) = data_folder();
    fill_store(&store, 10);
    let file = data_folder.path().join("backup");
    TestStore::on_disk(&store).reader.export(&file).unwrap();
    TestStore::on_disk(&store).commit(&numbered_batch(11)).unwrap();
    let first = restore(&store, &file, "before-1", &small_options()).unwrap().replaced_store.unwrap();
    let second = restore(&store, &file, "before-1", &small_options()).unwrap().replaced_store.unwrap();
    assert_eq!(first, data_folder.path().join("store.before-1"));
    assert_eq!(second, data_folder.path().join("store.before-1-2"));
    let last = |folder: &Path| TestStore::on_disk(folder).reader.last_event().unwrap();
    assert_eq!((last(&first), last(&second), last(&store)), (11, 10, 10));
}

#[test]
fn a_killed_restore_leaves_either_the_old_or_the_new_store() {
    let (data_folder, store) = data_folder();
    fill_store(&store, 10);
    let file = data_folder.path().join("backup");
    fs::write(data_folder.path().join("secret"), "key").unwrap();
    let (reader, mut writer) = open(&store, options()).unwrap();
    reader.export(&file).unwrap();
    writer.commit(&[numbered_batch(11)]).remove(0).unwrap();
    drop((reader, writer));
    fs::remove_file(data_folder.path().join("secret")).unwrap();
    let last = |folder: &Path| TestStore::on_disk(folder).reader.last_event().unwrap();

    // Killed just before the swap: everything else is done, and nothing was replaced.
    let (replaced, _) = rebuild::prepare(&store, &file, "before-1", &options()).unwrap();
    assert_eq!(fs::read_to_string(data_folder.path().join("secret")).unwrap(), "key");
    assert_eq!((last(&store), last(&replaced)), (11, 10));
    // A later restore does not delete that folder, so the old store is safe from the swap on.
    compact(&store, &small_options()).unwrap();
    let restored = restore(&store, &file, "before-1", &options()).unwrap();
    assert_eq!((last(&store), last(&replaced), last(&restored.replaced_store.unwrap())), (10, 10, 11));

    // Killed between the steps on a file system without an atomic exchange.
    let between = data_folder.path().join("store.between");
    fs::rename(&store, &between).unwrap();
    // A process that is alive between the steps holds the store's lock.
    let lock = files::lock(&between).unwrap();
    assert_eq!(TestStore::open(&store).unwrap_err(), StoreError::Locked);
    assert_eq!(restore(&store, &file, "before-1", &options()).unwrap_err(), StoreError::Locked);
    assert!(between.exists() && !store.exists());
    drop(lock);
    assert_eq!(last(&store), 10, "the only store is back in its place");
    let other = data_folder.path().join("other");
    fill_store(&other, 3);
    fs::rename(&store, &between).unwrap();
    fs::rename(&other, &store).unwrap();
    assert_eq!((last(&store), last(&data_folder.path().join("store.before-kill"))), (3, 10));
}

#[test]
fn a_restore_resets_cursors_that_no_longer_apply() {
    let (data_folder, store) = data_folder();
    fill_store(&store, 5);
    let mut store_under_test = TestStore::on_disk(&store);
    store_under_test.write(Op::SetCursor("other".to_owned(), 3));
    let file = data_folder.path().join("backup");
    store_under_test.reader.export(&file).unwrap();
    drop(store_under_test);
    let reset = vec!["c".to_owned(), "absent".to_owned()];
    restore(&store, &file, "old", &DiskOptions { reset_cursors: reset, ..small_options() }).unwrap();
    let reader = TestStore::on_disk(&store).reader;
    assert_eq!((reader.cursor("c"), reader.cursor("other")), (Ok(0), Ok(3)));
    assert_eq!(reader.last_event(), Ok(5));
}

#[test]
fn a_snapshot_is_of_one_point_in_time_while_commits_continue() {
    let (data_folder, store) = data_folder();
    fill_store(&store, 400);
    let TestStore { reader, mut writer } = TestStore::on_disk(&store);
    let stop = AtomicBool::new(false);
    let mut snapshots = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 401.. {
                writer.commit(&[numbered_batch(n)]).remove(0).unwrap();
                if stop.load(Ordering::Acquire) {
                    break;
                }
            }
        });
        for round in 0..10 {
            let file = data_folder.path().join(format!("backup-{round}"));
            let before = reader.last_event().unwrap();
            reader.export(&file).unwrap();
            reader.verify().unwrap();
            snapshots.push((file, before, reader.last_event().unwrap()));
        }
        stop.store(true, Ordering::Release);
    });
    assert!(snapshots.iter().any(|(_, before, after)| after > before), "commits continued meanwhile");
    for (round, (file, before, after)) in snapshots.iter().enumerate() {
        let store = data_folder.path().join(format!("again-{round}"));
        restore(&store, file, "old", &small_options()).unwrap();
        let last = survives(&store, *before).unwrap();
        assert!(last <= *after);
    }
}

#[test]
fn a_damaged_snapshot_is_never_restored() {
    let (data_folder, store) = data_folder();
    fill_store(&store, 40);
    let file = data_folder.path().join("backup");
    TestStore::on_disk(&store).reader.export(&file).unwrap();
    let intact = fs::read(&file).unwrap();
    let before = everything(&*TestStore::on_disk(&store).reader);
    let mut random = StdRng::seed_from_u64(3);
    for round in 0..60 {
        let mut bytes = intact.clone();
        match round % 3 {
            0 => bytes.truncate(random.random_range(0..intact.len())),
            1 => bytes.extend_from_slice(&[0; 9]),
            _ => bytes[random.random_range(0..intact.len())] ^= 1 << random.random_range(0..8),
        }
        fs::write(&file, bytes).unwrap();
        let result = restore(&store, &file, "old", &small_options());
        assert!(is_damaged(&result), "round {round}: {result:?}");
    }
    assert_eq!(everything(&*TestStore::on_disk(&store).reader), before, "the store was not touched");
}

#[test]
fn a_snapshot_with_a_record_that_does_not_decode_is_not_the_newest_usable_one() {
    let (data_folder, store) = data_folder();
    fill_store(&store, 3);
    let mut store_under_test = TestStore::on_disk(&store);
    let long = StoredResponse { response: vec![7; 3 * record::MAX_PIECE], ..stored_response(1, 900) };
    store_under_test.write(Op::PutStoredResponse("name".to_owned(), long));
    let (at, keep) = (Timestamp::from_millis, SnapshotRetention { newest: 9, days: 9 });
    let (good, written) = SnapshotFolder::of(&store).take(&*store_under_test.reader, at(1_000), keep).unwrap();
    let expected = VerifiedSnapshot { counts: written.counts, checksum_only: 0, undecodable: None };
    assert_eq!(verify_snapshot_records(&good.path, None), Ok(expected.clone()), "a split record is put together");
    drop(store_under_test);

    for (prefix, length) in [("da", 9), ("dr", 3 * record::MAX_PIECE)] {
        let other = data_folder.path().join(prefix).join("store");
        copy(&store, &other);
        copy(&snapshots_folder(&store), &snapshots_folder(&other));
        let db = engine(&other);
        let (key, _) = db.scan_prefix(prefix).next().unwrap().unwrap();
        let no_value = record::encode_bytes(&key, &vec![0xff; length], None).unwrap();
        for (key, value) in no_value.pieces.into_iter().chain([(key.to_vec(), no_value.head)]) {
            db.insert(key, value).unwrap();
        }
        drop(db);
        let folder = SnapshotFolder::of(&other);
        let reader = TestStore::on_disk(&other).reader;
        assert!(is_damaged(&reader.verify()), "{prefix}");
        let (newer, _) = folder.take(&*reader, at(9_000), keep).unwrap();
        assert!(verify_snapshot(&newer.path).is_ok(), "its checksums match: {prefix}");
        let undecodable = |file: &Path| verify_snapshot_records(file, None).unwrap().undecodable.unwrap();
        assert_eq!(undecodable(&newer.path).count, 1, "{prefix}");
        assert!(undecodable(&newer.path).first.contains(prefix), "{prefix}");
        let search = folder.newest_usable(None).unwrap();
        let (oldest, verified) = search.found.unwrap();
        assert_eq!((oldest.path.file_name(), &verified), (good.path.file_name(), &expected));
        assert_eq!(search.skipped, [(newer.clone(), undecodable(&newer.path).to_string())]);

        // All have the record: the newest intact one is taken, and only the newer ones are skipped.
        fs::remove_file(&oldest.path).unwrap();
        fs::copy(&newer.path, folder.path().join("19700101T000002Z.snapshot")).unwrap();
        let damaged = folder.path().join("19700101T000010Z.snapshot");
        fs::write(&damaged, "no snapshot").unwrap();
        let search = folder.newest_usable(None).unwrap();
        let (newest, verified) = search.found.unwrap();
        assert_eq!((&newest, verified.undecodable), (&newer, Some(undecodable(&newer.path))));
        assert_eq!(search.skipped.iter().map(|(file, _)| &file.path).collect::<Vec<_>>(), [&damaged]);
        assert!(restore(&other, &newest.path, "old", &small_options()).is_err(), "the store is open");
        drop(reader);
        restore(&other, &newest.path, "old", &small_options()).unwrap();
    }
}

#[test]
fn a_compacted_store_is_smaller_and_equal() {
    let (data_folder, store) = data_folder();
    let mut store_under_test = TestStore::on_disk(&store);
    for n in 1..=600 {
        store_under_test.commit(&numbered_batch(n)).unwrap();
    }
    store_under_test.write(Op::TrimReadings(590));
    let before = everything(&*store_under_test.reader);
    assert_eq!(compact(&store, &small_options()), Err(StoreError::Locked));
    drop(store_under_test);
    let compacted = compact(&store, &small_options()).unwrap();
    assert!(compacted.after <= compacted.before, "{compacted:?}");
    let mut store_under_test = TestStore::on_disk(&store);
    assert_eq!(everything(&*store_under_test.reader), before);
    assert_eq!(store_under_test.commit(&numbered_batch(601)).unwrap().last_event, 601);
    let remaining: Vec<_> = fs::read_dir(data_folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(remaining, ["store"]);
}

/// Converts a store to an older schema.
fn convert_to_schema(store: &Path, schema: u32) {
    let db = engine(store);
    for (key, (revision, page)) in
        record_read::list::<(u64, Page)>(&SealedTree::new(sled::Tree::clone(&db), None), db.scan_prefix(layout::PAGES))
            .unwrap()
    {
        let old = record::encode(&key, &(revision, PageOfSchema4::from(page)), None).unwrap();
        db.insert(&key, old.head).unwrap();
    }
    db.insert(layout::SCHEMA_KEY, record::encode(layout::SCHEMA_KEY, &schema, None).unwrap().head).unwrap();
    let head = db.get(layout::META_KEY).unwrap().unwrap();
    let meta = StoreState::decode(layout::SCHEMA, &head).unwrap();
    if schema > 1 {
        return;
    }
    let old = StoreStateOfSchema1 {
        group: meta.group,
        chain: meta.chain,
        revision: meta.revision,
        last_event: meta.last_event,
        first_reading: meta.first_reading,
        last_reading: meta.last_reading,
        documents: meta.documents,
        records: meta.records,
    };
    db.insert(layout::META_KEY, record::encode(layout::META_KEY, &old, None).unwrap().head).unwrap();
}

#[test]
fn a_store_of_the_first_schema_is_migrated_after_a_snapshot() {
    assert_migrated(1);
}

#[test]
fn a_store_without_compacted_hours_is_migrated_after_a_snapshot() {
    assert_migrated(2);
}

#[test]
fn a_store_without_page_branding_is_migrated_after_a_snapshot() {
    assert_migrated(4);
}

fn assert_migrated(schema: u32) {
    let (data_folder, store) = data_folder();
    let mut store_under_test = TestStore::on_disk(&store);
    store_under_test.commit(Batch::new().write(page(1, 1, "one")).write(page(2, 1, "two"))).unwrap();
    drop(store_under_test);
    let before = fill_store(&store, 12);
    convert_to_schema(&store, schema);
    let mut store_under_test = TestStore::on_disk(&store);
    assert_eq!(everything(&*store_under_test.reader), before);
    assert_eq!(store_under_test.commit(&numbered_batch(13)).unwrap().last_event, 13);
    store_under_test.write(Op::TrimEvents(4));
    assert_eq!(store_under_test.reader.verify().unwrap().events, 9);
    drop(store_under_test);
    assert_eq!(TestStore::on_disk(&store).reader.last_event(), Ok(13), "it is migrated once");

    let file = data_folder.path().join("snapshots/before-schema-5.snapshot");
    assert_eq!(verify_snapshot(&file).unwrap().events, 12);
    restore(&store, &file, "old", &small_options()).unwrap();
    assert_eq!(everything(&*TestStore::on_disk(&store).reader), before, "and the store from before can be restored");
}
