//! Bit streams of blocks: the shared reader and writer with a buffer that fits the many short streams of open blocks.

use parallax_primitives::bits::{BitBuffer, BitError, BitWriter, RiceCode};
use smallvec::SmallVec;

use super::BlockError;

/// Rice code of latencies: a number in full has enough bits for the zigzag difference of any two of them.
pub(super) const LATENCY_CODE: RiceCode = RiceCode { escape: 24, full_bits: 33 };

/// Bytes of a writer's first heap allocation beyond its inline buffer, and of each later one: sizes that the
/// allocator provides without waste.
const FIRST_HEAP_BYTES: usize = 24;
const MORE_HEAP_BYTES: usize = 16;

/// Writes a bit stream of a block.
pub(super) type BlockBitWriter = BitWriter<BlockBytes>;

/// Bytes of a stream. The marks of most blocks fit inline.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockBytes(SmallVec<[u8; 16]>);

impl BitBuffer for BlockBytes {
    #[inline]
    fn push(&mut self, byte: u8) {
        if self.0.len() == self.0.capacity() {
            // Every monitor has several of these: doubling would leave half of the memory unused.
            self.0.reserve_exact(if self.0.spilled() { MORE_HEAP_BYTES } else { FIRST_HEAP_BYTES });
        }
        self.0.push(byte);
    }

    #[inline]
    fn last_mut(&mut self) -> Option<&mut u8> {
        self.0.last_mut()
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<BitError> for BlockError {
    fn from(error: BitError) -> Self {
        match error {
            BitError::Truncated => Self::Truncated,
            BitError::TooLarge => Self::Damaged("a number is too large"),
        }
    }
}
