//! Bit streams, lowest bit first, with two variable-length codes: exponential Golomb and Rice.

/// Bytes that a [`BitWriter`] appends to.
pub trait BitBuffer: Default {
    /// Appends a byte.
    fn push(&mut self, byte: u8);

    /// The byte appended last.
    fn last_mut(&mut self) -> Option<&mut u8>;

    /// All bytes.
    fn bytes(&self) -> &[u8];
}

impl BitBuffer for Vec<u8> {
    #[inline]
    fn push(&mut self, byte: u8) {
        Self::push(self, byte);
    }

    #[inline]
    fn last_mut(&mut self) -> Option<&mut u8> {
        self.as_mut_slice().last_mut()
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Parameters of a Rice code: a unary quotient, then `k` low bits; a number with a larger quotient follows in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RiceCode {
    /// Number of leading ones after which a number follows in full; less than 64.
    pub escape: u32,
    /// Bits of a number that follows in full; at most 64.
    pub full_bits: u32,
}

/// Error while reading bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BitError {
    /// The bytes end too early.
    #[error("the bits end too early")]
    Truncated,
    /// A number needs more than 64 bits.
    #[error("a number is too large")]
    TooLarge,
}

/// Writes bits, lowest first.
#[derive(Debug, Clone, Default)]
pub struct BitWriter<B = Vec<u8>> {
    buffer: B,
    /// Used bits of the last byte; 0 if it is full.
    used: u32,
}

impl<B: BitBuffer> BitWriter<B> {
    /// Bytes written so far; unused bits of the last one are zero.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Returns the bytes, the unused bits of the last one set to ones.
    #[must_use]
    pub fn padded_with_ones(mut self) -> B {
        if let Some(last) = self.buffer.last_mut().filter(|_| self.used > 0) {
            *last |= u8::MAX << self.used;
        }
        self.buffer
    }

    /// Appends the lowest `count` (at most 64) bits of `value`.
    pub fn put(&mut self, mut value: u64, mut count: u32) {
        while count > 0 {
            if self.used == 0 {
                self.buffer.push(0);
            }
            let take = (8 - self.used).min(count);
            let part = (value & ((1 << take) - 1)) as u8;
            if let Some(last) = self.buffer.last_mut() {
                *last |= part << self.used;
            }
            value = value.checked_shr(take).unwrap_or(0);
            count -= take;
            self.used = (self.used + take) % 8;
        }
    }

    /// Appends one bit.
    pub fn flag(&mut self, set: bool) {
        self.put(u64::from(set), 1);
    }

    /// Appends a number in an exponential Golomb code of order `k`: small numbers are short, and every number can be
    /// encoded.
    pub fn golomb(&mut self, value: u64, k: u32) {
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

    /// Appends a number below two to the power of `code.full_bits` in a Rice code of order `k`.
    pub fn rice(&mut self, value: u64, k: u32, code: RiceCode) {
        let ones = value >> k;
        if ones < u64::from(code.escape) {
            self.put((1 << ones) - 1, ones as u32);
            self.put(0, 1);
            self.put(value, k);
        } else {
            self.put((1 << code.escape) - 1, code.escape);
            self.put(value, code.full_bits);
        }
    }
}

/// Reads bits, lowest first.
#[derive(Debug, Clone)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Number of bits read so far.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// Starts at the first bit.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Reads the next `count` (at most 64) bits.
    ///
    /// # Errors
    /// [`BitError::Truncated`]
    #[inline]
    pub fn take(&mut self, count: u32) -> Result<u64, BitError> {
        let mut value = 0_u64;
        let mut got = 0;
        while got < count {
            let byte = *self.bytes.get(self.at / 8).ok_or(BitError::Truncated)?;
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
    ///
    /// # Errors
    /// [`BitError::Truncated`]
    #[inline]
    pub fn flag(&mut self) -> Result<bool, BitError> {
        let byte = *self.bytes.get(self.at / 8).ok_or(BitError::Truncated)?;
        let bit = (byte >> (self.at % 8)) & 1 == 1;
        self.at += 1;
        Ok(bit)
    }

    /// Reads a number in an exponential Golomb code of order `k`.
    ///
    /// # Errors
    /// [`BitError`]
    #[inline]
    pub fn golomb(&mut self, k: u32) -> Result<u64, BitError> {
        let mut width = 0;
        while !self.flag()? {
            width += 1;
            if width > 64 {
                return Err(BitError::TooLarge);
            }
        }
        let head = (1_u128 << width) | u128::from(self.take(width)?);
        let value = ((head - 1) << k) | u128::from(self.take(k)?);
        u64::try_from(value).map_err(|_| BitError::TooLarge)
    }

    /// Reads a number in a Rice code of order `k`.
    ///
    /// # Errors
    /// [`BitError::Truncated`]
    #[inline]
    pub fn rice(&mut self, k: u32, code: RiceCode) -> Result<u64, BitError> {
        let mut ones = 0;
        while ones < code.escape && self.flag()? {
            ones += 1;
        }
        if ones == code.escape { self.take(code.full_bits) } else { Ok((u64::from(ones) << k) | self.take(k)?) }
    }

    /// Returns true if only the bits that pad the last byte are left, and all of them are `padding`.
    #[inline]
    pub fn is_at_end(&self, padding: bool) -> bool {
        let (whole, used) = (self.at / 8, self.at % 8);
        match self.bytes.get(whole) {
            None => true,
            Some(last) => {
                let rest = if padding { !last } else { *last };
                used > 0 && self.bytes.len() == whole + 1 && rest >> used == 0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CODE: RiceCode = RiceCode { escape: 24, full_bits: 33 };

    proptest! {
        #[test]
        fn numbers_are_read_as_written(
            numbers in proptest::collection::vec((any::<u64>(), 0_u32..=64, 0_u32..=20), 0..50), ones in any::<bool>(),
        ) {
            let mut writer = BitWriter::<Vec<u8>>::default();
            for (value, shift, k) in &numbers {
                let value = value.checked_shr(*shift).unwrap_or(0);
                writer.golomb(value, *k);
                writer.rice(value & 0x1_ffff_ffff, *k, CODE);
                writer.flag(value % 2 == 1);
                writer.put(value, 64);
            }
            let bytes = if ones { writer.padded_with_ones() } else { writer.bytes().to_vec() };
            let mut reader = BitReader::new(&bytes);
            for (value, shift, k) in &numbers {
                let value = value.checked_shr(*shift).unwrap_or(0);
                prop_assert_eq!(reader.golomb(*k), Ok(value));
                prop_assert_eq!(reader.rice(*k, CODE), Ok(value & 0x1_ffff_ffff));
                prop_assert_eq!(reader.flag(), Ok(value % 2 == 1));
                prop_assert_eq!(reader.take(64), Ok(value));
            }
            prop_assert!(reader.is_at_end(ones));
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), k in 0_u32..=20) {
            let mut reader = BitReader::new(&bytes);
            while reader.golomb(k).is_ok() && reader.rice(k, CODE).is_ok() {}
        }
    }

    #[test]
    fn the_end_is_padding_of_the_right_kind_and_nothing_else() {
        for (bytes, read, with_zeros, with_ones) in [
            (&[][..], 0, true, true),
            (&[0xff], 8, true, true),
            (&[0b0000_0111], 3, true, false),
            (&[0b1111_1000], 3, false, true),
            (&[0b0001_0111], 3, false, false),
            (&[0], 0, false, false),
            (&[0, 0], 3, false, false),
        ] {
            let mut reader = BitReader::new(bytes);
            reader.take(read).unwrap();
            assert_eq!((reader.is_at_end(false), reader.is_at_end(true)), (with_zeros, with_ones), "{bytes:?} {read}");
        }
        assert_eq!(BitReader::new(&[1]).take(9), Err(BitError::Truncated));
        assert_eq!(BitReader::new(&[0; 9]).golomb(0), Err(BitError::TooLarge));
    }
}
