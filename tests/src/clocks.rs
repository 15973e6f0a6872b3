//! Wall clocks that are wrong for one process, by Debian's libfaketime.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::eventually::leave_out;

/// A wall clock that is off. Time itself (the monotonic clock) passes as ever.
#[derive(Debug, Clone)]
pub struct Faked {
    library: PathBuf,
    to: String,
}

impl Faked {
    /// A clock by libfaketime's words, such as `+600` (seconds) or `@2100-01-01 00:00:00`; none where the library is not
    /// installed, and `test` is then noted as left out.
    pub fn new(test: &str, to: &str) -> Option<Self> {
        let library = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
            .into_iter()
            .map(|folder| Path::new(folder).join("faketime/libfaketimeMT.so.1"))
            .find(|file| file.is_file());
        if library.is_none() {
            leave_out(test, "no clock can be set wrong", "libfaketime is not installed");
        }
        Some(Self { library: library?, to: to.to_owned() })
    }

    pub(crate) fn set(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME", &self.to)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC");
    }
}
