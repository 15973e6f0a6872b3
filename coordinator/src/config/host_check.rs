//! Checks of the settings against the host: whether the files they name can be read, and whether `[admin]` is
//! exposed.

use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

use parallax_certs::error::CertsError as SecretError;
use parallax_certs::sealing::Keyring;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::{ConfigFault, CoordinatorConfig};

impl CoordinatorConfig {
    /// Opens the files that the settings name, as the user who runs this; returns the problem with each.
    pub fn file_faults(&self) -> Vec<ConfigFault> {
        let opened = [("tls.certificate", &self.tls.certificate), ("tls.key", &self.tls.key)];
        let roots = [("acme.roots", &self.acme.roots), ("mail.ca", &self.mail.ca)];
        let mut faults = Vec::new();
        for (name, path) in opened {
            faults.extend(path.as_deref().and_then(|path| Some(fault(name, path, open(path).err()?))));
        }
        for (name, path) in roots {
            faults.extend(path.as_deref().and_then(|path| Some(fault(name, path, certificates(path).err()?))));
        }
        if let Some(path) = self.secrets_key_file.as_deref()
            && let Err(error) = Keyring::read(path)
        {
            faults.push(fault("secrets_key_file", path, key_file_problem(&error)));
        }
        if let Some(folder) = self.mail.folder.as_deref()
            && folder.exists()
            && !folder.is_dir()
        {
            faults.push(fault("mail.folder", folder, "is not a folder".to_owned()));
        }
        faults
    }

    /// Returns a warning if the admin address may be publicly reachable.
    pub fn admin_exposure_warning(&self) -> Option<String> {
        let listen = self.admin.listen.filter(|listen| !is_internal(listen.ip()))?;
        Some(format!(
            "admin.listen {listen} may be publicly reachable: /metrics names this installation's networks and \
             regions, and there is no password; use a loopback or private address"
        ))
    }
}

fn fault(name: &str, path: &Path, rule: String) -> ConfigFault {
    ConfigFault { origin: format!("{name}: {}:", path.display()), rule, is_from_environment: false }
}

fn open(path: &Path) -> Result<(), String> {
    let metadata = File::open(path).and_then(|file| file.metadata()).map_err(|error| error.to_string())?;
    if metadata.is_file() { Ok(()) } else { Err("is not a file".to_owned()) }
}

fn certificates(path: &Path) -> Result<(), String> {
    open(path)?;
    let mut certificates = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
    match certificates.next() {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(format!("holds no certificate in PEM: {error}")),
        None => Err("holds no certificate in PEM".to_owned()),
    }
}

/// Returns the problem with a key file without its path, which the fault names already.
fn key_file_problem(error: &SecretError) -> String {
    match error {
        SecretError::File { source, .. } => source.to_string(),
        SecretError::InvalidFile { rule, .. } => (*rule).to_owned(),
        SecretError::LooseMode { mode, wanted, .. } => {
            format!("mode is {mode:03o}, so other users can access it; it must be {wanted:03o}")
        }
        other => other.to_string(),
    }
}

/// Returns true for loopback, private and link-local addresses. An unspecified address means every address of the
/// host.
fn is_internal(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_can_not_be_used_are_named_with_their_setting() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| Some(folder.path().join(name));
        std::fs::write(folder.path().join("text"), "no certificate").unwrap();
        let mut config = CoordinatorConfig::default();
        assert_eq!(config.file_faults(), []);
        config.tls.certificate = at("none.pem");
        config.tls.key = at("text");
        config.acme.roots = at("text");
        config.mail.ca = at("");
        config.mail.folder = at("text");
        let faults: Vec<String> = config.file_faults().iter().map(ConfigFault::to_string).collect();
        let folder_path = folder.path().display();
        assert_eq!(
            faults,
            [
                format!("tls.certificate: {folder_path}/none.pem: No such file or directory (os error 2)"),
                format!("acme.roots: {folder_path}/text: holds no certificate in PEM"),
                format!("mail.ca: {folder_path}/: is not a file"),
                format!("mail.folder: {folder_path}/text: is not a folder"),
            ]
        );
    }

    #[test]
    fn a_key_file_that_can_not_be_used_is_named_with_its_setting() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets-key");
        let config = CoordinatorConfig { secrets_key_file: Some(path.clone()), ..CoordinatorConfig::default() };
        let faults = || config.file_faults().iter().map(ConfigFault::to_string).collect::<Vec<_>>();
        let fault = |rule: &str| vec![format!("secrets_key_file: {}: {rule}", path.display())];
        let set_mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(faults(), fault("entity not found"));
        parallax_certs::sealing::write_new_key(&path, false).unwrap();
        assert_eq!(faults(), Vec::<String>::new());
        set_mode(0o640);
        let loose = "mode is 640, so other users can access it; it must be 600";
        assert_eq!(faults(), fault(loose));
        std::fs::write(&path, "no key").unwrap();
        set_mode(0o600);
        assert_eq!(faults(), fault("has a line that is not 32 bytes in base64"));
    }

    #[test]
    fn a_public_admin_address_is_warned_about() {
        let mut config = CoordinatorConfig::default();
        let mut is_exposed = |listen: &str| {
            config.admin.listen = Some(listen.parse().unwrap());
            config.admin_exposure_warning().is_some()
        };
        for inside in ["127.0.0.1:1", "10.0.0.1:1", "192.168.3.4:1", "[::1]:1", "[fd00::1]:1", "[fe80::1]:1"] {
            assert!(!is_exposed(inside), "{inside}");
        }
        for outside in ["0.0.0.0:1", "[::]:1", "203.0.113.5:1", "[2001:db8::1]:1", "[::ffff:8.8.8.8]:1"] {
            assert!(is_exposed(outside), "{outside}");
        }
        assert_eq!(CoordinatorConfig::default().admin_exposure_warning(), None);
    }
}
