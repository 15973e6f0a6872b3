//! Small disks for one test: a tmpfs, which can be filled, and a file system in a file, whose power can be cut.

use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::eventually::{block_until, skip_test};
use crate::process::output;

/// Environment variable; if 1, a disk that can't be mounted is a failure.
const REQUIRE: &str = "PARALLAX_REQUIRE_MOUNT";

/// A mounted tmpfs, unmounted when dropped.
#[derive(Debug)]
pub struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Creates `folder` and mounts a tmpfs of `mib` MiB on it, accessible to its owner only. If that is not possible,
    /// `test` is skipped, or fails if `PARALLAX_REQUIRE_MOUNT` is 1.
    pub fn mount(test: &str, folder: &Path, mib: u32) -> Option<Self> {
        std::fs::create_dir(folder).expect("the folder can be made");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m,mode=0700"), "tmpfs"]).arg(folder);
        match output(mount) {
            Ok(_) => Some(Self(folder.to_owned())),
            Err(reason) => skipped(test, &reason),
        }
    }

    /// Fills the disk to the last byte, with the file `filler`.
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.filler()).expect("a file can be made");
        let zeros = vec![0; 1 << 16];
        for size in [zeros.len(), 4096, 1] {
            loop {
                match file.write(&zeros[..size]) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("filling: {error}"),
                }
            }
        }
    }

    /// Removes the file that [`Tmpfs::fill`] wrote.
    pub fn free(&self) {
        std::fs::remove_file(self.filler()).expect("it was filled");
    }

    /// Remounts it read-only, or writable again. No process may have a file on it open for writing.
    pub fn set_read_only(&self, is_read_only: bool) {
        let options = if is_read_only { "remount,ro" } else { "remount,rw" };
        let mut mount = Command::new("mount");
        mount.args(["-o", options]).arg(&self.0);
        output(mount).unwrap_or_else(|fault| panic!("{fault}"));
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

/// A file system in a file (ext4 on a loop device): data that was not made durable is in the host's memory and not in
/// the file. Unmounted when dropped.
#[derive(Debug)]
pub struct DiskImage {
    file: PathBuf,
    mounted: PathBuf,
}

impl DiskImage {
    /// Creates a file system of `mib` MiB in `file` and mounts it. Skips the test as [`Tmpfs::mount`] does.
    pub fn make(test: &str, file: &Path, mounted: &Path, mib: u64) -> Option<Self> {
        std::fs::create_dir(mounted).expect("the folder can be made");
        File::create(file).and_then(|file| file.set_len(mib << 20)).expect("the file can be made");
        let mut format = Command::new("mkfs.ext4");
        format.args(["-q", "-F"]).arg(file);
        let image = Self { file: file.to_owned(), mounted: mounted.to_owned() };
        match output(format).and_then(|_| image.mount()) {
            Ok(()) => {
                let private = Permissions::from_mode(0o700);
                std::fs::set_permissions(mounted, private).expect("the mounted folder is ours");
                Some(image)
            }
            Err(reason) => skipped(test, &reason),
        }
    }

    /// Copies the current contents of the disk, as a power cut would leave them, for [`DiskImage::restore_copy`].
    pub fn take_copy(&self) {
        let mut copy = Command::new("cp");
        copy.arg("--sparse=always").arg(&self.file).arg(self.copy_path());
        output(copy).unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// Mounts the copy taken by [`DiskImage::take_copy`] in place of the disk. No process may be using it.
    pub fn restore_copy(&self) {
        unmount(&self.mounted);
        std::fs::rename(self.copy_path(), &self.file).expect("the copy is there");
        self.mount().unwrap_or_else(|fault| panic!("{fault}"));
    }

    fn mount(&self) -> Result<(), String> {
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).arg(&self.file).arg(&self.mounted);
        output(mount).map(drop)
    }

    fn copy_path(&self) -> PathBuf {
        self.file.with_extension("after")
    }
}

impl Drop for DiskImage {
    fn drop(&mut self) {
        unmount(&self.mounted);
    }
}

fn skipped<T>(test: &str, reason: &str) -> Option<T> {
    assert!(std::env::var(REQUIRE).as_deref() != Ok("1"), "{REQUIRE}=1, and nothing can be mounted: {reason}");
    skip_test(test, "nothing can be mounted", reason);
    None
}

/// A process that was just killed may hold a file open for a moment.
fn unmount(folder: &Path) {
    block_until(Duration::from_secs(5), || {
        let mut umount = Command::new("umount");
        umount.arg(folder);
        output(umount).is_ok()
    });
}
