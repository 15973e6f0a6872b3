//! Rice coding of columns of small whole numbers: a unary quotient and `k` low bits.

/// A quotient of this many ones marks a value written in full: 64 bits follow.
const ESCAPE: u64 = 20;

/// Parameter of a column of only zeros, which is not written at all.
pub(crate) const ZEROS: u8 = u8::MAX;

/// Greatest other parameter.
pub(crate) const MAX_PARAMETER: u8 = 40;

/// Returns the parameter that writes `column` in close to the fewest bits: those around the median are tried.
pub(crate) fn best_parameter(column: &[u64]) -> u8 {
    if column.iter().all(|&value| value == 0) {
        return ZEROS;
    }
    let mut sorted = column.to_vec();
    let middle = sorted.len() / 2;
    let (_, median, _) = sorted.select_nth_unstable(middle);
    let width = u8::try_from(64 - median.leading_zeros()).unwrap_or(MAX_PARAMETER);
    let tried = width.saturating_sub(2).min(MAX_PARAMETER)..=(width + 2).min(MAX_PARAMETER);
    tried.min_by_key(|&k| column.iter().map(|&value| cost(value, k)).sum::<u64>()).unwrap_or(0)
}

fn cost(value: u64, k: u8) -> u64 {
    let quotient = value >> k;
    if quotient >= ESCAPE { ESCAPE + 64 } else { quotient + 1 + u64::from(k) }
}

/// Writes bits, least significant first.
#[derive(Debug, Default)]
pub(crate) struct RiceWriter {
    bytes: Vec<u8>,
    partial_byte: u8,
    used: u8,
}

impl RiceWriter {
    /// Writes one value with parameter `k`; with [`ZEROS`] writes nothing.
    pub(crate) fn rice(&mut self, value: u64, k: u8) {
        if k == ZEROS {
            return;
        }
        let quotient = value >> k;
        if quotient >= ESCAPE {
            self.ones(ESCAPE);
            self.bits(value, 64);
        } else {
            self.ones(quotient);
            self.bit(false);
            self.bits(value, k);
        }
    }

    /// Returns the bytes, the last one padded with ones: no value can be decoded from the padding.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.used > 0 {
            self.partial_byte |= u8::MAX << self.used;
            self.bytes.push(self.partial_byte);
        }
        self.bytes
    }

    fn ones(&mut self, count: u64) {
        for _ in 0..count {
            self.bit(true);
        }
    }

    /// Writes the lowest `count` bits, 64 at most, least significant first.
    pub(crate) fn bits(&mut self, value: u64, count: u8) {
        for index in 0..count {
            self.bit((value >> index) & 1 == 1);
        }
    }

    fn bit(&mut self, is_set: bool) {
        self.partial_byte |= u8::from(is_set) << self.used;
        self.used += 1;
        if self.used == 8 {
            self.bytes.push(self.partial_byte);
            self.partial_byte = 0;
            self.used = 0;
        }
    }
}

/// Reads what [`RiceWriter`] wrote.
#[derive(Debug)]
pub(crate) struct RiceReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> RiceReader<'a> {
    /// Reads from the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Reads one value; `None` at the end of the bytes or with a parameter out of range.
    pub(crate) fn rice(&mut self, k: u8) -> Option<u64> {
        if k == ZEROS {
            return Some(0);
        }
        if k > MAX_PARAMETER {
            return None;
        }
        let mut quotient = 0;
        while quotient < ESCAPE && self.bit()? {
            quotient += 1;
        }
        if quotient == ESCAPE {
            return self.bits(64);
        }
        Some((quotient << k) | self.bits(k)?)
    }

    /// Returns true if only the last byte's padding is left.
    pub(crate) fn is_finished(&self) -> bool {
        let filling = self.bytes.get(self.at / 8).is_none_or(|last| last.leading_ones() >= 8 - self.used());
        self.at.div_ceil(8) == self.bytes.len() && filling
    }

    /// Number of bits already read from the current byte.
    fn used(&self) -> u32 {
        u32::try_from(self.at % 8).unwrap_or_default()
    }

    /// Reads `count` bits, 64 at most.
    pub(crate) fn bits(&mut self, count: u8) -> Option<u64> {
        let mut value = 0;
        for index in 0..count {
            value |= u64::from(self.bit()?) << index;
        }
        Some(value)
    }

    fn bit(&mut self) -> Option<bool> {
        let byte = *self.bytes.get(self.at / 8)?;
        let bit = (byte >> (self.at % 8)) & 1 == 1;
        self.at += 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_column_reads_back(column in prop::collection::vec(any::<u64>(), 0..50), k in 0..=MAX_PARAMETER) {
            let mut writer = RiceWriter::default();
            for &value in &column {
                writer.rice(value, k);
            }
            let bytes = writer.finish();
            let mut reader = RiceReader::new(&bytes);
            for &value in &column {
                prop_assert_eq!(reader.rice(k), Some(value));
            }
            prop_assert!(reader.is_finished());
        }
    }

    #[test]
    fn small_columns_take_small_parameters() {
        assert_eq!(best_parameter(&[0, 0, 1, 0]), 0);
        assert_eq!(best_parameter(&[0, 0, 0, 0]), ZEROS);
        assert!(best_parameter(&[100, 200, 150]) >= 6);
    }
}
