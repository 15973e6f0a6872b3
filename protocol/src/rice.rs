//! Rice coding of columns of small whole numbers, each column with the parameter that fits it best.

use parallax_primitives::bits::{BitReader, BitWriter, RiceCode};

/// A quotient of twenty ones marks a value written in full.
const CODE: RiceCode = RiceCode { escape: 20, full_bits: 64 };

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
    let candidates = width.saturating_sub(2).min(MAX_PARAMETER)..=(width + 2).min(MAX_PARAMETER);
    candidates.min_by_key(|&k| column.iter().map(|&value| cost(value, k)).sum::<u64>()).unwrap_or(0)
}

fn cost(value: u64, k: u8) -> u64 {
    let (quotient, escape) = (value >> k, u64::from(CODE.escape));
    if quotient >= escape { escape + u64::from(CODE.full_bits) } else { quotient + 1 + u64::from(k) }
}

/// Writes columns.
#[derive(Debug, Default)]
pub(crate) struct RiceWriter(BitWriter);

impl RiceWriter {
    /// Writes one value with parameter `k`; with [`ZEROS`] writes nothing.
    pub(crate) fn rice(&mut self, value: u64, k: u8) {
        if k != ZEROS {
            self.0.rice(value, u32::from(k), CODE);
        }
    }

    /// Writes the lowest `count` bits, 64 at most.
    pub(crate) fn bits(&mut self, value: u64, count: u32) {
        self.0.put(value, count);
    }

    /// Returns the bytes, the last one padded with ones: no value can be decoded from the padding.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0.padded_with_ones()
    }
}

/// Reads columns that [`RiceWriter`] wrote.
#[derive(Debug)]
pub(crate) struct RiceReader<'a>(BitReader<'a>);

impl<'a> RiceReader<'a> {
    /// Reads from the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(BitReader::new(bytes))
    }

    /// Reads one value; `None` at the end of the bytes or with a parameter out of range.
    pub(crate) fn rice(&mut self, k: u8) -> Option<u64> {
        match k {
            ZEROS => Some(0),
            0..=MAX_PARAMETER => self.0.rice(u32::from(k), CODE).ok(),
            _ => None,
        }
    }

    /// Reads `count` bits, 64 at most.
    pub(crate) fn bits(&mut self, count: u32) -> Option<u64> {
        self.0.take(count).ok()
    }

    /// Returns true if only the last byte's padding is left.
    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_at_end(true)
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
