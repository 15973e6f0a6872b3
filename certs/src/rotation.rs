//! Rotation of the installation's authority: which one signs, which are trusted, and persistence over
//! restarts.
//!
//! A rotation goes `Stable` → `Spreading` → `Switched` → `Stable`, one step at a time, and can pause or be
//! reverted at each: during it both authorities are trusted, so neither direction locks anyone out. Two files
//! store it: `authority.pem`, and `authority-next.pem` with the phase while there is a next one. Each step is
//! one atomic file write; an interrupted finish is detected and completed at the next start.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::authority::MeshAuthority;
use crate::error::CertsError;
use crate::files;

/// Names of the files that store an installation's authorities, in the folder given to [`AuthorityStore::open`].
pub const FILES: [&str; 2] = [CURRENT, NEXT];

/// The authority in force.
const CURRENT: &str = "authority.pem";
/// Its successor, with the phase in the first line.
const NEXT: &str = "authority-next.pem";
/// First line of the successor's file.
const SPREADING: &str = "phase: spreading\n";
const SWITCHED: &str = "phase: switched\n";

/// Phase of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationPhase {
    /// A single authority, no rotation.
    Stable,
    /// The old one signs; both are trusted and the new one is distributed to the agents.
    Spreading,
    /// The new one signs; both are trusted and agents renew their certificates.
    Switched,
}

impl RotationPhase {
    /// Display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stable => "settled",
            Self::Spreading => "spreading",
            Self::Switched => "switched",
        }
    }
}

impl fmt::Display for RotationPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The authorities of an installation, stored in its folder.
#[derive(Debug)]
pub struct AuthorityStore {
    folder: PathBuf,
    current: Arc<MeshAuthority>,
    next: Option<NextAuthority>,
}

#[derive(Debug)]
struct NextAuthority {
    authority: Arc<MeshAuthority>,
    is_signing: bool,
}

impl AuthorityStore {
    /// Reads the authorities of a folder (mode 0700), or creates the first one.
    ///
    /// # Errors
    /// The errors of [`MeshAuthority::load_or_generate`]; [`CertsError::RotationPhase`] if the file of a rotation names no phase.
    pub fn open(folder: &Path, now: i64) -> Result<Self, CertsError> {
        let current = Arc::new(MeshAuthority::load_or_generate(&folder.join(CURRENT), now)?);
        let mut opened = Self { folder: folder.to_owned(), current, next: None };
        if let Some(text) = files::read_secret(&folder.join(NEXT))? {
            let is_signing = match (text.starts_with(SPREADING), text.starts_with(SWITCHED)) {
                (true, _) => false,
                (_, true) => true,
                _ => {
                    return Err(CertsError::RotationPhase(
                        "has no valid phase in the first line of authority-next.pem",
                    ));
                }
            };
            let authority = Arc::new(MeshAuthority::from_pem(&text)?);
            if authority.key_hash() == opened.current.key_hash() {
                // A finish was interrupted between its two files.
                opened.remove_next()?;
            } else {
                opened.next = Some(NextAuthority { authority, is_signing });
            }
        }
        Ok(opened)
    }

    /// Returns the phase of the rotation.
    #[must_use]
    pub fn phase(&self) -> RotationPhase {
        match &self.next {
            None => RotationPhase::Stable,
            Some(next) if next.is_signing => RotationPhase::Switched,
            Some(_) => RotationPhase::Spreading,
        }
    }

    /// Returns the signing authority.
    #[must_use]
    pub fn signing(&self) -> &Arc<MeshAuthority> {
        match &self.next {
            Some(next) if next.is_signing => &next.authority,
            _ => &self.current,
        }
    }

    /// Returns the other trusted authority.
    #[must_use]
    pub fn other_trusted(&self) -> Option<&Arc<MeshAuthority>> {
        let next = self.next.as_ref()?;
        Some(if next.is_signing { &self.current } else { &next.authority })
    }

    /// Creates the next authority; from now on it is trusted but doesn't sign.
    ///
    /// # Errors
    /// [`CertsError::RotationPhase`] during a rotation; those of [`MeshAuthority::generate`] and [`files::write_secret`].
    pub fn start(&mut self, now: i64) -> Result<(), CertsError> {
        if self.next.is_some() {
            return Err(CertsError::RotationPhase("is already in progress"));
        }
        self.store_next(NextAuthority { authority: Arc::new(MeshAuthority::generate(now)?), is_signing: false })
    }

    /// Makes the next authority sign from now on.
    ///
    /// # Errors
    /// [`CertsError::RotationPhase`] unless it is spreading; those of [`files::write_secret`].
    pub fn switch(&mut self) -> Result<(), CertsError> {
        self.set_signing(true, "has not been started, or is already switched")
    }

    /// Makes the old authority sign again; both stay trusted.
    ///
    /// # Errors
    /// [`CertsError::RotationPhase`] unless it is switched; those of [`files::write_secret`].
    pub fn switch_back(&mut self) -> Result<(), CertsError> {
        self.set_signing(false, "has not been switched")
    }

    /// Removes the next authority, which doesn't sign.
    ///
    /// # Errors
    /// [`CertsError::RotationPhase`] unless it is spreading; [`CertsError::File`] if the file can't be removed.
    pub fn abandon(&mut self) -> Result<(), CertsError> {
        if self.phase() != RotationPhase::Spreading {
            return Err(CertsError::RotationPhase("has not been started, or must be switched back first"));
        }
        self.remove_next()
    }

    /// Trusts only the new authority from now on.
    ///
    /// # Errors
    /// [`CertsError::RotationPhase`] unless it is switched; those of [`files::write_secret`].
    pub fn finish(&mut self) -> Result<(), CertsError> {
        let Some(next) = self.next.as_ref().filter(|next| next.is_signing) else {
            return Err(CertsError::RotationPhase("has not been switched"));
        };
        let authority = Arc::clone(&next.authority);
        files::write_secret(&self.folder.join(CURRENT), &authority.to_pem())?;
        self.current = authority;
        self.remove_next()
    }

    fn set_signing(&mut self, signing: bool, rule: &'static str) -> Result<(), CertsError> {
        match self.next.as_ref().filter(|next| next.is_signing != signing) {
            Some(next) => {
                self.store_next(NextAuthority { authority: Arc::clone(&next.authority), is_signing: signing })
            }
            None => Err(CertsError::RotationPhase(rule)),
        }
    }

    fn store_next(&mut self, next: NextAuthority) -> Result<(), CertsError> {
        let phase = if next.is_signing { SWITCHED } else { SPREADING };
        files::write_secret(&self.folder.join(NEXT), &format!("{phase}{}", next.authority.to_pem()))?;
        self.next = Some(next);
        Ok(())
    }

    fn remove_next(&mut self) -> Result<(), CertsError> {
        let path = self.folder.join(NEXT);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(CertsError::File { path, source }),
            Err(_) | Ok(()) => {
                self.next = None;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        files::ensure_private_folder(&data).unwrap();
        (folder, data)
    }

    fn hashes(authorities: &AuthorityStore) -> (RotationPhase, [u8; 32], Option<[u8; 32]>) {
        let other = authorities.other_trusted().map(|other| other.key_hash());
        (authorities.phase(), authorities.signing().key_hash(), other)
    }

    #[test]
    fn a_rotation_replaces_the_authority_and_each_step_survives_a_restart() {
        let (_folder, data) = folder();
        let mut store = AuthorityStore::open(&data, NOW).unwrap();
        let old = store.signing().key_hash();
        store.start(NOW).unwrap();
        let new = store.other_trusted().unwrap().key_hash();
        assert_eq!(hashes(&AuthorityStore::open(&data, NOW).unwrap()), (RotationPhase::Spreading, old, Some(new)));
        store.switch().unwrap();
        assert_eq!(hashes(&AuthorityStore::open(&data, NOW).unwrap()), (RotationPhase::Switched, new, Some(old)));
        store.finish().unwrap();
        assert_eq!(hashes(&store), (RotationPhase::Stable, new, None));
        assert_eq!(hashes(&AuthorityStore::open(&data, NOW).unwrap()), (RotationPhase::Stable, new, None));
    }

    #[test]
    fn a_rotation_can_be_taken_back_from_each_phase() {
        let (_folder, data) = folder();
        let mut store = AuthorityStore::open(&data, NOW).unwrap();
        let old = store.signing().key_hash();
        store.start(NOW).unwrap();
        let new = store.other_trusted().unwrap().key_hash();
        store.switch().unwrap();
        store.switch_back().unwrap();
        assert_eq!(hashes(&AuthorityStore::open(&data, NOW).unwrap()), (RotationPhase::Spreading, old, Some(new)));
        store.abandon().unwrap();
        assert_eq!(hashes(&AuthorityStore::open(&data, NOW).unwrap()), (RotationPhase::Stable, old, None));
    }

    #[test]
    fn steps_out_of_order_change_nothing() {
        let (_folder, data) = folder();
        let mut store = AuthorityStore::open(&data, NOW).unwrap();
        for refused in [store.switch(), store.switch_back(), store.abandon(), store.finish()] {
            assert!(matches!(refused, Err(CertsError::RotationPhase(_))));
        }
        store.start(NOW).unwrap();
        for refused in [store.start(NOW), store.switch_back(), store.finish()] {
            assert!(matches!(refused, Err(CertsError::RotationPhase(_))));
        }
        store.switch().unwrap();
        for refused in [store.start(NOW), store.switch(), store.abandon()] {
            assert!(matches!(refused, Err(CertsError::RotationPhase(_))));
        }
    }

    #[test]
    fn an_interrupted_finish_is_completed_at_the_next_start() {
        let (_folder, data) = folder();
        let mut store = AuthorityStore::open(&data, NOW).unwrap();
        store.start(NOW).unwrap();
        store.switch().unwrap();
        let new = store.signing().key_hash();
        files::write_secret(&data.join(CURRENT), &store.signing().to_pem()).unwrap();
        assert_eq!(hashes(&AuthorityStore::open(&data, NOW).unwrap()), (RotationPhase::Stable, new, None));
        assert!(!data.join(NEXT).exists());
    }

    #[test]
    fn a_file_without_a_phase_is_refused() {
        let (_folder, data) = folder();
        let next = MeshAuthority::generate(NOW).unwrap();
        AuthorityStore::open(&data, NOW).unwrap();
        files::write_secret(&data.join(NEXT), &next.to_pem()).unwrap();
        assert!(matches!(AuthorityStore::open(&data, NOW), Err(CertsError::RotationPhase(_))));
    }
}
