//! ACME state on disk: the account key, and one file for each host with its certificate and key.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use instant_acme::AccountCredentials;
use parallax_certs::files;
use rustls::pki_types::DnsName;

use super::AcmeError;
use crate::tls::CertificateAndKey;

/// File extension of certificates.
const EXTENSION: &str = "pem";

/// A folder that only its owner can access.
#[derive(Debug, Clone)]
pub(super) struct CertificateStore(PathBuf);

impl CertificateStore {
    /// Opens the folder, and creates it if it does not exist.
    pub(super) fn open(path: &Path) -> Result<Self, AcmeError> {
        files::ensure_private_folder(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Reads the account for an ACME directory; `None` if there is none.
    pub(super) fn account(&self, directory: &str) -> Result<Option<AccountCredentials>, AcmeError> {
        let Some(text) = files::read_secret(&self.account_path(directory))? else { return Ok(None) };
        // An account that can't be parsed is replaced by a new one: nothing else depends on it.
        Ok(serde_json::from_str(&text).ok())
    }

    /// Saves the account for an ACME directory.
    pub(super) fn save_account(&self, directory: &str, account: &AccountCredentials) -> Result<(), AcmeError> {
        let text = serde_json::to_string(account).map_err(|error| AcmeError::Folder(error.to_string()))?;
        Ok(files::write_secret(&self.account_path(directory), &text)?)
    }

    /// Removes the account for an ACME directory.
    pub(super) fn remove_account(&self, directory: &str) {
        if let Err(error) = std::fs::remove_file(self.account_path(directory))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "an unknown ACME account could not be removed");
        }
    }

    /// Reads the certificate of a host; `None` if there is no valid one.
    pub(super) fn certificate(&self, name: &str) -> Option<CertificateAndKey> {
        let text = match files::read_secret(&self.certificate_path(name)?) {
            Ok(text) => text?,
            Err(error) => {
                tracing::warn!(%name, %error, "a certificate on disk can't be read");
                return None;
            }
        };
        CertificateAndKey::read(&text, &text)
            .inspect_err(|error| tracing::warn!(%name, %error, "a certificate on disk is invalid"))
            .ok()
    }

    /// Saves the certificate of a host: key and chain in one file, so that they always match.
    pub(super) fn save_certificate(&self, name: &str, pem: &str) -> Result<(), AcmeError> {
        let path =
            self.certificate_path(name).ok_or_else(|| AcmeError::Folder(format!("{name} is not a valid host name")))?;
        Ok(files::write_secret(&path, pem)?)
    }

    /// Removes the certificate of a host.
    pub(super) fn remove_certificate(&self, name: &str) {
        if let Some(path) = self.certificate_path(name)
            && let Err(error) = std::fs::remove_file(path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%name, %error, "an unused certificate could not be removed");
        }
    }

    /// Removes the certificates of all hosts but the given ones.
    pub(super) fn remove_others(&self, names: &BTreeSet<&str>) {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!(%error, "unused certificates could not be listed");
                return;
            }
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension() == Some(OsStr::new(EXTENSION))
                && let Some(name) = path.file_stem().and_then(OsStr::to_str)
                && !names.contains(name)
            {
                tracing::info!(%name, "removed the certificate of a host that is no longer used");
                self.remove_certificate(name);
            }
        }
    }

    fn account_path(&self, directory: &str) -> PathBuf {
        let digest = ring::digest::digest(&ring::digest::SHA256, directory.as_bytes());
        self.0.join(format!("account-{}.json", hex::encode(&digest.as_ref()[..8])))
    }

    /// Path of a certificate; `None` for an invalid host name, which might lead out of the folder.
    fn certificate_path(&self, name: &str) -> Option<PathBuf> {
        DnsName::try_from(name).ok()?;
        Some(self.0.join(format!("{name}.{EXTENSION}")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::certified_key::tests::pem;
    use super::*;

    #[test]
    fn a_certificate_is_saved_with_its_key_and_read_back() {
        let temp_dir = tempfile::tempdir().unwrap();
        let store = CertificateStore::open(&temp_dir.path().join("tls")).unwrap();
        let (certificate, key) = pem(&["a.example"], 2090);
        assert!(store.certificate("a.example").is_none());
        store.save_certificate("a.example", &(key + &certificate)).unwrap();
        assert!(store.certificate("a.example").unwrap().covers("a.example"));
        store.remove_certificate("a.example");
        store.remove_certificate("a.example");
        assert!(store.certificate("a.example").is_none());
        for bad in ["../a", "a/b", "", "..", "a.example/../b"] {
            assert!(store.save_certificate(bad, "x").is_err(), "{bad}");
        }
        store.save_certificate("b.example", "damaged").unwrap();
        assert!(store.certificate("b.example").is_none());
    }

    #[test]
    fn certificates_of_unused_hosts_are_removed() {
        let temp_dir = tempfile::tempdir().unwrap();
        let store = CertificateStore::open(&temp_dir.path().join("tls")).unwrap();
        let (certificate, key) = pem(&["a.example"], 2090);
        for name in ["a.example", "b.example"] {
            store.save_certificate(name, &format!("{key}{certificate}")).unwrap();
        }
        let account = store.account_path("https://authority.example");
        files::write_secret(&account, "{}").unwrap();
        store.remove_others(&BTreeSet::from(["a.example"]));
        assert!(store.certificate("a.example").is_some() && store.certificate("b.example").is_none());
        assert!(account.exists());
        store.remove_account("https://authority.example");
        store.remove_account("https://authority.example");
        assert!(!account.exists());
    }
}
