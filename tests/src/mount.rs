//! A small disk in memory for one test: filled, it is full, and nobody else's.

use std::fs::File;
use std::io::{ErrorKind, Write};
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
            Err(reason) => {
                assert!(
                    std::env::var(REQUIRE).as_deref() != Ok("1"),
                    "{REQUIRE}=1, and nothing can be mounted: {reason}"
                );
                leave_out(test, "nothing can be mounted", &reason);
                None
            }
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

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // A process that was just killed may still hold a file of it for a moment.
        blocks_until(Duration::from_secs(5), || {
            let mut umount = Command::new("umount");
            umount.arg(&self.0);
            output(umount).is_ok()
        });
    }
}
