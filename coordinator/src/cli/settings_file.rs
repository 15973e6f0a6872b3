//! The settings file of this host's installation, for commands without `--config`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Path of the settings file in the packages.
const DEFAULT_PATH: &str = "/etc/parallax/coordinator.toml";

/// The settings file that was found without `--config`, for messages.
static FOUND: OnceLock<PathBuf> = OnceLock::new();

/// Returns the settings file to read: the given one, else this host's if it exists. With an explicit data folder
/// none is read, since another installation may be meant.
pub(super) fn find(chosen: Option<&Path>, has_data_option: bool) -> Option<PathBuf> {
    let file = choose(chosen, has_data_option, Path::new(DEFAULT_PATH))?;
    if chosen.is_none() {
        // Only the first call finds it unset; later calls find the same file.
        let _ = FOUND.set(file.clone());
    }
    Some(file)
}

/// Returns the settings file that this process found itself.
pub(super) fn found_file() -> Option<&'static Path> {
    FOUND.get().map(PathBuf::as_path)
}

fn choose(chosen: Option<&Path>, has_data_option: bool, default_path: &Path) -> Option<PathBuf> {
    match chosen {
        Some(file) => Some(file.to_owned()),
        // An unreadable file is an error, not a reason to act on another installation.
        None => (!has_data_option && default_path.symlink_metadata().is_ok()).then(|| default_path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_file_or_folder_replaces_the_hosts_settings_file() {
        let folder = tempfile::tempdir().unwrap();
        let (default_path, chosen) = (folder.path().join("coordinator.toml"), Path::new("mine.toml"));
        assert_eq!(choose(None, false, &default_path), None);
        std::fs::write(&default_path, "").unwrap();
        assert_eq!(choose(None, false, &default_path), Some(default_path.clone()));
        assert_eq!(choose(None, true, &default_path), None);
        for has_data_option in [false, true] {
            assert_eq!(choose(Some(chosen), has_data_option, &default_path), Some(chosen.to_owned()));
        }
    }
}
