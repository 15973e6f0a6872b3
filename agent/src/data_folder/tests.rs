//! Tests of an agent's folder: locked, encrypted, damaged, and after departure.

use super::*;
use parallax_protocol::assignment::Assignment;
use parallax_protocol::check::{WireCheckSpec, WireTcpCheck};
use parallax_protocol::id::WireMonitorId;

fn snapshot() -> ScheduleChange {
    ScheduleChange { slot_epoch: 1, base: None, revision: 3, put: vec![], drop: vec![], has_more: false }
}

#[test]
fn one_folder_serves_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let first = DataFolder::open(&path).unwrap();
    assert!(matches!(DataFolder::open(&path), Err(AgentError::InUse(_))));
    drop(first);
    assert!(DataFolder::open(&path).is_ok());
}

#[test]
fn a_stored_schedule_is_loaded_and_a_damaged_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let home = DataFolder::open(&folder.path().join("data")).unwrap();
    assert_eq!(home.load_schedule(), None);
    home.store_schedule(&snapshot()).unwrap();
    assert_eq!(home.load_schedule(), Some(snapshot()));
    let path = home.folder().join(SCHEDULE);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(home.load_schedule(), None);
}

#[test]
fn a_schedule_is_sealed_with_a_key_and_read_with_that_key_only() {
    const CANARY: &str = "canary-7f3a";
    let folder = tempfile::tempdir().unwrap();
    let (data, key) = (folder.path().join("data"), folder.path().join("key"));
    let open = |key: Option<&Path>| DataFolder::open(&data).unwrap().with_key_file(key).unwrap();
    let schedule = ScheduleChange { put: vec![assignment(CANARY)], ..snapshot() };
    let is_in_clear = || {
        let bytes = std::fs::read(data.join(SCHEDULE)).unwrap();
        bytes.windows(CANARY.len()).any(|bytes| bytes == CANARY.as_bytes())
    };
    open(None).store_schedule(&schedule).unwrap();
    assert!(is_in_clear());
    parallax_certs::sealing::write_new_key(&key, false).unwrap();
    assert_eq!(open(Some(&key)).load_schedule().as_ref(), Some(&schedule), "kept before there was a key");
    open(Some(&key)).store_schedule(&schedule).unwrap();
    assert!(!is_in_clear());
    assert_eq!(open(Some(&key)).load_schedule().as_ref(), Some(&schedule));
    assert_eq!(open(None).load_schedule(), None);
    parallax_certs::sealing::write_new_key(&key, true).unwrap();
    assert_eq!(open(Some(&key)).load_schedule().as_ref(), Some(&schedule), "rotated");
    std::fs::remove_file(&key).unwrap();
    parallax_certs::sealing::write_new_key(&key, false).unwrap();
    assert_eq!(open(Some(&key)).load_schedule(), None, "another key");
}

#[test]
fn a_plaintext_schedule_is_sealed_at_the_start_and_after_a_rotation() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let key = folder.path().join("key");
    parallax_certs::sealing::write_new_key(&key, false).unwrap();
    let kept = ScheduleChange { put: vec![assignment("secret.example")], ..snapshot() };
    let in_clear = || {
        [SCHEDULE, SCHEDULE_NEW].iter().any(|file| {
            let bytes = std::fs::read(data.join(file)).unwrap_or_default();
            bytes.windows(6).any(|part| part == b"secret")
        })
    };
    let start = |key: Option<&Path>| {
        let home = DataFolder::open(&data).unwrap().with_key_file(key).unwrap();
        let read = home.load_schedule();
        home.reseal_schedule(read.as_ref()).unwrap();
        assert_eq!(home.load_schedule(), read);
        read
    };
    DataFolder::open(&data).unwrap().store_schedule(&kept).unwrap();
    std::fs::copy(data.join(SCHEDULE), data.join(SCHEDULE_NEW)).unwrap();
    assert!(in_clear());
    assert_eq!(start(Some(&key)), Some(kept.clone()));
    assert!(!in_clear());
    let first = std::fs::read(data.join(SCHEDULE)).unwrap();
    assert_eq!(start(Some(&key)), Some(kept.clone()));
    assert_eq!(std::fs::read(data.join(SCHEDULE)).unwrap(), first, "nothing to do");
    let second = parallax_certs::sealing::write_new_key(&key, true).unwrap();
    assert_eq!(start(Some(&key)), Some(kept));
    let sealed = std::fs::read(data.join(SCHEDULE)).unwrap();
    assert_eq!(KeyId::of_sealed(&sealed[SEALED.len()..]), Some(second));
    // A damaged plain-text one is deleted too.
    std::fs::write(data.join(SCHEDULE), "secret").unwrap();
    assert_eq!(start(Some(&key)), None);
    assert!(!in_clear());
}

fn assignment(host: &str) -> Assignment {
    Assignment {
        monitor: WireMonitorId(1),
        slot: 1,
        revision: 1,
        spec: WireCheckSpec::Tcp(WireTcpCheck { host: host.into(), port: 443 }),
        interval_ms: 60_000,
        offset_ms: 0,
        every: 1,
        turn: 0,
        account: 0xdead_beef,
    }
}

#[test]
fn a_schedule_is_stored_with_its_accounts_and_an_older_one_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let home = DataFolder::open(&folder.path().join("data")).unwrap();
    let assignment = Assignment {
        monitor: WireMonitorId(1),
        slot: 1,
        revision: 1,
        spec: WireCheckSpec::Tcp(WireTcpCheck { host: "example.com".into(), port: 443 }),
        interval_ms: 60_000,
        offset_ms: 0,
        every: 1,
        turn: 0,
        account: 0xdead_beef,
    };
    let kept = ScheduleChange { put: vec![assignment], ..snapshot() };
    home.store_schedule(&kept).unwrap();
    assert_eq!(home.load_schedule(), Some(kept.clone()));
    let body = postcard::to_stdvec(&kept).unwrap();
    let earlier = [&crc32c::crc32c(&body).to_le_bytes(), body.as_slice()].concat();
    std::fs::write(home.folder().join(SCHEDULE), earlier).unwrap();
    assert_eq!(home.load_schedule().unwrap().put[0].account, 0);
}

#[test]
fn a_removed_agent_leaves_nothing_and_reports_it_at_each_start() {
    let folder = tempfile::tempdir().unwrap();
    let home = DataFolder::open(&folder.path().join("data")).unwrap();
    let fill = || {
        home.store_schedule(&snapshot()).unwrap();
        std::fs::create_dir_all(home.spool_folder()).unwrap();
        for file in [CREDENTIALS, AUTHORITIES, SCHEDULE_NEW, "spool/1"] {
            std::fs::write(home.folder().join(file), "secret").unwrap();
        }
    };
    let left = || {
        let files = std::fs::read_dir(home.folder()).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    };
    fill();
    home.erase_membership(Departure::Expired).unwrap();
    assert_eq!(left(), [AUTHORITIES, CREDENTIALS, "lock"]);
    fill();
    home.erase_membership(Departure::Revoked).unwrap();
    assert_eq!(left(), [DEPARTED, "lock"]);
    // The next start completes a deletion that a crash interrupted.
    fill();
    assert!(!home.is_member());
    let Err(error) = home.membership() else { panic!("a membership") };
    assert!(error.to_string().contains("revoked") && error.to_string().contains("parallax-agent join"));
    assert_eq!(left(), [DEPARTED, "lock"]);
}

#[test]
fn a_folder_without_an_identity_names_the_join_command() {
    let folder = tempfile::tempdir().unwrap();
    let home = DataFolder::open(&folder.path().join("data")).unwrap();
    assert!(matches!(home.membership(), Err(AgentError::NotJoined(_))));
}
