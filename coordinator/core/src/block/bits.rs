//! Bit writer and reader, with the two variable-length codes that blocks use.

use smallvec::SmallVec;

use super::BlockError;

/// Number of leading ones after which a Rice-coded number follows in full.
const RICE_ESCAPE: u32 = 24;
/// Bits of a Rice-coded number that follows in full: enough for the zigzag difference of any two latencies.
const RICE_FULL: u32 = 33;

/// Bytes of a writer's first heap allocation beyond its inline buffer, and of each later one: sizes that the
/// allocator provides without waste.
const FIRST_HEAP_BYTES: usize = 24;
const MORE_HEAP_BYTES: usize = 16;

/// Writes bits, lowest first.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockBitWriter {
    /// The marks of most blocks fit inline.
    bytes: SmallVec<[u8; 16]>,
    /// Used bits of the last byte; 0 if it is full.
    used: u32,
}

impl BlockBitWriter {
    /// Bytes written so far; unused bits of the last one are zero.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends the lowest `count` (at most 64) bits of `value`.
    pub(super) fn put(&mut self, mut value: u64, mut count: u32) {
        while count > 0 {
            if self.used == 0 {
                if self.bytes.len() == self.bytes.capacity() {
                    // Every monitor has several of these: doubling would leave half of the memory unused.
                    self.bytes.reserve_exact(if self.bytes.spilled() { MORE_HEAP_BYTES } else { FIRST_HEAP_BYTES });
                }
                self.bytes.push(0);
            }
            let room = 8 - self.used;
            let take = room.min(count);
            let part = (value & ((1 << take) - 1)) as u8;
            if let Some(last) = self.bytes.last_mut() {
                *last |= part << self.used;
            }
            value = value.checked_shr(take).unwrap_or(0);
            count -= take;
            self.used = (self.used + take) % 8;
        }
    }

    /// Appends one bit.
    pub(super) fn flag(&mut self, set: bool) {
        self.put(u64::from(set), 1);
    }

    /// Appends a number in an exponential Golomb code of order `k`: small numbers are short, and every number can be
    /// encoded.
    pub(super) fn golomb(&mut self, value: u64, k: u32) {
        let head = (u128::from(value) >> k) + 1;
        let width = 127 - head.leading_zeros();
        let mut zeros = width;
        while zeros > 0 {
            let some = zeros.min(32);
            self.put(0, some);
            zeros -= some;
        }
        self.put(1, 1);
        self.put((head & u128::from(u64::MAX)) as u64, width);
        self.put(value, k);
    }

    /// Appends a number below 2^33 in a Rice code of order `k`.
    pub(super) fn rice(&mut self, value: u64, k: u32) {
        let ones = value >> k;
        if ones < u64::from(RICE_ESCAPE) {
            self.put((1 << ones) - 1, ones as u32);
            self.put(0, 1);
            self.put(value, k);
        } else {
            self.put((1 << RICE_ESCAPE) - 1, RICE_ESCAPE);
            self.put(value, RICE_FULL);
        }
    }
}

/// Reads bits, lowest first.
#[derive(Debug, Clone)]
pub(super) struct BlockBitReader<'a> {
    bytes: &'a [u8],
    /// Number of bits read so far.
    at: usize,
}

impl<'a> BlockBitReader<'a> {
    /// Starts at the first bit.
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Reads the next `count` (at most 64) bits.
    pub(super) fn take(&mut self, count: u32) -> Result<u64, BlockError> {
        let mut value = 0_u64;
        let mut got = 0;
        while got < count {
            let byte = *self.bytes.get(self.at / 8).ok_or(BlockError::Truncated)?;
            let skip = (self.at % 8) as u32;
            let some = (8 - skip).min(count - got);
            let part = u64::from(byte >> skip) & ((1 << some) - 1);
            value |= part << got;
            got += some;
            self.at += some as usize;
        }
        Ok(value)
    }

    /// Reads the next bit.
    pub(super) fn flag(&mut self) -> Result<bool, BlockError> {
        Ok(self.take(1)? == 1)
    }

    /// Reads a number in an exponential Golomb code of order `k`.
    pub(super) fn golomb(&mut self, k: u32) -> Result<u64, BlockError> {
        let mut width = 0;
        while !self.flag()? {
            width += 1;
            if width > 64 {
                return Err(BlockError::Damaged("a number is too long"));
            }
        }
        let head = (1_u128 << width) | u128::from(self.take(width)?);
        let value = ((head - 1) << k) | u128::from(self.take(k)?);
        u64::try_from(value).map_err(|_| BlockError::Damaged("a number is too large"))
    }

    /// Reads a number in a Rice code of order `k`.
    pub(super) fn rice(&mut self, k: u32) -> Result<u64, BlockError> {
        let mut ones = 0;
        while ones < RICE_ESCAPE && self.flag()? {
            ones += 1;
        }
        if ones == RICE_ESCAPE { self.take(RICE_FULL) } else { Ok((u64::from(ones) << k) | self.take(k)?) }
    }

    /// Returns true if only the zero bits that pad the last byte are left.
    pub(super) fn is_at_end(&self) -> bool {
        let whole = self.at / 8;
        match self.bytes.get(whole) {
            None => true,
            Some(last) => {
                !self.at.is_multiple_of(8)
                    && self.bytes.len() == whole + 1
                    && last.checked_shr((self.at % 8) as u32) == Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(numbers in proptest::collection::vec((any::<u64>(), 0_u32..=64, 0_u32..=20), 0..50)) {
            let mut writer = BlockBitWriter::default();
            for (value, shift, k) in &numbers {
                let value = value.checked_shr(*shift).unwrap_or(0);
                writer.golomb(value, *k);
                writer.rice(value & 0x1_ffff_ffff, *k);
                writer.put(value, 64);
            }
            let mut reader = BlockBitReader::new(writer.bytes());
            for (value, shift, k) in &numbers {
                let value = value.checked_shr(*shift).unwrap_or(0);
                prop_assert_eq!(reader.golomb(*k).unwrap(), value);
                prop_assert_eq!(reader.rice(*k).unwrap(), value & 0x1_ffff_ffff);
                prop_assert_eq!(reader.take(64).unwrap(), value);
            }
            prop_assert!(reader.is_at_end());
        }

        #[test]
        fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64), k in 0_u32..=20) {
            let mut reader = BlockBitReader::new(&bytes);
            while reader.golomb(k).is_ok() && reader.rice(k).is_ok() {}
        }
    }
}
