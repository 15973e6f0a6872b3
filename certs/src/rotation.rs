//! Rotation of the installation's authority: which one signs, which are trusted, and persistence over
//! restarts.
//!
//! A rotation goes `Settled` → `Spreading` → `Switched` → `Settled`, one step at a time, and can pause or be
//! reverted at each: during it both authorities are trusted, so neither direction locks anyone out. Two files
//! store it: `authority.pem`, and `authority-next.pem` with the phase while there is a next one. Each step is
//! one atomic file write; an interrupted finish is detected and completed at the next start.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::authority::Authority;
use crate::error::Error;
use crate::files;

/// Names of the files that store an installation's authorities, in the folder given to [`Authorities::open`].
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
pub enum Phase {
    /// A single authority, no rotation.
    Settled,
    /// The old one signs; both are trusted and the new one is distributed to the agents.
    Spreading,
    /// The new one signs; both are trusted and agents renew their certificates.
    Switched,
}

impl Phase {
    /// Display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Spreading => "spreading",
            Self::Switched => "switched",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The authorities of an installation, stored in its folder.
#[derive(Debug)]
pub struct Authorities {
    folder: PathBuf,
    current: Arc<Authority>,
    next: Option<Next>,
}

#[derive(Debug)]
struct Next {
    authority: Arc<Authority>,
    is_signing: bool,
}

impl Authorities {
    /// Reads the authorities of a folder (mode 0700), or creates the first one.
    ///
    /// # Errors
    /// The errors of [`Authority::load_or_make`]; [`Error::Phase`] if the file of a rotation names no phase.
    pub fn open(folder: &Path, now: i64) -> Result<Self, Error> {
        let current = Arc::new(Authority::load_or_make(&folder.join(CURRENT), now)?);
        let mut opened = Self { folder: folder.to_owned(), current, next: None };
        if let Some(text) = files::read_secret(&folder.join(NEXT))? {
            let is_signing = match (text.starts_with(SPREADING), text.starts_with(SWITCHED)) {
                (true, _) => false,
                (_, true) => true,
                _ => return Err(Error::Phase("has no valid phase in the first line of authority-next.pem")),
            };
            let authority = Arc::new(Authority::from_pem(&text)?);
            if authority.key_hash() == opened.current.key_hash() {
                // A finish was interrupted between its two files.
                opened.forget_next()?;
            } else {
                opened.next = Some(Next { authority, is_signing });
            }
        }
        Ok(opened)
    }

    /// Returns the phase of the rotation.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match &self.next {
            None => Phase::Settled,
            Some(next) if next.is_signing => Phase::Switched,
            Some(_) => Phase::Spreading,
        }
    }

    /// Returns the signing authority.
    #[must_use]
    pub fn signing(&self) -> &Arc<Authority> {
        match &self.next {
            Some(next) if next.is_signing => &next.authority,
            _ => &self.current,
        }
    }

    /// Returns the other trusted authority.
    #[must_use]
    pub fn other(&self) -> Option<&Arc<Authority>> {
        let next = self.next.as_ref()?;
        Some(if next.is_signing { &self.current } else { &next.authority })
    }

    /// Creates the next authority; from now on it is trusted but doesn't sign.
    ///
    /// # Errors
    /// [`Error::Phase`] during a rotation; those of [`Authority::make`] and [`files::write_secret`].
    pub fn start(&mut self, now: i64) -> Result<(), Error> {
        if self.next.is_some() {
            return Err(Error::Phase("is already in progress"));
        }
        self.keep_next(Next { authority: Arc::new(Authority::make(now)?), is_signing: false })
    }

    /// Makes the next authority sign from now on.
    ///
    /// # Errors
    /// [`Error::Phase`] unless it is spreading; those of [`files::write_secret`].
    pub fn switch(&mut self) -> Result<(), Error> {
        self.set_signing(true, "has not been started, or is already switched")
    }

    /// Makes the old authority sign again; both stay trusted.
    ///
    /// # Errors
    /// [`Error::Phase`] unless it is switched; those of [`files::write_secret`].
    pub fn switch_back(&mut self) -> Result<(), Error> {
        self.set_signing(false, "has not been switched")
    }

    /// Removes the next authority, which doesn't sign.
    ///
    /// # Errors
    /// [`Error::Phase`] unless it is spreading; [`Error::File`] if the file can't be removed.
    pub fn abandon(&mut self) -> Result<(), Error> {
        if self.phase() != Phase::Spreading {
            return Err(Error::Phase("has not been started, or must be switched back first"));
        }
        self.forget_next()
    }

    /// Trusts only the new authority from now on.
    ///
    /// # Errors
    /// [`Error::Phase`] unless it is switched; those of [`files::write_secret`].
    pub fn finish(&mut self) -> Result<(), Error> {
        let Some(next) = self.next.as_ref().filter(|next| next.is_signing) else {
            return Err(Error::Phase("has not been switched"));
        };
        let authority = Arc::clone(&next.authority);
        files::write_secret(&self.folder.join(CURRENT), &authority.to_pem())?;
        self.current = authority;
        self.forget_next()
    }

    fn set_signing(&mut self, signing: bool, rule: &'static str) -> Result<(), Error> {
        match self.next.as_ref().filter(|next| next.is_signing != signing) {
            Some(next) => {
                self.keep_next(Next { authority: Arc::clone(&next.authority), is_signing: signing })
            }
            None => Err(Error::Phase(rule)),
        }
    }

    fn keep_next(&mut self, next: Next) -> Result<(), Error> {
        let phase = if next.is_signing { SWITCHED } else { SPREADING };
        files::write_secret(&self.folder.join(NEXT), &format!("{phase}{}", next.authority.to_pem()))?;
        self.next = Some(next);
        Ok(())
    }

    fn forget_next(&mut self) -> Result<(), Error> {
        let path = self.folder.join(NEXT);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::File { path, source }),
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
        files::private_folder(&data).unwrap();
        (folder, data)
    }

    fn hashes(authorities: &Authorities) -> (Phase, [u8; 32], Option<[u8; 32]>) {
        let other = authorities.other().map(|other| other.key_hash());
        (authorities.phase(), authorities.signing().key_hash(), other)
    }

    #[test]
    fn a_rotation_goes_from_one_to_the_other_and_each_step_outlives_a_restart() {
        let (_folder, data) = folder();
        let mut held = Authorities::open(&data, NOW).unwrap();
        let old = held.signing().key_hash();
        held.start(NOW).unwrap();
        let new = held.other().unwrap().key_hash();
        assert_eq!(hashes(&Authorities::open(&data, NOW).unwrap()), (Phase::Spreading, old, Some(new)));
        held.switch().unwrap();
        assert_eq!(hashes(&Authorities::open(&data, NOW).unwrap()), (Phase::Switched, new, Some(old)));
        held.finish().unwrap();
        assert_eq!(hashes(&held), (Phase::Settled, new, None));
        assert_eq!(hashes(&Authorities::open(&data, NOW).unwrap()), (Phase::Settled, new, None));
    }

    #[test]
    fn a_rotation_can_be_taken_back_from_each_phase() {
        let (_folder, data) = folder();
        let mut held = Authorities::open(&data, NOW).unwrap();
        let old = held.signing().key_hash();
        held.start(NOW).unwrap();
        let new = held.other().unwrap().key_hash();
        held.switch().unwrap();
        held.switch_back().unwrap();
        assert_eq!(hashes(&Authorities::open(&data, NOW).unwrap()), (Phase::Spreading, old, Some(new)));
        held.abandon().unwrap();
        assert_eq!(hashes(&Authorities::open(&data, NOW).unwrap()), (Phase::Settled, old, None));
    }

    #[test]
    fn steps_out_of_order_change_nothing() {
        let (_folder, data) = folder();
        let mut held = Authorities::open(&data, NOW).unwrap();
        for refused in [held.switch(), held.switch_back(), held.abandon(), held.finish()] {
            assert!(matches!(refused, Err(Error::Phase(_))));
        }
        held.start(NOW).unwrap();
        for refused in [held.start(NOW), held.switch_back(), held.finish()] {
            assert!(matches!(refused, Err(Error::Phase(_))));
        }
        held.switch().unwrap();
        for refused in [held.start(NOW), held.switch(), held.abandon()] {
            assert!(matches!(refused, Err(Error::Phase(_))));
        }
    }

    #[test]
    fn a_finish_that_was_cut_short_is_completed_at_the_next_start() {
        let (_folder, data) = folder();
        let mut held = Authorities::open(&data, NOW).unwrap();
        held.start(NOW).unwrap();
        held.switch().unwrap();
        let new = held.signing().key_hash();
        files::write_secret(&data.join(CURRENT), &held.signing().to_pem()).unwrap();
        assert_eq!(hashes(&Authorities::open(&data, NOW).unwrap()), (Phase::Settled, new, None));
        assert!(!data.join(NEXT).exists());
    }

    #[test]
    fn a_file_without_a_phase_is_refused() {
        let (_folder, data) = folder();
        let next = Authority::make(NOW).unwrap();
        Authorities::open(&data, NOW).unwrap();
        files::write_secret(&data.join(NEXT), &next.to_pem()).unwrap();
        assert!(matches!(Authorities::open(&data, NOW), Err(Error::Phase(_))));
    }
}
