//! PEM encoding and decoding, and files and folders that only their owner can access.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;

use crate::error::CertsError;

/// Maximum size of a file that is read, in bytes.
const MAX_FILE: u64 = 64 * 1_024;

/// Mode of a file that contains a key.
const SECRET_FILE_MODE: u32 = 0o600;

/// Mode of a folder that contains such files.
const PRIVATE_FOLDER_MODE: u32 = 0o700;

/// Creates a folder of mode 0700 (and its parents), or checks that an existing one is not looser.
///
/// # Errors
/// [`CertsError::File`] if it cannot be created, [`CertsError::LooseMode`] if others have access.
pub fn ensure_private_folder(path: &Path) -> Result<(), CertsError> {
    let fault = |source| CertsError::File { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER_MODE).create(path).map_err(fault)?;
    let mode = path.metadata().map_err(fault)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(CertsError::LooseMode { path: path.to_owned(), mode, wanted: PRIVATE_FOLDER_MODE });
    }
    Ok(())
}

/// Reads a file that contains a key; returns `None` if there is no such file.
///
/// # Errors
/// [`CertsError::LooseMode`] if others than the owner may read or write it, [`CertsError::InvalidFile`] if it is not a
/// regular file, longer than 64 KiB or not text, [`CertsError::File`] if reading fails.
pub fn read_secret(path: &Path) -> Result<Option<String>, CertsError> {
    read_secret_up_to(path, MAX_FILE)
}

/// Reads such a file as [`read_secret`] does, with another size limit in bytes.
///
/// # Errors
/// The errors of [`read_secret`].
pub fn read_secret_up_to(path: &Path, most: u64) -> Result<Option<String>, CertsError> {
    let fault = |source| CertsError::File { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error)),
    };
    let facts = file.metadata().map_err(fault)?;
    if !facts.is_file() {
        return Err(CertsError::InvalidFile { path: path.to_owned(), rule: "is not a regular file" });
    }
    let mode = facts.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(CertsError::LooseMode { path: path.to_owned(), mode, wanted: SECRET_FILE_MODE });
    }
    if facts.len() > most {
        let rule = if most == MAX_FILE { "is longer than 64 KiB" } else { "is too long" };
        return Err(CertsError::InvalidFile { path: path.to_owned(), rule });
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(fault)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(CertsError::InvalidFile { path: path.to_owned(), rule: "is not text" }),
    }
}

/// Writes a file that contains a key, atomically: written to a temporary file, flushed, then renamed. A new
/// file has mode 0600; a replaced one keeps its owner, even if root replaces it, and its mode bits for the
/// owner.
///
/// # Errors
/// [`CertsError::File`] if a step fails; the previous file is intact then.
pub fn write_secret(path: &Path, text: &str) -> Result<(), CertsError> {
    let fault = |source| CertsError::File { path: path.to_owned(), source };
    let before = match path.metadata() {
        Ok(facts) => Some(facts),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fault(error)),
    };
    let beside = path.with_added_extension("new");
    // A leftover of an earlier attempt is not reused: it may be a link that the folder's owner created.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fault(error)),
        Ok(()) | Err(_) => {}
    }
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(SECRET_FILE_MODE).open(&beside).map_err(fault)?;
    let owner = file.metadata().map_err(fault)?.uid();
    if let Some(before) = before.as_ref().filter(|before| before.uid() != owner) {
        fchown(&file, Some(before.uid()), Some(before.gid())).map_err(fault)?;
    }
    // Set explicitly, since the umask of the process restricts a new file's mode.
    let mode = before.map_or(SECRET_FILE_MODE, |before| before.permissions().mode() & 0o700);
    file.set_permissions(Permissions::from_mode(mode)).map_err(fault)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(fault)?;
    std::fs::rename(&beside, path).map_err(fault)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(fault)
}

/// Parses the only certificate in PEM text.
pub(crate) fn parse_one_certificate(text: &str) -> Result<CertificateDer<'static>, CertsError> {
    let mut all = parse_certificates(text)?;
    match (all.pop(), all.is_empty()) {
        (Some(certificate), true) => Ok(certificate),
        _ => Err(CertsError::Pem("it must have exactly one certificate")),
    }
}

/// Parses every certificate in PEM text, at least one.
pub(crate) fn parse_certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, CertsError> {
    let all = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| CertsError::Pem("a block is damaged"))?;
    if all.is_empty() { Err(CertsError::Pem("it has no certificate")) } else { Ok(all) }
}

/// Parses the PKCS#8 key in PEM text and returns it as DER.
pub(crate) fn parse_key(text: &str) -> Result<Vec<u8>, CertsError> {
    PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes())
        .map(|key| key.secret_pkcs8_der().to_vec())
        .map_err(|_| CertsError::Pem("it has no private key (PKCS#8)"))
}

/// Encodes certificates as PEM text.
pub(crate) fn certificates_to_pem<'a>(certificates: impl IntoIterator<Item = &'a CertificateDer<'static>>) -> String {
    certificates.into_iter().map(|certificate| block("CERTIFICATE", certificate)).collect()
}

/// Encodes a PKCS#8 key as PEM text.
pub(crate) fn key_to_pem(key: &[u8]) -> String {
    block("PRIVATE KEY", key)
}

fn block(tag: &str, der: &[u8]) -> String {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new(tag, der), config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_written_for_its_owner_alone_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        assert!(read_secret(&path).unwrap().is_none());
        std::fs::write(folder.path().join("key.pem.new"), "left over").unwrap();
        write_secret(&path, "hidden").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_secret(&path).unwrap().unwrap(), "hidden");
    }

    #[test]
    fn a_replaced_secret_keeps_its_owner_and_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        write_secret(&path, "first").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
        let is_root = path.metadata().unwrap().uid() == 0;
        if is_root {
            std::os::unix::fs::chown(&path, Some(7), Some(9)).unwrap();
        }
        let before = path.metadata().unwrap();
        write_secret(&path, "second").unwrap();
        let after = path.metadata().unwrap();
        assert_ne!(before.ino(), after.ino());
        assert_eq!((before.uid(), before.gid(), before.mode()), (after.uid(), after.gid(), after.mode()));
    }

    #[test]
    fn a_symlink_at_the_new_files_path_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("key.pem"), folder.path().join("other"));
        std::fs::write(&target, "somebody else's").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("key.pem.new")).unwrap();
        write_secret(&path, "hidden").unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "somebody else's");
        assert_eq!(read_secret(&path).unwrap().unwrap(), "hidden");
    }

    #[test]
    fn looser_modes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        write_secret(&path, "hidden").unwrap();
        for mode in [0o640, 0o604, 0o620, 0o602] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(matches!(read_secret(&path), Err(CertsError::LooseMode { .. })), "{mode:o}");
        }
        let private = folder.path().join("private");
        ensure_private_folder(&private).unwrap();
        ensure_private_folder(&private).unwrap();
        std::fs::set_permissions(&private, Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(
            ensure_private_folder(&private),
            Err(CertsError::LooseMode { mode: 0o755, wanted: 0o700, .. })
        ));
    }

    #[test]
    fn folders_and_oversized_files_are_no_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        write_secret(&path, &"x".repeat(70_000)).unwrap();
        assert!(matches!(read_secret(&path), Err(CertsError::InvalidFile { rule: "is longer than 64 KiB", .. })));
        assert!(read_secret(folder.path()).is_err());
    }
}
