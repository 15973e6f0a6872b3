//! A random secret of the installation, created once and independent of the authority's rotations.

use std::fmt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::CertsError;
use crate::files::{read_secret, write_secret};

/// The file in the data folder.
const FILE: &str = "mesh-secret";

/// 32 random bytes from which other secrets are derived.
#[derive(Clone)]
pub struct MeshSecret([u8; 32]);

impl MeshSecret {
    /// Creates a new secret.
    ///
    /// # Errors
    /// [`CertsError::Random`] if the system returns no random bytes.
    pub fn random() -> Result<Self, CertsError> {
        let mut bytes = [0; 32];
        crate::random::fill_random(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Reads the secret of `folder`; creates it with mode 0600 if there is none.
    ///
    /// # Errors
    /// [`CertsError::File`], [`CertsError::LooseMode`] or [`CertsError::InvalidFile`] if the file is unusable.
    pub fn open(folder: &Path) -> Result<Self, CertsError> {
        let path = folder.join(FILE);
        if let Some(text) = read_secret(&path)? {
            let rule = "is not 64 hexadecimal digits; delete it to create a new one";
            return hex::FromHex::from_hex(text.trim_end())
                .map(Self)
                .map_err(|_| CertsError::InvalidFile { path, rule });
        }
        let fresh = Self::random()?;
        write_secret(&path, &format!("{}\n", hex::encode(fresh.0)))?;
        Ok(fresh)
    }

    /// Derives a secret for one purpose, the same at each start. It reveals nothing about the others.
    pub fn secret_for(&self, purpose: &str) -> [u8; 32] {
        Sha256::new().chain_update(purpose).chain_update([0]).chain_update(self.0).finalize().into()
    }
}

impl fmt::Debug for MeshSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MeshSecret")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_secret_is_created_once_and_readable_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let first = MeshSecret::open(folder.path()).unwrap();
        let again = MeshSecret::open(folder.path()).unwrap();
        assert_eq!(first.secret_for("a"), again.secret_for("a"));
        assert_ne!(first.secret_for("a"), first.secret_for("b"));
        assert_ne!(first.secret_for("a"), MeshSecret::random().unwrap().secret_for("a"));
        let mode = folder.path().join(FILE).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(format!("{first:?}"), "MeshSecret");
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        write_secret(&folder.path().join(FILE), "not hexadecimal").unwrap();
        assert!(
            matches!(MeshSecret::open(folder.path()), Err(CertsError::InvalidFile { path, .. }) if path.ends_with(FILE))
        );
    }
}
