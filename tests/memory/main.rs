//! Whatever bytes come, reading them takes no more memory than so many times their own length: no length that they claim
//! is believed. A binary of its own, since every allocation in it is counted.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod frames;
mod hostile;
mod kept;
mod pages;

use std::alloc::System;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use peakmem_alloc::{INSTRUMENTED_SYSTEM, PeakMemAlloc, PeakMemAllocTrait};

#[global_allocator]
static MEMORY: &PeakMemAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What a short value may take: a batch's columns, a block's readings.
const AHEAD: usize = 300 << 10;

/// Bytes of memory for each byte of a long value: the smallest entry of a list takes one byte and becomes 32, in a list
/// that doubles when it is full.
const TIMES: usize = 48;

/// The most that reading took, in all that was tried.
#[derive(Debug, Default)]
struct Worst {
    /// Bytes for each byte that was read of a long value.
    times: usize,
    /// Bytes that reading less than 1 KiB took.
    ahead: usize,
    tried: usize,
}

impl Worst {
    /// Reads that much, counting, and holds the most that it took at a time against [`TIMES`] its length.
    fn read(&mut self, name: &str, bytes: &[u8], read: impl FnOnce(&[u8])) {
        let took = took(|| read(bytes));
        let most = AHEAD + TIMES * bytes.len();
        assert!(
            took <= most,
            "{name}: {took} bytes for {}: {:02x?}",
            bytes.len(),
            &bytes[..bytes.len().min(200)]
        );
        self.tried += 1;
        if bytes.len() < 1 << 10 {
            self.ahead = self.ahead.max(took);
        } else {
            self.times = self.times.max(took / bytes.len());
        }
    }

    /// Prints what was found; shown also when the test passes.
    fn tell(&self, name: &str) {
        let Self { times, ahead, tried } = self;
        let _ = writeln!(
            std::io::stdout(),
            "figure: {name}: at most {times} times the length of a long one, {ahead} bytes for a short one, {tried} tried"
        );
    }
}

/// The most bytes that were held at any time of a run.
fn took(run: impl FnOnce()) -> usize {
    MEMORY.reset_peak_memory();
    run();
    MEMORY.get_peak_memory()
}

/// Runs `test` while no other test of this binary allocates.
fn alone(test: impl FnOnce()) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    test();
}
