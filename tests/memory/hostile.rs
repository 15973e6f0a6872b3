//! Bytes that claim much: every place of a good value replaced by a length, followed by little or by as much as claimed.

use parallax_tests::stranger::scattered;

/// Bytes of a long value: far more than what a reader may reserve ahead costs less than.
const LONG: usize = 16 << 10;

/// Variants of a good value: cut at each place, then a length that nothing follows, or one that is filled with the smallest
/// entries there are.
pub(crate) fn variants(good: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..=good.len()).flat_map(|at| {
        let before = &good[..at];
        let empty = [u64::from(u16::MAX), u64::from(u32::MAX), u64::MAX >> 1, u64::MAX]
            .map(|claim| [before, &varint(claim)[..]].concat());
        let full = [0, 1, 2].map(|fill| {
            let mut bytes = [before, &varint(LONG as u64)[..]].concat();
            // The rest of the value is there too, so that it may be good to its end.
            bytes.resize(at + LONG, fill);
            bytes.extend_from_slice(&good[at..]);
            bytes
        });
        empty.into_iter().chain(full)
    })
}

/// Values of no type: so many equal bytes, and scattered ones.
pub(crate) fn strangers() -> impl Iterator<Item = Vec<u8>> {
    let equal = [0, 1, 2, 3, 5, 0x7f, 0xff].into_iter().map(|byte| vec![byte; 300]);
    equal.chain((0..40).map(|seed| scattered(seed, 300)))
}

/// A number as postcard writes lengths: seven bits a byte, the lowest first.
pub(crate) fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}
