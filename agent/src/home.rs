//! The data folder: identity, what the coordinator last said, the kept schedule, and the lock on it all.

use crate::error::Error;
use parallax_certs::authority::Roots;
use parallax_certs::credentials::Credentials;
use parallax_certs::files::{private_folder, read_secret, write_secret};
use parallax_certs::identity::Identity;
use parallax_certs::sealing::Keyring;
use parallax_protocol::assignment::ScheduleChange;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longest schedule file that is read, in bytes.
const MAX_SCHEDULE: u64 = 512 << 20;

/// Begins a schedule file that is sealed; others begin with their checksum.
const SEALED: &[u8] = b"parallax sealed schedule 1\n";

/// An agent's folder, locked for as long as this lives.
#[derive(Debug)]
pub struct Home {
    folder: PathBuf,
    /// Seals the schedule; none keeps it in clear.
    keyring: Option<Keyring>,
    _lock: File,
}

/// What an agent knows of itself and its mesh; kept as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The agent's number in hexadecimal.
    pub agent: String,
    /// Its name.
    pub name: String,
    /// Its region.
    pub region: String,
    /// Its network.
    pub network: String,
    /// The mesh's name.
    pub mesh: String,
    /// The coordinator's `HOST:PORT` that it joined at.
    pub coordinator: String,
    /// The coordinator's time when it last said it, epoch ms.
    pub coordinator_ms: i64,
    /// This host's wall clock minus the coordinator's at that time, in ms.
    pub skew_ms: i64,
}

/// An identity that is complete.
#[derive(Debug)]
pub struct Membership {
    /// Certificate and key.
    pub credentials: Credentials,
    /// Authorities to trust.
    pub roots: Roots,
    /// What is known of the agent.
    pub record: Record,
}

impl Home {
    /// Opens the folder, making it where it is missing, and locks it.
    ///
    /// # Errors
    /// [`Error::InUse`] where another process holds it; [`Error::Certs`] where others than the owner may
    /// reach into it.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        private_folder(folder)?;
        let path = folder.join("lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(Error::file(&path))?;
        lock.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => Error::InUse(folder.to_owned()),
            std::fs::TryLockError::Error(source) => Error::File { path, source },
        })?;
        Ok(Self { folder: folder.to_owned(), keyring: None, _lock: lock })
    }

    /// The same, with the schedule sealed by the keys of that file.
    ///
    /// # Errors
    /// [`Error::Certs`] where the file is no key file, or others than the owner may reach it.
    pub fn sealed_with(self, key_file: Option<&Path>) -> Result<Self, Error> {
        Ok(Self { keyring: key_file.map(Keyring::read).transpose()?, ..self })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the spool lies.
    pub fn spool(&self) -> PathBuf {
        self.folder.join("spool")
    }

    /// Whether an identity is here.
    pub fn is_member(&self) -> bool {
        self.folder.join(CREDENTIALS).exists()
    }

    /// Reads the identity.
    ///
    /// # Errors
    /// [`Error::NotJoined`] where there is none; [`Error::Certs`] or [`Error::Damaged`] where it cannot be
    /// used.
    pub fn membership(&self) -> Result<Membership, Error> {
        let missing = || Error::NotJoined(self.folder.clone());
        let pem = read_secret(&self.folder.join(CREDENTIALS))?.ok_or_else(missing)?;
        let roots = read_secret(&self.folder.join(AUTHORITIES))?.ok_or_else(missing)?;
        let record = read_record(&self.folder)?.ok_or_else(missing)?;
        Ok(Membership { credentials: Credentials::from_pem(&pem)?, roots: Roots::from_pem(&roots)?, record })
    }

    /// Keeps an identity. The credentials go last: an identity is either whole or not there.
    ///
    /// # Errors
    /// [`Error::Certs`] where a file cannot be written.
    pub fn keep(&self, membership: &Membership) -> Result<(), Error> {
        self.keep_record(&membership.record)?;
        write_secret(&self.folder.join(AUTHORITIES), &membership.roots.to_pem())?;
        write_secret(&self.folder.join(CREDENTIALS), &membership.credentials.to_pem())?;
        Ok(())
    }

    /// Keeps whom to trust.
    ///
    /// # Errors
    /// [`Error::Certs`] where the file cannot be written.
    pub fn keep_roots(&self, roots: &Roots) -> Result<(), Error> {
        Ok(write_secret(&self.folder.join(AUTHORITIES), &roots.to_pem())?)
    }

    /// Keeps what the coordinator last said.
    ///
    /// # Errors
    /// [`Error::Certs`] where the file cannot be written.
    pub fn keep_record(&self, record: &Record) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(record)
            .map_err(|_| Error::Damaged { path: self.folder.join(RECORD), rule: "does not encode" })?;
        Ok(write_secret(&self.folder.join(RECORD), &text)?)
    }

    /// The schedule kept by an earlier run; `None` where there is none that can be read.
    pub fn schedule(&self) -> Option<ScheduleChange> {
        let mut bytes = Vec::new();
        let file = File::open(self.folder.join(SCHEDULE)).ok()?;
        file.take(MAX_SCHEDULE).read_to_end(&mut bytes).ok()?;
        if let Some(sealed) = bytes.strip_prefix(SEALED) {
            bytes = self.open_sealed(sealed)?;
        }
        let (checksum, body) = bytes.split_first_chunk::<4>()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let change: ScheduleChange = postcard::from_bytes(body).ok()?;
        change.put.iter().all(|assignment| assignment.check().is_ok()).then_some(change)
    }

    /// Opens a sealed schedule; without it the agent starts with none, and the coordinator sends it again.
    fn open_sealed(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let Some(keyring) = &self.keyring else {
            tracing::warn!(
                "the schedule on disk is sealed and `secrets_key_file` is not set: starting without it"
            );
            return None;
        };
        let opened = keyring.open(SEALED, sealed);
        opened.inspect_err(|error| tracing::warn!("the schedule on disk {error}: starting without it")).ok()
    }

    /// Keeps a schedule, whole or not at all. It holds customers' headers, so its mode is 0600, and it is sealed where
    /// there is a key.
    ///
    /// # Errors
    /// [`Error::File`] where it cannot be written.
    pub fn keep_schedule(&self, snapshot: &ScheduleChange) -> Result<(), Error> {
        let path = self.folder.join(SCHEDULE);
        let body = postcard::to_stdvec(snapshot)
            .map_err(|_| Error::Damaged { path: path.clone(), rule: "does not encode" })?;
        let mut bytes = crc32c::crc32c(&body).to_le_bytes().to_vec();
        bytes.extend(body);
        if let Some(keyring) = &self.keyring {
            bytes = [SEALED, &keyring.seal(SEALED, &bytes)?].concat();
        }
        let beside = path.with_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)
            .map_err(Error::file(&beside))?;
        file.write_all(&bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&beside, &path))
            .map_err(Error::file(&path))
    }
}

/// Reads what an agent in `folder` knows of itself, also while it runs.
///
/// # Errors
/// [`Error::Damaged`] where the file is not ours.
pub fn read_record(folder: &Path) -> Result<Option<Record>, Error> {
    let path = folder.join(RECORD);
    let Some(text) = read_secret(&path)? else {
        return Ok(None);
    };
    serde_json::from_str(&text).map(Some).map_err(|_| Error::Damaged { path, rule: "is no agent's record" })
}

/// End of the life of a chain's leaf, unix seconds.
///
/// # Errors
/// [`Error::Certs`] where the leaf is no agent's.
pub fn life_of(credentials: &Credentials) -> Result<parallax_certs::authority::Life, Error> {
    let leaf = credentials.chain().first().ok_or(parallax_certs::Error::Certificate("chain is empty"))?;
    Ok(Identity::of_agent(leaf)?.life)
}

const CREDENTIALS: &str = "credentials.pem";
const AUTHORITIES: &str = "authorities.pem";
const RECORD: &str = "agent.json";
const SCHEDULE: &str = "schedule.bin";

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> ScheduleChange {
        ScheduleChange { book: 1, base: None, revision: 3, put: vec![], drop: vec![], more: false }
    }

    #[test]
    fn one_folder_serves_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("data");
        let first = Home::open(&place).unwrap();
        assert!(matches!(Home::open(&place), Err(Error::InUse(_))));
        drop(first);
        assert!(Home::open(&place).is_ok());
    }

    #[test]
    fn a_schedule_comes_back_and_a_damaged_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("data")).unwrap();
        assert_eq!(home.schedule(), None);
        home.keep_schedule(&snapshot()).unwrap();
        assert_eq!(home.schedule(), Some(snapshot()));
        let path = home.folder().join(SCHEDULE);
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(home.schedule(), None);
    }

    #[test]
    fn a_schedule_is_sealed_where_there_is_a_key_and_is_read_with_no_other() {
        const CANARY: &str = "canary-7f3a";
        let folder = tempfile::tempdir().unwrap();
        let (data, key) = (folder.path().join("data"), folder.path().join("key"));
        let open = |key: Option<&Path>| Home::open(&data).unwrap().sealed_with(key).unwrap();
        let schedule = ScheduleChange { put: vec![assignment(CANARY)], ..snapshot() };
        let is_in_clear = || {
            let bytes = std::fs::read(data.join(SCHEDULE)).unwrap();
            bytes.windows(CANARY.len()).any(|bytes| bytes == CANARY.as_bytes())
        };
        open(None).keep_schedule(&schedule).unwrap();
        assert!(is_in_clear());
        parallax_certs::sealing::write_new_key(&key, false).unwrap();
        assert_eq!(open(Some(&key)).schedule().as_ref(), Some(&schedule), "kept before there was a key");
        open(Some(&key)).keep_schedule(&schedule).unwrap();
        assert!(!is_in_clear());
        assert_eq!(open(Some(&key)).schedule().as_ref(), Some(&schedule));
        assert_eq!(open(None).schedule(), None);
        parallax_certs::sealing::write_new_key(&key, true).unwrap();
        assert_eq!(open(Some(&key)).schedule().as_ref(), Some(&schedule), "rotated");
        std::fs::remove_file(&key).unwrap();
        parallax_certs::sealing::write_new_key(&key, false).unwrap();
        assert_eq!(open(Some(&key)).schedule(), None, "another key");
    }

    fn assignment(host: &str) -> parallax_protocol::assignment::Assignment {
        use parallax_protocol::check::{CheckSpec, TcpCheck};
        parallax_protocol::assignment::Assignment {
            monitor: parallax_protocol::id::MonitorId(1),
            slot: 1,
            revision: 1,
            spec: CheckSpec::Tcp(TcpCheck { host: host.into(), port: 443 }),
            interval_ms: 60_000,
            offset_ms: 0,
            every: 1,
            turn: 0,
        }
    }

    #[test]
    fn a_folder_without_an_identity_says_how_to_join() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("data")).unwrap();
        assert!(matches!(home.membership(), Err(Error::NotJoined(_))));
    }
}
