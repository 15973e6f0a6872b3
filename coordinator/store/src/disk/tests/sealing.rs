//! Tests of sealing: customers' secrets are plain without a key, sealed with one, and unreadable without it.

use parallax_certs::sealing::{Keyring, write_new_key};
use parallax_core::audit::AuditEntry;
use parallax_core::check::{Check, TcpCheck};
use parallax_core::delivery::{Delivery, DeliveryMessage};
use parallax_core::destination::{Channel, Destination};
use parallax_core::monitor::Monitor;
use parallax_core::subscriber::{Contact, Subscriber};

use super::super::sealed_tree::SealedTree;
use super::super::sealing::{KEYS_KEY, holds_secrets};
use super::*;
use crate::StoredResponse;

/// Secrets that must not be found. One of them is longer than a piece.
const CANARIES: [&str; 9] = [
    "canary-host",
    "canary-bot",
    "canary-mailbox",
    "canary-letter",
    "canary-answer",
    "canary-body",
    "canary-audit",
    // Of the sample person's authenticator app.
    "canary-second-factor",
    // Of the sample company sign-in.
    "canary-provider",
];

fn secrets() -> Batch {
    let [host, bot, mailbox, message, response, body, audit, ..] = CANARIES;
    let check = Check::Tcp(TcpCheck { host: host.to_owned(), port: 443 });
    let channel = Channel::Telegram { token: bot.to_owned(), chat: "@on-call".to_owned() };
    let contact = Contact::Email(format!("{mailbox}@example.com"));
    let message = DeliveryMessage::Json(message.as_bytes().to_vec());
    let long = format!("{response}{}", "x".repeat(3 * record::MAX_PIECE)).into_bytes();
    let mut batch = Batch::new();
    batch
        .write(account(1))
        .write(page(1, 1, "page"))
        .write(person(2, 2))
        .write(company_sign_in(1, 1))
        .write(AuditEntry { network: Some(audit.to_owned()), ..audit_entry(1, 5) })
        .write(Op::PutMonitor(Box::new(Monitor { check, ..monitor(1, 1, 0) })))
        .write(Op::PutDestination(Box::new(Destination { channel, ..destination(1, 1) })))
        .write(Op::PutSubscriber(Box::new(Subscriber { contact, ..subscriber(1, 1, 1) })))
        .write(Op::PutDelivery(Box::new(Delivery { message, ..delivery(5, Some(1), Some(9)) })))
        .write(Op::PutStoredResponse("name".to_owned(), StoredResponse { response: long, ..stored_response(1, 900) }))
        .write(Op::PutPing(monitor_id(1), Box::new(ping(1, body.as_bytes()))));
    batch
}

/// Returns the canaries that are in any file below a folder.
fn canaries_in(folder: &Path) -> Vec<&'static str> {
    fn bytes_below(folder: &Path, bytes: &mut Vec<u8>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { bytes_below(&path, bytes) } else { bytes.extend(fs::read(path).unwrap()) }
        }
    }
    let mut bytes = Vec::new();
    bytes_below(folder, &mut bytes);
    let holds = |canary: &&str| bytes.windows(canary.len()).any(|bytes| bytes == canary.as_bytes());
    CANARIES.into_iter().filter(holds).collect()
}

fn with_keys(file: &Path) -> DiskOptions {
    DiskOptions { keyring: Some(Arc::new(Keyring::read(file).unwrap())), ..small_options() }
}

fn fill(store: &Path, options: DiskOptions) -> Vec<String> {
    let (reader, mut writer) = open(store, options).unwrap();
    writer.commit(&[secrets()]).remove(0).unwrap();
    everything(&*reader)
}

fn content(store: &Path, options: DiskOptions) -> Result<Vec<String>> {
    open(store, options).map(|(reader, _)| everything(&*reader))
}

fn lacks_key<T: std::fmt::Debug>(result: Result<T>) -> bool {
    matches!(result, Err(StoreError::KeyMissing(_)))
}

#[test]
fn with_a_key_no_file_contains_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (key, plain, sealed) = (folder.path().join("key"), folder.path().join("a"), folder.path().join("b"));
    let id = write_new_key(&key, false).unwrap();
    fs::create_dir_all(&plain).unwrap();
    fs::create_dir_all(&sealed).unwrap();
    let before = fill(&plain.join("store"), small_options());
    assert_eq!(canaries_in(&plain), CANARIES, "without a key all of them are found");
    assert_eq!(fill(&sealed.join("store"), with_keys(&key)), before);
    let (reader, writer) = open(&sealed.join("store"), with_keys(&key)).unwrap();
    reader.export(&sealed.join("backup")).unwrap();
    drop((reader, writer));
    assert_eq!(canaries_in(&sealed), [""; 0]);
    // Its bytes are verified and restored without the key, and readable only with it.
    assert!(verify_snapshot(&sealed.join("backup")).is_ok());
    assert!(restore(&sealed.join("store"), &sealed.join("backup"), "old", &small_options()).is_ok());
    let missing = StoreError::KeyMissing(id.to_string());
    assert_eq!(content(&sealed.join("store"), small_options()), Err(missing));
    assert_eq!(content(&sealed.join("store"), with_keys(&key)), Ok(before));
}

#[test]
fn a_plain_store_is_readable_with_a_key_and_sealed_by_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let (key, store) = (folder.path().join("key"), folder.path().join("data/store"));
    let before = fill(&store, small_options());
    write_new_key(&key, false).unwrap();
    assert_eq!(content(&store, with_keys(&key)), Ok(before.clone()));
    assert_eq!(canaries_in(&store), CANARIES);
    compact(&store, &with_keys(&key)).unwrap();
    assert_eq!(canaries_in(folder.path().join("data").as_path()), [""; 0]);
    assert_eq!(content(&store, with_keys(&key)), Ok(before));
    assert!(lacks_key(content(&store, small_options())), "it was opened with a key once");
}

#[test]
fn after_rotation_and_compaction_the_old_key_no_longer_opens_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let [old, both, new] = ["old", "both", "new"].map(|name| folder.path().join(name));
    let store = folder.path().join("data/store");
    write_new_key(&old, false).unwrap();
    let before = fill(&store, with_keys(&old));
    fs::copy(&old, &both).unwrap();
    write_new_key(&both, true).unwrap();
    let newest = fs::read_to_string(&both).unwrap().lines().next().unwrap().to_owned();
    fs::copy(&old, &new).unwrap();
    fs::write(&new, newest).unwrap();
    assert!(lacks_key(content(&store, with_keys(&new))), "the records need the old key");
    assert_eq!(content(&store, with_keys(&both)), Ok(before.clone()));
    assert!(lacks_key(content(&store, with_keys(&old))), "the new key may have sealed records by now");
    compact(&store, &with_keys(&both)).unwrap();
    assert_eq!(content(&store, with_keys(&new)), Ok(before));
    assert!(lacks_key(content(&store, with_keys(&old))));
}

#[test]
fn a_sealed_record_that_was_changed_or_moved_is_detected_as_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (key, store) = (folder.path().join("key"), folder.path().join("store"));
    write_new_key(&key, false).unwrap();
    fill(&store, with_keys(&key));
    let keyring = Keyring::read(&key).unwrap();
    let db = engine(&store);
    let record_key = layout::monitor(monitor_id(1));
    let none = |_: &[u8]| Ok(None::<Vec<u8>>);
    let head = db.get(&record_key).unwrap().unwrap();
    let payload = record::payload(&record_key, &head, none).unwrap().into_owned();
    // An attacker who can write the files can also fix the checksum.
    let with_checksum = |key: &[u8], sealed: &[u8]| record::sealed_head_for_tests(key, sealed);
    let mut changed = payload.clone();
    *changed.last_mut().unwrap() ^= 1;
    let other = layout::monitor(monitor_id(2));
    for (key, sealed) in [(&record_key, &changed), (&other, &payload)] {
        let head = with_checksum(key, sealed);
        assert!(record::payload(key, &head, none).is_ok());
        let opened = record::open::<(u64, Monitor), _, _>(key, &head, none, Some(&keyring));
        assert!(is_damaged(&opened), "{opened:?}");
    }
}

#[test]
fn a_sealed_record_of_a_snapshot_is_decoded_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let (key, store, file) = (folder.path().join("key"), folder.path().join("store"), folder.path().join("backup"));
    write_new_key(&key, false).unwrap();
    fill(&store, with_keys(&key));
    let keyring = Keyring::read(&key).unwrap();
    let (reader, writer) = open(&store, with_keys(&key)).unwrap();
    let exported = reader.export(&file).unwrap();
    let verified = verify_snapshot_records(&file, Some(&keyring)).unwrap();
    assert_eq!((verified.counts, verified.checksum_only, verified.undecodable), (exported.counts, 0, None));
    drop((reader, writer));

    let record_key = layout::monitor(monitor_id(1));
    let no_monitor = record::encode_bytes(&record_key, &[0xff; 9], Some(&keyring)).unwrap();
    engine(&store).insert(&record_key, no_monitor.head).unwrap();
    fs::remove_file(&file).unwrap();
    let (reader, _writer) = open(&store, with_keys(&key)).unwrap();
    reader.export(&file).unwrap();
    let verified = verify_snapshot_records(&file, Some(&keyring)).unwrap();
    assert_eq!((verified.checksum_only, verified.undecodable.map(|records| records.count)), (0, Some(1)));
    let verified = verify_snapshot_records(&file, None).unwrap();
    assert!(verified.checksum_only > 0, "without the key, the checksum is what can be verified");
    assert_eq!(verified.undecodable, None);
}

#[test]
fn measurements_stay_plain_and_a_store_needs_all_listed_keys() {
    for key in [layout::machine(monitor_id(1)), layout::readings(1), layout::event(1), KEYS_KEY.to_vec()] {
        assert!(!holds_secrets(&key));
    }
    let folder = tempfile::tempdir().unwrap();
    let (key, store) = (folder.path().join("key"), folder.path().join("store"));
    write_new_key(&key, false).unwrap();
    fill(&store, with_keys(&key));
    let (reader, _writer) = open(&store, with_keys(&key)).unwrap();
    assert!(reader.verify().is_ok());
    drop((reader, _writer));
    let records = SealedTree::new(sled::Tree::clone(&engine(&store)), None);
    assert!(lacks_key(records.unlisted_keys()));
}
