//! Wall clocks that are wrong for one process, by Debian's libfaketime.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::eventually::leave_out;

/// The file in an installation's folder that its coordinator's wall clock follows, where there is one.
const STEPS: &str = "wall-clock";

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
        Some(Self { library: library(test)?, to: to.to_owned() })
    }

    pub(crate) fn set(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME", &self.to)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC");
    }
}

/// The wall clock of a coordinator that runs, which steps when it is told to.
#[derive(Debug)]
pub struct Stepped(PathBuf);

impl Stepped {
    /// The clock of the coordinator that is to be served in `folder`, right as yet; none where no clock can be set wrong, and
    /// `test` is then noted as left out.
    pub fn new(test: &str, folder: &Path) -> Option<Self> {
        library(test)?;
        let clock = Self(folder.join(STEPS));
        clock.set(0);
        Some(clock)
    }

    /// Has it be ahead by so many seconds from now on.
    pub fn set(&self, ahead: i64) {
        // Renamed into place: it is read at every look at the clock, and never half.
        let new = self.0.with_extension("new");
        std::fs::write(&new, format!("{ahead:+}\n")).expect("the clock's file can be written");
        std::fs::rename(&new, &self.0).expect("the clock's file can be put in place");
    }
}

/// Has a coordinator's wall clock follow the file in its folder.
pub(crate) fn follow(folder: &Path, command: &mut Command) {
    let steps = folder.join(STEPS);
    if let Some(library) = installed().filter(|_| steps.is_file()) {
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", steps)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC");
    }
}

fn library(test: &str) -> Option<PathBuf> {
    let library = installed();
    if library.is_none() {
        leave_out(test, "no clock can be set wrong", "libfaketime is not installed");
    }
    library
}

fn installed() -> Option<PathBuf> {
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
        .into_iter()
        .map(|folder| Path::new(folder).join("faketime/libfaketimeMT.so.1"))
        .find(|file| file.is_file())
}
