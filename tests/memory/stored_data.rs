//! Stored data: an agent's spool, a store's records and blocks, snapshots.

use std::path::Path;

use parallax_agent::spool::Spool;
use parallax_core::account::Account;
use parallax_core::block;
use parallax_core::event::Event;
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::machine::MachineState;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::member::AgentRecord;
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::rollup::HourRollup;
use parallax_store::disk;
use serde::de::DeserializeOwned;

use crate::hostile_bytes::{typeless_bytes, variants, varint};
use crate::{PeakMemory, alone, peak_bytes};

/// Returns prefixes for values of any type: a few bytes of zeros or ones are valid for most.
fn starts() -> impl Iterator<Item = Vec<u8>> {
    [0, 1]
        .into_iter()
        .map(|byte| vec![byte; 60])
        .chain(typeless_bytes().skip(10).take(6).map(|bytes| bytes[..60].to_vec()))
}

fn records<T: DeserializeOwned>(name: &str) {
    alone(|| {
        let mut worst = PeakMemory::default();
        for bytes in starts().flat_map(|start| variants(&start).collect::<Vec<_>>()).chain(typeless_bytes()) {
            worst.read(name, &bytes, |bytes| drop(postcard::from_bytes::<T>(bytes)));
        }
        worst.print(name);
    });
}

#[test]
fn records_of_the_store_take_no_more_than_so_many_times_their_length() {
    records::<MachineState>("machine states");
    records::<Event>("events");
    records::<Vec<Reading>>("readings");
    records::<Monitor>("monitors");
    records::<Page>("pages");
    records::<Account>("accounts");
    records::<ApiKey>("keys");
    records::<AgentRecord>("agents");
    records::<Incident>("incidents");
    records::<Series>("repeating entries");
    records::<MaintenanceWindow>("windows");
    records::<Vec<HourRollup>>("roll-ups");
}

#[test]
fn a_packed_block_takes_no_more_than_its_most_readings() {
    alone(|| {
        let mut worst = PeakMemory::default();
        // The first byte is the format, followed by the count and the length of the marks.
        let claims = [0, 1, 100, 8_192, 8_193, u64::from(u32::MAX)];
        for (count, marks) in claims.into_iter().flat_map(|count| claims.map(|marks| (count, marks))) {
            for rest in typeless_bytes() {
                let bytes = [&[1][..], &varint(count), &varint(marks), &rest].concat();
                worst.read("blocks", &bytes, |bytes| drop(block::decode(0, bytes)));
            }
        }
        worst.print("blocks");
    });
}

/// Writes a spool segment with one record and a valid checksum.
fn segment(folder: &Path, claim: Option<u32>, body: &[u8]) {
    let length = claim.unwrap_or_else(|| u32::try_from(body.len()).expect("it is short"));
    let bytes = [&length.to_le_bytes()[..], &crc32c::crc32c(body).to_le_bytes(), body].concat();
    std::fs::write(folder.join("0000000000000001.seg"), bytes).expect("a segment can be written");
}

#[test]
fn an_agents_spool_takes_no_more_than_so_many_times_its_length() {
    alone(|| {
        let folder = tempfile::TempDir::new().expect("temporary folder");
        let mut worst = PeakMemory::default();
        let bodies = starts().flat_map(|start| variants(&start[..20]).collect::<Vec<_>>());
        for body in bodies {
            segment(folder.path(), None, &body);
            worst.read("spool", &body, |_| {
                let spool = Spool::open(folder.path(), Spool::MIN_LIMIT).expect("a damaged spool is no error");
                assert!(spool.is_empty() || spool.damaged() == 0);
            });
        }
        for claim in [1 << 20, (1 << 20) + 1, u32::MAX] {
            segment(folder.path(), Some(claim), b"short");
            worst.read("spool", b"short", |_| {
                assert!(Spool::open(folder.path(), Spool::MIN_LIMIT).expect("no error").is_empty());
            });
        }
        worst.print("spools");
    });
}

/// Longest frame of a snapshot that is read.
const LONGEST_FRAME: usize = 4 << 20;

#[test]
fn a_snapshot_takes_no_more_than_its_longest_frame() {
    alone(|| {
        let folder = tempfile::TempDir::new().expect("temporary folder");
        let file = folder.path().join("a.snapshot");
        let mut most = 0;
        for claim in [0, 1, 1 << 20, 4 << 20, (4 << 20) + 1, (4 << 20) + 2, u32::MAX] {
            let bytes = [&claim.to_le_bytes()[..], &[0; 5], b"short"].concat();
            for title in [&b"parallax snapshot 1\n"[..], b""] {
                std::fs::write(&file, [title, &bytes].concat()).expect("a file can be written");
                most = most.max(peak_bytes(|| assert!(disk::verify_snapshot(&file).is_err())));
                most = most.max(peak_bytes(|| assert!(disk::verify_snapshot_records(&file, None).is_err())));
            }
        }
        assert!((LONGEST_FRAME..=LONGEST_FRAME + (1 << 20)).contains(&most), "{most} bytes");
    });
}

/// Returns a stored value with a valid checksum; `sum` is that of the key and the whole value.
fn stored_value(sum: u32, pieces: u16, payload: &[u8]) -> Vec<u8> {
    [&[1][..], &sum.to_le_bytes(), &pieces.to_be_bytes(), payload].concat()
}

/// Builds a snapshot of these entries, each in a frame of its own, with valid checksums.
fn snapshot(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    const TITLE: &[u8] = b"parallax snapshot 1\n";
    let (mut file, mut sum) = (TITLE.to_vec(), crc32c::crc32c(TITLE));
    let mut frame = |kind: u8, content: &[u8]| {
        sum = crc32c::crc32c_append(crc32c::crc32c_append(sum, &[kind]), content);
        let length = u32::try_from(content.len() + 1).expect("it is short");
        file.extend([&length.to_le_bytes()[..], &sum.to_le_bytes(), &[kind], content].concat());
    };
    // The schema, and no files next to the store.
    frame(0, &[5, 0]);
    for (key, value) in entries {
        let of_key = u16::try_from(key.len()).expect("it is short").to_le_bytes();
        let of_value = u32::try_from(value.len()).expect("it is short").to_le_bytes();
        frame(1, &[&of_key[..], &of_value, key, value].concat());
    }
    frame(2, &postcard::to_stdvec(&(entries.len() as u64)).expect("a number can be encoded"));
    file
}

#[test]
fn a_snapshots_pieces_take_no_more_than_its_longest_frame() {
    alone(|| {
        let folder = tempfile::TempDir::new().expect("temporary folder");
        let file = folder.path().join("a.snapshot");
        let key = b"da1";
        // Longer pieces, and more of them, than the store writes: neither is put together.
        for (pieces, length) in [(8_u16, 3 << 20), (4_000, 1 << 10)] {
            let piece = vec![0xff; length];
            let mut sum = crc32c::crc32c(key);
            let mut entries = Vec::new();
            for number in 0..pieces {
                let part = [&b"+"[..], key, &number.to_be_bytes()].concat();
                sum = crc32c::crc32c_append(sum, &piece);
                let of_piece = crc32c::crc32c_append(crc32c::crc32c(&part), &piece);
                entries.push((part, stored_value(of_piece, 0, &piece)));
            }
            entries.push((key.to_vec(), stored_value(sum, pieces, &[])));
            std::fs::write(&file, snapshot(&entries)).expect("a file can be written");
            drop(entries);
            let mut refused = String::new();
            let took = peak_bytes(|| {
                refused = disk::verify_snapshot_records(&file, None).expect_err("it is refused").to_string();
            });
            assert!(refused.contains("is longer than any that is written"), "{refused}");
            assert!(took <= LONGEST_FRAME + (1 << 20), "{took} bytes for {pieces} pieces of {length}");
        }
    });
}
