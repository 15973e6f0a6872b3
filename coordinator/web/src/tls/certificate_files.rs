//! The operator's certificate files: read at the start, and reloaded when they change or on SIGHUP.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::signal::unix::{SignalKind, signal};

use super::{CertificateAndKey, CertificateError, CertificateResolver};

/// Interval of checks for changed files.
const POLL_INTERVAL: Duration = Duration::from_secs(60);
/// Size limit of a file, in bytes.
const MAX_FILE: u64 = 256 * 1024;

/// Error reading the certificate files.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFilesError {
    /// A file can't be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The content is invalid.
    #[error(transparent)]
    Pair(#[from] CertificateError),
}

/// Paths of the certificate and key files.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    /// Certificate chain, in PEM.
    pub certificate: PathBuf,
    /// Private key, in PEM.
    pub key: PathBuf,
}

/// Modification time and size of both files, to detect changes.
pub type FileStamps = [Option<(SystemTime, u64)>; 2];

impl CertificateFiles {
    /// Reads both files.
    ///
    /// # Errors
    /// [`CertificateFilesError`] if the files can't be read, or are not a certificate and its key.
    pub fn read(&self) -> Result<CertificateAndKey, CertificateFilesError> {
        Ok(CertificateAndKey::read(&read_text(&self.certificate)?, &read_text(&self.key)?)?)
    }

    /// Reloads the files when one of them changes, and on SIGHUP, for as long as the process runs. If the new files are
    /// invalid, the old certificate stays in use and the reason is logged once per change. `last_stamps` are the stamps
    /// taken before the files were first read.
    pub async fn watch(self, resolver: CertificateResolver, mut last_stamps: FileStamps) {
        let mut hangup = signal(SignalKind::hangup()).ok();
        loop {
            let hangup_signal = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            let is_signalled = tokio::time::timeout(POLL_INTERVAL, hangup_signal).await.is_ok();
            let stamps = self.stamps();
            if is_signalled || stamps != last_stamps {
                last_stamps = stamps;
                self.reload(&resolver).await;
            }
        }
    }

    async fn reload(&self, resolver: &CertificateResolver) {
        let files = self.clone();
        let read = tokio::task::spawn_blocking(move || files.read()).await;
        match read {
            Ok(Ok(certificate)) => {
                tracing::info!(until = %certificate.not_after, "the certificate was reloaded");
                resolver.set_operator(certificate);
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the new certificate is invalid; the previous one stays in use")
            }
            Err(error) => tracing::warn!(%error, "the certificate could not be reloaded"),
        }
    }

    /// Current stamps. Take them before reading the files, so that a change in between is detected.
    pub fn stamps(&self) -> FileStamps {
        [&self.certificate, &self.key].map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }
}

/// Reads a text file up to the size limit.
///
/// # Errors
/// [`CertificateFilesError::Unreadable`].
pub fn read_text(path: &Path) -> Result<String, CertificateFilesError> {
    let unreadable = |source| CertificateFilesError::Unreadable { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    let length = file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(unreadable)?;
    if length as u64 > MAX_FILE {
        return Err(unreadable(std::io::Error::other(format!("is longer than {MAX_FILE} bytes"))));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::certified_key::tests::pem;
    use super::*;

    #[tokio::test]
    async fn new_files_are_loaded_and_invalid_ones_leave_the_old_certificate_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let files = CertificateFiles { certificate: folder.path().join("c.pem"), key: folder.path().join("k.pem") };
        assert!(matches!(files.read(), Err(CertificateFilesError::Unreadable { .. })));
        let write = |until| {
            let (certificate, key) = pem(&["a.example"], until);
            fs::write(&files.certificate, certificate).unwrap();
            fs::write(&files.key, key).unwrap();
        };
        write(2080);
        let resolver = CertificateResolver::default();
        files.reload(&resolver).await;
        let first = resolver.operator().unwrap().not_after;
        let stamps = files.stamps();
        fs::write(&files.key, "no key").unwrap();
        assert_ne!(files.stamps(), stamps);
        files.reload(&resolver).await;
        assert_eq!(resolver.operator().unwrap().not_after, first);
        write(2090);
        files.reload(&resolver).await;
        assert_ne!(resolver.operator().unwrap().not_after, first);
        fs::write(&files.certificate, "x".repeat(300_000)).unwrap();
        assert!(files.read().unwrap_err().to_string().contains("longer than"));
    }
}
