//! Small disks for one test: one in memory, which can be filled, and one in a file, whose power can be cut.

use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::eventually::{blocks_until, leave_out};
use crate::process::output;

/// Set to 1 where a disk that can't be mounted is a failure.
const REQUIRE: &str = "PARALLAX_REQUIRE_MOUNT";

/// A mounted tmpfs, taken down when dropped.
#[derive(Debug)]
pub struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Mounts one of so many MiB, for its owner alone, on a folder that is made. Where that can't be done `test` is left
    /// out with a word, or fails if `PARALLAX_REQUIRE_MOUNT` is 1.
    pub fn mount(test: &str, folder: &Path, mib: u32) -> Option<Self> {
        std::fs::create_dir(folder).expect("the folder can be made");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m,mode=0700"), "tmpfs"]).arg(folder);
        match output(mount) {
            Ok(_) => Some(Self(folder.to_owned())),
            Err(reason) => left_out(test, &reason),
        }
    }

    /// Fills it to the last byte; what fills it is `filler`.
    pub fn fill(&self) {
        let mut file =
            File::options().create(true).append(true).open(self.filler()).expect("a file can be made");
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

    /// Takes away what filled it.
    pub fn empty(&self) {
        std::fs::remove_file(self.filler()).expect("it was filled");
    }

    /// Lets nothing be written to it, or all as before. No process may hold a file of it open for writing.
    pub fn protect(&self, is_read_only: bool) {
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

/// A file system in a file (ext4 in a loop device): what was not made durable is in the host's memory and not in that
/// file. Taken down when dropped.
#[derive(Debug)]
pub struct Image {
    file: PathBuf,
    mounted: PathBuf,
}

impl Image {
    /// Makes one of so many MiB in `file` and mounts it on a folder that is made. Left out as [`Tmpfs::mount`] says.
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
            Err(reason) => left_out(test, &reason),
        }
    }

    /// Takes what is on the disk at this moment, for [`Image::set_back`]: what a power cut would leave.
    pub fn copy(&self) {
        let mut copy = Command::new("cp");
        copy.arg("--sparse=always").arg(&self.file).arg(self.copied());
        output(copy).unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// Mounts what [`Image::copy`] took in place of what is there. Nobody may use it meanwhile.
    pub fn set_back(&self) {
        unmount(&self.mounted);
        std::fs::rename(self.copied(), &self.file).expect("the copy is there");
        self.mount().unwrap_or_else(|fault| panic!("{fault}"));
    }

    fn mount(&self) -> Result<(), String> {
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).arg(&self.file).arg(&self.mounted);
        output(mount).map(drop)
    }

    fn copied(&self) -> PathBuf {
        self.file.with_extension("after")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        unmount(&self.mounted);
    }
}

fn left_out<T>(test: &str, reason: &str) -> Option<T> {
    assert!(
        std::env::var(REQUIRE).as_deref() != Ok("1"),
        "{REQUIRE}=1, and nothing can be mounted: {reason}"
    );
    leave_out(test, "nothing can be mounted", reason);
    None
}

/// A process that was just killed may still hold a file of it for a moment.
fn unmount(folder: &Path) {
    blocks_until(Duration::from_secs(5), || {
        let mut umount = Command::new("umount");
        umount.arg(folder);
        output(umount).is_ok()
    });
}
