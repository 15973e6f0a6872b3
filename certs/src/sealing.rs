//! Encryption of secrets at rest: records are sealed with a key from a file that the operator stores
//! elsewhere.
//!
//! A sealed record is the id of its key (8 bytes), a random nonce (24 bytes), and XChaCha20-Poly1305's
//! ciphertext with its tag. The record's name is authenticated with it, so that a record can't be swapped for
//! another.
//!
//! A key file has one key per line, 32 bytes in base64. The first seals; the others only open records that
//! they sealed before. Empty lines and lines that begin with `#` are ignored.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use crate::error::CertsError;
use crate::files::{read_secret, write_secret};

/// Bytes of a nonce.
const NONCE: usize = 24;
/// Number of bytes by which sealing lengthens a record.
pub const SEAL_OVERHEAD: usize = KeyId::LENGTH + NONCE + 16;
/// Maximum number of keys in one file.
const MAX_KEYS: usize = 64;

/// Name of a key, derived from it: shown in messages and stored with each record that the key sealed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId([u8; 8]);

impl KeyId {
    /// Length of an id in bytes.
    pub const LENGTH: usize = 8;

    /// Creates the id from its bytes.
    pub const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns the id's bytes.
    pub const fn to_bytes(self) -> [u8; Self::LENGTH] {
        self.0
    }

    /// Returns the id of the key that sealed a record; `None` if the record is too short.
    pub fn of_sealed(sealed: &[u8]) -> Option<Self> {
        sealed.first_chunk().copied().map(Self)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

/// Error of opening a sealed record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// The record is shorter than any sealed record.
    #[error("is too short to be a sealed record")]
    TooShort,
    /// No key of the file sealed the record.
    #[error("is sealed with the key {0}, which the key file does not have")]
    UnknownKey(KeyId),
    /// The record was changed, or belongs to another name.
    #[error("was changed after it was sealed, or moved here from another record")]
    Tampered,
}

struct Key {
    id: KeyId,
    cipher: XChaCha20Poly1305,
}

/// Keys of one key file.
pub struct Keyring {
    /// At least one key; the first seals.
    keys: Vec<Key>,
}

impl Keyring {
    /// Reads a key file.
    ///
    /// # Errors
    /// [`CertsError::File`] if it is missing, [`CertsError::LooseMode`] if others than the owner have access,
    /// [`CertsError::InvalidFile`] if a line is not a key or there is none.
    pub fn read(path: &Path) -> Result<Self, CertsError> {
        let Some(text) = read_secret(path)? else {
            let source = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(CertsError::File { path: path.to_owned(), source });
        };
        Self::from_text(&text).map_err(|rule| CertsError::InvalidFile { path: path.to_owned(), rule })
    }

    fn from_text(text: &str) -> Result<Self, &'static str> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys = lines
            .map(|line| {
                let bytes = STANDARD.decode(line).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
                let bytes = bytes.ok_or("has a line that is not 32 bytes in base64")?;
                let id = Sha256::new().chain_update("parallax secrets key\0").chain_update(bytes).finalize();
                let id = KeyId(id.first_chunk().copied().unwrap_or_default());
                Ok(Key { id, cipher: XChaCha20Poly1305::new(&bytes.into()) })
            })
            .collect::<Result<Vec<_>, _>>()?;
        match keys.len() {
            0 => Err("has no key"),
            1..=MAX_KEYS => Ok(Self { keys }),
            _ => Err("has more than 64 keys"),
        }
    }

    /// Returns the id of the key that seals; `None` only if there is no key at all.
    pub fn sealing_key(&self) -> Option<KeyId> {
        self.keys.first().map(|key| key.id)
    }

    /// Returns true if there is a key of that id.
    pub fn contains(&self, id: KeyId) -> bool {
        self.keys.iter().any(|key| key.id == id)
    }

    /// Seals a record under its name.
    ///
    /// # Errors
    /// [`CertsError::Random`] if the system returns no random bytes, or the record is longer than the cipher
    /// allows.
    pub fn seal(&self, name: &[u8], plain: &[u8]) -> Result<Vec<u8>, CertsError> {
        let key = self.keys.first().ok_or(CertsError::Random)?;
        let mut nonce = [0; NONCE];
        crate::random::fill_random(&mut nonce)?;
        let payload = Payload { msg: plain, aad: name };
        let sealed = key.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| CertsError::Random)?;
        Ok([&key.id.0, nonce.as_slice(), &sealed].concat())
    }

    /// Opens a record that was sealed under that name.
    ///
    /// # Errors
    /// [`UnsealError`] if no key matches, or the record was changed.
    pub fn open(&self, name: &[u8], sealed: &[u8]) -> Result<Vec<u8>, UnsealError> {
        let (id, rest) = sealed.split_first_chunk().ok_or(UnsealError::TooShort)?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE>().ok_or(UnsealError::TooShort)?;
        let id = KeyId(*id);
        let key = self.keys.iter().find(|key| key.id == id).ok_or(UnsealError::UnknownKey(id))?;
        let payload = Payload { msg: ciphertext, aad: name };
        key.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| UnsealError::Tampered)
    }
}

impl PartialEq for Keyring {
    fn eq(&self, other: &Self) -> bool {
        self.keys.iter().map(|key| key.id).eq(other.keys.iter().map(|key| key.id))
    }
}

impl Eq for Keyring {}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| key.id)).finish()
    }
}

/// Writes a key file with a new key, mode 0600, and returns the key's id. With `rotate` the file must exist,
/// and the new key is put before its keys; without it the file must not exist.
///
/// # Errors
/// [`CertsError::InvalidFile`] if the file exists without `rotate` or is missing with it; [`CertsError::File`] and
/// [`CertsError::LooseMode`] if it can't be read or written; [`CertsError::Random`] without randomness.
pub fn write_new_key(path: &Path, rotate: bool) -> Result<KeyId, CertsError> {
    let not_ours = |rule| CertsError::InvalidFile { path: path.to_owned(), rule };
    let before = match (read_secret(path)?, rotate) {
        (Some(_), false) => {
            return Err(not_ours("already exists; use `--rotate` to add a new key"));
        }
        (None, true) => return Err(not_ours("does not exist: there is no key to rotate")),
        (before, _) => before.unwrap_or_default(),
    };
    if rotate {
        Keyring::from_text(&before).map_err(not_ours)?;
    }
    let mut key = [0; 32];
    crate::random::fill_random(&mut key)?;
    let text = format!("{}\n{before}", STANDARD.encode(key));
    let id = Keyring::from_text(&text).map_err(not_ours)?.sealing_key().ok_or(CertsError::Random)?;
    write_secret(path, &text)?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const ONE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const TWO: &str = "//////////////////////////////////////////8=";

    fn keyring(lines: &[&str]) -> Keyring {
        Keyring::from_text(&lines.join("\n")).unwrap()
    }

    #[test]
    fn a_record_opens_under_its_name_and_with_its_key_alone() {
        let one = keyring(&[ONE]);
        let sealed = one.seal(b"dm1", b"a secret").unwrap();
        assert_eq!(sealed.len(), b"a secret".len() + SEAL_OVERHEAD);
        assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));
        assert_eq!(one.open(b"dm1", &sealed).unwrap(), b"a secret");
        assert_ne!(sealed, one.seal(b"dm1", b"a secret").unwrap(), "a nonce is used once");
        assert_eq!(one.open(b"dm2", &sealed), Err(UnsealError::Tampered));
        let unknown = Err(UnsealError::UnknownKey(one.sealing_key().unwrap()));
        assert_eq!(keyring(&[TWO]).open(b"dm1", &sealed), unknown);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(one.open(b"dm1", &changed).is_err(), "byte {at}");
            assert!(one.open(b"dm1", &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn the_first_key_seals_and_the_others_open() {
        let sealed = keyring(&[ONE]).seal(b"dm1", b"old").unwrap();
        let both = keyring(&["# keys", TWO, "", ONE]);
        assert_eq!(both.open(b"dm1", &sealed).unwrap(), b"old");
        let sealed = both.seal(b"dm1", b"new").unwrap();
        assert_eq!(KeyId::of_sealed(&sealed), keyring(&[TWO]).sealing_key());
        assert_eq!(keyring(&[TWO]).open(b"dm1", &sealed).unwrap(), b"new");
    }

    #[test]
    fn a_key_file_is_created_rotated_and_readable_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets-key");
        assert!(matches!(Keyring::read(&path), Err(CertsError::File { .. })));
        assert!(write_new_key(&path, true).is_err());
        let first = write_new_key(&path, false).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(write_new_key(&path, false).is_err(), "no key is lost");
        let second = write_new_key(&path, true).unwrap();
        let keys = Keyring::read(&path).unwrap();
        assert!(keys.sealing_key() == Some(second) && keys.contains(first) && first != second);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Keyring::read(&path), Err(CertsError::LooseMode { .. })));
    }

    #[test]
    fn invalid_key_lines_are_refused_without_being_printed() {
        for text in ["", "# nothing", "AAAA", "not base64 !!", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            assert!(Keyring::from_text(text).is_err(), "{text}");
        }
        let many = vec![ONE; MAX_KEYS + 1].join("\n");
        assert!(Keyring::from_text(&many).is_err());
        assert!(!format!("{:?}", keyring(&[ONE])).contains("AAAA"));
    }
}
