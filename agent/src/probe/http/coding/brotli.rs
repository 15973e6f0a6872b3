//! Brotli (RFC 7932), with its decoder's memory accounted: a few bytes can make it allocate a window of 16
//! MiB, and Huffman tables of 3 MiB.

use std::io::{self, Write};
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brotli_decompressor::writer::DecompressorWriterCustomAlloc;
use brotli_decompressor::{Allocator, SliceWrapper, StandardAlloc};

use super::{DecodeStage, NextStage, PIECE, invalid_data};
use crate::probe::memory_budget::MemoryShare;

/// Maximum memory of a decoder in bytes; windows beyond the standard's take more.
const MAX_HELD: usize = 32 << 20;

type Memory<T> = <StandardAlloc as Allocator<T>>::AllocatedMemory;

type Decoder =
    DecompressorWriterCustomAlloc<NextStage, Memory<u8>, CountingAllocator, CountingAllocator, CountingAllocator>;

/// Decodes brotli.
pub(super) struct Brotli {
    stream: Decoder,
    memory: Arc<AtomicUsize>,
    share: MemoryShare,
    is_done: bool,
}

impl Brotli {
    pub(super) fn new(next: NextStage, share: MemoryShare) -> Self {
        let memory = Arc::default();
        let mut counting = CountingAllocator { memory: Arc::clone(&memory) };
        let buffer = counting.alloc_cell(PIECE);
        let stream = Decoder::new(next, buffer, counting.clone(), counting.clone(), counting);
        Self { stream, memory, share, is_done: false }
    }
}

impl Write for Brotli {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.is_done || piece.is_empty() {
            return Ok(piece.len());
        }
        let taken = self.stream.write(piece)?;
        let held = self.memory.load(Ordering::Relaxed);
        if held > MAX_HELD {
            return Err(invalid_data("brotli"));
        }
        self.share.grow_to(held)?;
        // Fewer bytes are consumed only at the end of the stream.
        self.is_done = taken < piece.len();
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DecodeStage for Brotli {
    fn end(&mut self) -> io::Result<()> {
        self.stream.close()?;
        self.stream.get_mut().end()
    }
}

/// Allocates for the decoder and counts its memory.
#[derive(Clone)]
struct CountingAllocator {
    memory: Arc<AtomicUsize>,
}

impl<T: Clone + Default> Allocator<T> for CountingAllocator
where
    StandardAlloc: Allocator<T>,
{
    type AllocatedMemory = Memory<T>;

    fn alloc_cell(&mut self, len: usize) -> Self::AllocatedMemory {
        self.memory.fetch_add(len.saturating_mul(size_of::<T>()), Ordering::Relaxed);
        StandardAlloc::default().alloc_cell(len)
    }

    fn free_cell(&mut self, memory: Self::AllocatedMemory) {
        self.memory.fetch_sub(memory.slice().len().saturating_mul(size_of::<T>()), Ordering::Relaxed);
    }
}
