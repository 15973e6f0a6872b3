//! The operator's certificate in files: read at the start, and again when they change or the process is told to look.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::signal::unix::{SignalKind, signal};

use super::{Pair, PairError, Shown};

/// Pause between two looks at the files.
const LOOK: Duration = Duration::from_secs(60);
/// Longest file, in bytes.
const MAX_FILE: u64 = 256 * 1024;

/// Why the files are of no use.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// One can't be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What they say.
    #[error(transparent)]
    Pair(#[from] PairError),
}

/// The two files.
#[derive(Debug, Clone)]
pub struct Files {
    /// The certificate with its issuers, in PEM.
    pub certificate: PathBuf,
    /// Its key, in PEM.
    pub key: PathBuf,
}

/// What tells a changed file from the same: when it was written, and how long it is.
pub type Marks = [Option<(SystemTime, u64)>; 2];

impl Files {
    /// Reads both.
    ///
    /// # Errors
    /// [`FilesError`] for files that can't be read, or are no certificate and its key.
    pub fn read(&self) -> Result<Pair, FilesError> {
        Ok(Pair::read(&text(&self.certificate)?, &text(&self.key)?)?)
    }

    /// Shows what the files say for as long as the process runs: read again when one of them has changed, and at SIGHUP.
    /// Where the new ones are no good, the old ones are still shown and the log says why, once for each change.
    /// `seen` are the marks from before they were first read.
    pub async fn keep(self, shown: Shown, mut seen: Marks) {
        let mut hangup = signal(SignalKind::hangup()).ok();
        loop {
            let told = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            let is_told = tokio::time::timeout(LOOK, told).await.is_ok();
            let marks = self.marks();
            if is_told || marks != seen {
                seen = marks;
                self.look(&shown).await;
            }
        }
    }

    async fn look(&self, shown: &Shown) {
        let files = self.clone();
        let read = tokio::task::spawn_blocking(move || files.read()).await;
        match read {
            Ok(Ok(pair)) => {
                tracing::info!(until = %pair.not_after, "the certificate was read again");
                shown.put_own(pair);
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the new certificate is of no use; the one before is still shown")
            }
            Err(error) => tracing::warn!(%error, "the certificate could not be read again"),
        }
    }

    /// Their marks now: to be taken before they are read, so that a change in between is seen.
    pub fn marks(&self) -> Marks {
        [&self.certificate, &self.key].map(|path| {
            let facts = fs::metadata(path).ok()?;
            Some((facts.modified().ok()?, facts.len()))
        })
    }
}

/// A file's text, bounded.
///
/// # Errors
/// [`FilesError::Unreadable`].
pub fn text(path: &Path) -> Result<String, FilesError> {
    let fault = |source| FilesError::Unreadable { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(fault)?;
    let length = file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(fault)?;
    if length as u64 > MAX_FILE {
        return Err(fault(std::io::Error::other(format!("is longer than {MAX_FILE} bytes"))));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::pair::tests::pem;
    use super::*;

    #[tokio::test]
    async fn new_files_are_shown_and_bad_ones_leave_the_old_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files { certificate: folder.path().join("c.pem"), key: folder.path().join("k.pem") };
        assert!(matches!(files.read(), Err(FilesError::Unreadable { .. })));
        let write = |until| {
            let (certificate, key) = pem(&["a.example"], until);
            fs::write(&files.certificate, certificate).unwrap();
            fs::write(&files.key, key).unwrap();
        };
        write(2080);
        let shown = Shown::default();
        files.look(&shown).await;
        let first = shown.own().unwrap().not_after;
        let marks = files.marks();
        fs::write(&files.key, "no key").unwrap();
        assert_ne!(files.marks(), marks);
        files.look(&shown).await;
        assert_eq!(shown.own().unwrap().not_after, first);
        write(2090);
        files.look(&shown).await;
        assert_ne!(shown.own().unwrap().not_after, first);
        fs::write(&files.certificate, "x".repeat(300_000)).unwrap();
        assert!(files.read().unwrap_err().to_string().contains("longer than"));
    }
}
