//! Wrong wall clocks for single processes, by Debian's libfaketime.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::eventually::skip_test;

/// File in an installation's folder that sets its coordinator's wall clock, if present.
const CLOCK_FILE: &str = "wall-clock";

/// A wrong wall clock. The monotonic clock is not affected.
#[derive(Debug, Clone)]
pub struct FakeClock {
    library: PathBuf,
    to: String,
}

impl FakeClock {
    /// Returns a clock set by a libfaketime expression, such as `+600` (seconds) or `@2100-01-01 00:00:00`. If the
    /// library is missing, returns `None` and records `test` as skipped.
    pub fn new(test: &str, to: &str) -> Option<Self> {
        Some(Self { library: faketime_library(test)?, to: to.to_owned() })
    }

    pub(crate) fn apply_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME", &self.to)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC");
    }
}

/// The wall clock of a running coordinator, which a test can step.
#[derive(Debug)]
pub struct SteppableClock(PathBuf);

impl SteppableClock {
    /// Returns the clock, correct for now, of the coordinator that will run in `folder`. If the library is missing,
    /// returns `None` and records `test` as skipped.
    pub fn new(test: &str, folder: &Path) -> Option<Self> {
        faketime_library(test)?;
        let clock = Self(folder.join(CLOCK_FILE));
        clock.set_ahead(0);
        Some(clock)
    }

    /// Sets the clock ahead by this many seconds.
    pub fn set_ahead(&self, ahead: i64) {
        // Renamed into place: the file is read at every clock access and must never be partial.
        let new = self.0.with_extension("new");
        std::fs::write(&new, format!("{ahead:+}\n")).expect("the clock's file can be written");
        std::fs::rename(&new, &self.0).expect("the clock's file can be put in place");
    }
}

/// Makes a coordinator's wall clock follow the file in its folder.
pub(crate) fn follow_clock_file(folder: &Path, command: &mut Command) {
    let steps = folder.join(CLOCK_FILE);
    if let Some(library) = find_faketime().filter(|_| steps.is_file()) {
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", steps)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC");
    }
}

fn faketime_library(test: &str) -> Option<PathBuf> {
    let library = find_faketime();
    if library.is_none() {
        skip_test(test, "no clock can be set wrong", "libfaketime is not installed");
    }
    library
}

fn find_faketime() -> Option<PathBuf> {
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
        .into_iter()
        .map(|folder| Path::new(folder).join("faketime/libfaketimeMT.so.1"))
        .find(|file| file.is_file())
}
