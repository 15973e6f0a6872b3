//! The data folder: identity, last known facts about the coordinator, stored schedule, and the lock on the
//! folder.

use crate::departure::Departure;
use crate::error::AgentError;
use parallax_certs::credentials::Credentials;
use parallax_certs::files::{ensure_private_folder, read_secret, write_secret};
use parallax_certs::identity::AgentIdentity;
use parallax_certs::sealing::{KeyId, Keyring};
use parallax_certs::trust_roots::TrustRoots;
use parallax_protocol::assignment::ScheduleChange;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum size of a schedule file that is read, in bytes.
const MAX_SCHEDULE: u64 = 512 << 20;

/// Header of an encrypted schedule file; others begin with their checksum.
const SEALED: &[u8] = b"parallax sealed schedule 1\n";

/// An agent's folder, locked while this value lives.
#[derive(Debug)]
pub struct DataFolder {
    folder: PathBuf,
    /// Encrypts the schedule; `None` stores it in plain text.
    keyring: Option<Keyring>,
    _lock: File,
}

/// Facts about an agent and its mesh; stored as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityRecord {
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
    /// The coordinator's time as last received, epoch ms.
    pub coordinator_ms: i64,
    /// This host's wall clock minus the coordinator's at that time, in ms.
    pub skew_ms: i64,
    /// Addresses of this host as the coordinator saw them, newest first.
    #[serde(default)]
    pub seen_from: Vec<IpAddr>,
    /// Addresses of the coordinator, newest first.
    #[serde(default)]
    pub coordinator_addresses: Vec<IpAddr>,
    /// Times at which those addresses were learned, in their order, by this host's clock, epoch ms.
    #[serde(default)]
    pub seen_from_ms: Vec<i64>,
    /// Times for the coordinator's addresses, likewise.
    #[serde(default)]
    pub coordinator_addresses_ms: Vec<i64>,
}

/// A complete identity.
#[derive(Debug)]
pub struct Membership {
    /// Certificate and key.
    pub credentials: Credentials,
    /// Authorities to trust.
    pub roots: TrustRoots,
    /// Facts about the agent.
    pub record: IdentityRecord,
}

impl DataFolder {
    /// Opens the folder, creating it if it is missing, and locks it.
    ///
    /// # Errors
    /// [`AgentError::InUse`] if another process has locked it; [`AgentError::Certs`] if others than the owner have
    /// access.
    pub fn open(folder: &Path) -> Result<Self, AgentError> {
        ensure_private_folder(folder)?;
        let path = folder.join("lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(AgentError::file(&path))?;
        lock.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => AgentError::InUse(folder.to_owned()),
            std::fs::TryLockError::Error(source) => AgentError::File { path, source },
        })?;
        Ok(Self { folder: folder.to_owned(), keyring: None, _lock: lock })
    }

    /// Encrypts the schedule with the keys of that file.
    ///
    /// # Errors
    /// [`AgentError::Certs`] if the file is not a key file, or others than the owner have access.
    pub fn with_key_file(self, key_file: Option<&Path>) -> Result<Self, AgentError> {
        Ok(Self { keyring: key_file.map(Keyring::read).transpose()?, ..self })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the spool's folder.
    pub fn spool_folder(&self) -> PathBuf {
        self.folder.join("spool")
    }

    /// Returns true if there is an identity.
    pub fn is_member(&self) -> bool {
        self.folder.join(CREDENTIALS).exists() && self.removal_reason().is_none()
    }

    /// Returns why this folder's agent was removed from its mesh, if it was.
    pub fn removal_reason(&self) -> Option<Departure> {
        removal_reason_of(&self.folder)
    }

    /// Deletes schedule and results, and the identity of an agent that was removed. The next start completes
    /// an interrupted deletion.
    ///
    /// # Errors
    /// [`AgentError::Certs`] or [`AgentError::File`] if a file can't be written or deleted.
    pub fn erase_membership(&self, departure: Departure) -> Result<(), AgentError> {
        if departure != Departure::Expired {
            write_secret(&self.folder.join(DEPARTED), departure.name())?;
            for file in [CREDENTIALS, AUTHORITIES] {
                self.delete(file)?;
                self.delete(&format!("{file}.new"))?;
            }
        }
        self.delete_schedule()?;
        let spool = self.spool_folder();
        match std::fs::remove_dir_all(&spool) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(AgentError::file(spool)(error));
            }
            Ok(()) | Err(_) => {}
        }
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(AgentError::file(&self.folder))
    }

    /// Deletes the stored schedule.
    ///
    /// # Errors
    /// [`AgentError::File`] if it can't be deleted.
    pub fn delete_schedule(&self) -> Result<(), AgentError> {
        self.delete(SCHEDULE)?;
        self.delete(SCHEDULE_NEW)
    }

    fn delete(&self, file: &str) -> Result<(), AgentError> {
        let path = self.folder.join(file);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(AgentError::file(path)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Reads the identity.
    ///
    /// # Errors
    /// [`AgentError::NotJoined`] if there is none; [`AgentError::Certs`] or [`AgentError::Damaged`] if it is unusable.
    pub fn membership(&self) -> Result<Membership, AgentError> {
        let missing = || AgentError::NotJoined(self.folder.clone());
        if let Some(departure) = self.removal_reason() {
            self.erase_membership(departure)?;
            return Err(AgentError::Departed { departure, folder: self.folder.clone() });
        }
        let pem = read_secret(&self.folder.join(CREDENTIALS))?.ok_or_else(missing)?;
        let roots = read_secret(&self.folder.join(AUTHORITIES))?.ok_or_else(missing)?;
        let record = read_record(&self.folder)?.ok_or_else(missing)?;
        Ok(Membership { credentials: Credentials::from_pem(&pem)?, roots: TrustRoots::from_pem(&roots)?, record })
    }

    /// Stores an identity. The credentials are written last: an identity is either complete or absent.
    ///
    /// # Errors
    /// [`AgentError::Certs`] if a file cannot be written.
    pub fn store_membership(&self, membership: &Membership) -> Result<(), AgentError> {
        // Otherwise the next start would delete the new identity.
        self.delete(DEPARTED)?;
        self.store_record(&membership.record)?;
        write_secret(&self.folder.join(AUTHORITIES), &membership.roots.to_pem())?;
        write_secret(&self.folder.join(CREDENTIALS), &membership.credentials.to_pem())?;
        Ok(())
    }

    /// Stores the trusted authorities.
    ///
    /// # Errors
    /// [`AgentError::Certs`] if the file cannot be written.
    pub fn store_roots(&self, roots: &TrustRoots) -> Result<(), AgentError> {
        Ok(write_secret(&self.folder.join(AUTHORITIES), &roots.to_pem())?)
    }

    /// Stores the facts about the coordinator.
    ///
    /// # Errors
    /// [`AgentError::Certs`] if the file cannot be written.
    pub fn store_record(&self, record: &IdentityRecord) -> Result<(), AgentError> {
        let text = serde_json::to_string_pretty(record)
            .map_err(|_| AgentError::Damaged { path: self.folder.join(RECORD), rule: "does not encode" })?;
        Ok(write_secret(&self.folder.join(RECORD), &text)?)
    }

    /// Reads the schedule stored by an earlier run; `None` if there is no readable one.
    pub fn load_schedule(&self) -> Option<ScheduleChange> {
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
        let (mut change, rest) = postcard::take_from_bytes::<ScheduleChange>(body).ok()?;
        // Accounts follow, except in files of earlier versions; those versions ignore them.
        if !rest.is_empty() {
            change.set_accounts(&postcard::from_bytes::<Vec<u32>>(rest).ok()?).ok()?;
        }
        change.put.iter().all(|assignment| assignment.validate().is_ok()).then_some(change)
    }

    /// Rewrites the schedule that was just read if its file is not encrypted with the current key, and
    /// deletes the leftovers of an interrupted write: once `secrets_key_file` is set, nothing stays in plain
    /// text.
    ///
    /// # Errors
    /// [`AgentError::File`] if a file can't be written or deleted.
    pub fn reseal_schedule(&self, read: Option<&ScheduleChange>) -> Result<(), AgentError> {
        self.delete(SCHEDULE_NEW)?;
        let path = self.folder.join(SCHEDULE);
        let mut head = Vec::new();
        let length = SEALED.len() + KeyId::LENGTH;
        match File::open(&path) {
            Ok(file) => file.take(length as u64).read_to_end(&mut head).map_err(AgentError::file(&path))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(AgentError::file(&path)(error)),
        };
        let sealed_by = head.strip_prefix(SEALED).map(KeyId::of_sealed);
        if sealed_by == self.keyring.as_ref().map(Keyring::sealing_key) {
            return Ok(());
        }
        match read {
            Some(schedule) => self.store_schedule(schedule),
            // Plain text and damaged: useless, and it may contain secrets.
            None if sealed_by.is_none() => self.delete(SCHEDULE),
            None => Ok(()),
        }
    }

    /// Decrypts a schedule. If that fails the agent starts with none, and the coordinator sends it again.
    fn open_sealed(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let Some(keyring) = &self.keyring else {
            tracing::warn!("the schedule on disk is encrypted, but `secrets_key_file` is not set: starting without it");
            return None;
        };
        let opened = keyring.open(SEALED, sealed);
        opened.inspect_err(|error| tracing::warn!("the schedule on disk {error}: starting without it")).ok()
    }

    /// Stores a schedule atomically. It contains customers' headers, so its mode is 0600, and it is encrypted
    /// if there is a key.
    ///
    /// # Errors
    /// [`AgentError::File`] if it cannot be written.
    pub fn store_schedule(&self, snapshot: &ScheduleChange) -> Result<(), AgentError> {
        let path = self.folder.join(SCHEDULE);
        let body = postcard::to_stdvec(snapshot)
            .and_then(|body| postcard::to_extend(&snapshot.accounts(), body))
            .map_err(|_| AgentError::Damaged { path: path.clone(), rule: "does not encode" })?;
        let mut bytes = crc32c::crc32c(&body).to_le_bytes().to_vec();
        bytes.extend(body);
        if let Some(keyring) = &self.keyring {
            bytes = [SEALED, &keyring.seal(SEALED, &bytes)?].concat();
        }
        let beside = self.folder.join(SCHEDULE_NEW);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)
            .map_err(AgentError::file(&beside))?;
        file.write_all(&bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&beside, &path))
            .map_err(AgentError::file(&path))
    }
}

/// Reads the record of the agent in `folder`, also while it runs.
///
/// # Errors
/// [`AgentError::Damaged`] if the file is not an agent's record.
pub fn read_record(folder: &Path) -> Result<Option<IdentityRecord>, AgentError> {
    let path = folder.join(RECORD);
    let Some(text) = read_secret(&path)? else {
        return Ok(None);
    };
    serde_json::from_str(&text).map(Some).map_err(|_| AgentError::Damaged { path, rule: "is not an agent's record" })
}

/// Returns why the agent of `folder` was removed from its mesh, if it was.
pub fn removal_reason_of(folder: &Path) -> Option<Departure> {
    let text = std::fs::read_to_string(folder.join(DEPARTED)).ok()?;
    Departure::from_name(text.trim())
}

/// Returns the validity period of a chain's leaf.
///
/// # Errors
/// [`AgentError::Certs`] if the leaf is not an agent's.
pub fn validity_of(credentials: &Credentials) -> Result<parallax_certs::certificate_fields::Validity, AgentError> {
    let leaf = credentials.chain().first().ok_or(parallax_certs::CertsError::Certificate("chain is empty"))?;
    Ok(AgentIdentity::of_agent(leaf)?.validity)
}

const CREDENTIALS: &str = "credentials.pem";
const AUTHORITIES: &str = "authorities.pem";
const RECORD: &str = "agent.json";
const SCHEDULE: &str = "schedule.bin";
const SCHEDULE_NEW: &str = "schedule.new";
/// Contains the reason why the agent was removed from its mesh.
const DEPARTED: &str = "departed";

#[cfg(test)]
mod tests;
