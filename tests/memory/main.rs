//! Memory limits of decoders: reading any bytes takes at most a fixed multiple of their length, whatever lengths they
//! claim. A separate binary, since every allocation in it is counted.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue panics")]

mod hostile_bytes;
mod mesh_frames;
mod stored_data;
mod vendor_pages;

use std::alloc::System;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use peakmem_alloc::{INSTRUMENTED_SYSTEM, PeakMemAlloc, PeakMemAllocTrait};

#[global_allocator]
static MEMORY: &PeakMemAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Memory that a short value may take: the columns of a batch, the readings of a block.
const AHEAD: usize = 300 << 10;

/// Bytes of memory per byte of a long value: the smallest list entry takes one byte and becomes 32, in a list that
/// doubles when it is full.
const TIMES: usize = 48;

/// The most memory used by any read.
#[derive(Debug, Default)]
struct PeakMemory {
    /// Bytes per byte read of a long value.
    times: usize,
    /// Bytes used by reads of less than 1 KiB.
    ahead: usize,
    tried: usize,
}

impl PeakMemory {
    /// Runs a read, counting its memory, and compares the peak with [`TIMES`] its length.
    fn read(&mut self, name: &str, bytes: &[u8], read: impl FnOnce(&[u8])) {
        let took = peak_bytes(|| read(bytes));
        let most = AHEAD + TIMES * bytes.len();
        assert!(took <= most, "{name}: {took} bytes for {}: {:02x?}", bytes.len(), &bytes[..bytes.len().min(200)]);
        self.tried += 1;
        if bytes.len() < 1 << 10 {
            self.ahead = self.ahead.max(took);
        } else {
            self.times = self.times.max(took / bytes.len());
        }
    }

    /// Prints the figures, also when the test passes.
    fn print(&self, name: &str) {
        let Self { times, ahead, tried } = self;
        let _ = writeln!(
            std::io::stdout(),
            "figure: {name}: at most {times} times the length of a long one, {ahead} bytes for a short one, {tried} tried"
        );
    }
}

/// Returns the peak of allocated bytes during a run.
fn peak_bytes(run: impl FnOnce()) -> usize {
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
