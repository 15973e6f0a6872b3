//! Transfers files that root's commands created in the data folder to the folder's owner. The service runs as that
//! user and could not open root's files.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, chownat, fstat, openat};
use rustix::process::{Gid, Uid, geteuid};

use crate::console;

/// Owner of a data folder, and its file system.
#[derive(Debug, Clone, Copy)]
struct Owner {
    user: Uid,
    group: Gid,
    device: u64,
}

/// Transfers root's files and folders below the data folder to the folder's owner, if root runs this and the owner
/// is another user. A failure is reported but does not fail the command, which has finished by now.
pub(super) fn restore_ownership(data: &Path) {
    if !geteuid().is_root() {
        return;
    }
    if let Err(error) = chown_to_owner(data) {
        console::error(&format!(
            "this command created files owned by root, which the service can't use; run `chown -R` on {} to give \
             them to the service's user: {error}",
            data.display()
        ));
    }
}

fn chown_to_owner(data: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = match openat(CWD, data, flags, Mode::empty()) {
        Ok(folder) => folder,
        // The command created no folder.
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let stat = fstat(&folder)?;
    if stat.st_uid == 0 {
        return Ok(());
    }
    let owner = Owner { user: Uid::from_raw(stat.st_uid), group: Gid::from_raw(stat.st_gid), device: stat.st_dev };
    chown_tree(folder, owner)
}

/// The owner may rename things meanwhile, so each is checked and transferred by its descriptor, and no link is
/// followed.
fn chown_tree(folder: OwnedFd, owner: Owner) -> io::Result<()> {
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = match openat(&folder, name, flags, Mode::empty()) {
                Ok(opened) => opened,
                Err(rustix::io::Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            let stat = fstat(&opened)?;
            if is_owned_by_root(&stat, owner) {
                chownat(&opened, c"", Some(owner.user), Some(owner.group), AtFlags::EMPTY_PATH)?;
            }
            if is_folder(&stat) && stat.st_dev == owner.device {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                folders.push(openat(&opened, c".", flags, Mode::empty())?);
            }
        }
    }
    Ok(())
}

/// A file with several hard links may belong to another user, linked here by the folder's owner.
fn is_owned_by_root(stat: &Stat, owner: Owner) -> bool {
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1;
    stat.st_uid == 0 && stat.st_dev == owner.device && (is_file || is_folder(stat))
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown, symlink};

    use super::*;

    #[test]
    fn only_files_of_root_with_one_link_change_owner() {
        if !geteuid().is_root() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let (data, others) = (home.path().join("data"), home.path().join("others"));
        fs::create_dir_all(data.join("store/sled")).unwrap();
        for name in ["store/sled/db", "linked", "theirs"] {
            fs::write(data.join(name), "").unwrap();
        }
        fs::write(&others, "").unwrap();
        fs::hard_link(data.join("linked"), home.path().join("second-name")).unwrap();
        symlink(&others, data.join("symbolic")).unwrap();
        chown(data.join("theirs"), Some(7), Some(7)).unwrap();
        let user = |name: &str| fs::symlink_metadata(data.join(name)).unwrap().uid();
        restore_ownership(&data);
        assert_eq!(user("store/sled/db"), 0, "a folder of root's is nobody else's");
        chown(&data, Some(65_534), Some(65_534)).unwrap();
        restore_ownership(&data);
        for name in ["store", "store/sled", "store/sled/db"] {
            assert_eq!(user(name), 65_534, "{name}");
        }
        assert_eq!(["linked", "symbolic", "theirs"].map(user), [0, 0, 7]);
        assert_eq!(fs::metadata(&others).unwrap().uid(), 0);
        restore_ownership(&home.path().join("none"));
    }
}
